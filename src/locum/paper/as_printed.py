"""The paper's eight wrong results (docs/errata.md, severity A) as claims: each is refuted by numbers.

Beside each stands the corrected claim, which is proven. Listings are taken from their files, to the
letter; algorithms and matrices are written here as the paper prints them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources

from locum import constructions as c
from locum.constructions import Matrix
from locum.language import Session
from locum.language.handles import SOp
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
from locum.simulators import UniversalSimulator
from locum.verification.claims.algebra import Algebra
from locum.verification.claims.claim import Claim, about
from locum.verification.claims.named import embedded, match2, reals


@dataclass(frozen=True)
class Erratum:
    """A claim of the paper that is wrong, and the right one: its name and shape in ``claims``."""

    number: str
    paper: str
    claim: Callable[[], Claim]
    corrected: tuple[str, tuple[int, ...]]


def listing(name: str, example: list[float]) -> SOp:
    """The program of one of the paper's listings."""
    folder = resources.files("locum.paper").joinpath("listings")
    text = folder.joinpath(f"{name}.rasp").read_text(encoding="utf-8")
    ((_, program),) = Session(example).script(text)
    assert isinstance(program, SOp)
    return program


def _softmax_listing() -> Claim:
    program = listing("softmax", [1.0] * 6)
    return about(
        "E1", (3, 2), f"for all {reals(('X', 3, 2))}: Listing 2 gives σ(X)", program, [("X", 3, 2)],
        lambda g, x: g.softmax(x),
    )  # fmt: skip


def _maxmin_listing() -> Claim:
    program = listing("maxmin", [1.0, 2.0])
    return about(
        "E2", (2,), "for all s ∈ ℝ^2: Listing 5 gives the greater, then the smaller", program,
        [("s", 1, 2)], lambda g, s: [g.sorted(s[0])],
    )  # fmt: skip


def _match2_listing() -> Claim:
    program = listing("match2", [1, 2])
    statement = "for all s ∈ ℤ^2: Listing 6 finds the s[i] with s[i] + s[j] ≡ 0 (mod 5) for some j"
    return about("E3", (2, 5), statement, program, [("s", 1, 2)], match2(5), whole=True)


def _algorithm_3() -> Claim:
    """The last line as printed: R″ of (l, l′) at l·k + l′."""
    r, k, columns = 2, 2, 3
    a, b = c.concatenate(tokens, (r, k), (k, columns))
    l, m = family(r), family(columns)
    products = a.at(l, indices % k) * b.at(indices % k, m)
    place = select(indices, k, "<") & select(l * k + m, indices, "==")
    program = a.derive(k * sum_over(l, m, aggregate(place, products)), r, columns, b)
    inputs = [("A", r, k), ("B", k, columns)]
    return about(
        "E6", (r, k, columns), f"for all {reals(*inputs)}: Algorithm 3 gives AB", program, inputs,
        lambda g, x, y: g.matmul(x, y),
    )  # fmt: skip


def _algorithm_2() -> Claim:
    """R_l as printed: r rows from r·l on, whereas a row of A takes up c positions."""
    r, k = 2, 3
    l = family(r)
    keys = select(indices, l * k, ">=") & select(indices, l * k + k, "<")
    queries = select(l * r, indices, "<=") & select(l * r + r, indices, ">")
    power = exp(tokens)
    program = Matrix(power / sum_over(l, k * aggregate(keys & queries, power)), r, k)
    return about(
        "E7", (r, k), f"for all {reals(('X', r, k))}: Algorithm 2 gives σ(X)", program, [("X", r, k)],
        lambda g, x: g.softmax(x),
    )  # fmt: skip


def _shift_matrix() -> Claim:
    """Row i of the matrix has its 1 in column (n − t + i) mod n."""
    n, t = 5, 2
    program = aggregate(select(indices, (length - t + indices) % length, "=="), tokens)
    return about(
        "E11", (n, t), f"for all s ∈ ℝ^{n}: the matrix of the shift gives s[(i + {t}) mod {n}]",
        program,        [("s", 1, n)], lambda g, s: [[s[0][(i + t) % n] for i in range(n)]],
    )  # fmt: skip


def _zero_padding() -> Claim:
    return embedded("E15", (1, 1, 1, 2, 1, 1), UniversalSimulator(2, 1, 1), fixed={})


def _square_root() -> Claim:
    """Step 3 of the hierarchy's proof: scores over √d, d = 4 being the larger order's."""
    n, d = 2, 4
    x, a, v = c.concatenate(tokens, (n, d), (d, d), (d, d))
    scores = c.scale(c.matmul(c.matmul(x, a), c.transpose(x)), 0.5)
    program = c.matmul(c.softmax(scores), c.matmul(x, v)).block(0, 0, n, 1)
    small = [("X", n, 1), ("A", 1, 1), ("V", 1, 1)]
    layout: list[tuple[int, int, int] | int] = [0] * (n * d + 2 * d * d)
    layout[0], layout[d] = (0, 0, 0), (0, 1, 0)
    layout[n * d], layout[n * d + d * d] = (1, 0, 0), (2, 0, 0)
    return about(
        "E16", (n, 1, 1, n, d, d), f"for all {reals(*small)}: in zeros of order (2, 4, 4), "
        "σ(XAXᵀ/√4)XV begins with σ(XAXᵀ)XV", program, small, Algebra.attention, layout=layout,
    )  # fmt: skip


ERRATA = {
    erratum.number: erratum
    for erratum in (
        Erratum("E1", "Listing 2", _softmax_listing, ("softmax", (3, 2))),
        Erratum("E2", "Listing 5", _maxmin_listing, ("maxmin", (2,))),
        Erratum("E3", "Listing 6", _match2_listing, ("match2", (2, 5))),
        Erratum("E6", "Algorithm 3", _algorithm_3, ("matmul", (2, 2, 3))),
        Erratum("E7", "Algorithm 2", _algorithm_2, ("softmax", (2, 3))),
        Erratum("E11", "shift, its matrix", _shift_matrix, ("shift", (5, 2))),
        Erratum("E15", "Corollary hierarchy", _zero_padding, ("hierarchy", (1, 1, 1, 2, 1, 1))),
        Erratum("E16", "Corollary hierarchy, step 3", _square_root, ("hierarchy", (2, 1, 1, 2, 4, 4))),
    )
}
