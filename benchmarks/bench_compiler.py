"""Measure the compiler on Tracr's programs: CPU time, size, and correctness of the network.

For each program and maximum length, a row contains the smallest CPU time of several compilations and
the size of the network. It also contains the number of inputs of different lengths, including the
maximum, on which the network agrees with dense execution. Some of the inputs for brackets are balanced.
The networks have softmax heads and ReLU units, as in Tracr. A separate column contains the layers of
the network with symbolic feed-forwards. The last columns contain the sizes that were recorded for Tracr
with its defaults on another machine. Tracr's times include 3–6 s of XLA for each new shape, so they are
not compared.

The exit code is 1 if one of these claims does not hold:

- All outputs are right.
- The network has at most twice the layers of the network with symbolic feed-forwards.
- d_model is not larger than Tracr's recorded d_model.
- A compilation takes less than 0.5 s at length 20 and less than 1.5 s at length 50.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.tracr_programs import LIBRARY, draw, vocabulary_of

from benchmarks.harness import Row, least
from locum import SOp
from locum.networks import compiler
from locum.networks.transformer import CompiledTransformer

LENGTHS = (5, 10, 20, 50)
INPUTS = 20
#: Maximum CPU time of a compilation in seconds, by length.
SECONDS = {20: 0.5, 50: 1.5}

#: Tracr's networks: layers and heads, then d_model and the number of correct outputs (of 20 inputs)
#: at lengths 5, 10, 20 and 50. None marks a compilation that took more than 100 s or was not tried.
TRACR: dict[str, tuple[int, int, tuple[int | None, ...], tuple[int | None, ...]]] = {
    "length": (1, 1, (19, 29, 49, 109), (20, 9, 6, 2)),
    "length_numerical": (1, 1, (14, 19, 29, 59), (20, 6, 6, 1)),
    "reverse": (4, 1, (43, 73, 133, None), (20, 9, 6, None)),
    "hist": (1, 1, (19, 29, 49, 109), (20, 20, 19, 4)),
    "count_a": (1, 1, (19, 29, 49, 109), (20, 20, 19, 10)),
    "count_less_freq_2": (2, 1, (26, 41, 71, 161), (20, 20, 20, 20)),
    "frac_prevs_a": (2, 1, (14, 19, 29, 59), (20, 20, 20, 19)),
    "shift_by_1": (1, 1, (16, 21, 31, 61), (20, 20, 20, 20)),
    "detect_pattern_ab": (2, 1, (20, 25, 35, 65), (20, 20, 20, 20)),
    "detect_pattern_abc": (3, 2, (26, 31, 41, 71), (20, 20, 20, 20)),
    "sort_unique": (2, 1, (25, 45, 85, 205), (20, 20, 7, 1)),
    "sort": (3, 1, (43, 73, 133, 313), (20, 20, 7, 2)),
    "sort_freq": (5, 1, (66, 166, 516, None), (20, 20, 6, None)),
    "pair_balance": (2, 2, (17, 22, 32, 62), (20, 20, 20, 12)),
    "shuffle_dyck1": (6, 2, (38, 53, 83, None), (20, 20, 20, None)),
    "shuffle_dyck2": (8, 4, (55, 70, 100, None), (20, 20, 20, None)),
    "shuffle_dyck3": (9, 6, (70, 85, 115, None), (20, 19, 20, None)),
    "nary_sequencemap": (3, 1, (74, 129, 239, None), (20, 20, 20, None)),
}


def measure(names: list[str], lengths: list[int], repeats: int) -> list[Row]:
    """Compile each program for each length, and return one row of sizes and times for each."""
    return [_row(name, length, repeats) for name in names for length in lengths]


def _row(name: str, length: int, repeats: int) -> Row:
    program, vocabulary = LIBRARY[name](length), vocabulary_of(name, length)
    chance = random.Random(f"{name} {length}")
    inputs = []
    for i in range(INPUTS):
        size = length - i % 2 if i < 6 else chance.randrange(1, length + 1)
        inputs.append(draw(name, chance, vocabulary, size))
    options: dict[str, Any] = {"length": length, "vocabulary": vocabulary}
    exact = compiler.compile(program, feed_forward="exact", **options)
    model = compiler.compile(program, attention="softmax", **options)
    seconds = least(
        lambda: compiler.compile(program, attention="softmax", **options),
        repeats,
        clock=time.process_time,
    )
    row = {"program": name, "length": length, "cpu_seconds": seconds} | sizes(model)
    row["exact_layers"] = len(exact.weights.layers)
    row |= {"inputs": INPUTS, "agree": sum(_agrees(model, program, tokens) for tokens in inputs)}
    row["tracr"] = recorded(name, length)
    row["broken_claims"] = list(broken(row))
    return row


def sizes(model: CompiledTransformer) -> Row:
    """Return the layers, heads, widths and parameters of a network."""
    weights = model.weights
    arrays = [array for _, array in weights.named()]
    return {
        "layers": len(weights.layers),
        "heads": max(
            (len(layer.attention.kinds) for layer in weights.layers if layer.attention), default=0
        ),
        "d_model": weights.W_U.shape[0],
        "d_mlp": max(
            (layer.feed_forward.W_out.shape[0] for layer in weights.layers if layer.feed_forward),
            default=0,
        ),
        "parameters": sum(array.size for array in arrays),
        "nonzero": sum(int(np.count_nonzero(array)) for array in arrays),
    }


def _agrees(model: CompiledTransformer, program: SOp, inputs: Sequence[object]) -> bool:
    actual, expected = model(inputs), program(inputs)
    return len(actual) == len(expected) and all(
        f == w or (not isinstance(w, str) and abs(f - w) <= 1e-12)
        for f, w in zip(actual, expected, strict=True)
    )


def recorded(name: str, length: int) -> Row | None:
    """Return the recorded size of Tracr's network for a program and a length, or None."""
    layers, heads, widths, agree = TRACR[name]
    places = {5: 0, 10: 1, 20: 2, 50: 3}
    width = widths[places[length]] if length in places else None
    if width is None:
        return None
    return {"layers": layers, "heads": heads, "d_model": width, "agree": agree[places[length]]}


def broken(row: Row) -> Iterator[str]:
    """Yield the claims that do not hold for a row."""
    if row["agree"] < row["inputs"]:
        yield f"right on {row['agree']} of {row['inputs']} inputs only"
    if row["tracr"] and row["d_model"] > row["tracr"]["d_model"]:
        yield f"d_model {row['d_model']}, and Tracr's {row['tracr']['d_model']}"
    if row["layers"] > 2 * row["exact_layers"]:
        yield f"{row['layers']} layers, and exact {row['exact_layers']}"
    limit = SECONDS.get(row["length"])
    if limit is not None and row["cpu_seconds"] >= limit:
        yield f"compiled in {row['cpu_seconds']:.3f} s, not under {limit} s"


def lines(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of the table, with the recorded sizes of Tracr in the last columns."""
    yield (
        f"{'program':<19}{'n':>4}{'CPU s':>8}{'layers':>7}{'exact':>6}{'heads':>6}{'d_model':>8}"
        f"{'units':>6}{'weights':>9}{'not 0':>7}{'agree':>7}  | Tracr: layers heads d_model agree"
    )
    for row in rows:
        tracr = row["tracr"]
        theirs = "not recorded"
        if tracr:
            theirs = (
                f"{tracr['layers']:>6}{tracr['heads']:>6}{tracr['d_model']:>8}{tracr['agree']:>4}/20"
            )
        yield (
            f"{row['program']:<19}{row['length']:>4}{row['cpu_seconds']:>8.3f}{row['layers']:>7}"
            f"{row['exact_layers']:>6}{row['heads']:>6}{row['d_model']:>8}{row['d_mlp']:>6}{row['parameters']:>9}{row['nonzero']:>7}"
            f"{row['agree']:>4}/{row['inputs']}  |        {theirs}"
        )
        for claim in row["broken_claims"]:
            yield f"  does not hold: {claim}"


def main() -> int:
    """Measure the programs, print the table, and return 1 if any claim does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, LENGTHS)), help="lengths, with commas")
    parser.add_argument("--programs", default=",".join(LIBRARY), help="names, with commas")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    names = arguments.programs.split(",")
    unknown = [name for name in names if name not in LIBRARY]
    if unknown:
        parser.error(f"no program is called {unknown[0]!r}: there are {', '.join(LIBRARY)}")
    lengths = [int(size) for size in arguments.sizes.split(",")]
    rows = measure(names, lengths, arguments.repeats)
    holds = not any(row["broken_claims"] for row in rows)
    machine = f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}"
    if arguments.json:
        print(json.dumps({"benchmark": "compiler", "machine": machine, "holds": holds, "rows": rows}))
    else:
        print(f"Tracr's programs as weights ({machine}); Tracr as recorded on another machine")
        for line in lines(rows):
            print(line)
        print("All claims hold." if holds else "Some claims do not hold.")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
