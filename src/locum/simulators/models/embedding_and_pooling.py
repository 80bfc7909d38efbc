"""What stands before and after the layers of an encoder, by U, too: embeddings, a last norm, pooling.

A table of embeddings is looked up by the host; adding up words, positions and types, the norm behind
the sum, the mean over the tokens that count and its scaling to length 1 are programs like all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from locum.constructions import Matrix, add, layer_norm, matmul, multiply, row_sums
from locum.language.python import sqrt, tokens, where
from locum.simulators.checking import choose, positive_integer
from locum.simulators.formula.layer import NamedStep
from locum.simulators.layout import Block, Layout
from locum.simulators.models.sentence import POOLINGS
from locum.simulators.simulator import Simulator

#: The blocks of a norm.
NORM = ("gain", "bias", "epsilon")


class NormedSum(Simulator):
    """LN(X + further matrices of its shape): the embeddings of a BERT; without any, a norm alone.

    >>> import numpy as np
    >>> from locum.simulators.prepared import Prepared
    >>> U, one = NormedSum(1, 2, ["positions"]), np.array([[0.0, 1.0]])
    >>> T = {"positions": [one], "gain": [np.ones((1, 2))], "bias": [np.zeros((1, 2))]}
    >>> T["epsilon"] = [np.full((1, 1), 1e-5)]
    >>> Prepared(U, T, one)(one).round(3).tolist()
    [[-1.0, 1.0]]
    """

    def __init__(self, n: int, d: int, addends: Sequence[str] = ()) -> None:
        """Take ``addends``, the names of what is added to X."""
        n, d = positive_integer(n, "n"), positive_integer(d, "d")
        blocks = [Block(name, n, d) for name in ("X", *addends)]
        layout = Layout([*blocks, Block("gain", 1, d), Block("bias", 1, d), Block("epsilon", 1, 1)])
        total = layout.view(tokens, "X")
        for name in addends:
            total = add(total, layout.view(tokens, name))
        output = layer_norm(total, *(layout.view(tokens, name) for name in NORM))
        super().__init__(layout, output, [NamedStep("sum", total), NamedStep("output", output)])


@lru_cache(maxsize=64)
def normed_sum(n: int, d: int) -> NormedSum:
    """Return the program of a norm alone, built once."""
    return NormedSum(n, d)


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
