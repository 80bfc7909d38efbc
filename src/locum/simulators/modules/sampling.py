"""A random T of a given order: its matrices are normal numbers, scaled so that scores stay moderate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from locum.simulators.modules.attention import Attention, MultiHeadAttention
from locum.simulators.modules.encoder import Encoder
from locum.simulators.modules.factored import FactoredAttention
from locum.simulators.modules.kinds import LinearAttention, Linformer, Performer, Sumformer
from locum.simulators.modules.module import AttentionModule, Module, Numbers
from locum.simulators.order import Order


def random_module(order: Order, generator: np.random.Generator) -> Module:
    """Draw a T of this order, an attention or an encoder without biases."""

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
    """Return all heads, and W_O behind them."""
    size = order.attention
    if size.kind == "factored":
        widths = (size.width, size.width, size.d_v)
        W_Q, W_K, W_V = (draw(size.d, size.heads * width) for width in widths)
        W_O = draw(size.heads * size.d_v, size.projection) if size.projection else None
        return FactoredAttention(W_Q, W_K, W_V, W_O, size.heads, mask=size.mask)
    heads = [_head(order, draw) for _ in range(size.heads)]
    if size.heads == 1 and not size.projection:
        return heads[0]
    projection = draw(size.heads * size.d_v, size.projection) if size.projection else None
    return MultiHeadAttention(heads, projection, combine=size.combine)


def _head(order: Order, draw: Callable[[int, int], Numbers]) -> AttentionModule:
    """Return one head, of any kind."""
    size, n = order.attention, order.n
    value = draw(size.d, size.d_v)
    if size.kind == "softmax":
        return Attention(draw(size.d, size.d), value, mask=size.mask, pooling=size.pooling)
    if size.kind == "sumformer":
        parts = draw(size.d, size.rank), draw(size.d, size.hidden), draw(size.rank, size.hidden)
        return Sumformer(*parts, draw(size.hidden, size.d_v), activation=size.nonlinearity)
    projections = draw(size.d, size.width), draw(size.d, size.width), value
    if size.kind == "linear":
        return LinearAttention(*projections, feature_map=size.feature_map, mask=size.mask)
    if size.kind == "linformer":
        return Linformer(*projections, draw(size.rank, n), draw(size.rank, n))
    return Performer(*projections, draw(size.rank, size.width))
