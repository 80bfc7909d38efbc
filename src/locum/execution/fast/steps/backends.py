"""Implement the steps of a plan on arrays: in NumPy, and in torch on the device of the tensors.

A backend converts a step to a function of the arrays of its inputs. Before steps are fused, they are
the same for both libraries. The backend for torch uses torch's fused operations, such as scaled
dot-product attention.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from locum.errors import InputError
from locum.execution.array_numbers import round_array
from locum.execution.arrays import Array, Arrays, is_tensor, is_traced, known_number, lasting
from locum.execution.elementwise import MEANINGS, checked, refusing
from locum.execution.fast.steps.step import Shape, Step, row_major
from locum.execution.fast.steps.tiling import attention_by_rows, softmax_attention
from locum.graph.operations import ROUNDINGS

Function = Callable[..., Any]

#: Policy of NumPy plans for undefined results: they raise the error that NumPy raises in these plans.
_RAISE = refusing(lambda problem, kind, where: FloatingPointError(problem))


def backend_for(like: Any = None, ieee: bool = False) -> Backend:
    """Return the backend for arrays such as ``like``, by default NumPy in float64.

    With ``ieee``, arrays may have different types, and arithmetic follows IEEE 754.
    """
    if ieee:
        return _ieee_backend(like.device if is_tensor(like) else None)
    if is_tensor(like):
        if not like.dtype.is_floating_point:
            raise InputError(f"expected a tensor of floating-point numbers, got {like.dtype}")
        return _torch_backend(like.dtype, like.device)
    is_float = isinstance(like, np.ndarray) and like.dtype.kind == "f"
    return _numpy_backend(like.dtype if is_float else np.dtype(np.float64))


@functools.cache
def _torch_backend(dtype: Any, device: Any) -> Backend:
    import torch

    return Backend(Arrays(torch.empty(0, dtype=dtype, device=device)))


@functools.cache
def _numpy_backend(dtype: np.dtype[Any]) -> Backend:
    return Backend(Arrays(np.zeros(0, dtype)))


@functools.cache
def _ieee_backend(device: Any) -> Backend:
    if device is None:
        return Backend(Arrays(np.zeros(0)), ieee=True)
    import torch

    return Backend(Arrays(torch.empty(0, dtype=torch.float64, device=device)), ieee=True)


class Backend:
    """The implementation of steps on one kind of array."""

    def __init__(self, arrays: Arrays, ieee: bool = False) -> None:
        self.arrays = arrays
        self.ieee = ieee
        self.name = "torch" if arrays.on_torch else "numpy"
        #: Key that distinguishes plans for this backend from other plans.
        self.key = (self.name, arrays.float_name, str(arrays.device), ieee)
        #: Whether there are fused operations for softmax(q kᵀ) v, GELU and layer norms.
        self.has_fused = arrays.on_torch
        #: Whether the type is a 16-bit float.
        self.is_half = arrays.float_name in ("float16", "bfloat16")
        torch: Any = sys.modules.get("torch")
        #: Function that returns the number of active torch modes, which tracers use; None for NumPy.
        self._modes = torch._C._len_torch_dispatch_stack if arrays.on_torch else None

    def function(self, step: Step) -> Function:
        """Return the function that computes a step from the arrays of its inputs."""
        arrays, xp, shape = self.arrays, self.arrays.xp, step.shape
        match step.op, step.settings:
            case "apply", (str(op),):
                return self.elementwise(op)
            case "permute", (tuple(order),):
                return self.permute(order)
            case "reshape", ():
                return operator.methodcaller("reshape", shape)
            case "expand", ():
                return lambda x: xp.broadcast_to(x, shape)
            case "concatenate", ():
                return lambda *parts: xp.concat(parts)
            case "to_float", ():
                return arrays.to_float
            case "gather", ():
                part = None if arrays.on_torch else _slice_of(step.inputs[1].value)
                if part is not None:
                    return lambda x, where: x.reshape(-1)[part].copy()
                return lambda x, where: x.reshape(-1)[where]
            case "fetch", (int(start), bool(inside), float(default)):
                return functools.partial(self.fetch, start=start, inside=inside, default=default)
            case "argmax", (int(axis),):
                return lambda x: x.argmax(axis)
            case "scatter", (int(first),):
                return functools.partial(self.scatter, shape, first)
            case "matmul", ():
                if self.ieee:
                    return self.matmul
                return operator.matmul if arrays.on_torch else _matmul
            case "view", (tuple(strides), int(offset)):
                return self.view(step.inputs[0].shape, shape, strides, offset)
            case (("sum" | "maximum" | "minimum" | "any"), (tuple(axes),)):
                return self.reduction(step.op, axes)
            case "clip", (least, greatest):
                return lambda x: x.clip(least, greatest)
            case "assemble", places:
                return self.assemble(shape, places)
            case "softmax", ():
                return operator.methodcaller("softmax", -1) if arrays.on_torch else _softmax
            case "softmax", ("safe",):
                return functools.partial(xp.ops.aten._safe_softmax.default, dim=-1)
            case "attention", (bool(causal), float(scale)):
                if self.ieee:
                    return self.scaled_attention(step, causal, scale)
                return functools.partial(self.attention, causal=causal)
            case "take_rows", (int(first),):
                return functools.partial(self.take_rows, first=first)
            case "positions", (tuple(spec), int(first)):
                return functools.partial(self.positions, spec, first)
            case "join", (int(axis),):
                return lambda *parts: xp.concat(parts, axis=axis)
            case "silu", ():
                return xp.nn.functional.silu  # type: ignore[no-any-return]
            case "biased_product", ():
                return lambda x, weights, bias: xp.addmm(bias, x, weights)
            case "gelu", ("none" | "tanh" as approximate,):
                return functools.partial(xp.nn.functional.gelu, approximate=approximate)
            case "gelu", ("in place",):
                return self.gelu_in_place
            case "layer_norm", ():
                return self.layer_norm
            case "layer_norm", (float(epsilon),):
                return lambda x, gain=None, bias=None: xp.nn.functional.layer_norm(
                    x, shape[-1:], gain, bias, epsilon
                )
        raise AssertionError(f"no backend implements the step {step.op}")

    def check(self, part: Any, shape: Shape) -> None:
        """Raise an error if an array differs from the plan's operand in shape, type or device."""
        arrays = self.arrays
        if not (is_tensor(part) if arrays.on_torch else isinstance(part, np.ndarray)):
            expected = "a torch tensor" if arrays.on_torch else "a NumPy array"
            raise InputError(
                f"expected {expected}, as the plan was made for, got {type(part).__name__}"
            )
        # Arrays of NumPy before version 2 have no device attribute.
        device = part.device if arrays.on_torch else arrays.device
        if part.shape != shape or part.dtype != arrays.float or device != arrays.device:
            raise InputError(
                f"the plan expects tokens of shape {shape} and {arrays.float_name} on {arrays.device}, "
                f"got {tuple(part.shape)} and {part.dtype} on {device}"
            )

    def constant(self, value: Any) -> Array:
        """Return a constant of the plan as an array, which has real values even while torch traces."""
        if not self.arrays.on_torch:
            return self.arrays.put(value)
        put = functools.partial(self.arrays.put, as_given=self.ieee)
        with lasting():
            if not self.is_tracing():
                return put(value)
            from torch.utils._python_dispatch import _disable_current_modes

            with _disable_current_modes():
                return put(value)

    def is_tracing(self) -> bool:
        """Return whether a torch mode is active, as in a trace. New tensors may then have no values."""
        return self._modes is not None and self._modes() > 0

    def elementwise(self, op: str) -> Function:
        """Return the function of the elementwise operation ``op``.

        On tensors, the function follows IEEE 754. On NumPy arrays, the function raises
        ``FloatingPointError`` for results that dense execution rejects, unless the backend is for IEEE
        arithmetic.
        """
        arrays, meaning = self.arrays, MEANINGS[op]
        if self.ieee:
            return self.rounding(op) if op in ROUNDINGS else functools.partial(meaning.array, arrays)
        if arrays.on_torch or not (meaning.undefined or meaning.overflows):
            return functools.partial(meaning.array, arrays)
        return lambda *inputs: checked(arrays, op, inputs, _RAISE)

    def rounding(self, dtype: str) -> Function:
        """Return the function that rounds numbers to a floating-point type.

        The result has this type, except that NumPy represents bfloat16 numbers as float32.
        """
        if self.arrays.on_torch:
            return operator.methodcaller("to", getattr(self.arrays.xp, dtype))
        narrow = np.float32 if dtype == "bfloat16" else np.dtype(dtype)  # NumPy has no bfloat16
        return lambda x: round_array(np.asarray(x), dtype).astype(narrow)

    def fetch(self, x: Array, where: Array, start: int, inside: bool, default: float) -> Array:
        """Return the elements of ``x`` at the positions ``where``.

        ``x`` is flattened, and its first element has the position ``start``. Positions that are not
        integers or are outside of ``x`` give the default. With ``inside``, no position is outside.
        """
        xp, row = self.arrays.xp, x.reshape(-1)
        places = self.arrays.to_int(where) - start
        known = (places >= 0) & (places < row.shape[0])
        found = row[xp.where(known, places, 0)]
        if inside and self.arrays.is_int(where):
            return found
        missing: Any = default
        if self.arrays.is_int(found):  # with a number that is a float, torch would make them float32
            if default.is_integer():
                missing = int(default)
            else:
                found = self.arrays.to_float(found)
        return xp.where(known & (places + start == where), found, missing)

    def scatter(self, shape: Shape, first: int, target: Array, values: Array) -> Array:
        """Sum the values that have the same index in ``target``.

        ``first`` is the index of the first element of the result. Both arrays have the axes of the
        result except its first one, followed by the summed axes. Indices that are outside of the
        result, or are not integers, are ignored.
        """
        xp, arrays = self.arrays.xp, self.arrays
        size, others = shape[0], math.prod(shape[1:])
        places = arrays.to_int(target) - first
        known = (places >= 0) & (places < size) & (places + first == target)
        summed = (1,) * (target.ndim - len(shape) + 1)
        lanes = arrays.arange(others).reshape((*shape[1:], *summed))
        index = xp.where(known, places, size) * others + lanes
        return arrays.add_at((size + 1) * others, index.reshape(-1), values.reshape(-1))[
            : size * others
        ].reshape(shape)

    def permute(self, order: tuple[int, ...]) -> Function:
        """Return the function that permutes the axes of an array by ``order``."""
        if order == (1, 0):
            return operator.attrgetter("T")
        return operator.methodcaller("permute" if self.arrays.on_torch else "transpose", order)

    def reduction(self, op: str, axes: tuple[int, ...]) -> Function:
        """Return the function that computes a sum, maximum, minimum or ``any`` along axes."""
        prefix = "a" if self.arrays.on_torch else ""
        name = {"maximum": f"{prefix}max", "minimum": f"{prefix}min"}.get(op, op)
        return operator.methodcaller(name, axes)

    def view(self, native: Shape, shape: Shape, strides: Shape, offset: int) -> Function:
        """Return the function that makes a strided view, by slicing and reshaping if possible."""
        order = sorted(range(len(shape)), key=lambda n: -strides[n])
        ordered = tuple(shape[n] for n in order)
        if tuple(strides[n] for n in order) != row_major(ordered):
            # Strides refer to memory, so the array must be contiguous.
            arrays = self.arrays
            return lambda x: arrays.strided(arrays.contiguous(x), shape, strides, offset)
        end = offset + math.prod(shape)
        whole = offset == 0 and end == math.prod(native)
        back = tuple(order.index(n) for n in range(len(shape)))
        permute = None if back == tuple(range(len(back))) else self.permute(back)

        def look(x: Any) -> Any:
            flat = x if x.ndim == 1 or whole else x.reshape(-1)
            part = (flat if whole else flat[offset:end]).reshape(ordered)
            return part if permute is None else permute(part)

        return look

    def assemble(self, shape: Shape, places: Sequence[Any]) -> Function:
        """Return the function that fills a new array piece by piece."""
        arrays = self.arrays

        def fill(*parts: Array) -> Array:
            dtype = functools.reduce(arrays.xp.promote_types, (part.dtype for part in parts))
            result = arrays.xp.empty(shape, dtype=dtype, device=arrays.device)
            for part, (size, strides, offset) in zip(parts, places, strict=True):
                arrays.strided(result, size, strides, offset)[...] = part
            return result

        return fill

    def matmul(self, a: Array, b: Array) -> Array:
        """Multiply matrices, whose types may differ, in their promoted type."""
        if a.dtype != b.dtype:
            dtype = self.arrays.xp.promote_types(a.dtype, b.dtype)
            a, b = self.arrays.cast(a, dtype), self.arrays.cast(b, dtype)
        return a @ b if self.arrays.on_torch else _matmul(a, b)

    def attention(
        self, q: Array, k: Array, v: Array, mask: Array | None = None, causal: bool = False
    ) -> Array:
        """Return softmax(q kᵀ) v, batched, over the keys at which the mask is true.

        A mask of numbers is added to the scores. Attention is computed in blocks of rows on NumPy
        arrays, and on tensors on a CPU if q and v differ in width. Torch's kernel would then need
        memory for all scores. In all other cases, torch's kernels compute all rows at once.
        """
        if not self.arrays.on_torch:
            return attention_by_rows(softmax_attention, q, k, v, mask, causal)
        if q.shape[-1] != v.shape[-1] and not self.arrays.on_gpu:
            return attention_by_rows(self._attention, q, k, v, mask, causal)
        return self._attention(q, k, v, mask, causal)

    def _attention(self, q: Array, k: Array, v: Array, mask: Array | None, causal: bool) -> Array:
        """Return softmax(q kᵀ) v, computed by torch's kernels."""
        attend = functools.partial(
            self.arrays.xp.nn.functional.scaled_dot_product_attention, is_causal=causal, scale=1.0
        )
        if mask is not None and mask.ndim < 2:
            mask = mask.reshape(1, -1)
        if q.ndim == 4:
            return attend(q, k, v, mask)
        # The fast kernels require the shape [batch, head, position, feature].
        leading = q.shape[:-2]
        outer, inner = 1, math.prod(leading)
        if mask is not None and mask.ndim > 2:
            outer, inner, mask = _gathered(mask, leading)
        one, two, three = (x.reshape(outer, inner, *x.shape[-2:]) for x in (q, k, v))
        return attend(one, two, three, mask).reshape(*q.shape[:-1], v.shape[-1])

    def scaled_attention(self, step: Step, causal: bool, scale: float) -> Function:
        """Return the function that computes softmax(scale · q kᵀ + mask) v by torch's kernels.

        Several heads of q may share a head of k and v.
        """
        return functools.partial(
            self.arrays.xp.nn.functional.scaled_dot_product_attention,
            is_causal=causal,
            scale=scale,
            enable_gqa=step.inputs[0].shape[1] != step.inputs[1].shape[1],
        )

    def positions(self, spec: Sequence[tuple[int, int]], first: int) -> Array:
        """Return first + Σ index · coefficient over axes of the given sizes and coefficients."""
        total = self.arrays.arange(1) + first
        for size, coefficient in spec:
            total = total[..., None] + self.arrays.arange(size) * coefficient
        return total[0]

    def take_rows(self, table: Array, rows: Array, first: int) -> Array:
        """Return rows of a table, whose first row has the index ``first``."""
        places = self.arrays.to_int(rows)
        return self.arrays.xp.nn.functional.embedding(places - first if first else places, table)

    def gelu_in_place(self, x: Array) -> Array:
        """Compute GELU, in the memory of x if torch does not need x again.

        No other step may read x.
        """
        if x.requires_grad or self.is_tracing() or is_traced(x):
            return self.arrays.xp.nn.functional.gelu(x)
        torch: Any = sys.modules["torch"]
        return torch._C._nn.gelu_(x)

    def layer_norm(
        self, x: Array, epsilon: Array, gain: Array | None = None, bias: Array | None = None
    ) -> Array:
        """Return (x − mean) / √(variance + ε) · gain + bias along the last axis (torch only)."""
        # Torch's function takes ε as a number.
        number = known_number(epsilon)
        if number is not None:
            return self.arrays.xp.nn.functional.layer_norm(x, x.shape[-1:], gain, bias, number)
        single = x.float() if self.is_half else x
        variance, mean = self.arrays.xp.var_mean(single, -1, correction=0, keepdim=True)
        result = (single - mean) / (variance + epsilon).sqrt()
        result = result if gain is None else result * gain + bias
        return result.to(x.dtype)


def _gathered(mask: Array, leading: Shape) -> tuple[int, int, Array]:
    """Merge the leading axes of a mask into two axes, if possible without repeating the mask.

    Return the sizes of the two axes for q, k and v, and the mask.
    """
    scores = mask.shape[-2:]
    own = (1,) * (len(leading) + 2 - mask.ndim) + tuple(mask.shape[:-2])
    for place in range(len(leading) + 1):
        outer, inner = math.prod(leading[:place]), math.prod(leading[place:])
        if own == (1,) * place + leading[place:]:
            return outer, inner, mask.reshape(1, inner, *scores)
        if own == leading[:place] + (1,) * (len(leading) - place):
            return outer, inner, mask.reshape(outer, 1, *scores)
    size = math.prod(leading)
    return 1, size, mask.broadcast_to(*leading, *scores).reshape(1, size, *scores)


def _slice_of(index: Any) -> slice | None:
    """Return the slice that is equivalent to an index array of at least two numbers, or None.

    >>> _slice_of(np.array([3, 2, 1, 0])), _slice_of(np.array([1, 3, 6]))
    (slice(3, None, -1), None)
    """
    if index is None or index.ndim != 1 or len(index) < 2:
        return None
    step = int(index[1] - index[0])
    if step == 0 or int(index.min()) < 0 or (index[1:] - index[:-1] != step).any():
        return None
    stop = int(index[-1]) + step
    return slice(int(index[0]), stop if stop >= 0 else None, step)


def _matmul(a: Array, b: Array) -> Array:
    """Multiply NumPy matrices over their last two axes, without floating-point warnings."""
    # BLAS may set error flags for numbers that it does not use. Real errors appear in the result.
    with np.errstate(all="ignore"):
        return a @ b


def _softmax(x: Array) -> Array:
    """Return the softmax of a NumPy array along the last axis."""
    powers = x - x.max(axis=-1, keepdims=True)
    np.exp(powers, out=powers)
    powers /= powers.sum(axis=-1, keepdims=True)
    return powers
