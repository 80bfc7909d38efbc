"""Make plans from other plans: join plans of small programs, and interpolate between two lengths.

Plans of one program for two lengths often have the same steps, with sizes, strides and offsets that
grow linearly with the length. A plan for a length between them then has the same steps, with
interpolated sizes, strides and offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np

from locum.errors import ExecutionError
from locum.execution.fast.plan import Plan
from locum.execution.fast.plan_cache import plan_steps
from locum.execution.fast.planning import Blueprint, Segment
from locum.execution.fast.steps.backends import backend_for
from locum.execution.fast.steps.fusion import fused_composition, in_order
from locum.execution.fast.steps.magnitude import StepTypes
from locum.execution.fast.steps.step import Step, Steps
from locum.execution.fast.symbolic.affine import Stuck
from locum.graph import Node


class NotLinearError(Exception):
    """Raised if two values differ in more than integers, or if an interpolated value is a fraction."""


#: Function that returns the interpolated value after a number of steps from 0 to ``count``.
Line = Callable[[int], Any]


def draw_line(first: Any, last: Any, count: int) -> Line:
    """Return the function that interpolates between two values that are ``count`` steps apart.

    Integers are interpolated, also in tuples, lists, dictionaries, ranges and data classes. Everything
    else must be equal in both values, and nodes must be identical. Otherwise :class:`NotLinearError` is
    raised. The returned function also raises this error if an interpolated integer would be a fraction.

    >>> line = draw_line({"shape": (2, 10), "op": "add"}, {"shape": (2, 20), "op": "add"}, 5)
    >>> line(1)
    {'shape': (2, 12), 'op': 'add'}
    >>> draw_line(range(0, 10, 2), range(0, 20, 2), 5)(1)
    range(0, 12, 2)
    """
    if first is last:
        return _Constant(first)
    if type(first) is not type(last):
        raise NotLinearError
    if isinstance(first, int) and not isinstance(first, bool):
        return _Constant(first) if first == last else _between(first, last - first, count)
    if isinstance(first, (tuple, list)):
        if len(first) != len(last):
            raise NotLinearError
        return _join(type(first), first, last, count)
    if isinstance(first, dict):
        if list(first) != list(last):
            raise NotLinearError
        keys = list(first)
        return _join(
            lambda values: dict(zip(keys, values, strict=True)), first.values(), last.values(), count
        )
    if isinstance(first, range):
        ends = (first.start, first.stop, first.step), (last.start, last.stop, last.step)
        return _join(lambda values: range(*values), *ends, count)
    node = getattr(first, "node", None)
    if isinstance(node, Node):  # the handle of an s-op
        if node is not last.node:
            raise NotLinearError
        return _Constant(first)
    if is_dataclass(first) and not isinstance(first, type):
        names = [part.name for part in fields(first)]
        return _join(
            lambda values: replace(first, **dict(zip(names, values, strict=True))),
            [getattr(first, name) for name in names],
            [getattr(last, name) for name in names],
            count,
        )
    if isinstance(first, Node) or first != last:
        raise NotLinearError
    return _Constant(first)


class _Constant:
    """An interpolating function that always returns the same value."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, number: int) -> Any:
        return self.value


def _between(first: int, difference: int, count: int) -> Line:
    def line(number: int) -> int:
        steps, rest = divmod(difference * number, count)
        if rest:
            raise NotLinearError
        return first + steps

    return line


def _join(
    make: Callable[[list[Any]], Any], first: Iterable[Any], last: Iterable[Any], count: int
) -> Line:
    """Return the interpolating function of a value that consists of parts, which ``make`` combines."""
    lines = [draw_line(a, b, count) for a, b in zip(first, last, strict=True)]
    if all(isinstance(line, _Constant) for line in lines):
        return _Constant(make([line(0) for line in lines]))
    return lambda number: make([line(number) for line in lines])


def is_same(first: Any, last: Any) -> bool:
    """Return whether two values that can be interpolated are equal.

    >>> is_same({"shape": (2, 10)}, {"shape": (2, 10)}), is_same((1, 2), (1, 3))
    (True, False)
    """
    try:
        return isinstance(draw_line(first, last, 1), _Constant)
    except NotLinearError:
        return False


class PlanFamily:
    """Plans that are interpolated between two plans with the same operations, ``count`` steps apart."""

    def __init__(self, first: Plan, last: Plan, count: int) -> None:
        self._first = first
        if len(first.steps) != len(last.steps):
            raise NotLinearError
        place_in_first = {step: place for place, step in enumerate(first.steps)}
        place_in_last = {step: place for place, step in enumerate(last.steps)}
        #: For each step, the interpolating function of its shape and settings.
        self._lines: dict[Step, Line] = {}
        known: dict[Hashable, Line] = {}  # steps of equal layers share interpolating functions
        for a, b in zip(first.steps, last.steps, strict=True):
            is_alike = (a.op, a.boolean) == (b.op, b.boolean) and _has_same_value(a, b)
            if not is_alike or [place_in_first[i] for i in a.inputs] != [
                place_in_last[i] for i in b.inputs
            ]:
                raise NotLinearError
            ends = ((a.shape, a.settings), (b.shape, b.settings))
            self._lines[a] = known.get(ends) or known.setdefault(ends, draw_line(*ends, count))
        #: Groups of steps that change with the length and have equal functions at every length.
        self._alike: dict[Hashable, list[Step]] = {}
        for step, line in self._lines.items():
            lines = (line, *(self._lines[i] for i in step.inputs))
            if not all(isinstance(one, _Constant) for one in lines):
                self._alike.setdefault((step.op, *lines), []).append(step)

    def make(self, number: int) -> Plan:
        """Return the plan that is interpolated ``number`` steps after the first plan."""
        changed = [(self._change(steps[0], number), steps) for steps in self._alike.values()]
        return self._first.with_functions(changed, lambda: self._make_steps(number))

    def _change(self, step: Step, number: int) -> Step:
        """Return a step of the plan that is interpolated ``number`` steps after the first plan.

        The inputs of the returned step contain only a shape, whether they are boolean, and a value.
        """
        inputs = tuple(
            Step("input", (), self._lines[i](number)[0], (), i.boolean, i.value) for i in step.inputs
        )
        shape, settings = self._lines[step](number)
        return Step(step.op, inputs, shape, settings, step.boolean, step.value)

    def _make_steps(self, number: int) -> list[Step]:
        new: dict[Step, Step] = {}
        for step, line in self._lines.items():
            shape, settings = line(number)
            inputs = tuple(new[i] for i in step.inputs)
            new[step] = Step(step.op, inputs, shape, settings, step.boolean, step.value)
        return list(new.values())

    def has(self, plan: Plan, number: int) -> bool:
        """Return whether ``plan`` has the same steps as the plan that ``make(number)`` returns.

        Operations, shapes, settings and constants are compared step by step; inputs are not compared.
        """
        made = self.make(number)
        return len(made.steps) == len(plan.steps) and all(
            (a.op, a.shape, a.settings, a.boolean) == (b.op, b.shape, b.settings, b.boolean)
            and _has_same_value(a, b)
            for a, b in zip(made.steps, plan.steps, strict=True)
        )


def _has_same_value(a: Step, b: Step) -> bool:
    """Return whether two steps are equal constants, or neither of them is a constant."""
    if a.value is None or b.value is None:
        return a.value is b.value
    return a.value is b.value or (
        a.value.dtype == b.value.dtype and np.array_equal(a.value, b.value, equal_nan=True)
    )


@dataclass(frozen=True)
class Call:
    """A small program, with nodes that identify the arrays that the program reads and computes."""

    #: The s-ops that are computed, with the needed positions of each.
    roots: Mapping[Node, range]
    #: The arrays of the results, in the order of ``roots``.
    results: Sequence[Node]
    #: The arrays whose entries, one array after another, are the tokens.
    operands: Sequence[Node]
    length: int
    #: The s-ops that are storages of tensors, with their numbers of positions.
    storages: Mapping[Node, int] = field(default_factory=dict)
    #: The source of the program, which is part of error messages.
    origin: str = ""


def plan_calls(
    calls: Sequence[Call], inputs: Mapping[Node, Segment], results: Mapping[Node, range], like: Any
) -> Plan:
    """Return one plan for a sequence of small programs, in IEEE arithmetic on tensors.

    ``inputs`` contains the arguments of the plan. ``results`` maps the arrays that the plan returns to
    their needed positions. ``like`` is a tensor on the device of the plan.
    """
    backend = backend_for(like, ieee=True)
    steps, types = Steps(backend_for(ieee=True).function, ieee=True), StepTypes()
    entering = [
        steps.make("input", (), shape, (place, dtype), dtype == "bool")
        for place, (shape, dtype) in enumerate(inputs.values())
    ]
    arrays = dict(zip(inputs, entering, strict=True))
    computes: dict[Step, Node] = {}
    for call in calls:
        operands = [arrays[name] for name in call.operands]
        segments = tuple(Segment((operand.size,), types.of(operand)) for operand in operands)
        try:
            made = plan_steps(call.roots, call.length, segments, backend, storages=call.storages)
            found = _copy_steps(made, operands, steps, types)
        except Stuck as reason:
            raise ExecutionError(
                f"the program has no plan: {reason}", call.origin, kind="no plan"
            ) from None
        except ExecutionError as error:
            if error.kind != "no plan":
                raise
            raise ExecutionError(error.problem, call.origin, kind="no plan") from None
        arrays.update(zip(call.results, found, strict=True))
        computes.update(zip(found, call.roots, strict=True))
    read = tuple(_read(arrays[name], positions, steps) for name, positions in results.items())
    read = fused_composition(read, steps, backend)
    length = max((call.length for call in calls), default=1)
    return Plan(Blueprint(tuple(results), length, read, tuple(entering), computes, {}), backend, {})


def _copy_steps(
    made: Blueprint, operands: Sequence[Step], steps: Steps, types: StepTypes
) -> list[Step]:
    """Copy the steps of a small plan into a large plan, and return the copies of its results.

    ``operands`` are the steps of the large plan that replace the inputs of the small plan.
    """
    new = {
        entering: steps.reshape(operand, entering.shape)
        for entering, operand in zip(made.inputs, operands, strict=True)
    }
    for step in in_order(*made.results):
        if step not in new:
            inputs = [new[i] for i in step.inputs]
            new[step] = step if step.value is not None else _copy_step(step, inputs, steps)
            types.of(new[step])  # inputs come first, so that the recursion is never deep
    return [new[result] for result in made.results]


def _copy_step(step: Step, inputs: list[Step], steps: Steps) -> Step:
    if step.op == "view":
        strides, offset = step.settings
        assert isinstance(strides, tuple)
        assert isinstance(offset, int)
        return steps.view(_unshaped(inputs[0]), step.shape, strides, offset)
    if step.op == "reshape":
        return steps.reshape(_unshaped(inputs[0]), step.shape)
    if step.op == "permute":
        (order,) = step.settings
        assert isinstance(order, tuple)
        return steps.permute(inputs[0], order)
    return steps.make(step.op, inputs, step.shape, step.settings, step.boolean)


def _unshaped(step: Step) -> Step:
    """Return an array in the shape in which it was computed, before reshapes."""
    while step.op == "reshape":
        (step,) = step.inputs
    return step


def _read(array: Step, positions: range, steps: Steps) -> Step:
    """Return the elements of an array at ``positions``, flattened."""
    if positions == range(array.size):
        return steps.reshape(array, (array.size,))
    return steps.view(array, (len(positions),), (1,), positions.start)
