"""Fusions: groups of steps for which array libraries have one faster operation.

- x − max, exp, over its sum, all along the last axis, is a *softmax*;
- two batched products with a large softmax between them are *attention*, where the backend has that.

They are recognised by what the steps do, not by what the program called them, and only where nothing
else needs the results in between.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

from locum.execution.fast.steps.step import Step, Steps

#: Scores of one head from which on fused attention pays (measured: about even at 128², half at 512²).
_WORTHWHILE = 256 * 256


def fused(result: Step, steps: Steps, attention: bool) -> Step:
    """The result by fused steps; ``attention`` says whether the backend has such an operation."""
    result = _rewritten(result, steps, _softmax)
    return _rewritten(result, steps, _attention) if attention else result


#: A rule: the step, how often each step is used, and where to make new ones.
Rule = Callable[[Step, Counter[Step], Steps], Step | None]


def in_order(result: Step) -> list[Step]:
    """All steps that the result needs, inputs first."""
    order: dict[Step, None] = {}
    stack = [(result, False)]
    while stack:
        step, ready = stack.pop()
        if ready:
            order[step] = None
        elif step not in order:
            stack.append((step, True))
            stack.extend((i, False) for i in reversed(step.inputs) if i not in order)
    return list(order)


def _rewritten(result: Step, steps: Steps, rule: Rule) -> Step:
    order = in_order(result)
    uses = Counter(i for step in order for i in set(step.inputs))
    new: dict[Step, Step] = {}

    def renewed(step: Step) -> Step:
        """A step on new inputs; a rule may have made some that are not in the order."""
        if step not in new:
            inputs = [renewed(i) for i in step.inputs]
            same = all(a is b for a, b in zip(inputs, step.inputs, strict=True))
            made = (
                step if same else steps.make(step.op, inputs, step.shape, step.settings, step.boolean)
            )
            new[step] = made
        return new[step]

    for step in order:
        found = rule(step, uses, steps)
        new[step] = renewed(step if found is None else found)
    return new[result]


def _softmax(step: Step, uses: Counter[Step], steps: Steps) -> Step | None:
    if not _is(step, "divide"):
        return None
    powers, sums = step.inputs
    if not _is(powers, "exp") or uses[powers] != 2 or not _along_last(sums, "sum", powers):
        return None
    (shifted,) = powers.inputs
    if not _is(shifted, "subtract") or uses[shifted] != 1:
        return None
    scores, peak = shifted.inputs
    if scores.shape != step.shape or not _along_last(peak, "maximum", scores):
        return None
    return steps.make("softmax", (scores,), step.shape)


def _attention(step: Step, uses: Counter[Step], steps: Steps) -> Step | None:
    """matmul(softmax(matmul(q, kᵀ)), v), batched and large enough: else three steps are faster."""
    if step.op != "matmul" or len(step.shape) < 3:
        return None
    weights, v = step.inputs
    if weights.op != "softmax" or uses[weights] != 1 or math.prod(weights.shape[-2:]) < _WORTHWHILE:
        return None
    (scores,) = weights.inputs
    if scores.op != "matmul" or uses[scores] != 1:
        return None
    q, k_transposed = scores.inputs
    batch = step.shape[:-2]
    if any(x.shape[:-2] != batch for x in (q, k_transposed, v)):
        return None
    axes = len(k_transposed.shape)
    k = steps.permute(k_transposed, (*range(axes - 2), axes - 1, axes - 2))
    return steps.make("attention", (q, k, v), step.shape)


def _is(step: Step, op: str) -> bool:
    return step.op == "apply" and step.settings == (op,)


def _along_last(step: Step, op: str, of: Step) -> bool:
    """Whether this is ``of`` reduced along its last axis, and lined up with its other axes again.

    Without the axis put back, the result would be broadcast along another one.
    """
    if step.op == "reshape" and step.shape == (*step.inputs[0].shape, 1):
        step = step.inputs[0]
    elif step.shape:
        return False
    return step.op == op and step.inputs[0] is of and step.settings == ((len(of.shape) - 1,),)
