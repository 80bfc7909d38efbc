"""The steps of a plan: operations on whole arrays, each made once however often it is needed.

A plan is a graph again, but of arrays: views, contractions, sums, functions. :class:`Steps` builds it;
two requests for the same step give the same object, and what depends on no input is computed at once
(*folded*), so positions and masks cost nothing when a plan is run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.execution.fast.symbolic.affine import Affine, Box
from locum.execution.fast.symbolic.signals import Stuck
from locum.graph.atoms import LARGEST_EXACT

Shape = tuple[int, ...]
#: Constants larger than this many numbers are not kept in a plan.
_LARGEST_CONSTANT = 2**25
#: Steps that are computed in a run even if their inputs are constants: NumPy does not have them.
_NOT_FOLDED = frozenset(
    ["structured", "softmax", "attention", "biased_product", "gelu", "silu", "layer_norm", "take_rows"]
)


@dataclass(frozen=True, eq=False)
class Step:
    """One operation on arrays."""

    op: str
    inputs: tuple[Step, ...]
    shape: Shape
    #: What else says what it does; hashable, so that equal steps are found.
    settings: tuple[Hashable, ...] = ()
    #: Whether its numbers are booleans.
    boolean: bool = False
    #: Its value, if it depends on no input.
    value: NDArray[Any] | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)


class Steps:
    """Makes steps, each once; folds constants with ``compute`` (a backend's meaning of a step)."""

    def __init__(self, compute: Callable[[Step], Callable[..., Any]], ieee: bool = False) -> None:
        #: Whether arrays may have any size, and whether one that was asked for was too large. In IEEE
        #: arithmetic kernels may do without them.
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
        """Return the step that does this."""
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
            # (A constant that is large itself is a float: whole ones are not lowered.)
            raise Stuck("whole constants beyond 2⁵³")
        return Step("constant", (), step.shape, ("folded",), step.boolean, np.asarray(value))

    def constant(self, key: tuple[Hashable, ...], value: NDArray[Any]) -> Step:
        """Return a known array; ``key`` tells it from others."""
        if ("constant", key) not in self._made:
            boolean = value.dtype == np.bool_
            self._made["constant", key] = Step("constant", (), value.shape, key, boolean, value)
        return self._made["constant", key]

    def require_room(self, size: int, most: int) -> None:
        """Raise Stuck for an array of more than ``most`` numbers, unless any size is allowed."""
        if size > most and not self.is_unbounded:
            self.has_exceeded = True
            raise Stuck(f"an array of {size:,} numbers is too large")

    def number(self, value: float) -> Step:
        """Return a single number."""
        return self.constant(("number", float(value).hex()), np.asarray(float(value)))

    def expression(self, e: Affine, axes: Sequence[str], box: Box) -> Step:
        """Return the values of an affine expression over some axes, as integers."""
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
        """Put axes in another order."""
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
        """Return the same numbers in another shape."""
        if tuple(shape) == x.shape:
            return x
        return self.make("reshape", (x,), shape, (), x.boolean)

    def expand(self, x: Step, shape: Sequence[int]) -> Step:
        """Repeat along axes of size 1."""
        if tuple(shape) == x.shape:
            return x
        return self.make("expand", (x,), shape, (), x.boolean)

    def view(self, x: Step, shape: Shape, strides: Shape, offset: int) -> Step:
        """Return numbers of ``x``, seen as one row, at offset + Σ index · stride."""
        if offset == 0 and math.prod(shape) == x.size:
            order = matching_axes(x.shape, shape, strides)
            if order is not None:
                return self.permute(x, order)
            if self.ieee and is_row_major_view(shape, strides):
                return self.reshape(x, shape)
        return self.make("view", (x,), shape, (strides, offset), x.boolean)


def _exceeds(value: Any) -> bool:
    """Return whether an integer may have been rounded: 2⁵³ + 1 becomes 2⁵³."""
    return bool(np.size(value)) and float(np.abs(value).max()) >= LARGEST_EXACT


def _is_whole(value: Any) -> bool:
    """Return whether an array has integers only, none too large for floating point."""
    if _exceeds(value):
        return False
    return value.dtype.kind in "biu" or bool((value == np.floor(value)).all())


def row_major(shape: Sequence[int]) -> Shape:
    """Return the strides of an array whose rows follow one another."""
    return tuple(math.prod(shape[n + 1 :]) for n in range(len(shape)))


def is_row_major_view(shape: Shape, strides: Shape) -> bool:
    """Return whether rows follow one another; strides of axes of size 1 do not count."""
    pairs = zip(shape, strides, row_major(shape), strict=True)
    return all(size == 1 or stride == native for size, stride, native in pairs)


def is_row_major(view: Step) -> bool:
    """Return whether a view shows all numbers of its input, in their order."""
    strides, offset = view.settings
    assert isinstance(strides, tuple)
    return offset == 0 and view.size == view.inputs[0].size and is_row_major_view(view.shape, strides)


def matching_axes(native: Shape, shape: Shape, strides: Shape) -> tuple[int, ...] | None:
    """Return the order of axes that makes a row-major array look like this, if there is one."""
    available = {
        (size, stride): n
        for n, (size, stride) in enumerate(zip(native, row_major(native), strict=True))
    }
    axes = [available.get(axis) for axis in zip(shape, strides, strict=True)]
    order = tuple(n for n in axes if n is not None)
    complete = len(order) == len(shape) == len(native) and len(set(order)) == len(order)
    return order if complete else None
