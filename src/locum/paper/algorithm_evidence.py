"""Collect evidence on Algorithms 1 to 5, and on the matrices and index formulas that the paper prints.

The algorithms are run as printed at a range of shapes or sequences, and algorithms with errors are also
run as corrected. The results are compared with NumPy, and in one check with a listing.
``evidence.decide`` derives the verdicts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from locum.paper import algorithms, listings
from locum.paper.algorithms import SQUARE, Array, circ, prop
from locum.paper.evidence import (
    CONTEXT,
    CORRECTED,
    PRINTED,
    TOLERANCE,
    Evidence,
    Shape,
    compare,
    measure_error,
    summarise,
    try_shapes,
)

_PAIRS = list(itertools.product(range(1, 7), repeat=2))
_TRIPLES = list(itertools.product(range(1, 5), repeat=3))


def draw(*shape: int) -> Array:
    """Draw normally distributed numbers; equal shapes return equal numbers."""
    return np.random.default_rng(shape).normal(size=shape)


def softmax(A: Array) -> Array:
    """Compute the softmax of each row of a matrix with NumPy."""
    powers = np.exp(A - A.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def sort_pairs(sequence: Array) -> Array:
    """Sort each pair of consecutive numbers of a sequence in descending order with NumPy."""
    return np.sort(sequence.reshape(-1, 2), axis=1)[:, ::-1].ravel()


def fits(r: int, k: int, c: int) -> bool:
    """Return whether prop(A) ⊙ prop(B) is long enough for AB, for A ∈ ℝ^{r×k} and B ∈ ℝ^{k×c}."""
    return k * (r + c) >= r * c


# The algorithms -------------------------------------------------------------------------------


def check_algorithm_1() -> Iterator[Evidence]:
    """Compare Algorithm 1 with the transpose, at all shapes with r, c ≤ 6."""

    def run(shape: Shape) -> tuple[Any, Any]:
        A = draw(*shape)
        return algorithms.algorithm_1(prop(A), *shape), prop(A.T)

    yield summarise("Algorithm 1 as printed, r, c = 1 … 6", try_shapes(_PAIRS, run), "r, c")


def check_algorithm_2() -> Iterator[Evidence]:
    """Compare Algorithm 2, as printed and corrected, with the softmax, at all shapes with r, c ≤ 6."""

    def outcomes(algorithm: Callable[..., Array]) -> dict[Shape, str]:
        def run(shape: Shape) -> tuple[Any, Any]:
            A = draw(*shape)
            return algorithm(prop(A), *shape), prop(softmax(A))

        return try_shapes(_PAIRS, run)

    printed, corrected = (
        outcomes(algorithms.algorithm_2),
        outcomes(algorithms.algorithm_2_corrected),
    )
    square = ("r = c", lambda r, c: r == c)
    yield summarise("Algorithm 2 as printed, r, c = 1 … 6", printed, "r, c", square, erratum="E7")
    what = "with blocks of heights c(l−1), c and c(r−l), r, c = 1 … 6"
    yield summarise(what, corrected, "r, c", about=CORRECTED)


def check_algorithm_3() -> Iterator[Evidence]:
    """Compare Algorithm 3, as printed and corrected, with the product.

    The shapes are all shapes with r, k, c ≤ 4 that satisfy the condition of the lemma.
    """
    shapes = [shape for shape in _TRIPLES if fits(*shape)]
    printed = try_shapes(shapes, _product_by(algorithms.algorithm_3))
    corrected = try_shapes(shapes, _product_by(algorithms.algorithm_3_corrected))
    where = "r, k, c = 1 … 4 with k ≥ rc/(r + c)"
    condition = ("k = c or r = 1", lambda r, k, c: k == c or r == 1)
    yield summarise(f"Algorithm 3 as printed, {where}", printed, "r, k, c", condition, erratum="E6")
    what = f"with R″ at (l−1)c + (l′−1) + 1, {where}"
    yield summarise(what, corrected, "r, k, c", about=CORRECTED)


def check_size_of_product() -> Iterator[Evidence]:
    """Check that the corrected Algorithm 3 is right exactly at the shapes at which the result fits."""
    outcomes = try_shapes(_TRIPLES, _product_by(algorithms.algorithm_3_corrected))
    found = summarise("", outcomes, "r, k, c", ("k ≥ rc/(r + c)", fits))
    right = {shape for shape, outcome in outcomes.items() if outcome == "right"}
    holds = right == {shape for shape in _TRIPLES if fits(*shape)}
    yield Evidence("Algorithm 3, corrected (E6), r, k, c = 1 … 4", found.result, holds)


def _product_by(algorithm: Callable[..., Array]) -> Callable[[Shape], tuple[Any, Any]]:
    def run(shape: Shape) -> tuple[Any, Any]:
        r, k, c = shape
        A, B = draw(r, k), draw(k, c)
        expected = np.zeros(max(k * (r + c), r * c))
        expected[: r * c] = prop(A @ B)
        return algorithm(np.concatenate([prop(A), prop(B)]), r, k, c), expected

    return run


def check_algorithm_4() -> Iterator[Evidence]:
    """Run Algorithm 4 on all sequences over {−1, 0, 1} of length 2, 4, 6, and on random numbers."""
    small = [
        np.array(word)
        for size in (2, 4, 6)
        for word in itertools.product((-1.0, 0.0, 1.0), repeat=size)
    ]
    normal = [draw(size) for size in range(2, 21, 2)]
    for what, sequences in (
        ("all sequences over {−1, 0, 1} of length 2, 4, 6", small),
        ("random numbers, lengths 2, 4, …, 20", normal),
    ):
        pairs = ((algorithms.algorithm_4(s), sort_pairs(s)) for s in sequences)
        yield compare(f"Algorithm 4 as printed, {what}", pairs)


def check_algorithm_5() -> Iterator[Evidence]:
    """Run Algorithm 5 as printed at order 3, and with r for n at orders 2 to 5."""
    matrices = [SQUARE, *np.random.default_rng(5).normal(size=(50, 3, 3))]
    try:
        printed = [algorithms.algorithm_5(prop(A), 3) for A in matrices]
    except NameError as error:
        yield Evidence("Algorithm 5 as printed, order 3", f"undefined: {error}", False, erratum="E24")
    else:
        yield _compare_cofactors("Algorithm 5 as printed, order 3", matrices, printed, PRINTED)
    corrected = [algorithms.algorithm_5_corrected(prop(A), 3) for A in matrices]
    yield _compare_cofactors("with r for n in line 3, order 3", matrices, corrected, CORRECTED)

    def cofactors(shape: Shape) -> tuple[Any, Any]:
        A = draw(*shape, *shape)
        by_listing = listings.program("cofactor", [1.0] * 9)(prop(A).tolist())
        return algorithms.algorithm_5_corrected(prop(A), *shape)[0], by_listing

    same = try_shapes([(2,), (3,), (4,), (5,)], cofactors)
    orders = {
        word: ", ".join(
            str(order) for (order,), outcome in same.items() if (outcome == "right") is equal
        )
        for word, equal in (("equal", True), ("different", False))
    }
    result = "; ".join(f"{word} at orders {which}" for word, which in orders.items() if which)
    yield Evidence("with r for n, M_A against Listing 7, orders 2 … 5", result, True, CONTEXT)


def _compare_cofactors(
    what: str, matrices: list[Array], results: list[tuple[Array, Array]], about: str
) -> Evidence:
    """Compare the results M_A and det(A) with NumPy's cofactors and determinants."""

    def expected(A: Array) -> Array:
        determinant = np.linalg.det(A)
        cofactors = np.linalg.inv(A).T * determinant
        return np.concatenate([prop(cofactors), np.full(A.size, determinant)])

    pairs = ((np.concatenate(found), expected(A)) for A, found in zip(matrices, results, strict=True))
    return compare(what, pairs, about)


# Rows of attention without selected keys ----------------------------------------------------------


def average_hard(scores: Array, values: Array) -> Array:
    """Compute average hard attention: for each row, the mean of the values at the maximum scores."""
    return np.array([values[row == row.max()].mean() for row in scores])


def check_rows_of_transposition() -> Iterator[Evidence]:
    """Check that R of Algorithm 1 is a permutation matrix, and whether a stochastic matrix suffices."""
    matrices = [algorithms.transposition_matrix(r, c) for r, c in _PAIRS]
    stochastic = all((R.sum(axis=1) == 1).all() for R in matrices)
    yield Evidence(
        "R of Algorithm 1 is stochastic, r, c = 1 … 6",
        "each row has the sum 1" if stochastic else "some row has another sum",
        stochastic,
    )
    row = np.array([1 / 3, 2 / 3])
    chosen = (row == row.max()) / (row == row.max()).sum()
    same = measure_error(chosen, row) <= TOLERANCE
    yield Evidence(
        "a stochastic matrix is AHA-realizable: the row (⅓, ⅔) as scores",
        f"average hard attention gives the weights ({chosen[0]:g}, {chosen[1]:g})",
        same,
        erratum="E35",
    )
    permutation = stochastic and all((R.sum(axis=0) == 1).all() for R in matrices)
    result = "each row and each column has one 1" if permutation else "some column has not one 1"
    yield Evidence(
        "R of Algorithm 1 is a permutation matrix, r, c = 1 … 6", result, permutation, CORRECTED
    )


def check_rows_of_softmax() -> Iterator[Evidence]:
    """Interpret the matrices R_l of the corrected Algorithm 2 as scores of average hard attention."""
    matrices = algorithms.softmax_matrices_corrected(2, 2)
    yield from _attend_by("R_l of Algorithm 2, corrected (E7), r = c = 2", matrices)


def check_rows_of_product() -> Iterator[Evidence]:
    """Interpret the matrices of Algorithm 3 as scores of average hard attention."""
    for name, build in (
        ("R_l", algorithms.row_matrices),
        ("R′_l", algorithms.column_matrices),
        ("R″_l", algorithms.entry_matrices),
    ):
        yield from _attend_by(f"{name} of Algorithm 3, r = k = c = 2", [*build(2, 2, 2).values()])


def check_rows_of_identify() -> Iterator[Evidence]:
    """Interpret the matrix of ``identify`` as scores of average hard attention."""
    yield from _attend_by("R of identify, |s| = 5, i′ = 2, k = 2", [identify_matrix(5, 2, 2)])


def _attend_by(name: str, matrices: list[Array]) -> Iterator[Evidence]:
    """Compare R ∘ S with v times average hard attention by each 0/1 matrix R.

    The number v is the largest number of ones in a row of R. If a row of some R is 0, the comparison is
    repeated with a sink, which is an additional position of score ½ and value 0.
    """
    values = draw(len(matrices[0]))
    sink = np.append(values, 0.0)

    def errors(with_sink: bool) -> float:
        return max(
            measure_error(
                max(R.sum(axis=1)) * average_hard(np.c_[R, np.full(len(R), 0.5)], sink)
                if with_sink
                else max(R.sum(axis=1)) * average_hard(R, values),
                circ(R, values),
            )
            for R in matrices
        )

    empty = sum(int((~R.any(axis=1)).sum()) for R in matrices)
    total = sum(len(R) for R in matrices)
    yield Evidence(
        f"v times average hard attention by {name} is R ∘ S",
        f"{empty} of {total} rows select nothing; largest error {errors(False):.1g}",
        errors(False) <= TOLERANCE,
        erratum="E23",
    )
    if empty:
        yield Evidence(
            "with one more position, of score ½ and value 0",
            f"largest error {errors(True):.1g}",
            errors(True) <= TOLERANCE,
            CORRECTED,
        )


# Definitions and index formulas ---------------------------------------------------------------


def check_operation() -> Iterator[Evidence]:
    """Run the operation ∘ as the Preliminaries define it, at all shapes with r, c ≤ 6."""

    def outcomes(operation: Callable[[Array, Array], Array], entries: int) -> dict[Shape, str]:
        def run(shape: Shape) -> tuple[Any, Any]:
            R, S = draw(*shape), draw(shape[entries])
            return operation(R, S), R @ S

        return try_shapes(_PAIRS, run)

    what = "R ∘ S = RS with S ∈ ℝʳ, r, c = 1 … 6"
    square = ("r = c", lambda r, c: r == c)
    yield summarise(what, outcomes(algorithms.circ_as_printed, 0), "r, c", square, erratum="E10")
    what = "R ∘ S = RS with S ∈ ℝᶜ, r, c = 1 … 6"
    yield summarise(what, outcomes(circ, 1), "r, c", about=CORRECTED)


def check_positions() -> Iterator[Evidence]:
    """Evaluate the index formulas of Proposition 1D, and compare images of prop for two shapes."""

    def outcomes(factor: int) -> dict[Shape, str]:
        def run(shape: Shape) -> tuple[Any, Any]:
            A = draw(*shape)
            sequence = prop(A)
            rows, columns = shape
            return [sequence[shape[factor] * i + j] for i in range(rows) for j in range(columns)], prop(
                A
            )

        return try_shapes(_PAIRS, run)

    printed = ("m₀ = m₁ or m₀ = 1", lambda rows, columns: rows in (1, columns))
    yield summarise(
        "A[i₀, i₁] at m₀i₀ + i₁, m₀, m₁ = 1 … 6", outcomes(0), "m₀, m₁", printed, erratum="E9"
    )
    yield summarise("A[i₀, i₁] at m₁i₀ + i₁, m₀, m₁ = 1 … 6", outcomes(1), "m₀, m₁", about=CORRECTED)
    pairs = ((_index(shape, place), np.ravel_multi_index(place, shape))
             for shape in ((2, 3, 4), (3, 1, 2, 2)) for place in np.ndindex(*shape))  # fmt: skip
    yield compare("the step of the induction, 2×3×4 and 3×1×2×2", pairs)
    first, second = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2)
    same = bool(np.array_equal(prop(first), prop(second)))
    yield Evidence(
        "prop is a bijection on arrays of all shapes",
        "(0 1 2; 3 4 5) and (0 1; 2 3; 4 5) have one image" if same else "2×3 and 3×2 differ",
        not same,
        erratum="E27",
    )


def _index(shape: Shape, place: tuple[int, ...]) -> int:
    """Return the position of an entry by the formula Π m_l · i₀ + k of the induction step."""
    if len(shape) == 1:
        return place[0]
    return int(np.prod(shape[1:])) * place[0] + _index(shape[1:], place[1:])


def identify_matrix(size: int, i: int, k: int, slack: int = 0) -> Array:
    """Return the matrix R of ``identify`` if 0 ≤ i′−1 and i′+k ≤ |s|−1, otherwise raise an error.

    ``slack`` is added to the second bound.
    """
    if not (i - 1 >= 0 and i + k <= size - 1 + slack):
        raise IndexError("identify: i′ and k are out of the printed bounds")
    return np.diag([float(i - 1 <= place < i + k) for place in range(size)])


def check_identify() -> Iterator[Evidence]:
    """Run ``identify`` on every contiguous subsequence of sequences of up to 5 numbers."""
    parts = [(size, a, b) for size in range(1, 6) for a in range(size) for b in range(a, size)]

    def outcomes(slack: int) -> dict[Shape, str]:
        def run(shape: Shape) -> tuple[Any, Any]:
            size, a, b = shape
            s = draw(size)
            kept = np.array([float(a <= place <= b) for place in range(size)])
            return circ(identify_matrix(size, a + 1, b - a, slack), s), kept * s

        return try_shapes(parts, run)

    before_last = ("the subsequence ends before the last element", lambda size, a, b: b < size - 1)
    what = "s_a … s_b of all sequences with |s| ≤ 5"
    yield summarise(f"{what}, bounds as printed", outcomes(0), "|s|, a, b", before_last, erratum="E12")
    yield summarise(f"{what}, with i′+k−1 ≤ |s|−1", outcomes(1), "|s|, a, b", about=CORRECTED)


def check_shift() -> Iterator[Evidence]:
    """Compare the matrix of ``shift`` with the definition of a shift, for |s| ≤ 6."""

    def outcomes(column: Callable[[int, int, int], int]) -> dict[Shape, str]:
        def run(shape: Shape) -> tuple[Any, Any]:
            size, t = shape
            s, R = draw(size), np.zeros((size, size))
            for i in range(size):
                R[i, column(size, t, i)] = 1
            return circ(R, s), [s[(i + t) % size] for i in range(size)]

        return try_shapes([(size, t) for size in range(1, 7) for t in range(1, size + 1)], run)

    half = ("2t mod |s| = 0", lambda size, t: 2 * t % size == 0)
    what = "against ρ_t, t ≤ |s| ≤ 6"
    printed = outcomes(lambda size, t, i: (size - t + i) % size)
    yield summarise(f"R with j = (|s| − t + i) mod |s| {what}", printed, "|s|, t", half, erratum="E11")
    corrected = outcomes(lambda size, t, i: (i + t) % size)
    yield summarise(f"R with j = (i + t) mod |s| {what}", corrected, "|s|, t", about=CORRECTED)


def check_blocks() -> Iterator[Evidence]:
    """Transpose H = 2 blocks by Listing 1, with offsets and ``length`` as printed and corrected."""

    def run(by_arity: bool, heads: int) -> Callable[[Shape], tuple[Any, Any]]:
        def transpose(shape: Shape) -> tuple[Any, Any]:
            (columns,) = shape
            blocks = draw(2, 3, columns)
            sequence, size = blocks.ravel(), 3 * columns
            result = []
            for place in range(2 * size):
                head = place // size
                # Transposition has one matrix as its argument, so its arity n is 1.
                offset = 1 * head if by_arity else size * head
                i, c = place - offset, 2 * size // heads // 3
                source = offset + (i % 3) * c + (i - i % 3) // 3
                # If the selector selects no key in the block, the result is 0.
                inside = size * head <= source < size * (head + 1)
                result.append(sequence[source] if inside else 0.0)
            return result, np.concatenate([prop(block.T) for block in blocks])

        return transpose

    what = "Listing 1 on two blocks of 3×c, c = 1 … 6"
    shapes = [(columns,) for columns in range(1, 7)]
    for change, by_arity, heads, about in (
        ("`indices` less n(h′−1), n the arity", True, 2, PRINTED),
        ("`indices` less the block's offset, `length` unchanged", False, 1, PRINTED),
        ("`indices` less the block's offset, `length`/H for `length`", False, 2, CORRECTED),
    ):
        outcomes = try_shapes(shapes, run(by_arity, heads))
        yield summarise(f"{what}, {change}", outcomes, "c", about=about, erratum="E13")


def check_softmax_of_blocks() -> Iterator[Evidence]:
    """Apply Algorithm 2 to H = 2 blocks, one head for each block, and add the results."""

    def run(is_corrected: bool) -> Callable[[Shape], tuple[Any, Any]]:
        def softmax(shape: Shape) -> tuple[Any, Any]:
            (r,) = shape
            blocks, size = draw(2, r, r), r * r
            total = np.zeros(2 * size)
            for head, block in enumerate(blocks):
                own = slice(head * size, (head + 1) * size)
                padded = np.zeros(2 * size)
                padded[own] = prop(block)
                powers, sums = np.exp(padded), np.zeros(2 * size)
                sums[own] = sum(circ(R, powers[own]) for R in algorithms.softmax_matrices(r, r))
                quotient = powers / sums  # The quotient is 1/0 outside of the block.
                if is_corrected:
                    quotient = np.where(sums > 0, quotient, 0.0)
                total = total + quotient
            expected = [np.exp(block) / np.exp(block).sum(1, keepdims=True) for block in blocks]
            return total, np.concatenate([prop(block) for block in expected])

        return softmax

    what = "Algorithm 2 on two blocks of r×r, r = 1 … 5, each head on its block among zeros"
    shapes = [(r,) for r in range(1, 6)]
    yield summarise(what, try_shapes(shapes, run(False)), "r", erratum="E41")
    inside = f"{what}, 0 outside of the block"
    yield summarise(inside, try_shapes(shapes, run(True)), "r", about=CORRECTED)


def check_figure_1() -> Iterator[Evidence]:
    """Carry out Figure 1 by Algorithms 1 to 3.

    The symbol ⊗ is the matrix product, or the elementwise product that the paper defines.
    """

    def attend(algorithm_2: Callable[..., Array], algorithm_3: Callable[..., Array]) -> Any:
        def run(shape: Shape) -> tuple[Any, Any]:
            n, d, d_v = shape
            X, A, V = draw(n, d), draw(d, d), draw(d, d_v)

            def times(first: Array, second: Array) -> Array:
                (r, k), c = first.shape, second.shape[1]
                joined = np.concatenate([prop(first), prop(second)])
                return algorithm_3(joined, r, k, c)[: r * c].reshape(r, c)

            transposed = algorithms.algorithm_1(prop(X), n, d).reshape(d, n)
            scores = times(times(X, A), transposed)
            weights = algorithm_2(prop(scores), n, n).reshape(n, n)
            return times(weights, times(X, V)), softmax(X @ A @ X.T) @ X @ V

        return run

    square = [(n, n, n) for n in range(1, 5)]
    printed = try_shapes(square, attend(algorithms.algorithm_2, algorithms.algorithm_3))
    what = "the six operations by Algorithms 1 to 3 as printed, n = d = d_v = 1 … 4"
    yield summarise(what, printed, "n, d, d_v")
    orders = [(n, d, d_v) for n, d, d_v in _TRIPLES if fits(n, d, n) and fits(n, d, d_v)]
    corrected = attend(algorithms.algorithm_2_corrected, algorithms.algorithm_3_corrected)
    what = "by the corrected Algorithms 1 to 3, all orders up to 4 that fit"
    yield summarise(what, try_shapes(orders, corrected), "n, d, d_v", about=CORRECTED)
    X, A, V = draw(3, 3), draw(3, 3), draw(3, 3) + 1
    elementwise = softmax(X * A * X.T) * (X * V)
    error = measure_error(elementwise, softmax(X @ A @ X.T) @ X @ V)
    yield Evidence(
        "the symbol ⊗ as the Preliminaries define it, elementwise, n = d = d_v = 3",
        f"not T(X): largest error {error:.1g}; the figure means the matrix product",
        error <= TOLERANCE,
        erratum="E32",
    )
