"""The matrix product with 2k − 1 heads in one layer: every entry lies where one of its tokens is.

Entry (i, j) needs row i of A and column j of B, 2k numbers. If it lies at the position of one of them,
that one is read without a head, and 2k − 1 heads fetch the others; no single layer does with fewer
(docs/frugality.md). An entry that lies at A[i, s] or at B[s, j] multiplies its own token with the other
of the two, and then takes the pairs s + 1, s + 2, … modulo k. So every position uses the same heads,
and none has to know whether its own token is one of A or of B.

Which entry lies where is a matching of entries with tokens. There is one if and only if k ≥ rc/(r + c),
the paper's own condition. In general the places are not those of a :class:`Matrix` view but a table.

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
    """A matrix whose entries lie where a table says: ``positions[i][j]`` has entry (i, j)."""

    sop: SOp
    positions: tuple[tuple[int, ...], ...]
    #: Tokens that its inputs take up, and positions that these and the entries need.
    reads: int
    needs: int

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.positions)

    @property
    def columns(self) -> int:
        """How many columns it has."""
        return len(self.positions[0])

    def run(
        self, tokens: Sequence[Any] | NDArray[Any], *, executor: str = "dense", domain: str = "float"
    ) -> Any:
        """Run on these tokens, numbers or arrays one after another; return the matrix as an array."""
        from locum.execution import run_parts

        parts = token_arrays(tokens)
        count = sum(math.prod(part.shape) for part in parts)
        if count < self.reads:
            raise InputError(
                f"the sequence has {count} tokens, but the inputs of this "
                f"{self.rows}×{self.columns} product take up {self.reads}"
            )
        length = max(count, self.needs)
        values = run_parts(self.sop.node, parts, length, executor=executor, domain=domain)
        entries = values[list(itertools.chain(*self.positions))].reshape(self.rows, self.columns)
        return entries_as_numbers(entries, domain)

    def compact(self) -> Matrix:
        """Return the same as a view, with its entries from position 0 on: one head in a layer above."""
        count = self.rows * self.columns
        place = _by_position(dict(enumerate(itertools.chain(*self.positions))), count, 0)
        value = where(indices < count, aggregate(select(indices, place, "=="), self.sop), 0)
        return Matrix(value, self.rows, self.columns, reads=self.reads, needs=max(self.needs, count))


def own_token_product(a: Matrix, b: Matrix) -> Placed:
    """Multiply a · b by 2k − 1 heads in one layer, for k ≥ rc/(r + c).

    Both are views of one s-op. Positions that have no entry compute a number that nobody reads.
    """
    a, b = factors(a, b)
    if a.sop is not b.sop:
        raise GraphError(
            "own_token_product reads one of the numbers at its own position, so both matrices must be "
            "views of one s-op; matmul takes those of two"
        )
    r, k, c = a.places.rows, a.places.columns, b.places.columns
    tokens_of = {
        (l, m): [_at(a, l, t) for t in range(k)] + [_at(b, t, m) for t in range(k)]
        for l, m in itertools.product(range(r), range(c))
    }
    place_of = places_for_all(tokens_of)
    if place_of is None:
        raise GraphError(
            f"the {r * c} entries of a {r}×{k} matrix times a {k}×{c} one do not all find a place "
            f"at a token of their own: that takes k ≥ rc/(r + c), here {k} ≥ {r * c / (r + c):.4g}, "
            'and A and B apart from each other. matmul(a, b, "fetch") has one head more, no condition'
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
    """Return where entry (i, j) is."""
    return number_of(m.position(i, j), "a position")


def _by_position(table: dict[int, int], end: int, otherwise: int) -> SOp:
    """Return what a table has for a position.

    Another value at positions it lacks, and from ``end`` on.
    """
    everywhere = {place: table.get(place, otherwise) for place in range(end)} | {end: otherwise}
    return lookup(minimum(indices, end), everywhere)
