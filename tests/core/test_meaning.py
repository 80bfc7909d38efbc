"""Every way to write and to run a program gives the value that the reference interpreter gives."""

from __future__ import annotations

import math
import operator
import random
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import assume, given

import locum
from locum import graph, rasp
from tests.core.programs import (
    OPERATIONS,
    POSITIONAL,
    POSITIONS,
    cases,
    examples,
    to_json,
    to_locum,
    to_text,
    words,
)
from tests.core.reference import ELEMENTWISE, Run, UndefinedError, is_surely_undefined, power, run

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def reference(program: Any, tokens: list[Any]) -> list[Any] | None:
    """The value of a program, or None if it is undefined."""
    try:
        return run(program, tokens)
    except UndefinedError:
        return None


def outcome(program: Any, tokens: Any, **options: Any) -> list[Any] | None:
    """The value of a program in Locum, or None if it raises ExecutionError."""
    try:
        return list(program(tokens, **options))
    except locum.ExecutionError:
        return None


def same(found: Any, wanted: Any) -> bool:
    """Whether two sequences are equal, with equal types."""
    return found is wanted or (
        [type(v) for v in found] == [type(v) for v in wanted] and close(found, wanted, 0)
    )


def close(found: Any, wanted: Any, tolerance: float = 1e-9) -> bool:
    """Whether two sequences are equal up to rounding."""
    return len(found) == len(wanted) and all(
        near(f, w, tolerance) for f, w in zip(found, wanted, strict=True)
    )


def near(found: Any, wanted: Any, tolerance: float) -> bool:
    if found == wanted or (found != found and wanted != wanted):
        return True
    if isinstance(found, str) or isinstance(wanted, str) or math.inf in (abs(found), abs(wanted)):
        return False
    limit = Fraction(tolerance) * max(Fraction(1), abs(Fraction(wanted)))
    return found == found and abs(Fraction(found) - Fraction(wanted)) <= limit


@pytest.mark.fuzz
@examples(400)
@given(cases())
def test_dense_execution(case: Any) -> None:
    """Dense execution has the same values, types and undefined inputs."""
    program, tokens = case
    wanted, found = reference(program, tokens), outcome(to_locum(program), tokens)
    assert (found is None) == (wanted is None)
    assert found is None or same(found, wanted)


@pytest.mark.fuzz
@examples(100)
@given(cases(selector=True))
def test_selectors(case: Any) -> None:
    """The value of a selector is its pattern, [query, key]."""
    program, tokens = case
    wanted = reference(program, tokens)
    for executor in ("dense", "fast", "auto", "heads"):
        found = outcome(to_locum(program), tokens, executor=executor)
        if wanted is None:
            assert executor != "dense" or found is None
        else:
            assert executor == "heads" or found is not None
            assert found is None or np.array_equal(found, wanted)


class NudgedRun(Run):
    """The meaning of programs with another rounding of exp, and of means that floats may round."""

    elementwise: ClassVar = {**ELEMENTWISE, "exp": lambda a: math.exp(a) * (1 + 2**-50)}

    def mean(self, values: list[Any]) -> Any:
        mean = super().mean(values)
        is_exact = abs(mean) < 2**33 and float(mean * 2**20).is_integer()
        return mean if is_exact else mean * (1 + 2**-50)


def depends_on_rounding(program: Any, tokens: list[Any], wanted: list[Any]) -> bool:
    """Whether last bits change a program, such as sin(exp(length)) at length 18."""
    try:
        return not close(NudgedRun(tokens).defined(program), wanted)
    except UndefinedError:
        return True


@pytest.mark.fuzz
@examples(300)
@given(cases())
def test_other_executors(case: Any) -> None:
    """Other executors compute the same numbers. Only `heads` does not support some programs."""
    program, tokens = case
    wanted, must_fail = reference(program, tokens), is_surely_undefined(program, tokens)
    assume(wanted is None or not depends_on_rounding(program, tokens, wanted))
    for executor in ("fast", "auto", "heads"):
        found = outcome(to_locum(program), tokens, executor=executor)
        assert found is None or not must_fail, executor
        if wanted is not None and (found is not None or executor != "heads"):
            assert found is not None, executor
            assert close(found, wanted), executor


class ExactRun(Run):
    """The meaning of programs on fractions."""

    elementwise: ClassVar = {**ELEMENTWISE, "divide": lambda a, b: Fraction(a) / Fraction(b)}

    def mean(self, values: list[Any]) -> Any:
        return Fraction(sum(values)) / len(values)


INEXACT = words("exp log sqrt sin cos tanh erf float64 float32 float16 bfloat16")
RATIONAL = tuple(op for op in OPERATIONS if op not in INEXACT)


@pytest.mark.fuzz
@examples(200)
@given(cases(operations=RATIONAL, inputs=("ints", "digits", "mixed"), kind="number"))
def test_exact_domain(case: Any) -> None:
    """Exact execution has the value on fractions; IEEE arithmetic has the value on floats."""
    program, tokens = case
    try:
        wanted: Any = ExactRun([Fraction(token) for token in tokens]).defined(program)
    except UndefinedError:
        wanted = None
    assert outcome(to_locum(program), tokens, domain="exact") == wanted
    floats = reference(program, [float(token) for token in tokens])
    if floats is not None:
        assert close(outcome(to_locum(program), tokens, domain="ieee"), floats)


@pytest.mark.fuzz
@examples(150)
@given(cases())
def test_text(case: Any) -> None:
    """The program as RASP text has the same values."""
    program, tokens = case
    is_text = isinstance(tokens[0], str)
    tokens = tokens if is_text else [float(token) for token in tokens]
    text = to_text(program, "tokens_str" if is_text else "tokens_float")
    results = rasp.Session(example=tokens).execute(text)
    wanted, result = reference(program, tokens), results[-1]
    if wanted is None:
        first = next(r.category for r in results if r.kind == "error")
        assert first is not None
        assert first.startswith("runtime") or first in ("index", "type"), text
    else:
        assert result.kind == "s-op", (text, result.message)
        assert same(result.values, wanted), text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@pytest.mark.fuzz
@examples(100)
@given(case=cases())
def test_files(case: Any, folder: Path) -> None:
    """A program file in JSON is the same program; `to_rasp` and .rasp files have the same values."""
    program, tokens = case
    handle = to_locum(program)
    assert graph.loads(to_json(program)) is handle.node
    locum.save_program(handle, folder / "program.json")
    assert locum.load_program(folder / "program.json") is handle
    assert graph.loads(graph.dumps(handle.node)) is handle.node
    try:
        locum.save_program(handle, folder / "program.rasp")
    except locum.LocumError:
        assert any(isinstance(t, bool) for t in tokens) or "lookup" in repr(program)
        return
    wanted = reference(program, tokens)
    again = locum.load_program(folder / "program.rasp")
    assert wanted is None or same(again(tokens), wanted)


@pytest.mark.fuzz
@examples(60)
@given(cases())
def test_batches(case: Any) -> None:
    """A batch has the value of each sequence."""
    program, tokens = case
    batch = [tokens, tokens[:1], tokens[::-1]]
    wanted = [reference(program, sequence) for sequence in batch]
    if None in wanted:
        assert outcome(to_locum(program), batch) is None
    else:
        assert all(map(same, to_locum(program)(batch), wanted))


@pytest.mark.fuzz
@examples(300)
@given(cases(8, ("whole",), operations=POSITIONS, typed=1.0, kind="number", useful=POSITIONAL))
def test_positions(case: Any) -> None:
    """Programs of positions, which the fast executor plans, on lists and arrays."""
    program, tokens = case
    wanted, floats = reference(program, tokens), reference(program, list(map(float, tokens)))
    if wanted is None or floats is None or any(abs(w) > 1e15 for w in wanted):
        return
    handle = to_locum(program)
    assert close(handle(tokens, executor="fast"), wanted)
    assert close(handle(tokens, executor="heads"), wanted)
    assert close(handle(np.array(tokens), executor="fast").tolist(), wanted)
    assert close(handle(np.array(tokens, float), executor="fast").tolist(), floats)


@pytest.mark.fuzz
@examples(60)
@given(cases(8, ("whole",), operations=POSITIONS, typed=1.0, kind="number", useful=POSITIONAL))
def test_tensors(case: Any) -> None:
    """The same programs on PyTorch tensors."""
    torch = pytest.importorskip("torch")
    program, tokens = case
    wanted = reference(program, list(map(float, tokens)))
    if wanted is not None and all(abs(w) < 1e15 for w in wanted):
        values = torch.tensor(tokens, dtype=torch.float64)
        for executor in ("fast", "heads"):
            assert close(to_locum(program)(values, executor=executor).tolist(), wanted), executor


# Numbers in RASP text: operators and their precedence ---------------------------------------------

LEVELS = (
    ("or", "and"),
    ("==", "!=", "<", "<=", ">", ">="),
    ("+", "-"),
    ("%",),
    ("*", "/", "//"),
    ("^",),
)
PYTHON = {
    "or": lambda a, b: a or b,
    "and": lambda a, b: a and b,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "%": operator.mod,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "^": power,
}
NUMBERS = (("0", 0), ("1", 1), ("2", 2), ("3", 3), ("4", 4), ("-2", -2), ("2.5", 2.5))


def atom(rng: random.Random, level: int = 0) -> tuple[str, Any]:
    """Text of an expression of numbers, and its value; brackets only where precedence needs them."""
    if level == len(LEVELS):
        if rng.random() < 0.2:
            text, value = atom(rng)
            return f"({text})", value
        return rng.choice(NUMBERS)
    text, value = atom(rng, level + 1)
    while rng.random() < 0.25:
        sign = rng.choice(LEVELS[level])
        more, other = atom(rng, level + 1)
        if sign == "^" and not (abs(other) < 9 and abs(value) < 1e9):
            raise OverflowError
        text, value = f"{text} {sign} {more}", PYTHON[sign](value, other)
    return text, value


def test_numbers_in_text() -> None:
    """Expressions of numbers have Python's values, with the precedence and the signs of RASP."""
    rng, checked = random.Random(2), 0
    while checked < 250:
        try:
            text, value = atom(rng)
        except (ArithmeticError, TypeError, ValueError):
            continue
        if abs(value) < 1e9:
            result = rasp.Session().execute(f"{text};")[-1]
            assert result.kind == "atom"
            assert same([result.value], [value]), text
            checked += 1
