"""Plan a program that is composed of smaller ones.

A captured model is a sequence of small programs. The tokens of each are arrays that come in, or that
earlier programs computed. Each small program is planned on its own, and equal ones, such as those of
equal layers, are planned once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from locum.errors import ExecutionError
from locum.execution.fast.cache import plan_steps
from locum.execution.fast.plan import Plan
from locum.execution.fast.planning import Blueprint, Segment
from locum.execution.fast.steps.backends import backend_for
from locum.execution.fast.steps.dtypes import StepTypes
from locum.execution.fast.steps.fusion import fused_composition, in_order
from locum.execution.fast.steps.step import Step, Steps
from locum.execution.fast.symbolic.signals import Stuck
from locum.graph import Node


@dataclass(frozen=True)
class Call:
    """A small program, and the arrays that it reads and computes. Arrays are named by nodes."""

    #: The s-ops that are computed, with their positions.
    roots: Mapping[Node, range]
    #: The arrays that they become, in the same order.
    results: Sequence[Node]
    #: The arrays whose entries are the tokens, one after another.
    operands: Sequence[Node]
    length: int
    #: The number of positions of s-ops that are storages of tensors.
    storages: Mapping[Node, int] = field(default_factory=dict)
    #: What is said after an error.
    origin: str = ""


def plan_calls(
    calls: Sequence[Call], inputs: Mapping[Node, Segment], results: Mapping[Node, range], like: Any
) -> Plan:
    """Return the plan of a sequence of small programs, in IEEE arithmetic on tensors.

    ``inputs`` are the arrays that come in; ``results`` are those that the plan returns, with the
    positions that are read of each. ``like`` is a tensor on the device of the plan.
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
                f"no plan can be made: {reason}", call.origin, kind="no plan"
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
    """Make the steps of a small plan on arrays of a large one; return its results."""
    new = {
        entering: steps.reshape(operand, entering.shape)
        for entering, operand in zip(made.inputs, operands, strict=True)
    }
    for step in in_order(*made.results):
        if step not in new:
            inputs = [new[i] for i in step.inputs]
            new[step] = step if step.value is not None else _copy_step(step, inputs, steps)
            types.of(new[step])  # steps come after their inputs: no question goes deep
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
    """Return an array in the shape in which it was computed."""
    while step.op == "reshape":
        (step,) = step.inputs
    return step


def _read(array: Step, positions: range, steps: Steps) -> Step:
    """Return an array at its positions, in one row."""
    if positions == range(array.size):
        return steps.reshape(array, (array.size,))
    return steps.view(array, (len(positions),), (1,), positions.start)
