"""Run sweeps: many cases on several processes or machines, with a resumable file of results.

>>> from locum.experiments.sweeps import Case, run
>>> report = run([Case("trial", {"seed": 1})], None, workers=1)
>>> report.results[0].outcome
'done'
"""

from locum.experiments.sweeps.store import read
from locum.experiments.sweeps.sweep_case import Case, Result
from locum.experiments.sweeps.sweep_runner import Report, has_no_value, run

__all__ = ["Case", "Report", "Result", "has_no_value", "read", "run"]
