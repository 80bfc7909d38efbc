"""What stands around an attention in an encoder or decoder layer: norms and the feed-forward."""

from __future__ import annotations

from typing import Any

import numpy as np

from locum.errors import GraphError, InputError
from locum.execution.activations import ACTIVATIONS
from locum.execution.arrays import Array, numpy_of
from locum.settings import require_choice
from locum.simulators.matrices import matrix, row
from locum.simulators.modules.module import Numbers

#: A norm's gain and bias (no bias where it divides by the root mean square), or None: it has neither.
Affine = tuple[Array, Array | None] | None


class FeedForward:
    """activation(Y W1 + b1) W2 + b2, the biases together or not at all.

    With W_gate the hidden units are activation(Y W_gate + b_gate) ∘ (Y W1 + b1).
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
        """Take ``columns``: those of Y."""
        require_choice(activation, tuple(ACTIVATIONS), "activation", error=GraphError)
        self.W1 = matrix(W1, "W1", (columns, None))
        self.W2 = matrix(W2, "W2", (self.W1.shape[1], None))
        self.activation = activation
        self.biased = b1 is not None or b2 is not None or b_gate is not None
        # One bias alone is both, the other being 0: the order knows only "with" and "without".
        none1, none2 = np.zeros(self.W1.shape[1]), np.zeros(self.W2.shape[1])
        self.b1 = row(none1 if b1 is None else b1, "b1", self.W1.shape[1])
        self.b2 = row(none2 if b2 is None else b2, "b2", self.W2.shape[1])
        self.W_gate = None if W_gate is None else matrix(W_gate, "W_gate", tuple(self.W1.shape))
        if W_gate is None and b_gate is not None:
            raise InputError("b_gate belongs to a gated feed-forward: give W_gate, too")
        self.b_gate = row(none1 if b_gate is None else b_gate, "b_gate", self.W1.shape[1])

    @property
    def order(self) -> tuple[int, int]:
        """d1 and d2."""
        return self.W1.shape[1], self.W2.shape[1]

    def matrices(self) -> dict[str, list[Array]]:
        """Return W1 and W2, and the biases if there are any."""
        matrices = {"W1": [self.W1], "W2": [self.W2]}
        if self.biased:
            matrices |= {"b1": [self.b1], "b2": [self.b2]}
        if self.W_gate is not None:
            matrices |= {"W_gate": [self.W_gate]} | ({"b_gate": [self.b_gate]} if self.biased else {})
        return matrices

    def steps(self, Y: Numbers) -> dict[str, Numbers]:
        """Return the hidden units, and the result."""
        before, activate = Y @ numpy_of(self.W1) + numpy_of(self.b1), ACTIVATIONS[self.activation]
        if self.W_gate is None:
            hidden = activate(before)
        else:
            hidden = activate(Y @ numpy_of(self.W_gate) + numpy_of(self.b_gate)) * before
        return {"hidden": hidden, "feed-forward": hidden @ numpy_of(self.W2) + numpy_of(self.b2)}


def read_affine(value: Any, number: int, columns: int, rms: bool = False) -> Affine:
    """Read gain and bias of a norm; of one by the root mean square the gain alone."""
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
    """Return gains and biases by the names of their blocks."""
    matrices: dict[str, list[Array]] = {}
    for number, norm in enumerate(norms, start=1):
        if norm is not None:
            matrices[f"gain{number}"] = [norm[0]]
            if norm[1] is not None:
                matrices[f"bias{number}"] = [norm[1]]
    return matrices


def normalised(Y: Numbers, norm: Affine, epsilon: float, rms: bool = False) -> Numbers:
    """Norm each row by its mean and variance, or by its root mean square."""
    deviation = Y if rms else Y - Y.mean(axis=1, keepdims=True)
    variance = (deviation * deviation).mean(axis=1, keepdims=True)
    normed = deviation / np.sqrt(variance + epsilon)
    if norm is not None:
        normed = normed * numpy_of(norm[0]) + (0 if norm[1] is None else numpy_of(norm[1]))
    return np.asarray(normed)
