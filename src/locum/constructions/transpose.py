"""Transpose matrices (Lemma transposition, Algorithm 1, Listing 1).

>>> from locum import length, tokens
>>> transpose(Matrix(tokens, 2, 3)).run([1, 2, 3, 4, 5, 6]).tolist()
[[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
>>> transpose(Matrix(tokens, 3, length // 3), recipe="paper").sop.architecture.heads
[1, 1]
"""

from __future__ import annotations

from locum.constructions.matrix import Matrix, as_matrix, coordinates
from locum.errors import GraphError
from locum.rasp.python import indices, where


def transpose(m: Matrix, recipe: str = "view") -> Matrix:
    """Return the transpose of a matrix: as a view, or with the paper's head that moves every entry.

    A view needs no head. In the paper's form, position p = i·r + j of the c×r result reads entry (j,
    i).
    """
    m = as_matrix(m, "transpose")
    if recipe == "view":
        return m.transpose(0, 1)
    if recipe == "paper":
        i, j = coordinates(m.rows)
        return m.derive(where(indices < m.size, m.at(j, i), 0), m.columns, m.rows)
    raise GraphError(f"transpose: expected the recipe view or paper, got {recipe!r}")
