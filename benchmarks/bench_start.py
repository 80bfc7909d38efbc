"""Measure start-up times: ``import locum``, ``locum --help``, small programs and a first call of U.

Each measurement runs in a separate process. The start of Python is measured in the same run, so that
the additional time of Locum is a difference of two rows. CPU times and wall times are the minimum of
several runs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: A typical program of ten statements, and an expression whose value is printed.
_TEN_LINES = """
same = select(tokens, tokens, ==);
often = selector_width(same);
before = select(indices, indices, <);
again = has_focus(same and before);
score = -1 if again else often;
shown = "-" if again else tokens;
backwards = aggregate(select(indices, length - 1 - indices, ==), tokens);
mirrored = backwards == tokens;
first = aggregate(select(indices, 0, ==), tokens);
result = sort(shown, -score);
result;
"""
_FIRST_U = """
import numpy as np
from locum import Attention, UniversalSimulator
T = Attention(np.eye(32), np.ones((32, 40)))
UniversalSimulator(48, 32, 40)(T, np.ones((48, 32)))
"""

WORK = {
    "python": [sys.executable, "-c", "pass"],
    "import": [sys.executable, "-c", "import locum"],
    "help": [sys.executable, "-m", "locum", "--help"],
    "run": [sys.executable, "-m", "locum", "run", "transpose"],
    "run ten lines": [sys.executable, "-m", "locum", "run", "ten_lines.rasp"],
    "numpy": [sys.executable, "-c", "import numpy"],
    "first U": [sys.executable, "-c", _FIRST_U],
}


def processor_seconds(command: list[str]) -> tuple[float, float]:
    """Return the CPU time and the wall time of one run of a command, in seconds."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def main() -> None:
    """Measure the commands, and print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in WORK}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("ten_lines.rasp").write_text(_TEN_LINES, encoding="utf-8")
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
    print(f"Start-up times ({machine}); minimum of {arguments.repeats} runs")
    for row in rows:
        print(f"  {row['what']:13} CPU time {row['seconds']:.3f} s, wall time {row['wall']:.3f} s")


if __name__ == "__main__":
    main()
