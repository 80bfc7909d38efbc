"""Bound integers without enumeration: ranges of s-ops, and linear functions of position and length.

An s-op may have too many combinations of source values to list. Its *range* can often be computed in
this case, since bounds on integers imply bounds on their sums, products and remainders. S-ops that are
linear in the position and the length have further properties. For example, ``length - 1 - indices`` is
a valid position, and differs between queries.

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
    """Bounds on an s-op whose values are integers or booleans; both may be infinite."""

    low: float
    high: float

    @property
    def largest(self) -> float:
        """The largest absolute value in the range."""
        return max(abs(self.low), abs(self.high))

    def join(self, other: Range) -> Range:
        """Return the smallest range that contains both ranges."""
        return Range(min(self.low, other.low), max(self.high, other.high))


#: Integers from this number on count as infinite, since float64 cannot represent all of them.
_ENDLESS = 2.0**64

_BOOLEAN = Range(0, 1)


def combined(node: Node, inputs: Sequence[Range | None]) -> Range | None:
    """Return the range of an elementwise s-op, given the ranges of its inputs.

    Return None if the result may not be an integer, or if no range is known.
    """
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
    """The integer combination ``indices`` · position + ``length`` · length + ``constant``."""

    indices: int
    length: int
    constant: int

    def at(self, position: int, length: int) -> int:
        """Return the value of the combination at a position of an input."""
        return self.indices * position + self.length * length + self.constant

    def over(self, shortest: int, longest: int) -> Range:
        """Return the range of the combination on inputs of ``shortest`` to ``longest`` tokens."""
        values = [self.at(position, length) for position, length in _corners(shortest, longest)]
        return Range(min(values), max(values))

    def is_position(self, shortest: int, longest: int) -> bool:
        """Return whether the combination is a valid position, at every position of every input."""
        return all(0 <= self.at(p, length) < length for p, length in _corners(shortest, longest))


def _corners(shortest: int, longest: int) -> list[tuple[int, int]]:
    """Return the pairs (position, length) at which a linear function has its minimum or maximum."""
    return [(p, length) for length in (shortest, longest) for p in (0, length - 1)]


def affine(node: Node, inputs: Sequence[Affine | None]) -> Affine | None:
    """Return an s-op as an integer combination of position and length, given its inputs in this form.

    Return None if the s-op is not known to be such a combination.
    """
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
