"""Multiply matrices with 2k − 1 heads in one layer; the entries are at positions of tokens of the
factors.

Entry (i, j) needs row i of A and column j of B, which are 2k numbers. At the position of one of these
numbers, that number is read without a head, and 2k − 1 heads read the others. Under the assumptions of
docs/head_counts.md, no single layer can use fewer heads. An entry at the position of A[i, s] or B[s, j]
multiplies its token with the other number. The entry then uses the pairs s + 1, s + 2, … modulo k. All
positions use the same heads, whether their token belongs to A or to B.

A matching of entries with tokens determines the position of each entry. For factors that do not
overlap, a matching exists if and only if k ≥ rc/(r + c), which is the paper's condition. In general,
the positions of the entries are not a :class:`Matrix` view, so a table lists them.

>>> from locum import tokens
>>> from locum.constructions.layout import concatenate
>>> product = own_token_product(*concatenate(tokens, (2, 2), (2, 2)))
>>> product.run([1, 2, 3, 4, 5, 6, 7, 8]).tolist(), product.sop.architecture.heads
([[19.0, 22.0], [43.0, 50.0]], [3])
>>> product.positions
((0, 1), (2, 3))
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from locum.constructions.bipartite import places_for_all
from locum.constructions.matmul import factors
from locum.constructions.matrix import Matrix
from locum.constructions.places import entries_as_numbers, token_arrays
from locum.constructions.sizes import number_of
from locum.errors import GraphError, InputError
from locum.rasp.handles import SOp
from locum.rasp.python import (
    aggregate,
    family,
    indices,
    lookup,
    minimum,
    select,
    sum_over,
    where,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Placed:
    """A matrix whose entries are at positions given by a table: ``positions[i][j]`` is the position of
    entry (i, j).
    """

    sop: SOp
    positions: tuple[tuple[int, ...], ...]
    #: Number of tokens of the inputs, and number of positions that inputs and results need.
    reads: int
    needs: int

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.positions)

    @property
    def columns(self) -> int:
        """Number of columns."""
        return len(self.positions[0])

    def run(
        self, tokens: Sequence[Any] | NDArray[Any], *, executor: str = "dense", domain: str = "float"
    ) -> Any:
        """Run the program on tokens and return the matrix as an array.

        The tokens are numbers or arrays, in the order of the sequence.
        """
        from locum.execution import run_parts

        parts = token_arrays(tokens)
        count = sum(math.prod(part.shape) for part in parts)
        if count < self.reads:
            raise InputError(
                f"expected at least {self.reads} tokens for the inputs of this "
                f"{self.rows}×{self.columns} "
                f"product, got {count}"
            )
        length = max(count, self.needs)
        values = run_parts(self.sop.node, parts, length, executor=executor, domain=domain)
        entries = values[list(itertools.chain(*self.positions))].reshape(self.rows, self.columns)
        return entries_as_numbers(entries, domain)

    def compact(self) -> Matrix:
        """Return the matrix as a row-major view from position 0.

        The view needs one head in an additional layer.
        """
        count = self.rows * self.columns
        place = _by_position(dict(enumerate(itertools.chain(*self.positions))), count, 0)
        value = where(indices < count, aggregate(select(indices, place, "=="), self.sop), 0)
        return Matrix(value, self.rows, self.columns, reads=self.reads, needs=max(self.needs, count))


def own_token_product(a: Matrix, b: Matrix) -> Placed:
    """Return the product a · b, computed with 2k − 1 heads in one layer.

    For factors that do not overlap, k ≥ rc/(r + c) is required. Both factors are views of one s-op.
    Positions without an entry compute a number that is not used.
    """
    a, b = factors(a, b)
    if a.sop is not b.sop:
        raise GraphError(
            "own_token_product: expected two views of one s-op, got views of different s-ops; try "
            "matmul(a, b)"
        )
    r, k, c = a.places.rows, a.places.columns, b.places.columns
    tokens_of = {
        (l, m): [_at(a, l, t) for t in range(k)] + [_at(b, t, m) for t in range(k)]
        for l, m in itertools.product(range(r), range(c))
    }
    place_of = places_for_all(tokens_of)
    if place_of is None:
        raise GraphError(
            f"own_token_product: expected disjoint r×k and k×c matrices with k ≥ rc/(r + c), here k ≥ "
            f"{r * c / (r + c):.4g}, got {r}×{k} and {k}×{c} matrices that overlap or are too small; "
            'try matmul(a, b, "fetch")'
        )
    row, column, inner, other = ({} for _ in range(4))
    for entry, place in place_of.items():
        own = tokens_of[entry].index(place)
        row[place], column[place] = entry
        inner[place], other[place] = own % k, tokens_of[entry][(own + k) % (2 * k)]
    end = 1 + max(place_of.values())
    i, j, s = (_by_position(table, end, 0) for table in (row, column, inner))
    partner = select(indices, _by_position(other, end, _at(b, 0, 0)), "==")
    product = a.sop * aggregate(partner, a.sop)
    if k > 1:
        u = family(k - 1)
        t = (s + u + 1) % k
        product = product + sum_over(u, a.at(i, t) * b.at(t, j))
    positions = tuple(tuple(place_of[l, m] for m in range(c)) for l in range(r))
    reads, needs = max(a.reads, b.reads), max(a.needs, b.needs)
    return Placed(product, positions, reads, needs)


def _at(m: Matrix, i: int, j: int) -> int:
    """Return the position of entry (i, j) of ``m`` as a number."""
    return number_of(m.position(i, j), "a position")


def _by_position(table: dict[int, int], end: int, otherwise: int) -> SOp:
    """Return an s-op whose value at each position is given by a table.

    The value is ``otherwise`` at positions that are not in the table, and at all positions from ``end``
    on.
    """
    everywhere = {place: table.get(place, otherwise) for place in range(end)} | {end: otherwise}
    return lookup(minimum(indices, end), everywhere)
