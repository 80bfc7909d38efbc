"""Compare dense execution of the paper's matrix product with NumPy's product in one process.

Dense execution is the specification: it builds a boolean matrix for each head and runs every head. Both
sides compute the same product of two n×n float64 matrices. Times are the minimum of several repeats.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.cases import matmul

from benchmarks.harness import Row, least, main


def measure(sizes: list[int], repeats: int) -> list[Row]:
    """Measure the product of two n×n matrices for each size n, and return one row for each."""
    random, rows = np.random.default_rng(0), []
    for n in sizes:
        a, b = random.normal(size=(2, n, n))
        program, tokens = matmul(n, n, n), np.concatenate([a.ravel(), b.ravel()])
        result = np.asarray(program(tokens), dtype=float)[: n * n].reshape(n, n)
        dense = least(lambda program=program, tokens=tokens: program(tokens), repeats)  # type: ignore[misc]
        direct = least(lambda a=a, b=b: a @ b, max(repeats, 50))  # type: ignore[misc]
        rows.append(
            {
                "n": n,
                "tokens": len(tokens),
                "heads": sum(program.architecture.heads),
                "dense_seconds": dense,
                "numpy_seconds": direct,
                "ratio": dense / direct,
                "max_error": float(np.abs(result - a @ b).max()),
            }
        )
    return rows


def lines(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of a table with the times, their ratio and the error for each size."""
    columns = ("dense s", "NumPy s", "ratio")
    yield f"{'n':>4} {'tokens':>7} {'heads':>6} " + " ".join(f"{c:>10}" for c in columns) + "     error"
    for row in rows:
        yield (
            f"{row['n']:>4} {row['tokens']:>7} {row['heads']:>6} {row['dense_seconds']:>10.5f} "
            f"{row['numpy_seconds']:>10.2e} {row['ratio']:>10.0f} {row['max_error']:>9.1e}"
        )


if __name__ == "__main__":
    title = "Dense execution of the paper's matrix product against A @ B"
    main("dense", __doc__ or "", "2,4,8,12,16", measure, title, lines)
