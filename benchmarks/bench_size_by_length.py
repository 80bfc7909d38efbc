"""Size of compiled networks against the length of their inputs: ten everyday programs.

Layers, width of the residual stream and hidden units of all layers, with the defaults of ``compile``. A
network for longer inputs should not be smaller: "shrinks" lists the programs of which one of the three
sizes falls by more than a tenth from one length to the next.

    python benchmarks/bench_size_by_length.py                            # charts go to build/sizes
    python benchmarks/bench_size_by_length.py --charts docs/pictures/sizes
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import Row, machine
from locum import aggregate, full, indicator, indices, length, select, selector_width, tokens
from locum.interface.display.charts import as_file, line_chart
from locum.networks.compiler import compile as compile_program
from locum.rasp.everyday import EVERYDAY, Task

_DIGITS = tuple(range(10))
_up_to_here, _from_here = select(indices, indices, "<="), select(indices, indices, ">=")
_mean = aggregate(full, tokens)
_balance = aggregate(_up_to_here, indicator(tokens == "(") - indicator(tokens == ")"))
_unbroken = aggregate(full, indicator(_balance < 0)) == 0

PROGRAMS: dict[str, Task] = {
    "reverse": EVERYDAY["reverse"],
    "histogram": Task(selector_width(select(tokens, tokens, "==")), tuple("abcd")),
    "sort": EVERYDAY["sort"],
    "most frequent": EVERYDAY["most_frequent"],
    "palindrome": EVERYDAY["palindrome"],
    "brackets": Task(
        _unbroken & (aggregate(select(indices, length - 1, "=="), _balance) == 0), tuple("()")
    ),
    "variance": Task(aggregate(full, (tokens - _mean) ** 2), _DIGITS),
    "above mean": Task(tokens > _mean, _DIGITS),
    "equal halves": Task(aggregate(_up_to_here, tokens) == aggregate(_from_here, tokens), _DIGITS),
    "sum": Task(round(length * _mean), _DIGITS),
}

#: Sizes with the titles and the axes of their charts.
SIZES = {
    "layers": ("Layers", "layers"),
    "d_model": ("Width (d_model)", "slots of the residual stream"),
    "units": ("Hidden units", "units of all layers"),
}
#: The share of a size that is left, at least, from one length to the next.
_LEFT = 0.9


def measure(lengths: Sequence[int]) -> list[Row]:
    """Return a row per program and length."""
    return [_row(name, task, n) for name, task in PROGRAMS.items() for n in lengths]


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
    """List the sizes that fall by more than a tenth from one length to the next."""
    for before, after in pairwise(rows):
        for size in SIZES:
            if before["program"] == after["program"] and after[size] < _LEFT * before[size]:
                lengths = f"{before['length']} to {after['length']}"
                yield f"{after['program']}, {size}: {before[size]} to {after[size]} at length {lengths}"


def draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw a chart of each size; a size of 0 is drawn as 1."""
    folder.mkdir(parents=True, exist_ok=True)
    lengths = sorted({row["length"] for row in rows})
    drawn = []
    for size, (title, axis) in SIZES.items():
        lines = {
            name: [max(row[size], 1) for row in rows if row["program"] == name] for name in PROGRAMS
        }
        chart = line_chart(
            f"{title} against the length of the input",
            lengths,
            lines,
            "tokens",
            logarithmic=size != "layers",
            values=axis,
        )
        path = folder / f"{size}.svg"
        path.write_text(as_file(chart), encoding="utf-8")
        drawn.append(path)
    return drawn


def main() -> int:
    """Compile, draw, and print a table or (``--json``) one JSON object; 1 if a size shrinks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lengths", default="5,10,15,20,30,40,50", help="Tokens.")
    parser.add_argument("--charts", type=Path, default=Path("build/sizes"), help="Folder for charts.")
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")
    arguments = parser.parse_args()
    rows = measure([int(n) for n in arguments.lengths.split(",")])
    shrinks, drawn = list(shrinking(rows)), draw(rows, arguments.charts)
    if arguments.json:
        result = {"benchmark": "size by length", "machine": machine(), "rows": rows}
        print(json.dumps(result | {"shrinks": shrinks, "charts": list(map(str, drawn))}))
        return bool(shrinks)
    print(f"Size against length ({machine()})")
    titles = ("length", *SIZES, "parameters", "error", "CPU s")
    print(f"{'':16} " + " ".join(f"{title:>10}" for title in titles))
    for row in rows:
        numbers = [row["length"], *(row[size] for size in SIZES), row["parameters"]]
        cells = [*map(str, numbers), f"{row['error_bound']:.1e}", f"{row['cpu_seconds']:.2f}"]
        print(f"{row['program']:16} " + " ".join(f"{cell:>10}" for cell in cells))
    print(*(f"shrinks: {line}" for line in shrinks), *drawn, sep="\n")
    return bool(shrinks)


if __name__ == "__main__":
    sys.exit(main())
