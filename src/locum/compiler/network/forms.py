"""What stands in the residual stream, and what is read from it.

A :class:`Signal` is one number at each position. A :class:`Form` is an affine combination of signals;
since every matrix of a transformer is linear, whatever reads the stream reads forms, and sums and
constant factors cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

#: A number, or a boolean, for each position (or for each of some units, knots, keys).
Vector: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Signal:
    """One number at each position, from ``time`` on."""

    label: str
    time: int
    #: What the positions (0 … longest−1) and the tokens put into it at the start.
    positions: Vector | None = None
    tokens: Vector | None = None


@dataclass(frozen=True)
class Form:
    """Σ coefficient · signal + constant."""

    terms: Mapping[Signal, float] = field(default_factory=dict)
    constant: float = 0.0
    #: Coefficients and constant before anything cancelled, where something did: what dense execution
    #: rounds is as large as that.
    gross: tuple[Mapping[Signal, float], float] | None = None
    #: The finest grid of a constant before it was multiplied: dense execution adds it as it was.
    finest: float = math.inf

    @cached_property
    def uncancelled(self) -> tuple[Mapping[Signal, float], float]:
        """The absolute values of all coefficients and constants that were added up."""
        if self.gross is not None:
            return self.gross
        return {signal: abs(c) for signal, c in self.terms.items()}, abs(self.constant)

    @cached_property
    def key(self) -> tuple[frozenset[tuple[int, float]], float]:
        """Equal for equal forms."""
        return frozenset((id(s), c) for s, c in self.terms.items()), self.constant

    @property
    def time(self) -> int:
        """When all of it is there."""
        return max((signal.time for signal in self.terms), default=0)


def total(parts: Iterable[tuple[Form, float]], constant: float = 0.0) -> Form:
    """Return Σ coefficient · form + constant."""
    terms: dict[Signal, float] = {}
    gross: dict[Signal, float] = {}
    gross_constant = abs(constant)
    finest = math.inf
    for form, coefficient in parts:
        constant += coefficient * form.constant
        for signal, c in form.terms.items():
            terms[signal] = terms.get(signal, 0.0) + coefficient * c
        if form.constant:
            finest = min(finest, 1 / form.constant.as_integer_ratio()[1])
        finest = min(finest, form.finest)
        sizes, size = form.uncancelled
        gross_constant += abs(coefficient) * size
        for signal, c in sizes.items():
            gross[signal] = gross.get(signal, 0.0) + abs(coefficient) * c
    combined = Form({signal: c for signal, c in terms.items() if c}, constant, finest=finest)
    if combined.uncancelled == (gross, gross_constant):
        return combined
    return replace(combined, gross=(gross, gross_constant))
