"""Express functions of finitely many arguments as tables of one number.

Several arguments are combined into one *code*: a linear combination with factors so large that
different combinations of values have different sums. The inputs are s-ops and their values. The result
is a :class:`Lookup`, which is converted to a :class:`Recipe` for a gate, or to a linear combination if
no gate is needed.
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

#: Maximum number of sources for which all orders in the code are tried, to minimise steps.
_MAX_ORDERED = 4
#: Minimum distance of the keys of a lookup, as a multiple of the rounding error of the code.
_ROUNDINGS = 256
#: Maximum rounding error of a table relative to its smallest step, and maximum number of steps of a
#: table with rounding errors in float32.
_SLIGHT = 2.0**-7
_FEW_STEPS = 4


class Precision(IntEnum):
    """Whether a table can be looked up precisely: directly, by a code on a grid, or by neither."""

    FINE = 0
    ON_GRID = 1
    LOST = 2


@dataclass(frozen=True)
class Lookup:
    """A table that is indexed by the code of its arguments: its keys in order, and their values."""

    code: Linear
    keys: Vector
    values: Vector
    #: The largest absolute value of the code.
    reach: float
    #: Whether several combinations of arguments have the same code in floating point, or a code is not
    #: finite.
    merged: bool
    dtype: str
    #: Whether the arguments may have errors.
    off: bool
    #: The text of the s-op, for error messages.
    where: str

    @cached_property
    def steps(self) -> int:
        """Number of keys at which the value differs from the value of the previous key.

        Each step needs at most two hidden units.
        """
        return int(np.count_nonzero(np.diff(self.values)))

    @cached_property
    def apart(self) -> float:
        """The smallest distance between adjacent keys with different values."""
        return float(np.diff(self.keys)[np.diff(self.values) != 0].min(initial=math.inf))

    @cached_property
    def precision(self) -> Precision:
        """The precision with which hidden units of the network's type can look up the table."""
        largest = EXACT_WHOLE[self.dtype]
        if self.merged:
            return Precision.LOST
        if not self.steps or not self.off:
            return Precision.FINE
        if self.reach * _ROUNDINGS >= self.apart * largest:
            return Precision.LOST
        if self.is_slightly_rounded and (self.dtype == "float64" or self.steps <= _FEW_STEPS):
            return Precision.FINE
        return Precision.ON_GRID if self.fits_grid else Precision.LOST

    @cached_property
    def is_slightly_rounded(self) -> bool:
        """Whether the rounding error of the hidden units is small compared with the smallest step."""
        heights = np.abs(np.diff(self.values))
        some = heights > 0
        width = float(np.ptp(self.keys))
        slopes = float((heights[some] / np.diff(self.keys)[some]).sum() / heights[some].min())
        return slopes * width * (self.steps + 8) <= _SLIGHT * EXACT_WHOLE[self.dtype]

    @cached_property
    def fits_grid(self) -> bool:
        """Whether sums of the hidden units are exact for a code on a grid, since they are small."""
        heights = np.abs(np.diff(self.values))
        summed = float(heights.sum() / lowest_bits(heights[heights > 0]).min())
        return summed * float(np.ptp(self.keys)) * self.grid_steps <= 4 * EXACT_WHOLE[self.dtype]

    @property
    def grid_steps(self) -> float:
        """Number of grid steps per unit.

        Adjacent keys with different values are at least eight steps apart.
        """
        return float(2.0 ** math.ceil(math.log2(8 / self.apart)))

    def on_grid(self, code: Node, scale: float) -> Recipe:
        """Return the gate of the table, given its code times ``scale``, rounded to a grid."""
        keys, values = self.keys * scale, self.values
        return Recipe((term(code),), lambda x: Table(x, keys, values, gridded=True), exact=True)

    def recipe(self) -> Linear | Recipe:
        """Return the gate of the table, or a linear combination.

        Raise CompileError if different arguments have the same key. A table that is a linear function
        of its code with an integer slope needs no units.
        """
        at, heights = self.keys, self.values
        if self.merged:
            raise CompileError(
                f"expected a different {self.dtype} number for each combination of values, got equal "
                "numbers for several combinations",
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
    """Return the table of an operation over its inputs; ``domains`` lists the values of each input."""
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
    """Return the table of an s-op over the s-ops ``by``.

    ``values`` contains the value for each combination of ``domains``, the possible values of ``by``.
    The s-ops ``by`` are the digits of the code. Up to four digits are tried in all suitable orders. Of
    the orders with the best precision, the order with the fewest steps is used. ``off`` means that
    arguments may have errors.
    """
    check_time(node)
    where = abbreviate(node)
    numbers = [np.array(codes.numbers(domain, where)) for domain in domains]
    for domain, among in zip(domains, numbers, strict=True):
        _require_different(domain, among, where)
    occurs = np.flatnonzero(np.array([v is not None for v in values], dtype=bool))
    if not occurs.size:
        raise CompileError("the s-op is undefined for every input", where)
    # Each different value is encoded only once, since a long table has few different values.
    number = {v: codes.number(v, where) for v in dict.fromkeys(values) if v is not None}
    heights = np.array([number[v] for v in values if v is not None])
    places = np.unravel_index(occurs, [len(among) for among in numbers]) if numbers else ()
    digits = [among[place] for among, place in zip(numbers, places, strict=True)]
    some = [axis for axis, among in enumerate(numbers) if len(among) > 1]
    if codes.target.separation is not None:
        some.sort(key=lambda axis: all(isinstance(value, bool) for value in domains[axis]))
    orders = list(permutations(some)) if len(some) <= _MAX_ORDERED else [tuple(some)]
    if codes.target.separation is not None:
        # Keys past the end of the input are also compared, and may be close to the query, so that the
        # result is between 0 and 1. The digit that marks them as missing must be more significant.
        orders = [order for order in orders if _booleans_last(domains, order)]
    tables = [
        Lookup(*_ordered(by, numbers, digits, heights, order), codes.target.dtype, off, where)
        for order in orders
    ]
    return min(tables, key=lambda table: (table.precision, table.steps, table.reach / table.apart))


def _booleans_last(domains: Sequence[Sequence[Atom]], order: Sequence[int]) -> bool:
    """Return whether all digits after the first boolean digit are booleans."""
    booleans = [all(isinstance(value, bool) for value in domains[axis]) for axis in order]
    return booleans == sorted(booleans)


def _ordered(
    by: Sequence[Node],
    numbers: Sequence[Vector],
    digits: Sequence[Vector],
    heights: Vector,
    order: Sequence[int],
) -> tuple[Linear, Vector, Vector, float, bool]:
    """Return the code with its digits in the given order, of which the last varies fastest.

    Also return the keys, their values, the largest absolute key, and whether some keys are equal or not
    finite.
    """
    check_time()
    code, keys = Linear(), np.zeros(len(heights))
    reach, least = 0.0, 0.0
    for axis in reversed(order):
        gap = float(np.diff(np.sort(numbers[axis])).min())
        # Not all combinations occur, so combinations with different digits may be further apart than
        # ``least``.
        factor = float(np.ceil((reach + max(least, reach / 16)) / gap)) if reach else 1.0
        least = least or gap
        reach += factor * float(np.ptp(numbers[axis]))
        code = code.plus(term(by[axis], factor))
        with np.errstate(all="ignore"):  # products with numbers such as 1e300 may overflow
            keys = keys + factor * digits[axis]
    at, first = np.unique(keys, return_index=True)
    merged = len(at) < len(keys) or not np.isfinite(at).all()
    return code, at, heights[first], float(np.abs(at).max()), merged


def _require_different(domain: Sequence[Atom], numbers: NDArray[np.float64], where: str) -> None:
    """Raise CompileError if two values of a source have the same number in the residual stream."""
    if len(numbers) > 1 and not np.diff(np.sort(numbers)).min() > 0:
        same = np.sort(numbers)[np.flatnonzero(np.diff(np.sort(numbers)) <= 0)[0]]
        values_at = [short(v) for v, n in zip(domain, numbers, strict=True) if n == same]
        raise CompileError(
            f"expected values with different encodings, got {' and '.join(values_at[:2])}, which are "
            "encoded by the same number; try a vocabulary without one of them",
            where,
        )


def rounded(node: Node, known: Sequence[Atom], codes: Codes) -> Recipe:
    """Return the gate that rounds the input of ``node`` to the nearest of the integers ``known``.

    The input equals one of these integers up to rounding errors.
    """
    numbers = np.array(sorted(codes.numbers(known, abbreviate(node))))
    return Recipe((term(node.inputs[0]),), lambda x: Table(x, numbers, numbers))
