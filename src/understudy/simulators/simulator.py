"""What all simulators share: one program over one sequence of tokens, run in one place.

A simulator is built from an order alone. ``encode`` flattens ⟨T, X⟩ into tokens, which is all that the
host ever computes of T; ``run_tokens`` runs the program on them; ``decode`` reads the matrix off the
result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from understudy.analysis import Architecture
from understudy.constructions import Matrix
from understudy.errors import InputError
from understudy.graph import build
from understudy.graph.traversal import replace_families
from understudy.language.handles import SOp
from understudy.language.python import stable_hash
from understudy.simulators.arrays import Array, flat_like, is_tensor, like, numpy_of
from understudy.simulators.formulas import NamedStep
from understudy.simulators.layout import Layout

#: The executor that runs U unless another is named.
DEFAULT_EXECUTOR = "dense"


class Simulator:
    """A program over a layout of tokens, whose result is a matrix."""

    def __init__(self, layout: Layout, output: Matrix, steps: Sequence[NamedStep]) -> None:
        #: Which token is which entry.
        self.layout = layout
        #: The result, as a view of the program's sequence.
        self.output = output
        #: Intermediate results, by name.
        self.named_steps = tuple(steps)
        #: How many tokens the sequence has: those of the layout, and blanks where results need room.
        self.length = max(layout.size, *(step.value.needs or 0 for step in steps), output.needs or 0)

    @property
    def program(self) -> SOp:
        """The one program."""
        return self.output.sop

    @property
    def architecture(self) -> Architecture:
        """Layers and heads of the transformer that the program describes."""
        return self.program.architecture

    @property
    def hash(self) -> str:
        """The program's stable hash: it does not depend on any T or X."""
        return stable_hash(self.program)

    def tokens(self, matrices: Mapping[str, Sequence[Array]], model: Array) -> Array:
        """The sequence of these matrices with its blanks, in the kind of array that ``model`` is."""
        parts = self.layout.parts(matrices)
        blanks = [0.0] * (self.length - self.layout.size)
        return flat_like([*parts, blanks], model)

    def decode(self, result: Any) -> Array:
        """The matrix in the result of the program."""
        return read(self.output, result)

    def run_tokens(self, value: Matrix, tokens: Array, executor: str | None = None) -> Array:
        """Run the program of ``value`` on one flat array of tokens: the only place where U is run.

        The result is an array of the same kind, one number per token.
        """
        from understudy.execution import run

        if tuple(tokens.shape) != (self.length,):
            raise InputError(
                f"this simulator takes one sequence of {self.length} tokens, but the array has the "
                f"shape {tuple(tokens.shape)}"
            )
        found = run(
            value.sop.node, numpy_of(tokens), executor=executor or DEFAULT_EXECUTOR, names=value.names
        )
        return like(numpy_of(found), tokens)

    def each_step(self) -> list[tuple[str, Matrix]]:
        """Intermediate results under their full names: those of a family, head by head."""
        found: list[tuple[str, Matrix]] = []
        waiting: list[NamedStep] = []
        for step in [*self.named_steps, None]:
            if step is not None and step.head is not None:
                waiting.append(step)
                continue
            found += _by_heads(waiting)
            waiting = []
            if step is not None:
                found.append((step.name, step.value))
        return found


def read(matrix: Matrix, values: Any) -> Array:
    """The entries of a view of fixed sizes, read off the values of its s-op."""
    rows, columns, offset, down, across = (
        matrix.rows,
        matrix.columns,
        matrix.offset,
        matrix.row_stride,
        matrix.column_stride,
    )
    assert isinstance(rows, int)
    assert isinstance(columns, int)
    assert isinstance(offset, int)
    assert isinstance(down, int)
    assert isinstance(across, int)
    sequence = values if is_tensor(values) else numpy_of(values)
    last = offset + (rows - 1) * down + (columns - 1) * across
    if sequence.ndim != 1 or len(sequence) <= last:
        raise InputError(
            f"a result has more than {last} values in one sequence, but got {len(sequence)}"
        )
    places = [offset + i * down + j * across for i in range(rows) for j in range(columns)]
    return sequence[places].reshape(rows, columns)


def _by_heads(steps: Sequence[NamedStep]) -> list[tuple[str, Matrix]]:
    """Steps of one family, in the order in which heads are numbered."""
    if not steps:
        return []
    return [
        (_numbered(step.name, number), _at_head(step, number))
        for number in range(steps[0].heads)
        for step in steps
    ]


def _numbered(name: str, head: int) -> str:
    return f"{name}[{head}]"


def _at_head(step: NamedStep, number: int) -> Matrix:
    """The step of one head: its family replaced by a number."""
    assert step.head is not None
    node = replace_families(step.value.sop.node, {step.head.node: build("constant", value=number)})
    return replace(step.value, sop=SOp(node), names={})
