"""Tables of programs with the values that others give: by hand, by Weiss's RASP, and by Tracr."""

from __future__ import annotations

import itertools
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import locum
from locum import Selector, SOp
from locum.graph import OPERATIONS, postorder
from locum.rasp import Result, Session, architecture
from tests.cases import CASES, FAILURES, Case, Failure
from tests.tracr_programs import PROGRAMS, causal

FOLDER = Path(__file__).parents[1] / "conformance"
WEISS: list[dict[str, Any]] = json.loads((FOLDER / "rasp.json").read_text("utf-8"))
TRACR: list[dict[str, Any]] = json.loads((FOLDER / "tracr.json").read_text("utf-8"))


def same(found: Any, wanted: Any) -> bool:
    """Return whether values are equal and of the same types, up to the rounding of floats."""
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, dict):
        return all(name in found and same(found[name], value) for name, value in wanted.items())
    if isinstance(wanted, float) and isinstance(found, float):
        return math.isclose(found, wanted, rel_tol=1e-12, abs_tol=1e-15)
    return type(found) is type(wanted) and bool(found == wanted)


@pytest.mark.filterwarnings("ignore")  # the fast executor warns when it runs dense execution
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    """Arrays of the fast executors do not distinguish 1, 1.0 and True."""
    for executor in ("dense", "fast", "auto"):
        found = case.program(case.given, executor=executor)
        if isinstance(case.program, Selector):
            assert found.tolist() == case.expected
        elif executor == "dense":
            assert same(found, case.expected)
        else:
            assert [isinstance(v, str) for v in found] == [isinstance(v, str) for v in case.expected]
            for value, wanted in zip(found, case.expected, strict=True):
                assert value == wanted or math.isclose(value, wanted, rel_tol=1e-12, abs_tol=1e-15)


@pytest.mark.filterwarnings("ignore")  # the fast executor warns when it runs dense execution
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_failure(failure: Failure) -> None:
    for executor in ("dense", "fast", "auto"):
        with pytest.raises(locum.ExecutionError) as caught:
            failure.program(failure.given, executor=executor)
        assert all(words in str(caught.value) for words in failure.words)


def test_the_cases_contain_every_operation() -> None:
    used = {node.op for case in CASES for node in postorder(case.program.node)}
    assert used == {*OPERATIONS}
    names = [row.name for row in (*CASES, *FAILURES)]
    assert len(names) == len({*names})


#: Sources that are errors in Weiss's RASP and have values in Locum (docs/language.md).
EXTENSIONS = {
    ".5;", "1e5;", "indices # mid\n;", "def f(x){ return x; } f(3);", "(indices*2)[1];", "indices!=1;",
    "1; 2;", "a=1;b=2;", "def f(x){return x+tokens_int;}\nf(1)([1,2]);",
}  # fmt: skip
#: Syntax errors in Locum, for which Weiss's RASP waits for further input.
NEVER_FINISHED = {"1 2 3;", "f(,1);"}
#: The first error is another one: Weiss's RASP runs `tokens_int` on "hello" before `1([1,2])`.
OTHER_ERROR = {"error-188": "not-callable"}
#: Texts that depend on the session that recorded the table, or lack a key.
PRINTED_DIFFERENTLY = {"def-008", "atoms-014"}
#: Programs that repeat a selector, which Locum counts once.
FEWER_HEADS = {"analysis-037", "analysis-041"}


def run(case: dict[str, Any]) -> Result:
    """Return the last result of a source."""
    return Session(example=case["input"]).execute(case["source"])[-1]


@pytest.mark.parametrize("case", WEISS, ids=lambda case: case["name"])
def test_weiss(case: dict[str, Any]) -> None:
    """Values with their types, printed texts, categories of errors, layers and heads agree."""
    wanted, found = case["output"], run(case)
    if case["source"] in EXTENSIONS:
        assert found.kind != "error"
    elif case["source"] in NEVER_FINISHED:
        assert (found.kind, found.category) == ("error", "syntax")
    elif wanted["kind"] == "error":
        category = OTHER_ERROR.get(case["name"], wanted["category"])
        assert (found.kind, found.category) == ("error", category)
        assert found.message
        assert found.line is not None
    elif wanted["kind"] == "analysis":
        assert found.node is not None
        size, heads = architecture(found.node), wanted["heads_per_layer"]
        assert size.layers == wanted["layers"]
        if case["name"] in FEWER_HEADS:
            assert all(ours <= theirs for ours, theirs in zip(size.heads, heads, strict=True))
        else:
            assert size.heads == heads
    else:
        assert same(found.to_dict(), wanted)
        assert found.printed == case["printed"] or case["name"] in PRINTED_DIFFERENTLY


def value_of(text: str) -> Any:
    """Return the value that a session shows for an expression of atoms."""
    return Session().execute(f"{text};")[-1].value


#: Expressions of atoms, and their values in Weiss's RASP: operators of one level group to the left.
ATOMS = {
    "2^3^2": 64, "-2^2": 4, "10-3-2": 5, "8/4/2": 1.0, "7%4%2": 1, "5%-3": -1, "-3%2": 1,
    "2^-1": 0.5, "2*-3": -6, "1+2*3": 7, "not 1 == 1": False, "not not 1": True, "1 or 0 and 0": 0,
    "1 < 2 == 1": True, "1 if 0 else 2": 2, '"a"+"b"': "ab", "3 in [1, 2, 3]": True, "1-2+3": 2,
    "(1-2)*3^2": -9,
}  # fmt: skip


@pytest.mark.parametrize("text", ATOMS)
def test_atoms(text: str) -> None:
    assert same(value_of(text), ATOMS[text])


def test_truths_of_atoms() -> None:
    """`and` and `or` return an operand, in chains from left to right, and `not` a boolean."""
    atoms = {"0": 0, "1": 1, "2": 2, "0.0": 0.0, "True": True, "False": False, '"a"': "a"}
    functions: dict[str, Any] = {"and": lambda a, b: a and b, "or": lambda a, b: a or b}
    for (s, a), (t, b), (sign, f) in itertools.product(atoms.items(), atoms.items(), functions.items()):
        assert same(value_of(f"{s} {sign} {t}"), f(a, b)), (s, sign, t)
        assert value_of(f"not ({s} {sign} {t})") is (not f(a, b))
        for other, g in functions.items():
            assert same(value_of(f"{s} {sign} {t} {other} 0"), g(f(a, b), 0)), (s, sign, t, other)


def is_answer(found: Any, wanted: Any) -> bool:
    """Return whether a value is Tracr's. For Tracr's None, the programs have "" or False."""
    if wanted is None:
        return found == "" or found is False
    if isinstance(wanted, str) or isinstance(found, str):
        return bool(found == wanted)
    return math.isclose(found, wanted, rel_tol=0, abs_tol=1e-12)


@cache
def network(program: SOp, length: int, vocabulary: tuple[Any, ...]) -> Any:
    """Compile a program of the table once."""
    return locum.compile(program, length=length, vocabulary=vocabulary, feed_forward="exact")


def name_of(case: dict[str, Any]) -> str:
    return f"{case['program']}-{''.join(map(str, case['input']))}" + "-causal" * case["causal"]


@pytest.mark.parametrize("case", TRACR, ids=name_of)
def test_tracr(case: dict[str, Any]) -> None:
    """Dense execution and compiled weights agree with Tracr's interpreter."""
    program = PROGRAMS[case["program"]](case["max_len"])
    program = causal(program) if case["causal"] else program
    model = network(program, case["max_len"], tuple(case["vocab"]))
    for found in (program(case["input"]), model(case["input"])):
        assert len(found) == len(case["output"])
        assert all(map(is_answer, found, case["output"]))


def test_the_table_contains_every_program_of_tracr() -> None:
    assert {case["program"] for case in TRACR} == {*PROGRAMS}
