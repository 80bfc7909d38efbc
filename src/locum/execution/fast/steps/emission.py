"""Emit steps for terms: factors become arrays, and most sums of products become contractions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from locum.execution.fast.steps.step import Arrangement, LabelledArray, Step, Steps, row_major
from locum.execution.fast.symbolic.affine import Affine, Box, Stuck, bounds
from locum.execution.fast.symbolic.terms import (
    Apply,
    Coefficient,
    Entry,
    Factor,
    Fetch,
    Greatest,
    Guard,
    Literal,
    Load,
    PlaceOfGreatest,
    Scattered,
    Sum,
    Term,
    value_bounds,
)


def contract(
    arrangement: Arrangement, factors: Sequence[LabelledArray], sums: Sequence[str]
) -> LabelledArray:
    """Return Σ over ``sums`` of the product of the factors, computed as pairwise products."""
    values = [
        arrangement.summed(value, [v for v in sums if _only_in(v, place, factors)])
        for place, value in enumerate(factors)
    ]
    while len(values) > 1:
        a, b = min(
            itertools.combinations(values, 2),
            key=lambda pair: _size_after(arrangement, pair, values, sums),
        )
        others = [v for v in values if v is not a and v is not b]
        needed = {axis for other in others for axis in other.axes}
        now = [v for v in sums if v in a.axes and v in b.axes and v not in needed]
        values = [_pair(arrangement, a, b, now), *others]
    return arrangement.summed(values[0], sums)


def _only_in(axis: str, place: int, factors: Sequence[LabelledArray]) -> bool:
    return all((axis in value.axes) == (n == place) for n, value in enumerate(factors))


def _size_after(
    arrangement: Arrangement,
    pair: tuple[LabelledArray, LabelledArray],
    values: Sequence[LabelledArray],
    sums: Sequence[str],
) -> int:
    a, b = pair
    needed = {axis for other in values if other is not a and other is not b for axis in other.axes}
    kept = {v for v in (*a.axes, *b.axes) if v not in sums or v in needed}
    return math.prod(arrangement.box[v] for v in kept)


def _pair(
    arrangement: Arrangement, a: LabelledArray, b: LabelledArray, sums: Sequence[str]
) -> LabelledArray:
    """Return Σ over ``sums`` of a · b; both factors must have all axes in ``sums``."""
    if not sums:
        return arrangement.multiplied((a, b))
    shared = [v for v in a.axes if v in b.axes and v not in sums]
    left = [v for v in a.axes if v not in b.axes]
    right = [v for v in b.axes if v not in a.axes]
    # Axes that cannot be merged into one without a copy become a batch.
    left_batch, rows = _one_axis(a, left)
    right_batch, columns = _one_axis(b, right)
    batch = [*shared, *left_batch, *right_batch]
    inner = _inner_order(a, b, sums)
    x = _operand(arrangement, a, batch, rows, inner)
    y = _operand(arrangement, b, batch, inner, columns)
    axes = (*batch, *rows, *columns)
    shape = [arrangement.box[v] for v in axes]
    flat = [*shape[: len(batch)], x.shape[-2], y.shape[-1]]
    product = arrangement.steps.make("matmul", (x, y), flat)
    return LabelledArray(arrangement.steps.reshape(product, shape), axes)


def _inner_order(a: LabelledArray, b: LabelledArray, sums: Sequence[str]) -> list[str]:
    """Return the summed axes in their order in the larger factor, which may then need no copy."""
    larger = a if a.step.size >= b.step.size else b
    return [v for v in larger.axes if v in sums]


def _one_axis(value: LabelledArray, axes: list[str]) -> tuple[list[str], list[str]]:
    """Split ``axes`` into batch axes and axes that merge into one without a copy.

    If this would result in many small products, there are no batch axes, and merging needs a copy.
    """
    strides = dict(zip(value.axes, _strides(value.step), strict=True))
    sizes = dict(zip(value.axes, value.step.shape, strict=True))
    ordered = sorted(axes, key=lambda v: -strides[v])
    for cut in range(len(ordered)):
        merged = ordered[cut:]
        if all(strides[u] == strides[v] * sizes[v] for u, v in itertools.pairwise(merged)):
            repeated = ordered[:cut]
            if math.prod(sizes[v] for v in repeated) > math.prod(sizes[v] for v in merged):
                break  # many small products are slower than a copy
            return repeated, merged
    return [], ordered


def _strides(step: Step) -> Sequence[int]:
    """Return the distance in memory between neighbouring elements along each axis, in elements."""
    if step.op == "view":
        strides = step.settings[0]
        assert isinstance(strides, tuple)
        return strides
    if step.op == "permute":
        order = step.settings[0]
        assert isinstance(order, tuple)
        return [_strides(step.inputs[0])[n] for n in order]
    return row_major(step.shape)


def _operand(
    arrangement: Arrangement,
    value: LabelledArray,
    batch: list[str],
    first: list[str],
    second: list[str],
) -> Step:
    """Return an operand of a batched matrix product with the axes [batch…, first, second].

    Batch axes that ``value`` lacks have size 1, or are omitted if they come first.
    """
    own = [v for v in batch if v in value.axes]
    order = tuple(value.axes.index(v) for v in (*own, *first, *second))
    step = arrangement.steps.permute(value.step, order)
    box = arrangement.box
    sizes = [box[v] if v in value.axes else 1 for v in batch]
    flat = [math.prod(box[v] for v in group) for group in (first, second)]
    while sizes and sizes[0] == 1 and batch[len(batch) - len(sizes)] not in value.axes:
        sizes = sizes[1:]  # broadcasting adds the leading axes
    return arrangement.steps.reshape(step, [*sizes, *flat])


#: Maximum number of values that a scatter adds, since all of them are in memory at once.
_LARGEST_SCATTER = 2**28


class LoadSource(NamedTuple):
    """The elements that a load reads: an array, the stride of each variable, and an offset.

    Strides and offset count elements of the flattened array. For a fetch, there are no strides, and the
    offset is the position of the first element of the array.
    """

    base: Step
    strides: tuple[tuple[str, int], ...]
    offset: int


class Emission(Arrangement):
    """A factory of steps for terms over one box; ``load`` and ``fetch`` return the arrays of nodes."""

    def __init__(
        self,
        steps: Steps,
        box: Box,
        load: Callable[[Load, Box], LoadSource],
        fetch: Callable[[Fetch, Box], LoadSource],
    ) -> None:
        super().__init__(steps, box)
        self._load, self._fetch = load, fetch

    # Sums and products ------------------------------------------------------------------------------

    def total(self, terms: Sum) -> LabelledArray:
        """Return the sum of terms as an array with an axis for each variable on which it depends."""
        over = {t.coefficient.denominator if isinstance(t.coefficient, Fraction) else 1 for t in terms}
        if len(terms) > 1 and len(over) == 1 and over != {1}:
            # Add first, then divide, as in a mean. An example is a mean over several ranges of keys.
            (count,) = over
            whole = self.total(tuple(replace(t, coefficient=t.coefficient * count) for t in terms))
            return self.apply("divide", (whole, self.number(count)))
        sum_so_far: LabelledArray | None = None
        for term in terms:
            sign, value = self.term(term)
            if sum_so_far is None:
                sum_so_far = value if sign > 0 else self.apply("negate", (value,))
            else:
                sum_so_far = self.apply("add" if sign > 0 else "subtract", (sum_so_far, value))
        return sum_so_far or self.number(0.0)

    def term(self, term: Term) -> tuple[int, LabelledArray]:
        """Return the sign of a term, and the array of the term without the sign."""
        factors = [self.factor(f) for f in term.factors]
        masks = [self.guard(g) for g in term.guards]
        used = {v for value in (*factors, *masks) for v in value.axes}
        coefficient: Coefficient = term.coefficient
        for v in term.sums:
            if v not in used:
                coefficient = coefficient * self.box[v]
        sums = [v for v in term.sums if v in used]
        factors = [self.numeric(f) for f in factors] if len(factors) > 1 or sums else factors
        # Masks along a summed axis are applied before the sum, all others after it.
        inner = [mask for mask in masks if not set(sums).isdisjoint(mask.axes)]
        outer = [mask for mask in masks if mask not in inner]
        if inner:
            result = self.summed(self.masked(self.multiplied(factors), inner), sums)
        elif sums:
            result = contract(self, factors, sums)
        else:
            result = self.multiplied(factors)
        if outer:
            result = self.masked(result, outer)
        sign = 1
        if coefficient < 0:
            sign, coefficient = -1, -coefficient
        # Divide by the count as a mean does; multiplying by the reciprocal would round twice.
        over = coefficient.denominator if isinstance(coefficient, Fraction) else 1
        times = coefficient.numerator if isinstance(coefficient, Fraction) else coefficient
        for op, by in (("multiply", times), ("divide", over)):
            if by != 1:
                result = self.apply(op, (result, self.number(by)))
        return sign, result

    def masked(self, value: LabelledArray, masks: Iterable[LabelledArray]) -> LabelledArray:
        """Return the value where all masks are true, else 0.

        The zeros are selected by ``if_else``, since 0 · ∞ is NaN.
        """
        return self.apply("if_else", (self.all_of(masks), value, self.number(0.0)))

    def all_of(self, masks: Iterable[LabelledArray]) -> LabelledArray:
        """Return the conjunction of boolean arrays."""
        first, *others = masks
        for mask in others:
            first = self.apply("and", (first, mask))
        return first

    # Factors ----------------------------------------------------------------------------------------

    def factor(self, factor: Factor) -> LabelledArray:
        """Return the array of a factor of any kind."""
        if isinstance(factor, Load):
            return self.load(factor)
        if isinstance(factor, Entry):
            return self.entry(factor)
        if isinstance(factor, Literal):
            return self.number(factor.value)
        if isinstance(factor, Apply):
            return self.function(factor)
        if isinstance(factor, Greatest):
            return self.greatest(factor)
        if isinstance(factor, PlaceOfGreatest):
            return self.place_of_greatest(factor)
        if isinstance(factor, Fetch):
            return self.fetch(factor)
        if isinstance(factor, Scattered):
            return self.scattered(factor)
        axes = tuple(factor.e.variables)
        whole = self.steps.expression(factor.e, axes, self.box)
        return LabelledArray(self.steps.make("to_float", (whole,), whole.shape), axes)

    def load(self, load: Load) -> LabelledArray:
        """Return a strided view of a buffer or of the tokens, or a gather.

        A gather is needed if positions are outside of the array or decrease along an axis.
        """
        base, strides, offset = self._load(load, self.box)
        parts = sorted(strides, key=lambda part: -part[1])  # in memory order, rows before columns
        size = base.size
        axes = tuple(v for v, _ in parts)
        shape = tuple(self.box[v] for v in axes)
        least = offset + sum(min(0, k * (self.box[v] - 1)) for v, k in parts)
        greatest = offset + sum(max(0, k * (self.box[v] - 1)) for v, k in parts)
        if least >= 0 and greatest < size and all(k > 0 for _, k in parts):
            return LabelledArray(self.steps.view(base, shape, tuple(k for _, k in parts), offset), axes)
        where = self.steps.expression(Affine(parts, offset), axes, self.box)
        clipped = self.steps.make("clip", (where,), where.shape, (0, size - 1))
        return LabelledArray(self.steps.make("gather", (base, clipped), shape, (), base.boolean), axes)

    def fetch(self, fetch: Fetch) -> LabelledArray:
        """Return the elements of an array at positions computed from data, and the default outside."""
        base, _, start = self._fetch(fetch, self.box)
        where = self.numeric(self.total(fetch.position))
        least, greatest = value_bounds(fetch.position, self.box)
        inside = start <= least and greatest < start + base.size
        settings = (start, inside, fetch.default)
        step = self.steps.make("fetch", (base, where.step), where.step.shape, settings, base.boolean)
        return LabelledArray(step, where.axes)

    def place_of_greatest(self, factor: PlaceOfGreatest) -> LabelledArray:
        """Return the first index along an axis at which a value is largest."""
        value = self.numeric(self.total(factor.values))
        if factor.along not in value.axes:
            return self.number(0.0)
        axis = value.axes.index(factor.along)
        kept = tuple(v for v in value.axes if v != factor.along)
        shape = [self.box[v] for v in kept]
        return LabelledArray(self.steps.make("argmax", (value.step,), shape, (axis,)), kept)

    def scattered(self, factor: Scattered) -> LabelledArray:
        """Return, for each position, the sum of the values whose target is this position."""
        target, values = (self.numeric(self.total(t)) for t in (factor.target, factor.values))
        rows = [v for v, _ in sorted(factor.place.parts, key=lambda part: -part[1])]
        together = dict.fromkeys((*target.axes, *values.axes))
        kept = [v for v in together if v not in factor.sums]
        axes = [*kept, *(v for v in factor.sums if v in together)]
        repeated = math.prod(self.box[v] for v in factor.sums if v not in together)
        if math.prod(self.box[v] for v in axes) > _LARGEST_SCATTER or repeated > 1:
            raise Stuck("a scatter of too many values")
        steps = [self.placed(value, axes) for value in (target, values)]
        others = [self.box[v] for v in kept]
        size = math.prod(self.box[v] for v in rows)
        result = self.steps.make("scatter", steps, [size, *others], (factor.place.constant,))
        shape = [*(self.box[v] for v in rows), *others]
        return LabelledArray(self.steps.reshape(result, shape), (*rows, *kept))

    def entry(self, entry: Entry) -> LabelledArray:
        """Return numbers from a ``lookup`` table of the program, at integer keys."""
        least, greatest = bounds(entry.key, self.box)
        entries = entry.entries()
        numbers = np.array([entries[e] for e in range(least, greatest + 1)], dtype=float)
        base = self.steps.constant(("table", id(entry.node), least, greatest), numbers)
        axes = entry.key.variables
        where = self.steps.expression(entry.key - least, axes, self.box)
        return LabelledArray(self.steps.make("gather", (base, where), where.shape), axes)

    def guard(self, guard: Guard) -> LabelledArray:
        """Return a guard as a boolean array."""
        axes = guard.e.variables
        whole = self.steps.expression(guard.e, axes, self.box)
        op = "greater_equal" if guard.relation == ">=" else "equal"
        zero = self.steps.constant(("zero",), np.asarray(0))
        return LabelledArray(self.steps.make("apply", (whole, zero), whole.shape, (op,), True), axes)

    def function(self, factor: Apply) -> LabelledArray:
        """Return the array of an elementwise operation, applied to the arrays of its arguments."""
        arguments = [self.total(a) for a in factor.arguments]
        return self.apply(factor.op, arguments)

    def greatest(self, factor: Greatest) -> LabelledArray:
        """Return the maximum or minimum over the elements that satisfy all guards and filters.

        If no element satisfies them, the result is the default.
        """
        value = self.numeric(self.total(factor.values))
        masks = [self.guard(g) for g in factor.guards]
        masks += [self.truth(self.total(f)) for f in factor.filters]
        op = "maximum" if factor.sign > 0 else "minimum"
        if not masks:
            missing = [v for v in factor.sums if v not in value.axes]
            return self.summed(value, [v for v in factor.sums if v not in missing], op)
        mask = self.all_of(masks)
        never = self.number(-math.inf if factor.sign > 0 else math.inf)
        value = self.apply("if_else", (mask, value, never))
        reduced = self.summed(value, factor.sums, op)
        some = self.summed(mask, factor.sums, "any")
        if some.step.value is not None and some.step.value.all():
            return reduced
        return self.apply("if_else", (some, reduced, self.number(factor.default)))
