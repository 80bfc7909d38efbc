"""Say which Coq definition each construction is, at every shape that is checked.

A tie is an equation between two terms: what ``terms`` prints of the graph that runs, and the general
definition of ``proofs/`` at that shape. Coq decides it by computation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from locum import constructions as c
from locum.constructions import Matrix
from locum.graph import Node
from locum.language.python import tokens
from locum.simulators import UniversalSimulator
from locum.simulators.order import Order
from locum.verification.coq.terms import coq_term

Shape = tuple[int, ...]
#: Square, rectangular, single rows and columns; the largest is 8.
PAIRS: tuple[Shape, ...] = (
    (1, 1), (1, 2), (2, 1), (1, 5), (5, 1), (2, 2), (2, 3), (3, 2), (3, 3), (4, 6), (7, 3), (8, 8),
)  # fmt: skip
TRIPLES: tuple[Shape, ...] = (
    (1, 1, 1), (1, 1, 3), (1, 4, 1), (5, 1, 1), (2, 2, 2), (2, 3, 2), (3, 3, 3), (3, 2, 4),
    (4, 3, 5), (1, 6, 2), (6, 1, 2), (8, 8, 8),
)  # fmt: skip


@dataclass(frozen=True)
class Tie:
    """A construction and its Coq definition, as functions of the shape."""

    name: str
    arguments: tuple[str, ...]
    build: Callable[..., Node]
    #: A Coq term over the arguments' names.
    definition: str
    #: The theorem about the definition, and its file.
    theorem: str
    file: str
    shapes: tuple[Shape, ...]

    def program(self, *shape: int) -> Node:
        """Build the graph that runs at a shape."""
        return self.build(*shape)

    def stated(self, shape: Shape) -> str:
        """Write the definition at a shape, and the equation that Coq has to decide."""
        label = f"{self.name}_{'_'.join(map(str, shape))}"
        return (
            f"Definition {label} : sop :=\n{coq_term(self.program(*shape))}.\n"
            f"Example {label}_tied : {self.general(shape)} = {label}.\n"
            "Proof. vm_compute. reflexivity. Qed.\n"
        )

    def general(self, shape: Shape) -> str:
        """Write the general definition, applied to a shape."""
        sizes = " ".join(map(str, shape))
        return f"(fun {' '.join(self.arguments)} : nat => {self.definition}) {sizes}"


def _product(recipe: str) -> Callable[..., Node]:
    def build(r: int, k: int, columns: int) -> Node:
        a, b = c.concatenate(tokens, (r, k), (k, columns))
        return c.matmul(a, b, recipe=recipe).sop.node

    return build


def _universal(*, stable: bool, recipe: str = "fetch") -> Callable[..., Node]:
    def build(n: int, d: int, d_v: int) -> Node:
        return UniversalSimulator(n, d, d_v, stable=stable, recipe=recipe).program.node

    return build


_A, _B = "(View Tokens r k 0 k 1)", "(View Tokens k c (r * k) c 1)"
_RC, _RKC, _ORDER = ("r", "c"), ("r", "k", "c"), ("n", "d", "dv")

TIES = (
    Tie(
        "transpose_paper",
        _RC,
        lambda r, k: c.transpose(Matrix(tokens, r, k), recipe="paper").sop.node,
        "source (transpose (View Tokens r c 0 c 1))",
        "transpose_correct",
        "Sums.v",
        PAIRS,
    ),
    Tie(
        "softmax_plain",
        _RC,
        lambda r, k: c.softmax(Matrix(tokens, r, k), stable=False, recipe="frugal").sop.node,
        "plain_softmax r c Tokens",
        "plain_softmax_correct",
        "Softmax.v",
        PAIRS,
    ),
    Tie(
        "softmax_stable",
        _RC,
        lambda r, k: c.softmax(Matrix(tokens, r, k), stable=True, recipe="frugal").sop.node,
        "stable_softmax r c Tokens",
        "stable_softmax_correct",
        "Softmax.v",
        PAIRS,
    ),
    Tie(
        "softmax_paper",
        _RC,
        lambda r, k: c.softmax(Matrix(tokens, r, k)).sop.node,
        "paper_softmax 1 r c Tokens",
        "paper_softmax_correct",
        "Paper.v",
        PAIRS,
    ),
    Tie(
        "row_sums",
        _RC,
        lambda r, k: c.row_sums(Matrix(tokens, r, k)).sop.node,
        "row_sums r c Tokens",
        "row_sums_correct",
        "Sums.v",
        PAIRS,
    ),
    Tie(
        "broadcast_row",
        _RC,
        lambda r, k: c.broadcast_row(Matrix(tokens, 1, k), r).sop.node,
        "source (broadcast_row (View Tokens 1 c 0 c 1) r)",
        "broadcast_row_correct",
        "Sums.v",
        PAIRS,
    ),
    Tie("matmul_fetch", _RKC, _product("fetch"), f"source (matmul 1 {_A} {_B})", "matmul_correct",
        "Matrices.v", TRIPLES),
    Tie("matmul_paper", _RKC, _product("paper"), f"source (paper_matmul 1 {_A} {_B})",
        "paper_matmul_correct", "Products.v", TRIPLES),
    Tie("attention", _ORDER, _universal(stable=True), "U n d dv", "U_simulates", "Universal.v",
        TRIPLES),
    Tie("attention_plain", _ORDER, _universal(stable=False), "plain_U n d dv", "plain_U_simulates",
        "Universal.v", TRIPLES),
    Tie("attention_paper", _ORDER, _universal(stable=True, recipe="paper"), "paper_U n d dv",
        "paper_U_simulates", "Paper.v", TRIPLES),
)  # fmt: skip
BY_NAME = {tie.name: tie for tie in TIES}

#: Programs that are *not* the definition, each with the tie it must fail and the shape.
MUTANTS: tuple[tuple[str, Shape, Callable[[], Node]], ...] = (
    ("matmul_fetch", (2, 3, 2), lambda: BY_NAME["matmul_paper"].program(2, 3, 2)),
    ("matmul_paper", (2, 2, 2), lambda: c.matmul(
        Matrix(tokens, 2, 2), Matrix(tokens, 2, 2, offset=3), recipe="paper").sop.node),
    ("softmax_stable", (3, 3), lambda: BY_NAME["softmax_plain"].program(3, 3)),
    ("transpose_paper", (2, 3), lambda: BY_NAME["transpose_paper"].program(3, 2)),
    ("attention", (2, 2, 2), lambda: UniversalSimulator(
        Order.of(2, 2, 2, mask="causal"), stable=True).program.node),
    ("row_sums", (2, 3), lambda: c.row_means(Matrix(tokens, 2, 3)).sop.node),
)  # fmt: skip


def refused(name: str, shape: Shape, mutant: Node) -> str:
    """Write an equation that Coq must refuse."""
    general = BY_NAME[name].general(shape)
    return f"Goal {general} =\n({coq_term(mutant)}).\nProof. vm_compute. Fail reflexivity. Abort.\n"
