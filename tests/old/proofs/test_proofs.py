"""Claims proven for all inputs; limits are honest; broken constructions are refuted."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import locum
from locum.graph import dumps, loads
from locum.proofs import FAMILIES, Claim, Formula, Proof, Refutation, Unproven, about, claim, prove
from locum.proofs.prover import booleans
from locum.proofs.prover.proof import NotProvenError, Prover
from locum.proofs.prover.refute import looks_wrong

#: Claims of the paper at small shapes: name, shape and recipe.
PROVEN: list[tuple[str, tuple[int, ...], str | None]] = [
    ("positions", (2, 3), None),
    ("positions", (3, 2), None),
    ("summed", (5,), None),
    ("summed", (6,), None),
    ("transpose", (5, 2), "paper"),
    ("softmax", (4, 3), "plain"),
    ("softmax", (4, 3), "stable"),
    ("softmax", (2, 3), None),
    ("matmul", (4, 2, 1), "paper"),
    ("matmul", (2, 2, 3), None),
    ("relu", (7,), "maxmin"),
    ("groupsort", (4, 2), None),
    ("groupsort", (3, 3), None),
    ("maxmin", (6,), "paper"),
    ("maxmin", (2,), None),
    ("shift", (5, 1), None),
    ("shift", (5, 2), None),
    ("identify", (5, 1, 1), None),
    ("multihead_transpose", (3, 2, 2), None),
    ("multihead_matmul", (1, 2, 2, 2), None),
    ("cofactor", (4,), None),
    ("determinant", (4,), "paper"),
    ("inverse", (4,), "cofactor"),
    ("inverse", (3,), "paper"),
    ("match2", (2, 3), None),
    ("match2", (2, 5), None),
    ("layer_norm", (2, 3), None),
    ("layer_norm", (3, 4), None),
    ("attention", (3, 2, 2), "tiled"),
    ("attention", (3, 2, 2), "width-1"),
    ("attention", (3, 2, 2), "paper"),
    ("attention", (2, 2, 2), "inverse"),
    ("normed_encoder", (2, 3, 2), "post"),
    ("normed_encoder", (2, 3, 2), "pre"),
    ("encoder", (2, 2, 2, 2, 2), None),
    ("hard_attention", (2, 2, 2), None),
    ("hard_attention", (3, 2, 2), None),
    ("linformer", (2, 2, 2), None),
    ("linear", (2, 2, 2), None),
    ("performer", (3, 2, 2), None),
    ("sumformer", (2, 2, 2), None),
    ("hierarchy", (1, 1, 1, 2, 2, 2), None),
    ("hierarchy", (2, 2, 2, 2, 4, 4), None),
    ("multihead_attention", (2, 2, 2, 2), None),
    ("multihead_encoder", (2, 2, 2, 1, 2, 2), None),
    # A simulator of one head has no W_O by default.
    ("multihead_encoder", (1, 2, 1, 1, 1, 1), None),
    ("decoder", (2, 2, 2, 1), "post"),
    ("decoder", (2, 2, 2, 1), "pre"),
    ("cross_attention", (2, 3, 2, 2), None),
    ("causal_attention", (2, 2, 2), None),
]


@pytest.mark.parametrize(("name", "shape", "recipe"), PROVEN)
def test_claims_of_the_paper_are_proven(name: str, shape: tuple[int, ...], recipe: str | None) -> None:
    verdict = prove(name, *shape, recipe=recipe)
    assert isinstance(verdict, Proof), str(verdict)


def test_every_named_claim_is_proven() -> None:
    assert {name for name, _, _ in PROVEN} == set(FAMILIES)


def test_a_proof_in_words() -> None:
    assert str(prove("match2", 2, 3)).startswith(
        "Proven for all integer inputs: match2 2 3 = Match₂(s) modulo p\n(16 cases, "
    )
    assert str(prove("layer_norm", 1, 2)).startswith("Proven for all real inputs that meet the cond")
    assert prove("softmax", 1, 2).to_dict()["formula"] == "σ(X)"


def test_a_stable_softmax_needs_no_cases() -> None:
    """What is subtracted cancels, whichever score is greatest: one case, whatever the order."""
    for order in ((2, 2, 2), (3, 3, 3), (5, 2, 2)):
        verdict = prove("attention", *order)
        assert isinstance(verdict, Proof)
        assert verdict.cases == 1


def mutants(original: Claim) -> list[Claim]:
    """The claim about programs in which one integer is one more."""
    text = json.loads(dumps(original.program))
    result = []
    for row in range(len(text["nodes"])):
        node = text["nodes"][row]
        if node[0] == "constant" and type(node[2]["value"]) is int:
            changed = json.loads(json.dumps(text))
            changed["nodes"][row][2]["value"] += 1
            result.append(replace(original, program=loads(json.dumps(changed)), names={}))
    return result


BROKEN = [
    ("transpose", (2, 3), "paper"),
    ("softmax", (2, 2), "plain"),
    ("softmax", (2, 2), "stable"),
    ("matmul", (2, 2, 2), "paper"),
    ("matmul", (2, 2, 2), "fetch"),
    ("matmul", (2, 2, 2), "tiled"),
    ("relu", (3,), "feed-forward"),
    ("relu", (2,), "maxmin"),
    ("maxmin", (4,), "partner"),
    ("maxmin", (4,), "paper"),
    ("groupsort", (4, 2), None),
    ("cofactor", (3,), None),
    ("determinant", (3,), "frugal"),
    ("determinant", (3,), "paper"),
    ("inverse", (2,), "cofactor"),
    ("identify", (5, 2, 2), None),
    ("shift", (5, 2), None),
    ("multihead_transpose", (2, 2, 2), None),
    ("multihead_matmul", (2, 2, 2, 2), None),
    ("match2", (2, 3), None),
    ("attention", (2, 2, 1), "fetch"),
    ("encoder", (2, 1, 1, 1, 1), None),
    ("multihead_attention", (2, 2, 1, 1), None),
    ("linformer", (2, 1, 1), None),
    ("linear", (2, 2, 1), None),
    ("hierarchy", (1, 1, 1, 2, 1, 1), None),
]


@pytest.mark.parametrize(("name", "shape", "recipe"), BROKEN)
def test_a_construction_with_one_index_off_is_refuted(
    name: str, shape: tuple[int, ...], recipe: str | None
) -> None:
    """And a changed program that is still proven gives the same numbers as before."""
    original = claim(name, *shape, recipe=recipe)
    refuted = 0
    chance = np.random.default_rng(0)
    for mutant in mutants(original)[:6]:
        verdict = prove(mutant, seconds=20)
        refuted += isinstance(verdict, Refutation)
        if isinstance(verdict, Proof):
            for _ in range(5):
                entries = chance.integers(-3, 4, size=len(mutant.entries)).tolist()
                assert not looks_wrong(mutant, entries)
    assert refuted


def test_limits_are_honest() -> None:
    limits = ({"seconds": 0.05}, (6, 6, 6), "0.05 seconds"), ({"terms": 3}, (3, 2, 2), "3 terms")
    for options, shape, words in limits:
        verdict = prove("attention", *shape, **options)
        assert isinstance(verdict, Unproven)
        assert verdict.holds is None
        assert f"is not proven within {words}" in str(verdict)


def test_proof_search_is_limited_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    # In a new process: this one may have freed memory, which it then uses again.
    measure = (
        "from locum.proofs.prover.booleans import memory_in_use; before = memory_in_use(); "
        "held = b'x' * 10**8; print(memory_in_use() > before + 50 or before == 0.0)"
    )
    assert subprocess.check_output([sys.executable, "-c", measure], text=True).strip() == "True"
    # A search may fit into memory that earlier tests have freed; count up instead.
    megabytes = itertools.count()
    monkeypatch.setattr(booleans, "memory_in_use", lambda: float(next(megabytes)))
    verdict = prove("attention", 3, 2, 2, megabytes=1)
    assert verdict.holds is None
    assert "is not proven within 1 MB of memory" in str(verdict)


def test_progress_is_told() -> None:
    told: list[tuple[int, int, int]] = []
    prove("softmax", 2, 2, progress=lambda *numbers: told.append(numbers))
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert told[-1][0] == told[-1][1]


def test_a_claim_of_ones_own() -> None:
    square = locum.tokens * locum.tokens
    right = about("square", (2,), square, [("s", 1, 2)], lambda s: s * s)
    assert prove(right).holds is True
    refuted = prove(about("double", (2,), square, [("s", 1, 2)], lambda s: s + s))
    assert isinstance(refuted, Refutation)
    assert refuted.refuted.found != refuted.refuted.expected


def test_division_by_what_may_be_zero_is_not_a_proof() -> None:
    """x / x is 1, but for x = 0 the program has no value; a branch not taken does not help."""
    quotient = locum.tokens / locum.tokens
    stated = about("one", (1,), quotient, [("s", 1, 1)], lambda s: [[1]])
    refuted = prove(stated)
    assert isinstance(refuted, Refutation)
    assert refuted.entries == (0,)
    guarded = locum.where(locum.tokens == 0, 1, quotient)
    assert isinstance(prove(replace(stated, program=guarded.node)), Refutation)
    safe = locum.where(
        locum.tokens == 0, 1, locum.tokens / locum.where(locum.tokens == 0, 1, locum.tokens)
    )
    assert prove(replace(stated, program=safe.node)).holds


def test_ties_are_cases_of_their_own() -> None:
    """At x = y the two branches differ as formulas, not as numbers."""
    x = locum.tokens
    first = locum.aggregate(locum.select(locum.indices, 0, "=="), x)
    second = locum.aggregate(locum.select(locum.indices, 1, "=="), x)
    program = locum.where(first == second, second, first)
    stated = about("first", (2,), program, [("s", 1, 2)], lambda s: [[s[0, 0], s[0, 0]]])
    assert prove(stated).holds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope", 2), "expected the name of a claim, got 'nope'"),
        (("matmul", 2), "matmul takes r k c"),
        (("matmul", 2, 2, 0), "expected 3 positive integers"),
    ],
)
def test_bad_claims(arguments: tuple[str, int], message: str) -> None:
    with pytest.raises(locum.InputError, match=message):
        prove(*arguments)


def test_a_name_takes_no_work_that_its_shape_does_not_show() -> None:
    """The formula of ``cofactor 9`` took minutes."""
    with pytest.raises(locum.InputError, match="expected an order up to 7, got 9"):
        claim("cofactor", 9)


@pytest.mark.parametrize("value", [0.3, "ab", ["a"], [[1, "a"]]])
def test_a_reference_consists_of_formulas_and_rational_numbers(value: Any) -> None:
    with pytest.raises(locum.InputError, match="expected a formula, an integer, a Fraction"):
        about("own", (2,), locum.tokens, [("s", 1, 2)], lambda s: value)


@pytest.mark.parametrize(
    "conditions", [None, [1], [("s", ">")], (Formula.input("s", 1, 2), ">"), "<", ">=", "2x1"]
)
def test_conditions_are_pairs_of_a_number_and_a_relation(conditions: Any) -> None:
    def state(s: Formula) -> Any:
        if conditions == "2x1":
            return [(s, ">")]
        return [(s[0, 0], conditions)] if isinstance(conditions, str) else conditions

    with pytest.raises(locum.InputError, match="conditions: expected a list of pairs of a 1×1 formula"):
        about("own", (2,), locum.tokens, [("s", 1, 2)], lambda s: s, conditions=state)


@pytest.mark.parametrize("token", ["s", 0.5, (0, 0), (1, 0, 0), (0, 1, 0), (0, 0, -1)])
def test_a_layout_contains_integers_and_entries_of_the_inputs(token: Any) -> None:
    with pytest.raises(locum.InputError, match="layout: expected integers and entries"):
        about("own", (2,), locum.tokens, [("s", 1, 2)], lambda s: s, layout=[(0, 0, 0), token])


X, EPSILON = locum.constructions.concatenate(locum.tokens, (2, 2), (1, 1))


@pytest.mark.parametrize(
    ("program", "added"),
    [
        (locum.constructions.layer_norm(X, epsilon=0.0), 0),
        (locum.constructions.rms_norm(X, epsilon=EPSILON), 0),
        (locum.constructions.layer_norm(X, epsilon=EPSILON), 1),
    ],
    ids=["without ε", "without the mean", "another ε"],
)
def test_a_wrong_layer_norm_is_refuted(program: locum.constructions.Matrix, added: int) -> None:
    """A sum of squares is not negative; that must not prove more than it says."""
    claim = about(
        "norm", (2, 2), program, [("X", 2, 2), ("epsilon", 1, 1)],
        lambda x, e: x.layer_norm(e + added), conditions=lambda x, e: [(e, ">")],
    )  # fmt: skip
    assert isinstance(prove(claim), Refutation)


def test_what_could_not_be_shown_is_said_in_a_few_lines() -> None:
    """Functions in functions were written out: the text grew for minutes."""
    x = locum.tokens
    for _ in range(12):
        x = locum.exp(x + locum.exp(x) * x)
    claim = about("tower", (1,), x, [("s", 1, 1)], lambda s: s)
    prover = Prover(claim)
    with pytest.raises(NotProvenError) as caught:
        prover.prove()
    assert len(str(caught.value)) < 5_000
