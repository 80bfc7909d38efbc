"""A single-layer encoder as a T (Corollary on encoders, and its form with H heads).

The paper's is FFN(X + attention(X)) with FFN(Y) = ReLU(Y W1) W2: no norm, no biases, and no residual
around the feed-forward. The encoders that people train have all of these:

    norm="post":  Y = LN1(X + attention(X)),   T(X) = LN2(Y + FFN(Y))
    norm="pre":   Y = X + attention(LN1(X)),   T(X) = Y + FFN(LN2(Y))
"""

from __future__ import annotations

from typing import Any

from locum.errors import InputError
from locum.execution.arrays import Array
from locum.simulators.modules.layer import Layer, read_feed_forward
from locum.simulators.modules.module import AttentionModule


class Encoder(Layer):
    """An attention with a residual sum, a feed-forward (or none) and norms (or none).

    >>> import numpy as np
    >>> from locum import Attention, UniversalSimulator
    >>> T = Encoder(Attention(np.eye(2), np.eye(2)), W1=np.eye(2), W2=np.eye(2))
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> bool(np.abs(UniversalSimulator.of(T, 2)(T, X) - T(X)).max() < 1e-13)
    True
    """

    def __init__(
        self,
        attention: AttentionModule,
        W1: Array | None = None,
        W2: Array | None = None,
        b1: Array | None = None,
        b2: Array | None = None,
        activation: str = "relu",
        norm: str = "none",
        *,
        norm1: Any = None,
        norm2: Any = None,
        epsilon: float = 1e-5,
        feed_forward_residual: bool | None = None,
        W_gate: Array | None = None,
        b_gate: Array | None = None,
        rms: bool = False,
        parallel: bool = False,
    ) -> None:
        """Take ``norm1`` and ``norm2`` as (gain, bias). The feed-forward has a residual where there
        are norms, unless ``feed_forward_residual`` says otherwise.

        ``rms``: norms by the root mean square, whose ``norm1`` and ``norm2`` are gains alone.
        ``W_gate`` makes a gated feed-forward; ``parallel`` means
        X + attention(norm1(X)) + feed-forward(norm2(X)).
        """
        if not isinstance(attention, AttentionModule):
            raise InputError(f"expected an attention in an encoder, got {type(attention).__name__}")
        columns = attention.attention_order().columns
        feed_forward = read_feed_forward(W1, W2, b1, b2, activation, columns, W_gate, b_gate)
        norms = (norm1, norm2)
        super().__init__(
            attention, None, feed_forward, norm, norms, epsilon, feed_forward_residual, rms, parallel
        )
