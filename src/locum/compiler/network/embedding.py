"""What stands in the stream before the first layer: columns of W_pos and W_E, as signals.

Numbers at positions, or of tokens, come in; a form comes out. What is the same up to a factor and a
constant is there once, and what is a constant not at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from locum.compiler.network.forms import Form, Signal, Vector


class Embedding:
    """The columns so far.

    Unless positions are to be shared, a column of these is stored as it is, so that what a program
    computes from the position stays out of how it is read.
    """

    def __init__(self, *, share_positions: bool) -> None:
        self.share_positions = share_positions
        self._positions: dict[bytes, Signal] = {}
        self._tokens: dict[bytes, Signal] = {}

    def at_positions(self, numbers: Sequence[float], label: str) -> Form:
        """Embed these numbers at the positions 0, 1, …"""
        vector, factor, constant = np.array(numbers), 1.0, 0.0
        if (vector == vector[0]).all():
            return Form({}, float(vector[0]))
        if self.share_positions:
            vector, factor, constant = _standard(vector)
        key = vector.tobytes()
        if key not in self._positions:
            self._positions[key] = Signal(_named(vector, factor, constant, label), 0, positions=vector)
        return Form({self._positions[key]: factor}, constant)

    def of_tokens(self, numbers: Sequence[float], label: str) -> Form:
        """Embed these numbers for the tokens of the vocabulary, in its order."""
        vector = np.array(numbers)
        if (vector == vector[0]).all():
            return Form({}, float(vector[0]))
        vector, factor, constant = _standard(vector)
        key = vector.tobytes()
        if key not in self._tokens:
            self._tokens[key] = Signal(label, 0, tokens=vector)
        return Form({self._tokens[key]: factor}, constant)


def _named(vector: Vector, factor: float, constant: float, label: str) -> str:
    """Return what a column of positions holds, in standard form."""
    if (factor, constant) == (1, 0):
        return label
    if bool((vector == np.arange(len(vector))).all()):
        return "indices"
    return f"not ({label})" if (factor, constant) == (-1, 1) else f"{label}, up to scale"


def _standard(vector: Vector) -> tuple[Vector, float, float]:
    """Write a vector as constant + factor · (integers from 0 on without a common divisor)."""
    whole = bool((vector == np.round(vector)).all()) and float(np.abs(vector).max()) < 2**40
    if not whole:
        return vector, 1.0, 0.0
    constant = float(vector[0])
    rest = (vector - constant).astype(np.int64)
    divisor = math.gcd(*(abs(int(v)) for v in rest))
    sign = 1 if rest[np.flatnonzero(rest)[0]] > 0 else -1
    factor = sign * divisor
    return (rest // factor).astype(np.float64), float(factor), constant
