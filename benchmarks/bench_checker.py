"""What hostile certificates cost the checker: every one rejected, within five seconds and a gigabyte.

Each file of ``tests/verification/hostile.py`` is checked in a process of its own, whose CPU time and
memory are limited; what is printed is what it took, reading the file included. Exit code 1 if one is
accepted, or ends in anything but a described rejection.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.verification.hostile import LABORIOUS, MALFORMED, Change, certificate

from locum.verification.checker.content import sealed

SECONDS, BYTES = 60, 2**31
SCRIPT = """
import json, resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[3]),) * 2)
from locum.files import read_json
from locum.verification.checker.check import check
from locum.verification.checker.content import RejectedError
begun = time.process_time()
try:
    check(read_json(sys.argv[1], 2**23))
    verdict = "accepted"
except RejectedError as problem:
    verdict = f"rejected: {problem}"
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
used = int(status["VmHWM"].split()[0]) * 1024
print(json.dumps([verdict, time.process_time() - begun, used]))
"""


def measure(change: Change, folder: Path) -> tuple[str, float, int]:
    """Check one file; the verdict, seconds of CPU and bytes of memory."""
    file = folder / "hostile.json"
    file.write_text(json.dumps(sealed(change(certificate()))), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(file), str(BYTES), str(SECONDS)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        return f"failed: {done.stderr.strip()[-200:] or done.returncode}", float("inf"), 0
    verdict, seconds, used = json.loads(done.stdout)
    return verdict, seconds, used


def main() -> int:
    """Measure all of them, and print a table or (``--json``) one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--only", default="", help="files with these words in their names alone")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, change in {**MALFORMED, **LABORIOUS}.items():
            if arguments.only not in name:
                continue
            verdict, seconds, used = measure(change, Path(folder))
            rows.append({"file": name, "verdict": verdict, "seconds": seconds, "bytes": used})
            if not arguments.json:
                print(f"{seconds:6.2f} s {used / 1e6:6.0f} MB  {name}: {verdict[:110]}", flush=True)
    holds = all(str(row["verdict"]).startswith("rejected: ") for row in rows)
    if arguments.json:
        print(json.dumps({"benchmark": "checker", "holds": holds, "rows": rows}))
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
