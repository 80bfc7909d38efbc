"""What every benchmark shares: the command line, the machine in words, the least of several times."""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

Row = dict[str, Any]


def least(
    work: Callable[[], object], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """The least time of several runs, in seconds of the given clock."""
    times = []
    for _ in range(repeats):
        started = clock()
        work()
        times.append(clock() - started)
    return min(times)


def main(
    name: str,
    about: str,
    sizes: str,
    measure: Callable[[list[int], int], list[Row]],
    title: str,
    lines: Callable[[list[Row]], Iterable[str]],
) -> None:
    """Parse the arguments, measure, and print a table or (``--json``) one JSON object."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--sizes", default=sizes, help="sizes to measure, with commas")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    rows = measure([int(size) for size in arguments.sizes.split(",")], arguments.repeats)
    machine = f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}"
    if arguments.json:
        print(json.dumps({"benchmark": name, "machine": machine, "rows": rows}))
        return
    print(f"{title} ({machine})")
    for line in lines(rows):
        print(line)
