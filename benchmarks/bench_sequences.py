"""Long sequences: five programs of the RASP paper, structured, from a thousand to a million tokens.

At every size: the least time of several runs on an array of tokens, and the peak of the memory taken
(traced in a run of its own, without the tokens). Up to ten thousand tokens, list in and list out: how
many times faster than dense execution, measured in the same run. At 200 tokens, also: how many times
faster than Weiss's implementation of RASP, whose times (CPU seconds to apply a program that was built
before) were measured once, on another machine.
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
from locum import SOp, aggregate, tokens
from locum.execution import DOMAINS, dense
from locum.execution.fast import structured

#: Program → seconds of Weiss's implementation at 200 tokens, where it was measured.
PROGRAMS: dict[str, tuple[SOp, float | None]] = {
    "histogram": (histogram, 0.4797),
    "sort": (sort(tokens, tokens), 1.141),
    "reverse": (reverse, 0.3002),
    "prefix mean": (aggregate(up_to_here, tokens), None),
    "most frequent": (most_frequent, 1.069),
}
WEISS_TOKENS = 200
#: Dense execution takes a second or so on so many tokens.
DENSE_TOKENS = 10_000


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
            if size <= DENSE_TOKENS:
                row |= compare(program, given.tolist(), 1 if size > 1000 else repeats)
            if size == WEISS_TOKENS and weiss is not None:
                row["weiss_ratio"] = weiss / row["list_seconds"]
            rows.append(row)
    return rows


def peak(program: SOp, given: Any) -> int:
    """Most bytes held at a time while it runs."""
    tracemalloc.start()
    structured.evaluate(program.node, given)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return held


def compare(program: SOp, given: list[Any], repeats: int) -> Row:
    """List in, list out, against dense execution; both give the same."""

    def fast() -> list[Any]:
        found: list[Any] = structured.evaluate(program.node, structured.tokens_array(given)).tolist()
        return found

    def slow() -> Any:
        return dense.evaluate(program.node, given, DOMAINS["float"])

    if isinstance(given[0], float):
        np.testing.assert_allclose(fast(), slow(), rtol=1e-12, atol=1e-12)
    else:
        np.testing.assert_array_equal(fast(), slow())
    ours = least(fast, 20 * repeats)
    return {"list_seconds": ours, "dense_ratio": least(slow, repeats) / ours}


def lines(rows: list[Row]) -> Iterator[str]:
    """The table."""
    titles = ("seconds", "bytes/token", "to dense", "to Weiss")
    yield f"{'program':<14} {'tokens':>8} " + " ".join(f"{t:>11}" for t in titles) + "   steps"
    for row in rows:
        steps = ", ".join(f"{number} {what}" for what, number in row["counts"].items())
        ratios = (f"{row[name]:.4g}×" if name in row else "" for name in ("dense_ratio", "weiss_ratio"))
        yield (
            f"{row['program']:<14} {row['tokens']:>8} {row['seconds']:>11.5f} "
            f"{row['peak_bytes_per_token']:>11.0f} "
            + " ".join(f"{r:>11}" for r in ratios)
            + f"   {steps}"
        )
    yield "to Weiss: against times of Weiss's implementation that were measured on another machine"


if __name__ == "__main__":
    title = "Programs on long sequences, structured execution"
    sizes = f"{WEISS_TOKENS},1000,10000,100000,1000000"
    main("sequences", __doc__ or "", sizes, measure, title, lines)
