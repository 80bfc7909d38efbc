"""How long a user waits before anything happens: ``import locum``, ``locum --help``, one small program.

Each is a process of its own, and Python's own start is measured beside it, in turn, so that what Locum
adds is a difference in the same run. Times are the least of several, by the processor's clock.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import time

WORK = {
    "python": [sys.executable, "-c", "pass"],
    "import": [sys.executable, "-c", "import locum"],
    "help": [sys.executable, "-m", "locum", "--help"],
    "run": [sys.executable, "-m", "locum", "run", "transpose"],
}


def processor_seconds(command: list[str]) -> tuple[float, float]:
    """Return the processor time and the wall time of one run of a command."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def main() -> None:
    """Measure, and print a table or (``--json``) one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in WORK}
    for _ in range(arguments.repeats):
        for name, command in WORK.items():
            times[name].append(processor_seconds(command))
    rows = [
        {"what": name, "seconds": min(used for used, _ in runs), "wall": min(wall for _, wall in runs)}
        for name, runs in times.items()
    ]
    machine = f"Python {platform.python_version()}, {platform.machine()}"
    if arguments.json:
        print(json.dumps({"benchmark": "start", "machine": machine, "rows": rows}))
        return
    print(f"From nothing to something ({machine}); least of {arguments.repeats}")
    for row in rows:
        print(f"  {row['what']:8} {row['seconds']:.3f} s of processor, {row['wall']:.3f} s of wall")


if __name__ == "__main__":
    main()
