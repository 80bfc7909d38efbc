"""Thousands of random programs as weights: no answer that dense execution does not give.

Every program is compiled for a fixed length or for all lengths up to it, for a vocabulary and (where
tokens are numbers) for any real numbers, and run on inputs of several lengths. A program may be
refused, for a reason listed in ``tally.py``; how many may be is bounded, so that refusing is no way
to pass. What networks answer where the program itself has no value (mixed types, say) is not looked at.

Numbers drawn are halves and quarters. With 0.1 a program can hang on the last bit of a rounding, which
a network does not share: sums in another order, NumPy's powers (``0.1 % (0.1 ^ length)``).
"""

from __future__ import annotations

import math
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from locum.graph import Atom, Node, Sort
from tests.old.compiler import random_programs
from tests.old.compiler.tally import Tally
from tests.old.execution import positional
from tests.old.graph.strategies import (
    ATTENTION,
    USEFUL_PARTS,
    inputs,
    longer_inputs,
    programs,
    small_ints,
    strings,
)

pytestmark = pytest.mark.slow

#: Examples by default; ``make fuzz`` draws more.
_USUAL = settings.get_profile("default").max_examples


_INSTEAD: dict[Any, Any] = {math.inf: 7, 0.1: 0.25}
_halves = st.sampled_from([0.0, -0.0, 0.5, -1.5, 2.0, 0.25, 1e300, math.inf])
_atoms: st.SearchStrategy[Atom] = st.one_of(small_ints, small_ints, _halves, st.booleans(), strings)


def _examples(usual: int) -> int:
    """A sample by default, eight times its share with more examples."""
    more = settings().max_examples // _USUAL
    return usual if more == 1 else min(20_000, 8 * usual * more)


def _drawn(
    tally: Tally,
    program: st.SearchStrategy[Node],
    tokens: st.SearchStrategy[Any],
    usual: int,
    part: int,
) -> int:
    """Check random programs; each ``part`` is the seed of its own."""
    count = _examples(usual)

    @hypothesis.seed(part)
    @settings(
        max_examples=count,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    )
    @given(program, tokens, st.integers(0, 2**20))
    def check(node: Node, sequence: Any, seed: int) -> None:
        # Weights and streams hold finite numbers; that infinite tokens are refused is tested elsewhere.
        finite = [_INSTEAD.get(token, token) for token in sequence]
        tally.check(node, finite, finite, seed)

    check()
    return count


@pytest.mark.parametrize("part", range(5))
def test_random_programs_of_all_operations(part: int) -> None:
    tally = Tally()
    count = _drawn(tally, programs(size=10, sorts=(Sort.SOP,), atoms=_atoms), inputs, 150, part)
    tally.require(refused=0.1, runs_refused=0.03, programs=count // 2)


@pytest.mark.parametrize("part", range(2))
def test_random_programs_of_attention(part: int) -> None:
    tally = Tally()
    attention = programs(size=10, sorts=(Sort.SOP,), ops=ATTENTION, atoms=_atoms, parts=USEFUL_PARTS)
    count = _drawn(tally, attention, longer_inputs, 75, part)
    tally.require(refused=0.15, runs_refused=0.03, programs=count // 2)


# In parts, so that workers share them.
@pytest.mark.parametrize("part", range(4))
def test_random_programs_of_positions(part: int) -> None:
    tally = Tally(inputs=2)
    count = _examples(13)
    for seed in range(part * 100_000, part * 100_000 + count):
        trial = positional.trial(seed)
        tally.check(trial.program, trial.given, trial.given, seed)
    tally.require(refused=0.02, runs_refused=0.02, programs=count)


@pytest.mark.parametrize("part", range(1 if settings().max_examples == _USUAL else 4))
def test_random_programs_of_three_types(part: int) -> None:
    """Right, or refused; deep enough, all types as answers, inputs of one token included."""
    tally = Tally()
    count = _examples(150)
    shortest = 9
    for seed in range(part * 100_000, part * 100_000 + count):
        trial = random_programs.trial(seed)
        tally.check(trial.program, trial.given, trial.vocabulary, seed)
        shortest = min(shortest, len(trial.given))
    tally.require(refused=0.01, runs_refused=0.01, programs=count)
    assert max(tally.layers) >= 6
    assert sum(tally.layers) >= 1.5 * len(tally.layers)
    assert tally.answers == {bool, int, float, str}
    assert shortest == 1


def test_random_programs_in_float32() -> None:
    tally = Tally(tolerance=1e-4, dtype="float32", inputs=2)
    count = _examples(75)
    for seed in range(900_000, 900_000 + count):
        trial = random_programs.trial(seed)
        tally.check(trial.program, trial.given, trial.vocabulary, seed)
    tally.require(refused=0.02, runs_refused=0.02, programs=count)
