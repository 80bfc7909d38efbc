"""Tracr's programs with what its interpreter answers: by dense execution, and by compiled weights.

``null`` is RASP's None, which Tracr holds where an aggregate selects nothing, and wherever a function
is given None. Our aggregates have a default instead: the programs have ``""`` there, which compares
unequal to every token. So where the corpus has ``null``, strings must be ``""`` and booleans False.

``causal`` entries are run by Tracr under a causal mask, which no program sees. Here the mask is part
of the program: every selector of it is intersected with ``select(indices, indices, <=)``.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from locum import SOp
from locum.graph import Node
from locum.networks import compiler
from locum.networks.transformer import CompiledTransformer
from tests.tracr_programs import LIBRARY, PROGRAMS, causal

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("tracr.json").read_text("utf-8"))


def same(actual: list[Any], expected: list[Any]) -> bool:
    """Equal, floats up to a rounding; null is our default."""
    return len(actual) == len(expected) and all(map(_same, actual, expected))


def _same(actual: Any, expected: Any) -> bool:
    if expected is None:
        return actual == "" or actual is False
    if isinstance(expected, str) or isinstance(actual, str):
        return bool(actual == expected)
    return math.isclose(actual, expected, rel_tol=0, abs_tol=1e-12)


def _program(case: dict[str, Any]) -> SOp:
    plain = PROGRAMS[case["program"]](case["max_len"])
    return causal(plain) if case["causal"] else plain


@cache
def _compiled(
    program: Node, length: int, vocabulary: tuple[Any, ...], dtype: str
) -> CompiledTransformer:
    return compiler.compile(
        program, length=length, vocabulary=vocabulary, dtype=dtype, feed_forward="exact"
    )


def _id(case: dict[str, Any]) -> str:
    name = f"{case['program']}-{''.join(map(str, case['input']))}"
    return f"{name}-causal" if case["causal"] else name


@pytest.mark.parametrize("case", CASES, ids=_id)
def test_dense_and_compiled_answer_as_tracr_does(case: dict[str, Any]) -> None:
    sop = _program(case)
    assert same(sop(case["input"]), case["output"])
    model = _compiled(sop.node, case["max_len"], tuple(case["vocab"]), "float64")
    assert same(model(case["input"]), case["output"])


def test_every_program_is_in_the_corpus() -> None:
    assert {case["program"] for case in CASES} == set(PROGRAMS)


def test_the_mask_matters_where_a_program_looks_ahead() -> None:
    width = PROGRAMS["selector_width"](5)
    assert width("abcd") == [4, 4, 4, 4]
    assert causal(width)("abcd") == [1, 2, 3, 4]


@pytest.mark.parametrize("case", [c for c in CASES if c["program"] in LIBRARY][::5], ids=_id)
def test_float32_answers_as_tracr_does(case: dict[str, Any]) -> None:
    sop = _program(case)
    model = _compiled(sop.node, case["max_len"], tuple(case["vocab"]), "float32")
    for actual, expected in zip(model(case["input"]), sop(case["input"]), strict=True):
        assert actual == expected or math.isclose(actual, expected, rel_tol=0, abs_tol=1e-6)
