"""List the constructions that have a theorem in ``proofs/``, each with its Coq definition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from locum import constructions as c
from locum.constructions import Matrix
from locum.proofs.coq import coq_text as sequences
from locum.proofs.coq.ties import Result, Shape, Tie
from locum.rasp.python import indices, select, tokens
from locum.simulators import UniversalSimulator
from locum.simulators.layer_simulator import LayerSimulator
from locum.simulators.order import Order

#: Square and rectangular shapes, single rows and single columns, with sizes up to 8.
PAIRS: tuple[Shape, ...] = (
    (1, 1), (1, 2), (2, 1), (1, 5), (5, 1), (2, 2), (2, 3), (3, 2), (3, 3), (4, 6), (7, 3), (8, 8),
)  # fmt: skip
TRIPLES: tuple[Shape, ...] = (
    (1, 1, 1), (1, 1, 3), (1, 4, 1), (5, 1, 1), (2, 2, 2), (2, 3, 2), (3, 3, 3), (3, 2, 4),
    (4, 3, 5), (1, 6, 2), (6, 1, 2), (8, 8, 8),
)  # fmt: skip


#: Shapes whose last size is a number of heads or of columns, or a rank.
_QUADS: tuple[Shape, ...] = (
    (1, 1, 1, 2), (1, 1, 3, 2), (1, 4, 1, 3), (5, 1, 1, 2), (2, 2, 2, 2), (2, 3, 2, 3), (3, 3, 3, 2),
    (3, 2, 4, 4), (4, 3, 5, 2), (1, 6, 2, 5), (6, 1, 2, 7), (8, 8, 8, 2), (2, 2, 2, 8),
)  # fmt: skip
_FIVES: tuple[Shape, ...] = tuple((n, d, d_v, 1 + (n + d) % 5, h) for n, d, d_v, h in _QUADS)
_SIXES: tuple[Shape, ...] = tuple((*sizes, 1 + sum(sizes) % 7, h) for *sizes, h in _FIVES)
#: Shapes with many more rows than columns, at which n² is greater than the number of tokens.
_LONG: tuple[Shape, ...] = ((12, 1, 2, 1, 1), (31, 1, 24, 1, 4))
#: Shapes of matrices whose entries can be divided into pairs, or into groups.
_EVEN: tuple[Shape, ...] = (
    (1, 2), (2, 1), (2, 2), (1, 4), (4, 1), (2, 3), (3, 2), (1, 8), (8, 1), (4, 4), (6, 5), (8, 8),
)  # fmt: skip
_GROUPS: tuple[Shape, ...] = (
    (1, 2, 2), (2, 1, 2), (1, 3, 3), (3, 1, 3), (2, 2, 2), (2, 2, 4), (2, 3, 3), (3, 2, 2), (2, 3, 6),
    (4, 6, 3), (5, 4, 5), (8, 8, 4), (8, 8, 8),
)  # fmt: skip
_SINGLES: tuple[Shape, ...] = tuple((size,) for size in range(1, 13))
_BASE = 2.5  # a float greater than 1


def _tokens(r: int, columns: int, offset: int = 0) -> Matrix:
    return Matrix(tokens, r, columns, offset)


def _product(recipe: str) -> Callable[..., Matrix]:
    def build(r: int, k: int, columns: int) -> Matrix:
        a, b = c.concatenate(tokens, (r, k), (k, columns))
        return c.matmul(a, b, recipe=recipe)

    return build


def _softmax(**options: Any) -> Callable[..., Matrix]:
    return lambda r, k: c.softmax(_tokens(r, k), recipe="frugal", **options)


def _universal(**options: Any) -> Callable[..., LayerSimulator]:
    return lambda n, d, d_v: UniversalSimulator(n, d, d_v, **options)


def _of(*sizes: int, **options: Any) -> LayerSimulator:
    return UniversalSimulator(Order.of(*sizes, **options))


def _multihead_product(r: int, k: int, columns: int, heads: int) -> Matrix:
    def product(a: Matrix, b: Matrix) -> Matrix:
        return c.matmul(a, b, recipe="fetch")

    return c.multihead(product, heads, _tokens(r, k), _tokens(k, columns, heads * r * k))


def _kind(kind: str, **options: Any) -> Callable[..., LayerSimulator]:
    return lambda n, d, d_v, width, rank=None: _of(
        n, d, d_v, kind=kind, width=width, rank=rank, **options
    )


def _layer(norm: str, heads: int = 1, activation: str = "relu") -> Callable[..., LayerSimulator]:
    """Return a function that builds U for encoder layers with biases and norms.

    With several heads, d_v is a separate size, and the layer contains W_O.
    """

    def build(n: int, d: int, d_v: int, d1: int, heads: int) -> LayerSimulator:
        return _of(n, d, d_v, heads=heads, feed_forward=(d1, d), norm=norm, affine=True,
                   activation=activation, feed_forward_bias=True)  # fmt: skip

    return build if heads > 1 else lambda n, d, d1: build(n, d, d, d1, 1)


def _activation(name: str, coq: str) -> Tie:
    def build(r: int, columns: int) -> Matrix:
        activation: Callable[[Matrix], Matrix] = getattr(c, name)
        return activation(_tokens(r, columns))

    return Tie(
        name,
        _RC,
        build,
        _rows(f"activated ({coq}) r c Tokens"),
        "activation_correct",
        "Activations.v",
        PAIRS,
    )


def _fraction(value: float) -> str:
    numerator, denominator = value.as_integer_ratio()
    return f"(Fraction {numerator} {denominator})"


def _rows(term: str, sizes: str = "r c") -> str:
    """Write a Coq matrix whose entries are the values of an s-op, row by row from position 0."""
    return f"row_major ({term}) {sizes}"


def _several(*shape: int) -> bool:
    """Return whether the last size of a shape is at least 2."""
    return shape[-1] > 1


def _pairs(r: int, columns: int) -> bool:
    """Return whether the number of entries of a matrix is even."""
    return r * columns % 2 == 0


def _groups(r: int, columns: int, g: int) -> bool:
    """Return whether the entries of a matrix can be divided into groups of g ≥ 2."""
    return g > 1 and r * columns % g == 0


_GELU = f"Gelu (Fraction 1 2) {_fraction(math.sqrt(2))}"
_M = "(block r c 0)"
_A, _B = "(block r k 0)", "(block k c (r * k))"
_RC, _RKC, _ORDER = ("r", "c"), ("r", "k", "c"), ("n", "d", "dv")

TIES = (
    Tie("transpose", _RC, lambda r, k: c.transpose(_tokens(r, k)), f"transposed {_M}",
        "transposed_correct", "Matrices.v", PAIRS),
    Tie("transpose_paper", _RC, lambda r, k: c.transpose(_tokens(r, k), recipe="paper"),
        f"transpose {_M}", "transpose_correct", "Sums.v", PAIRS),
    Tie("softmax_plain", _RC, _softmax(stable=False), _rows("plain_softmax r c Tokens"),
        "plain_softmax_correct", "Masks.v", PAIRS),
    Tie("softmax_stable", _RC, _softmax(), _rows("stable_softmax r c Tokens"),
        "stable_softmax_correct", "Masks.v", PAIRS),
    Tie("softmax_base", _RC, _softmax(base=_BASE), _rows("softmax true (Base (Fraction 5 2)) (inside r c) c Tokens"),
        "unmasked_softmax_correct", "Masks.v", PAIRS),
    Tie("softmax_causal", _RC, _softmax(mask="causal"), _rows("softmax true Natural (causal r c) c Tokens"),
        "causal_softmax_correct", "Masks.v", PAIRS),
    Tie("softmax_columns", _RC, _softmax(mask=2), _rows("softmax true Natural (first_columns r c (integer 2)) c Tokens"),
        "columns_softmax_correct", "Masks.v", PAIRS),
    Tie("softmax_masked", _RC, lambda r, k: _softmax(mask=_tokens(r, k, r * k))(r, k),
        _rows("masked_softmax true Natural r c"), "masked_softmax_correct", "Masks.v", PAIRS),
    Tie("softmax_paper", _RC, lambda r, k: c.softmax(_tokens(r, k)),
        _rows("paper_softmax 1 true r c Tokens"), "paper_softmax_correct", "Paper.v", PAIRS),
    Tie("row_sums", _RC, lambda r, k: c.row_sums(_tokens(r, k)), _rows("row_sums r c Tokens"),
        "row_sums_correct", "Sums.v", PAIRS),
    Tie("broadcast_row", _RC, lambda r, k: c.broadcast_row(_tokens(1, k), r),
        "broadcast_row (block 1 c 0) r", "broadcast_row_correct", "Sums.v", PAIRS),
    Tie("summed", ("n",), lambda n: c.summed(select(indices, n, "<"), tokens),
        "summed (Select Lt Indices (integer n)) Tokens", "summed_correct", "Sums.v", _SINGLES),
    Tie("total", _RC, lambda r, k: c.total(_tokens(r, k)), _rows("all_sum r c Tokens", "1 1"),
        "all_sum_correct", "Sequences.v", PAIRS),
    Tie("identify", ("start", "count"), lambda start, count: c.identify(tokens, start, count),
        "identify start count Tokens", "identify_correct", "Sequences.v", PAIRS),
    Tie("shift", ("t",), lambda t: c.shift(tokens, t), "shift t Tokens", "shift_correct",
        "Sequences.v", _SINGLES),
    Tie("shift_part", ("t", "n"), lambda t, n: c.shift(tokens, t, n), "rotate t n Tokens",
        "rotate_correct", "Sequences.v", PAIRS),
    Tie("match2", ("p",), lambda p: c.match2(tokens, p), "match2 p Tokens", "match2_correct",
        "Sequences.v", _SINGLES),
    Tie("k_parity", ("first", "step", "k"),
        lambda first, step, k: c.k_parity(tokens, range(first, first + (k + 1) * step, step), "each"),
        "k_parity first (map (fun i => first + S i * step) (seq 0 k)) Tokens", "k_parity_correct",
        "Sequences.v", TRIPLES),
    Tie("maxmin", _RC, lambda r, k: c.maxmin(_tokens(r, k)), _rows("maxmin r c Tokens"),
        "maxmin_correct", "Sorting.v", _EVEN, fits=_pairs),
    Tie("maxmin_paper", _RC, lambda r, k: c.maxmin(_tokens(r, k), "paper"), _rows("flipping r c Tokens"),
        "flipping_correct", "Sorting.v", _EVEN, fits=_pairs),
    Tie("groupsort", (*_RC, "g"), lambda r, k, g: c.groupsort(_tokens(r, k), g),
        _rows("groupsort r c g Tokens"), "groupsort_correct", "GroupSort.v", _GROUPS, fits=_groups),
    Tie("maxout", ("r", "k", "g"), lambda r, k, g: c.maxout(_tokens(r, k * g), g),
        "maxout r k g Tokens", "maxout_correct", "Maxout.v",
        tuple((r, k, g + 1) for r, k, g in TRIPLES), fits=_several),
    Tie("relu_maxmin", _RC, lambda r, k: c.relu(_tokens(r, k), "maxmin"),
        "through_maxmin r c Tokens (integer 0)", "through_maxmin_correct", "Sorting.v", PAIRS),
    Tie("leaky_relu_maxmin", _RC, lambda r, k: c.leaky_relu(_tokens(r, k), 0.25, "maxmin"),
        "through_maxmin r c Tokens (Binary Multiply (Constant (Fraction 1 4)) Tokens)",
        "through_maxmin_correct", "Sorting.v", PAIRS),
    Tie("absolute_maxmin", _RC, lambda r, k: c.absolute(_tokens(r, k), "maxmin"),
        "through_maxmin r c Tokens (Unary Negate Tokens)", "through_maxmin_correct", "Sorting.v", PAIRS),
    Tie("cofactor", ("first",), lambda first: c.cofactor(_tokens(3, 3, first)),
        _rows("cofactors (block 3 3 first)", "3 3"), "cofactor_correct", "Inversion.v", _SINGLES),
    Tie("determinant", ("plus",), lambda plus: c.determinant(Matrix(tokens + plus, 3, 3)),
        _rows("determinant (Binary Add Tokens (integer plus))", "1 1"), "determinant_correct", "Inversion.v", _SINGLES),
    Tie("determinant_paper", ("plus",), lambda plus: c.determinant(
            Matrix(tokens + plus, 3, 3), recipe="paper"),
        _rows("paper_determinant (Binary Add Tokens (integer plus))", "1 1"), "paper_determinant_correct", "Inversion.v", _SINGLES),
    Tie("inverse_paper", ("plus",), lambda plus: c.inverse(
            Matrix(tokens + plus, 3, 3), "paper", tolerance=0),
        _rows("inverse (Binary Add Tokens (integer plus))", "3 3"), "inverse_correct", "Inversion.v", _SINGLES),
    Tie("layer_norm", _RC, lambda r, k: c.layer_norm(_tokens(r, k), epsilon=2.0**-10),
        _rows("layer_norm r c (Constant (Fraction 1 1024)) None None Tokens"), "layer_norm_correct", "Norm.v", PAIRS),
    Tie("layer_norm_affine", _RC, lambda r, k: c.layer_norm(
            _tokens(r, k), _tokens(1, k, r * k), _tokens(1, k, r * k + k), _tokens(1, 1, r * k + 2 * k)),
        _rows("layer_norm r c (entry (block 1 1 (r * c + 2 * c)) (Int 0) (Int 0)) "
              "(Some (block 1 c (r * c))) (Some (block 1 c (r * c + c))) Tokens"),
        "layer_norm_correct", "Norm.v", PAIRS),
    *(_activation(name, coq) for name, coq in (
        ("relu", "Relu"), ("leaky_relu", f"LeakyRelu {_fraction(0.01)}"), ("absolute", "Abs"),
        ("gelu", _GELU), ("sigmoid", "Sigmoid"),
        ("silu", "Silu"), ("tanh", "TanH"), ("elu_plus_one", "EluPlusOne"))),
    Tie("matmul_fetch", _RKC, _product("fetch"), f"matmul 1 {_A} {_B}", "matmul_correct",
        "Matrices.v", TRIPLES),
    Tie("matmul_paper", _RKC, _product("paper"), f"paper_matmul 1 {_A} {_B}",
        "paper_matmul_correct", "Products.v", TRIPLES),
    Tie("matmul_tiled", _RKC, _product("tiled"), f"best_tiled_matmul 1 {_A} {_B}",
        "best_tiled_matmul_correct", "Tiled.v", TRIPLES),
    Tie("matmul_scatter", _RKC, _product("scatter"), f"scatter_matmul 1 {_A} {_B}",
        "scatter_matmul_correct", "Scatter.v", TRIPLES),
    Tie("attention", _ORDER, _universal(), _rows("U n d dv", "n dv"), "U_simulates", "Universal.v", TRIPLES,
        tokens=sequences.ATTENTION),
    Tie("attention_plain", _ORDER, _universal(stable=False), _rows("plain_U n d dv", "n dv"), "plain_U_simulates",
        "Universal.v", TRIPLES, tokens=sequences.ATTENTION),
    Tie("attention_paper", _ORDER, _universal(recipe="paper"), _rows("paper_U false n d dv", "n dv"),
        "paper_U_simulates", "Paper.v", TRIPLES, tokens=sequences.ATTENTION),
    Tie("attention_tiled", _ORDER, _universal(recipe="tiled"), _rows("tiled_U n d dv", "n dv"), "tiled_U_simulates",
        "Tiled.v", TRIPLES, tokens=sequences.TILED),
    Tie("heads", (*_ORDER, "H"), lambda n, d, d_v, heads: _of(n, d, d_v, heads=heads),
        _rows("heads_U n d dv H", "n (H * dv)"), "heads_U_simulates", "Heads.v", _QUADS, fits=_several,
        tokens=sequences.HEADS),
    Tie("heads_projected", (*_ORDER, "p", "H"),
        lambda n, d, d_v, p, heads: _of(n, d, d_v, heads=heads, projection=p), _rows("projected_U n d dv p H", "n p"),
        "projected_U_simulates", "Heads.v", _FIVES, fits=_several, tokens=sequences.PROJECTED),
    Tie("multihead_transpose", ("r", "c", "H"),
        lambda r, k, heads: c.multihead(c.transpose, heads, _tokens(r, k)),
        _rows("stacked (Family 1 0 H) (transposed (moving (Family 1 0 H) r c 0))", "(H * c) r"),
        "multihead_transpose_correct", "Heads.v", TRIPLES),
    Tie("multihead_matmul", (*_RKC, "H"), _multihead_product,
        _rows("stacked (Family 2 0 H) (matmul 1 (moving (Family 2 0 H) r k 0) "
              "(moving (Family 2 0 H) k c (H * (r * k))))", "(H * r) c"),
        "multihead_matmul_correct", "Heads.v", _QUADS),
    Tie("causal", _ORDER, lambda n, d, d_v: _of(n, d, d_v, mask="causal"),
        _rows("causal_U n d dv", "n dv"), "causal_U_simulates", "Hierarchy.v", TRIPLES,
        tokens=sequences.CAUSAL),
    Tie("hierarchy", _ORDER, lambda n, d, d_v: UniversalSimulator(n, d, d_v).masked,
        _rows("masked_U n d dv", "n dv"), "hierarchy_simulates", "Hierarchy.v", TRIPLES,
        tokens=sequences.MASKED),
    Tie("linear", (*_ORDER, "w"), _kind("linear"), _rows("linear_U n d dv w", "n dv"), "linear_U_simulates", "Kinds.v", _QUADS,
        tokens=sequences.LINEAR),
    Tie("linear_elu", (*_ORDER, "w"), _kind("linear", feature_map="elu+1"), _rows("elu_U n d dv w", "n dv"),
        "elu_U_simulates", "Kinds.v", _QUADS, tokens=sequences.ELU),
    Tie("linformer", (*_ORDER, "w", "k"), _kind("linformer"), _rows("linformer_U n d dv w k", "n dv"),
        "linformer_U_simulates", "Kinds.v", (*_FIVES, *_LONG), tokens=sequences.LINFORMER),
    # The program contains k^(−1/2) as a float, which is an exact fraction for k = 4.
    Tie("performer", (*_ORDER, "w"), lambda n, d, d_v, w: _kind("performer")(n, d, d_v, w, 4),
        _rows("performer_U (Fraction 1 2) (Fraction 1 2) n d dv w 4", "n dv"),
        "performer_U_simulates", "Kinds.v", _QUADS, tokens=sequences.PERFORMER),
    Tie("encoder", ("n", "d", "d1", "d2"), lambda n, d, d1, d2: _of(n, d, d, feed_forward=(d1, d2)),
        _rows("encoder n d d1 d2", "n d2"), "encoder_simulates", "Encoder.v", _QUADS,
        tokens=sequences.ENCODER),
    Tie("encoder_heads", (*_ORDER, "d1", "d2", "H"),
        lambda n, d, d_v, d1, d2, heads: _of(n, d, d_v, heads=heads, feed_forward=(d1, d2)),
        _rows("encoder_of_heads n d dv d1 d2 H", "n d2"), "encoder_of_heads_simulates", "Encoder.v", _SIXES, fits=_several,
        tokens=sequences.ENCODER_OF_HEADS),
    Tie("encoder_post", ("n", "d", "d1"), _layer("post"), _rows("layer_of_one_head Post Relu n d d1", "n d"),
        "layer_of_one_head_simulates", "Encoder.v", TRIPLES,
        tokens=sequences.layer_of_one_head("post")),
    Tie("encoder_pre", ("n", "d", "d1"), _layer("pre"), _rows("layer_of_one_head Pre Relu n d d1", "n d"),
        "layer_of_one_head_simulates", "Encoder.v", TRIPLES, tokens=sequences.layer_of_one_head("pre")),
    Tie("encoder_pre_gelu", ("n", "d", "d1"), _layer("pre", activation="gelu"),
        _rows(f"layer_of_one_head Pre ({_GELU}) n d d1", "n d"), "layer_of_one_head_simulates",
        "Encoder.v", TRIPLES, tokens=sequences.layer_of_one_head("pre", "gelu")),
    Tie("encoder_heads_post", (*_ORDER, "d1", "H"), _layer("post", 2), _rows("layer_of_heads Post Relu n d dv d1 H", "n d"),
        "layer_of_heads_simulates", "Encoder.v", _FIVES, fits=_several,
        tokens=sequences.layer_of_heads("post")),
    Tie("encoder_heads_pre", (*_ORDER, "d1", "H"), _layer("pre", 2), _rows("layer_of_heads Pre Relu n d dv d1 H", "n d"),
        "layer_of_heads_simulates", "Encoder.v", _FIVES, fits=_several,
        tokens=sequences.layer_of_heads("pre")),
)  # fmt: skip
BY_NAME = {tie.name: tie for tie in TIES}

#: Equations that Coq must reject: the name of a tie, a shape, and a result that differs from the
#: definition at this shape.
MUTANTS: tuple[tuple[str, Shape, Callable[[], Result]], ...] = (
    ("matmul_fetch", (2, 3, 2), lambda: BY_NAME["matmul_paper"].build(2, 3, 2)),
    ("matmul_paper", (2, 2, 2), lambda: c.matmul(
        Matrix(tokens, 2, 2), Matrix(tokens, 2, 2, offset=3), recipe="paper")),
    ("softmax_stable", (3, 3), lambda: BY_NAME["softmax_plain"].build(3, 3)),
    ("transpose_paper", (2, 3), lambda: BY_NAME["transpose_paper"].build(3, 2)),
    ("attention", (2, 2, 2), lambda: UniversalSimulator(
        Order.of(2, 2, 2, mask="causal"), stable=True)),
    ("row_sums", (2, 3), lambda: c.row_means(Matrix(tokens, 2, 3))),
    ("matmul_scatter", (2, 3, 2), lambda: BY_NAME["matmul_tiled"].build(2, 3, 2)),
    ("heads", (2, 2, 2, 2), lambda: BY_NAME["heads"].build(2, 2, 2, 3)),
    ("shift", (2,), lambda: BY_NAME["shift"].build(3)),
    ("maxmin", (2, 2), lambda: BY_NAME["maxmin_paper"].build(2, 2)),
    ("encoder_post", (2, 2, 3), lambda: BY_NAME["encoder_pre"].build(2, 2, 3)),
    # In these results, the program and the shape are correct, but the offset or the strides are wrong.
    ("matmul_fetch", (2, 3, 3), lambda: _product("fetch")(2, 3, 3).replace(offset=1)),
    ("matmul_fetch", (3, 3, 3), lambda: _product("fetch")(3, 3, 3).transpose(0, 1)),
    ("transpose", (2, 3), lambda: _tokens(3, 2)),
)  # fmt: skip


#: Shapes of arrays for which the positions of all entries are compared with the Coq function ``prop``.
LAYOUTS: tuple[Shape, ...] = (
    (1,), (8,), (1, 1), (1, 5), (5, 1), (2, 3), (3, 2), (4, 4), (8, 8), (2, 3, 4), (4, 1, 3), (2, 2, 2, 2),
)  # fmt: skip


def state_positions(shape: Shape) -> str:
    """Write the Coq equation that ``prop`` in Sequences.v returns the same positions as ``c.prop``.

    The equation lists the positions of all entries of an array of this shape.
    """
    entries = list(itertools.product(*map(range, shape)))
    listed = "; ".join(f"[{'; '.join(map(str, entry))}]" for entry in entries)
    numbers = "; ".join(str(c.prop(shape, entry)) for entry in entries)
    sizes = "; ".join(map(str, shape))
    return f"Goal map (prop [{sizes}]) [{listed}] = [{numbers}].\nProof. reflexivity. Qed.\n"
