"""Certificates of true and false claims, changed at random with the digest mended.

None of a false claim is accepted, and what is accepted says what it said before.
"""

from __future__ import annotations

import copy
import json
from functools import cache
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from locum.language.handles import SOp
from locum.verification import Proof, RejectedError, prove
from locum.verification.checker.check import check
from locum.verification.checker.content import sealed, subject_json
from locum.verification.checker.formulas import Formula
from locum.verification.claims.claim import about
from locum.verification.claims.named import claim

CLAIMS = [("groupsort", (2, 2)), ("match2", (2, 3)), ("softmax", (1, 2)), ("inverse", (2,))]
PARTS = ("functions", "polynomials", "trees", "cases")


@cache
def certificate(number: int, true: bool) -> str:
    """A certificate; of a false claim, the trees of the true one with another reference."""
    name, shape = CLAIMS[number]
    proof = prove(name, *shape)
    assert isinstance(proof, Proof)
    content = proof.certificate
    if not true:
        stated = claim(name, *shape)
        wrong = Formula.of(stated.reference) + 1
        inputs = [tuple(x.attribute) for x in stated.inputs]
        false = about(
            name,
            shape,
            SOp(stated.program),
            inputs,
            lambda *_: wrong,
            integer=stated.integer,
            conditions=lambda *_: stated.conditions,
        )
        content = content | subject_json(false.subject)
    return json.dumps(content)


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    result = [here] if here else []
    if isinstance(value, dict):
        for key, part in value.items():
            result += paths(part, (*here, key))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            result += paths(part, (*here, place))
    return result


REPLACEMENTS: st.SearchStrategy[Any] = st.sampled_from(
    [0, 1, -1, 2, 5, "0", "1", "-1/2", "shown", ">", "=", None, [], {}, True]
)


@given(st.integers(0, len(CLAIMS) - 1), st.booleans(), st.data())
def test_mutated_certificates_prove_nothing_else(number: int, true: bool, data: st.DataObject) -> None:
    original = json.loads(certificate(number, true))
    content = copy.deepcopy(original)
    for _ in range(data.draw(st.integers(1, 3))):
        part = data.draw(st.sampled_from(PARTS))
        places = paths(content[part])
        if not places:
            content[part] = data.draw(REPLACEMENTS)
            continue
        *way, last = data.draw(st.sampled_from(places))
        holder = content[part]
        for step in way:
            holder = holder[step]
        if isinstance(holder, list) and data.draw(st.booleans()):
            del holder[last]
        else:
            holder[last] = data.draw(REPLACEMENTS)
    try:
        checked = check(sealed(content))
    except RejectedError:
        return
    assert true
    assert checked.statement == original["statement"]
