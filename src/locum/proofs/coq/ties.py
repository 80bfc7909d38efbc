"""Write the equations between constructions in Python and definitions in ``proofs/``.

A tie is an equation at one shape: the result of a construction equals the Coq definition that a theorem
is about. The result of a construction is an s-op, a matrix or a simulator. For a matrix, the equation
contains the program, the shape, the offset and the strides. For a simulator, further equations state
where the matrices of T and X begin in the sequence of tokens. For short sequences, equations also state
all tokens of T and X, and where the result is read.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from locum.constructions import Matrix
from locum.errors import InputError
from locum.graph import Node
from locum.proofs.coq.coq_text import Tokens, coq_term
from locum.rasp.handles import SOp
from locum.simulators.layer_simulator import LayerSimulator

Shape = tuple[int, ...]
Result = SOp | Matrix | LayerSimulator
#: Shapes of a sweep have sizes from ``SMALLEST`` to ``LARGEST``, and random shapes up to ``LARGEST``.
LARGEST = 40
SMALLEST = 9
#: Maximum length of sequences that are compared entry by entry.
_SHORT = 100


@dataclass(frozen=True)
class Tie:
    """An equation between a construction and its Coq definition, as a function of the shape."""

    name: str
    arguments: tuple[str, ...]
    build: Callable[..., Result]
    #: A Coq term of type sop or matrix, in which the names of the arguments are free.
    definition: str
    #: The theorem about the definition, and its file.
    theorem: str
    file: str
    #: Small shapes; ``sweep`` and ``draw`` return further shapes.
    shapes: tuple[Shape, ...]
    #: A function that returns whether the construction and the definition support a shape.
    fits: Callable[..., bool] = lambda *shape: True
    #: The sequence of tokens of a simulator.
    tokens: Tokens | None = None

    def program(self, *shape: int) -> Node:
        """Build the construction at a shape, and return the graph of its program."""
        result = self.build(*shape)
        if isinstance(result, LayerSimulator):
            return result.program.node
        return (result.sop if isinstance(result, Matrix) else result).node

    def general(self, shape: Shape, term: str | None = None) -> str:
        """Write the definition, or another term over the arguments, applied to a shape."""
        sizes = " ".join(map(str, shape))
        return f"(fun {' '.join(self.arguments)} : nat => {term or self.definition}) {sizes}"

    def stated(self, shape: Shape) -> str:
        """Write the equations that Coq checks for this construction at a shape."""
        label = f"{self.name}_{'_'.join(map(str, shape))}"
        result = self.build(*shape)
        kind, term = write_result(result)
        lines = [
            f"Definition {label} : {kind} :=\n{term}.",
            f"Example {label}_tied : {self.general(shape)} = {label}.",
            f"Proof. vm_cast_no_check (@eq_refl {kind} {label}). Qed.",
        ]
        if isinstance(result, LayerSimulator):
            lines += self._state_layout(shape, result)
        return "\n".join(lines) + "\n"

    def _state_layout(self, shape: Shape, simulator: LayerSimulator) -> Iterator[str]:
        """Yield equations for the positions of the matrices of T and X and the length of the sequence.

        For sequences of at most ``_SHORT`` tokens, also yield equations for all tokens of T and X, and
        for the positions of the result.
        """
        assert self.tokens is not None
        parts = self.general(shape, self.tokens.parts)
        starts = [*(block.offset for block in simulator.layout.blocks.values()), simulator.layout.size]
        yield _equation("list Z", f"starts ({parts})", f"{_listed(starts)}%Z")
        needed = self.general(shape, self.tokens.length)
        yield _equation("bool", f"Z.leb (Z.of_nat ({needed})) {simulator.length}", "true")
        if simulator.length <= _SHORT:
            sequence = self.tokens.sequence(simulator, *shape)
            everything = f"map (entry_at 0%Z ({parts})) (seq 0 {len(sequence)})"
            yield _equation("list Z", everything, f"{_listed(sequence)}%Z")
            read = simulator.decode(np.arange(float(simulator.length))).ravel()
            yield _equation("list nat", f"places ({self.general(shape)})", _listed(map(int, read)))

    def sweep(self) -> list[Shape]:
        """Return shapes in which each argument has each size from ``SMALLEST`` to ``LARGEST`` once.

        For simulators, whose terms are long, only every fourth size is used. Shapes that do not fit are
        omitted.
        """
        draw = random.Random(self.name)
        sizes = range(SMALLEST, LARGEST + 1, 4 if self.tokens else 1)
        columns = [draw.sample(sizes, len(sizes)) for _ in self.arguments]
        return [shape for shape in zip(*columns, strict=True) if self.fits(*shape)]

    def draw(self, seed: int, count: int) -> list[Shape]:
        """Draw ``count`` different random shapes with sizes up to ``LARGEST``."""
        draw = random.Random(f"{seed} {self.name}")
        shapes: list[Shape] = []
        while len(shapes) < count:
            shape = tuple(draw.randint(1, LARGEST) for _ in self.arguments)
            if self.fits(*shape) and shape not in shapes:
                shapes.append(shape)
        return shapes


#: Coq definitions that the equations on positions use.
PREAMBLE = """
(* The label of entry (i, j) of a matrix of a head. *)
Definition label (number head i j : nat) : Z :=
  (((Z.of_nat number * 64 + Z.of_nat head) * 64 + Z.of_nat i) * 64 + Z.of_nat j)%Z.
(* The positions at which the matrices begin, and the position after the last one. *)
Definition starts {E} (parts : list (part E)) : list Z :=
  map (fun k => Z.of_nat (total_size (firstn k parts))) (seq 0 (S (length parts))).
(* The positions of the entries of a view, row by row. *)
Definition places (m : matrix) : list nat :=
  match offset m with
  | Int o => flat_map (fun i => map (address m o i) (seq 0 (columns m))) (seq 0 (rows m))
  | At _ => []
  end.
"""


def write_result(result: Result) -> tuple[str, str]:
    """Return the Coq type of the result of a construction (sop or matrix), and its Coq term."""
    if isinstance(result, SOp):
        return "sop", coq_term(result.node)
    matrix = result.output if isinstance(result, LayerSimulator) else result
    sizes = (*matrix.shape, matrix.offset, *matrix.strides)
    if not all(isinstance(size, int) for size in sizes):
        raise InputError(f"matrix: expected sizes, offset and strides that are integers, got {sizes}")
    rows, columns, offset, row_stride, column_stride = sizes
    term = coq_term(matrix.sop.node)
    return "matrix", f"View (\n{term}) {rows} {columns} (Int {offset}) {row_stride} {column_stride}"


def state_inequality(tie: Tie, shape: Shape, mutant: Result) -> str:
    """Write an equation that Coq must reject: a mutant in place of the result of a construction."""
    kind, term = write_result(mutant)
    general = tie.general(shape)
    return (
        f"Goal {general} =\n({term}).\n"
        f"Proof. vm_cast_no_check (@eq_refl {kind} ({general})). Fail Qed. Abort.\n"
    )


def _equation(kind: str, left: str, right: str) -> str:
    return f"Goal {left} = {right}.\nProof. vm_cast_no_check (@eq_refl ({kind}) ({right})). Qed."


def _listed(values: object) -> str:
    return f"[{'; '.join(map(str, values))}]"  # type: ignore[call-overload]
