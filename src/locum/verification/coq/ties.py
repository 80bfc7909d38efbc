"""Say which Coq definition each construction is, at every shape that is checked.

A tie is an equation between two terms: what ``terms`` prints of the graph that runs, and the general
definition of ``proofs/`` at that shape. Coq decides it by computation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from locum import constructions as c
from locum.constructions import Matrix
from locum.graph import Node
from locum.language.python import indices, select, tokens
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
            f"Proof. vm_cast_no_check (@eq_refl sop {label}). Qed.\n"
        )

    def general(self, shape: Shape) -> str:
        """Write the general definition, applied to a shape."""
        sizes = " ".join(map(str, shape))
        return f"(fun {' '.join(self.arguments)} : nat => {self.definition}) {sizes}"


#: Shapes and a number of heads, of groups or of columns.
_QUADS: tuple[Shape, ...] = (
    (1, 1, 1, 2), (1, 1, 3, 2), (1, 4, 1, 3), (5, 1, 1, 2), (2, 2, 2, 2), (2, 3, 2, 3), (3, 3, 3, 2),
    (3, 2, 4, 4), (4, 3, 5, 2), (1, 6, 2, 5), (6, 1, 2, 7), (8, 8, 8, 2), (2, 2, 2, 8),
)  # fmt: skip
_FIVES: tuple[Shape, ...] = tuple((n, d, d_v, 1 + (n + d) % 5, h) for n, d, d_v, h in _QUADS)
_SIXES: tuple[Shape, ...] = tuple((*sizes, 1 + sum(sizes) % 7, h) for *sizes, h in _FIVES)
#: Matrices whose entries make up pairs, and groups.
_EVEN: tuple[Shape, ...] = (
    (1, 2), (2, 1), (2, 2), (1, 4), (4, 1), (2, 3), (3, 2), (1, 8), (8, 1), (4, 4), (6, 5), (8, 8),
)  # fmt: skip
_GROUPS: tuple[Shape, ...] = (
    (1, 2, 2), (2, 1, 2), (1, 3, 3), (3, 1, 3), (2, 2, 2), (2, 2, 4), (2, 3, 3), (3, 2, 2), (2, 3, 6),
    (4, 6, 3), (5, 4, 5), (8, 8, 4), (8, 8, 8),
)  # fmt: skip
_SINGLES: tuple[Shape, ...] = tuple((size,) for size in range(1, 13))
_BASE = 2.5  # a base > 1 that is a float


def _tokens(r: int, columns: int, offset: int = 0) -> Matrix:
    return Matrix(tokens, r, columns, offset)


def _product(recipe: str) -> Callable[..., Node]:
    def build(r: int, k: int, columns: int) -> Node:
        a, b = c.concatenate(tokens, (r, k), (k, columns))
        return c.matmul(a, b, recipe=recipe).sop.node

    return build


def _softmax(**options: Any) -> Callable[..., Node]:
    return lambda r, k: c.softmax(_tokens(r, k), recipe="frugal", **options).sop.node


def _universal(**options: Any) -> Callable[..., Node]:
    return lambda n, d, d_v: UniversalSimulator(n, d, d_v, **options).program.node


def _of(*sizes: int, **options: Any) -> Node:
    return UniversalSimulator(Order.of(*sizes, **options)).program.node


def _multihead_product(r: int, k: int, columns: int, heads: int) -> Node:
    def product(a: Matrix, b: Matrix) -> Matrix:
        return c.matmul(a, b, recipe="fetch")

    return c.multihead(product, heads, _tokens(r, k), _tokens(k, columns, heads * r * k)).sop.node


def _kind(kind: str, **options: Any) -> Callable[..., Node]:
    return lambda n, d, d_v, width, rank=None: _of(
        n, d, d_v, kind=kind, width=width, rank=rank, **options
    )


def _layer(norm: str, heads: int = 1) -> Callable[..., Node]:
    """Build an encoder layer with biases and norms; several heads have their own d_v and W_O."""

    def build(n: int, d: int, d_v: int, d1: int, heads: int) -> Node:
        return _of(n, d, d_v, heads=heads, feed_forward=(d1, d), norm=norm, affine=True,
                   feed_forward_bias=True)  # fmt: skip

    return build if heads > 1 else lambda n, d, d1: build(n, d, d, d1, 1)


def _activation(name: str, coq: str) -> Tie:
    def build(r: int, columns: int) -> Node:
        activation: Callable[[Matrix], Matrix] = getattr(c, name)
        return activation(_tokens(r, columns)).sop.node

    return Tie(
        name, _RC, build, f"activated ({coq}) r c Tokens", "activation_correct", "Activations.v", PAIRS
    )


def _fraction(value: float) -> str:
    numerator, denominator = value.as_integer_ratio()
    return f"(Fraction {numerator} {denominator})"


_M = "(block r c 0)"
_A, _B = "(block r k 0)", "(block k c (r * k))"
_RC, _RKC, _ORDER = ("r", "c"), ("r", "k", "c"), ("n", "d", "dv")

TIES = (
    Tie("transpose_paper", _RC, lambda r, k: c.transpose(_tokens(r, k), recipe="paper").sop.node,
        f"source (transpose {_M})", "transpose_correct", "Sums.v", PAIRS),
    Tie("softmax_plain", _RC, _softmax(stable=False), "plain_softmax r c Tokens",
        "plain_softmax_correct", "Masks.v", PAIRS),
    Tie("softmax_stable", _RC, _softmax(), "stable_softmax r c Tokens",
        "stable_softmax_correct", "Masks.v", PAIRS),
    Tie("softmax_base", _RC, _softmax(base=_BASE), "softmax true (Base (Fraction 5 2)) (inside r c) c Tokens",
        "unmasked_softmax_correct", "Masks.v", PAIRS),
    Tie("softmax_causal", _RC, _softmax(mask="causal"), "softmax true Natural (causal r c) c Tokens",
        "causal_softmax_correct", "Masks.v", PAIRS),
    Tie("softmax_columns", _RC, _softmax(mask=2), "softmax true Natural (first_columns r c (integer 2)) c Tokens",
        "columns_softmax_correct", "Masks.v", PAIRS),
    Tie("softmax_masked", _RC, lambda r, k: _softmax(mask=_tokens(r, k, r * k))(r, k),
        "masked_softmax true Natural r c", "masked_softmax_correct", "Masks.v", PAIRS),
    Tie("softmax_paper", _RC, lambda r, k: c.softmax(_tokens(r, k)).sop.node,
        "paper_softmax 1 true r c Tokens", "paper_softmax_correct", "Paper.v", PAIRS),
    Tie("row_sums", _RC, lambda r, k: c.row_sums(_tokens(r, k)).sop.node, "row_sums r c Tokens",
        "row_sums_correct", "Sums.v", PAIRS),
    Tie("broadcast_row", _RC, lambda r, k: c.broadcast_row(_tokens(1, k), r).sop.node,
        "source (broadcast_row (block 1 c 0) r)", "broadcast_row_correct", "Sums.v", PAIRS),
    Tie("summed", ("n",), lambda n: c.summed(select(indices, n, "<"), tokens).node,
        "summed (Select Lt Indices (integer n)) Tokens", "summed_correct", "Sums.v", _SINGLES),
    Tie("total", _RC, lambda r, k: c.total(_tokens(r, k)).sop.node, "all_sum r c Tokens",
        "all_sum_correct", "Sequences.v", PAIRS),
    Tie("identify", ("start", "count"), lambda start, count: c.identify(tokens, start, count).node,
        "identify start count Tokens", "identify_correct", "Sequences.v", PAIRS),
    Tie("shift", ("t",), lambda t: c.shift(tokens, t).node, "shift t Tokens", "shift_correct",
        "Sequences.v", _SINGLES),
    Tie("shift_part", ("t", "n"), lambda t, n: c.shift(tokens, t, n).node, "rotate t n Tokens",
        "rotate_correct", "Sequences.v", PAIRS),
    Tie("match2", ("p",), lambda p: c.match2(tokens, p).node, "match2 p Tokens", "match2_correct",
        "Sequences.v", _SINGLES),
    Tie("k_parity", ("first", "step", "k"),
        lambda first, step, k: c.k_parity(tokens, range(first, first + (k + 1) * step, step), "each").node,
        "k_parity first (map (fun i => first + S i * step) (seq 0 k)) Tokens", "k_parity_correct",
        "Sequences.v", TRIPLES),
    Tie("maxmin", _RC, lambda r, k: c.maxmin(_tokens(r, k)).sop.node, "maxmin r c Tokens",
        "maxmin_correct", "Sorting.v", _EVEN),
    Tie("maxmin_paper", _RC, lambda r, k: c.maxmin(_tokens(r, k), "paper").sop.node, "flipping r c Tokens",
        "flipping_correct", "Sorting.v", _EVEN),
    Tie("groupsort", (*_RC, "g"), lambda r, k, g: c.groupsort(_tokens(r, k), g).sop.node,
        "groupsort r c g Tokens", "groupsort_correct", "GroupSort.v", _GROUPS),
    Tie("maxout", ("r", "k", "g"), lambda r, k, g: c.maxout(_tokens(r, k * g), g).sop.node,
        "source (maxout r k g Tokens)", "maxout_correct", "Maxout.v",
        tuple((r, k, g + 1) for r, k, g in TRIPLES)),
    Tie("relu_maxmin", _RC, lambda r, k: c.relu(_tokens(r, k), "maxmin").sop.node,
        "source (through_maxmin r c Tokens (integer 0))", "through_maxmin_correct", "Sorting.v", PAIRS),
    Tie("leaky_relu_maxmin", _RC, lambda r, k: c.leaky_relu(_tokens(r, k), 0.25, "maxmin").sop.node,
        "source (through_maxmin r c Tokens (Binary Multiply (Constant (Fraction 1 4)) Tokens))",
        "through_maxmin_correct", "Sorting.v", PAIRS),
    Tie("absolute_maxmin", _RC, lambda r, k: c.absolute(_tokens(r, k), "maxmin").sop.node,
        "source (through_maxmin r c Tokens (Unary Negate Tokens))", "through_maxmin_correct", "Sorting.v", PAIRS),
    Tie("cofactor", ("first",), lambda first: c.cofactor(_tokens(3, 3, first)).sop.node,
        "cofactors (block 3 3 first)", "cofactor_correct", "Inversion.v", _SINGLES),
    Tie("determinant", ("plus",), lambda plus: c.determinant(Matrix(tokens + plus, 3, 3)).sop.node,
        "determinant (Binary Add Tokens (integer plus))", "determinant_correct", "Inversion.v", _SINGLES),
    Tie("determinant_paper", ("plus",), lambda plus: c.determinant(
            Matrix(tokens + plus, 3, 3), recipe="paper").sop.node,
        "paper_determinant (Binary Add Tokens (integer plus))", "paper_determinant_correct", "Inversion.v", _SINGLES),
    Tie("inverse_paper", ("plus",), lambda plus: c.inverse(
            Matrix(tokens + plus, 3, 3), "paper", tolerance=0).sop.node,
        "inverse (Binary Add Tokens (integer plus))", "inverse_correct", "Inversion.v", _SINGLES),
    Tie("layer_norm", _RC, lambda r, k: c.layer_norm(_tokens(r, k), epsilon=2.0**-10).sop.node,
        "layer_norm r c (Constant (Fraction 1 1024)) None None Tokens", "layer_norm_correct", "Norm.v", PAIRS),
    Tie("layer_norm_affine", _RC, lambda r, k: c.layer_norm(
            _tokens(r, k), _tokens(1, k, r * k), _tokens(1, k, r * k + k), _tokens(1, 1, r * k + 2 * k)).sop.node,
        "layer_norm r c (entry (block 1 1 (r * c + 2 * c)) (Int 0) (Int 0)) "
        "(Some (block 1 c (r * c))) (Some (block 1 c (r * c + c))) Tokens",
        "layer_norm_correct", "Norm.v", PAIRS),
    *(_activation(name, coq) for name, coq in (
        ("relu", "Relu"), ("leaky_relu", f"LeakyRelu {_fraction(0.01)}"), ("absolute", "Abs"),
        ("gelu", f"Gelu (Fraction 1 2) {_fraction(math.sqrt(2))}"), ("sigmoid", "Sigmoid"),
        ("silu", "Silu"), ("tanh", "TanH"), ("elu_plus_one", "EluPlusOne"))),
    Tie("matmul_fetch", _RKC, _product("fetch"), f"source (matmul 1 {_A} {_B})", "matmul_correct",
        "Matrices.v", TRIPLES),
    Tie("matmul_paper", _RKC, _product("paper"), f"source (paper_matmul 1 {_A} {_B})",
        "paper_matmul_correct", "Products.v", TRIPLES),
    Tie("matmul_tiled", _RKC, _product("tiled"), f"source (best_tiled_matmul 1 {_A} {_B})",
        "best_tiled_matmul_correct", "Tiled.v", TRIPLES),
    Tie("matmul_scatter", _RKC, _product("scatter"), f"source (scatter_matmul 1 {_A} {_B})",
        "scatter_matmul_correct", "Scatter.v", TRIPLES),
    Tie("attention", _ORDER, _universal(), "U n d dv", "U_simulates", "Universal.v", TRIPLES),
    Tie("attention_plain", _ORDER, _universal(stable=False), "plain_U n d dv", "plain_U_simulates",
        "Universal.v", TRIPLES),
    Tie("attention_paper", _ORDER, _universal(recipe="paper"), "paper_U false n d dv",
        "paper_U_simulates", "Paper.v", TRIPLES),
    Tie("attention_tiled", _ORDER, _universal(recipe="tiled"), "tiled_U n d dv", "tiled_U_simulates",
        "Tiled.v", TRIPLES),
    Tie("heads", (*_ORDER, "H"), lambda n, d, d_v, heads: _of(n, d, d_v, heads=heads),
        "heads_U n d dv H", "heads_U_simulates", "Heads.v", _QUADS),
    Tie("heads_projected", (*_ORDER, "p", "H"),
        lambda n, d, d_v, p, heads: _of(n, d, d_v, heads=heads, projection=p), "projected_U n d dv p H",
        "projected_U_simulates", "Heads.v", _FIVES),
    Tie("multihead_transpose", ("r", "c", "H"),
        lambda r, k, heads: c.multihead(c.transpose, heads, _tokens(r, k)).sop.node,
        "stacked (Family 1 0 H) (transposed (moving (Family 1 0 H) r c 0))",
        "multihead_transpose_correct", "Heads.v", TRIPLES),
    Tie("multihead_matmul", (*_RKC, "H"), _multihead_product,
        "stacked (Family 2 0 H) (matmul 1 (moving (Family 2 0 H) r k 0) (moving (Family 2 0 H) k c (H * (r * k))))",
        "multihead_matmul_correct", "Heads.v", _QUADS),
    Tie("causal", _ORDER, lambda n, d, d_v: _of(n, d, d_v, mask="causal"),
        "causal_U n d dv", "causal_U_simulates", "Hierarchy.v", TRIPLES),
    Tie("hierarchy", _ORDER, lambda n, d, d_v: UniversalSimulator(n, d, d_v).masked.program.node,
        "masked_U n d dv", "hierarchy_simulates", "Hierarchy.v", TRIPLES),
    Tie("linear", (*_ORDER, "w"), _kind("linear"), "linear_U n d dv w", "linear_U_simulates", "Kinds.v", _QUADS),
    Tie("linear_elu", (*_ORDER, "w"), _kind("linear", feature_map="elu+1"), "elu_U n d dv w",
        "elu_U_simulates", "Kinds.v", _QUADS),
    Tie("linformer", (*_ORDER, "w", "k"), _kind("linformer"), "linformer_U n d dv w k",
        "linformer_U_simulates", "Kinds.v", _FIVES),
    # k^(−1/2) is a float in the program; it is an exact fraction for k = 4.
    Tie("performer", (*_ORDER, "w"), lambda n, d, d_v, w: _kind("performer")(n, d, d_v, w, 4),
        "performer_U (Fraction 1 2) (Fraction 1 2) n d dv w 4",
        "performer_U_simulates", "Kinds.v", _QUADS),
    Tie("encoder", ("n", "d", "d1", "d2"), lambda n, d, d1, d2: _of(n, d, d, feed_forward=(d1, d2)),
        "encoder n d d1 d2", "encoder_simulates", "Encoder.v", _QUADS),
    Tie("encoder_heads", (*_ORDER, "d1", "d2", "H"),
        lambda n, d, d_v, d1, d2, heads: _of(n, d, d_v, heads=heads, feed_forward=(d1, d2)),
        "encoder_of_heads n d dv d1 d2 H", "encoder_of_heads_simulates", "Encoder.v", _SIXES),
    Tie("encoder_post", ("n", "d", "d1"), _layer("post"), "layer_of_one_head Post Relu n d d1",
        "layer_of_one_head_simulates", "Encoder.v", TRIPLES),
    Tie("encoder_pre", ("n", "d", "d1"), _layer("pre"), "layer_of_one_head Pre Relu n d d1",
        "layer_of_one_head_simulates", "Encoder.v", TRIPLES),
    Tie("encoder_heads_post", (*_ORDER, "d1", "H"), _layer("post", 2), "layer_of_heads Post Relu n d dv d1 H",
        "layer_of_heads_simulates", "Encoder.v", _FIVES),
    Tie("encoder_heads_pre", (*_ORDER, "d1", "H"), _layer("pre", 2), "layer_of_heads Pre Relu n d dv d1 H",
        "layer_of_heads_simulates", "Encoder.v", _FIVES),
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
    ("matmul_scatter", (2, 3, 2), lambda: BY_NAME["matmul_tiled"].program(2, 3, 2)),
    ("heads", (2, 2, 2, 2), lambda: BY_NAME["heads"].program(2, 2, 2, 3)),
    ("shift", (2,), lambda: BY_NAME["shift"].program(3)),
    ("maxmin", (2, 2), lambda: BY_NAME["maxmin_paper"].program(2, 2)),
    ("encoder_post", (2, 2, 3), lambda: BY_NAME["encoder_pre"].program(2, 2, 3)),
)  # fmt: skip


#: Arrays whose positions are compared with the Coq function, one number for every entry.
LAYOUTS: tuple[Shape, ...] = (
    (1,), (8,), (1, 1), (1, 5), (5, 1), (2, 3), (3, 2), (4, 4), (8, 8), (2, 3, 4), (4, 1, 3), (2, 2, 2, 2),
)  # fmt: skip


def positions(shape: Shape) -> str:
    """Write that the positions of an array's entries are those of ``prop`` in Sequences.v."""
    entries = list(itertools.product(*map(range, shape)))
    listed = "; ".join(f"[{'; '.join(map(str, entry))}]" for entry in entries)
    numbers = "; ".join(str(c.prop(shape, entry)) for entry in entries)
    sizes = "; ".join(map(str, shape))
    return f"Goal map (prop [{sizes}]) [{listed}] = [{numbers}].\nProof. reflexivity. Qed.\n"


def refused(name: str, shape: Shape, mutant: Node) -> str:
    """Write an equation that Coq must refuse, in the way in which it accepts the true ones."""
    return (
        f"Goal {BY_NAME[name].general(shape)} =\n({coq_term(mutant)}).\n"
        f"Proof. vm_cast_no_check (@eq_refl sop ({BY_NAME[name].general(shape)})). Fail Qed. Abort.\n"
    )
