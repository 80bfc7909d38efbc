"""Measure the size of compiled networks as a function of the maximum length, for ten everyday programs.

The sizes are layers, width of the residual stream and hidden units of all layers, with the default
options of ``compile``. A network for longer inputs should not be smaller. The list "shrinks" contains
each size that decreases by more than a tenth from one length to the next.

    python benchmarks/bench_size_by_length.py              # writes build/sizes/by_length.svg
    python benchmarks/bench_size_by_length.py --json > FILE
    python benchmarks/bench_size_by_length.py --read FILE --charts docs/pictures/sizes

The figure in ``docs/pictures/sizes`` is drawn from ``benchmarks/size_by_length.json``.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import Row, machine
from benchmarks.plots import heat_maps
from locum import aggregate, full, indicator, indices, length, select, selector_width, tokens
from locum.networks.compiler import compile as compile_program
from locum.rasp.programs import Task, load_everyday

_DIGITS = tuple(range(10))
_up_to_here, _from_here = select(indices, indices, "<="), select(indices, indices, ">=")
_mean = aggregate(full, tokens)
_balance = aggregate(_up_to_here, indicator(tokens == "(") - indicator(tokens == ")"))
_unbroken = aggregate(full, indicator(_balance < 0)) == 0

PROGRAMS: dict[str, Task] = {
    "reverse": load_everyday("reverse"),
    "histogram": Task(selector_width(select(tokens, tokens, "==")), tuple("abcd")),
    "sort": load_everyday("sort"),
    "most frequent": load_everyday("most_frequent"),
    "palindrome": load_everyday("palindrome"),
    "brackets": Task(
        _unbroken & (aggregate(select(indices, length - 1, "=="), _balance) == 0), tuple("()")
    ),
    "variance": Task(aggregate(full, (tokens - _mean) ** 2), _DIGITS),
    "above mean": Task(tokens > _mean, _DIGITS),
    "equal halves": Task(aggregate(_up_to_here, tokens) == aggregate(_from_here, tokens), _DIGITS),
    "sum": Task(round(length * _mean), _DIGITS),
}

#: The sizes, each with its title in the chart.
SIZES = {
    "layers": "Layers",
    "d_model": "Width of the residual stream (d_model)",
    "units": "Hidden units of all layers",
}
#: A size shrinks if it is less than this fraction of the size at the previous length.
_LEFT = 0.9


def measure(lengths: Sequence[int], names: Sequence[str] = tuple(PROGRAMS)) -> list[Row]:
    """Compile the named programs for each length, and return one row of sizes for each."""
    return [_row(name, PROGRAMS[name], n) for name in names for n in lengths]


def _row(name: str, task: Task, n: int) -> Row:
    started = time.process_time()
    model = compile_program(task.program, length=n, vocabulary=task.vocabulary)
    seconds = time.process_time() - started
    feeds = [layer.feed_forward for layer in model.weights.layers]
    return {
        "program": name,
        "length": n,
        "layers": model.architecture.layers,
        "d_model": model.architecture.d_model,
        "units": sum(0 if feed is None else feed.W_out.shape[0] for feed in feeds),
        "parameters": model.architecture.parameters,
        "error_bound": model.error_bound,
        "cpu_seconds": seconds,
    }


def shrinking(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the sizes that decrease by more than a tenth from one length to the next."""
    for before, after in pairwise(rows):
        for size in SIZES:
            if before["program"] == after["program"] and after[size] < _LEFT * before[size]:
                lengths = f"{before['length']} to {after['length']}"
                yield f"{after['program']}, {size}: {before[size]} to {after[size]} at length {lengths}"


def draw(rows: Sequence[Row]) -> str:
    """Draw a panel for each size as SVG: programs are rows, and lengths are columns."""
    lengths = sorted({row["length"] for row in rows})
    panels = {}
    for size, title in SIZES.items():
        found = {(row["program"], row["length"]): row[size] for row in rows}
        largest = math.log1p(max(found.values()))
        panels[title] = [
            [(math.log1p(found[name, n]) / largest, f"{found[name, n]:,}") for n in lengths]
            for name in PROGRAMS
        ]
    return heat_maps(
        "Sizes of networks by length of the input",
        panels,
        list(PROGRAMS),
        list(map(str, lengths)),
        x="length of the input (tokens)",
        y="program",
    )


def main() -> int:
    """Compile the programs or read their sizes, draw the chart, and print a table or one JSON object.

    Return 1 if a size shrinks.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lengths", default="5,10,15,20,30,40,50", help="Tokens.")
    parser.add_argument("--charts", type=Path, default=Path("build/sizes"), help="Folder for charts.")
    parser.add_argument("--read", type=Path, help="Draw the rows of a JSON file, without compiling.")
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")
    arguments = parser.parse_args()
    if arguments.read is None:
        rows = measure([int(n) for n in arguments.lengths.split(",")])
    else:
        rows = json.loads(arguments.read.read_text())["rows"]
    shrinks = list(shrinking(rows))
    arguments.charts.mkdir(parents=True, exist_ok=True)
    chart = arguments.charts / "by_length.svg"
    chart.write_text(draw(rows), encoding="utf-8")
    if arguments.json:
        result = {"benchmark": "size by length", "machine": machine(), "rows": rows}
        print(json.dumps(result | {"shrinks": shrinks, "charts": [str(chart)]}))
        return bool(shrinks)
    print(f"Size against length ({machine()})")
    titles = ("length", *SIZES, "parameters", "error", "CPU s")
    print(f"{'':16} " + " ".join(f"{title:>10}" for title in titles))
    for row in rows:
        numbers = [row["length"], *(row[size] for size in SIZES), row["parameters"]]
        cells = [*map(str, numbers), f"{row['error_bound']:.1e}", f"{row['cpu_seconds']:.2f}"]
        print(f"{row['program']:16} " + " ".join(f"{cell:>10}" for cell in cells))
    print(*(f"shrinks: {line}" for line in shrinks), chart, sep="\n")
    return bool(shrinks)


if __name__ == "__main__":
    sys.exit(main())
