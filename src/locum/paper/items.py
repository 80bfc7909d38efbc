"""List the paper's items, each with its functions, claim, proofs, errata and listings.

Facts that can be computed are not stored. ``graph.architecture`` counts the heads of programs, and
every item has a check. ``findings.py`` runs the checks. The commands
``locum paper items`` and ``locum prove all`` show the results.

>>> ITEMS["softmax"].errata
('E1', 'E7', 'E23')
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from locum import constructions as c
from locum.constructions.matrix import Matrix
from locum.languages.first_and_parity import Match2, Parity
from locum.paper import checks
from locum.paper.checks import factors, matrix, product, square, three_rows
from locum.paper.item import ClaimInstance, Item
from locum.rasp.python import full, tokens

Proofs = tuple[ClaimInstance, ...]


def _each(name: str, shapes: Iterable[tuple[int, ...]], *recipes: str) -> Proofs:
    """List the claim ``name`` at every shape, in each of the recipes or in the default recipe."""
    return tuple(
        ClaimInstance(name, shape, recipe) for shape in shapes for recipe in recipes or (None,)
    )


def _up_to(*sizes: int) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(1, size + 1) for size in sizes)))


_ALL = [
    Item(
        "aggregation", "Preliminaries, the operation ∘", "R ∘ S",
        ("aggregate", "summed"), "(R ∘ S)[i] = Σⱼ R[i, j] · S[j]",
        checks.circ_is_a_product,
        errata=("E10",),
    ),
    Item(
        "positions", "Proposition 1D", "prop, concatenation",
        ("prop", "unprop", "concatenate"), "a bijection between n-dimensional arrays and sequences, m₀i₀ + i₁",
        checks.prop_is_a_bijection,
        proofs=_each("positions", [(2, 3), (3, 2), (4, 4)]),
        theorems=("Sequences.prop_bijection",),
        errata=("E9", "E27"),
    ),
    Item(
        "sum", "Proposition AHAT", "mean scaled to a sum",
        ("summed",), "the feed-forward multiplies by the number of keys; no additional head",
        checks.sums,
        lambda: {"known count": c.summed(full, tokens, 3), "count unknown (selector_width)": c.summed(full, tokens)},
        claimed_heads=(1,),
        proofs=_each("summed", _up_to(6)),
        theorems=("Sums.summed_correct", "Sums.summed_by_correct", "Sequences.all_sum_correct"),
        errata=("E23", "E30"),
    ),
    Item(
        "transpose", "Lemma transposition, Algorithm 1, Listing 1", "transpose",
        ("transpose",), "2 layers, 1 head each, O(1); exact",
        checks.transposes,
        lambda: {"paper": c.transpose(three_rows(), "paper").sop, "view": c.transpose(three_rows()).sop},
        claimed_heads=(1, 1),
        proofs=(
            *_each("transpose", _up_to(5, 5), "paper", "view"),
            *_each("listing-1", [(columns,) for columns in range(1, 7)]),
        ),
        theorems=("Sums.transpose_correct", "Matrices.transposed_correct"),
        errata=("E35", "E36"),
        listings=("transpose",),
        command="locum run transpose",
    ),
    Item(
        "softmax", "Lemma softmax, Algorithm 2, Listing 2", "softmax",
        ("softmax",), "2 layers, r heads in the second, O(r)",
        checks.softmaxes,
        lambda: {
            "paper": c.softmax(three_rows(), stable=False).sop,
            "frugal": c.softmax(matrix(), stable=False, recipe="frugal").sop,
            "stable": c.softmax(matrix(), recipe="frugal").sop,
        },
        claimed_heads=(1, 3),
        proofs=_each("softmax", _up_to(4, 4), "plain", "stable"),
        theorems=("Paper.paper_softmax_correct", "Masks.plain_softmax_correct", "Masks.stable_softmax_correct", "Masks.unmasked_softmax_correct", "Masks.causal_softmax_correct", "Masks.columns_softmax_correct", "Masks.masked_softmax_correct"),
        errata=("E1", "E7", "E23"),
        listings=("softmax", "softmax_corrected"),
        command="locum run softmax_corrected",
    ),
    Item(
        "matmul", "Lemma matmul, Algorithm 3, Listing 3", "matmul",
        ("matmul", "own_token_product"), "3 layers; r + c heads, then rc; O(rc); for k ≥ rc/(r + c)",
        checks.products,
        lambda: {
            "paper": c.matmul(*factors()).sop,
            "fetch": product("fetch"),
            "at own tokens": c.own_token_product(*c.concatenate(tokens, (3, 3), (3, 4))).sop,
            "tiled": product("tiled"),
            "scatter": product("scatter"),
        },
        claimed_heads=(1, 7, 12),
        proofs=(
            *_each("matmul", _up_to(4, 4, 4), "paper", "fetch", "tiled", "scatter"),
            *_each("listing-3", [(k,) for k in range(2, 6)]),
        ),
        theorems=("Products.paper_matmul_correct", "Matrices.matmul_correct", "Tiled.best_tiled_matmul_correct", "Scatter.scatter_matmul_correct"),
        errata=("E6", "E17", "E23", "E39"),
        listings=("matmul",),
        command="locum run matmul --count",
    ),
    Item(
        "complexity", "Tables 1 and 2", "cost of the constructions",
        ("matmul",), "a product takes O(rc) attentions",
        checks.a_product_has_r_plus_c_plus_rc_heads,
        errata=("E20",),
        command="locum run matmul --count",
    ),
    Item(
        "activations", "Listing 4; remark on activations", "relu, leaky_relu, absolute, maxout, gelu, silu, tanh",
        ("relu", "leaky_relu", "absolute", "maxout", "gelu", "silu", "sigmoid", "tanh"),
        "a feed-forward without attention; ReLU and similar functions through MaxMin",
        checks.activations,
        lambda: {"feed-forward": c.relu(matrix()).sop, "through MaxMin": c.relu(matrix(), "maxmin").sop},
        claimed_heads=(),
        proofs=(
            *_each("relu", _up_to(8), "feed-forward", "maxmin"),
            *_each("listing-4", _up_to(4)),
        ),
        theorems=("Activations.activation_correct", "Sorting.through_maxmin_correct", "Maxout.maxout_correct"),
        listings=("relu",),
        command="locum run relu",
    ),
    Item(
        "maxmin", "Lemma MaxMin, Algorithm 4, Listing 5", "maxmin, groupsort",
        ("maxmin", "groupsort"), "O(1) heads for every length",
        checks.maxmins,
        lambda: {
            "paper": c.maxmin(matrix(), "paper").sop,
            "partner": c.maxmin(matrix()).sop,
            "groups of 3": c.groupsort(matrix(), 3).sop,
        },
        proofs=(
            *_each("maxmin", [(n,) for n in (2, 4, 6, 8)], "partner", "paper"),
            *_each("groupsort", [(2, 2), (4, 2), (6, 2), (8, 2), (3, 3), (6, 3), (4, 4)]),
        ),
        theorems=("Sorting.maxmin_correct", "Sorting.flipping_correct", "GroupSort.groupsort_correct"),
        errata=("E2", "E38"),
        listings=("maxmin", "maxmin_corrected"),
        command="locum run maxmin_corrected",
    ),
    Item(
        "identify-shift", "Lemma multi-head, snippets", "identify, shift",
        ("identify", "shift"), "one head for identify, and one head for shift",
        checks.identifies_and_shifts,
        lambda: {"identify": c.identify(tokens, 1, 2), "shift": c.shift(tokens, 2, 5)},
        claimed_heads=(1,),
        proofs=(
            *_each("identify", [(5, i, k) for i in range(1, 6) for k in range(1, 7 - i)]),
            *_each("shift", [(5, t) for t in range(1, 6)]),
        ),
        theorems=("Sequences.identify_correct", "Sequences.shift_correct", "Sequences.rotate_correct"),
        errata=("E11", "E12", "E23", "E39"),
        listings=("identify", "shift"),
        command="locum run shift",
    ),
    Item(
        "multihead", "Lemma multi-head", "multihead",
        ("multihead",), "any operation can be applied to H blocks at once, without interference",
        checks.multiheads,
        lambda: {"softmax(XXᵀ)X, H = 3": c.multihead(checks.attend, 3, Matrix(tokens, 2, 2)).sop},
        proofs=(
            *_each("multihead_transpose", [(h, r, k) for h in (1, 2, 3) for r, k in ((2, 2), (2, 3))]),
            *_each("multihead_matmul", [(h, 2, 2, 2) for h in (1, 2, 3)]),
        ),
        theorems=("Heads.multihead_correct", "Heads.multihead_transpose_correct", "Heads.multihead_matmul_correct"),
        errata=("E13", "E41"),
        command="locum prove claim multihead_matmul 2 2 2 2",
    ),
    Item(
        "cofactor", "Lemma inversion, Listing 7", "cofactor",
        ("cofactor",), "order 3; 2 layers, 4 heads in the second",
        checks.cofactors,
        lambda: {"paper": c.cofactor(square(), order=3).sop, "order 4": c.cofactor(Matrix(tokens, 4, 4)).sop},
        claimed_heads=(1, 4),
        proofs=(*_each("cofactor", [(2,), (3,), (4,)]), ClaimInstance("listing-7", ())),
        theorems=("Inversion.cofactor_correct",),
        errata=("E25",),
        listings=("cofactor",),
        command="locum run cofactor",
    ),
    Item(
        "determinant", "Lemma inversion, Algorithm 5, Listing 8", "determinant",
        ("determinant",), "order 3; 4 layers",
        checks.determinants,
        lambda: {
            "paper": c.determinant(square(), order=3, recipe="paper").sop,
            "frugal": c.determinant(Matrix(tokens, 3, 3)).sop,
        },
        claimed_heads=(1, 4, 1, 1),
        proofs=(
            *_each("determinant", [(2,), (3,), (4,)], "frugal", "paper"),
            ClaimInstance("listing-8", ()),
        ),
        theorems=("Inversion.determinant_correct", "Inversion.paper_determinant_correct"),
        errata=("E23", "E24", "E25"),
        listings=("determinant",),
        command="locum run determinant",
    ),
    Item(
        "inverse", "Lemma inversion", "inverse",
        ("inverse",), "order 3; 5 layers, at most 4 heads",
        checks.inverses,
        lambda: {
            "paper": c.inverse(square(), "paper", order=3).sop,
            "cofactor": c.inverse(Matrix(tokens, 3, 3), "cofactor").sop,
            "gauss-jordan": c.inverse(Matrix(tokens, 3, 3), "gauss-jordan").sop,
        },
        claimed_heads=(1, 4, 1, 1, 1),
        proofs=(*_each("inverse", [(2,), (3,), (4,)], "cofactor"), ClaimInstance("inverse", (3,), "paper")),
        theorems=("Inversion.inverse_correct",),
        errata=("E4", "E5", "E8", "E33"),
        listings=("inverse", "inverse_corrected"),
        command="locum run inverse_corrected --count",
    ),
    Item(
        "match", "Introduction, Listing 6", "match2, match3",
        ("match2", "match3"), "Match₂ by one attention layer with one head",
        checks.matches,
        lambda: {
            "Match₂": c.match2(tokens, 5),
            **{f"Match₃, {form}": c.match3(Matrix(tokens, 1, 4), 5, form).sop for form in ("padded", "heads", "tensor")},
        },
        claimed_heads=(1,),
        proofs=_each("match2", [(2, 3), (2, 5), (3, 5)]),
        theorems=("Sequences.match2_correct",),
        errata=("E3", "E23", "E28"),
        listings=("match2", "match2_corrected"),
        command="locum run match2_corrected",
    ),
    Item(
        "k-parity", "Introduction: k-PARITY", "k_parity",
        ("k_parity",), "one layer with several heads",
        checks.parities,
        lambda: {"k heads": c.k_parity(tokens, (1, 4, 6), "each"), "one head": c.k_parity(tokens, (1, 4, 6))},
        theorems=("Sequences.k_parity_correct",),
        errata=("E29",),
    ),
    Item(
        "encoder-parts", "Corollary encoder: its parts", "row sums and means, broadcast, residual sum, layer_norm",
        ("row_sums", "row_means", "broadcast_row", "broadcast_column", "add", "layer_norm"),
        "the residual sum is elementwise",
        checks.encoder_parts,
        lambda: {
            "residual sum": c.add(matrix(), matrix()).sop,
            "row sums": c.row_sums(matrix()).sop,
            "layer norm": c.layer_norm(matrix()).sop,
        },
        claimed_heads=(),
        proofs=_each("layer_norm", [(1, 2), (2, 3), (3, 4), (2, 6)]),
        theorems=("Sums.row_sums_correct", "Sums.row_means_correct", "Sums.broadcast_row_correct", "Sums.add_correct", "Norm.layer_norm_correct"),
        errata=("E19",),
    ),
    Item(
        "lipschitz", "Remark on Lipschitz functions", "lipschitz_network",
        ("lipschitz_network",), "MaxMin networks with ‖W‖ ≤ 1 are dense in the 1-Lipschitz functions",
        checks.lipschitz_networks,
        lambda: {"5 knots": c.lipschitz_network(np.sin, [-2.0, -1.0, 0.0, 1.0, 2.0]).program(2).sop},
        errata=("E21", "E22", "E34"),
    ),
    Item(
        "attention", "Theorem 1", "σ(XAXᵀ)XV",
        ("UniversalSimulator", "Attention"), "one network for every T of order (n, d, d_v); n ≤ min(d, d_v)",
        checks.attentions,
        checks.programs("paper", "fetch", "tiled", "width-1"),
        proofs=(
            *_each("attention", [(2, 2, 2), (3, 2, 2), (2, 3, 3), (3, 3, 3)], "fetch", "paper", "tiled", "width-1"),
            ClaimInstance("attention", (5, 2, 2), "fetch"),
        ),
        theorems=("Encoding.theorem_1", "Encoding.every_recipe_simulates", "Universal.U_simulates", "Universal.plain_U_simulates", "Paper.paper_U_simulates", "Tiled.tiled_U_simulates"),
        errata=("E14", "E17", "E18", "E32"),
        command="locum simulate --order 4,3,2",
    ),
    Item(
        "figure-2", "Figure 2", "the demonstration",
        ("figure2",), "errors 3.376358e-06 and 3.040329e-07, by the softmax's base",
        checks.figure,
        errata=("E1", "E32"),
        command="locum simulate --base 2.718",
    ),
    Item(
        "encoder", "Corollary encoder", "FFN(X + σ(XAXᵀ)XV), also with norms and biases",
        ("Encoder",), "one network for every encoder of order (n, d, d_v, d₁, d₂)",
        checks.encoders,
        checks.programs("paper", "fetch", feed_forward=(4, 3)),
        proofs=(
            *_each("encoder", [(2, 2, 2, 2, 2), (3, 2, 2, 4, 2), (3, 3, 3, 4, 3), (4, 3, 3, 2, 1)]),
            *_each("normed_encoder", [(2, 2, 2), (3, 2, 2), (2, 3, 2)], "post", "pre"),
        ),
        theorems=("Encoding.encoder_computes", "Encoder.encoder_simulates", "Encoder.layer_of_one_head_simulates"),
        errata=("E19", "E40"),
        command="locum simulate --order 4,3,3 --ffn 5,3",
    ),
    Item(
        "hard-attention", "Remark SMAT by AHAT", "hard attention simulates softmax; Match₂; unique and average pooling",
        ("Match2", "Attention"), "AHATs perform tasks of single-layer softmax attention, such as Match₂",
        checks.hard_attentions,
        lambda: {"Match₂, 4 tokens": Match2(5).simulator(4).program},
        proofs=_each("hard_attention", [(2, 1, 1), (2, 2, 2), (3, 2, 2)]),
        errata=("E31",),
    ),
    Item(
        "linear-attention", "Remark Linformer and linear attention", "Linformer, linear",
        ("Linformer", "LinearAttention"), "U simulates Linformer and linear attention",
        checks.linear_attentions,
        checks.kinds("linformer", "linear"),
        proofs=(*_each("linformer", [(2, 2, 2), (4, 3, 2)]), *_each("linear", [(2, 2, 2), (4, 3, 2)])),
        theorems=("Kinds.linformer_U_simulates", "Kinds.linear_U_simulates", "Kinds.elu_U_simulates"),
        command="locum simulate --order 4,3,2 --kind linformer",
    ),
    Item(
        "sparse-attention", "Remark sparsification", "Performer, Sumformer",
        ("Performer", "Sumformer"), "U represents Performer and Sumformer",
        checks.sparse_attentions,
        checks.kinds("performer", "sumformer"),
        proofs=(*_each("performer", [(2, 2, 2), (3, 2, 2)]), *_each("sumformer", [(2, 2, 2), (4, 3, 2)])),
        theorems=("Kinds.performer_U_simulates",),
        command="locum simulate --order 4,3,2 --kind performer",
    ),
    Item(
        "hierarchy", "Corollary hierarchy", "a smaller T on a larger U",
        ("UniversalSimulator.embed",), "the simulation is exact, by padding with zeros",
        checks.hierarchy,
        checks.masked,
        proofs=_each("hierarchy", [(1, 1, 1, 2, 2, 2), (2, 2, 2, 3, 3, 3)]),
        theorems=("Encoding.masked_U_computes", "Hierarchy.hierarchy_simulates"),
        errata=("E15", "E16", "E37"),
        command="locum simulate --order 2,2,2 --on 4,3,3",
    ),
    Item(
        "multihead-attention", "Theorem H heads", "H heads, side by side or through W_O",
        ("UniversalSimulator", "MultiHeadAttention"), "one network for every T with H heads",
        checks.multihead_attentions,
        checks.programs("paper", "fetch", heads=2),
        proofs=_each("multihead_attention", [(2, 2, 2, 2), (3, 2, 2, 2), (3, 3, 3, 2)]),
        theorems=("Encoding.heads_U_computes", "Heads.heads_U_simulates", "Heads.projected_U_simulates"),
        errata=("E26",),
        command="locum simulate --order 4,3,3 --heads 2",
    ),
    Item(
        "multihead-encoder", "Corollary H heads", "encoders of H heads; layers of torch",
        ("Encoder", "from_torch"), "one network for every encoder with H heads",
        checks.multihead_encoders,
        checks.programs("fetch", heads=2, feed_forward=(4, 3), norm="pre"),
        proofs=_each("multihead_encoder", [(2, 2, 2, 1, 2, 2), (3, 2, 2, 2, 3, 2)]),
        theorems=("Encoding.corollary_H_heads", "Encoder.encoder_of_heads_simulates", "Encoder.layer_of_heads_simulates"),
        errata=("E26",),
        command="locum simulate --order 4,3,3 --heads 2 --ffn 5,3",
    ),
    Item(
        "languages", "Remark H heads", "PARITY on two U's in series, FIRST; k-PARITY on one",
        ("Stack", "Parity", "First", "KParity"), "two serially connected U's run the two-layer encoder for PARITY",
        checks.languages,
        lambda: {"PARITY, length 3": Parity().simulator(3).program},
    ),
    Item(
        "inverse-form", "Appendix, equation inv", "the alternative construction",
        ("UniversalSimulator",), "through inverses, for A and V non-singular, of order 3",
        checks.inverse_form,
        checks.programs("inverse"),
        proofs=_each("attention", [(2, 2, 2), (3, 3, 3)], "inverse"),
        command="locum simulate --order 3,3,3 --recipe inverse",
    ),
    Item(
        "decoders", "Conclusion: decoders", "causal and cross-attention, decoder layers",
        ("DecoderLayer",), "decoders are future work",
        checks.decoders,
        proofs=(
            *_each("causal_attention", [(2, 2, 2), (3, 3, 3), (4, 2, 2)]),
            *_each("cross_attention", [(2, 3, 2, 2), (3, 2, 2, 2)]),
            *_each("decoder", [(3, 2, 2, 2), (3, 3, 3, 3)], "none"),
            *_each("decoder", [(2, 2, 2, 1), (2, 3, 2, 2)], "post", "pre"),
        ),
        theorems=("Hierarchy.causal_U_simulates",),
    ),
]  # fmt: skip

#: The items by key.
ITEMS = {item.key: item for item in _ALL}
