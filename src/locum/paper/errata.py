"""List the paper's errata: quotes, problems, counterexamples and corrections.

docs/errata.md shows the same list, and ``locum paper errata`` prints it. Quotes are verbatim from the
paper's TeX source, up to whitespace. For every erratum of severity A, the prover refutes the statement
as printed and proves the corrected statement.

>>> ERRATA["E2"].where
'Listing 5, MaxMin'
>>> [number for number, erratum in ERRATA.items() if erratum.refutable]
['E2', 'E3', 'E6', 'E7', 'E11', 'E15', 'E16']
"""

from __future__ import annotations

from dataclasses import dataclass

#: The meaning of each severity. The severity of E25 is "remark", which is not counted.
SEVERITIES = {"A": "wrong results", "B": "a wrong statement or proof", "C": "notation or wording"}


@dataclass(frozen=True)
class Erratum:
    """A passage of the paper that is wrong or misleading if read literally."""

    number: str
    severity: str
    where: str
    #: The wrong passages, verbatim from the TeX source up to whitespace.
    quotes: tuple[str, ...]
    wrong: str
    counterexample: str
    right: str
    #: Whether the erratum follows from reading alone, so that no run demonstrates it.
    text_only: bool = False

    @property
    def row(self) -> str:
        """The erratum as a row of the overview in docs/errata.md."""
        return f"| {self.number} | {self.severity} | {self.where} |"

    @property
    def section(self) -> str:
        """The erratum as a section of docs/errata.md."""
        parts = [
            f"### {self.number} ({self.severity}): {self.where}",
            "\n".join(f"> `{quote}`\n>" for quote in self.quotes).removesuffix("\n>"),
            f"**Problem.** {self.wrong}",
            f"**Counterexample{' (text only)' if self.text_only else ''}.** {self.counterexample}",
            f"**Correction.** {self.right}",
        ]
        return "\n\n".join(parts)


_ALL = [
    Erratum(
        "E1", "B", "Listing 2, softmax; caption of Figure 2",
        ("exp = (2.73^tokens_float);", "the fixed-precision constraint (three significant digits) applied to the exponential function"),
        "The paper announces that RASP approximates exp. But e to three significant digits is 2.72, not 2.73. The digits and errors in Figure 2 result from the base 2.718, which has four significant digits, and not from Listing 2 as printed.",
        "On Y2 of Figure 2, Listing 2 computes 0.317 and 0.364, but the figure prints 0.318 and 0.363. The error of Listing 2 is 1.4·10⁻⁴, but the figure prints 3.4·10⁻⁶.",
        "Write 2.718 in Listing 2 and \"four significant digits\" in the caption. `softmax(m, base=2.718, stable=False)` reproduces the digits of the figure; `softmax(m)` uses exp.",
    ),
    Erratum(
        "E2", "A", "Listing 5, MaxMin",
        ("reqFlip = 1 if MaxminusMin<0 else 0;",),
        "At an odd position `MinSel` selects nothing, so `MaxminusMin` is the token itself. A negative token at an odd position therefore sets `reqFlip`. Algorithm 4 is right.",
        "For the input `[1, −2]`, the listing returns `[1, 1]`.",
        "`reqFlip = 1 if (MaxminusMin<0 and indices%2==0) else 0;`",
    ),
    Erratum(
        "E3", "A", "Listing 6, Match₂",
        ("sel = select(tokens%p, p - (tokens%p), ==);",),
        "The token p belongs to the domain {1, …, p}. The query of this token is p − 0 = p. No key `tokens%p` equals p, so the listing misses every match of the token p.",
        "The input is (p, p). For example, if p = 5 and the input is `[5, 5]`, the listing returns `[0, 0]` instead of `[1, 1]`.",
        "`sel = select(tokens%p, (p - (tokens%p))%p, ==);`",
    ),
    Erratum(
        "E4", "C", "Lemma inversion, expression in RASP",
        ("Cofactor()/Det(Cofactor())(A)",),
        "In RASP, application binds more tightly than division. The printed expression applies only `Det(Cofactor())` to A and does not run. The intended meaning is clear.",
        "For every A, such as the matrix of Figure 3, the expression raises an error.",
        "`(Cofactor()/Det(Cofactor()))(A)`",
    ),
    Erratum(
        "E5", "C", "Lemma inversion, last step of the proof",
        (r"now yields the transpose of the adjugate $\operatorname{Adj}(A)$",),
        "M_A is the matrix of cofactors, so M_A itself is the transpose of the adjugate. M_A/|A| is the transpose of the inverse.",
        "For A = 2I of order 3, M_A/|A| = ½I, but Adj(A) = 4I.",
        "M_A/|A| is the transpose of A⁻¹. As the paper states, the transposition that follows yields A⁻¹.",
    ),
    Erratum(
        "E6", "A", "Algorithm 3, last line",
        (r"R^{\prime\prime}_{\tilde{l}k+\tilde{l^\prime}+1}",),
        "A row of the result has c entries, so the product of row l and column l′ belongs at position l̃c + l̃′. The printed index is right only for k = c or r = 1. Listing 3 is right.",
        "For (r, k, c) = (2, 2, 3), the algorithm adds two products at the same position.",
        "The index of R″ is l̃c + l̃′ + 1.",
    ),
    Erratum(
        "E7", "A", "Algorithm 2, R_l",
        (r"\mathbf{0}^{r\times (l-1)c} & \mathbf{1}^{r\times c} & \mathbf{0}^{r\times (r-l)c}",),
        "A row of A occupies c positions of prop(A), but the block of R_l has r rows. The printed matrices are right only for r = c. Listing 2 does not contain this error. Theorem 1 is not affected, because it applies softmax only to n×n matrices.",
        "For (r, c) = (2, 3), `sum` is 0 at positions 4 and 5, so the last line divides by zero.",
        "The blocks of R_l have c(l − 1), c and c(r − l) rows.",
    ),
    Erratum(
        "E8", "C", "Appendix, last paragraph, number of heads",
        ("we may combine some arithmetic operations",),
        "The count of five layers and four heads is right only if `Cofactor()` is computed once. The text refers to Figure 3 for this count, but the printed expression calls `Cofactor()` twice.",
        "If every call in the expression is counted, `Cofactor()/Det(Cofactor())` has eight selectors in its second layer.",
        "Write `cf = Cofactor(); cf/Det(cf)`, followed by the transposition. Then the count of five layers and four heads is right: the quotient has four layers, and the transposition is the fifth.",
        text_only=True,
    ),
    Erratum(
        "E9", "B", "Proposition 1D, base case",
        ("using the elementary index calculation $m_0i_0+i_1$",),
        "A row of an m₀×m₁ array has m₁ entries. For 1 < m₀ < m₁, two entries have the same index. For m₀ > m₁, some indices exceed m₀m₁ − 1. The induction step is right.",
        "For a 2×3 array, the indices are 0, 1, 2, 2, 3, 4. For a 3×2 array, the indices are 0, 1, 3, 4, 6, 7.",
        "Write m₁i₀ + i₁. The induction step yields this index for two dimensions.",
    ),
    Erratum(
        "E10", "C", "Preliminaries, definition of ∘",
        (r"on a matrix $R \in \R^{r\times c}$ and a sequence $S \in \R^{r}$ produces another sequence $S^\prime \in \R^{c}$",),
        "The lengths r and c are exchanged: the sum runs over c entries of S, and the result has r entries. The paper uses the operation only with square matrices, so these uses are not affected.",
        "For r = 2 and c = 3, S has two entries, but the sum reads S[2].",
        "Write S ∈ ℝᶜ and S′ ∈ ℝʳ.",
    ),
    Erratum(
        "E11", "B", "Lemma multi-head, matrix of shift",
        (r"$j = (|s| - t + i ) \mod |s|$",),
        "The product R ∘ s reads s at (i − t) mod |s|, but the definition of ρ_t reads s at (i + t) mod |s|. The sign in the RASP code, of which the source shows only `(indices+t)`, agrees with the definition.",
        "For t = 2 on (10, 20, 30, 40, 50), the matrix yields (40, 50, 10, 20, 30), and the definition yields (30, 40, 50, 10, 20).",
        "Write j = (i + t) mod |s|.",
    ),
    Erratum(
        "E12", "C", "Lemma multi-head, indices of identify",
        (r"0 \le i^\prime-1 \le i < i^\prime+k \le |s|-1", r"a length-preserved sequence $0\dots0s_{i-1} \dots s_{i+k-1}0\dots0$"),
        "The bound i′ + k ≤ |s| − 1 excludes the last element, which requires i′ + k = |s|. The RASP code accepts this case. The result and the RASP code write i for i′, but i is the index that runs over the subsequence.",
        "For i′ = 2 and k = 1 on (10, 20, 30), the code returns (0, 20, 30), but 2 + 1 > 3 − 1.",
        "Write i′ + k ≤ |s|, and i′ instead of i in the result and in the RASP code.",
    ),
    Erratum(
        "E13", "B", "Lemma multi-head, offset of a head and length",
        (r"with possible modification in \lstinline{indices}, which is in $T_{h\f}$, is at an offset $n\times (h^\prime-1)$",),
        "In this lemma, n is the arity of the operation. The offset n(h′ − 1) is right if it counts operands, but `indices` counts tokens. The listings also use `length`, which the text does not mention.",
        "For the transposition of two 2×3 blocks (H = 2, n = 1), the second block starts at token 6, not at token 1. If `length` is not changed, the result is wrong.",
        "In tokens, the offset is (h′ − 1)·Σᵢ|Xᵢ|. Replace `length` with `length/H`.",
    ),
    Erratum(
        "E14", "B", "After Lemma matmul, contraction",
        (r"a weight matrix $W^{m\times n}$ is employed within the final feed-forward sublayer",),
        "By the paper's definition, FFN(X) = ReLU(XW₁)W₂ acts on each position separately, and RASP preserves the length. A feed-forward sublayer does not shorten a sequence.",
        "For a sequence X ∈ ℝ^(7×1) and W ∈ ℝ^(7×2), the product XW is not defined. In RASP, every s-op on 7 tokens has 7 values. Without contraction, Listing 2 fails after a 3×3 product, because it uses c = 18/3 = 6 instead of c = 3.",
        "Keep the redundant tokens. Pass the shape to each operation as constants instead of deriving the shape from `length`, and read the second operand at its actual offset. Outside the matrix, set the denominator of softmax to 1.",
    ),
    Erratum(
        "E15", "A", "Corollary hierarchy, end of the proof",
        (r"contribute only trivial linear transformations (due to $\mathbf{0}$ and $\mathbf{I}$ blocks), leaving the simulation exact",),
        "The embedding in the proof is wrong. A padded row has score 0, and exp(0) = 1 enters the denominator Zᵢ of each row. Row i of T(X) is therefore multiplied by Zᵢ/(Zᵢ + n − m), which is 1 only if n = m. For the U of Theorem 1, the statement is right with other embeddings if m divides n or if d ≥ e + 2. For the remaining sizes, Locum uses another U with a masked softmax, as the theorem in Coq does.",
        "Let m = e = e_v = 1, X = (1), A = (0) and V = (1). If T is simulated in order (2, 2, 2), the first entry is ½ instead of 1.",
        "If m divides n, repeat the rows of X. If d ≥ e + 2, repeat the rows of X up to n rows, and add the entries 1 and −log c to each row, where c is the number of its copies. Set Ã[e, e + 1] = 1, so that the c copies together have the weight of one row (`UniversalSimulator.embed`). Otherwise, mask the softmax, so that it sums over the first m keys only (`softmax(scores, mask=m)`). Then m is a further token of U.",
    ),
    Erratum(
        "E16", "B", "Corollary hierarchy, step 3 of the proof",
        (r"\sigma\left(\frac{\widetilde{X} \widetilde{A} \widetilde{X}^\top}{\sqrt{d}}\right) \widetilde{X} \widetilde{V}",),
        "The factor 1/√d occurs neither in equation (softmaxatt) nor in U of Theorem 1. With this factor, the upper-left block is not T(X).",
        "Let X = (1, 0; 0, 0) and A = V = I, of order (2, 2, 2). If T is simulated in order (2, 4, 4), the first entry is 0.622 instead of 0.731.",
        "Drop the factor.",
    ),
    Erratum(
        "E17", "C", "After Theorem 1; remark on sparsification",
        (r"this requires $n \le \min(d, d_v)$", r"only requires $n \leq \min(d, d_v)$"),
        "The statement is correct as a sufficient condition. The condition is not necessary. The paper's criterion k ≥ min(r, c) holds for all four products if and only if n ≤ d, for every d_v.",
        "(n, d, d_v) = (2, 2, 1) satisfies the criterion although n > d_v. (4, 2, 1) satisfies the condition of Lemma matmul although n > d.",
        "The condition n ≤ d is sufficient. Lemma matmul itself requires d ≥ n/2 and d(n + d_v) ≥ n·d_v. Padding the sequence removes both conditions.",
    ),
    Erratum(
        "E18", "C", "After Theorem 1, deducing d",
        (r"given that $n \operatorname{mod} 4 = 0$",),
        "The condition is not needed: n² + 4(nd + d²) = (n + 2d)² is a perfect square for all n and d.",
        "For n = 5 and nd + d² = 24, d = (√(25 + 96) − 5)/2 = 3.",
        "Drop the condition.",
    ),
    Erratum(
        "E19", "C", "Corollary encoder and Corollary H heads, residual sum",
        (r"$T(X) = \operatorname{FFN}\left(X + \sigma\left(X AX^\top\right)XV\right)$",),
        "X has d columns, and the attention has d_v columns. The sum is defined only for d = d_v, but the corollary does not state this condition.",
        "For (n, d, d_v) = (2, 3, 2), the formula adds a 2×3 matrix and a 2×2 matrix.",
        "Add the condition d = d_v, or an output projection from d_v to d columns. With the projection, W₁ is d×d₁ instead of d_v×d₁.",
    ),
    Erratum(
        "E20", "C", "Table 1, entries Dep of the paper's constructions",
        ("Dep' indicates if weights depend on input values",),
        "The table marks all three constructions of the paper. Their weights depend on the shape of the input, not on its *values*. The abstract also states that the constructions are \"data-agnostic\". Table 2 is right, because it refers to the order.",
        "The attention matrix of Algorithm 1 is the same for all matrices of one shape.",
        "Write \"shape\" instead of \"values\" in the caption.",
    ),
    Erratum(
        "E21", "C", "Remark on Lipschitz functions, bound on the biases",
        (r"\max\{{||b^{(\ell)}||}_{\infty}\}_{\ell=1}^{L} \leq \infty",),
        "Biases in ℝⁿ are always finite, so the condition excludes nothing.",
        "Every bias in ℝⁿ satisfies the condition.",
        "If a bound is meant, write max ‖b‖∞ ≤ K for a constant K. Otherwise drop the condition.",
        text_only=True,
    ),
    Erratum(
        "E22", "B", "Remark on Lipschitz functions, constant of GELU",
        (r"$\operatorname{GeLU}$ (Lipschitz-smooth with associated constant 1.0998)",),
        "The Lipschitz constant of GELU is Φ(√2) + √2·φ(√2) ≈ 1.1289. The value 1.0998 is the constant of SiLU, and of the approximation x·sigmoid(1.702x) of GELU. \"Lipschitz-smooth\" usually refers to the derivative, whose constant is 2φ(0) ≈ 0.7979.",
        "GELU′(√2) ≈ 1.1289 > 1.0998.",
        "GELU is Lipschitz with constant 1.1289.",
    ),
    Erratum(
        "E23", "B", "RASP as average-hard attention; rows of zeros in Algorithms 2, 3 and 5, in identify and in Listings 5 and 6",
        ("it is evident that the attention module in RASP is AHA", "a simple average hard attention transformer (AHAT) can be realized to compute the task"),
        "Average-hard attention averages over all maximal scores, so it always attends to at least one position. If a row contains only zeros, the head averages all values instead of returning 0. RASP returns 0 for an empty selection, so the listings do not have this problem, but their heads are then not average-hard attention. In Listing 5, `MinSel`, the shift of `reqFlip` and both selections of `revby2` also rely on empty selections. In Listing 6, `sel` also relies on empty selections.",
        "Consider average-hard attention. For the 2×2 matrix of zeros, Algorithm 2 with the factor c of Proposition AHAT computes ¼ in each entry instead of ½. For p = 5, Listing 6 maps `[1, 1]` to `[1, 1]` instead of `[0, 0]`. Listing 5 maps `[1, 3]` to `[1, 3]` instead of `[3, 1]`, because `revby2` is 1 − 1 = 0 at every position.",
        "Add a position with the value 0 and a score between 0 and 1. The rows of zeros then attend to this position, and the other rows do not. The theorems in Coq are about RASP programs in which an empty selection gives a default value, not about average-hard attention.",
    ),
    Erratum(
        "E24", "C", "Algorithm 5, line 3",
        (r"(((i - i\mod r)/n + 1)\mod r)",),
        "Algorithm 5 does not define n. Lines 1, 2 and 4 use r. If n = r, as in Listing 7, the line is right.",
        "Let r = 3, and read n as the length r². Then i = 2 and i = 4 both give j = 4, so R_γ is not a permutation matrix.",
        "Write r instead of n.",
    ),
    Erratum(
        "E25", "remark", "Algorithm 5, lines 1 to 4, direction of the shift",
        (r"Assign $R_\alpha[j, i] = 1$",),
        "This is not an error at order 3, the only order of the caption and the lemma. Algorithm 5 shifts in the opposite direction to Listing 7, which matters only for r ≠ 3.",
        "No counterexample exists at r = 3. At (0, 0), P of Algorithm 5 and P of Listing 7 are both A[2, 2], because −1 ≡ 2 (mod 3). At r = 4, P would be A[3, 3] in Algorithm 5 and A[2, 2] in Listing 7.",
        "No correction is needed. With R[i, j] = 1, the directions agree for every r. In this case, the names P and Q are exchanged, and so are R and S.",
    ),
    Erratum(
        "E26", "B", "Theorem H heads, order of the results",
        (r"the construction of $\mathcal{U}$ follows from \autoref{lem:multihead} and \autoref{lem:transposition}-\ref{lem:matmul}",),
        "The paper does not specify how the heads are combined. The lemma stacks the results of the heads into an Hn×d_v matrix. Vaswani et al., whom the paper cites for the input of multi-head attention, concatenate the results into an n×Hd_v matrix and multiply it by W_O. The residual sum of the corollary requires the concatenation. The proof also gives each head its own X⁽ʰ⁾, although T has one input X.",
        "Let H = n = 2 and d_v = 1, with heads (a₁; a₂) and (b₁; b₂). The lemma yields (a₁, a₂, b₁, b₂), but the concatenation is (a₁, b₁, a₂, b₂).",
        "Add one head that permutes the results and a product with W_O.",
    ),
    Erratum(
        "E27", "C", "Proposition 1D, domain of prop",
        (r"where $\prop : \mathcal{M} \to \mathcal{M}^\prime$ is a bijection",),
        "On the arrays of one shape, prop is a bijection. On all n-dimensional arrays with n ≥ 2, it is not injective, and then g′ need not exist. The lemmas are not affected, because they pass r to the transformer.",
        "The 2×3 and the 3×2 matrix with entries 1, …, 6 have the same image. Their transposes have the images (1, 4, 2, 5, 3, 6) and (1, 3, 5, 2, 4, 6), so transposition has no g′.",
        "State the proposition for functions g from arrays of one fixed shape to arrays of one fixed shape. Each of the two shapes has a separate prop.",
    ),
    Erratum(
        "E28", "B", "Introduction, Match₃",
        ("does not follow suit, even with the multi-layer multi-head extension",),
        "Sanford et al. prove this statement for one layer with bounded heads, width and precision. For several layers, the statement is their conjecture. Without a bound on the size, the statement is false.",
        "With n heads, head j copies s_j to every position. Each position then holds all n tokens, and a feed-forward sublayer decides Match₃.",
        "One layer of bounded size does not compute Match₃; for several layers, this is a conjecture.",
    ),
    Erratum(
        "E29", "C", "Introduction, definition of k-PARITY",
        (r"S \subset \{0,1,\dots,n-1\} \text{ and } (\sum_{i_j \in S} w_{i_j}) \mod 2 = 0",),
        "Inside the set, S has no quantifier. If S is fixed before the set is defined, the definition is right. If the set is read as \"for some S\", it is not a parity language.",
        "Let n = 3 and k = 1. If the set is read as \"for some S\", it contains every word except 111.",
        "Fix a set S with |S| = k. The language contains the words w for which the sum of wᵢ over i ∈ S is even.",
    ),
    Erratum(
        "E30", "C", "Proposition AHAT, proof",
        (r"Followed by \cite{hornik1989multilayer}, a single FFN architecture is capable of representing this continuous compositional mapping to an arbitrary degree of precision",),
        "Universal approximation yields f(vx) only approximately, and only on compact sets. The proposition states equality, which holds without universal approximation.",
        "For f(x) = ReLU(xW₁)W₂, replacing W₁ by vW₁ yields f(vx) exactly, for every x.",
        "Multiply W₁ by v.",
    ),
    Erratum(
        "E31", "C", "Remark on simulating SMAT using AHAT",
        ("known until now to be only learnable using single-layer single-head SMATs", r"previously believed to be learnable only through training, such as $\text{Match}_2$"),
        "The introduction states, after Sanford et al., that a single-layer single-head SMAT solves Match₂. The introduction also states that Listing 6 is an AHAT for Match₂. The conclusion repeats the claim that Match₂ is only learnable.",
        "Sanford et al. give explicit weights of one softmax head. Listing 6 is explicit as well.",
        "Write \"known to be solvable by single-layer single-head SMATs\".",
    ),
    Erratum(
        "E32", "C", "Figures 1 and 2, symbols",
        (r"(m1) {$\otimes$}", r"Operations $\top, \boxtimes \text{ and } \sigma$ represent", "Y3 = softmax(S)"),
        "The caption of Figure 1 writes ⊠ for the matrix product, but the figure draws ⊗, which Section 3 defines as the elementwise product. The legend of the figure makes the meaning clear. In Figure 2, S is not defined. The legend of Figure 2 refers to Listing 3 for 3×3 products, but Listing 3 is for c = 4.",
        "For X and A of Figure 2, the first entry of X ⊗ A is 0.08, but the first entry of Y1 is 0.51. On the 18 tokens of X and A, Listing 3 uses k = 18/7 and returns zeros.",
        "Write ⊠ in Figure 1, softmax(Y2) in Figure 2, and \"as in Listing 3, for 3×3 matrices\" in the legend.",
    ),
    Erratum(
        "E33", "C", "Appendix, last paragraph",
        ("precisely $(k+1)^2$ rank-$k$ matrices",),
        "The submatrices have order k, but they may be singular. In this case, their rank is less than k.",
        "If row 0 and column 1 are removed from the identity of order 3, the submatrix is (0, 0; 0, 1), which has rank 1.",
        "Write \"(k + 1)² matrices of order k\".",
    ),
    Erratum(
        "E34", "B", "Remark on Lipschitz functions, first layer",
        (r"$z^{(\ell)} \coloneqq W^{(\ell)} \operatorname{MaxMin}(z^{(\ell-1)}) + b^{(\ell)}$",),
        "For ℓ = 1, the formula sorts the pairs of the input z⁽⁰⁾ itself. Such a network returns equal values at (x, y) and (y, x), so these networks are not dense in Lip₁(Z). Tanielian and Biau apply W⁽¹⁾ to the input first.",
        "For f(x, y) = x on [0, 1]², every such network has an error of at least ½ at (0, 1) or (1, 0).",
        "Write z⁽¹⁾ = W⁽¹⁾z⁽⁰⁾ + b⁽¹⁾, and use the printed formula for ℓ ≥ 2.",
    ),
    Erratum(
        "E35", "C", "Lemma transposition, end of the proof",
        ("turns out to be a stochastic matrix, and therefore, immediately AHA-realizable",),
        "A stochastic matrix need not be AHA-realizable, because average-hard attention assigns equal weights to the positions that it attends to. All entries of R are 0 or 1, so the conclusion is right.",
        "Consider the row (⅓, ⅔). If this row contains the scores, average-hard attention assigns the weights (0, 1). No scores yield the weights (⅓, ⅔).",
        "Write \"permutation matrix\".",
    ),
    Erratum(
        "E36", "C", "Appendix, complexity of Listing 1",
        (r"is in fact the permutation $\rho$ as defined in line 1 of \autoref{algo:trans}",),
        "`reflectedIndices` is the inverse of ρ, because a selector gathers entries, while Algorithm 1 moves entries to the positions ρ. Both programs are right. For r = c, ρ equals its inverse.",
        "For r = 3 and c = 2, `reflectedIndices` is (0, 2, 4, 1, 3, 5), and ρ is (0, 3, 1, 4, 2, 5).",
        "Write \"the inverse of the permutation ρ\".",
    ),
    Erratum(
        "E37", "C", "After Corollary hierarchy, dependence on n alone",
        ("the construction hinges solely on the sequence length $n$", r"on input having length, say $n \le N$"),
        "For fixed d and d_v, the statement is right. But T_⊠^(n,d) has n + d + nd heads, so U depends on d as well. By the corollary, U of order (N, d, d_v) covers inputs with at most d columns, but not arbitrary attention.",
        "For n = 2, T_⊠^(2,2) has 8 heads, and T_⊠^(2,3) has 11 heads.",
        "The construction depends on (n, d, d_v). For fixed d and d_v, U_(N) covers every n ≤ N, with the mask of E15.",
    ),
    Erratum(
        "E38", "C", "Definition of GroupSort",
        (r"$\rho_g(S)$ is the $g$-sorted sequence of $S$ such that",),
        "The inequalities do not determine the sequence, because they allow elements to change their group. Algorithm 4 and Listing 5 sort within the groups.",
        "For S = (1, 2, 3, 4) and g = 2, both (2, 1, 4, 3) and (4, 3, 2, 1) satisfy the inequalities.",
        "Add that ρ_g permutes the elements within each group of g consecutive positions.",
    ),
    Erratum(
        "E39", "C", "Line numbers of Algorithms 2 and 3",
        ("Combine the sequences from line 4 with the attention matrices produced from line 5", "for implementing lines 2, 3 of the respective algorithm", r"Line 3 (and 2 \& 3) of \autoref{algo:softmax} (and \ref{algo:matmul})"),
        "The three passages count the input of the algorithm as line 1. The proof of Lemma matmul counts from the first statement.",
        "For the construction of R_l and R′_l, the proof of Lemma matmul refers to \"Lines 1 and 2\", and the Appendix refers to \"lines 2, 3\".",
        "Write lines 3 and 4 in the comment, lines 1 and 2 in the Appendix, and line 2 (and 1 & 2) in Lemma multi-head.",
        text_only=True,
    ),
    Erratum(
        "E40", "B", "Corollary encoder, Corollary H heads and remark on Linformer, sizes of products",
        (r"rest of the operations can be simulated using an application of \autoref{algo:matmul}", r"can be applied to achieve a transformer network $\mathcal{U}$ simulating them"),
        "Lemma matmul has a condition on each product. For the product with W₂, the condition is d₁ ≥ n·d₂/(n + d₂), which does not follow from n ≤ min(d, d_v). The corollaries do not state this condition. For linear attention with W_Q and W_K of d′ columns, the condition of the first product is d′ ≥ n/2, which the remark does not state.",
        "For (n, d, d_v, d₁, d₂) = (3, 3, 3, 1, 2), the product has 6 entries, but Algorithm 3 has 1·(3 + 2) = 5 tokens. For linear attention with n = 4 and d′ = 1, the first product has 16 entries, but Algorithm 3 has 1·(4 + 4) = 8 tokens.",
        "Pad the sequence to max(k(r + c), rc) tokens, and pass k as a constant, because `k = length/(r+c)` fails after padding. Then Algorithm 3, corrected as in E6, is right for every shape.",
    ),
    Erratum(
        "E41", "B", "Lemma multi-head, sum of the heads",
        ("Then just adding up all such $H$ sequences would produce",),
        "The proof applies T_⊚, with modified `indices`, to 0…0 X 0…0, and states that the result is 0 outside the block of the head. For softmax, the numerator outside the block is exp(0) = 1, and `sum` is 0. The last line of Algorithm 2 then divides 1 by 0. Listing 1 copies entries of the block to positions outside the block. The proof allows modified feed-forward weights, but does not specify them for this case.",
        "For softmax with H = 2 and two 1×1 blocks, position 1 of head 1 is 1/0. For the transposition of two 3×2 blocks with `indices-6` and `length/2` (E13), head 2 maps (0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6) to (0, 1, 3, 0, 2, 4, 1, 3, 5, 2, 4, 6).",
        "For softmax, add the H sequences `sum` before the division, or set the denominator to 1 outside the block. Set the result of each head to 0 outside its block before the results are added.",
    ),
    Erratum(
        "E42", "B", "Lemma multi-head, construction independent of the input",
        (r"If the construction for operation $\f$ is independent of the input, $T_{h\f}=T_{\f}$ for any $h$",),
        "If one program serves all inputs, it need not treat the blocks of H heads separately. MaxMin does, because it sorts pairs and each block has even length.",
        "`aggregate(select(indices, length-1-indices, ==), tokens)` reverses every sequence. It maps (1, 2, 3, 4) to (4, 3, 2, 1). Blocks of two require (2, 1, 4, 3).",
        "Require that the operation on ⊙X⁽ʰ⁾ is the operation on each X⁽ʰ⁾. Otherwise, use the construction of the lemma.",
    ),
    Erratum(
        "E43", "B", "Related works, universal approximation",
        ("functionally indistinguishable as its original output",),
        "Universal approximation holds on compact sets only. A network with ReLU feed-forwards is piecewise linear between its attention layers, so it does not approximate a product or an exponential on all inputs.",
        "For n = d = d_v = 1, T(X) = xv. Along x = v = t, a network with ReLU feed-forwards and average-hard attention grows at most linearly in t, but xv = t².",
        "State a bound on the inputs. Compiled to ReLU units with an error of at most 10⁻³, U of order (2, 2, 2) has 830 hidden units for entries of up to 1, 4,158 for entries of up to 2, and 23,230 for entries of up to 4.",
    ),
    Erratum(
        "E44", "C", "Theorem 1, Theorem H heads and Corollary H heads, \"on any input X\"",
        (r"on any input $X$ of shape $(n\times d)$, can simulate any single-layer transformer attention",),
        "The statement holds for feed-forward sublayers with arbitrary position-wise functions, as in RASP. The encoder of the Preliminaries has feed-forward sublayers with ReLU. With these, the statement holds only up to an error ε, and only for bounded X, A and V.",
        "U of order (2, 2, 2) with ReLU units requires 830 hidden units for entries of up to 1, and 4,158 for entries of up to 2.",
        "State the theorem for position-wise functions that include products, quotients and exp, or for bounded inputs and an error ε.",
    ),
    Erratum(
        "E45", "B", "Equation of linear attention",
        (r"(XW_Q)\left(XW_K\right)^{\top}XV",),
        "The cited linear attention of Katharopoulos et al. applies a feature map φ to queries and keys, and divides each row by its sum of weights. The equation contains neither.",
        "For X = (1), W_Q = W_K = (1) and V = (2), the equation yields 2, as does the cited attention. For X = (2), the equation yields 16, and the cited attention yields 4.",
        "Write φ(XW_Q)φ(XW_K)ᵀXV, divided by the row sums of φ(XW_Q)φ(XW_K)ᵀ. U simulates both forms.",
    ),
    Erratum(
        "E46", "B", "Remark on Lipschitz functions, Lemma C.2 of Feng et al.",
        (r"given the approximation of $\operatorname{GeLU}$", r"using $\operatorname{ReLU}$ (\citet{feng2023towards}, Lemma C.2)"),
        "The cited lemma has the opposite direction: it approximates networks with ReLU by networks of the same size with GELU.",
        "One GELU approximates ReLU: |GELU(λx)/λ − ReLU(x)| ≤ 0.17/λ for all x. One ReLU does not approximate GELU.",
        "On a bounded interval, a piecewise linear function, that is, a network with ReLU, approximates GELU. Cite a result of this direction.",
        text_only=True,
    ),
]  # fmt: skip

#: Number → erratum, in the order of the numbers.
ERRATA = {erratum.number: erratum for erratum in _ALL}
