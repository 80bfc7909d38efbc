"""The corpus: programs with what Weiss's RASP answers, and what we answer.

``LOCUM_RASP_CORPUS`` may name another file of the same form (objects with ``name``, ``source``,
``input``, ``output`` and ``printed``); ours is beside this file.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from locum.rasp import Result, Session, architecture

CORPUS = Path(os.environ.get("LOCUM_RASP_CORPUS") or Path(__file__).with_name("rasp.json"))
CASES: list[dict[str, Any]] = json.loads(CORPUS.read_text(encoding="utf-8"))

#: Errors there, values here: our extensions (docs/language.md), and bugs not copied.
EXTENSIONS = {
    ".5;": "leading dots",
    "1e5;": "exponents",
    "indices # mid\n;": "comments anywhere",
    "def f(x){ return x; } f(3);": "several statements on a line",
    "(indices*2)[1];": "an index after brackets",
    "indices!=1;": "!= as an operator",
    "1; 2;": "several statements on a line",
    "a=1;b=2;": "several statements on a line",
    "def f(x){return x+tokens_int;}\nf(1)([1,2]);": "what is only built is not run",
}

#: Another error first: ``1([1,2])`` cannot be built; Weiss runs ``tokens_int`` on "hello" before that.
OTHER_ERROR = {"error-188": "not-callable"}

#: Syntax errors here, input without an end there.
NEVER_FINISHED = {"1 2 3;", "f(,1);"}

#: Texts that depend on what the session which recorded the corpus had done before, or lose a key.
PRINTED_DIFFERENTLY = {"def-008", "atoms-014"}


def run(case: dict[str, Any]) -> Result:
    return Session(example=case["input"]).execute(case["source"])[-1]


def same(actual: Any, expected: Any) -> bool:
    """Equality that tells 1, 1.0 and True apart, with a little room for floats."""
    if isinstance(expected, list):
        return len(actual) == len(expected) and all(map(same, actual, expected))
    if isinstance(expected, dict):
        return all(name in actual and same(actual[name], part) for name, part in expected.items())
    if isinstance(expected, float) and isinstance(actual, float):
        return math.isclose(actual, expected, rel_tol=1e-12)
    return type(actual) is type(expected) and bool(actual == expected)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    expected, actual = case["output"], run(case)
    if case["source"] in EXTENSIONS:
        assert actual.kind != "error"
    elif case["source"] in NEVER_FINISHED:
        assert (actual.kind, actual.category) == ("error", "syntax")
    elif expected["kind"] == "error":
        category = OTHER_ERROR.get(case["name"], expected["category"])
        assert (actual.kind, actual.category) == ("error", category)
        assert actual.message
        assert actual.line is not None
    elif expected["kind"] == "analysis":
        assert actual.node is not None
        size = architecture(actual.node)
        assert size.layers == expected["layers"]
        assert all(
            ours <= theirs for ours, theirs in zip(size.heads, expected["heads_per_layer"], strict=True)
        )
    else:
        assert same(actual.to_dict(), expected)
        if case["name"] not in PRINTED_DIFFERENTLY:
            assert actual.printed == case["printed"]


def test_heads_differ_only_where_selectors_are_said_twice() -> None:
    """Two listings say one selector twice; everywhere else our counts are Weiss's."""
    fewer = {
        case["name"]
        for case in CASES
        if case["output"]["kind"] == "analysis"
        and architecture(run(case).node).heads != case["output"]["heads_per_layer"]  # type: ignore[arg-type]
    }
    assert fewer <= {"analysis-037", "analysis-041"}  # MaxMinSort; Cofactor()/Det(Cofactor())
