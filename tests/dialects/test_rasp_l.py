"""RASP-L: its primitives, its published programs on random inputs, and what it forbids."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

from locum import aggregate, indices, length, select, tokens, where
from locum import selector_width as width
from locum.errors import InputError
from locum.languages import rasp_l


def _examples(usual: int) -> int:
    return min(1000, usual * settings().max_examples // settings.get_profile("default").max_examples)


def _different(rng: random.Random) -> list[int]:
    return rng.sample(range(50), rng.randrange(0, 6))


def _copy(rng: random.Random) -> tuple[list[int], list[int]]:
    xs = _different(rng)
    return [rasp_l.SOS, *xs, rasp_l.SEP], xs


def _reverse(rng: random.Random) -> tuple[list[int], list[int]]:
    xs = _different(rng)
    return [rasp_l.SOS, *xs, rasp_l.SEP], xs[::-1]


def _count(rng: random.Random) -> tuple[list[int], list[int]]:
    start = rng.randrange(30)
    end = start + rng.randrange(7)
    return [rasp_l.SOS, start, end], list(range(start, end + 1))


def _hinted(first: int, digits: list[int]) -> list[int]:
    return [token for i, digit in enumerate(digits) for token in (first + i, digit)]


def _parity(rng: random.Random) -> tuple[list[int], list[int]]:
    first, bits = rasp_l.HINTS + rng.randrange(20), rng.choices((0, 1), k=rng.randrange(1, 8))
    answer, odd = [], False
    for i, bit in enumerate(bits):
        if bit:
            odd = not odd
            answer += [first + i, rasp_l.ODD if odd else rasp_l.EVEN]
    return [*_hinted(first, bits), rasp_l.SEP], answer


def _addition(rng: random.Random) -> tuple[list[int], list[int]]:
    first, size = rasp_l.HINTS + rng.randrange(20), rng.randrange(1, 6)
    # Many nines: carries that run on.
    x, y = ([rng.choice((0, 9, rng.randrange(10))) for _ in range(size)] for _ in range(2))
    total = sum((a + b) * 10**i for i, (a, b) in enumerate(zip(x, y, strict=True)))
    digits = [total // 10**i % 10 for i in range(size + 1)]
    prompt = [*_hinted(first, [*x, 0]), rasp_l.PLUS, *_hinted(first, [*y, 0]), rasp_l.EQ]
    return prompt, _hinted(first, digits)


Task = Callable[[random.Random], tuple[list[int], list[int]]]
PUBLISHED: list[tuple[Callable[[], rasp_l.NextToken], Task]] = [
    (rasp_l.copy, _copy),
    (rasp_l.reverse, _reverse),
    (rasp_l.count_up, _count),
    (rasp_l.parity, _parity),
    (rasp_l.addition, _addition),
]


@pytest.mark.parametrize(("published", "task"), PUBLISHED)
def test_random_inputs_of_the_published_programs(
    published: Callable[[], rasp_l.NextToken], task: Task
) -> None:
    program = published()
    rng = random.Random(program.name)
    for number in range(_examples(250)):
        prompt, answer = task(rng)
        # A causal program says the whole answer at once, each token from what stands before it.
        said = program.sop([*prompt, *answer])
        assert said[len(prompt) - 1 :] == [*answer, rasp_l.EOS], (prompt, answer)
        if number < 2:
            assert program.generate(prompt) == answer


def test_random_inputs_of_mode() -> None:
    program = rasp_l.mode()
    rng = random.Random(1)
    for _ in range(_examples(250)):
        values = rng.choices((0, 1, 2), k=rng.randrange(1, 10))
        expected, counts = [], dict.fromkeys((0, 1, 2), 0)
        best: int | None = None
        for value in values:
            counts[value] += 1
            best = value if best is None or counts[value] > counts[best] else best
            expected.append(best)
        assert program(values) == expected


def test_the_programs_compile_to_decoders() -> None:
    program = rasp_l.copy()
    from locum.networks import compiler

    model = compiler.compile(
        program.sop, length=8, vocabulary=[rasp_l.SOS, rasp_l.SEP, rasp_l.EOS, 5, 6, 7], causal=True
    )
    sequence = [rasp_l.SOS, 5, 7, 6, rasp_l.SEP, 5, 7, 6]
    assert model(sequence) == program.sop(sequence)


def test_primitives() -> None:
    x = [3, 1, 2, 1, 3]
    assert rasp_l.shift_right(tokens, 2, default=-1)(x) == [-1, -1, 3, 1, 2]
    assert rasp_l.firsts(tokens, tokens)(x) == [0, 1, 2, 1, 0]
    assert rasp_l.lasts(tokens, rasp_l.full(1))(x) == [-1, 1, 1, 3, 3]
    assert rasp_l.has_seen(tokens, rasp_l.full(2))(x) == [False, False, True, True, True]
    assert rasp_l.cumsum(tokens == 1)(x) == [0, 1, 1, 2, 2]
    assert rasp_l.argmax(tokens)(x) == [0, 0, 0, 0, 0]
    assert rasp_l.kqv(tokens, tokens, tokens, rasp_l.leq)(x) == [3, 1, 1, 1, 2]
    assert rasp_l.kqv(tokens, tokens, indices, rasp_l.equals, reduction="min")(x) == [0, 1, 2, 1, 0]
    assert rasp_l.induct_last(tokens, tokens, indices)(x) == [0, 1, 2, 3, 4]
    assert rasp_l.index_select(tokens, rasp_l.full(1), default=-1)(x) == [-1, 1, 1, 1, 1]


FORBIDDEN: list[tuple[Any, str]] = [
    (tokens + indices * 2, "arithmetic on positions (multiply)"),
    (indices + indices, "arithmetic on positions (add)"),
    (indices % 2, "arithmetic on positions (modulo)"),
    (rasp_l.firsts(tokens, tokens) * 3, "arithmetic on positions (multiply)"),
    (3 - indices, "arithmetic on positions (subtract)"),
    (length - 1, "the length of the input"),
    (width(select(tokens, tokens, "==")), "a selector that may look ahead"),
    (aggregate(select(indices, indices + 1, "=="), tokens), "a selector that may look ahead"),
    (aggregate(select(indices, indices - 1, ">="), tokens), "a selector that may look ahead"),
]


@pytest.mark.parametrize(("program", "problem"), FORBIDDEN)
def test_what_is_forbidden_is_refused_by_name(program: Any, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        rasp_l.require(program)
    assert problem in str(caught.value)
    with pytest.raises(InputError):
        rasp_l.NextToken("wrong", program, 0)


def test_what_is_allowed_is_allowed() -> None:
    rasp_l.require(rasp_l.mode())  # NextToken requires the others
    rasp_l.require(where(indices > 3, tokens, indices + 1))
    with pytest.raises(InputError, match="does not look ahead"):
        rasp_l.shift_right(tokens, -1)
    with pytest.raises(InputError, match="expected one of mean, max, min"):
        rasp_l.kqv(tokens, tokens, tokens, rasp_l.equals, reduction="sum")
