"""Compare certified results of U with T(X) in arithmetic of 200 digits, on difficult inputs.

The inputs contain ties, scores that are almost tied, cancellation, and very large and small scores. For
every certified input, the enclosure must contain the true result, and the error of dense execution must
not exceed the certified bound. The true result is T(X) in Python's decimal arithmetic, which is
independent of Locum. The exit code is 1 if an enclosure does not contain the true result, or if an
error exceeds its bound. It is also 1 if the certification of an input fails for another reason than
overflow.
"""

from __future__ import annotations

import argparse
import decimal
import json
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import ExecutionError
from locum.proofs import certify
from locum.simulators import Attention, UniversalSimulator

Matrix = NDArray[np.float64]
Draw = np.random.Generator
#: Orders of U, each with its share of the inputs.
ORDERS = {(2, 2, 2): 0.3, (3, 2, 2): 0.3, (4, 3, 2): 0.3, (8, 8, 8): 0.1}
DIGITS = 200


def ties(draw: Draw, X: Matrix, A: Matrix, V: Matrix) -> None:
    """Copy the first row of X to random rows, so that keys have equal scores."""
    X[draw.integers(len(X), size=len(X))] = X[0]


def near_ties(draw: Draw, X: Matrix, A: Matrix, V: Matrix) -> None:
    """Make all rows of X equal up to a few units in the last place."""
    X[:] = X[0] * (1 + draw.integers(-2, 3, size=X.shape) * 2.0**-52)


def cancellation(draw: Draw, X: Matrix, A: Matrix, V: Matrix) -> None:
    """Make large values cancel, with rows x and −x and with values of about 10¹²."""
    X[1::2] = -X[: len(X) // 2 * 2 : 2]
    A *= 1e-9
    V *= 1e12


def huge_scores(draw: Draw, X: Matrix, A: Matrix, V: Matrix) -> None:
    """Multiply A so that the scores are about 10², 10⁵ or 10¹²."""
    A *= 10.0 ** draw.choice([2, 5, 12])


def tiny_scores(draw: Draw, X: Matrix, A: Matrix, V: Matrix) -> None:
    """Multiply A so that the scores are between about 10⁻¹⁵⁰ and 10⁻⁸."""
    A *= 10.0 ** draw.choice([-8, -20, -150])


def overflow(draw: Draw, X: Matrix, A: Matrix, V: Matrix) -> None:
    """Make the scores exceed the largest float, so that certification must fail."""
    A *= 1e200
    X *= 1e60


def ordinary(draw: Draw, X: Matrix, A: Matrix, V: Matrix) -> None:
    """Leave the normally distributed matrices X, A and V unchanged."""


KINDS: Sequence[Callable[[Draw, Matrix, Matrix, Matrix], None]] = (
    ordinary, ties, near_ties, cancellation, huge_scores, tiny_scores, overflow,
)  # fmt: skip


def true_result(X: Matrix, A: Matrix, V: Matrix) -> list[Decimal]:
    """Return the entries of T(X) = σ(XAXᵀ)XV in decimal arithmetic, row by row."""
    x, a, v = ([[Decimal(float(e)) for e in row] for row in m] for m in (X, A, V))

    def product(p: list[list[Decimal]], q: list[list[Decimal]]) -> list[list[Decimal]]:
        columns = list(zip(*q, strict=True))
        return [[sum(map(Decimal.__mul__, row, column), Decimal(0)) for column in columns] for row in p]

    scores = product(product(x, a), [list(column) for column in zip(*x, strict=True)])
    weights = []
    for row in scores:
        powers = [(score - max(row)).exp() for score in row]
        weights.append([power / sum(powers) for power in powers])
    return [entry for row in product(weights, product(x, v)) for entry in row]


def measure(order: tuple[int, int, int], count: int, draw: Draw) -> list[dict[str, Any]]:
    """Certify ``count`` inputs of one order, and return a row for each kind of input."""
    n, d, d_v = order
    U = UniversalSimulator(n, d, d_v)
    rows = {
        kind.__name__: {
            "order": list(order), "kind": kind.__name__, "inputs": 0, "refused": 0, "overflow": 0,
            "misses": 0, "exceeded": 0, "certified": 0.0, "observed": 0.0,
        }
        for kind in KINDS
    }  # fmt: skip
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        row: dict[str, Any] = rows[kind.__name__]
        X, A, V = (draw.normal(size=shape) for shape in ((n, d), (d, d), (d, d_v)))
        kind(draw, X, A, V)
        row["inputs"] += 1
        try:
            result = certify(U, Attention(A, V), X)
        except ExecutionError as error:
            is_overflow = "overflow" in str(error) or "too large" in str(error)
            row["overflow" if is_overflow else "refused"] += 1
            continue
        bounds = zip(result.lower.ravel(), true_result(X, A, V), result.upper.ravel(), strict=True)
        row["misses"] += any(not Decimal(float(a)) <= x <= Decimal(float(b)) for a, x, b in bounds)
        seen = result.seen(U(Attention(A, V), X, executor="dense"))
        row["exceeded"] += seen > result.error
        row["certified"] = max(row["certified"], result.error)
        row["observed"] = max(row["observed"], seen)
    return list(rows.values())


def main() -> int:
    """Certify the inputs of every order, and print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=200, help="total number of inputs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    context = decimal.getcontext()
    context.prec, context.Emax, context.Emin = DIGITS, decimal.MAX_EMAX, decimal.MIN_EMIN
    draw = np.random.default_rng(arguments.seed)
    rows = [
        row
        for order, part in ORDERS.items()
        for row in measure(order, round(arguments.inputs * part), draw)
    ]
    holds = not any(row["refused"] or row["misses"] or row["exceeded"] for row in rows)
    if arguments.json:
        print(json.dumps({"benchmark": "certify", "holds": holds, "rows": rows}))
        return 0 if holds else 1
    print(f"Certified results of U against {DIGITS} digits")
    for row in rows:
        ratio = f"{row['certified'] / row['observed']:8.0f}" if row["observed"] else "       –"
        print(
            f"{row['order']!s:12}{row['kind']:13}{row['inputs']:5} inputs, {row['misses']} misses, "
            f"{row['exceeded']} above the bound, {row['overflow']} overflow, {row['refused']} rejected"
            f"; certified {row['certified']:.1e}, seen {row['observed']:.1e}, ratio {ratio}"
        )
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
