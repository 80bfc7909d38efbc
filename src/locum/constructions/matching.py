"""Build Match₂ and Match₃ (introduction, Listing 6).

Match₂ and Match₃ decide whether a token belongs to a pair, or to a triple, whose sum is 0 modulo p. The
paper's listing of Match₂ misses every token that is a multiple of p (erratum E3). One attention layer
with one head decides pairs. Three constructions decide triples.

>>> from locum import tokens
>>> match2(tokens, 5)([1, 5, 4, 2])
[1, 1, 1, 0]
>>> match3(Matrix(tokens, 1, 4), 11).run([1, 2, 8, 3]).tolist()
[[1.0, 1.0, 1.0, 0.0]]
"""

from __future__ import annotations

from locum.constructions.matrix import Matrix
from locum.constructions.sizes import number_of
from locum.errors import GraphError
from locum.rasp.handles import SOp
from locum.rasp.python import aggregate, family, indicator, indices, select, sum_over, where
from locum.settings import require_integer


def match2(sequence: SOp, p: int) -> SOp:
    """Return 1 at each token that sums with some token to a multiple of ``p``, otherwise 0, with one
    head.

    The two tokens may be the same token.
    """
    p = require_integer(p, "modulus", error=GraphError)
    partners = select(sequence % p, (p - sequence % p) % p, "==")
    return indicator(aggregate(partners, 1) > 0)


def match3(m: Matrix, p: int, form: str = "padded") -> Matrix:
    """Return 1 at each token that sums with two tokens to a multiple of ``p``, otherwise 0.

    ``m`` is a 1×n matrix, and the three tokens need not be different. ``form`` selects the
    construction:

    - ``padded`` uses n² positions, one per pair, and O(1) heads in three layers.
    - ``heads`` uses 2n heads and no padding.
    - ``tensor`` copies all tokens to every position with n heads in one layer, and tests all pairs
      elementwise.
    """
    p = require_integer(p, "modulus", error=GraphError)
    n = number_of(m.columns, "the number of tokens")
    if m.rows != 1:
        raise GraphError(f"match3: expected a sequence (a 1×n matrix), got a {m.shape_label} one")
    m = m.compact()
    if form == "padded":
        matches, room = _padded(m, n, p), n * n
    elif form == "heads":
        matches, room = _heads(m, n, p), n
    elif form == "tensor":
        matches, room = _tensor(m, n, p), n
    else:
        raise GraphError(f"match3: expected form='padded', 'heads' or 'tensor', got {form!r}")
    return m.derive(where(indices < n, indicator(matches), 0), 1, n, room=room)


def _padded(m: Matrix, n: int, p: int) -> SOp:
    """Decide triples from pairs; position i·n + j represents the pair (i, j)."""
    pair = m.at(0, indices // n) + m.at(0, indices % n)
    third = select(m.sop % p, (p - pair % p) % p, "==") & select(indices, n, "<")
    is_matched = indicator(aggregate(third, 1) > 0)
    mine = select(indices // n, indices, "==") & select(indices, n * n, "<")
    return aggregate(mine, is_matched) > 0


def _heads(m: Matrix, n: int, p: int) -> SOp:
    """Decide triples with n heads per layer: head j reads the second token, and a second layer finds
    the third token.
    """
    j = family(n)
    pair = m.sop + m.at(0, j)
    third = select(m.sop % p, (p - pair % p) % p, "==") & select(indices, n, "<")
    return sum_over(j, aggregate(third, 1)) > 0


def _tensor(m: Matrix, n: int, p: int) -> SOp:
    j, k = family(n), family(n)
    triple = m.sop + m.at(0, j) + m.at(0, k)
    return sum_over(j, k, indicator(triple % p == 0)) > 0
