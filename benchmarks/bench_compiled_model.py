"""Compare ``model(inputs)`` of a compiled network with the forward pass of its export to PyTorch.

The inputs are lists of lists and a NumPy array. The PyTorch module receives token ids that were
computed before. The exit code is 1 if a call takes more than 1.5 times as long as the forward pass. The
extra ``torch`` is required.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import torch
from tests.cases import histogram, reverse, sort

import locum
from benchmarks.harness import Row, interleave, machine, ratio

LENGTH = 8
LIMIT = 1.5
PROGRAMS = {
    "reverse of letters": (reverse, "abcd"),
    "reverse of integers": (reverse, range(8)),
    "histogram of letters": (histogram, "abcd"),
    "sorting integers": (sort(locum.tokens, locum.tokens), range(4)),
}


def measure(name: str, attention: str, count: int, seconds: float) -> list[Row]:
    """Measure the time of one network on lists and on an array, relative to PyTorch."""
    program, vocabulary = PROGRAMS[name]
    model = locum.compile(program, length=LENGTH, vocabulary=vocabulary, attention=attention)
    draw = random.Random(0)
    rows = [draw.choices(list(vocabulary), k=LENGTH) for _ in range(count)]
    module, ids = model.to_torch(), torch.as_tensor(model.encode(rows))

    def forward() -> None:
        with torch.no_grad():
            module(ids)

    calls = {"lists": rows, "array": np.array(rows)}
    work: dict[str, Callable[[], object]] = {"torch": forward}
    work |= {form: functools.partial(model, inputs) for form, inputs in calls.items()}
    times = interleave(work, seconds, rounds=5, warm=1)
    return [
        {
            "program": name, "attention": attention, "inputs": count, "form": form,
            "model_ms": 1e3 * statistics.median(times[form]),
            "torch_ms": 1e3 * statistics.median(times["torch"]),
            "ratio": ratio(times[form], times["torch"])[0],
        }
        for form in calls
    ]  # fmt: skip


def main() -> int:
    """Measure all networks, print a table or one JSON object, and return 1 if a call is too slow."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each network")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    rows = [
        row
        for name in PROGRAMS
        for attention in ("hard", "softmax")
        for row in measure(name, attention, arguments.inputs, arguments.seconds)
    ]
    if arguments.json:
        host = machine(f"torch {torch.__version__}")
        print(json.dumps({"benchmark": "compiled_model", "machine": host, "rows": rows}))
    else:
        print(f"{arguments.inputs:,} inputs of {LENGTH} tokens: median times, and model over torch")
        for row in rows:
            print(
                f"{row['program']:22} {row['attention']:8} {row['form']:6} "
                f"{row['model_ms']:8.1f} ms {row['torch_ms']:8.1f} ms {row['ratio']:6.2f}"
            )
    return int(any(row["ratio"] > LIMIT for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
