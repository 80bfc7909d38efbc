"""Sample random modules T for an order, with normally distributed matrices that are scaled such that
scores are moderate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from locum.simulators.attention_order import KINDS
from locum.simulators.modules.attention import MultiHeadAttention
from locum.simulators.modules.encoder_layers import Encoder
from locum.simulators.modules.module import AttentionModule, Module, Numbers
from locum.simulators.order import Order
from locum.simulators.token_layout import Block


def random_module(order: Order, generator: np.random.Generator) -> Module:
    """Sample an attention or encoder layer T with the sizes and the kind of attention of this order.

    T has no biases and no gates, and is not parallel. Its norms are layer norms without gains. Orders
    with a mask other than "causal" or with shared key heads raise an error.
    """

    def draw(rows: int, columns: int) -> Numbers:
        return np.asarray(generator.normal(size=(rows, columns)) / np.sqrt(rows))

    size = order.attention
    attention = _attention(order, draw)
    if not order.residual:
        return attention
    if order.feed_forward is None:
        return Encoder(attention, norm=order.norm)
    d1, d2 = order.feed_forward
    return Encoder(
        attention,
        draw(size.columns, d1),
        draw(d1, d2),
        activation=order.activation,
        norm=order.norm,
        feed_forward_residual=order.feed_forward_residual,
    )


def _attention(order: Order, draw: Callable[[int, int], Numbers]) -> AttentionModule:
    """Return a random attention layer for this order without biases, with all heads and W_O if any."""
    size = order.attention
    W_O = Block("W_O", size.heads * size.d_v, size.projection)
    last = [W_O] if size.projection else []
    if KINDS[size.kind].whole:
        return _head(order, draw, size.heads, last)
    heads = [_head(order, draw, 1, []) for _ in range(size.heads)]
    if len(heads) == 1 and not last:
        return heads[0]
    return MultiHeadAttention(heads, *(draw(b.rows, b.columns) for b in last), combine=size.combine)


def _head(
    order: Order, draw: Callable[[int, int], Numbers], heads: int, last: list[Block]
) -> AttentionModule:
    """Return a random attention with this number of heads, without biases.

    ``last`` contains the blocks of further matrices, such as W_O.
    """
    size = replace(order.attention, heads=heads, bias=False)
    kind = KINDS[size.kind]
    settings = {word: getattr(size, name) for name, word in kind.settings.items()}
    matrices = (draw(b.rows, b.columns) for b in [*kind.blocks(size, order.n), *last])
    module: AttentionModule = kind.module(*matrices, **settings)
    return module
