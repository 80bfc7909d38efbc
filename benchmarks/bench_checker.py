"""Check hostile certificates in the process of ``locum prove check``: all must be rejected in time.

The files are defined in ``tests/verification/hostile.py``. The table contains the CPU time and the
verdict for each file. The exit code is 1 if a file is accepted.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.verification.hostile import LABORIOUS, MALFORMED, Change, certificate

from locum.interface.cli.prove import run_check

SECONDS, MEGABYTES = 5, 1_000


def measure(change: Change, folder: Path) -> tuple[str, float]:
    """Check one hostile certificate; return the verdict and the user CPU time in seconds."""
    file = folder / "hostile.json"
    file.write_text(json.dumps(change(certificate())), encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    result = run_check(file, SECONDS, MEGABYTES)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    verdict = result["verdict"]
    return verdict if verdict == "accepted" else f"rejected: {result['problem']}", spent


def main() -> int:
    """Check all files, and print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--only", default="", help="only files whose names contain this text")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, change in {**MALFORMED, **LABORIOUS}.items():
            if arguments.only not in name:
                continue
            verdict, seconds = measure(change, Path(folder))
            rows.append({"file": name, "verdict": verdict, "seconds": seconds})
            if not arguments.json:
                print(f"{seconds:6.2f} s  {name}: {verdict[:110]}", flush=True)
    holds = all(str(row["verdict"]).startswith("rejected: ") for row in rows)
    if arguments.json:
        print(json.dumps({"benchmark": "checker", "holds": holds, "rows": rows}))
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
