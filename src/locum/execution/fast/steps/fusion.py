"""Fuse groups of steps for which array libraries have one faster operation.

- The exponential of x − max x, divided by its sum along the last axis, is a *softmax*.
- Two products of matrices with a softmax of enough scores between them are *attention*. If a condition
  replaces some scores by very large negative numbers, or if numbers are added to them, attention has a
  mask.
- A product of matrices plus a bias row is a *biased_product*.
- y/2 · (1 + erf(y/√2)) is a *gelu*.
- (x − mean) / √(variance + ε) along the last axis is a *layer_norm*, which may include a gain and a
  bias.

Patterns are recognised by the computation, not by names in the program. Most patterns are recognised
only if no other step needs the intermediate results.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import partial

import numpy as np

from locum.execution.fast.steps import tiling
from locum.execution.fast.steps.backends import Backend
from locum.execution.fast.steps.ieee_fusion import Rule, composed_rules, ieee_rules
from locum.execution.fast.steps.step import Shape, Step, Steps
from locum.graph.traversal import walk

#: Number of scores of one head from which attention in a batch is fused. For twelve heads on one CPU
#: core, it needs the same time as three steps for 32² scores, and half the time for 512² scores.
_WORTHWHILE = 32 * 32
#: In a row with a visible key, scores of at most this number have weight 0 in each floating-point type.
_HIDDEN = -1e308


def fused(results: tuple[Step, ...], steps: Steps, backend: Backend) -> tuple[Step, ...]:
    """Fuse the steps that compute ``results`` into operations of the backend.

    In half precision on torch, attention with a batch axis is fused for any number of scores, so that
    scores are not rounded. IEEE arithmetic has separate rules.
    """
    rules: tuple[Rule, ...] = (_softmax,)
    if backend.ieee:
        rules = ieee_rules(backend.has_fused)
    elif backend.has_fused:
        most = tiling.MOST_SCORES_ON_GPU if backend.arrays.on_gpu else tiling.MOST_SCORES
        attention = partial(_attention, least=0 if backend.is_half else _WORTHWHILE, most=most)
        rules += (attention, _gelu, _layer_norm, _gain_and_bias, _biased_product, _in_place)
    else:
        rules += (partial(_attention, least=tiling.MOST_SCORES, most=tiling.MOST_SCORES),)
    for rule in rules:
        results = _rewritten(results, steps, rule)
    return results


def fused_composition(results: tuple[Step, ...], steps: Steps, backend: Backend) -> tuple[Step, ...]:
    """Fuse steps across several small programs, each of which has already been fused."""
    for rule in composed_rules() if backend.has_fused else ():
        results = _rewritten(results, steps, rule)
    return results


def in_order(*results: Step) -> list[Step]:
    """Return the results and all steps that they need, each step after its inputs."""
    return list(walk(results, lambda step: step.inputs))


def _rewritten(results: tuple[Step, ...], steps: Steps, rule: Rule) -> tuple[Step, ...]:
    order = in_order(*results)
    uses = Counter(i for step in order for i in set(step.inputs))
    new: dict[Step, Step] = {}

    def renewed(step: Step) -> Step:
        """Return a step with rewritten inputs, which may include steps that a rule creates."""
        if step not in new:
            inputs = [renewed(i) for i in step.inputs]
            same = all(a is b for a, b in zip(inputs, step.inputs, strict=True))
            rebuilt = (
                step if same else steps.make(step.op, inputs, step.shape, step.settings, step.boolean)
            )
            new[step] = rebuilt
        return new[step]

    for step in order:
        replacement = rule(step, uses, steps)
        new[step] = renewed(step if replacement is None else replacement)
    return tuple(new[result] for result in results)


def fits_when_fused(results: tuple[Step, ...], steps: Steps) -> bool:
    """Return whether no computed array is too large after attention with many rows is fused."""
    most = tiling.MOST_SCORES_ON_GPU
    for rule in (_softmax, partial(_attention, least=most, most=most)):
        results = _rewritten(results, steps, rule)
    limits = {"apply": tiling.LARGEST_TEMPORARY, **dict.fromkeys(("input", "view", "expand"), math.inf)}
    made = (step for step in in_order(*results) if step.value is None)
    return all(step.size <= limits.get(step.op, tiling.LARGEST_ARRAY) for step in made)


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


def _attention(step: Step, uses: Counter[Step], steps: Steps, least: int, most: int) -> Step | None:
    """Fuse matmul(softmax(matmul(q, kᵀ)), v) if it has enough scores.

    It has enough scores with at least ``least`` scores in each matrix of a batch, or with at least
    ``most`` scores in total.
    """
    if step.op != "matmul":
        return None
    weights, v = step.inputs
    if weights.op != "softmax" or uses[weights] != 1:
        return None
    is_large = len(step.shape) > 2 and math.prod(weights.shape[-2:]) >= least
    if not is_large and weights.size < most:
        return None
    scores, masks = _unmasked(weights.inputs[0], uses)
    is_joined = scores.op == "reshape" and scores.inputs[0].shape[-1:] == weights.shape[-1:]
    if is_joined and uses[scores] == 1 and weights.size >= most:
        (scores,) = scores.inputs  # one product for all heads
    if scores.op != "matmul" or uses[scores] != 1:
        return None
    q, k_transposed = scores.inputs
    batch = step.shape[:-2]
    if weights.size >= most:  # heads may share queries, keys or values
        q = steps.reshape(q, (*weights.shape[:-1], q.shape[-1])) if is_joined else q
        q, k_transposed, v = (_in_batch(steps, x, batch) for x in (q, k_transposed, v))
    if any(x.shape[:-2] != batch for x in (q, k_transposed, v)):
        return None
    axes = len(k_transposed.shape)
    k = steps.permute(k_transposed, (*range(axes - 2), axes - 1, axes - 2))
    if len(masks) == 1 and _is_causal(masks[0], weights.shape[-2:]):
        return steps.make("attention", (q, k, v), step.shape, (True, 1.0))
    return steps.make("attention", (q, k, v, *masks), step.shape, (False, 1.0))


def _in_batch(steps: Steps, x: Step, batch: Shape) -> Step:
    """Repeat matrices along the axes of a batch."""
    aligned = steps.reshape(x, (1,) * (len(batch) + 2 - len(x.shape)) + x.shape)
    return steps.expand(aligned, (*batch, *x.shape[-2:]))


def _is_causal(mask: Step, scores: Shape) -> bool:
    """Return whether a mask is constant, square and causal.

    A kernel can then use its causal flag instead of the mask. In a causal mask, exactly the keys up to
    each query are visible.
    """
    if (
        mask.value is None
        or not mask.boolean
        or mask.size != math.prod(scores)
        or scores[0] != scores[1]
    ):
        return False
    return bool((mask.value.reshape(scores) == np.tri(scores[0])).all())


def _unmasked(scores: Step, uses: Counter[Step]) -> tuple[Step, tuple[Step, ...]]:
    """Return the scores before a mask, and the mask in a tuple that is empty if there is no mask.

    The mask is boolean, or consists of numbers that are added. A boolean mask computed from tokens is a
    choice between scores and a number. A boolean mask computed only from positions is represented
    differently: scores where it is true and 0 elsewhere, minus a constant. For a row without visible
    keys, fused attention returns NaN or 0, while three steps may return the mean.
    """
    if uses[scores] != 1:
        return scores, ()
    if _is(scores, "subtract"):
        chosen, constant = scores.inputs
        if not _is(chosen, "if_else") or uses[chosen] != 1 or constant.value is None:
            return scores, ()
        mask, inner, zero = chosen.inputs
        if mask.value is None or zero.value is None or zero.value.any():
            return scores, ()
        if ((constant.value == 0) != mask.value).any() or (constant.value < 0).any():
            return scores, ()
        hidden = constant.value[~mask.value]
        lowest = -hidden.min() if hidden.size else -math.inf
    elif _is(scores, "if_else"):
        mask, inner, number = scores.inputs
        if number.value is None or number.value.ndim:
            return scores, ()
        lowest = float(number.value)
    elif _is(scores, "add") and scores.inputs[0].op == "matmul" and not scores.inputs[1].boolean:
        inner, mask = scores.inputs  # numbers that are added
        lowest = -math.inf
    else:
        return scores, ()
    full = inner.op == "matmul" and inner.shape == scores.shape and lowest <= _HIDDEN
    return (inner, (mask,)) if full else (scores, ())


def _gelu(step: Step, uses: Counter[Step], steps: Steps) -> Step | None:
    """Fuse y/2 · (erf(y/√2) + 1) into one GELU step.

    If y is a sum, its terms may have been halved one by one.
    """
    if not _is(step, "multiply") or not _is(step.inputs[1], "add"):
        return None
    half, (erf, one) = step.inputs[0], step.inputs[1].inputs
    if not _is(erf, "erf") or not _is_number(one, 1) or not _is(erf.inputs[0], "divide"):
        return None
    y, root = erf.inputs[0].inputs
    if y.shape != step.shape or not _is_number(root, math.sqrt(2)) or not _is_half(half, y):
        return None
    return steps.make("gelu", (y,), step.shape, ("none",))


def _in_place(step: Step, uses: Counter[Step], steps: Steps) -> Step | None:
    """Compute GELU in the memory of a product that no other step reads."""
    if step.op != "gelu" or step.inputs[0].op not in ("matmul", "biased_product"):
        return None
    return (
        steps.make("gelu", step.inputs, step.shape, ("in place",))
        if uses[step.inputs[0]] == 1
        else None
    )


def _is_half(half: Step, y: Step) -> bool:
    if _is(half, "multiply") and half.inputs[0] is y:
        return _is_number(half.inputs[1], 0.5)
    if not (_is(half, "add") and _is(y, "add")):
        return False
    return all(_is_half(a, b) for a, b in zip(half.inputs, y.inputs, strict=True))


def _layer_norm(step: Step, uses: Counter[Step], steps: Steps) -> Step | None:
    """Fuse (x − mean) / √(variance + ε) along the last axis into a layer norm."""
    if not _is(step, "divide"):
        return None
    centred, root = step.inputs[0], _as_column(step.inputs[1])
    if not _is(centred, "subtract") or root is None or not _is(root, "sqrt"):
        return None
    total = root.inputs[0]
    if not _is(total, "add") or total.inputs[1].size != 1:
        return None
    variance, epsilon = total.inputs
    (x, mean), squares = centred.inputs, _averaged(variance)
    mean_column = _as_column(mean)
    if squares is None or not _is(squares, "multiply") or squares.inputs != (centred, centred):
        return None
    if x.shape != step.shape or mean_column is None or _averaged(mean_column) is not x:
        return None
    while epsilon.op in ("view", "reshape") and epsilon.inputs[0].size == 1:
        (epsilon,) = (
            epsilon.inputs
        )  # the input itself, since a view lacks its attribute ``known_to_the_host``
    return steps.make("layer_norm", (x, epsilon), step.shape)


def _gain_and_bias(step: Step, uses: Counter[Step], steps: Steps) -> Step | None:
    """Fuse a layer norm with the multiplication by a gain and the addition of a bias."""
    if not _is(step, "add") or not _is(step.inputs[0], "multiply"):
        return None
    (norm, gain), bias = step.inputs[0].inputs, step.inputs[1]
    if norm.op != "layer_norm" or uses[norm] != 1 or not gain.shape == bias.shape == step.shape[-1:]:
        return None
    return steps.make("layer_norm", (*norm.inputs, gain, bias), step.shape)


def _biased_product(step: Step, uses: Counter[Step], steps: Steps) -> Step | None:
    """Fuse x W + b, or (y + x W) + b, if b has one number for each column; y is then added last."""
    if not _is(step, "add"):
        return None
    total, bias = step.inputs
    addend = None
    if _is(total, "add") and uses[total] == 1 and total.inputs[0].shape == step.shape:
        addend, total = total.inputs
    product = total.inputs[0] if total.op == "reshape" and uses[total] == 1 else total
    if product.op != "matmul" or len(product.shape) != 2 or uses[product] != 1:
        return None
    columns = product.shape[-1]
    if bias.boolean or bias.size != columns or total.shape != step.shape or not bias.shape:
        return None
    if step.shape[-len(bias.shape) :] != bias.shape:
        return None  # for example, one number for each row
    result = steps.make(
        "biased_product", (*product.inputs, steps.reshape(bias, (columns,))), product.shape
    )
    result = steps.reshape(result, step.shape)
    return result if addend is None else steps.make("apply", (addend, result), step.shape, ("add",))


def _averaged(mean: Step) -> Step | None:
    """Return the array whose mean along the last axis is ``mean``, or None if there is none."""
    if not _is(mean, "divide") or mean.inputs[0].op != "sum":
        return None
    total, count = mean.inputs
    (of,) = total.inputs
    along = total.settings == ((len(of.shape) - 1,),)
    return of if along and _is_number(count, of.shape[-1]) else None


def _as_column(step: Step) -> Step | None:
    """Return the input of a reshape that appends an axis of size 1, or ``step`` if it is a scalar.

    Otherwise, return None.
    """
    if step.op == "reshape" and step.shape == (*step.inputs[0].shape, 1):
        return step.inputs[0]
    return step if not step.shape else None


def _is_number(step: Step, value: float) -> bool:
    return step.value is not None and not step.value.ndim and float(step.value) == value


def _is(step: Step, op: str) -> bool:
    return step.op == "apply" and step.settings == (op,)


def _along_last(step: Step, op: str, of: Step) -> bool:
    """Return whether ``step`` is ``of`` reduced along its last axis, with this axis restored as size 1.

    If the axis were not restored, the result would be broadcast along another axis. A scalar is
    broadcast correctly, so its axis need not be restored.
    """
    column = _as_column(step)
    if column is None:
        return False
    return column.op == op and column.inputs[0] is of and column.settings == ((len(of.shape) - 1,),)
