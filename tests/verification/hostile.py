"""Certificates that are malformed, or that need much time or memory: deep, wide, long, multiplied out.

``test_hostile.py`` checks a sample; ``benchmarks/bench_checker.py`` measures all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import locum
from locum.proofs import Proof, about, prove
from locum.proofs.checker.check import CERTIFICATE
from locum.proofs.claims.claim import Claim
from locum.proofs.claims.formula import Formula, from_json, to_json

Change = Callable[[Any], Any]
Tree = Any


def certificate(name: str = "groupsort") -> Any:
    """An honest certificate, as it is read from a file."""
    return json.loads(_certificate(name))


@cache
def _certificate(name: str) -> str:
    proof = prove(name, 2, 2)
    assert isinstance(proof, Proof)
    return json.dumps(proof.certificate)


#: A leaf without hints.
SHOWN: dict[str, list[Any]] = {"shown": []}


def about_claim(claimed: Claim) -> Any:
    """A certificate without cases."""
    entries = list(range(sum(map(len, claimed.places))))
    proof = {"questions": to_json(), "trees": [{"entries": entries, "cases": SHOWN}]}
    return {"format": CERTIFICATE, "claim": claimed.label, **claimed.content, **proof}


def about_program(program: Callable[[], locum.SOp], count: int) -> Change:
    """A certificate about another program; it is made when it is asked for."""
    return lambda _: about_claim(about("x", (count,), program(), [("s", 1, count)], lambda s: s * 0))


def about_formula(table: list[Any]) -> Change:
    """A certificate that the tokens are what a large formula gives."""

    def changed(_: Any) -> Any:
        (formula,) = from_json({"table": table, "roots": [len(table) - 1]})
        return about_claim(about("x", (2,), locum.tokens, [("X", 1, 2)], lambda _: formula))

    return changed


def with_question(*table: Any) -> Change:
    """The honest certificate with another question."""
    return lambda c: c | {"questions": {"table": table, "roots": [len(table) - 1]}}


def with_formulas(table: list[Any]) -> Change:
    """The honest certificate with another reference."""
    return lambda c: c | {"formulas": {"table": table, "roots": [len(table) - 1]}, "relations": []}


def with_trees(*trees: Tree) -> Change:
    """A certificate whose one case is split again and again: every leaf of it holds."""
    shown = [{"entries": [0, 1, 2, 3], "cases": tree} for tree in trees]
    question = to_json(Formula.input("X", 2, 2)[0, 0])
    return lambda _: certificate("transpose") | {"questions": question, "trees": shown}


def squared(program: locum.SOp, times: int) -> locum.SOp:
    """A program, squared again and again."""
    for _ in range(times):
        program = program * program
    return program


def chain(length: int) -> list[Any]:
    """x + x, doubled again and again: written out it has 2^length letters."""
    rows: list[Any] = [["input", [], ["X", 1, 2]]]
    return rows + [["add", [n, n], None] for n in range(length)]


def long_sum(length: int) -> list[Any]:
    """x + x + x + …, every partial sum a row of the table."""
    rows: list[Any] = [["input", [], ["X", 1, 2]]]
    return rows + [["add", [n, 0], None] for n in range(length)]


def cofactors(count: int) -> list[Any]:
    """Cofactors of cofactors of … a matrix of numbers."""
    rows: list[Any] = [["constant", [], ["1/3", 8, 8]], ["identity", [], 8], ["add", [0, 1], None]]
    rows += [["cofactors", [2 + n], None] for n in range(count)]
    last = len(rows)
    return [*rows, ["entry", [last - 1], [0, 0]], ["beside", [last, last], None]]


def full(levels: int) -> Tree:
    """A tree of 2^levels leaves, all of them one object."""
    tree: Tree = SHOWN
    for _ in range(levels):
        tree = {"sign": ">", "of": 0, "answers": [tree, tree]}
    return tree


def total(count: int, part: Callable[[int], locum.SOp]) -> locum.SOp:
    """part(1) + part(2) + …"""
    return sum((part(n) for n in range(1, count + 1)), locum.tokens)


def everything(program: locum.SOp) -> locum.SOp:
    """The mean over all positions."""
    return locum.aggregate(locum.select(locum.indices, locum.indices, "<=") | _later(), program)


def _later() -> locum.Selector:
    return locum.select(locum.indices, locum.indices, ">")


#: Rejected because the format or the proof is wrong.
MALFORMED: dict[str, Change] = {
    "a number 1/0": with_question(["constant", [], ["1/0", 1, 1]]),
    "a number in other digits": with_question(["constant", [], ["\u0663", 1, 1]]),
    "a number of a million digits": with_question(["constant", [], ["9" * 10**6, 1, 1]]),
    "a question without a value": with_question(
        ["constant", [], ["0", 1, 1]], ["divide", [0, 0], None]
    ),
    "a question about a later row": with_question(["negate", [0], None]),
    "a question about a matrix": with_question(["input", [], ["X", 1, 2]]),
    "a question about an unknown matrix": with_question(["input", [], ["Y", 1, 1]]),
    "a negative token": lambda c: c | {"tokens": [[0, -1, 0], [0, 0, 1]]},
    "a negative place": lambda c: c | {"places": [[-1, 0]]},
    "no places": lambda c: c | {"places": [], "trees": [{"entries": [], "cases": {"impossible": []}}]},
    "no trees": lambda c: c | {"trees": []},
    "a negative entry": lambda c: c | {"trees": [{"entries": [-1, 0], "cases": SHOWN}]},
    "a sign and a remainder": lambda c: (
        c
        | {
            "domain": "integer",
            "trees": [
                {
                    "entries": [0, 1],
                    "cases": {"sign": "", "of": 0, "remainder": 0, "modulus": 1, "answers": [SHOWN]},
                }
            ],
        }
    ),
    "a bound of a float": lambda c: (
        c | {"trees": [{"entries": [0, 1], "cases": {"impossible": [[0, 1.0], [0, -1.0]]}}]}
    ),
    "a large determinant": lambda c: (
        c
        | {
            "inputs": [["X", 30, 30]],
            "formulas": {
                "table": [["input", [], ["X", 30, 30]], ["determinant", [0], None]],
                "roots": [1],
            },
        }
    ),
}

x = locum.tokens
#: Rejected because they need more than the limits.
LABORIOUS: dict[str, Change] = {
    "a shape of 10^7": lambda c: c | {"inputs": [["X", 1, 10**7]]},
    "10^6 tokens": lambda c: c | {"tokens": [0] * 10**6},
    "a full tree of 2^16 cases": with_trees(full(16)),
    "100,000 trees": with_trees(*[SHOWN] * 100_000),
    "a sum of 60,000 letters, piece by piece": with_formulas(long_sum(15_000)),
    "cofactors of cofactors": about_formula(cofactors(400)),
    "a root of degree 2^24": about_program(lambda: locum.constant(3) ** 2.0**-24 - x, 1),
    "a root of degree 2^40": about_program(lambda: locum.constant(3) ** 2.0**-40 - x, 1),
    "a power squared again and again": about_program(
        lambda: squared(locum.constant(3) ** 10_000 + 0 * x, 30), 1
    ),
    "coefficients squared again and again": about_program(
        lambda: squared(locum.constant(3) ** 10_000 * x, 10), 1
    ),
    "a sum of a hundred entries, squared again and again": about_program(
        lambda: squared(everything(x), 6), 100
    ),
    "a sum of 2,000 entries, squared": about_program(lambda: squared(everything(x), 1), 2000),
    "sums of powers multiplied out": about_program(
        lambda: squared(everything(x) + everything(x * x) + everything(locum.exp(x)), 4), 6
    ),
    "products of many different sums": about_program(
        lambda: total(40, lambda n: squared(everything(x * n + x * x), 2) * everything(x * x * n)), 8
    ),
    "a denominator for every position": about_program(lambda: everything(1 / (locum.exp(x) + 1)), 40),
    "a hundred logarithms": about_program(
        lambda: total(100, lambda n: locum.log(locum.constant(1e300 / n))), 1
    ),
    "exponentials of large numbers": about_program(
        lambda: total(200, lambda n: locum.exp(locum.constant(9_000 + 0.3 * n))), 1
    ),
    "square roots of long numbers": about_program(
        lambda: total(100, lambda n: locum.sqrt(locum.constant(3) ** 9_999 + n)), 1
    ),
    "error functions of long numbers": about_program(
        lambda: total(100, lambda n: locum.erf(locum.constant(3) ** -9_000 + n)), 1
    ),
    "long fractions": about_program(
        lambda: (
            total(400, lambda n: locum.constant(3) ** -4_000 / (locum.constant(7) ** 3_000 + n)) - x
        ),
        4,
    ),
    "comparisons of 2,000 entries": about_program(
        lambda: locum.selector_width(locum.select(x, x, "<")) + 0 * x, 2000
    ),
    "1,500 scores, one greatest": about_program(
        lambda: locum.aggregate(locum.best(locum.select(locum.indices, locum.indices, "<="), x), x),
        1500,
    ),
    "patterns of 2,000 positions": about_program(
        lambda: total(
            30,
            lambda n: locum.selector_width(locum.select(locum.indices, locum.indices * n, "<")),
        ),
        2000,
    ),
    "a table of 5,000 entries": about_program(
        lambda: total(
            20, lambda n: locum.lookup(locum.indices + n, {k: 5_000 - k for k in range(5_000)})
        ),
        50,
    ),
}
