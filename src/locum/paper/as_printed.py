"""Claims of the paper exactly as printed, which the prover refutes by numbers.

``errata.py`` names the corrected claim of each, which the prover proves. Listings are read from their
files; algorithms and matrices are written here as printed.
"""

from __future__ import annotations

from locum import constructions as c
from locum.constructions import Matrix
from locum.language.python import (
    aggregate,
    exp,
    family,
    indices,
    length,
    select,
    sum_over,
    tokens,
)
from locum.paper import listings
from locum.simulators import UniversalSimulator
from locum.verification.checker.formulas import Formula
from locum.verification.claims.claim import Claim, about
from locum.verification.claims.universal import attention, embedded


def maxmin_listing() -> Claim:
    """Claim that Listing 5 sorts a pair (E2)."""
    program = listings.program("maxmin", [1.0, 2.0])
    return about("E2", (2,), program, [("s", 1, 2)], lambda s: s.sort(2))


def match2_listing() -> Claim:
    """Claim that Listing 6 decides Match₂ for tokens in {1, …, p}, p = 5 (E3)."""
    program = listings.program("match2", [1, 2])
    return about(
        "E3", (2, 5), program, [("s", 1, 2)], lambda s: s.match2(5), integer=True,
        conditions=lambda s: [(bound, ">") for i in (0, 1) for bound in (s[0, i], 6 - s[0, i])],
    )  # fmt: skip


def algorithm_3() -> Claim:
    """Claim that Algorithm 3 is the product, with R″ of (l, l′) at l·k + l′ as printed (E6)."""
    r, k, columns = 2, 2, 3
    a, b = c.concatenate(tokens, (r, k), (k, columns))
    l, m = family(r), family(columns)
    products = a.at(l, indices % k) * b.at(indices % k, m)
    place = select(indices, k, "<") & select(l * k + m, indices, "==")
    program = a.derive(k * sum_over(l, m, aggregate(place, products)), r, columns, b)
    inputs = [("A", r, k), ("B", k, columns)]
    return about("E6", (r, k, columns), program, inputs, lambda a, b: a @ b)


def algorithm_2() -> Claim:
    """Claim that Algorithm 2 is the softmax, with R_l of r rows from r·l on as printed (E7).

    A row of A takes up c positions, not r.
    """
    r, k = 2, 3
    l = family(r)
    keys = select(indices, l * k, ">=") & select(indices, l * k + k, "<")
    queries = select(l * r, indices, "<=") & select(l * r + r, indices, ">")
    power = exp(tokens)
    program = Matrix(power / sum_over(l, k * aggregate(keys & queries, power)), r, k)
    return about("E7", (r, k), program, [("X", r, k)], Formula.softmax)


def shift_matrix() -> Claim:
    """Claim that the matrix with its 1 of row i in column (n − t + i) mod n shifts by t (E11)."""
    n, t = 5, 2
    program = aggregate(select(indices, (length - t + indices) % length, "=="), tokens)
    shifted = [(i + t) % n for i in range(n)]
    return about("E11", (n, t), program, [("s", 1, n)], lambda s: [[s[0, i] for i in shifted]])


def zero_padding() -> Claim:
    """Claim that U runs a smaller T padded with zeros (E15)."""
    return embedded("E15", (1, 1, 1, 2, 1, 1), UniversalSimulator(2, 1, 1), fixed={})


def square_root() -> Claim:
    """Claim step 3 of the hierarchy's proof: scores over √d, d = 4 being the larger order's (E16)."""
    n, d = 2, 4
    x, a, v = c.concatenate(tokens, (n, d), (d, d), (d, d))
    scores = c.scale(c.matmul(c.matmul(x, a), c.transpose(x)), 0.5)
    program = c.matmul(c.softmax(scores), c.matmul(x, v)).block(0, 0, n, 1)
    small = [("X", n, 1), ("A", 1, 1), ("V", 1, 1)]
    layout: list[tuple[int, int, int] | int] = [0] * (n * d + 2 * d * d)
    layout[0], layout[d] = (0, 0, 0), (0, 1, 0)
    layout[n * d], layout[n * d + d * d] = (1, 0, 0), (2, 0, 0)
    return about("E16", (n, 1, 1, n, d, d), program, small, attention, layout=layout)
