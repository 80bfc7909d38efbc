"""Fuse the steps of IEEE arithmetic into operations that torch implements as one kernel.

The rules recognise the computation. Between the steps of a pattern, there may be steps that only change
the shape. If operands were converted from half precision and the result is rounded to it, the rounding
becomes part of the kernel. There are rules for

- softmax, also with 0 in rows in which all scores are −∞;
- attention: softmax(scale · q kᵀ + mask) v, also with a causal mask and with grouped-query attention;
- a product of matrices plus a bias, x W + b;
- GELU, exact or approximated with tanh, and SiLU;
- layer norm, also with gain and bias;
- rows of a table at indices from data;
- arrays that are concatenated along an axis.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import numpy as np

from locum.execution.fast.steps.magnitude import StepTypes
from locum.execution.fast.steps.step import Shape, Step, Steps, is_row_major, row_major
from locum.graph.operations import ROUNDINGS

#: Function that returns the replacement of a step, or None if the rule does not apply. The arguments
#: are the step, the number of uses of each step, and the :class:`Steps` that creates new steps.
Rule = Callable[[Step, Counter[Step], Steps], Step | None]

_KERNELS = ("softmax", "attention", "biased_product", "gelu", "silu", "layer_norm", "matmul")
#: Operations that torch computes in float32 for operands in half precision.
_COMPUTED_IN_FLOAT32 = ("add", "subtract", "multiply", "divide", "sqrt", "exp", "log", "tanh", "erf")


def ieee_rules(has_kernels: bool) -> tuple[Rule, ...]:
    """Return the rules for one plan, in the order of application."""
    types = StepTypes()
    rules: tuple[Rule, ...] = (partial(_needless_rounding, types=types), _shape)
    if has_kernels:
        kernels = (_softmax, _attention, _biased_product, _gelu, _silu, _layer_norm)
        rules += tuple(partial(_of_one_type, rule=rule, types=types) for rule in kernels)
        rules += (_take_rows, _join, partial(_half_precision, types=types))
    return rules


def composed_rules() -> tuple[Rule, ...]:
    """Return the rules for patterns that span several small programs."""
    return (partial(_of_one_type, rule=_attention, types=StepTypes()),)


def _of_one_type(
    step: Step, uses: Counter[Step], steps: Steps, rule: Rule, types: StepTypes
) -> Step | None:
    """Apply a rule if all operands of its kernel, except boolean masks, have one floating-point type.

    Kernels do not promote types.
    """
    types.of(step)
    found = rule(step, uses, steps)
    if found is None:
        return None
    kernel = _bare(found)
    known = {types.of(operand) for operand in kernel.inputs if not operand.boolean}
    return found if known <= set(ROUNDINGS) and len(known) == 1 else None


def _needless_rounding(step: Step, uses: Counter[Step], steps: Steps, types: StepTypes) -> Step | None:
    """Drop a rounding to the type that the value already has."""
    types.of(step)  # inputs come first, so that the recursion is never deep
    is_rounding = step.op == "apply" and step.settings[0] in ROUNDINGS
    return step.inputs[0] if is_rounding and types.of(step.inputs[0]) == step.settings[0] else None


def _shape(step: Step, uses: Counter[Step], steps: Steps) -> Step | None:
    """Apply a reshape or a view to the original array instead of a reshaped one."""
    if step.op == "reshape":
        return steps.reshape(_bare(step.inputs[0]), step.shape)
    if step.op == "view":
        strides, offset = step.settings
        assert isinstance(strides, tuple)
        assert isinstance(offset, int)
        return steps.view(_bare(step.inputs[0]), step.shape, strides, offset)
    return None


# Kernels ----------------------------------------------------------------------------------------------


def _softmax(step: Step, uses: Counter[Step], steps: Steps) -> Step | None:
    """Match exp(x − max x) / Σ exp(x − max x) along the last axis.

    In the *safe* form, a maximum of −∞ is replaced by 0, and a sum of 0 by 1.
    """
    if not _is(step, "divide") or not step.shape:
        return None
    size = step.shape[-1]
    powers, total = _bare(step.inputs[0]), _column(step.inputs[1])
    if not _is(powers, "exp") or total is None:
        return None
    shifted = _bare(powers.inputs[0])
    if not _is(shifted, "subtract") or shifted.shape[-1:] != (size,):
        return None
    scores, peak = shifted.inputs[0], _column(shifted.inputs[1])
    if peak is None or scores.shape != shifted.shape:
        return None
    counted, finite = _unless(total, 0.0, 1.0), _unless(peak, -math.inf, 0.0)
    is_safe = counted is not None
    if is_safe != (finite is not None):
        return None
    if counted is not None and finite is not None:
        total, peak = counted, finite
    if _reduced(total, "sum", size) is not powers:
        return None
    highest = _reduced(peak, "maximum", size)
    if highest is None or _without_nan(highest) is not _bare(scores):
        return None
    scores = steps.reshape(_bare(scores), step.shape)
    return steps.make("softmax", (scores,), step.shape, ("safe",) if is_safe else ())


def _attention(step: Step, uses: Counter[Step], steps: Steps) -> Step | None:
    """Match softmax(scale · q kᵀ + mask) v with a safe softmax."""
    if step.op != "matmul" or len(step.shape) < 3:
        return None
    weights, v = _bare(step.inputs[0]), step.inputs[1]
    if weights.op != "softmax" or weights.settings != ("safe",) or uses[weights] > 1:
        return None
    scores, mask, rows = _unmask(_bare(weights.inputs[0]))
    scale, product = _scaled(scores)
    batch = step.shape[:-2]
    found_product = _read_product(product, batch, steps)
    if found_product is None:
        return None
    q, transposed = found_product
    factor, q = _without_factor(q, steps)
    other_factor, transposed = _without_factor(transposed, steps)
    scale *= factor * other_factor
    queries, keys = step.inputs[0].shape[-2:]
    if any(x.shape[:-2] != batch for x in (transposed, v)) or v.shape[-2] != keys:
        return None
    features = transposed.shape[-2]
    if transposed.shape[-1] != keys or q.size != math.prod(batch) * queries * features:
        return None
    k = _transpose(transposed, steps)
    if mask is not None and rows[-1] != keys:  # scores and mask are flattened
        if mask.size != math.prod(rows):
            return None
        rows = (*batch, queries, keys)
        mask = steps.reshape(_bare(mask), rows)
    is_causal = mask is not None and _is_causal(mask, keys)
    if is_causal:
        assert mask is not None
        outer, length, mask_shape = _outer(batch), mask.shape[-2], None
    elif mask is None:
        outer, length, mask_shape = _outer(batch), queries, None
    else:
        found = _arrange_mask(mask.shape, rows[:-1], batch, queries)
        if found is None:
            return None
        outer, length, mask_shape = found
    if is_causal and scale <= 0:  # PyTorch's kernel for a CPU returns NaN
        return None
    heads = math.prod(batch) // outer
    if queries % length or math.prod(batch) % outer:
        return None
    members = queries // length
    inputs = [
        steps.reshape(_bare(q), (outer, heads * members, length, features)),
        steps.reshape(k, (outer, heads, keys, k.shape[-1])),
        steps.reshape(v, (outer, heads, keys, v.shape[-1])),
    ]
    if mask is not None and mask_shape is not None:
        inputs.append(steps.reshape(_bare(mask), mask_shape))
    shape = (outer, heads * members, length, v.shape[-1])
    return steps.reshape(steps.make("attention", inputs, shape, (is_causal, scale)), step.shape)


def _transpose(matrices: Step, steps: Steps) -> Step:
    """Return matrices with the last two axes exchanged.

    If leading axes were merged by a reshape, the axes are exchanged before the merge, since kernels
    need contiguous rows.
    """
    if matrices.op == "reshape" and matrices.inputs[0].shape[-2:] == matrices.shape[-2:]:
        rows = _transpose(matrices.inputs[0], steps)
        return steps.reshape(rows, (*matrices.shape[:-2], *rows.shape[-2:]))
    last = len(matrices.shape) - 1
    return steps.permute(matrices, (*range(last - 1), last, last - 1))


def _read_product(product: Step, batch: Shape, steps: Steps) -> tuple[Step, Step] | None:
    """Return q and kᵀ of a product whose rows may have been permuted, or None if there is no match.

    The rows of the returned q are in the order of the rows of the product.
    """
    if product.op == "matmul":
        q, transposed = product.inputs
        return (_bare(q), transposed) if q.shape[:-2] == batch else None
    if product.op != "permute":
        return None
    (order,) = product.settings
    assert isinstance(order, tuple)
    shape = product.inputs[0].shape
    inner = _bare(product.inputs[0])
    if inner.op != "matmul" or inner.shape[:-2] != batch:
        return None
    q, transposed = inner.inputs
    last, leading = len(shape) - 1, len(batch)
    keeps = order[:leading] == tuple(range(leading)) and order[-1] == last
    if not keeps or shape[:leading] != batch or q.shape[:-2] != batch:
        return None
    rows = steps.reshape(_bare(q), (*shape[:-1], q.shape[-1]))
    return steps.permute(rows, order), transposed


def _unmask(scores: Step) -> tuple[Step, Step | None, Shape]:
    """Return unmasked scores, the mask or None, and the shape of the scores.

    The mask is boolean and true at visible keys, or contains numbers that are added to the scores.
    """
    rows = scores.shape
    if _is(scores, "if_else"):
        mask, inner, hidden = scores.inputs
        if _is_number(hidden, -math.inf) and inner.shape == scores.shape and mask.boolean:
            return _bare(inner), mask, rows
    if _is(scores, "add") and not scores.inputs[1].boolean:
        inner, mask = scores.inputs
        is_product = _scaled(_bare(inner))[1].op in ("matmul", "permute")
        if is_product and inner.shape == scores.shape and mask.shape[-1:] == scores.shape[-1:]:
            return _bare(inner), mask, rows
    return scores, None, rows


def _without_factor(operand: Step, steps: Steps) -> tuple[float, Step]:
    """Return the number by which an operand is multiplied, and the operand without this factor."""
    if operand.op in ("permute", "reshape", "view"):
        factor, inner = _without_factor(operand.inputs[0], steps)
        if inner is operand.inputs[0]:
            return 1.0, operand
        return factor, steps.make(operand.op, (inner,), operand.shape, operand.settings)
    factor, inner = _scaled(operand)
    return factor, inner if inner is operand else steps.reshape(inner, operand.shape)


def _scaled(scores: Step) -> tuple[float, Step]:
    """Return the number and the other operand of a product with a number, or 1 and ``scores``."""
    if _is(scores, "multiply"):
        for number, other in (scores.inputs, scores.inputs[::-1]):
            if number.value is not None and number.size == 1:
                return float(number.value.reshape(())), _bare(other)
    return 1.0, scores


def _is_causal(mask: Step, keys: int) -> bool:
    """Return whether a mask is recognised as causal: true exactly at the keys up to each query."""
    if mask.value is None:
        return len(mask.shape) == 2 and _compared_positions(mask) == ((mask.shape[0], 1), (keys, -1))
    if not mask.boolean or mask.value.ndim < 2:
        return False
    rows = mask.shape[-2]
    if mask.size != rows * keys:
        return False
    return bool((mask.value.reshape(rows, keys) == np.tri(rows, keys)).all())


def _compared_positions(mask: Step) -> tuple[Shape, ...] | None:
    """Return the sizes and coefficients of the table of positions that a mask compares with 0.

    If the mask is not recognised as true exactly where such a table is at least 0, return None.
    """
    if mask.op == "permute" and mask.settings == ((1, 0),):
        found = _compared_positions(mask.inputs[0])
        return None if found is None else found[::-1]
    if _is(mask, "not_equal") and _is_number(mask.inputs[1], 0.0):
        chosen = mask.inputs[0]
        is_indicator = _is(chosen, "if_else") and _is_number(chosen.inputs[1], 1.0)
        if is_indicator and _is_number(chosen.inputs[2], 0.0):
            return _compared_positions(chosen.inputs[0])
    if _is(mask, "greater_equal") and _is_number(mask.inputs[1], 0.0):
        table = mask.inputs[0]
        if table.op == "positions" and table.settings[1] == 0:
            return cast(tuple[Shape, ...], table.settings[0])
    return None


def _outer(batch: Shape) -> int:
    return batch[0] if len(batch) > 1 else 1


def _arrange_mask(
    mask: Shape, rows: Shape, batch: Shape, queries: int
) -> tuple[int, int, Shape] | None:
    """Return a split of the scores into batches, heads and queries to which the mask can be broadcast.

    The result consists of the number of batches, the number of queries, and the shape of the mask in
    four dimensions. It is None if no such split is found.
    """
    aligned = (1,) * (len(rows) + 1 - len(mask)) + tuple(mask)
    groups: list[tuple[int, bool]] = []  # sizes of rows, and whether the mask differs along them
    for size, own in zip(rows, aligned[:-1], strict=True):
        if size == 1:
            continue
        if own not in (1, size):
            return None
        if groups and groups[-1][1] == (own > 1):
            groups[-1] = (groups[-1][0] * size, own > 1)
        else:
            groups.append((size, own > 1))
    keys = aligned[-1]
    whole = math.prod(batch)
    match [own for _, own in groups]:
        case [] | [False]:
            return _outer(batch), queries, (1, 1, 1, keys)
        case [True]:
            outer = _outer(batch)
            return outer, queries, (outer, whole // outer, queries, keys)
        case [True, False]:
            outer = groups[0][0]
            return None if whole % outer else (outer, queries, (outer, 1, 1, keys))
        case [False, True]:
            length = groups[1][0]
            return None if queries % length else (_outer(batch), length, (1, 1, length, keys))
        case [True, False, True]:
            outer, length = groups[0][0], groups[2][0]
            if whole % outer or queries % length:
                return None
            return outer, length, (outer, 1, length, keys)
    return None


def _biased_product(step: Step, uses: Counter[Step], steps: Steps) -> Step | None:
    """Match x W + b, where b has one number for each column."""
    if not _is(step, "add"):
        return None
    for total, bias in (step.inputs, step.inputs[::-1]):
        product = _bare(total)
        if product.op != "matmul" or len(product.shape) != 2 or total.shape != step.shape:
            continue
        columns = product.shape[-1]
        if bias.boolean or bias.size != columns or bias.shape[-1:] != (columns,) or uses[product] > 1:
            continue
        if step.shape[-1] != columns:
            continue
        inputs = (*product.inputs, steps.reshape(_bare(bias), (columns,)))
        return steps.reshape(steps.make("biased_product", inputs, product.shape), step.shape)
    return None


def _gelu(step: Step, uses: Counter[Step], steps: Steps) -> Step | None:
    """Match x/2 · (1 + erf(x/√2)), or its approximation with tanh."""
    for half, other in _operands(step, "multiply"):
        x = _times(half, 0.5)
        raised = _plus(other, 1.0)
        if x is None or raised is None:
            continue
        if _is(raised, "erf"):
            inner = _times(_bare(raised.inputs[0]), math.sqrt(0.5))
            if inner is x:
                return steps.make("gelu", (steps.reshape(x, step.shape),), step.shape, ("none",))
        if _is(raised, "tanh"):
            inner = _times(_bare(raised.inputs[0]), math.sqrt(2 / math.pi))
            if inner is not None and _is_with_cube(inner, x):
                return steps.make("gelu", (steps.reshape(x, step.shape),), step.shape, ("tanh",))
    return None


def _is_with_cube(step: Step, x: Step) -> bool:
    """Return whether a step is x + 0.044715 x³."""
    for first, second in _operands(step, "add"):
        factors = _factors(second)
        numbers = [float(f.value.reshape(())) for f in factors if f.value is not None and f.size == 1]
        others = [f for f in factors if f.value is None]
        is_cube = len(factors) == 4 and len(others) == 3 and all(f is x for f in others)
        if _bare(first) is x and is_cube and _is_close(numbers[0], 0.044715):
            return True
    return False


def _factors(step: Step) -> list[Step]:
    """Return the factors of a nested product, but at most five."""
    step = _bare(step)
    if not _is(step, "multiply"):
        return [step]
    first, second = step.inputs
    return [*_factors(first), *_factors(second)][:5]


def _silu(step: Step, uses: Counter[Step], steps: Steps) -> Step | None:
    """Match x / (1 + exp(−x))."""
    if not _is(step, "divide"):
        return None
    x, power = _bare(step.inputs[0]), _plus(_bare(step.inputs[1]), 1.0)
    if power is None or not _is(power, "exp") or step.inputs[0].shape != step.shape:
        return None
    negated = _bare(power.inputs[0])
    if not _is(negated, "negate") or _bare(negated.inputs[0]) is not x:
        return None
    return steps.make("silu", (steps.reshape(x, step.shape),), step.shape)


def _layer_norm(step: Step, uses: Counter[Step], steps: Steps) -> Step | None:
    """Match (x − mean) · (1 / √(variance + ε)) along the last axis, also with gain and bias."""
    if not step.shape:
        return None
    size, inner = step.shape[-1], step
    bias = gain = None
    if _is(inner, "add"):
        inner, bias = _bare(inner.inputs[0]), inner.inputs[1]
    if _is(inner, "multiply") and _column(inner.inputs[1]) is None:
        inner, gain = _bare(inner.inputs[0]), inner.inputs[1]
    if (bias is None) != (gain is None) or not _is(inner, "multiply"):
        return None
    if any(part is not None and part.shape[-1:] != (size,) for part in (gain, bias)):
        return None
    if any(part is not None and part.size != size for part in (gain, bias)):
        return None
    centred, inverse = _bare(inner.inputs[0]), _column(inner.inputs[1])
    if inverse is None or inner.shape[-1] != size or not _is(centred, "subtract"):
        return None
    found = _centred_and_epsilon(inverse, size)
    x, mean = centred.inputs[0], _column(centred.inputs[1])
    if found is None or found[0] is not centred or mean is None or x.shape[-1:] != (size,):
        return None
    if _averaged(mean, size) is not _bare(x):
        return None
    parts = [steps.reshape(_bare(part), (size,)) for part in (gain, bias) if part is not None]
    x = steps.reshape(_bare(x), step.shape)
    return steps.make("layer_norm", (x, *parts), step.shape, (found[1],))


def _centred_and_epsilon(inverse: Step, size: int) -> tuple[Step, float] | None:
    """Return c and ε if ``inverse`` is 1 / √(mean of c² + ε), else None."""
    if not _is(inverse, "divide") or not _is_number(inverse.inputs[0], 1.0):
        return None
    root = _bare(inverse.inputs[1])
    if not _is(root, "sqrt"):
        return None
    for variance, epsilon in _operands(_bare(root.inputs[0]), "add"):
        squares = _averaged(variance, size)
        if epsilon.value is None or epsilon.size != 1 or squares is None:
            continue
        if _is(squares, "multiply") and _bare(squares.inputs[0]) is _bare(squares.inputs[1]):
            return _bare(squares.inputs[0]), float(epsilon.value.reshape(()))
    return None


def _take_rows(step: Step, uses: Counter[Step], steps: Steps) -> Step | None:
    """Match a fetch of whole rows from the positions i · columns + column."""
    if step.op != "fetch" or not step.shape:
        return None
    start, inside, _ = step.settings
    base, where = step.inputs
    columns = step.shape[-1]
    assert isinstance(start, int)
    if not inside or start % columns or base.size % columns or base.boolean:
        return None
    for product, column in _operands(where, "add"):
        if column.value is None or column.size != columns or column.shape[-1:] != (columns,):
            continue
        if not (column.value.reshape(-1) == np.arange(columns)).all():
            continue
        rows = _times(product, float(columns))
        if rows is None or rows.size * columns != step.size or product.shape[-1:] != (1,):
            continue
        table = steps.reshape(_bare(base), (base.size // columns, columns))
        taken = (table, steps.reshape(rows, step.shape[:-1]))
        return steps.make("take_rows", taken, step.shape, (start // columns,))
    return None


def _join(step: Step, uses: Counter[Step], steps: Steps) -> Step | None:
    """Match pieces that follow one another along one axis of the result."""
    if step.op != "assemble":
        return None
    places = cast(tuple[tuple[Shape, Shape, int], ...], step.settings)
    layouts = [  # for each piece: stride → size
        {s: n for n, s in zip(shape, strides, strict=True) if n > 1} for shape, strides, _ in places
    ]
    offsets = [offset for *_, offset in places]
    shared = {s: n for s, n in layouts[0].items() if all(d.get(s) == n for d in layouts)}
    own = [{s: n for s, n in layout.items() if s not in shared} for layout in layouts]
    along = {s for rest in own for s in rest} or {offsets[1] - offsets[0]}
    if len(along) != 1:
        return None
    (axis,) = along
    sizes = [rest.get(axis, 1) for rest in own]
    if offsets != [axis * sum(sizes[:n]) for n in range(len(sizes))]:
        return None
    outer = sorted(((s, n) for s, n in shared.items() if s > axis), reverse=True)
    inner = sorted(((s, n) for s, n in shared.items() if s < axis), reverse=True)
    before, after = [n for _, n in outer], [n for _, n in inner]
    whole = (*before, sum(sizes), *after)
    expected = (*(s for s, _ in outer), axis, *(s for s, _ in inner))
    if math.prod(whole) != step.size or expected != row_major(whole):
        return None
    parts = []
    for part, layout, size in zip(step.inputs, layouts, sizes, strict=True):
        # Order axes by decreasing stride.
        order = sorted(layout, reverse=True)
        if [layout[s] for s in order] != [n for n in part.shape if n > 1]:
            return None
        parts.append(steps.reshape(part, (*before, size, *after)))
    joined = steps.make("join", parts, whole, (len(before),), step.boolean)
    return steps.reshape(joined, step.shape)


def _half_precision(step: Step, uses: Counter[Step], steps: Steps, types: StepTypes) -> Step | None:
    """Replace the operands of a kernel, or of an elementwise operation, by operands in half precision.

    The result must be rounded to the type from which the operands were converted.
    """
    types.of(step)
    if step.op != "apply" or step.settings[0] not in ("float16", "bfloat16"):
        return None
    kernel = _bare(step.inputs[0])
    is_kernel = kernel.op in _KERNELS or any(_is(kernel, op) for op in _COMPUTED_IN_FLOAT32)
    if not is_kernel or uses[kernel] > 1:
        return None
    narrow = []
    for operand in kernel.inputs:
        inner = _widened(operand, str(step.settings[0]), steps, types)
        if inner is None:
            return None
        narrow.append(inner)
    if all(operand.value is not None for operand in narrow):
        return None
    made = steps.make(kernel.op, narrow, kernel.shape, kernel.settings, kernel.boolean)
    return steps.reshape(made, step.shape)


def _widened(operand: Step, dtype: str, steps: Steps, types: StepTypes) -> Step | None:
    """Return the half-precision array that was converted to an operand in float32, or None if there is
    none.

    ``dtype`` is the type of this array, which is returned in the shape of the operand. Booleans and
    constant numbers are returned unchanged.
    """
    if operand.boolean or (operand.value is not None and not operand.shape):
        return operand
    if operand.op in ("permute", "reshape", "view"):
        inner = _widened(operand.inputs[0], dtype, steps, types)
        if inner is None:
            return None
        made = steps.make(operand.op, (inner,), operand.shape, operand.settings)
    elif _is(operand, "float32"):
        made = operand.inputs[0]
    else:
        return None
    _ask(types, made)
    return made if types.of(made) == dtype else None


def _ask(types: StepTypes, step: Step) -> None:
    if step.inputs and step.op in ("permute", "reshape", "view"):
        _ask(types, step.inputs[0])
    types.of(step)


# Parts of patterns ------------------------------------------------------------------------------------


def _bare(step: Step) -> Step:
    """Return an array before its shape was changed."""
    while step.op == "reshape" or (step.op == "view" and is_row_major(step)):
        (step,) = step.inputs
    return step


def _is(step: Step, op: str) -> bool:
    return step.op == "apply" and step.settings == (op,)


def _is_number(step: Step, value: float) -> bool:
    return step.value is not None and step.size == 1 and float(step.value.reshape(())) == value


def _operands(step: Step, op: str) -> Sequence[tuple[Step, Step]]:
    """Return the operands of a commutative operation in both orders, or none for another step."""
    if not _is(step, op):
        return ()
    a, b = step.inputs
    return ((a, b), (b, a))


def _times(step: Step, factor: float) -> Step | None:
    """Return the other factor if ``step`` is a product with the number ``factor``, else None.

    The number may have been rounded to float32.
    """
    for number, other in _operands(_bare(step), "multiply"):
        if number.value is not None and number.size == 1:
            found = float(number.value.reshape(()))
            if _is_close(found, factor):
                return _bare(other)
    return None


def _is_close(found: float, number: float) -> bool:
    """Return whether a constant equals a number up to 1e-15 of its size, or rounded to float32."""
    return math.isclose(found, number, rel_tol=1e-15) or found == float(np.float32(number))


def _plus(step: Step, addend: float) -> Step | None:
    """Return the other term if ``step`` is a sum with the number ``addend``, else None."""
    for number, other in _operands(_bare(step), "add"):
        if _is_number(number, addend):
            return _bare(other)
    return None


def _column(step: Step) -> Step | None:
    """Return a column or a single number before its shape was changed, or None for another array."""
    return _bare(step) if step.shape[-1:] == (1,) or step.size == 1 else None


def _reduced(step: Step, op: str, size: int) -> Step | None:
    """Return the operand if ``step`` is a reduction along a last axis of this size, else None."""
    if step.op != op:
        return None
    (whole,) = step.inputs
    is_last = step.settings == ((len(whole.shape) - 1,),)
    return _bare(whole) if is_last and whole.shape[-1] == size else None


def _averaged(step: Step, size: int) -> Step | None:
    """Return the array whose mean along the last axis is ``step``, or None if there is none."""
    step = _bare(step)
    if not _is(step, "divide") or not _is_number(step.inputs[1], size):
        return None
    return _reduced(_bare(step.inputs[0]), "sum", size)


def _unless(step: Step, value: float, replacement: float) -> Step | None:
    """Return x if ``step`` replaces x by ``replacement`` where x equals ``value``, else None."""
    if not _is(step, "if_else"):
        return None
    condition, then, other = step.inputs
    other = _bare(other)
    if not _is(condition, "equal") or not _is_number(then, replacement):
        return None
    for a, b in _operands(condition, "equal"):
        if _bare(a) is other and _is_number(b, value):
            return other
    return None


def _without_nan(step: Step) -> Step:
    """Return the value before a replacement of NaN by −∞, or the step itself."""
    if _is(step, "if_else"):
        condition, value, hidden = step.inputs
        value = _bare(value)
        is_comparison = _is(condition, "equal") and all(_bare(i) is value for i in condition.inputs)
        if is_comparison and _is_number(hidden, -math.inf):
            return value
    return step
