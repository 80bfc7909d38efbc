"""The values that a mean of finitely many numbers can take: sums of m of them, divided by m.

The number of keys is at most the length of the input, so means of zeros and ones are fractions k/m
with m ≤ N. Sums of numbers on one grid (integers, halves) are kept as the bits of an integer: adding
one more number shifts them.

>>> means_of_positions([[0, 1], [0, 1], [1]], [0, 2])
[0.5, 1.0]
>>> means_of_subsets([0, 3], 2)
[0, 3, 0.0, 1.5, 3.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from locum.graph import Atom
from locum.graph.atoms import LARGEST_EXACT

#: Steps of the grid between the least and the greatest sum: beyond that a mean is not called finite.
MAX_SUMS = 2**16


class Unlisted(Exception):  # noqa: N818  (a signal to the caller, not an error)
    """Sums that are rounded, or too many."""


def denominator(values: Sequence[Atom], count: int) -> int:
    """Return the power of two that makes these numbers integers whose sums of ``count`` are exact.

    Raises :class:`Unlisted` where sums are rounded, too many to be listed, or not sums of numbers.
    """
    if any(isinstance(value, str) for value in values):
        raise Unlisted
    try:
        scale = max(value.as_integer_ratio()[1] for value in values if not isinstance(value, str))
        integers = [int(value * scale) for value in values if not isinstance(value, str)]
    except (OverflowError, ValueError):
        raise Unlisted from None
    span = max(integers) - min(integers)
    if max(map(abs, integers)) * count > LARGEST_EXACT or span * count > MAX_SUMS:
        raise Unlisted
    return scale


def means_of_positions(values: Sequence[Sequence[Atom]], keys: Sequence[int]) -> list[Atom]:
    """List the means over ``keys``, where ``values`` lists what each position may have."""
    if len(keys) == 1:
        return list(values[keys[0]])
    together = [value for key in keys for value in values[key]]
    if not all(values[key] for key in keys):  # the program has no value there
        raise Unlisted
    scale = denominator(together, len(keys))
    return _divided(reduce(_plus, (_bits(values[key], scale) for key in keys)), scale, len(keys))


def means_of_subsets(values: Sequence[Atom], most: int) -> list[Atom]:
    """List the means of one to ``most`` values, any of which may occur any number of times."""
    scale = denominator(values, most)
    means, one = list(values), _bits(values, scale)
    sums = one
    for count in range(2, most + 1):
        sums = _plus(sums, one)
        means += _divided(sums, scale, count)
    return means


#: Which integers occur: the least of them, and a bit for each from there on.
_Bits = tuple[int, int]


def _bits(values: Sequence[Atom], scale: int) -> _Bits:
    integers = {int(value * scale) for value in values if not isinstance(value, str)}
    least = min(integers)
    return least, sum(1 << (integer - least) for integer in integers)


def _plus(sums: _Bits, more: _Bits) -> _Bits:
    """List all sums of one number of each."""
    (least, bits), (start, steps) = sums, more
    total = 0
    for step in range(steps.bit_length()):
        if steps >> step & 1:
            total |= bits << step
    return least + start, total


def _divided(sums: _Bits, scale: int, count: int) -> list[Atom]:
    """Divide, rounding each mean once, as dense execution rounds it."""
    least, bits = sums
    totals = (least + step for step in range(bits.bit_length()) if bits >> step & 1)
    return [total / scale / count for total in totals]
