"""Sweeps: thousands of cases on many processes or machines, into one file that can be gone on with.

>>> from locum.sweeps import Case, run
>>> report = run([Case("trial", {"seed": 1})], None, workers=1)
>>> report.results[0].outcome
'done'
"""

from locum.sweeps.case import Case, Result
from locum.sweeps.running import Plan, Report, plan, run
from locum.sweeps.store import read

__all__ = ["Case", "Plan", "Report", "Result", "plan", "read", "run"]
