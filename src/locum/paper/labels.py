"""Every label of the paper, in its order: what is printed there, and which item of ours it is.

Lines are those of the paper's source, where the label stands. Sections and equations that claim nothing
have no item.

>>> len(LABELS), LABELS["Th:1"].item
(50, 'attention')
"""

from __future__ import annotations

from typing import NamedTuple


class Label(NamedTuple):
    """One label: kind and title of what it marks, line, item of ours, and what is printed."""

    label: str
    kind: str
    title: str
    line: int
    #: The key in ``items.ITEMS``; "" where nothing is claimed.
    item: str
    printed: str
    #: Numbers of the errata that are about this very place.
    errata: tuple[str, ...] = ()


_ALL = [
    Label("sec:1", "section", "Introduction", 122, "", "what is simulated, and why"),
    Label("fig:U", "figure", "Figure 1: U reads ⟨T, X⟩ and gives T(X)", 184, "attention", "a diagram"),
    Label(
        "sec:relworks", "section", "Related works", 199, "k-parity",
        "k-PARITY by one layer of k heads",
    ),
    Label(
        "tab:comparison", "table", "Table 1: looped transformers and ours", 225, "complexity",
        "transposition 4L 1H against 2L 1H; multiplication 2L 1H against 3L O(rc)H; inversion 13L "
        "1H against 5L 4H",
        ("E20",),
    ),
    Label(
        "sec:prelim", "section", "Preliminaries", 233, "aggregation",
        "(R ∘ S)[i] = Σⱼ R[i, j]·S[j]",
        ("E10",),
    ),
    Label("ssec:transenc", "section", "Transformer encoders", 238, "", "definitions"),
    Label("eq:softmaxatt", "equation", "softmax attention", 243, "attention", "σ(XAXᵀ)XV"),
    Label("ssec:gahat_rasp_overview", "section", "AHAT and RASP", 250, "", "definitions"),
    Label("eq:linformer", "equation", "Linformer", 258, "linear-attention", "σ((XW_Q)(EXW_K)ᵀ)FXV"),
    Label("eq:linatt", "equation", "linear attention", 260, "linear-attention", "(XW_Q)(XW_K)ᵀXV"),
    Label("sec:simulation", "section", "Simulation", 263, "", "the constructions follow"),
    Label("prop:AHAT", "proposition", "AHAT", 274, "sum", "a mean becomes a sum in the feed-forward"),
    Label("1D", "proposition", "1D", 282, "positions", "arrays as sequences, by m₀i₀ + i₁", ("E9",)),
    Label("lem:transposition", "lemma", "transposition", 294, "transpose", "2 layers, 1 head each"),
    Label("lem:softmax", "lemma", "softmax", 304, "softmax", "2 layers, r heads in the second"),
    Label("algo:trans", "algorithm", "Algorithm 1: transposition", 321, "transpose", "pseudocode"),
    Label("algo:softmax", "algorithm", "Algorithm 2: softmax", 335, "softmax", "pseudocode", ("E7",)),
    Label(
        "algo:matmul", "algorithm", "Algorithm 3: multiplication", 347, "matmul",
        "pseudocode",
        ("E6",),
    ),
    Label(
        "lem:matmul", "lemma", "multiplication", 351, "matmul",
        "3 layers; r + c, then rc heads",
        ("E14",),
    ),
    Label(
        "Th:1", "theorem", "Theorem 1", 361, "attention",
        "one U for every T of order (n, d, d_v)",
        ("E17", "E18",),
    ),
    Label(
        "fig:simulationexample", "figure", "Figure 2: U at work", 528, "figure-2",
        "six matrices to three digits; errors 3.376358e-06 and 3.040329e-07",
        ("E1",),
    ),
    Label("col:enc", "corollary", "encoders", 532, "encoder", "U for FFN(X + σ(XAXᵀ)XV)", ("E19",)),
    Label(
        "rem:ahattosmat", "remark", "softmax attention by hard attention", 541, "hard-attention",
        "it serves",
    ),
    Label(
        "rem:linformer", "remark", "Linformer and linear attention", 545, "linear-attention",
        "U runs both",
    ),
    Label(
        "sec:discussion", "section", "Discussion; remarks on sparsification and Lipschitz functions",
        552, "sparse-attention",
        "Performer and Sumformer are represented",
        ("E21",),
    ),
    Label(
        "tab:1", "table", "Table 2: cost of the constructions", 567, "complexity",
        "transposition O(1), softmax O(r), multiplication O(rc), MaxMin O(1)",
        ("E20",),
    ),
    Label(
        "col:expressive_hierarchy", "corollary", "hierarchy", 573, "hierarchy",
        "a larger U runs smaller T's",
        ("E15",),
    ),
    Label("lem:MaxMin", "lemma", "MaxMin", 589, "maxmin", "O(1) heads, whatever the length"),
    Label("algo:maxmin", "algorithm", "Algorithm 4: MaxMin", 607, "maxmin", "pseudocode"),
    Label(
        "lem:multihead", "lemma", "multi-head", 613, "multihead",
        "any operation on H blocks at once",
        ("E13", "E41"),
    ),
    Label(
        "thm:U_multihead", "theorem", "H heads", 629, "multihead-attention",
        "one U for every T of H heads",
    ),
    Label(
        "col:U_multihead", "corollary", "encoders of H heads", 637, "multihead-encoder",
        "the same for encoders",
    ),
    Label(
        "rem:multihead", "remark", "PARITY, k-PARITY", 641, "languages",
        "two U's in series run PARITY",
    ),
    Label("sec:conclusion", "section", "Conclusion", 646, "decoders", "decoders are future work"),
    Label("sec:appendix", "section", "Appendix", 1018, "", "listings and proofs"),
    Label(
        "ssec:RASPCodes", "section", "RASP codes", 1021, "identify-shift",
        "identify and shift",
        ("E11", "E12",),
    ),
    Label("lst:transpose", "listing", "Listing 1: transpose", 1023, "transpose", "RASP"),
    Label(
        "lst:softmax", "listing", "Listing 2: softmax", 1031, "softmax",
        "RASP, with the base 2.73",
        ("E1",),
    ),
    Label("lst:matmul", "listing", "Listing 3: multiplication", 1041, "matmul", "RASP"),
    Label("lst:relu", "listing", "Listing 4: ReLU", 1057, "activations", "RASP"),
    Label("lst:MaxMin", "listing", "Listing 5: MaxMin", 1063, "maxmin", "RASP", ("E2",)),
    Label("lst:Match2", "listing", "Listing 6: Match₂", 1077, "match", "RASP", ("E3",)),
    Label(
        "ssec:proofofhierarchy", "section", "Proof of the hierarchy", 1087, "hierarchy",
        "padding with zeros",
        ("E16",),
    ),
    Label("ssec:inverse", "section", "Matrix inversion", 1122, "cofactor", "order 3 alone"),
    Label(
        "inversion", "lemma", "inversion", 1126, "inverse",
        "5 layers, at most 4 heads",
        ("E5", "E8",),
    ),
    Label("algo:matinverse", "algorithm", "Algorithm 5: inversion", 1146, "inverse", "pseudocode"),
    Label("lst:cofactor", "listing", "Listing 7: cofactors", 1154, "cofactor", "RASP", ("E4",)),
    Label("lst:det", "listing", "Listing 8: determinant", 1168, "determinant", "RASP", ("E4",)),
    Label(
        "eq:inv", "equation", "U through inverses", 1181, "inverse-form",
        "A and V non-singular, order 3",
    ),
    Label(
        "fig:completeinverse", "figure", "inverse of a 3 × 3 matrix", 1190, "inverse",
        "T₋₁ on (7 8 12; 10 11 9; 2 4 21), a picture of the run",
    ),
]  # fmt: skip

#: Label → what it marks.
LABELS = {label.label: label for label in _ALL}
