"""What the steps of a plan do to arrays: in NumPy, and in torch on whatever device the tensors are.

A backend turns a step into a function of the arrays of its inputs. Torch is imported when a tensor
comes in, never before. Steps are the same for both; where an array library has a fused operation
(softmax, scaled dot-product attention), its backend uses it.
"""

from __future__ import annotations

import functools
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from locum.errors import InputError
from locum.execution.arrays import erf, is_tensor
from locum.execution.fast.steps.step import Shape, Step, row_major

Function = Callable[..., Any]


@functools.cache
def _torch_backend(dtype: Any, device: Any) -> Backend:
    return TorchBackend(dtype, device)


def backend_for(like: Any) -> Backend:
    """The backend for arrays of this kind: NumPy in float64, if nothing is said."""
    if is_tensor(like):
        if not like.dtype.is_floating_point:
            raise InputError(f"a plan computes in floating point, but the tensor is of {like.dtype}")
        return _torch_backend(like.dtype, like.device)
    dtype = like.dtype if isinstance(like, np.ndarray) and like.dtype.kind == "f" else np.float64
    return NumPyBackend(dtype)


class Backend(ABC):
    """The meaning of steps on one kind of array."""

    name: ClassVar[str]
    #: Whether it has an operation for softmax(q kᵀ) v.
    has_attention: ClassVar[bool] = False
    #: What tells plans for it from those for others.
    key: tuple[Any, ...]

    def function(self, step: Step) -> Function:
        """What a step does: a function of the arrays of its inputs."""
        match step.op, step.settings:
            case "apply", (str(op),):
                return self.elementwise[op]
            case "permute", (tuple(order),):
                return self.permute(order)
            case "reshape" | "expand" | "concatenate" | "to_float" | "gather" | "matmul", ():
                return getattr(self, step.op)(step.shape)  # type: ignore[no-any-return]
            case "view", (tuple(strides), int(offset)):
                return self.view(step.inputs[0].shape, step.shape, strides, offset)
            case (("sum" | "maximum" | "minimum" | "any"), (tuple(axes),)):
                return self.reduction(step.op, axes)
            case "clip", (least, greatest):
                return lambda x: x.clip(least, greatest)
            case "assemble", places:
                return self.assemble(step.shape, places)
            case "softmax", ():
                return self.softmax
            case "attention", ():
                return self.attention
        raise AssertionError(f"no backend knows the step {step.op}")

    elementwise: Mapping[str, Function]

    @abstractmethod
    def check(self, part: Any, shape: Shape) -> None:
        """Refuse an array that is not what a plan was made for."""

    @abstractmethod
    def constant(self, value: Any) -> Any:
        """A constant of the plan in this kind of array."""

    @abstractmethod
    def copied(self, value: Any) -> Any:
        """The same numbers in memory of their own."""

    @abstractmethod
    def permute(self, order: tuple[int, ...]) -> Function:
        """Axes in another order."""

    @abstractmethod
    def expand(self, shape: Shape) -> Function:
        """Repeated along axes of size 1."""

    @abstractmethod
    def concatenate(self, shape: Shape) -> Function:
        """One after another."""

    @abstractmethod
    def to_float(self, shape: Shape) -> Function:
        """Truth values and whole numbers as numbers of the plan."""

    @abstractmethod
    def matmul(self, shape: Shape) -> Function:
        """Matrix products of the last two axes."""

    @abstractmethod
    def reduction(self, op: str, axes: tuple[int, ...]) -> Function:
        """Sum, maximum, minimum or any along axes."""

    @abstractmethod
    def strided(self, shape: Shape, strides: Shape, offset: int) -> Function:
        """Any view of an array whose rows follow one another."""

    @abstractmethod
    def assemble(self, shape: Shape, places: Sequence[Any]) -> Function:
        """A new array, filled piece by piece."""

    @abstractmethod
    def softmax(self, x: Any) -> Any:
        """Softmax along the last axis."""

    @abstractmethod
    def attention(self, q: Any, k: Any, v: Any) -> Any:
        """softmax(q kᵀ) v, batched."""

    def reshape(self, shape: Shape) -> Function:
        """The same numbers in another shape."""
        return lambda x: x.reshape(shape)

    def gather(self, shape: Shape) -> Function:
        """Numbers at given places of an array seen as one row."""
        return lambda x, where: x.reshape(-1)[where]

    def view(self, native: Shape, shape: Shape, strides: Shape, offset: int) -> Function:
        """A strided view: by slicing, reshaping and permuting where that says it all."""
        order = sorted(range(len(shape)), key=lambda n: -strides[n])
        ordered = tuple(shape[n] for n in order)
        if tuple(strides[n] for n in order) != row_major(ordered):
            return self.strided(shape, strides, offset)
        end = offset + math.prod(shape)
        whole = offset == 0 and end == math.prod(native)
        back = tuple(order.index(n) for n in range(len(shape)))
        permute = None if back == tuple(range(len(back))) else self.permute(back)

        def look(x: Any) -> Any:
            flat = x if x.ndim == 1 or whole else x.reshape(-1)
            part = (flat if whole else flat[offset:end]).reshape(ordered)
            return part if permute is None else permute(part)

        return look


class NumPyBackend(Backend):
    """NumPy, in float64 unless the tokens are of a smaller kind."""

    name = "numpy"

    def __init__(self, dtype: Any = np.float64) -> None:
        self.dtype = np.dtype(dtype)
        self.key = (self.name, str(self.dtype))
        self.elementwise: Mapping[str, Function] = {
            "add": operator.add,
            "subtract": operator.sub,
            "multiply": operator.mul,
            "divide": np.true_divide,
            "modulo": np.mod,
            "floor_divide": np.floor_divide,
            "power": np.power,
            "negate": operator.neg,
            "absolute": np.abs,
            "minimum": lambda a, b: np.where(a < b, a, b),
            "maximum": lambda a, b: np.where(a > b, a, b),
            "exp": np.exp,
            "log": np.log,
            "sqrt": np.sqrt,
            "erf": erf,
            "tanh": np.tanh,
            "floor": np.floor,
            "round": np.round,
            "equal": operator.eq,
            "not_equal": operator.ne,
            "less": operator.lt,
            "less_equal": operator.le,
            "greater": operator.gt,
            "greater_equal": operator.ge,
            "and": np.logical_and,
            "or": np.logical_or,
            "not": np.logical_not,
            "if_else": np.where,
        }

    def check(self, part: Any, shape: Shape) -> None:
        if not isinstance(part, np.ndarray):
            raise InputError(f"the plan was made for NumPy arrays, but got {type(part).__name__}")
        if part.shape != shape or part.dtype != self.dtype:
            raise InputError(
                f"the plan takes tokens of shape {shape} and {self.dtype} here, "
                f"but got {part.shape} and {part.dtype}"
            )

    def copied(self, value: Any) -> Any:
        return np.array(value)

    def constant(self, value: Any) -> Any:
        return value.astype(self.dtype) if value.dtype.kind == "f" else value

    def permute(self, order: tuple[int, ...]) -> Function:
        return lambda x: x.transpose(order)

    def expand(self, shape: Shape) -> Function:
        return lambda x: np.broadcast_to(x, shape)

    def concatenate(self, shape: Shape) -> Function:
        return lambda *parts: np.concatenate(parts)

    def to_float(self, shape: Shape) -> Function:
        return lambda x: x.astype(self.dtype)

    def matmul(self, shape: Shape) -> Function:
        def product(a: Any, b: Any) -> Any:
            # BLAS may raise flags for numbers it never uses; what matters shows in the result.
            with np.errstate(all="ignore"):
                return np.matmul(a, b)

        return product

    def reduction(self, op: str, axes: tuple[int, ...]) -> Function:
        named: Mapping[str, Function] = {
            "sum": np.sum,
            "maximum": np.max,
            "minimum": np.min,
            "any": np.any,
        }
        reduce = named[op]
        return lambda x: reduce(x, axis=axes)

    def strided(self, shape: Shape, strides: Shape, offset: int) -> Function:
        def look(x: Any) -> Any:
            flat = np.ascontiguousarray(x).reshape(-1)[offset:]
            apart = tuple(stride * flat.itemsize for stride in strides)
            return np.lib.stride_tricks.as_strided(flat, shape, apart, writeable=False)

        return look

    def assemble(self, shape: Shape, places: Sequence[Any]) -> Function:
        def fill(*parts: Any) -> Any:
            result = np.empty(shape, dtype=parts[0].dtype)
            for part, (size, strides, offset) in zip(parts, places, strict=True):
                apart = tuple(stride * result.itemsize for stride in strides)
                np.lib.stride_tricks.as_strided(result[offset:], size, apart)[...] = part
            return result

        return fill

    def softmax(self, x: Any) -> Any:
        powers = x - x.max(axis=-1, keepdims=True)
        np.exp(powers, out=powers)
        powers /= powers.sum(axis=-1, keepdims=True)
        return powers

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        with np.errstate(all="ignore"):
            scores = np.matmul(q, np.swapaxes(k, -1, -2))
            return np.matmul(self.softmax(scores), v)


class TorchBackend(Backend):
    """Torch tensors on any device; what it computes can be differentiated."""

    name = "torch"
    has_attention = True

    def __init__(self, dtype: Any, device: Any) -> None:
        import torch

        self.torch, self.dtype, self.device = torch, dtype, device
        self.key = (self.name, str(dtype), str(device))
        self.elementwise: Mapping[str, Function] = {
            "add": torch.add,
            "subtract": torch.sub,
            "multiply": torch.mul,
            "divide": torch.true_divide,
            "modulo": torch.remainder,
            "floor_divide": lambda a, b: torch.div(a, b, rounding_mode="floor"),
            "power": torch.pow,
            "negate": torch.neg,
            "absolute": torch.abs,
            "minimum": torch.minimum,
            "maximum": torch.maximum,
            "exp": torch.exp,
            "log": torch.log,
            "sqrt": torch.sqrt,
            "erf": torch.erf,
            "tanh": torch.tanh,
            "floor": torch.floor,
            "round": torch.round,
            "equal": torch.eq,
            "not_equal": torch.ne,
            "less": torch.lt,
            "less_equal": torch.le,
            "greater": torch.gt,
            "greater_equal": torch.ge,
            "and": torch.logical_and,
            "or": torch.logical_or,
            "not": torch.logical_not,
            "if_else": torch.where,
        }

    def check(self, part: Any, shape: Shape) -> None:
        if not isinstance(part, self.torch.Tensor):
            raise InputError(f"the plan was made for torch tensors, but got {type(part).__name__}")
        if part.shape != shape or part.dtype is not self.dtype or part.device != self.device:
            raise InputError(
                f"the plan takes tokens of shape {shape} and {self.dtype} on {self.device} here, "
                f"but got {tuple(part.shape)} and {part.dtype} on {part.device}"
            )

    def copied(self, value: Any) -> Any:
        return value.contiguous().clone()

    def constant(self, value: Any) -> Any:
        tensor = self.torch.from_numpy(np.ascontiguousarray(value)).reshape(value.shape)
        kind = self.dtype if value.dtype.kind == "f" else tensor.dtype
        return tensor.to(device=self.device, dtype=kind)

    def permute(self, order: tuple[int, ...]) -> Function:
        return lambda x: x.permute(order)

    def expand(self, shape: Shape) -> Function:
        return lambda x: x.expand(shape)

    def concatenate(self, shape: Shape) -> Function:
        return lambda *parts: self.torch.cat(parts)

    def to_float(self, shape: Shape) -> Function:
        return lambda x: x.to(self.dtype)

    def matmul(self, shape: Shape) -> Function:
        function: Function = self.torch.matmul
        return function

    def reduction(self, op: str, axes: tuple[int, ...]) -> Function:
        torch = self.torch
        reduce = {"sum": torch.sum, "maximum": torch.amax, "minimum": torch.amin, "any": torch.any}[op]
        return lambda x: reduce(x, axes)

    def strided(self, shape: Shape, strides: Shape, offset: int) -> Function:
        def look(x: Any) -> Any:
            # as_strided looks at memory, not at the tensor: it must lie as its shape says.
            flat = x.contiguous()
            return flat.as_strided(shape, strides, flat.storage_offset() + offset)

        return look

    def assemble(self, shape: Shape, places: Sequence[Any]) -> Function:
        def fill(*parts: Any) -> Any:
            result = parts[0].new_empty(shape)
            for part, (size, strides, offset) in zip(parts, places, strict=True):
                result.as_strided(size, strides, offset).copy_(part)
            return result

        return fill

    def softmax(self, x: Any) -> Any:
        return self.torch.softmax(x, -1)

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        attend = self.torch.nn.functional.scaled_dot_product_attention
        if q.ndim == 4:
            return attend(q, k, v, scale=1.0)
        # The fast kernels want [batch, head, position, feature], with nothing missing.
        one, two, three = (x.reshape(1, -1, *x.shape[-2:]) for x in (q, k, v))
        return attend(one, two, three, scale=1.0).reshape(*q.shape[:-1], v.shape[-1])
