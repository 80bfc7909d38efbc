"""Certificates are accepted; changed certificates that prove nothing are rejected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

import locum
from locum.errors import InputError
from locum.paper.errata import ERRATA
from locum.proofs import Formula, Proof, Refutation, RejectedError, about, check, prove
from tests.verification.forger import forge

CLAIMS = [
    ("matmul", (2, 2, 2)),
    ("softmax", (1, 3)),
    ("relu", (2,)),
    ("groupsort", (3, 3)),
    ("inverse", (2,)),
    ("match2", (2, 3)),
    ("attention", (2, 1, 1)),
    ("encoder", (2, 1, 1, 1, 1)),
]


def certificate(name: str, shape: tuple[int, ...]) -> Any:
    return json.loads(written(name, shape))


@cache
def written(name: str, shape: tuple[int, ...]) -> str:
    verdict = prove(name, *shape)
    assert isinstance(verdict, Proof)
    return json.dumps(verdict.certificate)


@pytest.mark.parametrize(("name", "shape"), CLAIMS)
def test_certificates_are_accepted(name: str, shape: tuple[int, ...]) -> None:
    content = certificate(name, shape)
    assert check(content).cases == str(content["trees"]).count("shown")


def numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to all numbers in a certificate, those in strings that are coefficients included."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from numbers(part, (*path, key))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from numbers(part, (*path, place))
    elif type(value) in (int, float) or (isinstance(value, str) and value.lstrip("-").isdigit()):
        yield path


def changed(content: Any, path: tuple[Any, ...]) -> Any:
    result = json.loads(json.dumps(content))
    *way, last = path
    part = result
    for step in way:
        part = part[step]
    part[last] = str(int(part[last]) + 1) if isinstance(part[last], str) else part[last] + 1
    return result


@pytest.mark.parametrize(("name", "shape"), CLAIMS)
def test_a_changed_number_changes_the_claim_or_is_noticed(name: str, shape: tuple[int, ...]) -> None:
    """A forger can at most write another valid proof of the same claim: questions and hints."""
    content = certificate(name, shape)
    rejected = 0
    for path in numbers(content):
        try:
            check(changed(content, path))
        except RejectedError:
            rejected += 1
        else:
            assert path[0] in ("questions", "trees"), path
    assert rejected > 10


def test_a_missing_case_is_noticed() -> None:
    content = certificate("groupsort", (2, 2))
    content["trees"][0]["cases"]["answers"].pop()
    with pytest.raises(RejectedError, match="a child for each answer"):
        check(content)


def test_a_possible_case_cannot_be_called_impossible() -> None:
    content = certificate("groupsort", (2, 2))
    content["trees"][0]["cases"]["answers"][0] = {"impossible": [[0, 1]]}
    with pytest.raises(RejectedError, match="marked as impossible"):
        check(content)


def test_a_missing_tree_is_noticed() -> None:
    content = certificate("groupsort", (2, 2))
    content["trees"].pop()
    with pytest.raises(RejectedError, match="does not prove"):
        check(content)


def test_a_branch_without_answers_is_not_a_proof_of_listing_6() -> None:
    """A modulus of 0 has no remainders, and so had no cases left to show."""
    refutable = ERRATA["E3"].refutable
    assert refutable is not None
    stated = refutable.claim()
    nothing = {"remainder": 0, "modulus": 0, "answers": []}
    for modulus in (0, -1, True, 1.0, "5", None):
        tree = {"entries": [0, 1], "cases": {**nothing, "modulus": modulus}}
        with pytest.raises(RejectedError, match="modulus"):
            check(forge(stated, [tree]), stated)


def test_an_entry_that_is_never_compared_rejects() -> None:
    """All cases of a tree contradict one another: nothing is left to compare."""
    x = locum.tokens
    stated = about("x", (1,), x + 1, [("s", 1, 1)], lambda s: s)
    impossible = {"impossible": [[0, 1]]}
    tree = {"sign": "=", "of": 0, "answers": [impossible, impossible]}
    with pytest.raises(RejectedError):
        check(forge(stated, [{"entries": [0], "cases": tree}], [Formula.constant(1)]))


def test_conditions_are_part_of_the_certificate() -> None:
    """Without its condition the sentence is another one, and a false one."""
    x = locum.tokens
    stated = about("one", (1,), x / x, [("s", 1, 1)], lambda s: [[1]], conditions=lambda s: [(s, "!=")])
    proof = prove(stated)
    assert isinstance(proof, Proof)
    assert "with s ≠ 0" in proof.statement
    content = json.loads(json.dumps(proof.certificate))
    content["formulas"]["roots"].pop()
    content["relations"].pop()
    with pytest.raises(RejectedError, match="does not determine the value"):
        check(content)


def test_a_statement_is_generated_and_cannot_be_chosen() -> None:
    x = locum.tokens
    with pytest.raises(TypeError):
        about("x", (1,), "P = NP", x, [("s", 1, 1)], lambda s: s)  # type: ignore[arg-type, call-arg]
    for name in ("P", "I", "I_2", "X ∈ ℝ: P = NP, x", "", "1x", "a" * 13):
        with pytest.raises(locum.InputError):
            about("x", (1,), x, [(name, 1, 1)], lambda s: s)
    proof = prove(about("P = NP", (1,), x, [("s", 1, 1)], lambda s: s))
    assert isinstance(proof, Proof)
    assert "NP" not in check(proof.certificate).statement
    content = {**proof.certificate, "statement": "P = NP"}
    with pytest.raises(RejectedError, match="no other fields"):
        check(content)


def test_a_name_is_only_said_of_its_own_program() -> None:
    content = certificate("transpose", (2, 2))
    content["claim"]["name"] = "matmul"
    content["claim"]["shape"] = [1, 2, 2]
    with pytest.raises(RejectedError, match="about the claim matmul"):
        check(content)


def test_no_two_claims_have_one_sentence() -> None:
    """Corollary hierarchy as corrected is proven, E15 is refuted: they must not read alike."""
    refutable = ERRATA["E15"].refutable
    assert refutable is not None
    proven, refuted = prove("hierarchy", 1, 1, 1, 2, 2, 2), prove(refutable.claim())
    assert proven.holds is True
    assert refuted.holds is False
    assert proven.statement != refuted.statement
    assert proven.statement.split(", where")[0] != refuted.statement.split(", where")[0]


def test_refutations_are_files_that_can_be_checked() -> None:
    for number, erratum in ERRATA.items():
        if erratum.refutable is None:
            continue
        verdict = prove(erratum.refutable.claim())
        assert isinstance(verdict, Refutation), number
        content = json.loads(json.dumps(verdict.certificate))
        assert check(content).statement == verdict.statement
        content["entries"] = ["0"] * len(content["entries"])
        content["entries"][-1] = "1/0"
        with pytest.raises(RejectedError, match="rational number"):
            check(content)


def test_numbers_that_do_not_refute_are_rejected() -> None:
    x = locum.tokens
    refuted = prove(about("x", (1,), locum.where(x == 5, 0, x), [("s", 1, 1)], lambda s: s))
    assert isinstance(refuted, Refutation)
    content = {**refuted.certificate, "entries": ["4"]}
    with pytest.raises(RejectedError, match="do not show that the program and the reference differ"):
        check(content)


@pytest.mark.parametrize("content", [None, [], {}, {"format": "locum certificate 2"}])
def test_what_is_not_a_certificate(content: Any) -> None:
    with pytest.raises(RejectedError):
        check(content)


def test_a_float_in_a_formula_is_refused_in_words() -> None:
    with pytest.raises(InputError, match=r"expected a formula, an integer, a Fraction.* got 0\.3"):
        about("c", (2,), locum.tokens * 2, [("s", 1, 2)], lambda s: s * 0.3)


@pytest.mark.parametrize("value", ["ab", ["a"], [[1, "a"]]])
def test_a_string_in_a_formula_is_rejected(value: Any) -> None:
    with pytest.raises(InputError, match="expected a formula, an integer, a Fraction"):
        Formula.of(value)


def test_no_two_formulas_have_one_text() -> None:
    """e·x·p(A + B) read as exp(A + B), 5·1·A as 5A, |A|·B·|C| as |A|B|C|, 2·3 as 23."""
    a, b, c, e, x, p = (Formula.input(name, 2, 2) for name in "ABCexp")
    named, row = Formula.input("exp", 2, 2), Formula.input("R", 1, 2)
    formulas = {
        e @ x @ p @ (a + b): "e·x·p·(A + B)",
        (a + b).exp(): "exp(A + B)",
        named @ (a + b): "exp·(A + B)",
        abs(a @ abs(b) @ c): "abs(A·|B|·C)",
        abs(a) @ b @ abs(c): "|A|·B·|C|",
        Formula.constant(5, 2, 2) @ a: "5_{2×2}A",
        a * 5: "A ⊙ 5",
        a.determinant() @ row: "(det A)R",
        Formula.constant(2) @ Formula.constant(3): "2·3",
        (a @ a.T).softmax() @ a: "σ(AAᵀ)A",
    }
    for formula, text in formulas.items():
        assert str(formula) == text


def test_what_is_not_checked_cannot_stand_in_a_file() -> None:
    content = certificate("transpose", (2, 2))
    for change in ({"remark": "P = NP"}, {"claim": content["claim"] | {"title": "P = NP"}}):
        with pytest.raises(RejectedError, match="expected"):
            check(content | change)
    content = certificate("relu", (2,))
    content["formulas"]["table"].append(["constant", [], ["\u0663", 1, 2]])
    content["formulas"]["roots"] = [len(content["formulas"]["table"]) - 1]
    with pytest.raises(RejectedError, match="expected a rational number"):
        check(content)


def test_sentences_that_mean_different_things_are_different() -> None:
    two, three = (Formula.identity(n).softmax()[0, 0] for n in (2, 3))
    assert str(two) != str(three)
    x = Formula.input("X", 2, 1)
    assert str(x @ Formula.of([[0, 1]])) == "X·[0, 1]"
    assert str(x[0, 0]) == "X[0,0]"


def test_a_reference_has_a_value_in_all_its_parts() -> None:
    """1/s has no value at 0, although it is not the entry that is read."""
    beside = about(
        "beside", (1,), locum.tokens, [("s", 1, 1)], lambda s: Formula.beside(1 / s, s)[0, 1]
    )
    assert not isinstance(prove(beside), Proof)
