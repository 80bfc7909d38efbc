"""Specialise U for one T by evaluating the program of U partially, with T known (a Futamura
projection).

The matrices of T become constants, and the heads that fetched entries of T disappear. The specialised
program reads only X. The recipe ``native`` makes a network whose last head computes the softmax. This
head uses A between its queries and keys, and V in its values.

>>> import numpy as np
>>> from locum.simulators import Attention, UniversalSimulator
>>> U = UniversalSimulator(2, 2, 2)
>>> T = Attention(A=[[1.0, 2.0], [0.0, 1.0]], V=[[1.0, 0.0], [3.0, 1.0]])
>>> special = U.specialise(T)
>>> print(U.architecture, "→", special.architecture)
5 layers, heads [8, 4, 1, 1, 2], width 8 → 5 layers, heads [4, 4, 1, 1, 2], width 4
>>> X = np.array([[1.0, 0.0], [0.5, -1.0]])
>>> bool(np.allclose(special(X), T(X), rtol=0, atol=1e-14))
True
>>> special.compile("native").architecture.heads
(4, 1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from locum import execution
from locum.errors import CompileError, InputError
from locum.execution.arrays import Array, like, numpy_of
from locum.graph import Node, build
from locum.graph.architecture import Architecture
from locum.graph.operations import constant
from locum.networks.compiler.compiling import compile_for
from locum.networks.compiler.program.normalise import specialise
from locum.networks.compiler.scoring.scores import NOTHING, Linear, term
from locum.networks.compiler.target import Target
from locum.networks.transformer import CompiledTransformer
from locum.rasp.handles import SOp
from locum.rasp.python import indices, stable_hash, where
from locum.simulators.matrices import as_given, matrix, real_numbers
from locum.simulators.modules.module import Module
from locum.simulators.simulator import read
from locum.simulators.universal_weights import (
    exponent_of,
    is_plain,
    one_softmax_head,
    penalties_for,
    require_plain,
    softmax_scores,
    target_for,
)

if TYPE_CHECKING:
    from locum.networks.compiler.scoring.scores import Scores
    from locum.simulators.layer_simulator import LayerSimulator


class Specialised:
    """The program of U specialised for one T, which maps X to T(X)."""

    def __init__(self, simulator: LayerSimulator, T: Module) -> None:
        order = simulator.order
        if order.memory or order.batch > 1:
            raise InputError("expected a U for one X without a memory, got another U")
        blank = np.zeros((order.n, order.attention.d))
        sequence = np.asarray(simulator.encode(T, blank), dtype=np.float64)
        size = simulator.layout.block("X").size
        places = simulator.output.places
        answers = [
            places.offset + i * places.row_stride + j * places.column_stride
            for i in range(places.rows) for j in range(places.columns)
        ]  # fmt: skip
        known = {place: float(sequence[place]) for place in range(size, simulator.length)}
        node, length = specialise(simulator.program.node, simulator.length, known, answers)
        self.order = order
        #: The program, and its number of tokens: X, row by row, and blanks for intermediate results.
        self.program = SOp(node)
        self.length = max(length, size)
        self._places, self._size = places, size
        self._layout = simulator.layout
        self._base = simulator.style.base
        # T may be changed later; the program uses copies of its present matrices.
        self._matrices = {
            name: [np.array(one) for one in copies] for name, copies in T.matrices().items()
        }

    @property
    def architecture(self) -> Architecture:
        """The layers and heads of the transformer that the specialised program describes."""
        return self.program.architecture

    @property
    def hash(self) -> str:
        """Stable hash of the specialised program, which depends on T."""
        return stable_hash(self.program)

    def encode(self, X: Array) -> Any:
        """Flatten X into tokens, row by row, followed by blanks."""
        X = matrix(X, "X", (self.order.n, self.order.attention.d))
        sequence = np.zeros(self.length)
        sequence[: self._size] = numpy_of(X).reshape(-1)
        return sequence

    def decode(self, result: Any) -> Array:
        """Return the matrix T(X), given the output of the program at all positions."""
        return read(self._places, numpy_of(result))

    def __call__(self, X: Array, *, executor: str = "auto") -> Array:
        """Return T(X); PyTorch tensors that require gradients are not supported."""
        if getattr(X, "requires_grad", False):
            raise InputError("a specialised U does not support gradients; try X.detach(), or U(T, X)")
        result = self.decode(execution.run(self.program.node, self.encode(X), executor=executor))
        return as_given(like(result, real_numbers(X, "X")), X)

    def compile(self, recipe: str | None = None, **options: Any) -> CompiledTransformer:
        """Compile the program to weights; with ``recipe="native"``, one head computes the softmax of T.

        Without a recipe, networks with MLPs use ``native`` if one softmax head can compute T.
        Otherwise, and with symbolic feed-forwards (``feed_forward="exact"``), the program itself is
        compiled.
        """
        settled = {"length", "numeric", "fixed"} & options.keys()
        if settled:
            raise CompileError(
                f"expected no {', '.join(sorted(settled))}, which the order determines; try without "
                "these options"
            )
        target = target_for(self.length, options)
        if recipe is None and target.feed_forward != "exact" and is_plain(self.order):
            recipe = "native"
        name = f"U for T of order {self.order}, specialised to one T"
        if recipe is None:
            return compile_for(target, self.program.node, name)
        if recipe != "native":
            raise CompileError(
                f"expected the recipe native, or none for the program itself, got {recipe!r}"
            )
        root, scores = self._native(target)
        return compile_for(target, root, name, reference=self.program.node, softmax_scores=scores)

    def _native(self, target: Target) -> tuple[Node, dict[Node, Scores]]:
        """Return a program for T(X) with one softmax head over rows of X, and the scores of its
        selector.

        The scores contain A, and the values contain V.
        """
        require_plain(self.order)
        n, d, d_v = self.order.n, self.order.attention.d, self.order.attention.d_v
        A, V = (np.asarray(self._matrices[name][0], dtype=np.float64) for name in ("A", "V"))
        row = where(indices < n * d_v, indices // d_v, 0)  # the row of the entry at this position
        key = where(indices < n, indices, 0)  # the row of X, at the first n positions
        X = self._layout.view(SOp(build("tokens", cast="asis")), "X")
        mine = [X.at(row, t).node for t in range(d)]
        theirs = [X.at(key, t).node for t in range(d)]
        queries = []
        for t in range(d):
            query: Linear = NOTHING
            for s in range(d):
                query = query.plus(term(mine[s], exponent_of(self._base) * float(A[s, t])))
            queries.append(query)
        causal = self.order.attention.mask == "causal"
        scores = softmax_scores(queries, theirs, row.node, n, penalties_for(target), causal=causal)
        values = []
        for b in range(d_v):
            value: SOp = SOp(constant(0.0))
            for t in range(d):
                value = value + float(V[t, b]) * SOp(theirs[t])
            values.append(value)
        return one_softmax_head(scores, values)
