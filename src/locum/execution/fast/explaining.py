"""Print a plan: one line a step, as a formula."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from locum.execution.elementwise import MEANINGS
from locum.execution.fast.steps.step import Step, row_major
from locum.graph import Node, abbreviate

if TYPE_CHECKING:
    from locum.execution.fast.planning import Blueprint


def explained(steps: Sequence[Step], blueprint: Blueprint, names: Mapping[Node, str]) -> str:
    """Return the steps, numbered, each with the s-op that it computes."""
    called: dict[Step, str] = {}
    lines: list[tuple[str, str, str]] = []
    for step in steps:
        if step.op == "input":
            called[step] = f"tokens[{step.settings[0]}]" if len(blueprint.inputs) > 1 else "tokens"
        elif step.value is not None:
            called[step] = _number(step) if step.size == 1 else f"constant({_shape(step.shape)})"
        elif step.op in ("reshape", "expand"):  # only another shape
            called[step] = called[step.inputs[0]]
        else:
            called[step] = f"t{len(lines)}"
            node = blueprint.computes.get(step)
            meaning = "" if node is None else names.get(node) or abbreviate(node, names)
            lines.append((called[step], _words(step, called, names), meaning))
    if not lines:
        return f"the result is {called[steps[-1]]}"
    wide = max(len(f"{name} = {words}") for name, words, _ in lines)
    shown = []
    for name, words, meaning in lines:
        line = f"{name} = {words}"
        shown.append(f"{line:<{wide}}   # {meaning}" if meaning else line)
    shown += [f"{abbreviate(n, names)}: structured, since {why}" for n, why in blueprint.opaque.items()]
    return "\n".join(shown)


def _words(step: Step, called: Mapping[Step, str], names: Mapping[Node, str]) -> str:
    inputs = [called[i] for i in step.inputs]
    shape = _shape(step.shape)
    match step.op, step.settings:
        case "apply", (str(op),):
            pattern = MEANINGS[op].format
            words = pattern.text.format(*inputs) if pattern else f"{op}({', '.join(inputs)})"
            return f"{words}  [{shape}]"
        case "view", (tuple(strides), int(offset)):
            return f"{inputs[0]} {_view(step, strides, offset)}"
        case "permute", (tuple(order),):
            last = len(order) - 1
            how = "transposed" if order == (*range(last - 1), last, last - 1) else "permuted"
            return f"{inputs[0]} {how}  [{shape}]"
        case "matmul", _:
            return f"{inputs[0]} @ {inputs[1]}  [{shape}]"
        case "biased_product", _:
            return f"{inputs[0]} @ {inputs[1]} + {inputs[2]}  [{shape}]"
        case "attention", (True, _):
            return f"causal attention({', '.join(inputs)})  [{shape}]"
        case (("sum" | "maximum" | "minimum" | "any"), (tuple(axes),)):
            along = ", ".join(map(str, axes))
            return f"{step.op}({inputs[0]}, axis {along})  [{shape}]"
        case "structured", (Node() as node, *_):
            return f"structured({abbreviate(node, names)})  [{shape}]"
    return f"{step.op}({', '.join(inputs)})  [{shape}]"


def _view(step: Step, strides: Sequence[int], offset: int) -> str:
    shape = step.shape
    if tuple(strides) == row_major(shape):
        return f"from {offset} as {_shape(shape)}"
    swapped = (*shape[:-2], *shape[:-3:-1])
    moved = (*strides[:-2], *tuple(strides)[:-3:-1])
    if len(shape) >= 2 and moved == row_major(swapped):
        return f"from {offset} as {_shape(swapped)}, transposed"
    apart = ", ".join(map(str, strides))
    return f"from {offset} as {_shape(shape)}, strides {apart}"


def _shape(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "1"


def _number(step: Step) -> str:
    assert step.value is not None
    value = float(step.value.reshape(-1)[0])
    return str(int(value)) if math.isfinite(value) and value == int(value) else f"{value:.6g}"
