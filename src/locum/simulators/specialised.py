"""U for one T: what is left of the universal simulator when T is known (a Futamura projection).

U's program is evaluated in part, with the matrices of T as constants. The heads that fetched entries of
T are gone, the input is X alone, and what is left is an ordinary attention. Compiled by the recipe
``native`` it is one: rows of X are brought together, and a single softmax head has A between its
queries and keys, and V as its values.

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
    """The program that is left of U for one T: X in, T(X) out."""

    def __init__(self, simulator: LayerSimulator, T: Module) -> None:
        order = simulator.order
        if order.memory or order.batch > 1:
            raise InputError("only a U that reads one X, and no memory, is specialised")
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
        #: What is left, and how many tokens it reads: X, row by row, then blanks for other results.
        self.program = SOp(node)
        self.length = max(length, size)
        self._places, self._size = places, size
        self._layout = simulator.layout
        self._base = simulator.style.base
        # T may be changed later; what is left is that of the T that was given.
        self._matrices = {
            name: [np.array(one) for one in copies] for name, copies in T.matrices().items()
        }

    @property
    def architecture(self) -> Architecture:
        """Layers and heads of what is left."""
        return self.program.architecture

    @property
    def hash(self) -> str:
        """The stable hash of what is left: it depends on T, as U's does not."""
        return stable_hash(self.program)

    def encode(self, X: Array) -> Any:
        """Flatten X into tokens, with blanks behind it."""
        X = matrix(X, "X", (self.order.n, self.order.attention.d))
        sequence = np.zeros(self.length)
        sequence[: self._size] = numpy_of(X).reshape(-1)
        return sequence

    def decode(self, result: Any) -> Array:
        """Read T(X) off the result."""
        return read(self._places, numpy_of(result))

    def __call__(self, X: Array, *, executor: str = "auto") -> Array:
        """Return T(X). Gradients do not pass: X of torch that asks for them is refused."""
        if getattr(X, "requires_grad", False):
            raise InputError(
                "gradients do not pass through a specialised U: try X.detach(), or U(T, X)"
            )
        result = self.decode(execution.run(self.program.node, self.encode(X), executor=executor))
        return as_given(like(result, real_numbers(X, "X")), X)

    def compile(self, recipe: str | None = None, **options: Any) -> CompiledTransformer:
        """Compile what is left to weights; ``recipe="native"`` for a host with softmax heads.

        Without a recipe, hidden units are native where one softmax head can be, and instructions
        (``feed_forward="exact"``) are the program itself.
        """
        settled = {"length", "numeric", "fixed"} & options.keys()
        if settled:
            raise CompileError(f"{', '.join(sorted(settled))} follow from the order: leave them out")
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
        """Return T(X) by one softmax head over rows of X: A is in its scores, V in its values."""
        require_plain(self.order)
        n, d, d_v = self.order.n, self.order.attention.d, self.order.attention.d_v
        A, V = (np.asarray(self._matrices[name][0], dtype=np.float64) for name in ("A", "V"))
        row = where(indices < n * d_v, indices // d_v, 0)  # of the entry at this position
        key = where(indices < n, indices, 0)  # of X, at the first n positions
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
