"""Collect evidence on the paper's listings, as printed and corrected, and on Figures 2 and 3.

Layers and heads are counted by ``graph.architecture``.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from locum import constructions as c
from locum.constructions import Matrix
from locum.errors import LocumError
from locum.paper import listings
from locum.paper.algorithm_evidence import draw, softmax, sort_pairs
from locum.paper.algorithms import SQUARE, Array, prop
from locum.paper.evidence import (
    CONTEXT,
    CORRECTED,
    OURS,
    PRINTED,
    Evidence,
    Shape,
    compare,
    count_equal,
    measure_error,
    summarise,
    try_shapes,
)
from locum.paper.figure2 import PRINTED as FIGURE
from locum.paper.figure2 import T, X, figure2
from locum.rasp.python import tokens

#: The modulus p of Listing 6.
_P = 5


def run_listing(name: str, values: Any) -> Array:
    """Run the text of a listing on a sequence of numbers, and return the result."""
    given = [value.item() for value in np.asarray(values)]
    return np.asarray(listings.program(name, given)(given), dtype=float)


def count_heads(name: str, example: int) -> list[int]:
    """Count the heads of a listing in each layer; ``example`` is the length of the initial example."""
    return listings.program(name, [float(n) for n in range(1, example + 1)]).architecture.heads


def _words(letters: tuple[int, ...], sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [word for size in sizes for word in itertools.product(letters, repeat=size)]


def check_listing_1() -> Iterator[Evidence]:
    """Compare Listing 1 with the transpose of 3 × c matrices."""
    pairs = ((run_listing("transpose", prop(A)), prop(A.T)) for A in (draw(3, k) for k in range(1, 9)))
    yield compare("Listing 1 as printed, 3 × c, c = 1 … 8", pairs)


def check_listing_2() -> Iterator[Evidence]:
    """Compare Listing 2 with the softmax of 3 × c matrices, and its base with e."""
    matrices = [draw(3, columns) for columns in range(1, 9)]
    base = float(re.findall(r"([\d.]+)\^tokens", listings.text("softmax"))[0])
    rows = ((run_listing("softmax", prop(A)), prop(softmax(A * np.log(base)))) for A in matrices)
    yield compare(f"Listing 2 as printed, 3 × c, c = 1 … 8: softmax with the base {base:g}", rows)
    error = max(measure_error(run_listing("softmax", prop(A)), prop(softmax(A))) for A in matrices)
    rounded = round(math.e, 2)
    yield Evidence(
        "the base is e to three significant digits, as in the caption of Figure 2",
        f"e is {rounded} to three digits, the listing has {base:g}; softmax itself is missed by {error:.0e}",
        base == rounded,
        erratum="E1",
    )
    corrected = ((run_listing("softmax_corrected", prop(A)), prop(softmax(A))) for A in matrices)
    yield compare("Listing 2 with exp, 3 × c, c = 1 … 8", corrected, CORRECTED)


def check_listing_3() -> Iterator[Evidence]:
    """Compare Listing 3 with the product of 3 × k and k × 4 matrices."""

    def pairs() -> Iterator[tuple[Any, Any]]:
        for k in range(2, 8):
            A, B = draw(3, k), draw(k, 4)
            expected = np.zeros(7 * k)
            expected[:12] = prop(A @ B)
            yield run_listing("matmul", np.concatenate([prop(A), prop(B)])), expected

    yield compare(
        "Listing 3 as printed, 3×k by k×4, k = 2 … 7 (for k = 1, 12 results do not fit)", pairs()
    )


def check_listing_4() -> Iterator[Evidence]:
    """Compare Listing 4 with ReLU on random numbers."""
    pairs = ((run_listing("relu", s), np.maximum(s, 0)) for s in (draw(size) for size in range(1, 9)))
    yield compare("Listing 4 as printed, 1 … 8 numbers", pairs)


def check_listing_5() -> Iterator[Evidence]:
    """Run Listing 5, as printed and corrected, on all sequences over {−1, 0, 1} of length 2 and 4."""
    words = [[float(token) for token in word] for word in _words((-1, 0, 1), (2, 4))]
    for name, what, about in (
        ("maxmin", "Listing 5 as printed", PRINTED),
        ("maxmin_corrected", "Listing 5 corrected", CORRECTED),
    ):
        program = listings.program(name, [1.0, 2.0])
        cases = ((word, program(word), sort_pairs(np.array(word)).tolist()) for word in words)
        where = "all sequences over {−1, 0, 1} of length 2 and 4"
        yield count_equal(f"{what}, {where}", cases, about, "E2")


def find_matches(word: tuple[int, ...], p: int) -> list[int]:
    """Return 1 for each token whose sum with some token is a multiple of p, otherwise 0.

    A token can be matched with itself.
    """
    return [int(any((a + b) % p == 0 for b in word)) for a in word]


def check_listing_6() -> Iterator[Evidence]:
    """Run Listing 6, as printed and corrected, on all sequences over {1, …, 5} of length up to 3."""
    words = _words(tuple(range(1, _P + 1)), (1, 2, 3))
    for name, what, about in (
        ("match2", "Listing 6 as printed", PRINTED),
        ("match2_corrected", "Listing 6 corrected", CORRECTED),
    ):
        program = listings.program(name, [1, 2])
        cases = [
            (word, [int(n) for n in program(list(word))], find_matches(word, _P)) for word in words
        ]
        where = f"p = {_P}, all sequences over {{1, …, {_P}}} of length 1, 2, 3"
        yield count_equal(f"{what}, {where}", cases, about, "E3")
        if about == PRINTED:
            wrong = {word for word, actual, expected in cases if actual != expected}
            exactly = wrong == {word for word in words if _P in word}
            result = f"{'exactly the' if exactly else 'other than the'} {len(wrong)} sequences that contain {_P}"
            yield Evidence("which sequences are wrong", result, True, CONTEXT)


def _random_matrices() -> list[Array]:
    return [SQUARE, *np.random.default_rng(7).normal(size=(50, 3, 3))]


def check_listing_7() -> Iterator[Evidence]:
    """Compare Listing 7 with the cofactors of 3 × 3 matrices."""
    program = listings.program("cofactor", [1.0] * 9)
    pairs = (
        (program(prop(A).tolist()), prop(np.linalg.inv(A).T * np.linalg.det(A)))
        for A in _random_matrices()
    )
    yield compare("Listing 7 as printed, 3 × 3", pairs)


def check_listing_8() -> Iterator[Evidence]:
    """Compare Listing 8 with the determinants of 3 × 3 matrices."""
    program = listings.program("determinant", [1.0] * 9)
    pairs = ((program(prop(A).tolist()), np.full(9, np.linalg.det(A))) for A in _random_matrices())
    yield compare("Listing 8 as printed, 3 × 3", pairs)


def check_layers_of_listings() -> Iterator[Evidence]:
    """Compare the layers and heads of Listings 1, 2 and 3 with the numbers in the appendix.

    Also compare `reflectedIndices` of Listing 1 with the permutation ρ of Algorithm 1.
    """
    for number, name, example, printed in (
        (1, "transpose", 6, [1, 1]),
        (2, "softmax", 6, [1, 3]),
        (3, "matmul", 14, [1, 7, 12]),
    ):
        heads = count_heads(name, example)
        result = f"{len(heads)} layers, heads {heads}; printed: {len(printed)} layers, heads {printed}"
        yield Evidence(f"layers of Listing {number}, counted", result, heads == printed)

    def permutations(shape: Shape) -> tuple[Any, Any]:
        r, columns = shape
        places = range(r * columns)
        reflected = [(i % r) * columns + (i - i % r) // r for i in places]
        return reflected, [r * j + i for i in range(r) for j in range(columns)]

    shapes = list(itertools.product(range(2, 6), repeat=2))
    square = ("r = c", lambda r, columns: r == columns)
    what = "`reflectedIndices` of Listing 1 is ρ of Algorithm 1, r, c = 2 … 5"
    yield summarise(what, try_shapes(shapes, permutations), "r, c", square, erratum="E36")


def check_inversion() -> Iterator[Evidence]:
    """Run the printed expression for the inverse, and compare M_A/|A| with other matrices."""
    try:
        listings.program("inverse", prop(SQUARE).tolist())
    except LocumError as error:
        reason = str(error).partition("\n")[0].partition(":")[2].strip() or str(error)
        result = f"does not run: {reason}"
    else:
        result = "runs"
    yield Evidence("`Cofactor()/Det(Cofactor())(A)` as printed", result, result == "runs", erratum="E4")
    cofactors, determinant = (run_listing(name, prop(SQUARE)) for name in ("cofactor", "determinant"))
    quotient = cofactors / determinant
    adjugate = np.asarray(np.linalg.inv(SQUARE) * np.linalg.det(SQUARE), dtype=np.float64)
    equal = measure_error(quotient, prop(adjugate.T)) < 1e-9
    yield Evidence(
        "M_A/|A| is the transpose of the adjugate",
        "it is"
        if equal
        else f"it is not: the first entry is {quotient[0]:.4f}, of the adjugate {adjugate[0, 0]:.0f}",
        equal,
        erratum="E5",
    )
    pairs = ((quotient, prop(np.linalg.inv(SQUARE).T)),)
    yield compare("M_A/|A| is the transpose of the inverse", pairs, CORRECTED)
    yield compare(
        "the inverse by Listings 7, 8 and a transposition",
        (
            (run_listing("inverse_corrected", prop(A)), prop(np.linalg.inv(A)))
            for A in _random_matrices()[:11]
        ),
    )


def check_figure_3() -> Iterator[Evidence]:
    """Run the program of Figure 3, with `Cofactor()` shared, on the matrix of the figure's caption."""
    program = listings.program("inverse_corrected", prop(SQUARE).tolist())
    heads = program.architecture.heads
    yield Evidence(
        "layers and heads of T₋₁ with `Cofactor()` shared; printed: five layers, width four",
        f"{len(heads)} layers, heads {heads}, width {max(heads)}",
        (len(heads), max(heads)) == (5, 4),
    )
    result = np.asarray(program(prop(SQUARE).tolist()), dtype=float).reshape(3, 3)
    digits = "; ".join(" ".join(f"{value:.6f}" for value in line) for line in result)
    error = measure_error(result, np.linalg.inv(SQUARE))
    yield Evidence(
        "T₋₁ on A = (7 8 12; 10 11 9; 2 4 21)",
        f"A⁻¹ = ({digits}), within {error:.0e} of NumPy's; the picture is not in the source",
        error <= 1e-12,
    )


def check_text_on_inversion() -> Iterator[Evidence]:
    """Count the layers of Listings 7 and 8, compute ranks of minors, and invert other matrices."""
    for number, name, printed in ((7, "cofactor", [1, 4]), (8, "determinant", [1, 4, 1, 1])):
        heads = count_heads(name, 9)
        result = f"{len(heads)} layers, heads {heads}; printed: {len(printed)} layers, heads {printed}"
        yield Evidence(f"layers of Listing {number}, counted", result, heads == printed)
    ranks = [
        int(np.linalg.matrix_rank(np.delete(np.delete(np.eye(3), i, 0), j, 1)))
        for i, j in itertools.product(range(3), repeat=2)
    ]
    yield Evidence(
        "the nine minors of a matrix of rank 3 have rank 2 (A = I)",
        f"{sum(rank == 2 for rank in ranks)} of {len(ranks)} have rank 2; all have order 2",
        all(rank == 2 for rank in ranks),
        erratum="E33",
    )
    for recipe in ("gauss-jordan", "faddeev-leverrier"):
        programs = {n: c.inverse(Matrix(tokens, n, n), recipe) for n in range(1, 6)}
        matrices = {n: np.eye(n) + 0.3 * draw(n, n) for n in programs}
        pairs = ((programs[n].run(prop(A)), np.linalg.inv(A)) for n, A in matrices.items())
        found = compare("", pairs, OURS)
        layers = ", ".join(str(program.sop.architecture.layers) for program in programs.values())
        yield Evidence(
            f"our recipe {recipe}, orders 1 … 5", f"{found.result}; {layers} layers", found.holds, OURS
        )


def check_figure_2() -> Iterator[Evidence]:
    """Run Figure 2 with 2.718 for e, as in the printed figure, and compare every printed digit."""
    demonstration = figure2(base=2.718)
    for name, printed in FIGURE.items():
        step = demonstration[name]
        digits = " ".join(f"{value:.3f}" for value in step.matrix.ravel())
        yield Evidence(
            f"{printed.name} = {printed.formula}, all digits", digits, demonstration.agrees(name)
        )
    for name in ("softmax", "output"):
        error, printed_error = demonstration[name].error, FIGURE[name].error
        yield Evidence(
            f"error of {FIGURE[name].name}; printed: {printed_error:.6e}",
            f"{error:.6e}",
            f"{error:.6e}" == f"{printed_error:.6e}",
        )
    listed = figure2(base=2.73)
    wrong = [FIGURE[name].name for name in FIGURE if not listed.agrees(name)]
    yield Evidence(
        "the figure runs Listing 2, whose base is 2.73",
        f"other digits in {', '.join(wrong)}; 2.718 gives the printed ones"
        if wrong
        else "the same digits",
        not wrong,
        erratum="E1",
    )
    joined = np.concatenate([prop(X), prop(np.asarray(T.A))])
    by_listing = run_listing("matmul", joined)[:9]
    error = measure_error(by_listing, prop(X @ np.asarray(T.A)))
    yield Evidence(
        "the legend: X A by Listing 3",
        f"Listing 3 is for c = 4; on these 18 tokens it gives {by_listing[0]:g}, … (error {error:.1g})",
        error <= 1e-9,
        erratum="E32",
    )
