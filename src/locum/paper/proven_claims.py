"""Prove claims about statements of the paper for all inputs of one shape.

A claim is a named claim about a construction, or the claim that a listing is correct as printed.
Listings 1, 3 and 4 accept inputs of several lengths, so each of them makes a claim for every such
length, listing 3 for k ≥ 2. Listings 7 and 8 are about matrices of order 3.

>>> prove_instance(ClaimInstance("listing-1", (2,))).holds
True
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from locum.paper import listings
from locum.proofs import Proof, Refutation, Unproven, about, claim, prove
from locum.proofs.claims.claim import Claim
from locum.proofs.claims.formula import Formula


class ClaimInstance(NamedTuple):
    """A named claim, or the claim of a listing, at one shape; ``recipe=None`` is the default recipe."""

    name: str
    shape: tuple[int, ...] = ()
    recipe: str | None = None


def _transpose(columns: int) -> Claim:
    program = listings.program("transpose", [1.0] * (3 * columns))
    return about("listing 1", (columns,), program, [("X", 3, columns)], lambda x: x.T)


def _matmul(k: int) -> Claim:
    program = listings.program("matmul", [1.0] * (7 * k))
    zeros = [[0] * (7 * k - 12)]

    def reference(a: Formula, b: Formula) -> Formula:
        product = a @ b
        entries = Formula.of([[product[i, j] for i in range(3) for j in range(4)]])
        return Formula.beside(entries, Formula.of(zeros)) if zeros[0] else entries

    return about("listing 3", (k,), program, [("A", 3, k), ("B", k, 4)], reference)


def _relu(n: int) -> Claim:
    program = listings.program("relu", [1.0] * n)
    return about("listing 4", (n,), program, [("X", 1, n)], Formula.relu)


def _cofactor() -> Claim:
    program = listings.program("cofactor", [float(n) for n in range(9)])
    return about("listing 7", (), program, [("A", 3, 3)], Formula.cofactors)


def _determinant() -> Claim:
    program = listings.program("determinant", [float(n) for n in range(9)])
    return about(
        "listing 8", (), program, [("A", 3, 3)], lambda a: [[a.determinant() for _ in range(9)]]
    )


#: Functions that build the claim of a listing for a shape, by the name of the claim.
LISTINGS: dict[str, Callable[..., Claim]] = {
    "listing-1": _transpose,
    "listing-3": _matmul,
    "listing-4": _relu,
    "listing-7": _cofactor,
    "listing-8": _determinant,
}


def state_claim(instance: ClaimInstance) -> Claim:
    """Build the claim of an instance."""
    if instance.name in LISTINGS:
        return LISTINGS[instance.name](*instance.shape)
    return claim(instance.name, *instance.shape, recipe=instance.recipe)


@cache
def prove_instance(instance: ClaimInstance) -> Proof | Refutation | Unproven:
    """Search for a proof of the claim of an instance, once in a process."""
    return prove(state_claim(instance))
