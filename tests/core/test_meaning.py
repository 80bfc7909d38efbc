"""Every way to run a program gives the value that the reference interpreter gives."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import locum
from locum import rasp
from tests.core.programs import POSITIONAL, POSITIONS, cases, grow, to_locum, to_text
from tests.core.reference import Undefined, run


def reference(program: Any, tokens: list[Any]) -> list[Any] | None:
    try:
        return run(program, tokens)
    except Undefined:
        return None


def same(found: Any, wanted: Any) -> bool:
    """Equal with equal types."""
    return type(found) is type(wanted) and (found == wanted or (found != found and wanted != wanted))


def close(found: Any, wanted: Any, tolerance: float) -> bool:
    if isinstance(wanted, str) or isinstance(found, str) or not math.isfinite(wanted):
        return bool(found == wanted) or (found != found and wanted != wanted)
    return abs(found - wanted) <= tolerance * max(1, abs(wanted))


def outcome(call: Any) -> Any:
    try:
        return list(call())
    except locum.LocumError as error:
        return error


@settings(max_examples=400)
@given(cases())
def test_dense(case: Any) -> None:
    """Dense execution has the same values, types and undefined inputs."""
    program, tokens = case
    wanted, found = reference(program, tokens), outcome(lambda: to_locum(program)(tokens))
    if wanted is None:
        assert isinstance(found, locum.ExecutionError)
    else:
        assert isinstance(found, list) and all(map(same, found, wanted)), (found, wanted)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=300)
@given(cases())
def test_fast_auto_and_heads(case: Any) -> None:
    """Other executors compute the same numbers, or (heads) refuse the program."""
    program, tokens = case
    wanted = reference(program, tokens)
    if wanted is None:  # they compute less, so they may miss the error (docs/execution.md)
        return
    for executor in ("fast", "auto", "heads"):
        found = outcome(lambda: to_locum(program)(tokens, executor=executor))
        if isinstance(found, list):
            assert all(close(f, w, 1e-9) for f, w in zip(found, wanted, strict=True)), (
                executor,
                found,
                wanted,
            )
        else:
            assert executor == "heads", (executor, found)


@settings(max_examples=150)
@given(cases())
def test_text(case: Any) -> None:
    """The program as RASP text denotes the same program, and a session shows the same values."""
    program, tokens = case
    program = retyped(program, "str" if isinstance(tokens[0], str) else "float")
    text = to_text(program)
    results = rasp.Session(example=tokens).execute(text)
    wanted, result = reference(program, tokens), results[-1]
    if wanted is None:
        first = next((r.category for r in results if r.kind == "error"), None)
        assert first is not None and (first.startswith("runtime") or first == "index"), (text, first)
    else:
        assert result.kind == "s-op", (text, result.message)
        assert all(map(same, result.values, wanted)), (text, result.values, wanted)


def retyped(program: Any, cast: str) -> Any:
    """The program with the input cast, as RASP text has no name for the input as it is."""
    made: dict[int, Any] = {}

    def change(p: Any) -> Any:
        if not isinstance(p, tuple):
            return p
        if p == ("tokens", "asis"):
            return ("tokens", cast)
        if id(p) not in made:
            made[id(p)] = tuple(map(change, p))
        return made[id(p)]

    return change(program)


@settings(max_examples=100)
@given(cases())
def test_printed_and_saved(case: Any) -> None:
    """`to_rasp` text and a saved file give the program back."""
    program, tokens = case
    handle = to_locum(program)
    wanted = outcome(lambda: handle(tokens))
    try:
        text = rasp.to_rasp(handle)
    except locum.LocumError:
        return
    session = rasp.Session(example=tokens)
    result = session.execute(text)[-1]
    if isinstance(wanted, list) and result.kind == "s-op" and result.node is not None:
        found = locum.SOp(result.node)(tokens)
        assert all(map(same, found, wanted)), text


@settings(max_examples=60)
@given(cases())
def test_batches(case: Any) -> None:
    """A batch gives the value of each sequence."""
    program, tokens = case
    batch = [tokens, tokens[:1], tokens[::-1]]
    handle = to_locum(program)
    wanted = [reference(program, tokens) for tokens in batch]
    if all(w is not None for w in wanted):
        found = handle(batch)
        assert all(
            same(f, w)
            for fs, ws in zip(found, wanted, strict=True)
            for f, w in zip(fs, ws, strict=True)
        )


@settings(max_examples=100)
@given(cases(typed=1.0, tokens=("ints", "digits"), kind="number"))
def test_exact(case: Any) -> None:
    """Exact execution agrees with floats up to rounding, where both are defined."""
    program, tokens = case
    wanted, found = (
        reference(program, tokens),
        outcome(lambda: to_locum(program)(tokens, domain="exact")),
    )
    if wanted is not None and isinstance(found, list):
        for f, w in zip(found, wanted, strict=True):
            assert isinstance(w, str) == isinstance(f, str)
            if not isinstance(w, str) and abs(w) < 1e12:
                assert abs(float(f) - w) < 1e-6 or abs(w) > 1e6


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=300)
@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 30))
def test_positions(seed: int, size: int, length: int) -> None:
    """Programs of positions on lists, arrays and tensors, as the plans of the fast executor run them."""
    program = grow(seed, size, POSITIONS, 1.0, "number", POSITIONAL)
    tokens = random.Random(seed).choices(range(-4, 9), k=length)
    wanted = reference(program, tokens)
    if wanted is None or any(isinstance(w, str) or not abs(w) < 1e15 for w in wanted):
        return
    handle = to_locum(program)
    found = [handle(tokens, executor=executor) for executor in ("fast", "heads")]
    found.append(handle(np.array(tokens), executor="fast").tolist())
    floats = reference(program, [float(t) for t in tokens])
    for values in found:
        assert all(close(f, w, 1e-9) for f, w in zip(values, wanted, strict=True)), (
            program,
            values,
            wanted,
        )
    if floats is not None:
        for array in (np.array(tokens, float), torch.tensor(tokens, dtype=torch.float64)):
            values = handle(array, executor="fast").tolist()
            assert all(close(f, w, 1e-9) for f, w in zip(values, floats, strict=True)), (
                program,
                values,
                floats,
            )


# Atoms in RASP text: operators and their precedence ------------------------------------------------------

LEVELS = (
    ("or", "and"),
    ("==", "!=", "<", "<=", ">", ">="),
    ("+", "-"),
    ("%",),
    ("*", "/", "//"),
    ("^",),
)


def atoms(rng: random.Random, level: int = 0) -> tuple[str, Any]:
    """Text of an expression of numbers, and its value; brackets only where precedence needs them."""
    if level == len(LEVELS):
        match rng.randrange(6):
            case 0:
                text, value = atoms(rng)
                return f"({text})", value
            case 1:
                return "-2", -2
            case 2:
                return "2.5", 2.5
            case _:
                k = rng.randrange(5)
                return str(k), k
    text, value = atoms(rng, level + 1)
    while rng.random() < 0.25:
        sign = rng.choice(LEVELS[level])
        more, other = atoms(rng, level + 1)
        text, value = f"{text} {sign} {more}", python(sign, value, other)
    return text, value


def python(sign: str, a: Any, b: Any) -> Any:
    if sign in ("and", "or"):
        return (a and b) if sign == "and" else (a or b)
    if sign == "^" and abs(b) > 9:
        raise ValueError
    value = eval(f"a {'**' if sign == '^' else sign} b", {"a": a, "b": b})  # noqa: S307
    if isinstance(value, complex):
        raise ValueError
    return value


def test_atoms_and_s_ops_in_text() -> None:
    rng, checked = random.Random(2), 0
    while checked < 250:
        try:
            text, value = atoms(rng)
        except (ArithmeticError, ValueError, TypeError):
            continue
        if abs(value) > 1e9:
            continue
        result = rasp.Session().execute(f"{text};")[-1]
        assert result.kind == "atom" and same(result.value, value), (text, result, value)
        checked += 1
