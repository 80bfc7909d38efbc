"""Long sequences: five programs of the RASP paper, structured, from a thousand to a million tokens.

At every size: the least time of several runs on an array of tokens, and the peak of the memory taken
(traced in a run of its own, without the tokens). At 200 tokens, list in and list out: how many times
faster than dense execution, measured in the same run, and than Weiss's implementation of RASP. Its
times (CPU seconds to apply a program that was built before) were measured once, on another machine.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.cases import histogram, most_frequent, reverse, sort, up_to_here

from benchmarks.harness import Row, least, main
from understudy import SOp, aggregate, tokens
from understudy.execution import DOMAINS, dense, structured

#: Program → seconds of Weiss's implementation at 200 tokens, where it was measured.
PROGRAMS: dict[str, tuple[SOp, float | None]] = {
    "histogram": (histogram, 0.4797),
    "sort": (sort(tokens, tokens), 1.141),
    "reverse": (reverse, 0.3002),
    "prefix mean": (aggregate(up_to_here, tokens), None),
    "most frequent": (most_frequent, 1.069),
}
COMPARED_AT = 200


def sequence(name: str, size: int) -> Any:
    """Letters for programs on letters, numbers of many values for those on numbers."""
    random = np.random.default_rng(size)
    if name == "sort":
        return random.integers(0, 10**9, size)
    if name == "prefix mean":
        return random.normal(size=size)
    return np.array(list("abcdefghijklmnopqrstuvwxyz"))[random.integers(0, 26, size)]


def measure(sizes: list[int], repeats: int) -> list[Row]:
    """One row per program and size."""
    rows = []
    for name, (program, weiss) in PROGRAMS.items():
        for size in sizes:
            given = sequence(name, size)
            counts: dict[str, int] = {}
            structured.evaluate(program.node, given, counts=counts)
            row: Row = {"program": name, "tokens": size, "counts": counts}
            row["seconds"] = least(lambda p=program, g=given: structured.evaluate(p.node, g), repeats)  # type: ignore[misc]
            row["peak_bytes_per_token"] = peak(program, given) / size
            if size == COMPARED_AT:
                row |= compare(program, given.tolist(), weiss, repeats)
            rows.append(row)
    return rows


def peak(program: SOp, given: Any) -> int:
    """Most bytes held at a time while it runs."""
    tracemalloc.start()
    structured.evaluate(program.node, given)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return held


def compare(program: SOp, given: list[Any], weiss: float | None, repeats: int) -> Row:
    """List in, list out, against dense execution here and Weiss's implementation elsewhere."""

    def fast() -> list[Any]:
        found: list[Any] = structured.evaluate(program.node, structured.tokens_array(given)).tolist()
        return found

    def slow() -> Any:
        return dense.evaluate(program.node, given, DOMAINS["float"])

    np.testing.assert_array_equal(fast(), slow())
    ours = least(fast, 20 * repeats)
    return {
        "list_seconds": ours,
        "dense_ratio": least(slow, repeats) / ours,
        "weiss_ratio": None if weiss is None else weiss / ours,
    }


def lines(rows: list[Row]) -> Iterator[str]:
    """The table, and the comparison."""
    yield f"{'program':<14} {'tokens':>8} {'seconds':>9} {'bytes/token':>12}   steps"
    for row in rows:
        steps = ", ".join(f"{number} {what}" for what, number in row["counts"].items())
        yield (
            f"{row['program']:<14} {row['tokens']:>8} {row['seconds']:>9.5f} "
            f"{row['peak_bytes_per_token']:>12.0f}   {steps}"
        )
    for row in rows:
        if "dense_ratio" in row:
            weiss = f"{row['weiss_ratio']:.0f}" if row["weiss_ratio"] else "not measured"
            yield (
                f"at {row['tokens']} tokens, {row['program']}: {row['dense_ratio']:.0f} times as fast as "
                f"dense execution; than Weiss's implementation (other machine): {weiss}"
            )


if __name__ == "__main__":
    title = "Programs on long sequences, structured execution"
    sizes = f"{COMPARED_AT},1000,10000,100000,1000000"
    main("sequences", __doc__ or "", sizes, measure, title, lines)
