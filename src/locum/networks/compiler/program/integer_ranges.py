"""Integers without enumeration: between which two an s-op lies, and what positions and length say.

Where the combinations of what an s-op depends on are too many to list, its *range* is still known:
sums, products and remainders of integers are integers between known bounds, whatever the length. Of
s-ops that are linear in the position and the length more is known: that ``length - 1 - indices`` is the
position of some token, and a different one for each query.

>>> backwards = Affine(indices=-1, length=1, constant=-1)
>>> backwards.over(1, 2048), backwards.is_position(1, 2048)
(Range(low=0, high=2047), True)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from locum.execution.elementwise import MEANINGS
from locum.graph import Node


class Range(NamedTuple):
    """The least and the greatest value of an s-op that is always an integer; may be infinite."""

    low: float
    high: float

    @property
    def largest(self) -> float:
        """The greatest absolute value."""
        return max(abs(self.low), abs(self.high))

    def join(self, other: Range) -> Range:
        """Return the least range that contains both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


#: Integers beyond this are as good as infinite: no float type holds them with their neighbours.
_ENDLESS = 2.0**64

_BOOLEAN = Range(0, 1)


def combined(node: Node, inputs: Sequence[Range | None]) -> Range | None:
    """Return the range of an elementwise s-op from its inputs'; None if it may not be an integer."""
    meaning = MEANINGS[node.op]
    if meaning.kind == "bool" or node.op == "indicator":
        return _BOOLEAN
    ranges = [_BOOLEAN, *inputs[1:]] if node.op == "if_else" else inputs
    known = [part for part in ranges if part is not None]
    if meaning.bound is None or not meaning.keeps_whole or len(known) < len(ranges):
        return None
    bounded = Range(*meaning.bound(*known))
    return bounded if bounded.largest < _ENDLESS else Range(-math.inf, math.inf)


class Affine(NamedTuple):
    """indices·position + length·length + constant, with integer coefficients."""

    indices: int
    length: int
    constant: int

    def at(self, position: int, length: int) -> int:
        """Return its value at a position of an input."""
        return self.indices * position + self.length * length + self.constant

    def over(self, shortest: int, longest: int) -> Range:
        """Return its least and its greatest value on inputs of these lengths."""
        values = [self.at(position, length) for position, length in _corners(shortest, longest)]
        return Range(min(values), max(values))

    def is_position(self, shortest: int, longest: int) -> bool:
        """Return whether it equals the position at every position of every input."""
        return all(0 <= self.at(p, length) < length for p, length in _corners(shortest, longest))


def _corners(shortest: int, longest: int) -> list[tuple[int, int]]:
    """Return where a linear function of position and length is extreme: (position, length)."""
    return [(p, length) for length in (shortest, longest) for p in (0, length - 1)]


def affine(node: Node, inputs: Sequence[Affine | None]) -> Affine | None:
    """Write an s-op as an integer combination of position and length, if its inputs are; else None."""
    match node.op:
        case "indices":
            return Affine(1, 0, 0)
        case "length":
            return Affine(0, 1, 0)
        case "constant":
            value = node.value
            return Affine(0, 0, value) if type(value) is int else None
    a, b = (*inputs, None, None)[:2]
    if a is None or (b is None and node.op != "negate"):
        return None
    match node.op:
        case "negate":
            return Affine(-a.indices, -a.length, -a.constant)
        case "add" if b is not None:
            return Affine(a.indices + b.indices, a.length + b.length, a.constant + b.constant)
        case "subtract" if b is not None:
            return Affine(a.indices - b.indices, a.length - b.length, a.constant - b.constant)
        case "multiply" if b is not None:
            for one, other in ((a, b), (b, a)):
                if one[:2] == (0, 0):
                    factor = one.constant
                    return Affine(*(factor * part for part in other))
    return None
