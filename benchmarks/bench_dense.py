"""How slow the meaning is: dense execution of the matrix product against NumPy's own, in one run.

Dense execution is the specification: one boolean matrix per head, every head run. The ratio says
what a faster executor of the same program has to gain. Both sides compute the same product of two
n×n float64 matrices; times are the least of several repeats in one process.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.cases import matmul


def best_of(repeats: int, work: Callable[[], object]) -> float:
    """The least wall time of several runs, in seconds."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def measure(sizes: list[int], repeats: int) -> list[dict[str, float]]:
    """One row per size."""
    random, rows = np.random.default_rng(0), []
    for n in sizes:
        a, b = random.normal(size=(2, n, n))
        program, tokens = matmul(n, n, n), np.concatenate([a.ravel(), b.ravel()])
        found = np.asarray(program(tokens), dtype=float)[: n * n].reshape(n, n)
        dense = best_of(repeats, lambda program=program, tokens=tokens: program(tokens))  # type: ignore[misc]
        direct = best_of(max(repeats, 50), lambda a=a, b=b: a @ b)  # type: ignore[misc]
        rows.append(
            {
                "n": n,
                "tokens": len(tokens),
                "heads": sum(program.architecture.heads),
                "dense_seconds": dense,
                "numpy_seconds": direct,
                "ratio": dense / direct,
                "max_error": float(np.abs(found - a @ b).max()),
            }
        )
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="2,4,8,12,16", help="orders n, with commas")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    rows = measure([int(n) for n in arguments.sizes.split(",")], arguments.repeats)
    machine = f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}"
    if arguments.json:
        print(json.dumps({"benchmark": "dense", "machine": machine, "rows": rows}))
        return
    print(f"Dense execution of the paper's matrix product against A @ B ({machine})")
    columns = ("dense s", "NumPy s", "ratio")
    print(
        f"{'n':>4} {'tokens':>7} {'heads':>6} " + " ".join(f"{c:>10}" for c in columns) + "     error"
    )
    for row in rows:
        print(
            f"{row['n']:>4} {row['tokens']:>7} {row['heads']:>6} {row['dense_seconds']:>10.5f} "
            f"{row['numpy_seconds']:>10.2e} {row['ratio']:>10.0f} {row['max_error']:>9.1e}"
        )


if __name__ == "__main__":
    main()
