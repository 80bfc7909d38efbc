"""The paper's errata: what is wrong, the smallest counterexample, what is right.

docs/errata.md shows the same rows, and ``locum errata`` prints them. Errata of severity A are wrong
results: the prover refutes the claim as printed and proves the corrected one.

>>> ERRATA["E2"].where
'Listing 5, MaxMin'
>>> [number for number, erratum in ERRATA.items() if erratum.refutable]
['E1', 'E2', 'E3', 'E6', 'E7', 'E11', 'E15', 'E16']
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from locum.paper import as_printed
from locum.paper.item import ClaimInstance
from locum.verification.claims.claim import Claim

#: Severity → what it means.
SEVERITIES = {"A": "wrong results", "B": "a wrong statement or proof", "C": "wording"}


class Refutable(NamedTuple):
    """A claim as printed, which numbers refute, and the corrected claim, which is proven."""

    claim: Callable[[], Claim]
    corrected: ClaimInstance


@dataclass(frozen=True)
class Erratum:
    """One place where a literal reader of the paper would go wrong."""

    number: str
    severity: str
    where: str
    wrong: str
    counterexample: str
    right: str
    refutable: Refutable | None = None

    @property
    def row(self) -> str:
        """Write the erratum as a row of docs/errata.md."""
        number = f"{self.number} {self.severity}"
        cells = (number, self.where, self.wrong, self.counterexample, self.right)
        return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


_ALL = [
    Erratum(
        "E1", "A", "Listing 2, softmax",
        "the base is 2.73, not e; the figure of the demonstration was made with 2.718",
        "rows (1, 2), (0, −1), (½, ½): off by more than 10⁻⁴",
        "`exp`; `softmax(m, base=2.73, stable=False)` is the listing, 2.718 the figure",
        Refutable(as_printed.softmax_listing, ClaimInstance("softmax", (3, 2))),
    ),
    Erratum(
        "E2", "A", "Listing 5, MaxMin",
        "an odd position finds no partner, so a negative token there asks to be flipped",
        "`[1, −2]` gives `[1, 1]`",
        "ask at even positions only, or look at the partner: one layer, one head",
        Refutable(as_printed.maxmin_listing, ClaimInstance("maxmin", (2,))),
    ),
    Erratum(
        "E3", "A", "Listing 6, Match₂",
        'the complement of a multiple of p is taken as p, not 0; "found" means "does not average to 0"',
        "p = 5: `[5, 5]` gives `[0, 0]`",
        "complement modulo p; count instead of averaging",
        Refutable(as_printed.match2_listing, ClaimInstance("match2", (2, 5))),
    ),
    Erratum(
        "E4", "B", "Listings 7 and 8",
        "`Cofactor()/Det(Cofactor())(A)` applies `Det(Cofactor())` first and does not run",
        "any A", "brackets around the quotient",
    ),
    Erratum(
        "E5", "B", "Lemma inversion",
        'valid for order 3 only, not "rank 3"; M_A/|A| is the transposed inverse, not a transposed adjugate',
        "order 2: the determinant of (1, 2; 3, 4) comes out as 2",
        "cyclic minors at any order, with (−1)^(i+j) where the order is even",
    ),
    Erratum(
        "E6", "A", "Algorithm 3, last line",
        "R″ belongs at l·c + l′, not l·k + l′",
        "(r, k, c) = (2, 2, 3): two products collide",
        "l·c + l′ + 1 (the listing has it right)",
        Refutable(as_printed.algorithm_3, ClaimInstance("matmul", (2, 2, 3))),
    ),
    Erratum(
        "E7", "A", "Algorithm 2, R_l",
        "blocks of height r; a row of A takes up c positions",
        "(r, c) = (2, 3): a denominator is 0",
        "heights c(l−1), c, c(r−l) (the listing has it right)",
        Refutable(as_printed.algorithm_2, ClaimInstance("softmax", (2, 3))),
    ),
    Erratum(
        "E8", "B", "Lemma inversion, counts",
        '"4 heads" holds only if the two calls of `Cofactor()` share their heads; counted by text they are 8',
        "the expression as printed", "compute it once; here equal selectors are one head",
    ),
    Erratum(
        "E9", "B", "Proposition 1D", "m₀i₀ + i₁ is not injective for m₀ ≠ m₁",
        "2×3: 0, 1, 2, 2, 3, 4", "m₁i₀ + i₁",
    ),
    Erratum(
        "E10", "B", "definition of ∘", "R is r×c and S has r entries; it must have c",
        "r ≠ c", "S ∈ ℝᶜ, result in ℝʳ",
    ),
    Erratum(
        "E11", "A", "shift", "the matrix turns the other way than the definition and the code",
        "t = 2 on (10, 20, 30, 40, 50)", "j = (i + t) mod n",
        Refutable(as_printed.shift_matrix, ClaimInstance("shift", (5, 2))),
    ),
    Erratum(
        "E12", "C", "identify", "the bounds leave out the last element",
        "i = 2, k = 1 on three tokens", "i + k − 1 ≤ n − 1",
    ),
    Erratum(
        "E13", "B", "Lemma multi-head",
        "changing the indices is not enough: `length` must become `length/H`, and a block's offset is its own length",
        "transposing two 2×3 blocks", "views with offsets h·(block), sizes of the block",
    ),
    Erratum(
        "E14", "B", "after Lemma matmul",
        "a feed-forward cannot contract a sequence: it acts on each position by itself", "–",
        "never contract: results lie at positions 0 … rc−1 of an s-op of their own; denominators are guarded "
        "outside, since RASP divides at every position",
    ),
    Erratum(
        "E15", "A", "Corollary hierarchy",
        "zero padding is not exact: padded keys score 0 and add n − m to each denominator Z, so the result is "
        "T(X)·Z/(Z + n − m)",
        "m = d = 1, X = (1), A = (0), V = (1), n = 2: ½ instead of 1",
        "mask the softmax: `softmax(scores, mask=m)`",
        Refutable(as_printed.zero_padding, ClaimInstance("hierarchy", (1, 1, 1, 2, 1, 1))),
    ),
    Erratum(
        "E16", "A", "Corollary hierarchy, step 3 of its proof",
        "1/√d occurs neither in the attention nor in U, and for T it would be 1/√e",
        "(2, 2) in (2, 4)", "drop it",
        Refutable(as_printed.square_root, ClaimInstance("hierarchy", (2, 1, 1, 2, 4, 4))),
    ),
    Erratum(
        "E17", "B", "Theorem 1",
        "n ≤ min(d, d_v) is sufficient, not necessary; d ≥ n/2 and d(n + d_v) ≥ n·d_v suffice",
        "(4, 2, 1) fits; (5, 2, 2) does not", "pad the sequence where a product does not fit",
    ),
    Erratum(
        "E18", "C", "after Theorem 1", '"n mod 4 = 0" is not needed to find d',
        "n² + 4(nd + d²) = (n + 2d)²", "–",
    ),
    Erratum(
        "E19", "C", "Corollary on encoders", "X + attention needs d = d_v; the sum needs no attention",
        "3×2 plus 3×1", "–",
    ),
    Erratum(
        "E20", "C", "tables 1 and 2",
        "weights do not depend on input *values*; a product has r + c + rc heads, not 2rc",
        "3×·×4: 19", "–",
    ),
    Erratum(
        "E21", "C", "throughout",
        '"exactly" means up to rounding: sums are formed as k times a mean; ≤ ∞ in the remark on Lipschitz '
        "functions should be <",
        "three normal numbers", 'on rationals (`domain="exact"`) it is exact',
    ),
]  # fmt: skip

#: Number → erratum, in the paper's order of numbers.
ERRATA = {erratum.number: erratum for erratum in _ALL}
