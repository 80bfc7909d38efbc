"""Certificates that ask for more than any proof does: deep, wide, long, and multiplied out.

``test_hostile.py`` checks that they are rejected in words; ``benchmarks/bench_checker.py`` measures
what that takes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import locum
from locum.verification import Proof, about, prove
from locum.verification.checker.content import subject_json
from locum.verification.checker.formulas import from_json

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


def function(**changes: Any) -> dict[str, Any]:
    """A row of the list of functions: exp of the first entry, or something else."""
    one = [["1", []]]
    row = {"function": "exp", "base": None, "top": [["1", [[0, 1]]]], "bottom": one}
    return row | changes


def about_program(program: Callable[[], locum.SOp], count: int) -> Change:
    """A certificate about another program, without cases; it is made when it is asked for."""
    cases = {"functions": [], "polynomials": [], "cases": 1}
    tree = {"entries": list(range(count)), "cases": "shown"}

    def changed(content: Any) -> Any:
        claimed = about("x", (count,), program(), [("s", 1, count)], lambda s: s * 0)
        return content | subject_json(claimed.subject) | cases | {"trees": [tree]}

    return changed


def about_formula(table: list[Any]) -> Change:
    """A certificate that the tokens are what a large formula gives."""

    def changed(content: Any) -> Any:
        (formula,) = from_json({"table": table, "roots": [len(table) - 1]})
        claimed = about("x", (2,), locum.tokens, [("X", 1, 2)], lambda _: formula)
        cases = {"functions": [], "polynomials": [], "cases": 1}
        tree = {"entries": [0, 1], "cases": "shown"}
        return content | subject_json(claimed.subject) | cases | {"trees": [tree]}

    return changed


def with_formulas(table: list[Any]) -> Change:
    """The honest certificate with another reference."""
    return lambda c: c | {"formulas": {"table": table, "roots": [len(table) - 1]}, "relations": []}


def with_trees(*trees: Tree) -> Change:
    """A certificate whose one case is split again and again: every leaf of it holds."""
    shown = [{"entries": [0, 1, 2, 3], "cases": tree} for tree in trees]
    return lambda _: certificate("transpose") | {"polynomials": [[["1", [[0, 1]]]]], "trees": shown}


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


def deep(levels: int) -> Tree:
    """One question, asked again and again."""
    tree: Tree = "shown"
    for _ in range(levels):
        tree = {"sign": ">", "of": 0, "answers": ["shown", tree]}
    return tree


def full(levels: int) -> Tree:
    """A tree of 2^levels leaves, all of them one object."""
    tree: Tree = "shown"
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


#: Rejected for what they say, without any work.
MALFORMED: dict[str, Change] = {
    "a coefficient 1/0": lambda c: c | {"polynomials": [[["1/0", [[0, 1]]]]]},
    "a coefficient in other digits": lambda c: c | {"polynomials": [[["\u0663", [[0, 1]]]]]},
    "a base 1/0": lambda c: c | {"functions": [function(base="1/0")]},
    "a zero polynomial below": lambda c: c | {"functions": [function(bottom=[])]},
    "a power of 10^8": lambda c: c | {"functions": [function(top=[["1", [[0, 10**8]]]])]},
    "a shape of 10^7": lambda c: c | {"inputs": [["X", 1, 10**7]]},
    "10^6 tokens": lambda c: c | {"tokens": [0] * 10**6},
    "20,000 functions": lambda c: c | {"functions": [function()] * 20_000},
    "a formula of 2^60 letters": with_formulas(chain(60)),
    "a tree of 200 levels": with_trees(deep(200)),
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
    "a number of a million digits": lambda c: c | {"polynomials": [[["9" * 10**6, [[0, 1]]]]]},
}

x = locum.tokens
#: Rejected because they take more than the checker allows.
LABORIOUS: dict[str, Change] = {
    "2,000 functions": lambda c: (
        c
        | {"functions": [function(top=[[str(n + 1), [[0, 1]]], ["1", [[1, 1]]]]) for n in range(2000)]}
    ),
    "2,000 functions of one another": lambda c: (
        c
        | {
            "functions": [
                function(top=[["1", [[k, 1]]] for k in range(n % 300 + 1)]) for n in range(2000)
            ]
        }
    ),
    "a polynomial of 20,000 terms, squared": lambda c: (
        c
        | {
            "functions": [
                function(
                    function="negate",
                    top=[["1", [[0, a + 1], [1, b + 1]]] for a in range(140) for b in range(140)],
                )
            ],
            "polynomials": [[["1", [[2, 2]]]]],
        }
    ),
    "a polynomial of long numbers, squared": lambda c: (
        c
        | {
            "functions": [
                function(
                    function="negate", top=[[str(9**900 + a), [[0, a + 1], [1, 1]]] for a in range(800)]
                )
            ],
            "polynomials": [[["1", [[2, 4]]]]],
        }
    ),
    "a full tree of 2^16 cases": with_trees(full(16)),
    "100,000 trees": with_trees(*["shown"] * 100_000),
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
