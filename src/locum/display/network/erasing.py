"""Find the slots that a feed-forward erases: it subtracts them from themselves, and adds nothing.

- Exact: a function that returns its argument, the slot itself, written into the slot times −1.
- relu: relu(x) − relu(−x) is x; gelu: gelu(ax) − gelu(−ax) is ax, because gelu(x) − gelu(−x) = x.
- glu: relu(g)·x is x where g is 1, a slot that is 1 at every position and never written.

A slot that a feed-forward reads *and* adds something else to is not erased.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from locum.transformer.weights import Array, FeedForwardWeights


def erasures(feed: FeedForwardWeights, places: Array, steady: Collection[int]) -> dict[int, list[int]]:
    """Return the erased slots, each with the columns of ``W_in`` that only serve this purpose.

    ``places`` is ``W_pos``; ``steady`` are slots that hold positional embeddings and nothing else.
    """
    erased = {}
    for slot in np.flatnonzero(np.any(feed.W_out, axis=0)).tolist():
        writers = np.flatnonzero(feed.W_out[:, slot]).tolist()
        columns = writers
        if feed.functions is not None:
            columns = [feed.functions.outputs[writer] for writer in writers]
            if any(column >= feed.functions.arguments for column in columns):
                continue
        alone = np.count_nonzero(feed.W_in[:, columns], axis=0) == 1
        if (
            feed.b_out[slot]
            or feed.b_in[columns].any()
            or not (alone & (feed.W_in[slot, columns] != 0)).all()
        ):
            continue
        factors, outs = feed.W_in[slot, columns], feed.W_out[writers, slot]
        if _takes_away(feed, factors, outs, columns, places, steady):
            erased[slot] = columns
    return erased


def _takes_away(
    feed: FeedForwardWeights,
    factors: Array,
    outs: Array,
    columns: list[int],
    places: Array,
    steady: Collection[int],
) -> bool:
    """Return whether hidden units that read x times a factor, and nothing else, together write −x."""
    products = factors * outs
    if feed.functions is not None:
        return _is_minus_one(products)
    if feed.W_gate is not None:
        gates = feed.W_gate[:, columns]
        read = np.flatnonzero(np.any(gates, axis=1)).tolist()
        return (
            set(read) <= set(steady) and bool((places @ gates == 1).all()) and _is_minus_one(products)
        )
    pairs = sorted(zip(factors.tolist(), outs.tolist(), strict=True))
    opposite = sorted((-factor, -out) for factor, out in pairs)
    return pairs == opposite and _is_minus_one(products[factors > 0])


def _is_minus_one(products: Array) -> bool:
    return bool(np.isclose(products.sum(), -1.0, rtol=1e-6, atol=0.0))
