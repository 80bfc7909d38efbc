"""Build U for one order, run it on ⟨T, X⟩, and compare its steps with direct computation.

The program is built only from the order and the style, before any T is given.
"""

from __future__ import annotations

import math
import operator
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from locum.constructions.places import Places
from locum.errors import ExecutionError, GraphError, InputError
from locum.execution.arrays import Array, is_readable, is_tensor, numpy_of
from locum.rasp.python import tokens
from locum.simulators.formula.head import Style
from locum.simulators.formula.inverse_recipe import inverse_steps
from locum.simulators.formula.layer import OF_EACH, Formula, views_of
from locum.simulators.matrices import as_given, computable, real_numbers, stacked_rows
from locum.simulators.modules.attention import Attention
from locum.simulators.modules.encoder_layers import Layer
from locum.simulators.modules.module import Module, Numbers
from locum.simulators.order import Order
from locum.simulators.simulator import Simulator
from locum.simulators.token_layout import Layout
from locum.text import matrix

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from locum.execution.fast import Plan
    from locum.execution.fast.cuda_graph import GraphRunner

#: A matrix of numbers in NumPy.
Matrix: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True)
class _Again:
    """A record of the previous run on a tensor, so that the next run needs fewer checks.

    The record is used only if T is unchanged and X has the same shape, type and device.
    """

    #: The matrices that T caches until one of its attributes is set. They are compared by identity.
    own: list[Array]
    kind: Any
    shape: Any
    dtype: Any
    device: Any
    layout: Any
    places: Places
    #: A weak reference, since the cache of plans owns the plan.
    plan: weakref.ref[Plan]
    #: The CUDA graph that runs the plan on a GPU; None on a CPU, or if T needs gradients.
    runner: GraphRunner | None

    @classmethod
    def of(cls, T: Module, X: Array, places: Places, plan: Plan | None) -> _Again | None:
        """Return the record of a run, or None if the next run may need all checks."""
        own = T.__dict__.get("remembered_parts")
        if own is None or plan is None or plan.has_structured:  # such a step may reject its numbers
            return None
        runner = None
        if X.is_cuda and not any(part.requires_grad for part in own):
            from locum.execution.fast.cuda_graph import GraphRunner

            runner = GraphRunner(partial(_run_and_sum, weakref.ref(plan)))
        known = (own, type(X), X.shape, X.dtype, X.device, X.layout, places)
        return cls(*known, weakref.ref(plan), runner)

    def run(self, T: Module, X: Any, check: bool) -> Array | None:
        """Return T(X), or None if all checks are needed.

        All checks are needed if T or the shape, type or device of X differs from the previous run. With
        ``check``, they are also needed if the sum of X is not finite.
        """
        plan = self.plan()
        if (
            plan is None
            or getattr(T, "remembered_parts", None) is not self.own
            or type(X) is not self.kind
            or X.shape != self.shape
            or X.dtype is not self.dtype
            or X.device != self.device
            or X.layout is not self.layout
            or not is_readable(X)
        ):
            return None
        if self.runner is not None and not X.requires_grad:
            result, total = self.runner([X, *self.own])
            # The sum is read last, since reading a number synchronises with the GPU.
            return None if check and not math.isfinite(total.item()) else self.places.take(result)
        if check and not math.isfinite(X.sum().item()):
            return None
        return self.places.take(plan.run_checked((X, *self.own)))


def _run_and_sum(plan: weakref.ref[Plan], parts: list[Array]) -> list[Array]:
    """Return the result of a plan and the sum of X; the sum is used to test whether X is finite."""
    known = plan()
    assert known is not None
    return [known.run_checked(parts), parts[0].sum()]


class LayerSimulator(Simulator):
    """A simulator of all modules T of one order: attention layers, encoder layers or decoder layers."""

    def __init__(self, order: Order, style: Style) -> None:
        """Build the program for ``order`` with the recipe of ``style``."""
        if order.batch > 1 and style.recipe == "width-1":
            raise GraphError("the width-1 recipe has one head in each layer, and a batch is a family")
        self.order = order
        self.style = style
        self._takes_one = order.batch == 1
        self._order_of_T = order if self._takes_one else replace(order, batch=1)
        #: The order of the T that was checked last; it equals ``_order_of_T``.
        self._accepted = self._order_of_T
        self._again: _Again | None = None
        self._batches: dict[int, LayerSimulator] = {}
        layout = Layout(order.blocks())
        formula = Formula(views_of(layout), style)
        memory = layout.joined(tokens, "M") if order.memory else None
        output = formula.layer(order, layout.joined(tokens, "X"), memory)
        super().__init__(layout, output, formula.steps)

    def encode(self, T: Module, X: Array, memory: Array | None = None) -> Array:
        """Flatten ⟨T, X⟩ into tokens: X, the memory, the matrices of T and blanks.

        The result is a PyTorch tensor if X is one, and otherwise a NumPy array of float64.
        """
        return self.flattened(self.parts_of(T, X, memory))

    def parts_of(self, T: Module, X: Array, memory: Array | None = None) -> list[Array]:
        """Check T, X and the memory, and return the matrices of ⟨T, X⟩ in the order of the sequence."""
        plain = memory is None and type(T) is Attention
        if plain and T.__dict__.get("remembered_order_of_parts") is self.order:
            parts = [computable(X, "X"), *T.__dict__["remembered_parts"]]
            if self.layout.fits(parts):
                return parts
        X, memory = self.read(T, X, memory)
        matrices = T.matrices()
        own = [copy for copies in matrices.values() for copy in copies]
        matrices["X"] = [self._rows(X, "X")]
        if memory is not None:
            matrices["M"] = [self._rows(memory, "the memory")]
        for name in matrices.keys() & self._of_each:
            matrices[name] = [stacked_rows(matrices[name] * self.order.batch)]
        parts = self.parts(matrices, X)
        if plain and all(map(operator.is_, parts[1:], own)):
            # T is read again only after one of its attributes was set.
            T.__dict__.update(remembered_order_of_parts=self.order, remembered_parts=own)
        return parts

    @overload
    def __call__(
        self,
        T: Module,
        X: Tensor,
        memory: Tensor | None = None,
        *,
        executor: str | None = None,
        check: bool = True,
    ) -> Tensor: ...
    @overload
    def __call__(
        self,
        T: Module,
        X: Matrix | Sequence[Any],
        memory: Matrix | Sequence[Any] | None = None,
        *,
        executor: str | None = None,
        check: bool = True,
    ) -> Matrix: ...
    def __call__(
        self,
        T: Module,
        X: Any,
        memory: Any = None,
        *,
        executor: str | None = None,
        check: bool = True,
    ) -> Any:
        """Compute T(X) with U; the result is a NumPy array, or a PyTorch tensor if X is one.

        For a batch of X's with the shape [batch, row, column], the program for this batch size
        (:meth:`of_batch`) runs once.

        An X that is not finite raises an error. On a GPU, this check waits for the result. With
        ``check=False``, a call with the same ``Attention`` T, and with a tensor X like the tensor of
        the previous call, may skip this check.
        """
        again = self._again
        if again is not None and memory is None and executor is None:
            result = again.run(T, X, check)
            if result is not None:
                return result
        if self._takes_one and getattr(X, "ndim", 0) == 2:
            parts = self.parts_of(T, X, memory)
            result = self.run_parts(self.output, parts, executor)
            if is_tensor(X) and parts[0] is X:
                plan = self._plan(self.output, self._places, parts)
                self._again = _Again.of(T, X, self._places, plan)
            return as_given(result, X)
        return self._run_batch(T, X, memory, executor)

    def _run_batch(self, T: Module, X: Array, memory: Array | None, executor: str | None) -> Array:
        """Return T(X) for each X of a batch, or for a single X that is given as a list of rows."""
        if self._takes_one:
            require_module(T, X)
            X = real_numbers(X, "X", copy=False)
            if X.ndim != 3:
                result = self.run_parts(self.output, self.parts_of(T, X, memory), executor)
                return as_given(result, X)
            if len(X) > 1:
                return self.of_batch(len(X))(T, X, memory, executor=executor)
            if len(X) == 0:
                raise InputError(f"X: expected one entry or more, got the shape {tuple(X.shape)}")
            return self(T, X[0], None if memory is None else memory[0], executor=executor)[None]
        rows = self.run_parts(self.output, self.parts_of(T, X, memory), executor)
        return as_given(rows.reshape(self.order.batch, self.order.n, -1), X)

    def of_batch(self, batch: int) -> LayerSimulator:
        """Return the simulator of the same order for batches of this size; simulators are cached."""
        if batch not in self._batches:
            self._batches[batch] = LayerSimulator(replace(self.order, batch=batch), self.style)
        return self._batches[batch]

    def _rows(self, array: Array, name: str) -> Array:
        """Return a batch of matrices as one matrix with the rows of all matrices; a single matrix is
        returned unchanged.
        """
        batch = self.order.batch
        if batch == 1:
            return array
        if array.ndim != 3 or len(array) != batch:
            shape = "×".join(map(str, array.shape))
            raise InputError(f"{name}: expected a batch of {batch} matrices, got the shape {shape}")
        return array.reshape(-1, array.shape[-1])

    @cached_property
    def _of_each(self) -> set[str]:
        """Names of the masks of T, of which each X of a batch has a separate copy."""
        return {prefix + name for prefix in ("", "cross ") for name in OF_EACH}

    def explained(self, error: ExecutionError) -> ExecutionError:
        """Add advice to an error caused by exponentials of large scores, or by a row whose exponentials
        are all 0.

        Other errors are returned unchanged.
        """
        beyond = {"OverflowError": "above 709", "ZeroDivisionError": "below −745"}
        if self.style.stable or error.kind not in beyond or not self.order.attention.exponential:
            return error
        what = "overflow" if error.kind == "OverflowError" else "are 0, all of a row"
        return ExecutionError(
            f"{error.problem}; this U takes exponentials of the unshifted scores, and "
            f"{beyond[error.kind]} (for base e) they {what}: stable=True subtracts the row maximum "
            'first, as all recipes but paper and width-1 do, such as recipe="fetch"',
            "the softmax of the scores",
            kind=error.kind,
        )

    def check(self, T: Module, X: Array, memory: Array | None = None) -> None:
        """Raise an error if X, the memory or T does not fit the order of this simulator."""
        X, memory = self.read(T, X, memory)
        self.layout.block("X").require(self._rows(X, "X"), joined=True)
        if memory is not None:
            self.layout.block("M").require(self._rows(memory, "the memory"), joined=True)

    def read(self, T: Module, X: Array, memory: Array | None) -> tuple[Array, Array | None]:
        """Check the order of T, and return X and the memory as arrays of finite numbers.

        The shapes of X and the memory are checked later, together with the shapes of all matrices.
        """
        require_module(T, X)
        X = computable(X, "X")
        if (memory is None) != (self.order.memory == 0):
            expected = f"a memory of {self.order.memory} rows" if self.order.memory else "no memory"
            raise InputError(f"this simulator takes {expected}")
        if memory is not None:
            memory = computable(memory, "the memory")
        self.check_module(T)
        return X, memory

    def check_module(self, T: Module) -> None:
        """Raise an error that lists the differences if the order of T is not the order of this
        simulator.
        """
        order = self._order_of_T
        order_of_T = T.order(order.n, order.memory)
        if order_of_T is self._accepted:
            return
        if order_of_T != order:
            raise InputError(
                f"T is of order {order_of_T}, but this simulator is for {order}: T has "
                f"{'; '.join(order.differences(order_of_T))}. UniversalSimulator.of(T, n) makes one "
                "that fits; a smaller T runs on this one by embed(T, X)"
            )
        self._accepted = order_of_T

    def direct_steps(self, T: Module, X: Array, memory: Array | None = None) -> dict[str, Numbers]:
        """Return the steps of the simulation by name, computed directly with NumPy.

        The direct computation uses a softmax of base e.
        """
        steps = T.steps(X, memory)
        if self.style.recipe == "inverse":
            attention = T.attention if isinstance(T, Layer) else T
            assert isinstance(attention, Attention)
            attended = steps["norm1"] if self.order.norm == "pre" else numpy_of(X)
            steps |= inverse_steps(attention, attended)
        return steps

    @cached_property
    def masked(self) -> LayerSimulator:
        """A simulator for the same sizes with one additional token: the number of visible rows of X."""
        attention = replace(self.order.attention, mask="rows")
        return LayerSimulator(replace(self.order, attention=attention), self.style)


def require_module(T: Any, X: Any = None) -> Module:
    """Return T if it is a module; otherwise raise an error.

    If X is a module, the error message states that the arguments are exchanged.
    """
    if isinstance(T, Module):
        return T
    if isinstance(X, Module):
        raise InputError(
            "expected T as the first argument and X as the second, got them in the other order; try "
            "U(T, X)"
        )
    raise InputError(
        "T: expected an Attention, a MultiHeadAttention, an Encoder or another module of "
        f"locum.simulators, got {type(T).__name__}"
    )


@dataclass(frozen=True)
class ExplainedStep:
    """One step of a simulation: the matrix that U computes, and the matrix that NumPy computes."""

    name: str
    matrix: Numbers
    direct: Numbers

    @property
    def error(self) -> float:
        """Largest absolute difference between the matrices of U and NumPy."""
        return float(np.abs(self.matrix - self.direct).max())

    def to_dict(self) -> dict[str, Any]:
        """Return the name, matrix and error of the step as a dictionary that can be written as JSON."""
        return {"name": self.name, "matrix": self.matrix.tolist(), "error": self.error}


@dataclass(frozen=True)
class Explanation:
    """All steps of a simulation, compared with direct computation; the last step is T(X)."""

    steps: tuple[ExplainedStep, ...]

    def __getitem__(self, name: str) -> ExplainedStep:
        for step in self.steps:
            if step.name == name:
                return step
        names = ", ".join(step.name for step in self.steps)
        raise InputError(f"expected one of the steps {names}, got {name!r}")

    def __iter__(self) -> Iterator[ExplainedStep]:
        return iter(self.steps)

    @property
    def error(self) -> float:
        """Largest absolute error of the result T(X)."""
        return self.steps[-1].error

    def _repr_html_(self) -> str:
        return "".join(
            matrix(f"{step.name}, error {step.error:.1e}", step.matrix) for step in self.steps
        )

    def __str__(self) -> str:
        blocks = []
        for step in self.steps:
            rows, columns = step.matrix.shape
            table = np.array2string(step.matrix, precision=4, suppress_small=True, threshold=60)
            blocks.append(f"{step.name} ({rows}×{columns}), error {step.error:.1e}\n{table}")
        return "\n".join(blocks)


def explain(
    U: LayerSimulator,
    T: Module,
    X: Array,
    memory: Array | None = None,
    *,
    executor: str | None = None,
    finished: Callable[[str], None] = lambda name: None,
) -> Explanation:
    """Run each step of a simulation separately on the same tokens, and compare it with direct
    computation.

    ``finished`` is called with the name of each completed step.
    """
    parts = U.parts_of(T, X, memory)
    matrices = {}
    for name, value in U.each_step():
        matrices[name] = numpy_of(U.run_parts(value, parts, executor))
        finished(name)
    direct = U.direct_steps(T, X, memory)
    return Explanation(
        tuple(ExplainedStep(name, matrix, direct[name]) for name, matrix in matrices.items())
    )
