"""Compute the parity of k chosen bits in one attention layer (k-PARITY).

>>> from locum import tokens
>>> k_parity(tokens, (0, 2, 3))([1, 1, 1, 0])
[0, 0, 0, 0]
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

from locum.errors import GraphError
from locum.rasp.handles import SOp
from locum.rasp.python import aggregate, indices, maximum, member, select, where


def k_parity(bits: SOp, chosen: Sequence[int], heads: str = "one", wave: bool = False) -> SOp:
    """Return the sum of the bits at the ``chosen`` positions modulo 2, at every position.

    ``heads="one"`` averages the bits with one head. The result is then undefined if the input is too
    short for the chosen positions. ``heads="each"`` reads each bit with a separate head, as in the
    construction with k trainable heads. Missing bits then count as 0. If ``wave`` is true, ReLUs
    compute the parity, as in a feed-forward, with the triangle wave s + Σᵢ 2(−1)ⁱ relu(s − i).
    """
    places = tuple(operator.index(place) for place in chosen)
    if not places or len(set(places)) < len(places) or min(places) < 0:
        raise GraphError(f"k_parity: expected distinct positions from 0 on, got {places!r}")
    if heads == "one":
        chosen_ones = select(member(indices, places), True, "==")
        ones: SOp = len(places) * aggregate(chosen_ones, bits)
        # The same head detects missing positions, since they change the mean position.
        expected = places[0] if len(places) == 1 else sum(places) / len(places)
        all_there = aggregate(chosen_ones, indices, -1) == expected
        ones = ones / where(all_there, 1, 0)
    elif heads == "each":
        fetched = [aggregate(select(indices, place, "=="), bits) for place in places]
        ones = fetched[0]
        for bit in fetched[1:]:
            ones = ones + bit
    else:
        raise GraphError(f"k_parity: expected heads='one' or heads='each', got {heads!r}")
    ones = round(ones)
    if not wave:
        return ones % 2
    parity = ones
    for i in range(1, len(places)):
        parity = parity + (-2 if i % 2 else 2) * maximum(ones - i, 0)
    return parity
