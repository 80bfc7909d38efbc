"""Compile programs whose networks are large or slow to compile: layers, d_model, units and seconds.

Examples of the programs are sums, predicates on pairs, widths of selectors of positions, and variances.
``--weiss``, and ``--interpbench`` with ``--tracr``, add programs from checkouts. Each compilation runs
in a process with a limit on CPU time, and its outputs are compared with dense execution. The exit code
is 1 if an output is wrong. To compare two versions of Locum, run the benchmark with each version.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.cases import sort

from benchmarks.harness import Row, machine
from benchmarks.limited_process import run_limited
from benchmarks.size_programs import interpbench, weiss
from locum import (
    SOp,
    aggregate,
    constant,
    full,
    indicator,
    indices,
    length,
    select,
    selector_width,
    tokens,
    where,
)
from locum.errors import ExecutionError
from locum.networks import compiler

SECONDS = 30
_INPUTS = 8


@dataclass(frozen=True)
class Large:
    """A program for inputs of up to a maximum length, and options of ``compile``."""

    name: str
    program: SOp | Callable[[], SOp]
    length: int
    vocabulary: tuple[Any, ...]
    options: Row = field(default_factory=dict)


_DIGITS = tuple(range(10))
_up_to_here = select(indices, indices, "<=")
_from_here = select(indices, indices, ">=")
_mean = aggregate(full, tokens)
_total = round(length * _mean)
_earlier = select(indices, indices, "<")
_equal = select(indices, indices, "==")
_positions = select(selector_width(_earlier | (_equal & _earlier)), indices, "==")
_by_ranks = sort(tokens, selector_width(select(tokens, tokens, "==")))
_grouped = selector_width(
    select(aggregate(select(tokens, tokens, "<="), indices + 1, 1), aggregate(full, tokens), "<=")
)
_opening = indicator(tokens == "(") - indicator(tokens == ")")
_depth = round(selector_width(_up_to_here) * aggregate(_up_to_here, _opening))
_counts: SOp = constant(0)
for _digit in range(1, 10):
    _counts = _counts + _digit * selector_width(select(tokens, _digit, "=="))


def _pairs(n: int, *, counted: bool) -> SOp:
    """Count, or average, the equal tokens up to each position, by a predicate on pairs."""
    code = tokens * 100 + indices
    values = [100 * token + place for token in range(3) for place in range(n)]
    selected = select(
        code,
        code,
        lambda k, q: k // 100 == q // 100 and k % 100 <= q % 100,
        over=[values, values],
    )
    return selector_width(selected) if counted else aggregate(selected, tokens)


def programs() -> Iterator[Large]:
    """Yield the programs that are defined here, which require no checkout."""
    single, soft = {"dtype": "float32"}, {"attention": "softmax"}
    for n in (10, 30, 40, 50):
        for dtype in ("float64", "float32"):
            yield Large("sum of digits", _total, n, _DIGITS, soft | {"dtype": dtype})
    for n in (40, 50):
        yield Large("length * mean", length * _mean, n, _DIGITS)
    yield Large("sum as counts", _counts, 50, _DIGITS)
    for n in (3, 4, 8):
        counts, means = (lambda n=n: _pairs(n, counted=True)), (lambda n=n: _pairs(n, counted=False))
        yield Large("width of a predicate on pairs", counts, n, (0, 1, 2), soft)
        yield Large("mean over a predicate on pairs", means, n, (0, 1, 2), soft)
    yield Large("width of positions", selector_width(_up_to_here), 8, ("(", ")"), soft)
    yield Large("depth of brackets", _depth, 8, ("(", ")"), soft)
    for n in (5, 10, 15, 20, 30):
        yield Large("variance", aggregate(full, (tokens - _mean) ** 2), n, _DIGITS)
    for n in (10, 30):
        yield Large("above the mean", tokens > _mean, n, _DIGITS)
    for n in (5, 10):
        halves = aggregate(_up_to_here, tokens) == aggregate(_from_here, tokens)
        yield Large("equal means", halves, n, _DIGITS)
    for n in (10, 12, 16, 20):
        yield Large("width of means", _grouped, n, (-3, -1, 0, 2, 5))
    for n in (10, 30, 50):
        yield Large("sort by frequency", _by_ranks, n, tuple("abc"))
    yield Large("sort by frequency", _by_ranks, 50, tuple("abc"), single)
    yield Large("sort by frequency", _by_ranks, 50, tuple("abc"), single | soft)
    positions = where(aggregate(_positions, tokens) == "a", 1, 0)
    yield Large("positions alone", positions, 20, tuple("ab"), single)


def from_checkouts(arguments: argparse.Namespace) -> Iterator[Large]:
    """Yield programs of Weiss and InterpBench from the given checkouts."""
    if arguments.weiss:
        cases = {case.name: case for case in weiss(arguments.weiss)}
        frequencies = cases["sort_by_most_freq"].make(0)
        for n in (8, 12, 14, 16):
            yield Large("Weiss's sort_by_most_freq", frequencies, n, tuple("abc"))
        addition = cases["long_addition"]
        for n in (8, 12):
            yield Large("Weiss's long_addition", addition.make(0), n, addition.vocabulary)
    if arguments.interpbench and arguments.tracr:
        found = {case.name: case for case in interpbench(arguments.interpbench, arguments.tracr)}
        unique = found["21"]
        for n in (5, 10, 20):
            soft = {"attention": "softmax"}
            made = lambda n=n: unique.make(n)  # noqa: E731
            yield Large("InterpBench 21, unique tokens", made, n, unique.vocabulary, soft)


def measure(large: Large) -> Row:
    """Compile a program; return the size of the network, and the number of correct outputs."""
    program = large.program if isinstance(large.program, SOp) else large.program()
    model = compiler.compile(program, length=large.length, vocabulary=large.vocabulary, **large.options)
    feeds = [layer.feed_forward for layer in model.weights.layers]
    chance, right, compared = random.Random(large.name), 0, 0
    for number in range(_INPUTS):
        size = (1, large.length)[number] if number < 2 else chance.randrange(1, large.length + 1)
        inputs = chance.choices(large.vocabulary, k=size)
        try:
            expected = program(inputs)
        except ExecutionError:
            continue
        compared += 1
        right += all(
            a == e or (not isinstance(e, str) and abs(a - e) <= model.error_bound)
            for a, e in zip(model(inputs), expected, strict=True)
        )
    return {
        "layers": model.architecture.layers,
        "d_model": model.architecture.d_model,
        "d_mlp": model.architecture.d_mlp,
        "units": sum(feed.W_out.shape[0] for feed in feeds if feed is not None),
        "error_bound": model.error_bound,
        "inputs": compared,
        "right": right,
    }


def main() -> int:
    """Measure the programs, and print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weiss", type=Path, help="checkout of tech-srl/RASP")
    parser.add_argument("--interpbench", type=Path, help="checkout of FlyingPumba/InterpBench")
    parser.add_argument("--tracr", type=Path, help="checkout of google-deepmind/tracr")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    rows = []
    for large in [*programs(), *from_checkouts(arguments)]:
        row: Row = {"program": large.name, "length": large.length, "options": large.options}
        rows.append(row | run_limited(lambda large=large: measure(large), SECONDS))  # type: ignore[misc]
    if arguments.json:
        print(json.dumps({"benchmark": "large_networks", "machine": machine(), "rows": rows}))
    else:
        print(f"Programs whose networks were large ({machine()})")
        for row in rows:
            options = ", ".join(f"{name}={value}" for name, value in row["options"].items())
            head = f"{row['program']:<32}{row['length']:>4}  {options:<34}"
            if "layers" not in row:
                print(f"{head}{row['reason']}")
                continue
            sizes = f"{row['layers']:>3} layers, d_model {row['d_model']:>5}, units {row['units']:>6}"
            cost = f"{row['cpu_seconds']:>6.2f} s, {row['peak_mb']:>5} MB"
            print(f"{head}{sizes}, {cost}, right {row['right']}/{row['inputs']}")
    return 1 if any(row.get("right") != row.get("inputs") for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
