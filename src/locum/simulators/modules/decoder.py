"""A decoder layer as a T: causal self-attention, cross-attention to a memory, feed-forward.

The paper leaves decoders to future work; with a masked softmax and a second attention they are more of
the same. Causal self-attention by itself is ``Attention(A, V, mask="causal")``, cross-attention by
itself any attention that is given a memory: ``T(X, memory)``.

    norm="post":  LN1(x + self(x)),  LN2(y + cross(y, M)),  LN3(z + FFN(z))
    norm="pre":   x + self(LN1(x)),  y + cross(LN2(y), M),  z + FFN(LN3(z))
"""

from __future__ import annotations

from typing import Any

from locum.errors import InputError
from locum.execution.arrays import Array
from locum.simulators.modules.layer import Layer, read_feed_forward
from locum.simulators.modules.module import AttentionModule


class DecoderLayer(Layer):
    """Self-attention, cross-attention and a feed-forward (or none), each with a residual sum.

    >>> import numpy as np
    >>> from locum import Attention, UniversalSimulator
    >>> causal, cross = (Attention(np.eye(2), np.eye(2), mask=mask) for mask in ("causal", None))
    >>> T = DecoderLayer(causal, cross, norm="post")
    >>> X, memory = np.eye(2), np.ones((3, 2))
    >>> bool(np.abs(UniversalSimulator.of(T, 2, 3)(T, X, memory) - T(X, memory)).max() < 1e-13)
    True
    """

    def __init__(
        self,
        attention: AttentionModule,
        cross: AttentionModule,
        W1: Array | None = None,
        W2: Array | None = None,
        b1: Array | None = None,
        b2: Array | None = None,
        activation: str = "relu",
        *,
        norm: str,
        norm1: Any = None,
        norm2: Any = None,
        norm3: Any = None,
        epsilon: float = 1e-5,
        feed_forward_residual: bool | None = True,
        W_gate: Array | None = None,
        b_gate: Array | None = None,
        rms: bool = False,
    ) -> None:
        """Keep the masks of both attentions: make the self-attention causal with ``mask="causal"``."""
        for part in (attention, cross):
            if not isinstance(part, AttentionModule):
                raise InputError(f"expected attentions in a decoder layer, got {type(part).__name__}")
        columns = attention.attention_order().columns
        if cross.attention_order().columns != columns or cross.attention_order().d != columns:
            raise InputError(
                f"the cross-attention must take and give the {columns} columns of the self-attention"
            )
        feed_forward = read_feed_forward(W1, W2, b1, b2, activation, columns, W_gate, b_gate)
        norms = (norm1, norm2, norm3)
        super().__init__(
            attention, cross, feed_forward, norm, norms, epsilon, feed_forward_residual, rms
        )
