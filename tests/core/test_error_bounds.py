"""The error of a network on real numbers is at most its error bound, also at the worst inputs.

Tokens are multiples of the separation, which float32 represents. The search for a large error starts
at the ends of the ranges and next to the points where programs compare, and then changes one token at a
time.
"""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import pytest

import locum
from locum import aggregate, best, exp, full, indices, maximum, minimum, select, tanh, tokens, where

SEPARATION, LOW, HIGH, LENGTH = 1 / 64, -2, 2, 3
BEFORE = select(indices, indices, "<=")
MEAN = aggregate(full, tokens)
PROGRAMS: dict[str, locum.SOp] = {
    "square": tokens * tokens,
    "product": tokens * MEAN,
    "variance": aggregate(full, (tokens - MEAN) * (tokens - MEAN)),
    "running mean": aggregate(BEFORE, tokens),
    "linear": 3 * tokens - aggregate(BEFORE, tokens),
    "clip": maximum(tokens, 0.25) - minimum(tokens, MEAN),
    "absolute": abs(tokens - 0.5),
    "branch": where(indices > 1, tokens, -tokens),
    "jump": where(tokens > 0.5, tokens, -tokens),
    "inverse": 1 / (tokens + 3),
    "exp": exp(tokens),
    "tanh": tanh(tokens * 2),
    "softmax": exp(tokens) / aggregate(full, exp(tokens)),
    "rank": locum.selector_width(select(tokens, tokens, "<")),
    "largest": aggregate(best(full, tokens), tokens),
    "index of the largest": aggregate(best(BEFORE, tokens), indices),
}
#: Programs that exact arithmetic can run.
RATIONAL = [name for name in PROGRAMS if name not in ("exp", "tanh", "softmax")]
KINDS: dict[str, dict[str, Any]] = {
    "relu": {},
    "softmax": {"attention": "softmax"},
    "gelu": {"feed_forward": "gelu"},
    "glu": {"feed_forward": "glu"},
    "symbolic": {"feed_forward": "exact"},
    "float32": {"dtype": "float32"},
    "gelu in float32": {"dtype": "float32", "feed_forward": "gelu"},
}
CORNERS = (LOW, LOW + SEPARATION, 0, 0.5, 0.5 + SEPARATION, HIGH - SEPARATION, HIGH)
GRID = [LOW + SEPARATION * step for step in range(int((HIGH - LOW) / SEPARATION) + 1)]


def difference(model: Any, program: locum.SOp, row: tuple[float, ...], **options: Any) -> Fraction:
    """The largest difference between a network and its program on an input, in exact arithmetic."""
    pairs = zip(model(list(row)), program(list(row), **options), strict=True)
    return max(abs(Fraction(found) - Fraction(wanted)) for found, wanted in pairs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_error_is_within_the_bound(name: str, kind: str) -> None:
    program, rng = PROGRAMS[name], random.Random(0)
    options: dict[str, Any] = {
        "length": LENGTH,
        "numeric": True,
        "ranges": (LOW, HIGH),
        "separation": SEPARATION,
    }
    model = locum.compile(program, tolerance=0.05, **options, **KINDS[kind])
    bound = model.error_bound
    starts: list[tuple[float, ...]] = [(x,) for x in GRID[:: len(GRID) // 32]]
    starts += rng.sample(list(itertools.product(CORNERS, repeat=LENGTH)), 20)
    worst = max(starts, key=lambda row: difference(model, program, row))
    for _ in range(30):
        place, token = rng.randrange(len(worst)), rng.choice(GRID)
        row = (*worst[:place], token, *worst[place + 1 :])
        worst = max(worst, row, key=lambda row: difference(model, program, row))
    if kind != "symbolic":
        assert bound <= 0.05
    elif math.isinf(bound):
        return
    assert difference(model, program, worst) <= Fraction(bound), worst
    if name in RATIONAL and kind != "symbolic":
        assert difference(model, program, worst, domain="exact") <= Fraction(bound), worst
    if name in ("square", "variance", "inverse", "exp", "tanh") and kind == "relu":
        assert difference(model, program, worst) > Fraction(bound / 2), (
            "the search finds no large error"
        )
