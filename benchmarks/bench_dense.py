"""How slow the meaning is: dense execution of the matrix product against NumPy's own, in one run.

Dense execution is the specification: one boolean matrix per head, every head run. The ratio says
what a faster executor of the same program has to gain. Both sides compute the same product of two
n×n float64 matrices; times are the least of several repeats in one process.
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
    """One row per size."""
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
    """The table."""
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
