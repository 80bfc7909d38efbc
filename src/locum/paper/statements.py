"""List the statements of the paper in order, each with its printed text and its checks.

Every label of the paper's source has a row. Statements without a label, such as passages of the text,
also have rows. ``quote`` is an excerpt of the printed text with its formulas in Unicode, where "…"
marks omissions within the excerpt. Line numbers refer to the paper's source. ``paper_report.py``
derives the verdicts.

>>> [evidence.holds for check in STATEMENTS["algo:trans"].checks for evidence in check()]
[True]
>>> sum(statement.labelled for statement in STATEMENTS.values())
50
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from locum.paper import algorithm_evidence as algorithm
from locum.paper import algorithms, listings
from locum.paper import cost_evidence as cost
from locum.paper import definition_evidence as definition
from locum.paper import listing_evidence as listing
from locum.paper import simulator_evidence as simulator
from locum.paper.evidence import Evidence
from locum.paper.proven_claims import ClaimInstance

#: A function that runs a check and returns the evidence.
Check = Callable[[], Iterable[Evidence]]


@dataclass(frozen=True)
class Statement:
    """A statement of the paper, and its checks."""

    #: The label in the paper's source, or a name for a passage without one.
    key: str
    kind: str
    title: str
    line: int
    #: An excerpt of the printed text; "" if nothing is claimed.
    quote: str = ""
    #: The checks to run.
    checks: tuple[Check, ...] = ()
    #: Claims whose proofs are evidence for the statement.
    claims: tuple[ClaimInstance, ...] = ()
    #: Theorems for all shapes, each written as the file in proofs/, a dot, and the name.
    theorems: tuple[str, ...] = ()
    #: Errata of the statement that no run demonstrates; they lower the verdict.
    text_only: tuple[str, ...] = ()
    #: The reading of the statement to which the verdict refers, or "".
    reading: str = ""
    #: The name of the printed listing.
    listing: str = ""
    #: The transcriptions of the printed algorithm: as printed, and corrected.
    transcriptions: tuple[Callable[..., object], ...] = ()
    #: Parts of the statement that cannot be checked here, as text.
    unchecked: tuple[str, ...] = ()
    #: Whether ``key`` is a label of the paper's source.
    labelled: bool = True

    @property
    def text(self) -> str:
        """The last function of the printed listing, or an empty string if there is no listing."""
        if not self.listing:
            return ""
        definitions = re.findall(
            r"^ *def .*?^ *}", listings.text(self.listing), re.DOTALL | re.MULTILINE
        )
        return inspect.cleandoc(definitions[-1])

    @property
    def sources(self) -> list[str]:
        """The Python source code of the transcriptions of the printed algorithm."""
        return [inspect.getsource(function) for function in self.transcriptions]

    @property
    def is_claimed(self) -> bool:
        """Whether the statement is not future work."""
        return self.kind != "future work"


_ALL = [
    Statement(
        "sec:1", "section", "Introduction: Match₂ and Match₃", 122,
        "While the same can be solved using a single-layer single-head SMAT, Match₃, an extension with "
        "three variables does not follow suit, even with the multi-layer multi-head extension. … a simple "
        "average hard attention transformer (AHAT) can be realized to compute the task Match₂",
        checks=(simulator.check_introduction,),
        unchecked=("what Sanford et al. prove about Match₃ for one layer",),
    ),
    Statement(
        "k-parity", "passage", "Introduction: k-PARITY", 125,
        "The language, k-PARITY = {w∈{0,1}ⁿ ∣ S ⊂ {0,1,…,n−1} and (∑_{i_j ∈ S} w_{i_j}) mod 2 = 0 } where "
        "|S|=k ≪ n, has been shown single-layer multi-head SMAT-learnable",
        checks=(definition.check_k_parity,),
        theorems=("Sequences.k_parity_correct",),
        unchecked=("that Han and Ghoshdastidar show it learnable",),
        labelled=False,
    ),
    Statement(
        "fig:U", "figure", "Figure 1: U reads ⟨T, X⟩ and gives T(X)", 184,
        "Simulation of attention T characterized by matrices A and V on input X using the proposed "
        "transformer network U such that U(⟨T, X⟩) = T(X). Operations ⊤, ⊠ and σ represent matrix "
        "transposition, multiplication and activation softmax",
        checks=(algorithm.check_figure_1,),
    ),
    Statement(
        "sec:relworks", "section", "Related works: universal approximation", 199,
        "we invoke the universal approximation theorem … to assume it can be approximated to any arbitrary "
        "precision ϵ > 0. This ensures that the simulated representation remains as robust and functionally "
        "indistinguishable as its original output.",
        checks=(simulator.check_universal_approximation,),
    ),
    Statement(
        "related:input", "passage", "Related works: input of a looped transposition", 201,
        "transposing a d × d matrix requires an O(4d) × d² input",
        checks=(cost.check_input_of_transposition,),
        unchecked=("the layout of Giannou et al., which is not published",),
        labelled=False,
    ),
    Statement(
        "tab:comparison", "table", "Table 1: looped transformers and U", 225,
        "We report number of layers (L), head count (H) …, and vectorized input complexity … ‘Dep’ "
        "indicates if weights depend on input values",
        checks=(cost.check_table_1,),
        unchecked=("the rows of Giannou et al. in their own layout",),
    ),
    Statement(
        "related:duplicates", "passage", "Related works: duplicates of a looped transposition", 230,
        "the output often includes non-essential residuals (e.g., duplicate results of a matrix "
        "transposition, Lemma 12) unless post-processed",
        checks=(cost.check_duplicates,),
        unchecked=("Lemma 12 of Giannou et al.",),
        labelled=False,
    ),
    Statement(
        "related:temperature", "passage", "Related works: the temperature of looped transformers", 230,
        "several hyperparameters lie intrinsically dependent on the number of tokens (n), e.g., the "
        "approximation bound is valid when temperature λ ≥ log n³/ϵ (Lemma 2)",
        checks=(cost.check_temperature,),
        unchecked=("that this is Lemma 2 of Giannou et al.",),
        labelled=False,
    ),
    Statement(
        "related:value", "passage", "Related works: the matrix V of looped transformers", 230,
        "the assignment of the non-trivial parameters V depends on n (Lemma 13)",
        checks=(cost.check_value_matrix,),
        unchecked=("Lemma 13 of Giannou et al.",),
        labelled=False,
    ),
    Statement(
        "sec:prelim", "section", "Preliminaries: the operation ∘", 233,
        "the operation ∘ on a matrix R ∈ ℝ^{r×c} and a sequence S ∈ ℝ^{r} produces another sequence "
        "S′ ∈ ℝ^{c} such that S′[i] = ∑_{j∈[c−1]∪{0}} R[i, j]·S[j].",
        checks=(algorithm.check_operation,),
    ),
    Statement(
        "ssec:transenc", "section", "Transformer encoder: A combines W_Q and W_K", 238,
        "the projections W_Q^{(ℓ)} and W_K^{(ℓ)} can be combined to result A^{(ℓ)} ≕ W_Q^{(ℓ)}W_K^{(ℓ)⊤} ∈ "
        "ℝ^{d×d} … A self-attention at a layer ℓ can thus be uniquely characterized by the three parameters "
        "A^{(ℓ)}, V^{(ℓ)} and any normalizing activation function",
        checks=(definition.check_projections,),
    ),
    Statement(
        "eq:softmaxatt", "equation", "Softmax attention", 243,
        "σ(X^{(ℓ−1)}W_Q^{(ℓ)}W_K^{(ℓ)⊤}X^{(ℓ−1)⊤})X^{(ℓ−1)}W_V^{(ℓ)}",
        checks=(simulator.check_softmax_attention,),
    ),
    Statement(
        "ssec:gahat_rasp_overview", "section", "GAHAT and RASP", 250,
        "unique hard attention pools y_{j₀} while average hard attention pools 1/m∑_{i=0}^{m−1}y_{j_i} … it "
        "is evident that the attention module in RASP is AHA.",
        checks=(definition.check_pooling,),
    ),
    Statement(
        "eq:linformer", "equation", "Linformer", 258, "σ((XW_Q)(EXW_K)ᵀ)FXV.",
        checks=(simulator.check_linformer,), claims=(ClaimInstance("linformer", (2, 2, 2)),),
    ),
    Statement(
        "eq:linatt", "equation", "Linear attention", 260, "(XW_Q)(XW_K)ᵀXV.",
        checks=(simulator.check_linear, simulator.check_cited_linear_attention),
        claims=(ClaimInstance("linear", (2, 2, 2)),),
    ),
    Statement("sec:simulation", "section", "On simulating attention", 263),
    Statement(
        "prop:AHAT", "proposition", "Proposition AHAT", 274,
        "For any arbitrary scalar v ∈ ℝ, there exists a corresponding single-layer GAHAT T′ such that its "
        "constituent FFN module encodes the function f′(·) = f(v·). … a single FFN architecture is capable of "
        "representing this continuous compositional mapping to an arbitrary degree of precision",
        checks=(definition.check_scaling,),
        claims=(
            ClaimInstance("summed", (5,)),
            ClaimInstance("summed", (6,)),
        ),
        theorems=("Sums.summed_correct", "Sums.summed_by_correct", "Sequences.all_sum_correct"),
    ),
    Statement(
        "1D", "proposition", "Proposition 1D", 282,
        "For any function g : ℳ → ℳ, there exists a corresponding function g′ : ℳ′ → ℳ′ such that g(A) = "
        "prop⁻¹(g′(prop(A))), where prop : ℳ → ℳ′ is a bijection. … using the elementary index calculation "
        "m₀i₀+i₁.",
        checks=(algorithm.check_positions,),
        claims=(
            ClaimInstance("positions", (2, 3)),
            ClaimInstance("positions", (3, 2)),
        ),
        theorems=("Sequences.prop_bijection",),
    ),
    Statement(
        "lem:transposition", "lemma", "Lemma transposition", 294,
        "Given any matrix A of order r, there exists a transformer T_⊤^{(r)} such that, "
        "T_⊤^{(r)}(prop(A)) = prop(A⊤). … the resultant R turns out to be a stochastic matrix, and "
        "therefore, immediately AHA-realizable",
        checks=(algorithm.check_rows_of_transposition,),
        claims=(ClaimInstance("transpose", (5, 2), "paper"),),
        theorems=("Sums.transpose_correct", "Matrices.transposed_correct"),
    ),
    Statement(
        "after:transposition", "passage", "Text after Lemma transposition", 301,
        "Note that for square matrices, the … does not require the order r explicitly. … r can be "
        "determined from the expression r² = length.",
        checks=(definition.check_square_transposition,),
        labelled=False,
    ),
    Statement(
        "lem:softmax", "lemma", "Lemma softmax", 304,
        "There exists a transformer T_σ^{(r)} implementing the operation softmax on matrix A of order r, "
        "i.e., T_σ^{(r)}(prop(A)) = prop(σ(A)). … given the sufficiency due to the existence of "
        "AHA-realizable attention matrices.",
        checks=(algorithm.check_rows_of_softmax,),
        claims=(
            ClaimInstance("softmax", (4, 3), "plain"),
            ClaimInstance("softmax", (4, 3), "stable"),
            ClaimInstance("softmax", (2, 3)),
        ),
        theorems=(
            "Paper.paper_softmax_correct",
            "Masks.plain_softmax_correct",
            "Masks.stable_softmax_correct",
            "Masks.unmasked_softmax_correct",
            "Masks.causal_softmax_correct",
            "Masks.columns_softmax_correct",
            "Masks.masked_softmax_correct",
        ),
    ),
    Statement(
        "after:softmax", "passage", "Text after Lemma softmax: the exponential", 311,
        "any RASP implementation of … undergoes the obvious approximation of the expansion exp(·)",
        checks=(definition.check_exponential,),
        labelled=False,
    ),
    Statement(
        "algo:trans", "algorithm", "Algorithm 1: transposition", 321,
        "Let ρ ∈ Π([rc−1]∪{0}) such that ρ([rc−1]∪{0}) = {rj+i}_{j ∈ [c−1]∪{0} for each i ∈ [r−1]∪{0}}.\n"
        "Assign R[ρ([rc−1]∪{0})[ci+j], ci+j] = 1 to R ∈ 𝟎^{rc × rc}, for i and j as in line 1.\n"
        "return R ∘ prop(A).",
        checks=(algorithm.check_algorithm_1,),
        transcriptions=(algorithms.transposition_matrix, algorithms.algorithm_1),
    ),
    Statement(
        "algo:softmax", "algorithm", "Algorithm 2: softmax", 335,
        "A′ = [a_{ij}′] such that a_{ij}′ = exp(a_{ij}).\n"
        "Let R_l = ( 𝟎^{r(l−1)×rc} ; 𝟎^{r×(l−1)c}  𝟏^{r×c}  𝟎^{r×(r−l)c} ; 𝟎^{r(c−l)×rc} ), where l ∈ [r].\n"
        "Let sum ∈ ℝ^{rc} such that sum = ∑_l (R_l ∘ prop(A′)).\n"
        "return prop(A′) / sum.",
        checks=(algorithm.check_algorithm_2,),
        transcriptions=(
            algorithms.softmax_matrices, algorithms.algorithm_2, algorithms.softmax_matrices_corrected,
        ),
    ),
    Statement(
        "algo:matmul", "algorithm", "Algorithm 3: multiplication", 347,
        "Assign (R_l)[i,j] = 1 for i ∈ [k(r+c)−1]∪{0} and j=k(l−1) + (i mod k) to R_l ∈ 𝟎^{(k(r+c)) × "
        "(k(r+c))}, where l ∈ [r].\n"
        "Assign (R′_l)[i,j] = 1 for i ∈ [k(r+c)−1]∪{0} and j= rk + (l−1) + c(i mod k) to R′_l ∈ "
        "𝟎^{(k(r+c)) × (k(r+c))}, where l ∈ [c].\n"
        "Let M_{ll′} = (R_l ∘ (prop(A)⊙prop(B)))⊗(R′_{l′} ∘ (prop(A)⊙prop(B))) such that l ∈ [r] and l′ ∈ "
        "[c].\n"
        "Assign (R′′_l)[i,j] = 1 for i = l−1 and j ∈ [k−1]∪{0} to R′′_l ∈ 𝟎^{(k(r+c)) × (k(r+c))}, where l "
        "∈ [rc].\n"
        "return ∑_{l,l′} R′′_{l̃k+l̃′+1} ∘ M_{ll′}, where l̃ = l−1 and l̃′ = l′−1.\n"
        "▷ Combine the sequences from line 4 with the attention matrices produced from line 5 to get AB",
        checks=(algorithm.check_algorithm_3,),
        text_only=("E39",),
        transcriptions=(
            algorithms.row_matrices, algorithms.column_matrices, algorithms.entry_matrices,
            algorithms.algorithm_3, algorithms.algorithm_3_corrected,
        ),
    ),
    Statement(
        "lem:matmul", "lemma", "Lemma matmul", 351,
        "There exists a transformer T_⊠^{(r,c)} multiplying matrices A and B of shape r × k and k × c, for "
        "any k ≥ rc/(r+c). … constructing a pair of attention matrices … one requires an attention matrix to "
        "sequentially pick up the product output tokens",
        checks=(algorithm.check_size_of_product, algorithm.check_rows_of_product),
        claims=(
            ClaimInstance("matmul", (4, 2, 1), "paper"),
            ClaimInstance("matmul", (2, 2, 3)),
        ),
        theorems=(
            "Products.paper_matmul_correct",
            "Matrices.matmul_correct",
            "Tiled.best_tiled_matmul_correct",
            "Scatter.scatter_matmul_correct",
        ),
    ),
    Statement(
        "after:matmul", "passage", "Text after Lemma matmul: contraction", 358,
        "This approach enables the contraction of a sequence with m tokens into a shorter sequence of "
        "length n (where n<m). To achieve this, a weight matrix W^{m×n} is employed within the final "
        "feed-forward sublayer",
        checks=(definition.check_contraction,),
        labelled=False,
    ),
    Statement(
        "Th:1", "theorem", "Theorem 1", 361,
        "There exists a transformer network U that, on any input X of shape (n×d), can simulate any "
        "single-layer transformer attention T of order (n,d,d_v).",
        checks=(simulator.check_attention, simulator.check_relu_units),
        reading=(
            "for arbitrary position-wise functions, and with ReLU feed-forwards only up to an error ε "
            "and on bounded inputs"
        ),
        claims=(
            ClaimInstance("attention", (3, 2, 2), "tiled"),
            ClaimInstance("attention", (3, 2, 2), "width-1"),
            ClaimInstance("attention", (3, 2, 2), "paper"),
            ClaimInstance("attention", (2, 2, 2), "inverse"),
        ),
        theorems=(
            "Encoding.theorem_1",
            "Encoding.every_recipe_simulates",
            "Universal.U_simulates",
            "Universal.plain_U_simulates",
            "Paper.paper_U_simulates",
            "Tiled.tiled_U_simulates",
        ),
    ),
    Statement(
        "after:Th:1", "passage", "Text after Theorem 1: sizes", 368,
        "Note that the criteria in … can be satisfied by k ≥ min(r,c). In the context of …, this requires n "
        "≤ min(d, d_v). … given that n mod 4 = 0, the construction of U becomes entirely dependent on the "
        "sequence length … we may evaluate the expression nd + d² = length.",
        checks=(cost.check_sizes,),
        labelled=False,
    ),
    Statement(
        "fig:simulationexample", "figure", "Figure 2: an example of U", 528,
        "A demonstrative simulation comparing the transformer network U … against standard linear algebra "
        "operations via NumPy. … attributed to the fixed-precision constraint (three significant digits) "
        "applied to the exponential function",
        checks=(listing.check_figure_2,),
    ),
    Statement(
        "col:enc", "corollary", "Corollary encoder", 532,
        "There exists a transformer network U that can simulate any single-layer transformer encoder T of "
        "order (n, d, d_v, d₁, d₂). … T(X) = FFN(X + σ(X AX⊤)XV) where, FFN(X) = ReLU(X W₁)W₂. … rest of the "
        "operations can be simulated using an application of …",
        checks=(simulator.check_encoder,),
        claims=(ClaimInstance("encoder", (2, 2, 2, 2, 2)),),
        theorems=(
            "Encoding.encoder_computes",
            "Encoder.encoder_simulates",
            "Encoder.layer_of_one_head_simulates",
            "Sums.row_sums_correct",
            "Sums.row_means_correct",
            "Sums.broadcast_row_correct",
            "Sums.add_correct",
            "Norm.layer_norm_correct",
        ),
    ),
    Statement(
        "rem:ahattosmat", "remark", "Remark: softmax attention by average hard attention", 541,
        "we have employed average hard attention … to mimic softmax-activated attentions. As a "
        "consequence, we can utilize our AHAT network for problems including Match₂, known until now to be "
        "only learnable using single-layer single-head SMATs",
        checks=(simulator.check_match,),
        claims=(
            ClaimInstance("hard_attention", (2, 2, 2)),
            ClaimInstance("hard_attention", (3, 2, 2)),
        ),
    ),
    Statement(
        "rem:linformer", "remark", "Remark: Linformer and linear attention", 545,
        "As long as the characterizing matrices of the transformers are involved with matrix multiplication "
        "… and the function Pool is implementable using GAHAT or RASP …, the … can be applied to achieve a "
        "transformer network U simulating them.",
        checks=(
            simulator.check_linformer,
            simulator.check_linear,
            simulator.check_products_of_linear_attention,
        ),
        claims=(
            ClaimInstance("linformer", (2, 2, 2)),
            ClaimInstance("linear", (2, 2, 2)),
        ),
        theorems=("Kinds.linformer_U_simulates", "Kinds.linear_U_simulates", "Kinds.elu_U_simulates"),
    ),
    Statement(
        "sec:discussion", "section", "Discussion: cost of the constructions", 552,
        "explicitly mentioning the r+c+rc attention matrices … matrix multiplication costs O(2rc) number of "
        "operations. … the construction of the transformers ensures that their depth is not a function of "
        "the input; however, for most cases, the width is",
        checks=(cost.check_cost,),
    ),
    Statement(
        "tab:1", "table", "Table 2: cost of the constructions", 567,
        "The computational cost of construction associated with the operations and whether they are "
        "dependent on the order of the input matrices.",
        checks=(cost.check_table_2,),
    ),
    Statement(
        "col:expressive_hierarchy", "corollary", "Corollary hierarchy", 573,
        "any computation performed by U_{(m,e,e_v)} can be exactly simulated by U_{(n,d,d_v)}.",
        checks=(simulator.check_hierarchy,),
        reading="U is plain if m divides n or d ≥ e + 2, and masked otherwise",
        theorems=("Encoding.masked_U_computes", "Hierarchy.hierarchy_simulates"),
    ),
    Statement(
        "after:hierarchy", "passage", "Text after Corollary hierarchy", 579,
        "As such, the construction hinges solely on the sequence length n.",
        checks=(cost.check_dependence,),
        labelled=False,
    ),
    Statement(
        "remark:sparsification", "remark", "Remark: sparsification", 582,
        "Note that the poly(n) complexity underlying our construction of U … does not contribute to "
        "inflation of ambient sequence length. … only requires n ≤ min(d, d_v) … Our construction can be "
        "used to represent all such models as long as the underlying pooling operations are representable",
        checks=(simulator.check_input_size, cost.check_requirement),
        claims=(
            ClaimInstance("performer", (3, 2, 2)),
            ClaimInstance("sumformer", (2, 2, 2)),
            ClaimInstance("linformer", (2, 2, 2)),
        ),
        theorems=("Kinds.performer_U_simulates",),
        unchecked=("that Sumformers are universal approximators",),
        labelled=False,
    ),
    Statement(
        "sparsification:linformer", "remark", "Remark: sparsification, the cost of Linformer", 583,
        "Linformer approximates the self-attention mechanism by a low-rank matrix … to achieve a complexity "
        "of O(n).",
        checks=(simulator.check_cost_of_linformer,),
        unchecked=("the rank k of the Johnson-Lindenstrauss Lemma",),
        labelled=False,
    ),
    Statement(
        "sparsification:performer", "remark", "Remark: sparsification, the cost of Performer", 583,
        "Performer replaces the usual non-linearity by introducing kernels for pooling. Under Gaussian "
        "kernels, the complexity can be made as low as O(nkd).",
        checks=(simulator.check_cost_of_performer,),
        labelled=False,
    ),
    Statement(
        "groupsort", "passage", "Definition of GroupSort", 586,
        "ρ_g(S) is the g-sorted sequence of S such that ρ_g(S)[i]≥ρ_g(S)[i+1]≥⋯≥ρ_g(S)[i+g−1] for all i that "
        "are multiple of g.",
        checks=(definition.check_groupsort,),
        labelled=False,
    ),
    Statement(
        "lem:MaxMin", "lemma", "Lemma MaxMin", 589,
        "There exists a transformer T_{ρ₂} implementing the operation MaxMin on a sequence S (of even "
        "length), i.e., T_{ρ₂}(S) = ρ₂(S).",
        claims=(
            ClaimInstance("maxmin", (6,), "paper"),
            ClaimInstance("maxmin", (2,)),
        ),
        theorems=(
            "Sorting.maxmin_correct",
            "Sorting.flipping_correct",
            "GroupSort.groupsort_correct",
        ),
    ),
    Statement(
        "lipschitz:norms", "remark", "Remark: Lipschitz functions, p-norms", 596,
        "by representing MaxMin, U can express a vector p-norm preserving transform, p ≥ 1.",
        checks=(definition.check_norms,),
        labelled=False,
    ),
    Statement(
        "remark:lipschitz", "remark", "Remark: Lipschitz functions, feed-forward networks", 597,
        "it can represent an L-deep feed-forward network z^{(ℓ)} ≔ W^{(ℓ)} MaxMin(z^{(ℓ−1)}) + "
        "b^{(ℓ)} … max{||b^{(ℓ)}||_∞}_{ℓ=1}^{L} ≤ ∞. … "
        "the simulated outputs are dense in Lip₁(Z) … This presents a new proof showing that transformer "
        "encoders are universal approximators of Lipschitz and Hölder-smooth functions.",
        checks=(definition.check_networks,),
        text_only=("E21",),
        unchecked=(
            "density in Lip₁(Z) for all functions and all Z (Tanielian and Biau)",
            "Hölder-smooth functions",
        ),
        labelled=False,
    ),
    Statement(
        "lipschitz:activations", "remark", "Remark: Lipschitz functions, ReLU, Leaky ReLU and Maxout", 597,
        "Moreover, following … U exactly represents ReLU, Leaky ReLU and Maxout activations",
        checks=(definition.check_activations,),
        labelled=False,
    ),
    Statement(
        "lipschitz:gelu", "remark", "Remark: Lipschitz functions, GeLU", 597,
        "The result extends to GeLU-activated networks given the approximation of GeLU (Lipschitz-smooth "
        "with associated constant 1.0998) using ReLU",
        checks=(definition.check_gelu,),
        text_only=("E46",),
        labelled=False,
    ),
    Statement(
        "algo:maxmin", "algorithm", "Algorithm 4: MaxMin", 607,
        "Assign α[i] = 1 (and α[i+1] = 1) if S[i]<S[i+1] to α ∈ {0}^{|S|}, where i ∈ [|S|−2]∪{0} and i mod "
        "2 = 0.\n"
        "Assign R[i,i] = 1−α[i] = R[i+1, i+1] and R[i, i+1] = α[i] = R[i+1, i] to R ∈ 𝟎^{|S|×|S|}, where i "
        "mod 2 = 0.\n"
        "return R ∘ S.",
        checks=(algorithm.check_algorithm_4,),
        transcriptions=(algorithms.maxmin_matrix, algorithms.algorithm_4),
    ),
    Statement(
        "lem:multihead", "lemma", "Lemma multi-head", 613,
        "there exists a transformer T_{h⊚} realizing ⊙_{h=1}^{H}(⊚_{i=1}^{n}X_i^{(h)}) on input "
        "⊙_{i=1}^{n}(⊙_{h=1}^{H}X_i^{(h)}), if there is a transformer T_⊚ realizing the operation ⊚ on input "
        "⊙_{i=1}^{n}X_i … copy the operations from T_⊚ with possible modification in indices",
        checks=(
            algorithm.check_blocks,
            algorithm.check_softmax_of_blocks,
            algorithm.check_rows_of_identify,
        ),
        claims=(
            ClaimInstance("multihead_transpose", (3, 2, 2)),
            ClaimInstance("multihead_matmul", (1, 2, 2, 2)),
        ),
        theorems=(
            "Heads.multihead_correct",
            "Heads.multihead_transpose_correct",
            "Heads.multihead_matmul_correct",
        ),
    ),
    Statement(
        "multihead:maxmin", "passage", "Lemma multi-head: MaxMin", 617,
        "If the construction for operation ⊚ is independent of the input, T_{h⊚}=T_{⊚} for any h, e.g., "
        "MaxMin.",
        checks=(definition.check_heads_of_maxmin,),
        labelled=False,
    ),
    Statement(
        "identify", "passage", "Lemma multi-head: identify", 619,
        "A contiguous subsequence s′ = {s_i}_{0 ≤ i′−1 ≤ i < i′+k ≤ |s|−1} from a sequence … can be "
        "identified",
        checks=(algorithm.check_identify,),
        claims=(ClaimInstance("identify", (5, 1, 1)),),
        theorems=(
            "Sequences.identify_correct",
            "Sequences.shift_correct",
            "Sequences.rotate_correct",
        ),
        labelled=False,
    ),
    Statement(
        "shift", "passage", "Lemma multi-head: shift", 622,
        "Assign R[i, j] = 1 for i∈ [|s|−1]∪{0} and j = (|s| − t + i ) mod |s| to R ∈ 𝟎^{|s|×|s|}. Then, R ∘ "
        "s performs shift.",
        checks=(algorithm.check_shift,),
        labelled=False,
    ),
    Statement(
        "thm:U_multihead", "theorem", "Theorem H heads", 629,
        "There exists a transformer network U that, on any input X, can simulate any single-layer H-head "
        "transformer attention T of order (n, d, d_v). … Thus, the construction of U follows from …",
        checks=(simulator.check_heads,),
        claims=(ClaimInstance("multihead_attention", (2, 2, 2, 2)),),
        theorems=(
            "Encoding.heads_U_computes",
            "Heads.heads_U_simulates",
            "Heads.projected_U_simulates",
        ),
    ),
    Statement(
        "col:U_multihead", "corollary", "Corollary H heads", 637,
        "There exists a transformer network U that, on any input X, can simulate any single-layer H-head "
        "transformer T of order (n, d, d_v, d₁, d₂).",
        checks=(simulator.check_encoder_of_heads,),
        claims=(ClaimInstance("multihead_encoder", (2, 2, 2, 1, 2, 2)),),
        theorems=(
            "Encoding.corollary_H_heads",
            "Encoder.encoder_of_heads_simulates",
            "Encoder.layer_of_heads_simulates",
        ),
    ),
    Statement(
        "rem:multihead", "remark", "Remark: PARITY and k-PARITY", 641,
        "for the task of recognizing the language PARITY, the two-layer softmax encoder architecture … can "
        "be realized using average hard attention by employing two serially connected U networks.",
        checks=(simulator.check_parity,),
    ),
    Statement("sec:conclusion", "section", "Conclusion", 646),
    Statement(
        "future:decoders", "future work", "Conclusion: decoders", 647,
        "one may investigate the construction of an analogous mechanism involving an "
        "encoder-decoder-based model to simulate an arbitrary transformer.",
        claims=(
            ClaimInstance("decoder", (2, 2, 2, 1), "post"),
            ClaimInstance("decoder", (2, 2, 2, 1), "pre"),
            ClaimInstance("causal_attention", (2, 2, 2)),
            ClaimInstance("cross_attention", (2, 3, 2, 2)),
        ),
        theorems=("Hierarchy.causal_U_simulates",),
        labelled=False,
    ),
    Statement(
        "future:weights", "future work", "Conclusion: weights by a compiler", 649,
        "The development of RASP compilers such as Tracr … and ALTA … presents a promising avenue for "
        "obtaining realized weights corresponding to the proposed network U. However, challenges towards a "
        "complete implementation of the RASP framework still exist in either of these compilers.",
        checks=(cost.check_weights,),
        unchecked=("what Tracr and ALTA do not implement",),
        labelled=False,
    ),
    Statement(
        "future:learning", "future work", "Conclusion: learning and a convergence criterion", 649,
        "learning the algorithmically developed transformers and U via existing optimization-based methods "
        "and coming up with a convergence criterion may be considered as future work.",
        unchecked=("the trainings whose results docs/learning.md lists",),
        labelled=False,
    ),
    Statement("sec:appendix", "section", "Appendix", 1018),
    Statement(
        "ssec:RASPCodes", "section", "RASP codes: layers and heads of Listings 1 to 3", 1021,
        "This requires a single non-trivial attention layer and a preceding layer … is in fact the "
        "permutation ρ as defined in line 1 of … the principal attention layer has a width of 3 … The "
        "second attention layer … has a width of seven, while the third layer … has width twelve.",
        checks=(listing.check_layers_of_listings,),
    ),
    Statement(
        "lst:transpose", "listing", "Listing 1: transposition", 1023,
        "Transposing a matrix of order 3",
        checks=(listing.check_listing_1,),
        claims=(
            ClaimInstance("listing-1", (5,)),
            ClaimInstance("listing-1", (6,)),
        ),
        listing="transpose",
    ),
    Statement(
        "lst:softmax", "listing", "Listing 2: softmax", 1031,
        "Applying softmax (a length-preserving operation) on matrix A of order 3",
        checks=(listing.check_listing_2,), listing="softmax",
    ),
    Statement(
        "lst:matmul", "listing", "Listing 3: multiplication", 1041,
        "Multiplying two matrices of shape 3×· and ·× 4",
        checks=(listing.check_listing_3,),
        claims=(
            ClaimInstance("listing-3", (4,)),
            ClaimInstance("listing-3", (5,)),
        ),
        listing="matmul",
    ),
    Statement(
        "lst:relu", "listing", "Listing 4: ReLU", 1057,
        "Implementation of ReLU.",
        checks=(listing.check_listing_4,),
        claims=(
            ClaimInstance("listing-4", (3,)),
            ClaimInstance("listing-4", (4,)),
        ),
        theorems=(
            "Activations.activation_correct",
            "Sorting.through_maxmin_correct",
            "Maxout.maxout_correct",
        ),
        listing="relu",
    ),
    Statement(
        "lst:MaxMin", "listing", "Listing 5: MaxMin", 1063,
        "Implementation of MaxMin sort",
        checks=(listing.check_listing_5,), listing="maxmin",
    ),
    Statement(
        "lst:Match2", "listing", "Listing 6: Match₂", 1077,
        "Implementation of Match₂.",
        checks=(listing.check_listing_6,), theorems=("Sequences.match2_correct",),
        listing="match2",
    ),
    Statement(
        "ssec:proofofhierarchy", "section", "Proof of the hierarchy", 1087,
        "By construction, U_{(n,d,d_v)} computes: σ(X̃ Ã X̃⊤/√d) X̃ Ṽ, which reduces to the original "
        "computation T(X) in the upper-left m × e_v block.",
        checks=(simulator.check_proof_of_hierarchy,),
    ),
    Statement(
        "ssec:inverse", "section", "Matrix inversion: layers, minors, other orders", 1122,
        "computing the cofactor of a rank-(k+1) non-singular matrix depends on that of precisely (k+1)² "
        "rank-k matrices. Achieving this inherent recursive computation for arbitrary k using a "
        "constant-depth architecture such as a transformer is not amenable.",
        checks=(listing.check_text_on_inversion,),
        unchecked=("that no constant-depth construction exists for arbitrary k",),
    ),
    Statement(
        "inversion", "lemma", "Lemma inversion", 1126,
        "There exists a transformer T_{−1} that can invert a non-singular matrix A of rank 3. … The "
        "expression M_A/|A| (or, Cofactor()/Det(Cofactor())(A)) now yields the transpose of the adjugate "
        "Adj(A).",
        checks=(listing.check_inversion,),
        text_only=("E8",),
        claims=(
            ClaimInstance("inverse", (4,), "cofactor"),
            ClaimInstance("inverse", (3,), "paper"),
        ),
        theorems=("Inversion.inverse_correct",),
    ),
    Statement(
        "algo:matinverse", "algorithm", "Algorithm 5: cofactor and determinant", 1146,
        "Assign R_α[j, i] = 1, for all i ∈ [r²−1]∪{0} and j = r×(((i−i mod r)/r+1) mod r) +( ((i mod r) + "
        "1) mod r), to R_α ∈ 𝟎^{r²×r²}.\n"
        "Assign R_β[j, i] = 1, for all i ∈ [r²−1]∪{0} and j = r×(((i−i mod r)/r + 2) mod r) + (((i mod "
        "r)+2) mod r), to R_β ∈ 𝟎^{r²×r²}.\n"
        "Assign R_γ[j, i] = 1, for all i ∈ [r²−1]∪{0} and j = r× (((i − i mod r)/n + 1) mod r) + (((i mod "
        "r)+2) mod r), to R_γ ∈ 𝟎^{r²×r²}.\n"
        "Assign R_δ[j, i] = 1, for all i ∈ [r²−1]∪{0} and j = r× (((i−i mod r)/r+2) mod r) + (((i mod r)+1) "
        "mod r), to R_δ ∈ 𝟎^{r²×r²}.\n"
        "Let P = R_α ∘ prop(A), Q = R_β ∘ prop(A), R = R_γ ∘ prop(A) and S = R_δ ∘ prop(A).\n"
        "M_A = P⊗ Q − R⊗ S.\n"
        "Assign R_{mask}[i,j] = 1 for i = j and j < r, to R_{mask} ∈ 𝟎^{r²×r²}.\n"
        "det(A) = 𝟏^{r²×r²} ∘ Masked, where Masked = R_{Mask} ∘ (prop(A) ⊗ M_A).\n"
        "return M_A and det(A).",
        checks=(algorithm.check_algorithm_5,),
        transcriptions=(algorithms.cofactor_matrices, algorithms.algorithm_5, algorithms.algorithm_5_corrected),
    ),
    Statement(
        "lst:cofactor", "listing", "Listing 7: cofactors", 1154,
        "Finding Cofactor of a Matrix",
        checks=(listing.check_listing_7,),
        claims=(ClaimInstance("listing-7"),),
        theorems=("Inversion.cofactor_correct",),
        listing="cofactor",
    ),
    Statement(
        "lst:det", "listing", "Listing 8: determinant", 1168,
        "Finding Determinant of a Matrix",
        checks=(listing.check_listing_8,),
        claims=(ClaimInstance("listing-8"),),
        theorems=("Inversion.determinant_correct", "Inversion.paper_determinant_correct"),
        listing="determinant",
    ),
    Statement(
        "eq:inv", "equation", "U through inverses", 1181,
        "σ((XAV)((AV)⊤V)⁻¹(XAV)⊤)(XAV)(AV)⁻¹V",
        checks=(simulator.check_inverse_form,),
    ),
    Statement(
        "fig:completeinverse", "figure", "Figure 3: the inverse of a 3 × 3 matrix", 1190,
        "Execution of T_{−1} on … a five-layer transformer having a width of four",
        checks=(listing.check_figure_3,),
    ),
]  # fmt: skip

#: Maps keys to statements, in the order of the paper.
STATEMENTS = {statement.key: statement for statement in _ALL}
