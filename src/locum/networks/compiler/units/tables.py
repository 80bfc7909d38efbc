"""Tables: whatever is finite, as a function of one number.

Several numbers are looked up at once by a *code*, which is a linear form: each is multiplied by a
factor large enough that no two combinations of values have the same sum. S-ops and the values they take
come in; a :class:`Recipe` for a gate comes out, or a linear combination that will do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from locum.errors import CompileError
from locum.graph import Atom, Node, abbreviate
from locum.graph.atoms import short
from locum.networks.compiler.compile_limits import check_time
from locum.networks.compiler.network.forms import Recipe, Table, Vector, lowest_bits
from locum.networks.compiler.program.sources import each, meaning
from locum.networks.compiler.program.values import Codes
from locum.networks.compiler.scoring.scores import Linear, term
from locum.networks.compiler.target import EXACT_WHOLE

#: Sources whose orders in the code are all tried: as few steps as possible are wanted.
_MAX_ORDERED = 4
#: Roundings of a code that its keys have to be apart, so that it can be looked up.
_ROUNDINGS = 256
#: Rounding, in parts of its least step, that a table may have; and the steps of one that may have it
#: in float32.
_SLIGHT = 2.0**-7
_FEW_STEPS = 4


class Precision(IntEnum):
    """How well a table can be looked up: as it is, by a code that is put on a grid first, or not."""

    FINE = 0
    ON_GRID = 1
    LOST = 2


@dataclass(frozen=True)
class Lookup:
    """A table by the code of what it is looked up by: keys in order, and the value of each."""

    code: Linear
    keys: Vector
    values: Vector
    #: The greatest absolute value of the code.
    reach: float
    #: Whether floats have one code for several combinations of what it is looked up by.
    merged: bool
    dtype: str
    #: Whether what it is looked up by may be off.
    off: bool
    #: The s-op, for errors.
    where: str

    @cached_property
    def steps(self) -> int:
        """How often the value changes from one key to the next: each takes two hidden units at most."""
        return int(np.count_nonzero(np.diff(self.values)))

    @cached_property
    def apart(self) -> float:
        """How far keys of different values are apart, at least."""
        return float(np.diff(self.keys)[np.diff(self.values) != 0].min(initial=math.inf))

    @cached_property
    def precision(self) -> Precision:
        """How well hidden units of this type of number do it."""
        largest = EXACT_WHOLE[self.dtype]
        if self.merged:
            return Precision.LOST
        if not self.steps or not self.off:
            return Precision.FINE
        if self.reach * _ROUNDINGS >= self.apart * largest:
            return Precision.LOST
        heights = np.abs(np.diff(self.values))
        some = heights > 0
        width = float(np.ptp(self.keys))
        slopes = float((heights[some] / np.diff(self.keys)[some]).sum() / heights[some].min())
        few = self.dtype == "float64" or self.steps <= _FEW_STEPS
        if few and slopes * width * (self.steps + 8) <= _SLIGHT * largest:
            return Precision.FINE
        return Precision.ON_GRID if self.fits_grid else Precision.LOST

    @cached_property
    def fits_grid(self) -> bool:
        """Whether sums of its units are exact by a code on a grid: they are not too large."""
        heights = np.abs(np.diff(self.values))
        summed = float(heights.sum() / lowest_bits(heights[heights > 0]).min())
        return summed * float(np.ptp(self.keys)) * self.grid_steps <= 4 * EXACT_WHOLE[self.dtype]

    @property
    def grid_steps(self) -> float:
        """How many steps of a grid there are to 1, so that keys are eight steps apart or more."""
        return float(2.0 ** math.ceil(math.log2(8 / self.apart)))

    def on_grid(self, code: Node, scale: float) -> Recipe:
        """Return the gate of a table by its code times ``scale``, which ``code`` has on a grid."""
        keys, values = self.keys * scale, self.values
        return Recipe((term(code),), lambda x: Table(x, keys, values, gridded=True), exact=True)

    def recipe(self) -> Linear | Recipe:
        """Return the gate; a table whose values lie on a line is that line, and needs no units."""
        at, heights = self.keys, self.values
        if self.merged:
            raise CompileError(
                "a table cannot tell apart numbers as far from each other as these; try a vocabulary "
                "of numbers closer together",
                self.where,
            )
        if not self.steps:
            return Linear(constant=float(heights[0]))
        slopes = np.diff(heights) / np.diff(at)
        if np.ptp(slopes) == 0 and float(slopes[0]).is_integer():
            constant = Linear(constant=float(heights[0] - slopes[0] * at[0]))
            return self.code.times(float(slopes[0])).plus(constant)
        return Recipe((self.code,), lambda x: Table(x, at, heights))


def lookup_of_inputs(
    node: Node, domains: Sequence[Sequence[Atom]], codes: Codes, *, off: bool
) -> Lookup:
    """Look an operation up by its inputs; ``domains`` has all values of each different one."""
    inputs = list(dict.fromkeys(node.inputs))
    columns = dict(zip(inputs, zip(*product(*domains), strict=True), strict=True))
    values = each(meaning(node), [columns[i] for i in node.inputs])
    return lookup(node, inputs, domains, values, codes, off=off)


def lookup(
    node: Node,
    by: Sequence[Node],
    domains: Sequence[Sequence[Atom]],
    values: Sequence[Atom | None],
    codes: Codes,
    *,
    off: bool,
) -> Lookup:
    """Make the table of an s-op over ``by``; ``values`` lists its value for every combination.

    Of the orders in which ``by`` can be read as the digits of one number, the one with the fewest
    steps; of those that the type of number tells apart, if there are any. ``off``: what it is looked up
    by is rounded, or approximated.
    """
    check_time(node)
    where = abbreviate(node)
    numbers = [np.array(codes.numbers(domain, where)) for domain in domains]
    for domain, among in zip(domains, numbers, strict=True):
        _require_different(domain, among, where)
    occurs = np.flatnonzero(np.array([v is not None for v in values], dtype=bool))
    if not occurs.size:
        raise CompileError("it has no value for any input", where)
    # Equal values are one number, and few of them occur.
    number = {v: codes.number(v, where) for v in dict.fromkeys(values) if v is not None}
    heights = np.array([number[v] for v in values if v is not None])
    places = np.unravel_index(occurs, [len(among) for among in numbers]) if numbers else ()
    digits = [among[place] for among, place in zip(numbers, places, strict=True)]
    some = [axis for axis, among in enumerate(numbers) if len(among) > 1]
    if codes.target.separation is not None:
        some.sort(key=lambda axis: all(isinstance(value, bool) for value in domains[axis]))
    orders = list(permutations(some)) if len(some) <= _MAX_ORDERED else [tuple(some)]
    if codes.target.separation is not None:
        # Keys that are not there are compared, too, with numbers that need not be apart from theirs:
        # the result of that is anything from 0 to 1. What says that they are not there comes before it.
        orders = [order for order in orders if _booleans_last(domains, order)]
    tables = [
        Lookup(*_ordered(by, numbers, digits, heights, order), codes.target.dtype, off, where)
        for order in orders
    ]
    return min(tables, key=lambda table: (table.precision, table.steps, table.reach / table.apart))


def _booleans_last(domains: Sequence[Sequence[Atom]], order: Sequence[int]) -> bool:
    """Return whether the digits that are booleans stand behind all others."""
    booleans = [all(isinstance(value, bool) for value in domains[axis]) for axis in order]
    return booleans == sorted(booleans)


def _ordered(
    by: Sequence[Node],
    numbers: Sequence[Vector],
    digits: Sequence[Vector],
    heights: Vector,
    order: Sequence[int],
) -> tuple[Linear, Vector, Vector, float, bool]:
    """Return the code whose digits run in this order, the last fastest; keys, values, reach, merged."""
    check_time()
    code, keys = Linear(), np.zeros(len(heights))
    reach, least = 0.0, 0.0
    for axis in reversed(order):
        gap = float(np.diff(np.sort(numbers[axis])).min())
        # Not all combinations occur: those of different digits may lie further apart than ``least``.
        factor = float(np.ceil((reach + max(least, reach / 16)) / gap)) if reach else 1.0
        least = least or gap
        reach += factor * float(np.ptp(numbers[axis]))
        code = code.plus(term(by[axis], factor))
        with np.errstate(all="ignore"):  # 1e300 times anything
            keys = keys + factor * digits[axis]
    at, first = np.unique(keys, return_index=True)
    merged = len(at) < len(keys) or not np.isfinite(at).all()
    return code, at, heights[first], float(np.abs(at).max()), merged


def _require_different(domain: Sequence[Atom], numbers: NDArray[np.float64], where: str) -> None:
    """Raise where two values of a source are one number in the stream."""
    if len(numbers) > 1 and not np.diff(np.sort(numbers)).min() > 0:
        same = np.sort(numbers)[np.flatnonzero(np.diff(np.sort(numbers)) <= 0)[0]]
        values_at = [short(v) for v, n in zip(domain, numbers, strict=True) if n == same]
        raise CompileError(
            f"a table cannot tell apart {' and '.join(values_at[:2])}, which are one number in the "
            "stream; try a vocabulary without one of them",
            where,
        )


def rounded(node: Node, known: Sequence[Atom], codes: Codes) -> Recipe:
    """Return the nearest of few integers, where the argument is one of them up to rounding."""
    numbers = np.array(sorted(codes.numbers(known, abbreviate(node))))
    return Recipe((term(node.inputs[0]),), lambda x: Table(x, numbers, numbers))
