"""Hostile input: a described error in bounded time and memory, nothing else."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locum.rasp import Limits, Session

#: Whether this is ``make fuzz``.
MANY = settings().max_examples > 1_000

HOSTILE = {
    "nested brackets": ("(" * 100_000 + "1" + ")" * 100_000 + ";", "nested more than 500 deep"),
    "nested lists": ("[" * 100_000 + "1" + "]" * 100_000 + ";", "nested more than 500 deep"),
    "open brackets": ("(" * 100_000, "nested more than 500 deep"),
    "a 10 MB line": ('x = "' + "a" * 10_000_000 + '";', "the program has more than 500,000 characters"),
    "10 MB of lines": ("x = 1;\n" * 1_500_000, "more than 500,000 characters"),
    "deep recursion": ("def f(x) { return f(x) + f(x); } f(1);", "more than 250 calls deep"),
    "a huge power": ("2^(10^9);", "more than 1000000 bits"),
    "a huge power of an s-op": ("(indices + 2)^(10^9);", "more than 1000000 bits"),
    "a huge loop": ("for i in range(10^9) { x = i; }", "the limit is 5,000,000"),
    "loops in loops": ("for i in range(1000) { for j in range(1000) { x = j; } }", "100,000 steps"),
    "comprehensions": ("[[i for i in range(1000)] for j in range(1000)];", "100,000 steps"),
    "many lists": ("[range(100000) for i in range(10000)];", "the limit is 5,000,000"),
    "doubling strings": ('x = "a"; for i in range(99) { x = x + x; }', "more than 1000000 characters"),
    "doubling lists": ("x = [1]; for i in range(99) { x = x + x; }", "the limit is 5,000,000"),
    "doubling numbers": ("x = 3; for i in range(99) { x = x * x; }", "more than 1000000 bits"),
    "lists of themselves": (
        "x = [1]; for i in range(99) { x = [x, x]; } x;",
        "at most 20,000 members to show",
    ),
    "deep lists": ("x = [1]; for i in range(5000) { x = [x]; } x;", "nested more than 100 lists deep"),
    "lists compared": (
        "x = [1]; y = [1]; for i in range(60) { x = [x, x]; y = [y, y]; } x == y; 1/0;",
        "division",
    ),
    "negative lists": (
        "y = [1]*(0-10^15); for i in [1] { x = [0]*60000000; }",
        "the limit is 5,000,000",
    ),
    "exponential calls": (
        "def f(n) { return 1 if n < 1 else f(n-1) + f(n-1); } f(30);",
        "100,000 steps",
    ),
    "a huge range": ("range(10^30);", "the limit is 5,000,000"),
    "a huge set": ("indices in range(1000000);", "100,000 steps"),
    "a huge family": ("sum l in range(10^9) { l };", "expand to 1,000,000,000 heads"),
    "a huge pattern": (
        "set example [1 for i in range(50000)]\nfull_s;",
        "too large for dense execution",
    ),
    "a huge literal": ("9" * 5_000 + ";", "at most 4,300 digits"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_programs_end_in_an_error(name: str) -> None:
    source, words = HOSTILE[name]
    result = Session().execute(source)[-1]
    assert result.kind == "error"
    assert words in (result.message or "")
    assert len(result.printed) < 2_000


def test_long_but_honest_programs_run() -> None:
    long_sum = "x = " + " + ".join(["1"] * 20_000) + ";"
    assert Session().execute(long_sum)[-1].value == 20_000
    chain = "x = indices;\n" + "x = x + 1;\n" * 300
    assert Session().execute(chain)[-1].values == [300, 301, 302, 303, 304]


CORPUS: list[str] = [str(case["source"]) for case in json.loads(
    (Path(__file__).parents[2] / "conformance" / "rasp.json").read_text(encoding="utf-8")
)]  # fmt: skip
PIECES = [
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ";",
        ",",
        "=",
        "==",
        "<",
        "+",
        "-",
        "^",
        "%",
        "/",
        "#",
        '"',
        "'",
        "\n",
    ),
    *(
        "select(",
        "aggregate(",
        "range(",
        "def ",
        "for ",
        "in ",
        "return ",
        "if ",
        "else ",
        "and ",
        "not ",
    ),
    *(
        "tokens",
        "indices",
        "length",
        "full_s",
        "1",
        "2.5",
        ".5",
        "1e5",
        '"a"',
        "sum l in range(2) {",
        "best",
    ),
    *("s-op", "set example ", "examples off", "load ", "draw(", "exit", "\x00", "é", "∑", "\t", "\r"),
]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A program of the corpus with some of its text deleted, repeated, replaced or spliced in."""
    text = str(draw(st.sampled_from(CORPUS)))
    chance = random.Random(draw(st.integers(0, 2**32)))
    for _ in range(draw(st.integers(1, 6))):
        a, b = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
        b = min(b, a + 20)
        text = chance.choice(
            [
                text[:a] + text[b:],
                text[:b] + text[a:b] + text[b:],
                text[:a] + chance.choice(PIECES) + text[b:],
                text[:a] + chance.choice(PIECES) + text[a:],
                text[:a] + chance.choice(CORPUS)[:40] + text[a:],
            ]
        )
    return text


@settings(max_examples=20_000 if MANY else 750)
@given(mutated())
def test_mutated_programs_give_results(source: str) -> None:
    session = Session(limits=Limits(steps=2_000, items=10_000))
    for result in session.execute(source):
        assert result.kind
        if result.kind == "error":
            assert result.message
            assert result.category
            assert result.line is not None
