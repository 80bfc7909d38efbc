"""Compare certified error bounds of U(3, 3, 3), compiled to hidden units, with the worst errors found.

The inputs are random numbers, random signs, and random entries −c, 0 and c with c from 0.9 to 1. A
random search from the worst of these inputs follows.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.simulators import UniversalSimulator

Batch = NDArray[np.float64]


def differences(model: Any, exact: Any, batch: Batch) -> Batch:
    """Return the largest difference between two models for each input, at the positions of T(X)."""
    inputs, entries = batch.tolist(), slice(0, 9)
    apart = np.abs(np.array(model(inputs)) - np.array(exact(inputs)))
    return np.asarray(apart[:, entries].max(axis=1))


def adversarial(model: Any, exact: Any, count: int, draw: np.random.Generator) -> Iterator[Batch]:
    """Yield differences on batches of inputs: random and extreme ones, and a search from the worst."""
    size = exact.config.lengths[1]
    best, height = np.zeros(size), -1.0
    kinds: list[Callable[[int], Batch]] = [
        lambda n: draw.uniform(-1, 1, (n, size)),
        lambda n: draw.choice([-1.0, 1.0], (n, size)),
        lambda n: draw.choice([-1.0, 0.0, 1.0], (n, size)) * draw.uniform(0.9, 1, (n, 1)),
    ]
    step = 100
    for start in range(0, count - count // 3, step):
        batch = kinds[start // step % len(kinds)](step)
        result = differences(model, exact, batch)
        yield result
        if result.max() > height:
            best, height = batch[result.argmax()], float(result.max())
    for _ in range(0, count // 3, step):
        moved = np.repeat(best[None], step, axis=0)
        changed = draw.random((step, size)) < draw.choice([0.04, 0.15, 0.5])
        reach = draw.choice([2.0, 0.3, 0.02])
        moved = np.clip(moved + changed * draw.uniform(-reach, reach, (step, size)), -1, 1)
        result = differences(model, exact, moved)
        yield result
        if result.max() > height:
            best, height = moved[result.argmax()], float(result.max())


def networks(recipe: str, kind: str, tolerance: float) -> tuple[Any, Any]:
    """Compile U(3, 3, 3) to hidden units, and to symbolic feed-forwards, which are the reference."""
    simulator = UniversalSimulator(3, 3, 3)
    model = simulator.compile(recipe, feed_forward=kind, tolerance=tolerance, ranges=(-1, 1))
    return model, simulator.compile(recipe, feed_forward="exact")


def measure(recipe: str, kind: str, tolerance: float, count: int) -> dict[str, Any]:
    """Return a row with the error bound of a network, and its worst error on about ``count`` inputs."""
    began = time.perf_counter()
    model, exact = networks(recipe, kind, tolerance)
    seconds = time.perf_counter() - began
    worst, tried = 0.0, 0
    for result in adversarial(model, exact, count, np.random.default_rng(0)):
        worst = max(worst, float(result.max()))
        tried += len(result)
    bound = float(model.config.report["error_bound"])
    units = [
        0 if l.feed_forward is None else l.feed_forward.W_in.shape[1] for l in model.weights.layers
    ]
    return {
        "recipe": recipe,
        "feed_forward": kind,
        "tolerance": tolerance,
        "bound": bound,
        "inputs": tried,
        "worst": worst,
        "ratio": bound / worst if worst else None,
        "holds": worst <= bound <= tolerance,
        "units": units,
        "compile_seconds": seconds,
    }


def _ratio(row: dict[str, Any]) -> str:
    return "no error was found" if row["ratio"] is None else f"bound / worst {row['ratio']:.1f}"


def _said(row: dict[str, Any]) -> str:
    return (
        f"U(3, 3, 3), {row['recipe']}, {row['feed_forward']}: bound {row['bound']:.3g}, "
        f"worst of {row['inputs']:,} inputs {row['worst']:.3g} "
        f"({_ratio(row)}), {sum(row['units']):,} units"
        + ("" if row["holds"] else "  THE BOUND DOES NOT HOLD")
    )


def main() -> int:
    """Measure the networks, print the rows, and return 1 if a bound is wrong or above the tolerance."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--recipes", default="fetch,native")
    parser.add_argument("--kinds", default="relu,gelu,glu")
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    rows = []
    for recipe in arguments.recipes.split(","):
        for kind in arguments.kinds.split(","):
            rows.append(measure(recipe, kind, arguments.tolerance, arguments.inputs))
            if not arguments.json:
                print(_said(rows[-1]), flush=True)  # A row can take minutes.
    if arguments.json:
        print(json.dumps({"benchmark": "bounds", "rows": rows}))
    return 0 if all(row["holds"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
