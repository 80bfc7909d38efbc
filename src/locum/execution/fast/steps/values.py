"""Values of a plan: steps whose axes are named, and operations that align them.

A value is a step together with the loop variables that its axes stand for. Axes a value does not
depend on are left out until an operation needs them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from locum.execution.fast.steps import tiling
from locum.execution.fast.steps.step import Step, Steps
from locum.execution.fast.symbolic.affine import Box
from locum.execution.types import BOOLEAN


class LabelledArray(NamedTuple):
    """An array, and the variable that each of its axes stands for."""

    step: Step
    axes: tuple[str, ...]


class Arrangement:
    """Makes steps of values over one box of loop variables."""

    def __init__(self, steps: Steps, box: Box) -> None:
        self.steps, self.box = steps, box

    def number(self, value: float) -> LabelledArray:
        """Return a number, which has no axes."""
        return LabelledArray(self.steps.number(value), ())

    def multiplied(self, factors: Sequence[LabelledArray]) -> LabelledArray:
        """Multiply values, one by one."""
        if not factors:
            return self.number(1.0)
        result = factors[0]
        for factor in factors[1:]:
            result = self.apply("multiply", (result, factor))
        return result

    def summed(self, value: LabelledArray, sums: Sequence[str], op: str = "sum") -> LabelledArray:
        """Reduce along some of its axes."""
        along = tuple(n for n, v in enumerate(value.axes) if v in sums)
        if not along:
            return value
        kept = tuple(v for v in value.axes if v not in sums)
        shape = [self.box[v] for v in kept]
        return LabelledArray(self.steps.make(op, (value.step,), shape, (along,), op == "any"), kept)

    def apply(self, op: str, arguments: Sequence[LabelledArray]) -> LabelledArray:
        """Apply an elementwise operation to values, aligned on all their axes."""
        if op in ("and", "or", "not"):
            arguments = [self.truth(a) for a in arguments]
        elif op == "if_else":
            arguments = [self.truth(arguments[0]), *self.alike(arguments[1:])]
        elif op == "indicator":
            return self.numeric(self.truth(arguments[0]))
        elif op not in BOOLEAN:
            arguments = [self.numeric(a) for a in arguments]
        widest = max(arguments, key=lambda a: len(a.axes))
        axes = tuple(dict.fromkeys(v for a in (widest, *arguments) for v in a.axes))
        shape = tuple(self.box[v] for v in axes)
        self.steps.require_room(math.prod(shape), tiling.LARGEST_TEMPORARY)
        steps = [self.aligned(a, axes) for a in arguments]
        boolean = op in BOOLEAN or (op == "if_else" and all(a.step.boolean for a in arguments))
        return LabelledArray(self.steps.make("apply", steps, shape, (op,), boolean), axes)

    def aligned(self, value: LabelledArray, axes: Sequence[str]) -> Step:
        """Return the array with its axes in this order, and axes of size 1 for those it lacks."""
        if not value.axes:
            return value.step
        present = [v for v in axes if v in value.axes]
        order = tuple(value.axes.index(v) for v in present)
        step = self.steps.permute(value.step, order)
        if len(present) == len(axes):
            return step
        first = next(n for n, v in enumerate(axes) if v in value.axes)  # broadcasting adds the leading
        return self.steps.reshape(step, [self.box[v] if v in value.axes else 1 for v in axes[first:]])

    def placed(self, value: LabelledArray, axes: Sequence[str]) -> Step:
        """Return the array over exactly these axes."""
        shape = [self.box[v] for v in axes]
        step = self.aligned(value, axes)
        return self.steps.expand(step, shape)

    def numeric(self, value: LabelledArray) -> LabelledArray:
        """Return booleans as 0 and 1."""
        if not value.step.boolean:
            return value
        return LabelledArray(self.steps.make("to_float", (value.step,), value.step.shape), value.axes)

    def alike(self, values: Sequence[LabelledArray]) -> list[LabelledArray]:
        """Return all booleans, or all numbers."""
        return (
            list(values) if all(v.step.boolean for v in values) else [self.numeric(v) for v in values]
        )

    def truth(self, value: LabelledArray) -> LabelledArray:
        """Return numbers as booleans, as Python sees them."""
        if value.step.boolean:
            return value
        zero = self.steps.number(0.0)
        step = self.steps.make("apply", (value.step, zero), value.step.shape, ("not_equal",), True)
        return LabelledArray(step, value.axes)
