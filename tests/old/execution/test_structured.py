"""The structured evaluator: dense execution's values, by the way that was meant, or Unstructured."""

from __future__ import annotations

import bisect
import math
import subprocess
import sys
import tracemalloc
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locum
from locum import Selector, SOp, aggregate, best, indices, select, selector_width, tokens, where
from locum.execution import DOMAINS, dense
from locum.execution.fast import structured
from locum.execution.fast.structured import Unstructured
from locum.graph import Atom, Node, Sort, build, postorder, sort_of
from tests.cases import CASES, FAILURES, Case, Failure, before, here, same_token, up_to_here
from tests.old.graph.strategies import (
    ATTENTION,
    USEFUL_PARTS,
    inputs,
    longer_inputs,
    programs,
    small_ints,
)

FLOAT = DOMAINS["float"]


def same(actual: Any, expected: Any) -> bool:
    """Equal by value (3 and 3.0 are); floats to twelve digits."""
    if isinstance(actual, str) or isinstance(expected, str):
        return type(actual) is type(expected) and bool(actual == expected)
    both_nan = actual != actual and expected != expected
    whole = isinstance(expected, int) and isinstance(actual, int)
    return bool(
        actual == expected or both_nan or (not whole and math.isclose(actual, expected, rel_tol=1e-12))
    )


def meaning(program: Node, values: list[Any]) -> Any:
    """What dense execution says, or None where it says there is an error."""
    try:
        return dense.evaluate(program, values, FLOAT)
    except locum.ExecutionError:
        return None


def agree(program: Node, values: list[Any], tokens: Any, **options: Any) -> str:
    """Compare with dense execution; says which of the two had an answer."""
    expected = meaning(program, values)
    try:
        actual = structured.evaluate(program, tokens, **options)
    except Unstructured:
        return "error" if expected is None else "unstructured"
    assert expected is not None, f"{actual} for an error"
    if sort_of(program) is Sort.SELECTOR:
        assert actual.rows(0, len(expected)).tolist() == expected.tolist()
    else:
        actual = actual.tolist()
        assert len(actual) == len(expected)
        assert all(map(same, actual, expected)), f"{actual} instead of {expected}"
    return "agreed"


# Against dense execution --------------------------------------------------------------------------


@pytest.mark.parametrize("allow_masks", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case, allow_masks: bool) -> None:
    unlike = {"tokens_str", "member of mixed", "large ints", "huge ints pass"}  # beyond arrays
    values = list(case.given)
    if case.name in unlike:
        with pytest.raises(Unstructured):
            structured.evaluate(case.program.node, structured.tokens_array(values))
        return
    tokens = structured.tokens_array(values)
    assert agree(case.program.node, values, tokens, allow_masks=allow_masks) == "agreed"


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_errors_are_left_to_dense_execution(failure: Failure) -> None:
    with pytest.raises(Unstructured):
        structured.evaluate(
            failure.program.node, structured.tokens_array(list(failure.given)), allow_masks=True
        )


def test_random_programs_of_all_operations() -> None:
    seen: Counter[str] = Counter()

    @given(programs(), inputs, st.booleans())
    def check(program: Node, values: Any, allow_masks: bool) -> None:
        values = list(values)
        try:
            tokens = structured.tokens_array(values)
        except Unstructured:
            return
        seen[agree(program, values, tokens, allow_masks=allow_masks)] += 1

    check()
    assert seen["agreed"] > 10 * seen["unstructured"]


def test_random_selectors_and_what_they_select() -> None:
    """Every selector in a program rich in them: its pattern, its widths, its means, its maxima."""
    seen: Counter[str] = Counter()
    ways: Counter[str] = Counter()
    values_to_average = (indices * indices - 7).node
    atoms: st.SearchStrategy[Atom] = st.one_of(small_ints, st.sampled_from([0.5, -1.5, "a", "b"]))

    @given(
        programs(size=18, ops=ATTENTION, parts=USEFUL_PARTS, casts=("asis",), atoms=atoms),
        longer_inputs,
        st.booleans(),
    )
    def check(program: Node, values: list[Any], allow_masks: bool) -> None:
        closed = [n for n in postorder(program) if sort_of(n) is Sort.SELECTOR and not n.free][-5:]
        roots = [program, *closed]
        roots += [build("selector_width", selector) for selector in closed]
        roots += [build("aggregate", s, values_to_average, default=-1) for s in closed]
        tokens = structured.tokens_array(values)
        for root in roots:
            seen[agree(root, values, tokens, allow_masks=allow_masks, counts=ways)] += 1

    check()
    assert seen["agreed"] > 20 * seen["unstructured"]
    assert set(ways) >= {"gather", "scan", "sort", "segment"}


@given(
    programs(size=14, ops=ATTENTION, parts=USEFUL_PARTS, casts=("asis",)),
    st.lists(st.sampled_from([0.0, 1.0, float("nan"), 3.0]), min_size=3, max_size=9),
)
def test_random_programs_on_nan_pair_by_pair(program: Node, values: list[float]) -> None:
    agree(program, values, np.array(values), allow_masks=True)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40),
    st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
    st.integers(1, 5),
)
def test_random_floats_in_means(values: list[float], predicate: str, block: int) -> None:
    """Long sums of ordinary floats, to twelve digits of their largest part."""
    groups = select(indices // block, indices // block, predicate)
    window = select(indices, indices - block, ">") & up_to_here
    for selector in (groups, window, select(tokens, tokens, predicate)):
        program = aggregate(selector, tokens).node
        actual = structured.evaluate(program, np.array(values))
        expected = np.array(dense.evaluate(program, values, FLOAT), dtype=float)
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12 * max(map(abs, values)))


@given(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.5, -1.0, math.inf]), min_size=1, max_size=33),
    st.lists(st.sampled_from(["<", "<=", ">", ">=", "!="]), min_size=2, max_size=2),
    st.integers(1, 7),
    st.booleans(),
)
def test_random_selectors_by_two_orders(
    values: list[float], predicates: list[str], factor: int, grouped: bool
) -> None:
    """Widths, means of integers and of floats, and what is best, without a comparison of pairs."""
    mixed = (indices * factor) % 5
    selector = select(tokens, tokens, predicates[0]) & select(mixed, indices % 5, predicates[1])
    if grouped:
        selector &= select(indices % 2, indices % 2, "==")
    for program in (
        selector_width(selector),
        aggregate(selector, indices * indices - 7, -1),
        aggregate(selector, where(tokens > 3, 0.25, tokens)),
        aggregate(selector, tokens),
        aggregate(best(selector, mixed), indices),
    ):
        assert agree(program.node, values, np.array(values)) == "agreed"


def test_inversions_of_a_long_sequence() -> None:
    size = 200_000  # beyond the limit of comparing pairs
    values = np.random.default_rng(3).permutation(size)
    counts: Counter[str] = Counter()
    inversions = selector_width(select(tokens, tokens, ">") & before)
    result = structured.evaluate(inversions.node, values, counts=counts)
    assert set(counts) == {"sort", "tree"}
    ascending: list[int] = []
    for position, value in enumerate(values[:2_000].tolist()):
        assert result[position] == position - bisect.bisect_left(ascending, value)
        bisect.insort(ascending, value)
    assert result[-1] == (values[:-1] > values[-1]).sum()
    different = selector_width(select(tokens, tokens, "!=") & before)
    result = structured.evaluate(different.node, values % 1_000)
    rows = np.arange(0, size, 9_999)
    assert [int(result[q]) for q in rows] == [
        int((values[:q] % 1_000 != values[q] % 1_000).sum()) for q in rows
    ]


# Which way it goes ----------------------------------------------------------------------------------

block = indices // 8
in_block = select(block, block, "==")
first_of_block = block * 8
between = select(indices, first_of_block, ">=") & select(indices, first_of_block + 8, "<")
window = select(indices, indices - 5, ">") & up_to_here
folded = (indices * 7) % 64
some_keys, some_queries = select(tokens, 2, "<="), select(3, tokens, "<=")
parts = select(indices, block * 8 + 1, ">=") & select(indices, block * 8 + 6, "<")
many = select(tokens * 9, tokens * 9, "==")
shifted = select(indices % 8 * 10, (indices + 3) % 8 * 10, "==")
falling = select(-indices // 8, -indices // 8, "==")
rare = select(
    locum.where(indices < 40, 60, indices), locum.where(indices < 15, indices + 41, 200), "=="
)
same_third = select(indices % 3, indices % 3, "==")
window_by_token = select(tokens, tokens - 3, ">") & select(tokens, tokens, "<=")
window_by_folded = select(folded, folded - 9, ">") & select(folded, folded, "<=")
TWO_ORDERS = select(tokens, tokens, "<") & select(folded, indices, "<")
latest = best(best(same_token & before, tokens % 3), indices)

WAYS: list[tuple[str, Selector, dict[str, int]]] = [
    ("reverse", select(indices, locum.length - 1 - indices, "=="), {"gather": 1}),
    ("shift", select(indices + 1, indices, "=="), {"gather": 1}),
    ("permutation", select(folded, indices, "=="), {"gather": 1}),
    ("one key, tested", select(folded, indices, "==") & (same_token | before), {"gather": 1}),
    ("one key among masked", select(tokens * 0 + indices, 63 - indices, "=="), {"gather": 1}),
    ("one key for chosen queries", select(folded, indices, "==") & some_queries, {"gather": 1}),
    ("one of chosen keys", select(folded, indices, "==") & some_keys, {"gather": 1}),
    (
        "a position for chosen queries",
        select(indices, 63 - indices, "==") & some_queries,
        {"gather": 1},
    ),
    ("a position of chosen keys", select(indices, 63 - indices, "==") & some_keys, {"gather": 1}),
    ("a single key beside equal ones", rare, {"gather": 1}),
    ("such a key for chosen queries", rare & some_queries, {"gather": 1}),
    ("nothing", select(indices, 99, "=="), {}),
    ("never", select(tokens, "a", "=="), {}),
    ("everything", locum.full, {"segment": 1}),
    ("chosen keys", select(tokens, 2, "=="), {"segment": 1}),
    ("chosen queries", select(1, tokens, "=="), {"segment": 1}),
    ("prefix", up_to_here, {"scan": 1}),
    ("prefix of chosen keys", select(tokens, 2, "<=") & up_to_here, {"scan": 1}),
    ("prefix of chosen queries", select(1, tokens, "<=") & up_to_here, {"scan": 1}),
    ("suffix", select(indices, indices, ">="), {"scan": 1}),
    ("all but one", ~here, {"scan": 2}),
    ("window", window, {"scan": 1}),
    ("window said twice", select(indices + 5, indices, ">") & up_to_here, {"scan": 1}),
    ("window said backwards", select(-indices, 5 - indices, "<") & up_to_here, {"scan": 1}),
    ("outside a window", ~window, {"scan": 2}),
    ("equal blocks", in_block, {"segment": 1}),
    ("blocks by their ends", between, {"segment": 1}),
    ("groups", same_token, {"sort": 1, "segment": 1}),
    ("groups of strings", select(locum.tokens_str, locum.tokens_str, "=="), {"sort": 1, "segment": 1}),
    ("two equalities", same_token & select(indices % 3, indices % 3, "=="), {"sort": 1, "segment": 1}),
    ("two equalities of many values", many & shifted, {"sort": 2, "segment": 1}),
    ("order in parts of blocks", parts & select(tokens, tokens, "<="), {"sort": 2, "scan": 1}),
    ("groups of chosen keys", some_keys & same_token, {"sort": 1, "segment": 1}),
    ("falling blocks of chosen keys", some_keys & falling, {"sort": 1, "segment": 1}),
    ("groups for chosen queries", some_queries & same_token, {"sort": 1, "segment": 1}),
    ("order among chosen keys", some_keys & select(tokens, tokens, "<"), {"sort": 1, "scan": 1}),
    ("order by value", select(tokens, tokens, "<"), {"sort": 1, "scan": 1}),
    ("order against another", select(tokens, indices % 5, ">"), {"sort": 1, "scan": 1}),
    ("order against halves", select(indices, indices / 2, "<"), {"scan": 1}),
    ("equal to halves", select(indices, indices / 2, "=="), {"gather": 1}),
    ("earlier of a group", same_token & before, {"sort": 1, "scan": 1}),
    ("sort", select(tokens, tokens, "<") | (same_token & before), {"sort": 1, "scan": 2}),
    ("order within a block", in_block & select(tokens, tokens, "<"), {"sort": 2, "scan": 1}),
    ("order between ends", between & select(tokens, tokens, "<="), {"sort": 2, "scan": 1}),
    (
        "order below a mark",
        select(indices, tokens * 0 + 5, "<") & select(tokens, tokens, "<="),
        {"sort": 1, "scan": 1},
    ),
    ("first of a group", best(same_token, -indices), {"sort": 1, "segment": 1, "gather": 1}),
    ("greatest so far", best(up_to_here, tokens), {"sort": 2, "scan": 2}),
    ("greatest of a window", best(window, tokens), {"sort": 2, "scan": 2}),
    (
        "either of two values",
        ~(~same_token & select(tokens, 8 - tokens, "!=")),
        {"sort": 1, "segment": 4},
    ),
    ("outside a rectangle", ~(some_keys & some_queries), {"segment": 2}),
    ("two rectangles", (some_keys & some_queries) | (~some_keys & ~some_queries), {"segment": 2}),
    ("not an earlier equal", ~(same_token & before), {"sort": 1, "scan": 3}),
    ("De Morgan", ~(~same_token | ~before), {"sort": 1, "scan": 1}),
    ("latest of the greatest", latest, {"sort": 3, "scan": 2, "gather": 1}),
    ("inversions", select(tokens, tokens, ">") & before, {"sort": 1, "tree": 2}),
    ("different and earlier", ~same_token & before, {"sort": 1, "scan": 2}),
    ("two orders", select(tokens, tokens, "<") & select(folded, folded, "<"), {"sort": 2, "tree": 2}),
    (
        "two orders backwards",
        select(tokens, tokens, ">=") & select(folded, folded, ">="),
        {"sort": 2, "tree": 2},
    ),
    ("two orders of chosen keys", TWO_ORDERS & some_keys, {"sort": 2, "tree": 2}),
    ("two orders for chosen queries", TWO_ORDERS & some_queries, {"sort": 2, "tree": 2}),
    ("two orders within a group", TWO_ORDERS & same_third, {"sort": 3, "tree": 2}),
    ("window and order", window & select(tokens, tokens, "<"), {"sort": 1, "tree": 2}),
    ("windows of two orders", window_by_folded & window_by_token, {"sort": 3, "tree": 4}),
    ("two that differ, and earlier", ~same_token & ~same_third & before, {"sort": 4, "scan": 4}),
    ("union of filters", select(tokens, 1, "==") | select(tokens, 2, "=="), {"segment": 1}),
]


@pytest.mark.parametrize(("name", "selector", "ways"), WAYS, ids=[name for name, _, _ in WAYS])
def test_the_way_it_goes(name: str, selector: Selector, ways: dict[str, int]) -> None:
    values = np.random.default_rng(5).integers(0, 9, 64).tolist()
    counts: Counter[str] = Counter()
    program = aggregate(selector, indices * indices - 100, -1).node
    assert agree(program, values, np.array(values), counts=counts) == "agreed"
    assert dict(counts) == ways


def test_integers_of_few_values_are_counted_not_moved() -> None:
    """Sorting by their own values needs the number of each, and neither an order nor a gather."""
    counts: Counter[str] = Counter()
    values = np.random.default_rng(6).integers(0, 9, 64)
    smaller = select(tokens, tokens, "<") | (same_token & before)
    result = structured.evaluate(
        aggregate(select(selector_width(smaller), indices, "=="), tokens).node, values, counts=counts
    )
    assert result.tolist() == sorted(values.tolist())
    assert dict(counts) == {"sort": 1}


THREE_ORDERS = TWO_ORDERS & select((indices * 11) % 64, indices, "<")


@pytest.mark.parametrize("finish", [selector_width, lambda s: aggregate(s, tokens), lambda s: s])
def test_without_structure_pair_by_pair_or_not_at_all(finish: Any) -> None:
    values = np.random.default_rng(7).permutation(200)
    program = finish(best(THREE_ORDERS, indices % 3)).node
    with pytest.raises(Unstructured, match=r"in different orders, in best\("):
        structured.evaluate(program, values)
    counts: Counter[str] = Counter()
    outcome = agree(program, values.tolist(), values, allow_masks=True, counts=counts)
    assert outcome == "agreed"
    assert counts["mask"] >= 1


def test_pair_by_pair_takes_bounded_memory() -> None:
    n = 6_000
    program = aggregate(THREE_ORDERS | ~(same_token | before), tokens).node
    values = np.random.default_rng(8).normal(size=n)
    tracemalloc.start()
    result = structured.evaluate(program, values, allow_masks=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n * n / 2  # a pattern of numbers would be twice that
    place = np.arange(n)
    for q in (0, 17, n - 1):
        smaller = (values < values[q]) & (place * 7 % 64 < q) & (place * 11 % 64 < q)
        chosen = smaller | (values != values[q]) & (place >= q)
        assert math.isclose(result[q], values[chosen].mean(), rel_tol=1e-12)


def test_long_unions_pair_by_pair_keep_a_few_patterns() -> None:
    n, union = 1_500, TWO_ORDERS
    for step in range(30):
        union = union | (select(tokens, tokens + step, ">") & select(folded, indices, ">"))
    tracemalloc.start()
    structured.evaluate(selector_width(union).node, np.arange(n) * 5 % n, allow_masks=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30 * n * n  # widths are counted in 8-byte numbers: that is 8 of them


# Numbers ----------------------------------------------------------------------------------------------


def test_small_segments_beside_large_values() -> None:
    """Differences of one long cumulative sum would be wrong in the fifth digit here."""
    large, small = np.random.default_rng(9).uniform(1, 2, size=(2, 50_000))
    values = np.concatenate([large * 1e8, small * 1e-8])
    for selector in (in_block, window):
        actual = structured.evaluate(aggregate(selector, tokens).node, values)
        rows = [90_000, 99_999]
        expected = [values[q // 8 * 8 : q // 8 * 8 + 8].mean() for q in rows]
        if selector is window:
            expected = [values[q - 4 : q + 1].mean() for q in rows]
        np.testing.assert_allclose(actual[rows], expected, rtol=1e-14)


@pytest.mark.parametrize("place", [0, 20])
@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_what_is_not_selected_does_not_leak(bad: float, place: int) -> None:
    values = np.arange(64.0)
    values[place] = bad
    for selector in (before, select(indices, place, "!="), select(indices % 7, indices % 7, "==")):
        assert agree(aggregate(selector, tokens).node, values.tolist(), values) == "agreed"
    for selector in (in_block, window, here, select(indices, indices, ">")):
        program = aggregate(selector, tokens).node
        assert agree(program, values.tolist(), values) == "agreed"
        assert np.isfinite(structured.evaluate(program, values)).sum() >= 43


@given(
    st.lists(st.text("ab", min_size=1, max_size=5), min_size=2, max_size=9),
    st.text("ab", max_size=5),
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
)
def test_random_strings_of_different_lengths(values: list[str], suffix: str, predicate: str) -> None:
    tokens_of = structured.tokens_array(values)
    for selector in (
        select(tokens, tokens + suffix, predicate),
        select(tokens + suffix, tokens, predicate),
    ):
        assert agree(selector.node, values, tokens_of) == "agreed"


REFUSED: list[tuple[SOp, list[Any]]] = [
    (tokens + tokens, [2**61, 1]),
    (tokens * tokens, [2**40, 1]),
    (tokens**40, [3, 1]),
    (tokens**tokens, [30, 2]),
    ((indices % 2) ** (10**30), [1, 2]),
    (tokens * 1.5, [2**55 + 1, 1]),
    (aggregate(locum.full, tokens), [2**60, 2**60, 5]),
    (aggregate(up_to_here, tokens), [2**53] * 1100),
    (aggregate(up_to_here, tokens) ** 40 % 7, [3, 3, 3]),
    (locum.where(indices > 0, tokens, 0.5), [2**55 + 1, 2**55 + 1]),
    (tokens**40 % 7, [3, 0.5]),
    (tokens == 0.5, [2**55 + 1, 1]),
    (selector_width(select(tokens, indices / 2, "==")), [2**55 + 1, 1]),
    ((tokens % -(2**40)) * (tokens % -(2**40)), [1, 2]),
    (locum.tokens_str, [1, 0.5]),
    (tokens + "x" * 70, ["a", "b"]),
    (locum.where(indices > 0, "a\0", "b"), ["a", "b"]),
    (locum.lookup(tokens, {"a": 1}), ["a", "b"]),
    (aggregate(locum.full, tokens > 1), [1, 2]),
    (selector_width(best(locum.full, tokens)), [1.0, math.nan]),
    (round(tokens), [math.inf, 1.0]),
    (locum.floor(tokens), [math.nan, 1.0]),
]


@pytest.mark.parametrize(("program", "values"), REFUSED)
def test_what_arrays_cannot_say_is_refused(program: SOp, values: list[Any]) -> None:
    with pytest.raises(Unstructured):
        structured.evaluate(program.node, structured.tokens_array(values))


def test_bounds_are_looked_at_before_refusing() -> None:
    """No fixed bound of ((x % 9)·…·(x % 9)) is small enough; the numbers are."""
    program = tokens % 1000
    for _ in range(3):
        program = program * (tokens % 1000)
    bounded = locum.minimum(tokens, 3) * (2**60)
    assert agree(bounded.node, [1, 0, 1], np.array([1, 0, 1])) == "agreed"
    product = program * program
    assert agree(product.node, [1, 2, 3], np.array([1, 2, 3])) == "agreed"


@pytest.mark.parametrize(
    "values", [["a", "b\0c"], ["x" * 65], [2**62], [2**53 + 1, 0.5], [True, 1], ["a", 1], []]
)
def test_tokens_that_no_array_holds(values: list[Any]) -> None:
    with pytest.raises(Unstructured):
        structured.tokens_array(values)


@pytest.mark.parametrize("array", [np.zeros((2, 2)), np.zeros(0), np.array([None]), np.array([1j])])
def test_arrays_that_are_no_tokens(array: Any) -> None:
    with pytest.raises(Unstructured):
        structured.evaluate(tokens.node, array)


# Evaluation -------------------------------------------------------------------------------------------


def test_deep_graphs() -> None:
    chain = indices
    for _ in range(20_000):
        chain = chain + 1
    assert structured.evaluate(chain.node, np.zeros(2)).tolist() == [20_000, 20_001]
    selector, total, l = here, indices, locum.family(2)
    for _ in range(3_000):
        selector = ~selector
        total = locum.sum_over(l, total * l)
    assert structured.evaluate(selector_width(selector).node, np.zeros(3)).tolist() == [1, 1, 1]
    assert structured.evaluate(total.node, np.zeros(2)).tolist() == [0, 1]


def test_arrays_are_forgotten_after_their_last_use() -> None:
    n = 50_000
    chain = tokens
    for step in range(60):
        chain = aggregate(select(indices, indices - step, ">=") & up_to_here, chain) + indices
    values = np.ones(n)
    tracemalloc.start()
    structured.evaluate(chain.node, values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * 8 * n


def test_what_does_not_depend_on_a_family_is_computed_once() -> None:
    counts: Counter[str] = Counter()
    l, m = locum.family(4), locum.family(3)
    inner = locum.sum_over(m, m * aggregate(window, tokens + l))
    program = locum.sum_over(l, inner + aggregate(up_to_here, tokens) * l).node
    values = [3, 1, 4, 1, 5, 9, 2, 6]
    assert agree(program, values, np.array(values), counts=counts) == "agreed"
    assert dict(counts) == {"scan": 1 + 4}
    with pytest.raises(Unstructured, match="too many heads"):
        structured.evaluate(program, np.array(values), max_heads=15)
    assert structured.evaluate(program, np.array(values), max_heads=16) is not None


def test_what_a_sum_in_a_sum_uses_stays_until_then() -> None:
    l, m = locum.family(2), locum.family(3)
    inner = locum.sum_over(m, (m + 4) * l + aggregate(window, (m + 4) * indices))
    program = (locum.sum_over(l, l * inner) + (indices + 4)).node
    assert agree(program, [1, 2, 3], np.array([1, 2, 3])) == "agreed"
    first = locum.maximum(indices + 4, 2)  # uses the 4 as well, before
    program = (locum.sum_over(l, (l + first) * inner)).node
    assert agree(program, [1, 2, 3], np.array([1, 2, 3])) == "agreed"


def test_known_values_are_not_computed_again() -> None:
    mean = aggregate(up_to_here, tokens)
    program = (mean * 2 + selector_width(before)).node
    values = np.array([1.0, 3.0, 5.0])
    counts: Counter[str] = Counter()
    known = {mean.node: np.array([10.0, 20.0, 30.0])}
    result = structured.evaluate(program, values, known=known, counts=counts)
    assert result.tolist() == [20.0, 41.0, 62.0]
    assert dict(counts) == {}
    assert structured.evaluate(mean.node, values, known=known).tolist() == [10.0, 20.0, 30.0]


def test_runs_on_the_same_tokens_do_not_share_what_they_find() -> None:
    given_tokens = structured.tokens_array([5, 10**12, 5, 7])
    for _ in range(2):
        counts: Counter[str] = Counter()
        structured.evaluate(selector_width(same_token).node, given_tokens, counts=counts)
        assert dict(counts) == {"sort": 1}


def test_several_programs_share_their_parts() -> None:
    counts: Counter[str] = Counter()
    mean = aggregate(up_to_here, tokens)
    roots = [mean.node, (mean + 1).node, up_to_here.node]
    first, second, selector = structured.evaluate_all(roots, np.array([1.0, 3.0]), counts=counts)
    assert first.tolist() == [1.0, 2.0]
    assert second.tolist() == [2.0, 3.0]
    assert selector.rows(0, 2).tolist() == [[True, False], [True, True]]
    assert dict(counts) == {"scan": 1}


def test_neither_torch_nor_all_of_numpy_is_loaded_without_need() -> None:
    code = (
        "import sys, numpy as np, locum\n"
        "from locum.execution.fast import structured\n"
        "program = locum.selector_width(locum.select(locum.tokens, locum.tokens, '=='))\n"
        "structured.evaluate(program.node, np.ones(4))\n"
        "X = np.ones((2, 2))\n"
        "locum.UniversalSimulator(2, 2, 2)(locum.Attention(X, X), X)\n"
        "assert not {'torch', 'numpy.f2py', 'numpy.testing'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_column_without_any_interval_has_no_blocks() -> None:
    low = indices % 3
    selector = select(indices, indices, ">") & (
        select(abs(indices), low, "!=") & select(low, locum.minimum(indices, 3), "<=")
    )
    program = aggregate(selector, tokens).node
    values = [0.0, 1.0, 2.0, 3.0, 4.0]
    assert agree(program, values, np.array(values), allow_masks=True) == "agreed"
