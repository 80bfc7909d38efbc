"""Tables or smaller forms: whichever is taken, answers stay within the certified bound."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import settings

from locum import (
    SOp,
    aggregate,
    exp,
    full,
    indices,
    length,
    maximum,
    select,
    selector_width,
    sqrt,
    tokens,
    where,
)
from locum.errors import CompileError
from locum.networks import compiler
from locum.networks.transformer import CompiledTransformer
from locum.rasp import to_rasp

_USUAL = settings.get_profile("default").max_examples

MEAN = aggregate(full, tokens)
PREFIX, SUFFIX = (aggregate(select(indices, indices, sign), tokens) for sign in ("<=", ">="))
VARIANCE = aggregate(full, (tokens - MEAN) ** 2)
BELOW = aggregate(select(tokens, tokens, "<="), indices + 1, 1)
FRACTIONS = selector_width(select(BELOW, MEAN, "<="))
DIGITS = range(10)


def units(model: CompiledTransformer) -> int:
    """Return the number of hidden units in all layers."""
    feeds = [layer.feed_forward for layer in model.weights.layers]
    return sum(0 if feed is None else feed.W_out.shape[0] for feed in feeds)


def off(model: CompiledTransformer, program: SOp, inputs: list[Any]) -> float:
    """Return the largest error of an answer; infinite for a wrong string."""
    pairs = list(zip(model(inputs), program(inputs), strict=True))
    return max(
        (0.0 if a == e else float("inf")) if isinstance(e, str) else float(abs(a - e)) for a, e in pairs
    )


SMALLER: list[tuple[SOp, Any, int, int]] = [
    # program, vocabulary, hidden units at most, number of times that tables need more
    (VARIANCE, DIGITS, 220, 8),
    (tokens > MEAN, DIGITS, 2, 18),
    (PREFIX == SUFFIX, DIGITS, 4, 1),
    (tokens * MEAN, DIGITS, 300, 4),
    (FRACTIONS, (-3, -1, 0, 2, 5), 60, 10),
]


@pytest.mark.parametrize(("program", "vocabulary", "most", "times"), SMALLER)
def test_the_smaller_form_is_taken(program: SOp, vocabulary: Any, most: int, times: int) -> None:
    small = compiler.compile(program, length=5, vocabulary=vocabulary)
    exact = compiler.compile(program, length=5, vocabulary=vocabulary, prefer="exact")
    assert units(small) <= most
    assert units(exact) >= times * units(small)
    assert small.error_bound <= 1e-3
    assert exact.error_bound <= 1e-5
    chance = random.Random(0)
    for size in (1, 2, 3, 4, 5, 5, 5, 5):
        inputs = chance.choices(list(vocabulary), k=size)
        for model in (small, exact):
            assert off(model, program, inputs) <= model.error_bound


@pytest.mark.parametrize("program", [VARIANCE, tokens > MEAN, tokens * MEAN, MEAN * MEAN, FRACTIONS])
def test_longer_networks_are_not_smaller(program: SOp) -> None:
    models = [compiler.compile(program, length=n, vocabulary=(0, 1, 4)) for n in (3, 4, 6, 8, 12)]
    for size in (units, lambda m: m.architecture.layers, lambda m: m.architecture.d_model):
        assert all(after >= 0.9 * before for before, after in pairwise(map(size, models)))


def test_preferences() -> None:
    """Small: the fewest weights, however deep. Exact: tables. Neither: not for little, nor too deep."""
    sizes = {}
    parity = round(length * aggregate(full, tokens)) % 2
    for prefer in ("exact", "small", None):
        options: dict[str, Any] = {} if prefer is None else {"prefer": prefer}
        model = compiler.compile(parity, length=12, vocabulary=(0, 1), **options)
        assert model.config.report["options"].get("prefer") == prefer
        assert all(model(list(bits)) == parity(list(bits)) for bits in product((0, 1), repeat=5))
        sizes[prefer] = (model.architecture.parameters, model.architecture.layers)
    assert sizes["small"] <= sizes[None] <= sizes["exact"]
    with pytest.raises(CompileError, match="prefer: expected"):
        compiler.compile(parity, length=2, vocabulary=(0, 1), prefer="fast")


WAYS: list[dict[str, Any]] = [
    {"feed_forward": "relu"},
    {"feed_forward": "gelu"},
    {"feed_forward": "glu"},
    {"feed_forward": "exact"},
    {"attention": "softmax"},
    {"attention": "softmax", "feed_forward": "gelu", "dtype": "float32"},
    {"attention": "softmax", "dtype": "float32"},
    {"attention": "softmax", "tolerance": 0.05},
    {"fixed": True},
    {"reuse_slots": False},
    {"tolerance": 1e-2, "feed_forward": "glu"},
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: " ".join(map(str, way.values())))
@pytest.mark.parametrize(
    "program",
    [VARIANCE, tokens > MEAN, PREFIX == SUFFIX, selector_width(select(MEAN * tokens, PREFIX, "<="))],
    ids=["variance", "greater", "equal", "count"],
)
def test_all_inputs_stay_within_the_bound(program: SOp, way: dict[str, Any]) -> None:
    """Comparisons and counts are right on all inputs."""
    vocabulary = (-1, 0, 3)
    model = compiler.compile(program, length=4, vocabulary=vocabulary, prefer="small", **way)
    lengths = (4,) if way.get("fixed") else (1, 2, 3, 4)
    whole = program is not VARIANCE
    for size in lengths:
        for inputs in product(vocabulary, repeat=size):
            error = off(model, program, list(inputs))
            assert error <= (0 if whole else model.error_bound), inputs


def test_decoders_of_smaller_forms() -> None:
    program = (tokens - PREFIX) ** 2 > PREFIX
    model = compiler.compile(program, length=4, vocabulary=DIGITS, prefer="small", causal=True)
    for inputs in product((0, 1, 2, 5, 9), repeat=4):
        assert model(list(inputs)) == program(list(inputs))


# Random programs ---------------------------------------------------------------------------------


def _smooth(draw: random.Random, depth: int) -> SOp:
    """Return a random number that is computed from means, counts and tokens."""
    if depth == 0:
        width = selector_width(select(tokens, tokens, draw.choice(("==", "<", ">="))))
        return draw.choice((tokens, indices, length, MEAN, PREFIX, SUFFIX, BELOW, width, MEAN))
    a, b = _smooth(draw, depth - 1), _smooth(draw, draw.randrange(depth))
    match draw.randrange(12):
        case 0 | 1:
            return a * b
        case 2:
            return a**2
        case 3:
            return abs(a - b)
        case 4:
            return maximum(a, b)
        case 5:
            return where(a > b, a, b - 1)
        case 6:
            return aggregate(draw.choice((full, select(indices, indices, "<="))), a)
        case 7:
            return selector_width(select(a, b, draw.choice(("<", "<=", "==", ">"))))
        case 8:
            return aggregate(select(a, b, draw.choice(("<", ">="))), tokens, 1)
        case 9:
            return draw.choice((sqrt(abs(a)), exp(-abs(a)), 1 / (1 + abs(a))))
        case 10:
            return a / (1 + b * b)
        case _:
            return round(a * 2) % 3 + b


def _trials(seeds: range) -> Iterator[tuple[SOp, tuple[Any, ...], int, dict[str, Any]]]:
    for seed in seeds:
        draw = random.Random(seed)
        program = _smooth(draw, draw.choice((1, 2, 2, 3)))
        vocabulary = draw.choice(((0, 1), (0, 1, 2), (-2, 0, 3), (0.5, 1, 2), tuple(DIGITS)))
        options: dict[str, Any] = {
            "feed_forward": draw.choice(("relu", "relu", "gelu", "glu")),
            "attention": draw.choice(("hard", "softmax")),
            "prefer": draw.choice(("small", "small", None)),
        }
        if options["attention"] == "softmax":
            options["dtype"] = draw.choice(("float64", "float32"))
        if draw.random() < 0.3:
            options["tolerance"] = draw.choice((0.5, 0.05, 1e-4))
        if draw.random() < 0.2:
            options["fixed"] = True
        yield program, vocabulary, draw.choice((2, 3, 5, 6)), options


def stray(seeds: range) -> Iterator[str]:
    """List the answers outside of their bounds, and the number of networks."""
    made = 0
    for program, vocabulary, longest, options in _trials(seeds):
        try:
            model = compiler.compile(program, length=longest, vocabulary=vocabulary, **options)
        except CompileError:
            continue
        made += 1
        chance = random.Random(longest)
        lengths = [longest] * 4 if options.get("fixed") else [1, longest, *range(1, longest + 1)]
        for size in lengths:
            inputs = chance.choices(vocabulary, k=size)
            error = off(model, program, inputs)
            if not error <= model.error_bound:
                yield f"{to_rasp(program)} {options} {inputs}: {error} > {model.error_bound}"
    assert made > len(seeds) / 2


@pytest.mark.parametrize("part", range(2))
def test_random_programs_stay_within_their_bounds(part: int) -> None:
    more = settings().max_examples // _USUAL
    count = 12 if more == 1 else 20 * more
    assert not list(stray(range(part * 100_000, part * 100_000 + count)))
