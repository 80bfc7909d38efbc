"""Random programs with numbers at the ends of floats: right, within the bound, or refused in words."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locum import SOp, aggregate, full, indices, tokens
from locum.errors import CompileError, LocumError
from locum.graph import Atom, Node, Sort
from locum.networks import compiler
from locum.rasp import to_rasp
from tests.old.graph.strategies import programs

#: Beyond what floats hold, at the last integers and the smallest numbers they do hold, and none at all.
_LARGE = (2**53, 2**53 + 1, -(2**53) - 1, 2**64 + 1, 10**30, 1e300, -1e300)
_SMALL = (1e-300, 5e-324, 2.0**-149, -0.0)
_NONE = (math.inf, -math.inf, math.nan)
_atoms: st.SearchStrategy[Atom] = st.one_of(
    st.integers(-2, 3),
    st.booleans(),
    st.sampled_from(["a", "b", "1"]),
    st.sampled_from(_LARGE),
    st.sampled_from((*_SMALL, *_NONE)),
)
_VOCABULARIES = (
    [0, 1, 2],
    [0, 1, True, 0.5],
    ["a", "b", "1"],
    [0, 1, 2**53, 10**6],
    [2**53 + 1, 1],
    [1e300, -1e300, 1],
    [0.0, 1e-300, 1],
)
_options = st.fixed_dictionaries(
    {
        "vocabulary": st.sampled_from(_VOCABULARIES),
        "length": st.integers(1, 4),
        "dtype": st.sampled_from(["float64", "float32"]),
        "attention": st.sampled_from(["hard", "hard", "softmax"]),
        "feed_forward": st.sampled_from(["exact", "exact", "relu", "gelu", "glu"]),
    }
)


def _agrees(result: Any, expected: Any, allowed: float) -> bool:
    if isinstance(result, str) or isinstance(expected, str):
        return bool(result == expected)
    return bool(result == expected or abs(result - expected) <= allowed)


def test_random_programs_with_extreme_numbers() -> None:
    counts: Counter[str] = Counter()

    @given(programs(size=8, sorts=(Sort.SOP,), atoms=_atoms), _options, st.integers(0, 2**20))
    def check(node: Node, options: dict[str, Any], seed: int) -> None:
        program = SOp(node)
        assert isinstance(program, SOp)
        try:
            model = compiler.compile(program, **options)
        except CompileError:
            counts["refused"] += 1
            return
        counts["compiled"] += 1
        chance = random.Random(seed)
        for _ in range(4):
            tokens = chance.choices(options["vocabulary"], k=chance.randint(1, options["length"]))
            try:
                expected, result = program(tokens, executor="dense"), model(tokens)
            except LocumError:
                continue
            counts["compared"] += 1
            assert len(set(map(type, result))) == 1, result
            sizes = [abs(y) for y in expected if not isinstance(y, str) and math.isfinite(y)]
            rounding = 1e-10 if options["dtype"] == "float64" else 1e-5
            bound = model.error_bound
            allowed = bound if math.isfinite(bound) else rounding * max([1, *sizes])
            assert all(_agrees(f, e, allowed) for f, e in zip(result, expected, strict=True)), (
                f"{options} on {tokens}: {result}, not {expected}, bound {bound}\n{to_rasp(program)}"
            )

    check()
    assert 3 * counts["compiled"] >= counts["refused"], counts
    assert counts["compared"] >= counts["compiled"], counts


@pytest.mark.parametrize("kind", ["relu", "gelu", "glu"])
@pytest.mark.parametrize("factor", [indices, aggregate(full, tokens)])
def test_products_whose_squares_are_no_floats(kind: str, factor: SOp) -> None:
    program = factor * aggregate(full, tokens)
    options: dict[str, Any] = {"feed_forward": kind, "prefer": "small"}
    try:
        model = compiler.compile(program, length=3, vocabulary=[1e300, -1e300, 0], **options)
    except CompileError as error:
        assert "; try " in str(error)
    else:
        assert model.error_bound == 0
