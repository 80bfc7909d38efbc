"""Coarse tolerances: what is read off a network stays within its certified bound, rounded or not."""

from __future__ import annotations

import math

import pytest
from hypothesis import settings

from locum import SOp, aggregate, indices, length, maximum, select, tokens
from locum.errors import LocumError
from locum.networks import compiler
from locum.rasp.handles import wrap
from tests.old.compiler import random_programs

_USUAL = settings.get_profile("default").max_examples

MEANS = aggregate(select(indices, indices, "<="), aggregate(select(tokens, 2, "!="), indices))


def test_integers_are_not_rounded_further_than_the_bound() -> None:
    program = (length - 1) * 0.5 * (2 * MEANS)
    model = compiler.compile(program, length=4, vocabulary=[0, 1, -1, 2], tolerance=0.6)
    assert 0.5 < model.error_bound <= 0.6
    assert program([2, -1]) == [1.0, 1.0]
    result = model([2, -1])
    assert max(abs(number - 1) for number in result) <= model.error_bound
    # Several integers may be within the bound: answers are floats, however near to an integer.
    assert [type(number) for number in model([2])] == [float]
    assert model([2]) == pytest.approx(program([2]), abs=model.error_bound)


def test_truths_are_not_rounded_further_than_the_bound() -> None:
    program = maximum((length - 1) * MEANS - 1, tokens == 7)
    model = compiler.compile(program, length=4, vocabulary=[0, 1, -1, 2, 7], tolerance=0.6)
    inputs = [7, -1]
    expected, actual = program(inputs), model(inputs)
    assert bool in map(type, expected)
    assert max(abs(f - w) for f, w in zip(actual, expected, strict=True)) <= model.error_bound <= 0.6


# In parts, so that workers share them.
@pytest.mark.parametrize("part", range(2))
def test_random_programs_stay_within_their_bounds(part: int) -> None:
    more = settings().max_examples // _USUAL
    count = 10 if more == 1 else 20 * more
    coarse = 0
    for seed in range(part * 100_000 + 150, part * 100_000 + 150 + count):
        trial = random_programs.coarse(seed)
        program = wrap(trial.program)
        assert isinstance(program, SOp)
        try:
            model = compiler.compile(program, length=len(trial.inputs[0]), **trial.options)
        except LocumError:
            continue
        coarse += model.error_bound >= 0.25
        for inputs in trial.inputs:
            try:
                expected, actual = program(inputs), model(inputs)
            except LocumError:
                continue
            off = max(abs(f - w) for f, w in zip(actual, expected, strict=True))
            assert off <= model.error_bound, (seed, inputs, actual, expected)
    assert coarse >= count // 10


@pytest.mark.parametrize(("seed", "bound"), [(43, 6), (57, math.inf)])
def test_a_bound_that_leaves_several_answers_is_that_of_the_answer(seed: int, bound: float) -> None:
    """Where a number is off by 6, the nearest answer may be another; and strings have no distance."""
    trial = random_programs.trial(seed)
    model = compiler.compile(
        trial.program, length=len(trial.given), vocabulary=trial.vocabulary, feed_forward="exact"
    )
    assert model.config.outputs is not None
    assert model.error_bound == pytest.approx(bound)
