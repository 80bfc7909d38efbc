"""Transcribe Algorithms 1 to 5 of the paper line by line, with corrections of wrong lines.

The functions follow the pseudocode: they build the attention matrices as printed, and apply them to a
sequence by the operation ∘. Comments contain the numbers of the printed lines. A function
``*_corrected`` differs from the printed algorithm only in the line that an erratum corrects.
``algorithm_evidence.py`` runs the algorithms.

>>> A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
>>> algorithm_1(prop(A), 2, 3)
array([1., 4., 2., 5., 3., 6.])
>>> algorithm_2_corrected(prop(A), 2, 3).round(3)
array([0.09 , 0.245, 0.665, 0.09 , 0.245, 0.665])
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]

#: The matrix of Figure 3, whose inverse the paper computes.
SQUARE = np.array([[7.0, 8.0, 12.0], [10.0, 11.0, 9.0], [2.0, 4.0, 21.0]])


def prop(A: NDArray[Any]) -> Array:
    """Return the entries of a matrix as a sequence, row by row."""
    return np.asarray(A, dtype=float).ravel()


def circ(R: Array, S: Array) -> Array:
    """Return R ∘ S: entry i is the sum of R[i, j] · S[j] over j."""
    return np.asarray(R @ S)


def circ_as_printed(R: Array, S: Array) -> Array:
    """Return R ∘ S as the Preliminaries define it.

    R is an r × c matrix and S a sequence of r numbers; the result is a sequence of c numbers. If c > r,
    the definition reads numbers that S does not contain, and an ``IndexError`` is raised.
    """
    r, c = R.shape
    if len(S) != r:
        raise ValueError(f"R ∘ S as printed: expected a sequence of {r} numbers, got {len(S)}")
    return np.array([sum(R[i, j] * S[j] for j in range(c)) for i in range(c)])


# Algorithm 1: transposing a matrix A of order r -----------------------------------------------


def transposition_matrix(r: int, c: int) -> Array:
    """Return the attention matrix R of Algorithm 1."""
    # 1: ρ([rc−1]∪{0}) = {rj + i}, for j ∈ [c−1]∪{0}, for each i ∈ [r−1]∪{0}
    rho = [r * j + i for i in range(r) for j in range(c)]
    # 2: R[ρ([rc−1]∪{0})[ci + j], ci + j] = 1
    R = np.zeros((r * c, r * c))
    for i in range(r):
        for j in range(c):
            R[rho[c * i + j], c * i + j] = 1
    return R


def algorithm_1(sequence: Array, r: int, c: int) -> Array:
    """Transpose A ∈ ℝ^{r×c}, which is given as the sequence prop(A)."""
    R = transposition_matrix(r, c)
    # 3: return R ∘ prop(A)
    return circ(R, sequence)


# Algorithm 2: applying softmax on a matrix A of order r ---------------------------------------


def softmax_matrices(r: int, c: int) -> list[Array]:
    """Return the attention matrices R_1, …, R_r of Algorithm 2 as printed."""
    # 2: three block rows of heights r(l−1), r and r(c−l)
    return [
        np.vstack(
            [
                np.zeros((r * (l - 1), r * c)),
                np.hstack([np.zeros((r, (l - 1) * c)), np.ones((r, c)), np.zeros((r, (r - l) * c))]),
                np.zeros((r * (c - l), r * c)),
            ]
        )
        for l in range(1, r + 1)
    ]


def softmax_matrices_corrected(r: int, c: int) -> list[Array]:
    """Return R_1, …, R_r of the corrected Algorithm 2: block rows have heights c(l−1), c and c(r−l)."""
    return [
        np.vstack(
            [
                np.zeros((c * (l - 1), r * c)),
                np.hstack([np.zeros((c, (l - 1) * c)), np.ones((c, c)), np.zeros((c, (r - l) * c))]),
                np.zeros((c * (r - l), r * c)),
            ]
        )
        for l in range(1, r + 1)
    ]


def algorithm_2(sequence: Array, r: int, c: int) -> Array:
    """Apply softmax to the rows of A ∈ ℝ^{r×c}, given as prop(A), as printed."""
    return _divide_by_row_sums(sequence, softmax_matrices(r, c))


def algorithm_2_corrected(sequence: Array, r: int, c: int) -> Array:
    """Apply softmax to the rows of A ∈ ℝ^{r×c}, given as prop(A), with the correction of erratum E7."""
    return _divide_by_row_sums(sequence, softmax_matrices_corrected(r, c))


def _divide_by_row_sums(sequence: Array, matrices: list[Array]) -> Array:
    # 1: a′_ij = exp(a_ij)
    powers = np.exp(sequence)
    # 3: sum = Σ_l R_l ∘ prop(A′)
    total = sum((circ(R, powers) for R in matrices), np.zeros(len(powers)))
    # 4: return prop(A′) / sum
    return np.asarray(powers / total)


# Algorithm 3: multiplication of matrices A and B of shape r × · and · × c ---------------------


def row_matrices(r: int, k: int, c: int) -> dict[int, Array]:
    """Return a mapping from indices to the attention matrices R_1, …, R_r of Algorithm 3."""
    size = k * (r + c)
    matrices = {l: np.zeros((size, size)) for l in range(1, r + 1)}
    # 1: R_l[i, j] = 1 for i ∈ [k(r+c)−1]∪{0} and j = k(l−1) + (i mod k)
    for l, R in matrices.items():
        for i in range(size):
            R[i, k * (l - 1) + i % k] = 1
    return matrices


def column_matrices(r: int, k: int, c: int) -> dict[int, Array]:
    """Return a mapping from indices to the attention matrices R′_1, …, R′_c of Algorithm 3."""
    size = k * (r + c)
    matrices = {l: np.zeros((size, size)) for l in range(1, c + 1)}
    # 2: R′_l[i, j] = 1 for i ∈ [k(r+c)−1]∪{0} and j = rk + (l−1) + c(i mod k)
    for l, R in matrices.items():
        for i in range(size):
            R[i, r * k + (l - 1) + c * (i % k)] = 1
    return matrices


def entry_matrices(r: int, k: int, c: int) -> dict[int, Array]:
    """Return a mapping from indices to the attention matrices R″_1, …, R″_rc of Algorithm 3."""
    size = k * (r + c)
    matrices = {l: np.zeros((size, size)) for l in range(1, r * c + 1)}
    # 4: R″_l[i, j] = 1 for i = l−1 and j ∈ [k−1]∪{0}
    for l, R in matrices.items():
        for j in range(k):
            R[l - 1, j] = 1
    return matrices


def algorithm_3(sequence: Array, r: int, k: int, c: int) -> Array:
    """Multiply A ∈ ℝ^{r×k} and B ∈ ℝ^{k×c}, given as prop(A) ⊙ prop(B), as printed."""
    products, R = _row_times_column(sequence, r, k, c), entry_matrices(r, k, c)
    # 5: return Σ R″_{(l−1)k + (l′−1) + 1} ∘ M_ll′
    parts = [circ(R[(l - 1) * k + (m - 1) + 1], product) for (l, m), product in products.items()]
    return np.asarray(np.sum(parts, axis=0))


def algorithm_3_corrected(sequence: Array, r: int, k: int, c: int) -> Array:
    """Multiply A ∈ ℝ^{r×k} and B ∈ ℝ^{k×c}, with entry (l, l′) at position (l−1)c + (l′−1)."""
    products, R = _row_times_column(sequence, r, k, c), entry_matrices(r, k, c)
    # 5: return Σ R″_{(l−1)c + (l′−1) + 1} ∘ M_ll′
    parts = [circ(R[(l - 1) * c + (m - 1) + 1], product) for (l, m), product in products.items()]
    return np.asarray(np.sum(parts, axis=0))


def _row_times_column(sequence: Array, r: int, k: int, c: int) -> dict[tuple[int, int], Array]:
    rows, columns = row_matrices(r, k, c), column_matrices(r, k, c)
    # 3: M_ll′ = (R_l ∘ (prop(A) ⊙ prop(B))) ⊗ (R′_l′ ∘ (prop(A) ⊙ prop(B)))
    return {
        (l, m): circ(rows[l], sequence) * circ(columns[m], sequence)
        for l in range(1, r + 1)
        for m in range(1, c + 1)
    }


# Algorithm 4: applying MaxMin sort on any sequence S ------------------------------------------


def maxmin_matrix(sequence: Array) -> Array:
    """Return the attention matrix R of Algorithm 4 for a sequence of even length."""
    size = len(sequence)
    # 1: α[i] = 1 (and α[i+1] = 1) if S[i] < S[i+1], for even i ∈ [|S|−2]∪{0}
    alpha = np.zeros(size)
    for i in range(0, size - 1, 2):
        if sequence[i] < sequence[i + 1]:
            alpha[i] = alpha[i + 1] = 1
    # 2: R[i, i] = 1 − α[i] = R[i+1, i+1] and R[i, i+1] = α[i] = R[i+1, i], for even i
    R = np.zeros((size, size))
    for i in range(0, size, 2):
        R[i, i] = R[i + 1, i + 1] = 1 - alpha[i]
        R[i, i + 1] = R[i + 1, i] = alpha[i]
    return R


def algorithm_4(sequence: Array) -> Array:
    """Sort each pair of a sequence of even length in descending order."""
    R = maxmin_matrix(sequence)
    # 3: return R ∘ S
    return circ(R, sequence)


# Algorithm 5: finding cofactor and determinant of a square matrix A of rank 3 -----------------


def cofactor_matrices(r: int, n: int | None) -> list[Array]:
    """Return R_α, R_β, R_γ and R_δ of Algorithm 5.

    Line 3 uses ``n``, which the paper does not define. If ``n`` is None, a ``NameError`` is raised.
    """
    size = r * r
    R_alpha, R_beta, R_gamma, R_delta = (np.zeros((size, size)) for _ in range(4))
    for i in range(size):
        # 1: R_α[j, i] = 1
        R_alpha[r * (((i - i % r) // r + 1) % r) + (i % r + 1) % r, i] = 1
        # 2: R_β[j, i] = 1
        R_beta[r * (((i - i % r) // r + 2) % r) + (i % r + 2) % r, i] = 1
        # 3: R_γ[j, i] = 1
        if n is None:
            raise NameError("Algorithm 5, line 3: n is not defined")
        R_gamma[r * (((i - i % r) // n + 1) % r) + (i % r + 2) % r, i] = 1
        # 4: R_δ[j, i] = 1
        R_delta[r * (((i - i % r) // r + 2) % r) + (i % r + 1) % r, i] = 1
    return [R_alpha, R_beta, R_gamma, R_delta]


def algorithm_5(sequence: Array, r: int, n: int | None = None) -> tuple[Array, Array]:
    """Run Algorithm 5 on A ∈ ℝ^{r×r}, given as prop(A), and return its results M_A and det(A).

    The second result contains the same number at each position. Line 3 uses ``n``, which the paper does
    not define. If ``n`` is None, a ``NameError`` is raised.
    """
    # 5: P = R_α ∘ prop(A), Q = R_β ∘ prop(A), R = R_γ ∘ prop(A), S = R_δ ∘ prop(A)
    P, Q, R, S = (circ(matrix, sequence) for matrix in cofactor_matrices(r, n))
    # 6: M_A = P ⊗ Q − R ⊗ S
    cofactors = P * Q - R * S
    # 7: R_mask[i, j] = 1 for i = j and j < r
    R_mask = np.diag([float(j < r) for j in range(r * r)])
    # 8: det(A) = 1^{r²×r²} ∘ (R_mask ∘ (prop(A) ⊗ M_A))
    determinant = circ(np.ones((r * r, r * r)), circ(R_mask, sequence * cofactors))
    # 9: return M_A and det(A)
    return cofactors, determinant


def algorithm_5_corrected(sequence: Array, r: int) -> tuple[Array, Array]:
    """Run Algorithm 5 on A ∈ ℝ^{r×r}, given as prop(A), with r for n in line 3."""
    return algorithm_5(sequence, r, n=r)
