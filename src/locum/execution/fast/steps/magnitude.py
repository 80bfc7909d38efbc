"""How large whole numbers can become in a plan: beyond 2⁵³ floating point no longer holds them all.

Dense execution computes with Python's unbounded whole numbers. A plan on whole tokens computes them in
floating point, which is exact as long as none exceeds 2⁵³; whether that can happen follows from the
largest token.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from locum.execution.fast.steps.step import Step
from locum.graph.atoms import LARGEST_EXACT

_VIEWS = ("view", "reshape", "permute", "expand", "gather", "maximum", "minimum", "to_float")
#: Elementwise operations on whole numbers whose result is whole, and what bounds it.
_BOUNDS: Mapping[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a + b,
    "multiply": lambda a, b: a * b,
    "modulo": lambda a, b: b,
    "floor_divide": lambda a, b: a,
    "minimum": max,
    "maximum": max,
    "if_else": lambda condition, a, b: max(a, b),
    "power": lambda a, b: math.inf if a > 1 else 1.0,
    "negate": lambda a: a,
    "absolute": lambda a: a,
    "floor": lambda a: a,
    "round": lambda a: a,
}


def greatest_whole(steps: Sequence[Step], largest: float) -> float:
    """A bound on all whole numbers that the steps compute, given one for the tokens."""
    bounds: dict[Step, float | None] = {}  # None: not whole
    for step in steps:
        bounds[step] = _bound(step, [bounds[i] for i in step.inputs], largest)
    return max((bound for bound in bounds.values() if bound is not None), default=0.0)


def _bound(step: Step, inputs: list[float | None], largest: float) -> float | None:
    if step.value is not None:
        return _constant(step)
    if step.op == "input":
        return largest
    whole = [bound for bound in inputs if bound is not None]
    if step.op in _VIEWS:
        return inputs[0]
    if step.boolean:
        return 1.0
    if len(whole) < len(inputs):
        return None
    if step.op == "sum":
        return whole[0] * step.inputs[0].size / max(1, step.size)
    if step.op == "matmul":
        return whole[0] * whole[1] * step.inputs[0].shape[-1]
    if step.op in ("concatenate", "assemble"):
        return max(whole)
    if step.op == "apply" and step.settings[0] in _BOUNDS:
        return _BOUNDS[str(step.settings[0])](*whole)
    return None


def _constant(step: Step) -> float | None:
    value = step.value
    assert value is not None
    if value.dtype == np.bool_:
        return 1.0
    if not value.size or not np.isfinite(value).all() or (value != np.floor(value)).any():
        return None
    largest = float(np.abs(value).max())
    return (
        largest if largest <= LARGEST_EXACT else None
    )  # larger ones are floats: whole ones are not lowered
