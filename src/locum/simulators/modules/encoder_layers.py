"""Define encoder and decoder layers as modules T: attention, residual sums, norms and a feed-forward.

The sublayers are, in this order: self-attention, the cross-attention of a decoder layer, and the
feed-forward. Each sublayer computes y + f(y), with a norm before f (``norm="pre"``), a norm after the
sum (``"post"``) or no norm. For the feed-forward, the residual sum is optional. In a parallel layer,
both sublayers read X, and X is added once.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from locum.errors import GraphError, InputError
from locum.execution.array_activations import ACTIVATIONS
from locum.execution.arrays import Array, numpy_of
from locum.settings import require_choice, require_number
from locum.simulators.matrices import matrix, row
from locum.simulators.modules.module import AttentionModule, KeptMask, Mask, Module, Numbers, sizes
from locum.simulators.order import NORMS, Order

#: A norm's gain and bias (RMSNorm has no bias), or None for a norm without either.
Affine = tuple[Array, Array | None] | None


class FeedForward:
    """The feed-forward activation(Y W1 + b1) W2 + b2, with both biases or without biases.

    With W_gate, the hidden units are activation(Y W_gate + b_gate) ∘ (Y W1 + b1).
    """

    def __init__(
        self,
        W1: Array,
        W2: Array,
        b1: Array | None,
        b2: Array | None,
        activation: str,
        columns: int,
        W_gate: Array | None = None,
        b_gate: Array | None = None,
    ) -> None:
        """Create the feed-forward; ``columns`` is the number of columns of Y."""
        require_choice(activation, tuple(ACTIVATIONS), "activation", error=GraphError)
        self.W1 = matrix(W1, "W1", (columns, None))
        self.W2 = matrix(W2, "W2", (self.W1.shape[1], None))
        self.activation = activation
        self.biased = b1 is not None or b2 is not None or b_gate is not None
        # A single missing bias is 0, since the order only distinguishes with and without biases.
        none1, none2 = np.zeros(self.W1.shape[1]), np.zeros(self.W2.shape[1])
        self.b1 = row(none1 if b1 is None else b1, "b1", self.W1.shape[1])
        self.b2 = row(none2 if b2 is None else b2, "b2", self.W2.shape[1])
        self.W_gate = None if W_gate is None else matrix(W_gate, "W_gate", tuple(self.W1.shape))
        if W_gate is None and b_gate is not None:
            raise InputError("expected W_gate in addition to b_gate, got b_gate alone")
        self.b_gate = row(none1 if b_gate is None else b_gate, "b_gate", self.W1.shape[1])

    @property
    def order(self) -> tuple[int, int]:
        """The sizes d1 (number of hidden units) and d2 (number of columns of the result)."""
        return self.W1.shape[1], self.W2.shape[1]

    def matrices(self) -> dict[str, list[Array]]:
        """Return W1, W2 and, if present, W_gate and the biases, by the names of their blocks."""
        matrices = {"W1": [self.W1], "W2": [self.W2]}
        if self.biased:
            matrices |= {"b1": [self.b1], "b2": [self.b2]}
        if self.W_gate is not None:
            matrices |= {"W_gate": [self.W_gate]} | ({"b_gate": [self.b_gate]} if self.biased else {})
        return matrices

    def steps(self, Y: Numbers) -> dict[str, Numbers]:
        """Return the hidden units and the result for the rows of Y, computed with NumPy."""
        before, activate = Y @ numpy_of(self.W1) + numpy_of(self.b1), ACTIVATIONS[self.activation]
        if self.W_gate is None:
            hidden = activate(before)
        else:
            hidden = activate(Y @ numpy_of(self.W_gate) + numpy_of(self.b_gate)) * before
        return {"hidden": hidden, "feed-forward": hidden @ numpy_of(self.W2) + numpy_of(self.b2)}


def read_affine(value: Any, number: int, columns: int, rms: bool = False) -> Affine:
    """Check the gain and the bias of norm ``number`` and return them; RMSNorm has only a gain."""
    if value is None:
        return None
    if rms:
        return row(value, f"gain{number}", columns), None
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise InputError(
            f"norm{number}: expected (gain, bias), two rows of {columns} numbers, got {value!r:.40}"
        )
    gain, bias = value
    return row(gain, f"gain{number}", columns), row(bias, f"bias{number}", columns)


def affine_matrices(norms: list[Affine]) -> dict[str, list[Array]]:
    """Return the gains and biases of norms by the names of their blocks, such as ``gain1``."""
    matrices: dict[str, list[Array]] = {}
    for number, norm in enumerate(norms, start=1):
        if norm is not None:
            matrices[f"gain{number}"] = [norm[0]]
            if norm[1] is not None:
                matrices[f"bias{number}"] = [norm[1]]
    return matrices


def normalised(Y: Numbers, norm: Affine, epsilon: float, rms: bool = False) -> Numbers:
    """Apply layer norm, or RMSNorm if ``rms`` is true, to each row of Y."""
    deviation = Y if rms else Y - Y.mean(axis=1, keepdims=True)
    variance = (deviation * deviation).mean(axis=1, keepdims=True)
    normed = deviation / np.sqrt(variance + epsilon)
    if norm is not None:
        normed = normed * numpy_of(norm[0]) + (0 if norm[1] is None else numpy_of(norm[1]))
    return np.asarray(normed)


class Layer(Module):
    """Base class of encoder and decoder layers."""

    def __init__(
        self,
        attention: AttentionModule,
        cross: AttentionModule | None,
        feed_forward: FeedForward | None,
        norm: str,
        norms: Sequence[Any],
        epsilon: float,
        feed_forward_residual: bool | None,
        rms: bool = False,
        parallel: bool = False,
    ) -> None:
        """Create the layer; ``norms`` contains (gain, bias) for all norms of the layer or for none.

        With ``rms``, ``norms`` contains only the gains. The other arguments are described in
        :class:`Encoder` and :class:`DecoderLayer`.
        """
        require_choice(norm, NORMS, "norm", error=GraphError)
        self.attention = attention
        self.cross = cross
        self.feed_forward = feed_forward
        self.norm = norm
        self.rms, self.parallel = rms, parallel
        require_number(epsilon, "epsilon", above=0, error=GraphError)
        self.epsilon = float(epsilon)
        residual = norm != "none" if feed_forward_residual is None else feed_forward_residual
        self.feed_forward_residual = residual and feed_forward is not None
        self.norms: list[Affine] = []
        columns = self.order(1, 1 if cross is not None else 0).normed
        affine = [value for value in norms if value is not None]
        if len(affine) not in (0, len(columns)):
            raise InputError(
                f"expected a gain and a bias for all {len(columns)} norms or for none, got them for "
                f"{len(affine)}"
            )
        self.norms = [
            read_affine(value, number, width, rms)
            for number, (value, width) in enumerate(
                zip(affine or [None] * len(columns), columns, strict=True), start=1
            )
        ]

    def order(self, n: int, memory: int = 0) -> Order:
        """Return the order of the layer for n rows of X and a memory of ``memory`` rows."""
        if bool(memory) != (self.cross is not None):
            raise InputError(
                "a decoder layer attends to a memory: give its number of rows"
                if self.cross is not None
                else "an encoder has no memory: a decoder layer has"
            )
        feed_forward = self.feed_forward
        return Order(
            n,
            self.attention.attention_order(),
            memory,
            None if self.cross is None else self.cross.attention_order(),
            residual=True,
            feed_forward=None if feed_forward is None else feed_forward.order,
            feed_forward_bias=feed_forward is not None and feed_forward.biased,
            feed_forward_residual=self.feed_forward_residual,
            activation="relu" if feed_forward is None else feed_forward.activation,
            norm=self.norm,
            affine=any(norm is not None for norm in self.norms),
            rms=self.rms,
            gated=feed_forward is not None and feed_forward.W_gate is not None,
            parallel=self.parallel,
        )

    def __repr__(self) -> str:
        parts = sizes(self.attention.attention_order())
        if self.feed_forward is not None:
            parts.append(f"feed_forward={self.feed_forward.order}")
        return f"{type(self).__name__}({', '.join([*parts, f'norm={self.norm!r}'])})"

    def matrices(self) -> dict[str, list[Array]]:
        """Return the matrices of the attentions, the feed-forward and the norms by the names of their
        blocks.

        The ε of the norms is a 1×1 matrix.
        """
        matrices = self.attention.matrices() | affine_matrices(self.norms)
        if self.cross is not None:
            matrices |= {f"cross {name}": copies for name, copies in self.cross.matrices().items()}
        if self.norm != "none":
            matrices["epsilon"] = [np.full((1, 1), self.epsilon)]
        return matrices | ({} if self.feed_forward is None else self.feed_forward.matrices())

    @property
    def masks(self) -> tuple[KeptMask, KeptMask]:
        """The masks of the self-attention and of the cross-attention."""
        return self.attention.masks[0], None if self.cross is None else self.cross.masks[0]

    def with_masks(self, mask: Mask, memory_mask: Mask = None) -> Self:
        """Return a copy of the layer with these masks for its self-attention and cross-attention."""
        made = copy.copy(self)
        made.attention = self.attention.with_masks(mask)
        if self.cross is not None:
            made.cross = self.cross.with_masks(memory_mask)
        elif memory_mask is not None:
            raise InputError("memory_mask applies to decoder layers only: an encoder has no memory")
        return made

    def steps(self, X: Array, memory: Array | None = None) -> dict[str, Numbers]:
        """Return all steps of the layer by name, computed with NumPy: attention, residual sums, norms,
        feed-forward.
        """
        if memory is None and self.cross is not None:
            raise InputError("expected encoder layers, got a decoder layer, which requires a memory")
        if memory is not None and self.cross is None:
            raise InputError("expected no memory for an encoder layer, got one")
        evaluation = _Evaluation(self)
        y = numpy_of(matrix(X, "X", (None, self.attention.attention_order().d)))
        x, y = y, evaluation.attend(y, self.attention, None, "")
        if self.cross is not None:
            y = evaluation.attend(y, self.cross, memory, "cross ")
        if self.feed_forward is not None:
            y = evaluation.feed_forward(y, self.feed_forward, x if self.parallel else y)
        return evaluation.steps | {"output": y}


class _Evaluation:
    """The state of a direct evaluation of a layer: the steps so far, and the number of norms already
    applied.
    """

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.steps: dict[str, Numbers] = {}
        self.count = 0

    def norm(self, y: Numbers, when: str) -> Numbers:
        if self.layer.norm != when:
            return y
        self.count += 1
        norm = self.layer.norms[self.count - 1]
        result = normalised(y, norm, self.layer.epsilon, self.layer.rms)
        self.steps[f"norm{self.count}"] = result
        return result

    def attend(
        self, y: Numbers, attention: AttentionModule, memory: Array | None, prefix: str
    ) -> Numbers:
        steps = attention.steps(self.norm(y, "pre"), memory)
        for name, value in steps.items():
            self.steps[prefix + ("attention" if name == "output" else name)] = value
        total = self.steps[prefix + "residual"] = y + steps["output"]
        return self.norm(total, "post")

    def feed_forward(self, y: Numbers, feed_forward: FeedForward, inputs: Numbers) -> Numbers:
        self.steps |= feed_forward.steps(self.norm(inputs, "pre"))
        result = self.steps["feed-forward"]
        return self.norm(y + result if self.layer.feed_forward_residual else result, "post")


def read_feed_forward(
    W1: Array | None,
    W2: Array | None,
    b1: Array | None,
    b2: Array | None,
    activation: str,
    columns: int,
    W_gate: Array | None = None,
    b_gate: Array | None = None,
) -> FeedForward | None:
    """Return the feed-forward with these matrices, or None if no matrices are given."""
    if (W1 is None) != (W2 is None):
        raise InputError("a feed-forward requires W1 and W2: expected both or neither, got one of them")
    if W1 is None or W2 is None:
        if any(part is not None for part in (b1, b2, W_gate, b_gate)):
            raise InputError("expected W1 and W2 in addition to biases or a gate, got neither")
        return None
    return FeedForward(W1, W2, b1, b2, activation, columns, W_gate, b_gate)


class Encoder(Layer):
    """An encoder layer: attention with a residual sum, and optionally a feed-forward and norms.

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
        """Create the layer; ``norm1`` and ``norm2`` are pairs (gain, bias).

        By default, the feed-forward has a residual if the layer has norms; ``feed_forward_residual``
        overrides this default. With ``rms``, the norms are RMSNorm, and ``norm1`` and ``norm2`` are
        gains. With ``W_gate``, the feed-forward is gated. With ``parallel``, the layer computes X +
        attention(norm1(X)) + feed-forward(norm2(X)).
        """
        if not isinstance(attention, AttentionModule):
            raise InputError(f"expected an attention in an encoder, got {type(attention).__name__}")
        columns = attention.attention_order().columns
        feed_forward = read_feed_forward(W1, W2, b1, b2, activation, columns, W_gate, b_gate)
        norms = (norm1, norm2)
        super().__init__(
            attention, None, feed_forward, norm, norms, epsilon, feed_forward_residual, rms, parallel
        )


class DecoderLayer(Layer):
    """A decoder layer: self-attention and cross-attention with residual sums, and optionally a
    feed-forward and norms.

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
        """Create the layer from its self-attention ``attention`` and its cross-attention ``cross``.

        Masks belong to these attentions: for causal self-attention, create ``attention`` with
        ``mask="causal"``. By default, the feed-forward has a residual. The other arguments have the
        same meaning as in :class:`Encoder`.
        """
        for part in (attention, cross):
            if not isinstance(part, AttentionModule):
                raise InputError(f"expected attentions in a decoder layer, got {type(part).__name__}")
        columns = attention.attention_order().columns
        if cross.attention_order().columns != columns or cross.attention_order().d != columns:
            raise InputError(
                f"expected cross-attention whose input and output have the {columns} columns of the "
                "self-attention"
            )
        feed_forward = read_feed_forward(W1, W2, b1, b2, activation, columns, W_gate, b_gate)
        norms = (norm1, norm2, norm3)
        super().__init__(
            attention, cross, feed_forward, norm, norms, epsilon, feed_forward_residual, rms
        )
