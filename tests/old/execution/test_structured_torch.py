"""The structured evaluator on torch tensors: the same values, and gradients."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import locum
from locum import Selector, aggregate, best, indices, select, selector_width, tokens
from locum.execution.fast import structured
from locum.execution.fast.structured import Unstructured
from locum.graph import Atom, Node, Sort, build, postorder, sort_of
from tests.cases import before, here, same_token, up_to_here
from tests.old.execution.test_structured import (
    WAYS,
    agree,
    in_block,
    meaning,
    same,
    window,
)
from tests.old.graph.strategies import ATTENTION, USEFUL_PARTS, programs, small_ints

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
NUMBERS: st.SearchStrategy[Atom] = st.one_of(small_ints, st.sampled_from([0.5, -1.5]))
DYADIC = st.lists(st.sampled_from([0.0, 1.0, 2.0, 0.5, -1.5, 4.0]), min_size=3, max_size=12)
ARITHMETIC = (
    *("add", "subtract", "multiply", "divide", "modulo", "floor_divide", "negate", "absolute"),
    *("minimum", "maximum", "floor", "round", "equal", "less", "and", "or", "not", "if_else"),
    *("indicator", "member", "lookup", "tanh", "erf", "power"),
)


@pytest.mark.parametrize("device", DEVICES)
def test_random_selectors_on_tensors(device: str) -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=100)  # operations on short tensors are slow
    @given(
        programs(size=16, ops=ATTENTION, parts=USEFUL_PARTS, casts=("asis",), atoms=NUMBERS),
        DYADIC,
        st.booleans(),
    )
    def check(program: Node, values: list[float], allow_masks: bool) -> None:
        tokens = torch.tensor(values, dtype=torch.float64, device=device)
        closed = [n for n in postorder(program) if sort_of(n) is Sort.SELECTOR and not n.free][-3:]
        numbers = (indices * indices - 7).node
        roots = [program, *closed, *(build("selector_width", s) for s in closed)]
        roots += [build("aggregate", s, numbers, default=-1) for s in closed]
        for root in roots:
            if meaning(root, values) is not None:  # where there is an error, tensors follow IEEE 754
                seen[agree(root, values, tokens, allow_masks=allow_masks)] += 1

    check()
    assert seen["agreed"] > 20 * seen["unstructured"]


def test_random_arithmetic_on_tensors() -> None:
    """Where Python has a value; where it has an error, tensors may have IEEE's answer."""
    seen: Counter[str] = Counter()

    @settings(max_examples=100)
    @given(programs(ops=ARITHMETIC, casts=("asis", "float", "int", "bool"), atoms=NUMBERS), DYADIC)
    def check(program: Node, values: list[float]) -> None:
        expected = meaning(program, values)
        if expected is None or sort_of(program) is Sort.SELECTOR:
            return
        try:
            actual = structured.evaluate(program, torch.tensor(values, dtype=torch.float64))
        except Unstructured:
            seen["unstructured"] += 1
            return
        seen["agreed"] += 1
        assert all(map(same, actual.tolist(), expected)), f"{actual} instead of {expected}"

    check()
    assert seen["agreed"] > 10 * seen["unstructured"]


@pytest.mark.parametrize(
    ("selector", "ways"), [(selector, ways) for name, selector, ways in WAYS if "strings" not in name]
)
def test_the_way_it_goes(selector: Selector, ways: dict[str, int]) -> None:
    values = np.random.default_rng(5).integers(0, 9, 64).tolist()
    counts: Counter[str] = Counter()
    program = aggregate(selector, indices * indices - 100, -1).node
    assert agree(program, values, torch.tensor(values), counts=counts) == "agreed"
    assert dict(counts) == ways


@pytest.mark.parametrize(
    "selector",
    [up_to_here, window, in_block, select(indices % 3, indices % 3, "=="), here, ~here, before],
    ids=["prefix", "window", "blocks", "groups", "gather", "others", "default"],
)
def test_gradients(selector: Selector) -> None:
    program = aggregate(selector, tokens * tokens).node
    values = torch.linspace(-1, 2, 20, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: structured.evaluate(program, x), (values,))


def test_gradients_past_keys_and_maxima_that_depend_on_the_values() -> None:
    """The greatest value so far: the order has no gradient, what it fetches has."""
    program = aggregate(best(up_to_here, tokens), tokens * 2).node
    values = torch.tensor([1.0, 3.0, 2.0, 5.0], dtype=torch.float64, requires_grad=True)
    structured.evaluate(program, values).sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [2.0, 4.0, 0.0, 2.0]


def test_infinities_outside_do_not_reach_the_gradient() -> None:
    values = torch.arange(16.0, dtype=torch.float64)
    values[3] = torch.inf
    values.requires_grad_()
    for selector in (in_block, window):
        result = structured.evaluate(aggregate(selector, tokens).node, values)
        (gradient,) = torch.autograd.grad(result[8:].sum(), values)
        assert bool(torch.isfinite(gradient).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_results_have_the_type_of_the_tokens(dtype: torch.dtype) -> None:
    values = torch.tensor([1.0, 2.0, 4.0], dtype=dtype)
    for program in (aggregate(up_to_here, tokens), tokens / locum.length, (indices + 1) / 2 + tokens):
        assert structured.evaluate(program.node, values).dtype is dtype
    assert structured.evaluate((indices + 1).node, values).dtype is torch.int64
    assert structured.evaluate(selector_width(same_token).node, values).tolist() == [1, 1, 1]
    assert structured.evaluate((indices / 2).node, torch.tensor([1, 2])).tolist() == [0.0, 0.5]


def test_long_sums_in_single_precision() -> None:
    values = torch.rand(200_000, generator=torch.Generator().manual_seed(1)) + 1000
    for last, selector in {
        200_000: up_to_here,
        199_999: before,
        150_000: select(indices, indices - 150_000, ">") & up_to_here,
        100_000: select(indices // 100_000, indices // 100_000, "=="),
    }.items():
        result = structured.evaluate(aggregate(selector, tokens).node, values)[-1]
        chosen = values[:last] if last == 199_999 else values[-last:]
        np.testing.assert_allclose(result.item(), chosen.double().mean().item(), rtol=1e-7)


def test_exact_positions_whatever_the_type() -> None:
    """1 / (1 / n) in the type of the tokens would not be n."""
    n = 5_000
    length = round(1 / aggregate(locum.full, locum.indicator(indices == 0)))
    reverse = aggregate(select(indices, length - 1 - indices, "=="), indices)
    for dtype in (torch.bfloat16, torch.float32):
        result = structured.evaluate(reverse.node, torch.zeros(n, dtype=dtype))
        assert torch.equal(result, torch.arange(n - 1, -1, -1))


def test_numbers_that_tensors_do_not_hold() -> None:
    for program in (tokens == 10**30, tokens + 10**30, locum.where(tokens > 1, "a", "b")):
        with pytest.raises(Unstructured):
            structured.evaluate(program.node, torch.tensor([1, 2]))


def test_tensors_that_are_no_tokens() -> None:
    for tensor in (torch.zeros(2, 2), torch.zeros(0), torch.zeros(2, dtype=torch.complex64)):
        with pytest.raises(Unstructured):
            structured.evaluate(tokens.node, tensor)


def test_constants_beyond_the_range_of_a_narrow_type_are_infinite() -> None:
    program = aggregate(select(tokens, tokens, "<"), tokens, -1e300)
    expected = [-np.inf, 1.0, 1.5]
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for executor in ("auto", "fast"):
            result = program(torch.tensor([1, 2, 3], dtype=dtype), executor=executor)
            assert result.dtype is dtype
            assert result.tolist() == expected
