"""State claims of the paper exactly as printed: wrong claims, and the claims of five correct listings.

The prover refutes the wrong claims. For each wrong claim, ``errata.py`` lists a corrected claim, which
the prover proves. Listings are read from files. Algorithms and matrices are written here as printed.

Listings 1, 3, 4, 7 and 8 are correct, listing 3 for k ≥ 2. Listings 1, 3 and 4 accept inputs of several
lengths, so each of them makes a claim for every such length. Listings 7 and 8 are about matrices of
order 3.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from locum import constructions as c
from locum.constructions import Matrix
from locum.paper import listings
from locum.paper.item import ClaimInstance
from locum.proofs.claims.claim import Claim, state
from locum.proofs.claims.formula import Formula
from locum.proofs.claims.named import claim as named_claim
from locum.proofs.claims.textbook import attention, embedded
from locum.rasp.python import (
    aggregate,
    exp,
    family,
    indices,
    length,
    select,
    sum_over,
    tokens,
)
from locum.simulators import UniversalSimulator


def maxmin_listing() -> Claim:
    """Claim that Listing 5 sorts a pair in descending order (E2)."""
    program = listings.program("maxmin", [1.0, 2.0])
    return state("E2", (2,), program, [("s", 1, 2)], lambda s: s.sort(2))


def match2_listing() -> Claim:
    """Claim that Listing 6 decides Match₂ for two integers in {1, …, p} with p = 5 (E3)."""
    program = listings.program("match2", [1, 2])
    return state(
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
    return state("E6", (r, k, columns), program, inputs, lambda a, b: a @ b)


def algorithm_2() -> Claim:
    """Claim that Algorithm 2 is the softmax, where R_l has r rows from row r·l on as printed (E7).

    However, a row of A has c positions, not r.
    """
    r, k = 2, 3
    l = family(r)
    keys = select(indices, l * k, ">=") & select(indices, l * k + k, "<")
    queries = select(l * r, indices, "<=") & select(l * r + r, indices, ">")
    power = exp(tokens)
    program = Matrix(power / sum_over(l, k * aggregate(keys & queries, power)), r, k)
    return state("E7", (r, k), program, [("X", r, k)], Formula.softmax)


def shift_matrix() -> Claim:
    """Claim that the matrix with a 1 in row i and column (n − t + i) mod n shifts by t (E11)."""
    n, t = 5, 2
    program = aggregate(select(indices, (length - t + indices) % length, "=="), tokens)
    shifted = [(i + t) % n for i in range(n)]
    return state("E11", (n, t), program, [("s", 1, n)], lambda s: [[s[0, i] for i in shifted]])


def zero_padding() -> Claim:
    """Claim that U simulates a smaller T whose matrices are padded with zeros (E15)."""
    return embedded("E15", (1, 1, 1, 2, 2, 2), UniversalSimulator(2, 2, 2), fixed={})


def square_root() -> Claim:
    """Claim that step 3 of the hierarchy's proof computes T of order (2, 2, 2) (E16).

    As printed, the scores are divided by √d.
    """
    n, d, small = 2, 4, 2
    x, a, v = c.concatenate(tokens, (n, d), (d, d), (d, d))
    scores = c.scale(c.matmul(c.matmul(x, a), c.transpose(x)), 0.5)
    program = c.matmul(c.softmax(scores), c.matmul(x, v)).block(0, 0, n, small)
    inputs = [("X", n, small), ("A", small, small), ("V", small, small)]
    layout: list[tuple[int, int, int] | int] = [0] * (n * d + 2 * d * d)
    for number, offset in enumerate((0, n * d, n * d + d * d)):
        for i, j in itertools.product(range(small), repeat=2):
            layout[offset + d * i + j] = (number, i, j)
    for i in range(small, d):
        layout[n * d + d * i + i] = 1  # Step 2 adds an identity block.
    return state("E16", (n, small, small, n, d, d), program, inputs, attention, layout=layout)


def _transpose(columns: int) -> Claim:
    program = listings.program("transpose", [1.0] * (3 * columns))
    return state("listing-1", (columns,), program, [("X", 3, columns)], lambda x: x.T)


def _matmul(k: int) -> Claim:
    program = listings.program("matmul", [1.0] * (7 * k))
    zeros = [[0] * (7 * k - 12)]

    def reference(a: Formula, b: Formula) -> Formula:
        product = a @ b
        entries = Formula.of([[product[i, j] for i in range(3) for j in range(4)]])
        return Formula.beside(entries, Formula.of(zeros)) if zeros[0] else entries

    return state("listing-3", (k,), program, [("A", 3, k), ("B", k, 4)], reference)


def _relu(n: int) -> Claim:
    program = listings.program("relu", [1.0] * n)
    return state("listing-4", (n,), program, [("X", 1, n)], Formula.relu)


def _cofactor() -> Claim:
    program = listings.program("cofactor", [float(n) for n in range(9)])
    return state("listing-7", (), program, [("A", 3, 3)], Formula.cofactors)


def _determinant() -> Claim:
    program = listings.program("determinant", [float(n) for n in range(9)])
    return state(
        "listing-8", (), program, [("A", 3, 3)], lambda a: [[a.determinant() for _ in range(9)]]
    )


#: Functions that build the claim of a listing for a shape, by the name of the claim.
LISTINGS: dict[str, Callable[..., Claim]] = {
    "listing-1": _transpose,
    "listing-3": _matmul,
    "listing-4": _relu,
    "listing-7": _cofactor,
    "listing-8": _determinant,
}


def stated(instance: ClaimInstance) -> Claim:
    """Build the claim of an instance, which is a listing of the paper or a named claim."""
    if instance.name in LISTINGS:
        return LISTINGS[instance.name](*instance.shape)
    return named_claim(instance.name, *instance.shape, recipe=instance.recipe)
