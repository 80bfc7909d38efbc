"""A whole layer as a T: attentions with residual sums, norms, a feed-forward; encoders and decoders.

Sublayers follow one another: the attention, a decoder's cross-attention, the feed-forward. Each is
y + f(y), with a norm before f (``norm="pre"``), after the sum (``"post"``) or none.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from locum.errors import GraphError, InputError
from locum.execution.arrays import Array, numpy_of
from locum.settings import require_choice, require_number
from locum.simulators.matrices import matrix
from locum.simulators.modules.masks import KeptMask, Mask
from locum.simulators.modules.module import AttentionModule, Module, Numbers, sizes
from locum.simulators.modules.sublayers import (
    Affine,
    FeedForward,
    affine_matrices,
    normalised,
    read_affine,
)
from locum.simulators.order import NORMS, Order


class Layer(Module):
    """What encoders and decoder layers have in common."""

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
        """Take ``norms``: (gain, bias) of each (``rms``: the gain), or None; others as ``Encoder``."""
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
                f"this layer has {len(columns)} norms, but {len(affine)} are given: all of them have a "
                "gain and a bias, or none has"
            )
        self.norms = [
            read_affine(value, number, width, rms)
            for number, (value, width) in enumerate(
                zip(affine or [None] * len(columns), columns, strict=True), start=1
            )
        ]

    def order(self, n: int, memory: int = 0) -> Order:
        """Return the order it has on n rows (and a memory of so many)."""
        if bool(memory) != (self.cross is not None):
            raise InputError(
                "a decoder layer attends to a memory: say how many rows it has"
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
        """List those of the attentions, the feed-forward and the norms, ε among them."""
        matrices = self.attention.matrices() | affine_matrices(self.norms)
        if self.cross is not None:
            matrices |= {f"cross {name}": copies for name, copies in self.cross.matrices().items()}
        if self.norm != "none":
            matrices["epsilon"] = [np.full((1, 1), self.epsilon)]
        return matrices | ({} if self.feed_forward is None else self.feed_forward.matrices())

    @property
    def masks(self) -> tuple[KeptMask, KeptMask]:
        """The masks of its attention and of its cross-attention."""
        return self.attention.masks[0], None if self.cross is None else self.cross.masks[0]

    def with_masks(self, mask: Mask, memory_mask: Mask = None) -> Self:
        """Copy the layer with these masks of its attention and of its cross-attention."""
        made = copy.copy(self)
        made.attention = self.attention.with_masks(mask)
        if self.cross is not None:
            made.cross = self.cross.with_masks(memory_mask)
        elif memory_mask is not None:
            raise InputError("memory_mask applies to decoder layers only: an encoder has no memory")
        return made

    def steps(self, X: Array, memory: Array | None = None) -> dict[str, Numbers]:
        """Return the attention's steps, then residual, norms and feed-forward."""
        if (memory is None) != (self.cross is None):
            raise InputError("a decoder layer attends to a memory, and an encoder has none")
        evaluation = _Evaluation(self)
        y = numpy_of(matrix(X, "X", (None, self.attention.attention_order().d)))
        x, y = y, evaluation.attend(y, self.attention, None, "")
        if self.cross is not None:
            y = evaluation.attend(y, self.cross, memory, "cross ")
        if self.feed_forward is not None:
            y = evaluation.feed_forward(y, self.feed_forward, x if self.parallel else y)
        return evaluation.steps | {"output": y}


class _Evaluation:
    """One direct evaluation of a layer: the steps so far, and which norm is next."""

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
    """Return the feed-forward that these matrices are, if they are one."""
    if (W1 is None) != (W2 is None):
        raise InputError("a feed-forward has two matrices, W1 and W2: give both or neither")
    if W1 is None or W2 is None:
        if any(part is not None for part in (b1, b2, W_gate, b_gate)):
            raise InputError("biases and a gate belong to a feed-forward: give W1 and W2, too")
        return None
    return FeedForward(W1, W2, b1, b2, activation, columns, W_gate, b_gate)
