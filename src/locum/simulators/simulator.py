"""Run one program over one sequence of tokens: the base class of all simulators.

``encode`` flattens ⟨T, X⟩ into tokens. All computations with the numbers in T take place in the
program. ``run_parts`` runs the program on the matrices of ⟨T, X⟩, and ``decode`` reads the result
matrix from an output of the program.
"""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from locum import execution
from locum.constructions import Matrix
from locum.constructions.matrix import explained
from locum.constructions.places import Places
from locum.errors import ExecutionError, InputError
from locum.execution import fast
from locum.execution.arrays import Array, flat, is_tensor, like, numpy_of
from locum.graph import Node, build
from locum.graph.architecture import Architecture
from locum.graph.traversal import replace_families
from locum.rasp.handles import SOp
from locum.rasp.python import stable_hash
from locum.simulators.formula.layer import NamedStep
from locum.simulators.token_layout import Layout, device_of

if TYPE_CHECKING:
    from locum.execution.fast import Plan

#: The default executor of U.
DEFAULT_EXECUTOR = "auto"
#: Maximum number of tokens of a run without a plan. Longer sequences are rejected, since they would
#: need too much memory.
MAX_TOKENS = 2**28


class Simulator:
    """A program that reads tokens in a given layout and whose result is a matrix."""

    def __init__(self, layout: Layout, output: Matrix, steps: Sequence[NamedStep]) -> None:
        #: The layout, which maps tokens to entries of matrices.
        self.layout = layout
        #: The result, as a view of the program's sequence.
        self.output = output
        #: Named intermediate results.
        self.named_steps = tuple(steps)
        #: Number of tokens: the tokens of the layout, and blanks if results need more positions.
        self.length = max(layout.size, *(step.value.needs for step in steps), output.needs)

    @property
    def program(self) -> SOp:
        """The program, as the s-op of the result."""
        return self.output.sop

    @property
    def architecture(self) -> Architecture:
        """The layers and heads of the transformer that the program describes."""
        return self.program.architecture

    @property
    def hash(self) -> str:
        """Stable hash of the program, which is the same for every T and X."""
        return stable_hash(self.program)

    def to_dict(self) -> dict[str, Any]:
        """Return the order, the number of tokens, the layers and heads, and the hash of the program as
        a dictionary.

        The order of a :class:`Stack` is "".
        """
        return {
            "order": str(getattr(self, "order", "")),
            "tokens": self.length,
            "layers": self.architecture.layers,
            "heads": self.architecture.heads,
            "program": self.hash,
        }

    @cached_property
    def _places(self) -> Places:
        """Positions of the entries of the result, which are cached."""
        return self.output.places

    @cached_property
    def _plans(self) -> dict[Hashable, weakref.ref[Plan]]:
        """Weak references to plans of earlier runs, by program, positions, number of parts, type and
        device; the plan cache owns the plans.
        """
        return {}

    def parts(self, matrices: Mapping[str, Sequence[Array]], model: Array) -> list[Array]:
        """Return the matrices in the order of the sequence, with the array type, dtype and device of
        ``model``.

        The shape of each matrix is checked against its block of the layout.
        """
        parts = self.layout.parts(matrices)
        if not is_tensor(model):
            return [numpy_of(part) for part in parts]
        dtype, device = model.dtype, model.device
        for number, part in enumerate(parts):
            # The dtype of a NumPy array is never a dtype of PyTorch.
            if part.dtype is not dtype or part.device != device:
                parts[number] = like(part, model)
        return parts

    def flattened(self, parts: Sequence[Array]) -> Array:
        """Concatenate matrices and blanks into one sequence of tokens."""
        blanks = np.zeros(self.length - self.layout.size)
        return flat([*parts, like(blanks, parts[0])])

    def decode(self, result: Any) -> Array:
        """Return the result matrix, given the output of the program at all positions."""
        if not is_tensor(result):
            try:
                result = np.asarray(result, dtype=np.float64)
            except (TypeError, ValueError):
                raise InputError(f"result: expected a sequence of numbers, got {result!r}") from None
        return read(self._places, result)

    def run_parts(self, value: Matrix, parts: Sequence[Array], executor: str | None = None) -> Array:
        """Run the program of ``value`` on the sequence of the matrices ``parts``, and return ``value``.

        ``parts`` are the matrices of the blocks, as returned by :meth:`parts`, or one stacked matrix
        per block. All have the same type and device. The result is an array of the same type.
        """
        places = self._places if value is self.output else value.places
        if executor is None or executor in ("fast", "auto"):
            plan = self._plan(value, places, parts)
            if plan is not None:
                try:
                    result = places.take(plan.run_checked(parts))
                except ExecutionError:
                    pass
                else:
                    if type(result) is not np.ndarray or np.isfinite(result).all():
                        return result
        executor = executor or DEFAULT_EXECUTOR
        self.require_length(executor)
        positions = places.positions
        try:
            with explained(value.names):
                values = execution.run_parts(
                    value.sop.node,
                    parts,
                    max(self.length, value.needs),
                    executor=executor,
                    names=value.names,
                    positions=positions,
                )
        except ExecutionError as error:
            raise self.explained(error) from None
        return read(places, like(values, parts[0]), positions.start)

    def explained(self, error: ExecutionError) -> ExecutionError:
        """Return the error of a run, to which subclasses can add advice."""
        return error

    def _plan(self, value: Matrix, places: Places, parts: Sequence[Array]) -> Plan | None:
        """Return a plan of the fast executor for ``value`` on arrays like ``parts``, or None if there
        is no such plan.
        """
        first, node = parts[0], value.sop.node
        # Several steps may be views of one s-op, so the plan depends on the requested positions.
        kind = (node, places, len(parts), first.dtype, device_of(first))
        known = self._plans.get(kind)
        plan = None if known is None else known()
        if plan is None:
            length = max(self.length, value.needs)  # steps of all heads may need more positions
            plan = fast.plan_for(node, parts, length, places.positions)
            if plan is not None:
                self._plans[kind] = weakref.ref(plan)
        return plan

    def require_length(self, executor: str | None = None) -> None:
        """Raise an error if the sequence of this simulator is too long for the executor."""
        limit = MAX_TOKENS
        if executor == "dense":
            from locum.execution.dense import MAX_CELLS

            limit = math.isqrt(MAX_CELLS)
        if self.length > limit:
            raise InputError(
                f"this U takes a sequence of {self.length:,} tokens, too long for the executor "
                f"{executor or DEFAULT_EXECUTOR}: it runs up to {limit:,}"
            )

    def each_step(self) -> list[tuple[str, Matrix]]:
        """Return the intermediate results as pairs of a full name and a matrix; a step of several heads
        is listed once for each head.
        """
        named: list[tuple[str, Matrix]] = []
        for _, group in itertools.groupby(self.named_steps, _families):
            steps = list(group)
            for members, called in _members(steps[0]):
                for step in steps:
                    value = step.value
                    if members:
                        node = replace_families(value.sop.node, members)
                        value = value.replace(sop=SOp(node), names={})
                    named.append((step.name + called, value))
        return named


def read(places: Places, values: Any, begin: int = 0) -> Array:
    """Return the matrix entries at ``places``, given the values of a sequence from position ``begin``
    on.
    """
    sequence = values if is_tensor(values) else numpy_of(values)
    first, last = places.positions.start - begin, places.positions.stop - begin
    if sequence.ndim != 1 or len(sequence) < last:
        raise InputError(
            f"result: expected {last} values or more in one sequence, got {tuple(sequence.shape)}"
        )
    return places.take(sequence[first:last])


def _families(step: NamedStep) -> list[Node]:
    """Return the families on which a step depends: the family of its batch and the families of its
    heads.
    """
    return [family.node for family, _ in (*([step.batch] if step.batch else []), *step.families)]


def _members(step: NamedStep) -> list[tuple[dict[Node, Node], str]]:
    """Return each assignment of numbers to the families of a step, with a label such as
    ``[item][head]``.
    """
    batch = [step.batch] if step.batch else []
    renamings = []
    for item in itertools.product(*(range(size) for _, size in batch)):
        heads = itertools.product(*(range(size) for _, size in step.families))
        for number, head in enumerate(heads):
            called = "".join(f"[{place}]" for place in (*item, *([number] if head else [])))
            constants = [build("constant", value=place) for place in (*item, *head)]
            renamings.append((dict(zip(_families(step), constants, strict=True)), called))
    return renamings
