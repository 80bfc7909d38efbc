"""k-PARITY: the parity of k chosen bits, in one attention layer.

>>> from understudy import tokens
>>> k_parity(tokens, (0, 2, 3))([1, 1, 1, 0])
[0, 0, 0, 0]
"""

from __future__ import annotations

from collections.abc import Sequence

from understudy.errors import GraphError
from understudy.language.handles import SOp
from understudy.language.python import aggregate, indices, maximum, member, select


def k_parity(bits: SOp, chosen: Sequence[int], heads: str = "one", wave: bool = False) -> SOp:
    """Σ of the chosen bits modulo 2, everywhere.

    ``heads="one"`` averages them with one head; ``"each"`` fetches each with a head of its own, as the
    construction of k trainable heads does. ``wave`` takes the parity by ReLUs alone, as a feed-forward
    would: the triangle wave s + Σᵢ 2(−1)ⁱ relu(s − i).
    """
    places = tuple(chosen)
    if not places or len(set(places)) < len(places) or any(type(p) is not int or p < 0 for p in places):
        raise GraphError(f"k_parity needs distinct positions from 0 on, but got {places!r}")
    if heads == "one":
        ones: SOp = len(places) * aggregate(select(member(indices, places), True, "=="), bits)
    elif heads == "each":
        fetched = [aggregate(select(indices, place, "=="), bits) for place in places]
        ones = fetched[0]
        for bit in fetched[1:]:
            ones = ones + bit
    else:
        raise GraphError(f"k_parity has heads one or each, not {heads!r}")
    ones = round(ones)
    if not wave:
        return ones % 2
    parity = ones
    for i in range(1, len(places)):
        parity = parity + (-2 if i % 2 else 2) * maximum(ones - i, 0)
    return parity
