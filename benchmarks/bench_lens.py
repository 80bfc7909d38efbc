"""Run everyday programs in TransformerLens, and count wrong outputs.

Each program of ``locum.rasp.programs`` is compiled for twelve tokens with softmax heads and ReLU units,
in float64 and in float32. The network is loaded into TransformerLens and run on 200 random inputs. For
``palindrome`` and ``dyck2``, every second input is a palindrome or balanced. The exit code is 1 if an
output is wrong, or if a network has more than twice the layers of the network with symbolic
feed-forwards. The extra ``lens`` is required.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.old.compiler.test_everyday import LENGTH, inputs

import locum
from benchmarks.harness import Row
from locum.rasp.programs import EVERYDAY, load_everyday

DTYPES = ("float64", "float32")


def measure(name: str, dtype: str, count: int) -> Row:
    """Compile one program, run its network in TransformerLens, and return a row."""
    recipe = load_everyday(name)
    options: dict[str, Any] = {"length": LENGTH, "vocabulary": recipe.vocabulary}
    exact = locum.compile(recipe.program, feed_forward="exact", **options).architecture
    began = time.process_time()
    model = locum.compile(recipe.program, attention="softmax", dtype=dtype, **options)
    seconds = time.process_time() - began
    lens, wrong = model.to_transformer_lens(), 0
    tokens = sorted(inputs(name, recipe, count), key=len)
    for _, group in itertools.groupby(tokens, key=len):
        batch = list(group)
        logits = lens(model.transformer_lens_inputs(batch)).detach().numpy()
        answers = model.decode(logits, batch)
        wrong += sum(a != recipe.program(x) for a, x in zip(answers, batch, strict=True))
    size = model.architecture
    return {
        "program": name, "dtype": dtype, "layers": size.layers, "exact_layers": exact.layers,
        "d_model": size.d_model, "units": size.d_mlp, "inputs": len(tokens), "wrong": wrong,
        "error_bound": model.error_bound, "cpu_seconds": seconds,
    }  # fmt: skip


def main() -> int:
    """Measure all programs, print the table, and return 1 if any claim does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=200)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    try:
        versions = {name: importlib.metadata.version(name) for name in ("transformer-lens", "torch")}
    except importlib.metadata.PackageNotFoundError as error:
        print(f"not measured: {error.name} is not installed; try pip install 'locum[torch,lens]'")
        return 0
    versions["Python"] = platform.python_version()
    rows = [measure(name, dtype, arguments.inputs) for name in EVERYDAY for dtype in DTYPES]
    holds = not any(row["wrong"] or row["layers"] > 2 * row["exact_layers"] for row in rows)
    if arguments.json:
        print(json.dumps({"benchmark": "lens", "versions": versions, "holds": holds, "rows": rows}))
        return 0 if holds else 1
    print("inside TransformerLens:", ", ".join(f"{name} {result}" for name, result in versions.items()))
    for row in rows:
        print(
            f"{row['program']:<16}{row['dtype']:<9}{row['layers']:>3} layers"
            f" (exact {row['exact_layers']}){row['d_model']:>5} wide{row['units']:>6} units"
            f"  {row['wrong']} wrong of {row['inputs']}{row['cpu_seconds']:>7.2f} s"
        )
    print("All claims hold." if holds else "Some claims do not hold.")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
