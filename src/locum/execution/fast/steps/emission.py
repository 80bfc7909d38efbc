"""From terms to steps: each factor an array over its axes, each sum of products a contraction."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from locum.execution.fast.steps.contraction import contract
from locum.execution.fast.steps.step import Step, Steps
from locum.execution.fast.steps.values import Arrangement, LabelledArray
from locum.execution.fast.symbolic.affine import Affine, Box, bounds
from locum.execution.fast.symbolic.signals import Stuck
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

#: Values that a scatter adds up at most: all are held at once.
_LARGEST_SCATTER = 2**28


class LoadSource(NamedTuple):
    """Where a load finds its numbers: an array seen as one row, strides of variables, its beginning."""

    base: Step
    strides: tuple[tuple[str, int], ...]
    offset: int


class Emission(Arrangement):
    """Emits the steps for terms over one box; ``load`` says where the numbers of a node are."""

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
        """Return the sum of terms, over the axes that occur in any of them."""
        over = {t.coefficient.denominator if isinstance(t.coefficient, Fraction) else 1 for t in terms}
        if len(terms) > 1 and len(over) == 1 and over != {1}:
            # The mean of several ranges of keys: added up first, then divided, as any mean is.
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
        """Return a term without its sign, and the sign."""
        factors = [self.factor(f) for f in term.factors]
        masks = [self.guard(g) for g in term.guards]
        used = {v for value in (*factors, *masks) for v in value.axes}
        coefficient: Coefficient = term.coefficient
        for v in term.sums:
            if v not in used:
                coefficient = coefficient * self.box[v]
        sums = [v for v in term.sums if v in used]
        factors = [self.numeric(f) for f in factors] if len(factors) > 1 or sums else factors
        # What is masked along a summed axis is masked before the sum, all else after it.
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
        # Divided by the count, as a mean is: times its reciprocal would round twice.
        over = coefficient.denominator if isinstance(coefficient, Fraction) else 1
        times = coefficient.numerator if isinstance(coefficient, Fraction) else coefficient
        for op, by in (("multiply", times), ("divide", over)):
            if by != 1:
                result = self.apply(op, (result, self.number(by)))
        return sign, result

    def masked(self, value: LabelledArray, masks: Iterable[LabelledArray]) -> LabelledArray:
        """Return the value where all masks hold, 0 elsewhere (chosen, not multiplied: 0·∞ is NaN)."""
        return self.apply("if_else", (self.all_of(masks), value, self.number(0.0)))

    def all_of(self, masks: Iterable[LabelledArray]) -> LabelledArray:
        """Return where all booleans hold."""
        first, *others = masks
        for mask in others:
            first = self.apply("and", (first, mask))
        return first

    # Factors ----------------------------------------------------------------------------------------

    def factor(self, factor: Factor) -> LabelledArray:
        """Return a factor as an array."""
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
        """Return a strided view of a buffer; a gather where it reaches outside or runs backwards."""
        base, strides, offset = self._load(load, self.box)
        parts = sorted(strides, key=lambda part: -part[1])  # as they lie, rows before columns
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
        """Return the numbers of an array at positions that data gives."""
        base, _, start = self._fetch(fetch, self.box)
        where = self.numeric(self.total(fetch.position))
        least, greatest = value_bounds(fetch.position, self.box)
        inside = start <= least and greatest < start + base.size
        settings = (start, inside, fetch.default)
        step = self.steps.make("fetch", (base, where.step), where.step.shape, settings, base.boolean)
        return LabelledArray(step, where.axes)

    def place_of_greatest(self, factor: PlaceOfGreatest) -> LabelledArray:
        """Return the first place along an axis at which a value is greatest."""
        value = self.numeric(self.total(factor.values))
        if factor.along not in value.axes:
            return self.number(0.0)
        axis = value.axes.index(factor.along)
        kept = tuple(v for v in value.axes if v != factor.along)
        shape = [self.box[v] for v in kept]
        return LabelledArray(self.steps.make("argmax", (value.step,), shape, (axis,)), kept)

    def scattered(self, factor: Scattered) -> LabelledArray:
        """Return the sums of the values that are sent to each place."""
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
        """Return numbers from a table of the program."""
        least, greatest = bounds(entry.key, self.box)
        entries = entry.entries()
        numbers = np.array([entries[e] for e in range(least, greatest + 1)], dtype=float)
        base = self.steps.constant(("table", id(entry.node), least, greatest), numbers)
        axes = entry.key.variables
        where = self.steps.expression(entry.key - least, axes, self.box)
        return LabelledArray(self.steps.make("gather", (base, where), where.shape), axes)

    def guard(self, guard: Guard) -> LabelledArray:
        """Return a guard as a mask."""
        axes = guard.e.variables
        whole = self.steps.expression(guard.e, axes, self.box)
        op = "greater_equal" if guard.relation == ">=" else "equal"
        zero = self.steps.constant(("zero",), np.asarray(0))
        return LabelledArray(self.steps.make("apply", (whole, zero), whole.shape, (op,), True), axes)

    def function(self, factor: Apply) -> LabelledArray:
        """Return an elementwise operation of the table."""
        arguments = [self.total(a) for a in factor.arguments]
        return self.apply(factor.op, arguments)

    def greatest(self, factor: Greatest) -> LabelledArray:
        """Return a maximum or a minimum along axes, of what passes the guards and filters."""
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
