"""Make plans of programs for given shapes, dtypes and devices, and cache them.

>>> from locum.graph import build
>>> program = build("add", build("tokens", cast="asis"), build("indices"))
>>> plan(program, 3)(np.array([10.0, 20.0, 30.0]))
array([10., 21., 32.])
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from locum.errors import ExecutionError, GraphError, InputError
from locum.execution.fast import structured
from locum.execution.fast.plan import Plan
from locum.execution.fast.planning import Blueprint, Segment, blueprint
from locum.execution.fast.steps.backends import Backend, backend_for
from locum.execution.fast.steps.fusion import fused, in_order
from locum.execution.fast.steps.step import Shape, Steps
from locum.execution.fast.structured import Unstructured
from locum.execution.fast.symbolic.affine import NotNumeric, Stuck
from locum.execution.fast.symbolic.reuse import clear_lowered
from locum.graph import Node, Sort, abbreviate, sort_of
from locum.graph.wellformed import require_program
from locum.shared_state import BoundedCache

#: Maximum number of elements of an array of an IEEE plan, unless operands or results are larger.
_LARGEST_TEMPORARY = 2**29
_plans, _blueprints = BoundedCache[Plan](1_024), BoundedCache[Blueprint](1_024)


def plan(
    program: Node,
    length: int,
    *,
    positions: range | None = None,
    segments: Sequence[int | Shape] | None = None,
    like: Any = None,
    names: Mapping[Node, str] | None = None,
    strict: bool = False,
) -> Plan:
    """Return the plan of a program for ``length`` tokens, from the cache if possible.

    ``positions`` is the range of positions of the result, by default all. ``segments`` contains the
    sizes or shapes of the arrays that contain the tokens, by default one array. Most steps that need
    only one of these arrays read it directly; the others read the concatenated arrays. Missing tokens
    at the end are blanks, which are 0. ``like`` is an array with the library, dtype and device of the
    arguments, by default a NumPy array of float64. With ``strict``, an error is raised instead of
    comparing all pairs of positions.

    Plans compute with arrays of numbers. If an array would contain strings, :class:`ExecutionError` is
    raised.
    """
    length, asked, shapes = _checked(length, positions, segments)
    backend = backend_for(like)
    result = _plan({program: asked}, length, tuple(map(Segment, shapes)), backend, strict)
    return result.named(names) if names else result


def plan_all(roots: Mapping[Node, range], length: int, parts: Sequence[Any]) -> Plan:
    """Return the plan that computes several roots in one run, in IEEE arithmetic on tensors.

    ``roots`` maps each root to its needed range of positions. The tensors ``parts`` may have different
    types; steps follow torch's rules of type promotion.
    """
    dtypes = [str(part.dtype).removeprefix("torch.") for part in parts]
    segments = tuple(
        Segment(tuple(part.shape), dtype) for part, dtype in zip(parts, dtypes, strict=True)
    )
    backend = backend_for(parts[0], ieee=True)
    return _plan(roots, length, segments, backend, strict=False)


def _plan(
    roots: Mapping[Node, range],
    length: int,
    segments: tuple[Segment, ...],
    backend: Backend,
    strict: bool,
) -> Plan:
    """Return the plan of the given roots, from the cache if possible."""

    def make() -> Plan:
        return Plan(_steps(roots, length, segments, backend, strict, {}), backend, {}, strict)

    return _plans.get_or_make((tuple(roots.items()), length, segments, backend.key, strict), make)


def plan_steps(
    roots: Mapping[Node, range],
    length: int,
    segments: tuple[Segment, ...],
    backend: Backend,
    *,
    storages: Mapping[Node, int],
) -> Blueprint:
    """Return the fused steps of several roots, from the cache if possible."""

    def make() -> Blueprint:
        return _steps(roots, length, segments, backend, False, storages)

    return _blueprints.get_or_make((tuple(roots.items()), length, segments, backend.key), make)


def _steps(
    roots: Mapping[Node, range],
    length: int,
    segments: tuple[Segment, ...],
    backend: Backend,
    strict: bool,
    storages: Mapping[Node, int],
) -> Blueprint:
    """Make the steps of the given roots, and fuse them for the backend."""
    for root in roots:
        require_program(root)
        if sort_of(root) is not Sort.SOP:
            raise GraphError("expected an s-op to plan, got a selector")
    ieee = backend.ieee
    steps = Steps(backend_for(ieee=ieee).function, ieee)
    try:
        run_static = partial(_static, strict=strict)
        made = blueprint(roots, length, segments, steps, run_static, ieee, storages)
    except (Stuck, Unstructured, NotNumeric, OverflowError) as reason:
        problem = f"the program has no plan: {str(reason) or 'it contains strings'}"
        raise ExecutionError(problem, abbreviate(next(iter(roots))), kind="no plan") from None
    made = replace(made, results=fused(made.results, steps, backend))
    if ieee:
        _check_sizes(made, roots, segments)
    return made


def _check_sizes(made: Blueprint, roots: Mapping[Node, range], segments: tuple[Segment, ...]) -> None:
    """Raise an error if an array exceeds the limit and is larger than all operands and results."""
    sizes = (*(math.prod(segment.shape) for segment in segments), *map(len, roots.values()))
    limit = max(_LARGEST_TEMPORARY, *sizes)
    for step in in_order(*made.results):
        if step.op not in ("view", "expand", "reshape", "permute") and step.size > limit:
            problem = f"the program has no plan: an array of {step.size:,} numbers is too large"
            raise ExecutionError(problem, abbreviate(next(iter(roots))), kind="no plan")


def clear_plans() -> None:
    """Drop all cached plans, blueprints and lowered buffers."""
    _plans.clear()
    _blueprints.clear()
    clear_lowered()


def _checked(length: Any, positions: Any, segments: Any) -> tuple[int, range, tuple[Shape, ...]]:
    """Return three arguments of :func:`plan` in normal form, or raise :class:`InputError`."""
    try:
        length = operator.index(length)  # also accepts NumPy integers
    except TypeError:
        length = 0
    if length < 1:
        raise InputError("length: expected a positive integer number of tokens")
    asked = range(length) if positions is None else positions
    shapes = _shapes((length,) if segments is None else segments)
    if not isinstance(asked, range):
        raise InputError(f"expected positions as a range, such as range(0, 12), got {asked!r}")
    if not 0 <= asked.start < asked.stop <= length or asked.step != 1:
        raise InputError(f"expected positions within 0 to {length - 1}, without gaps, got {asked}")
    if sum(map(math.prod, shapes)) > length:
        raise InputError(f"expected parts of at most {length} tokens in all, got shapes {shapes}")
    return length, asked, shapes


def _shapes(segments: Any) -> tuple[Shape, ...]:
    """Convert ``segments``, a sequence of sizes and shapes, to shapes."""
    try:
        parts = [part if isinstance(part, (tuple, list)) else (part,) for part in segments]
        shapes = tuple(tuple(operator.index(size) for size in part) for part in parts)
        if all(size >= 0 for shape in shapes for size in shape):
            return shapes
    except TypeError:
        pass
    raise InputError(f"expected segments as sizes or shapes, such as [12, (4, 4)], got {segments!r}")


def _static(node: Node, length: int, strict: bool) -> Any:
    """Compute an s-op that depends on no token with the structured tier, at all positions."""
    return structured.evaluate(node, np.zeros(length), allow_masks=not strict)
