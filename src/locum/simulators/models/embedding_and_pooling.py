"""One row for a text, by U, too: the mean over the tokens that count, and its scaling to length 1."""

from __future__ import annotations

from locum.constructions import Matrix, matmul, multiply, row_sums
from locum.language.python import sqrt, tokens, where
from locum.simulators.checking import choose, positive_integer
from locum.simulators.formula.layer import NamedStep
from locum.simulators.layout import Block, Layout
from locum.simulators.models.sentence import POOLINGS
from locum.simulators.simulator import Simulator


class Pooling(Simulator):
    """One row for a sequence: the mean of the rows that count (or the first), scaled to length 1.

    >>> import numpy as np
    >>> from locum.simulators.prepared import Prepared
    >>> X = np.array([[3.0, 0.0], [3.0, 8.0], [9.0, 9.0]])
    >>> Prepared(Pooling(3, 2), {}, X)(X, {"attention_mask": np.array([[1.0, 1.0, 0.0]])}).tolist()
    [[0.6, 0.8]]
    """

    def __init__(self, n: int, d: int, pooling: str = "mean", normalised: bool = True) -> None:
        """Take ``normalised``: whether the row is scaled to length 1."""
        choose(pooling, POOLINGS, "pooling")
        n, d = positive_integer(n, "n"), positive_integer(d, "d")
        layout = Layout([Block("X", n, d), Block("attention_mask", 1, n)])
        X, seen = (layout.view(tokens, name) for name in ("X", "attention_mask"))
        pooled = X.block(0, 0, 1, d)
        if pooling == "mean":
            total = matmul(seen, X, "fetch")
            pooled = _divided(total, row_sums(seen))
        steps, output = [NamedStep("pooled", pooled)], pooled
        if normalised:
            output = _divided(pooled, row_sums(multiply(pooled, pooled)), root=True)
        super().__init__(layout, output, [*steps, NamedStep("output", output)])


def _divided(row: Matrix, number: Matrix, root: bool = False) -> Matrix:
    """Return a 1×c matrix over the first entry of another, or over its root."""
    divisor = number.at(0, 0)
    safe = where(row.inside, sqrt(divisor) if root else divisor, 1)
    return row.derive(where(row.inside, row.sop / safe, 0), 1, row.columns, number)
