"""IEEE arithmetic: the three executors give torch's values, infinities and NaN included."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import locum
from locum import aggregate, indices, select, tokens, where
from locum.execution import run, run_all
from locum.rasp.handles import SOp, apply
from locum.rasp.python import best, family, maximum, minimum, sum_over

torch = pytest.importorskip("torch")
from locum.execution.fast.plan_cache import plan_all  # noqa: E402

EXECUTORS = ("fast", "dense", "heads")
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 3e38, -3e38, 1e-45, 65504.0, math.inf, -math.inf, math.nan]
_EXACT = ("negate", "absolute", "floor", "round"), ("less", "equal")
_ALL = (*_EXACT[0], "exp", "log", "sqrt", "tanh"), (*_EXACT[1], "add", "subtract", "multiply", "divide")

leaves = st.one_of(
    st.sampled_from([tokens, aggregate(select(indices, 7 - indices, "=="), tokens)]),
    st.sampled_from(EDGES).map(locum.constant),
)


def _apply_two(op: str, one: SOp, other: SOp) -> SOp:
    """Apply an operation; comparisons give floats, because integers have no −0."""
    result = apply(op, one, other)
    return where(result, 1.0, 0.0) if op in _EXACT[1] else result


def _grow(leaves: Any, operations: tuple[tuple[str, ...], tuple[str, ...]], most: int) -> Any:
    """Return programs of these operations."""

    def grow(inner: Any) -> Any:
        one = st.builds(apply, st.sampled_from(operations[0]), inner)
        two = st.builds(_apply_two, st.sampled_from(operations[1]), inner, inner)
        chosen = st.builds(lambda a, b, c: where(a > b, b, c), inner, inner, inner)
        return st.one_of(one, two, chosen)

    return st.recursive(leaves, grow, max_leaves=most)


def _programs(dtype: str) -> Any:
    """Return programs that round to a type. Exact operations follow.

    Operations of torch compute in the type of their operands. A captured graph rounds all operands of
    an operation to one type, and then its result.
    """
    return _grow(st.builds(apply, st.just(dtype), _grow(leaves, _ALL, 6)), _EXACT, 3)


def equal(one: Any, other: Any) -> bool:
    """Return whether two tensors have the same numbers, NaN and the signs of zeros included."""
    same = torch.equal(torch.isnan(one), torch.isnan(other))
    one, other = one.nan_to_num(7.0, math.inf, -math.inf), other.nan_to_num(7.0, math.inf, -math.inf)
    close = torch.isclose(one, other, rtol=1e-13, atol=0)
    signs = torch.signbit(one) == torch.signbit(other)
    return same and bool((close & signs).all())


DTYPES = ("float64", "float32", "bfloat16", "float16")


@given(
    st.sampled_from(DTYPES).flatmap(_programs),
    st.lists(st.sampled_from(EDGES), min_size=8, max_size=8),
)
def test_random_arithmetic_is_the_same_in_all_executors(program: SOp, values: list[float]) -> None:
    root = apply("float64", where(program == program, program, program)).node
    parts = [torch.tensor(values, dtype=torch.float64)]
    fast, dense, heads = (
        run_all({root: range(8)}, parts, 8, executor=executor)[0].double() for executor in EXECUTORS
    )
    assert equal(fast, dense), (program, fast, dense)
    assert equal(heads, dense), (program, heads, dense)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_division_and_functions_without_a_value(executor: str) -> None:
    given_ = torch.tensor(EDGES, dtype=torch.float64)
    roots = {
        apply("float64", 1.0 / tokens).node: 1 / given_,
        apply("float64", tokens - tokens).node: given_ - given_,
        apply("float64", tokens * 0.0).node: given_ * 0.0,
        apply("log", tokens).node: given_.log(),
        apply("sqrt", tokens).node: given_.sqrt(),
        apply("sin", tokens).node: given_.sin(),
        apply("exp", tokens * 1000.0).node: (given_ * 1000.0).exp(),
    }
    size = len(EDGES)
    found = run_all({root: range(size) for root in roots}, [given_], size, executor=executor)
    for value, expected in zip(found, roots.values(), strict=True):
        assert equal(value.double(), expected)


def test_each_part_keeps_its_type() -> None:
    half, single = torch.randn(4).bfloat16(), torch.randn(4)
    first = aggregate(select(indices, indices, "=="), tokens)
    second = aggregate(select(indices, indices + 4, "=="), tokens)
    product = apply("bfloat16", apply("float32", first) * second).node
    (value,) = run_all({product: range(4)}, [half, single], 8)
    assert value.dtype == torch.bfloat16
    assert torch.equal(value, (half.float() * single).bfloat16())
    for executor in ("dense", "heads"):
        (other,) = run_all({product: range(4)}, [half, single], 8, executor=executor)
        assert torch.equal(other, value.double())


def test_several_roots_are_computed_in_one_run() -> None:
    square = tokens * tokens
    roots = {square.node: range(1, 3), (square + 1.0).node: range(4), tokens.node: range(2)}
    parts = [torch.arange(4.0)]
    for executor in EXECUTORS:
        one, two, three = run_all(roots, parts, 4, executor=executor)
        assert one.tolist() == [1.0, 4.0]
        assert two.tolist() == [1.0, 2.0, 5.0, 10.0]
        assert three.tolist() == [0.0, 1.0]


def data_driven() -> tuple[dict[Any, range], list[Any], list[Any]]:
    """Return a fetch, a scatter and an argmax by data; their parts; what they are."""
    torch.manual_seed(0)
    table, ids, grad = torch.randn(7, 3), torch.tensor([1, 6, 2, 0, 0, 5]), torch.randn(6, 3)

    def at(place: SOp) -> SOp:
        return aggregate(select(indices, place, "=="), tokens)

    row = minimum(maximum(at(21 + indices // 3), 0), 6)
    fetched = at(row * 3 + indices % 3)
    t = family(6)
    scattered = sum_over(t, where(at(21 + t) == indices // 3, at(27 + t * 3 + indices % 3), 0.0))
    line = at(27 + indices)
    place = aggregate(best(best(select(indices // 3, indices, "=="), line), -indices), indices % 3)
    roots = {fetched.node: range(18), scattered.node: range(21), place.node: range(6)}
    expected = [table[ids], torch.zeros(7, 3).index_add(0, ids, grad), grad.argmax(-1)]
    return roots, [table.reshape(-1), ids, grad.reshape(-1)], expected


@pytest.mark.parametrize("executor", EXECUTORS)
def test_keys_that_data_selects(executor: str) -> None:
    roots, parts, expected = data_driven()
    for value, wanted in zip(run_all(roots, parts, 45, executor=executor), expected, strict=True):
        torch.testing.assert_close(value.double(), wanted.reshape(-1).double(), rtol=1e-6, atol=1e-6)


def test_keys_that_data_selects_are_single_steps() -> None:
    roots, parts, _ = data_driven()
    plan = plan_all(roots, 45, parts)
    assert not plan.opaque
    assert [plan.counts[op] for op in ("fetch", "scatter", "argmax", "structured")] == [1, 1, 1, 0]


def test_ieee_domain_on_lists() -> None:
    assert run((1 / tokens).node, [0.0, -0.0, 2], domain="ieee") == [math.inf, -math.inf, 0.5]
    assert run(apply("float16", tokens).node, [70000.0], domain="ieee") == [math.inf]
