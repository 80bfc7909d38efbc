"""Define the steps of a plan, and arrays with named axes.

A plan is a graph of operations on arrays, such as views, contractions, sums and functions.
:class:`Steps` builds the graph; two requests for the same step return the same object. Most steps that
depend on no input are computed immediately (*folded*), so a run of the plan does not compute, for
example, masks of positions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from locum.execution.fast.steps import tiling
from locum.execution.fast.symbolic.affine import Affine, Box, Stuck
from locum.execution.types import BOOLEAN
from locum.graph.atoms import LARGEST_EXACT

Shape = tuple[int, ...]
#: Maximum number of elements of a folded constant, and of a constant table of positions.
_LARGEST_CONSTANT = 2**25
#: Operations that are not folded even if their inputs are constants. Most of them exist only in torch.
_NOT_FOLDED = frozenset(
    ["structured", "softmax", "attention", "biased_product", "gelu", "silu", "layer_norm", "take_rows"]
)


@dataclass(frozen=True, eq=False)
class Step:
    """One operation of a plan, with its inputs and the shape of its result."""

    op: str
    inputs: tuple[Step, ...]
    shape: Shape
    #: Further parameters. They are hashable, so that equal steps are found.
    settings: tuple[Hashable, ...] = ()
    #: Whether the array is boolean.
    boolean: bool = False
    #: The value of the step if it is a constant, else None.
    value: NDArray[Any] | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """Number of elements of the result."""
        return math.prod(self.shape)


class Steps:
    """A factory that creates each distinct step once and folds constants.

    ``compute`` returns the function of a step in a backend. This function computes folded constants.
    """

    def __init__(self, compute: Callable[[Step], Callable[..., Any]], ieee: bool = False) -> None:
        #: Whether arrays may have any size, and whether a requested array was too large. In IEEE
        #: arithmetic any size is allowed, since fused kernels may avoid large arrays.
        self.is_unbounded, self.has_exceeded = ieee, False
        self._made: dict[tuple[Hashable, ...], Step] = {}
        self._compute = compute
        self.ieee = ieee

    def make(
        self,
        op: str,
        inputs: Sequence[Step],
        shape: Sequence[int],
        settings: tuple[Hashable, ...] = (),
        boolean: bool = False,
    ) -> Step:
        """Return the step with this operation, these inputs and these settings.

        If all inputs are constants, it is folded, unless the operation is in ``_NOT_FOLDED``.
        """
        key = (op, tuple(map(id, inputs)), tuple(shape), settings, boolean)
        if key not in self._made:
            step = Step(op, tuple(inputs), tuple(shape), settings, boolean)
            if inputs and op not in _NOT_FOLDED and all(i.value is not None for i in inputs):
                step = self._folded(step)
            self._made[key] = step
        return self._made[key]

    def _folded(self, step: Step) -> Step:
        if step.size > _LARGEST_CONSTANT:
            raise Stuck("a constant too large to keep")
        try:
            with np.errstate(all="ignore" if self.ieee else "raise", under="ignore"):
                value = self._compute(step)(*(i.value for i in step.inputs))
        except (ArithmeticError, ValueError, TypeError) as error:
            raise Stuck(f"a constant that cannot be computed: {error}") from None
        whole = step.op == "to_float" or (
            not self.ieee and all(_is_whole(i.value) for i in step.inputs)
        )
        if not step.boolean and whole and _exceeds(value):
            # A single large constant is a float, since large integers are not lowered.
            raise Stuck("integer constants beyond 2⁵³")
        return Step("constant", (), step.shape, ("folded",), step.boolean, np.asarray(value))

    def constant(self, key: tuple[Hashable, ...], value: NDArray[Any]) -> Step:
        """Return a step with a known array as value; ``key`` distinguishes it from other constants."""
        if ("constant", key) not in self._made:
            boolean = value.dtype == np.bool_
            self._made["constant", key] = Step("constant", (), value.shape, key, boolean, value)
        return self._made["constant", key]

    def require_room(self, size: int, most: int) -> None:
        """Raise :class:`Stuck` for an array of more than ``most`` elements, if sizes are limited."""
        if size > most and not self.is_unbounded:
            self.has_exceeded = True
            raise Stuck(f"an array of {size:,} numbers is too large")

    def number(self, value: float) -> Step:
        """Return a constant step with a single number."""
        return self.constant(("number", float(value).hex()), np.asarray(float(value)))

    def expression(self, e: Affine, axes: Sequence[str], box: Box) -> Step:
        """Return the integer values of an affine expression, as an array with the given axes."""
        spec = tuple((box[v], e.coefficient(v)) for v in axes)
        if math.prod(size for size, _ in spec) > _LARGEST_CONSTANT:
            if not self.ieee:
                raise Stuck("a table of positions too large to keep")
            return self.make("positions", (), [size for size, _ in spec], (spec, e.constant))
        values = np.full((1,) * len(spec), e.constant, dtype=np.int64)
        for place, (size, k) in enumerate(spec):
            along = [1] * len(spec)
            along[place] = size
            values = values + (np.arange(size, dtype=np.int64) * k).reshape(along)
        return self.constant(("expression", spec, e.constant), values)

    # Shapes ---------------------------------------------------------------------------------------

    def permute(self, x: Step, order: tuple[int, ...]) -> Step:
        """Return an array with its axes permuted by ``order``."""
        if order == tuple(range(len(order))):
            return x
        if x.op == "permute":
            (first,) = x.settings
            assert isinstance(first, tuple)
            return self.permute(x.inputs[0], tuple(first[n] for n in order))
        if x.op == "view":
            strides, offset = x.settings
            assert isinstance(strides, tuple)
            moved = tuple(strides[n] for n in order)
            return self.make("view", x.inputs, [x.shape[n] for n in order], (moved, offset), x.boolean)
        return self.make("permute", (x,), [x.shape[n] for n in order], (order,), x.boolean)

    def reshape(self, x: Step, shape: Sequence[int]) -> Step:
        """Return an array in another shape."""
        if tuple(shape) == x.shape:
            return x
        return self.make("reshape", (x,), shape, (), x.boolean)

    def expand(self, x: Step, shape: Sequence[int]) -> Step:
        """Return an array that is broadcast to ``shape``."""
        if tuple(shape) == x.shape:
            return x
        return self.make("expand", (x,), shape, (), x.boolean)

    def view(self, x: Step, shape: Shape, strides: Shape, offset: int) -> Step:
        """Return a strided view of the flattened elements of ``x``: offset + Σ index · stride."""
        if offset == 0 and math.prod(shape) == x.size:
            order = matching_axes(x.shape, shape, strides)
            if order is not None:
                return self.permute(x, order)
            if self.ieee and is_row_major_view(shape, strides):
                return self.reshape(x, shape)
        return self.make("view", (x,), shape, (strides, offset), x.boolean)


def _exceeds(value: Any) -> bool:
    """Return whether an array may contain rounded integers, such as 2⁵³ + 1, which becomes 2⁵³."""
    return bool(np.size(value)) and float(np.abs(value).max()) >= LARGEST_EXACT


def _is_whole(value: Any) -> bool:
    """Return whether an array contains only booleans, or only integers below 2⁵³ in absolute value."""
    if _exceeds(value):
        return False
    return value.dtype.kind in "biu" or bool((value == np.floor(value)).all())


def row_major(shape: Sequence[int]) -> Shape:
    """Return the strides of a row-major array, in elements."""
    return tuple(math.prod(shape[n + 1 :]) for n in range(len(shape)))


def is_row_major_view(shape: Shape, strides: Shape) -> bool:
    """Return whether a view is row-major; the strides of axes of size 1 are ignored."""
    pairs = zip(shape, strides, row_major(shape), strict=True)
    return all(size == 1 or stride == native for size, stride, native in pairs)


def is_row_major(view: Step) -> bool:
    """Return whether a view contains all elements of its input in the same order."""
    strides, offset = view.settings
    assert isinstance(strides, tuple)
    return offset == 0 and view.size == view.inputs[0].size and is_row_major_view(view.shape, strides)


def matching_axes(native: Shape, shape: Shape, strides: Shape) -> tuple[int, ...] | None:
    """Return the permutation of axes that gives a row-major array these strides, or None.

    None is returned if there is no such permutation. It may also be returned if the array has axes of
    size 1.
    """
    available = {
        (size, stride): n
        for n, (size, stride) in enumerate(zip(native, row_major(native), strict=True))
    }
    axes = [available.get(axis) for axis in zip(shape, strides, strict=True)]
    order = tuple(n for n in axes if n is not None)
    complete = len(order) == len(shape) == len(native) and len(set(order)) == len(order)
    return order if complete else None


class LabelledArray(NamedTuple):
    """A step with the loop variable of each of its axes."""

    step: Step
    axes: tuple[str, ...]


class Arrangement:
    """A factory of steps for values over one box of loop variables."""

    def __init__(self, steps: Steps, box: Box) -> None:
        self.steps, self.box = steps, box

    def number(self, value: float) -> LabelledArray:
        """Return a number as an array without axes."""
        return LabelledArray(self.steps.number(value), ())

    def multiplied(self, factors: Sequence[LabelledArray]) -> LabelledArray:
        """Return the elementwise product of all factors, or 1 if there are no factors."""
        if not factors:
            return self.number(1.0)
        result = factors[0]
        for factor in factors[1:]:
            result = self.apply("multiply", (result, factor))
        return result

    def summed(self, value: LabelledArray, sums: Sequence[str], op: str = "sum") -> LabelledArray:
        """Reduce an array by ``op`` along its axes in ``sums``."""
        along = tuple(n for n, v in enumerate(value.axes) if v in sums)
        if not along:
            return value
        kept = tuple(v for v in value.axes if v not in sums)
        shape = [self.box[v] for v in kept]
        return LabelledArray(self.steps.make(op, (value.step,), shape, (along,), op == "any"), kept)

    def apply(self, op: str, arguments: Sequence[LabelledArray]) -> LabelledArray:
        """Apply an elementwise operation to arrays, which are aligned on all their axes."""
        if op in ("and", "or", "not"):
            arguments = [self.truth(a) for a in arguments]
        elif op == "if_else":
            arguments = [self.truth(arguments[0]), *self.alike(arguments[1:])]
        elif op == "indicator":
            return self.numeric(self.truth(arguments[0]))
        elif op not in BOOLEAN:
            arguments = [self.numeric(a) for a in arguments]
        widest = max(arguments, key=lambda a: len(a.axes))
        axes = tuple(dict.fromkeys(v for a in (widest, *arguments) for v in a.axes))
        shape = tuple(self.box[v] for v in axes)
        self.steps.require_room(math.prod(shape), tiling.LARGEST_TEMPORARY)
        steps = [self.aligned(a, axes) for a in arguments]
        boolean = op in BOOLEAN or (op == "if_else" and all(a.step.boolean for a in arguments))
        return LabelledArray(self.steps.make("apply", steps, shape, (op,), boolean), axes)

    def aligned(self, value: LabelledArray, axes: Sequence[str]) -> Step:
        """Return the array with its axes in the order of ``axes``.

        Missing axes have size 1, or are omitted if they come first.
        """
        if not value.axes:
            return value.step
        present = [v for v in axes if v in value.axes]
        order = tuple(value.axes.index(v) for v in present)
        step = self.steps.permute(value.step, order)
        if len(present) == len(axes):
            return step
        first = next(
            n for n, v in enumerate(axes) if v in value.axes
        )  # broadcasting adds the leading axes
        return self.steps.reshape(step, [self.box[v] if v in value.axes else 1 for v in axes[first:]])

    def placed(self, value: LabelledArray, axes: Sequence[str]) -> Step:
        """Return the array with exactly these axes, repeated along axes that it lacks."""
        shape = [self.box[v] for v in axes]
        step = self.aligned(value, axes)
        return self.steps.expand(step, shape)

    def numeric(self, value: LabelledArray) -> LabelledArray:
        """Convert booleans to the numbers 0 and 1."""
        if not value.step.boolean:
            return value
        return LabelledArray(self.steps.make("to_float", (value.step,), value.step.shape), value.axes)

    def alike(self, values: Sequence[LabelledArray]) -> list[LabelledArray]:
        """Convert all arrays to numbers, unless all of them are boolean."""
        return (
            list(values) if all(v.step.boolean for v in values) else [self.numeric(v) for v in values]
        )

    def truth(self, value: LabelledArray) -> LabelledArray:
        """Convert numbers to booleans by Python's rules."""
        if value.step.boolean:
            return value
        zero = self.steps.number(0.0)
        step = self.steps.make("apply", (value.step, zero), value.step.shape, ("not_equal",), True)
        return LabelledArray(step, value.axes)
