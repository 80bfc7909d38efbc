"""Provide shared parts of the benchmarks: the command line, the machine as text, and measured times."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

Row = dict[str, Any]


def least(
    work: Callable[[], object], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the minimum time of several runs, in seconds of the given clock."""
    times = []
    for _ in range(repeats):
        started = clock()
        work()
        times.append(clock() - started)
    return min(times)


def interleave(
    work: dict[str, Callable[[], object]],
    seconds: float,
    *,
    rounds: int = 9,
    warm: int = 10,
    wait: Callable[[], object] = lambda: None,
) -> dict[str, list[float]]:
    """Return the times of each kind of work in seconds; the kinds of work alternate in every round.

    Rounds are repeated for ``seconds``, but at least ``rounds`` times. Before the measurement, each
    kind of work is run ``warm`` times. ``wait`` is a function that returns when a device has finished
    all work.
    """
    for one in work.values():
        for _ in range(warm):
            one()
    times: dict[str, list[float]] = {name: [] for name in work}
    started = time.perf_counter()
    while time.perf_counter() - started < seconds or len(next(iter(times.values()))) < rounds:
        for name, one in work.items():
            wait()
            begin = time.perf_counter()
            one()
            wait()
            times[name].append(time.perf_counter() - begin)
    return times


def ratio(over: Sequence[float], under: Sequence[float]) -> tuple[float, list[float]]:
    """Return the median and the quartiles of the ratio of two times in the same round."""
    ratios = sorted(p / q for p, q in zip(over, under, strict=True))
    return statistics.median(ratios), [ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]]


def machine(*libraries: str) -> str:
    """Return text with the versions of Python, NumPy and other libraries, and the type of machine."""
    versions = [f"Python {platform.python_version()}", f"NumPy {np.__version__}", *libraries]
    return ", ".join([*versions, platform.machine()])


def main(
    name: str,
    about: str,
    sizes: str,
    measure: Callable[[list[int], int], list[Row]],
    title: str,
    lines: Callable[[list[Row]], Iterable[str]],
) -> None:
    """Read the command line, measure, and print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--sizes", default=sizes, help="sizes to measure, with commas")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    rows = measure([int(size) for size in arguments.sizes.split(",")], arguments.repeats)
    if arguments.json:
        print(json.dumps({"benchmark": name, "machine": machine(), "rows": rows}))
        return
    print(f"{title} ({machine()})")
    for line in lines(rows):
        print(line)
