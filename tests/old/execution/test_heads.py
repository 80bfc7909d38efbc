"""Literal head execution: heads run row by row against all keys agree with their meaning."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import locum
from locum.constructions.layout import concatenate, matrix
from locum.constructions.matmul import matmul
from locum.constructions.matrix import Matrix
from locum.constructions.normalisation import layer_norm
from locum.constructions.softmax import softmax
from locum.constructions.sums import row_sums
from locum.constructions.transpose import transpose
from locum.errors import ExecutionError, InputError
from locum.execution import DOMAINS, dense, heads
from locum.execution.arrays import Arrays
from locum.execution.heads.head_attention import ScoredSelector, ScoreProduct
from locum.execution.heads.head_numbers import ElementError
from locum.execution.heads.head_scores import HeadValues, code_of
from locum.graph import PREDICATES, Node, build, postorder
from locum.graph.selector_normal_form import formula_of
from tests.cases import CASES, FAILURES, Case, Failure
from tests.old.execution.one_type import agrees
from tests.old.graph.strategies import programs

FLOATS = DOMAINS["float"]
random = np.random.default_rng(6)


def agree(actual: Any, expected: Any) -> bool:
    """Whether two results are the same numbers."""
    if isinstance(expected, np.ndarray):
        return bool((actual == expected).all())
    pairs = list(zip(actual, expected, strict=True))
    return all(
        f == w
        if isinstance(w, str) or isinstance(f, str)
        else f == w
        or (math.isnan(f) and math.isnan(w))
        or math.isclose(f, w, rel_tol=1e-9, abs_tol=1e-12)
        for f, w in pairs
    )


def values_of(case: Case | Failure) -> list[Any]:
    """All atoms of a program and its input."""
    atoms: list[Any] = list(case.given)
    for node in postorder(case.program.node):
        for value in node.attributes.values():
            atoms += np.ravel(np.array(value, dtype=object)).tolist()
        if node.attributes.get("predicate") or node.op == "family":
            atoms = [a for a in atoms if a not in (*PREDICATES, node.attributes.get("name"))]
        if node.op == "tokens":
            atoms.remove(node.attributes["cast"])
            atoms += ["a string"] if node.attributes["cast"] == "str" else []
    return atoms


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    """Every program of the table; integers that floats would round are refused, if not run."""
    try:
        value = case.program(case.given, executor="heads")
    except ExecutionError as error:
        assert error.kind == "refused", error
        beyond = [a for a in values_of(case) if not isinstance(a, str) and abs(a) >= 2**53]
        assert beyond, error
        return
    assert agree(value, np.array(case.expected) if isinstance(value, np.ndarray) else case.expected)


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_failure(failure: Failure) -> None:
    with pytest.raises(ExecutionError):
        failure.program(failure.given, executor="heads")


def test_a_constant_beyond_arrays_is_refused_even_where_no_key_asks_for_it() -> None:
    """Found by the sweep of fuzz cases, seed 9421."""
    nobody = locum.select(locum.indices, locum.indices, "!=")
    program = locum.best(nobody, round(locum.constant(1e300)))
    with pytest.raises(ExecutionError, match="more than 62 bits") as refusal:
        program([1], executor="heads")
    assert refusal.value.kind == "refused"


def test_what_nobody_reads_is_not_computed() -> None:
    program = locum.where(locum.indices > 0, 1 / locum.tokens, 0)
    assert program([0, 2], executor="heads") == [0, 0.5]


# Constructions ------------------------------------------------------------------------------------

A, B = concatenate(locum.tokens, (3, 4), (4, 2))
CONSTRUCTIONS = {
    "matmul": matmul(A, B),
    "matmul, fetch": matmul(A, B, recipe="fetch"),
    "matmul, tiled": matmul(A, B, recipe="tiled"),
    "matmul, scatter": matmul(A, B, recipe="scatter"),
    "matmul of views": matmul(B.transpose(0, 1), A.transpose(0, 1)),
    "transpose": transpose(A, recipe="paper"),
    "softmax": softmax(A),
    "softmax, frugal": softmax(A, recipe="frugal"),
    "softmax, plain": softmax(A, stable=False),
    "softmax, causal": softmax(A, mask="causal"),
    "softmax, base below 1": softmax(A, base=0.5),
    "layer_norm": layer_norm(A),
    "row sums": row_sums(B),
    "column-major": matmul(matrix(locum.tokens, 3, 4, order="column"), B),
    "sizes found from the length": transpose(
        Matrix(locum.tokens, 5, locum.length // 5), recipe="paper"
    ),
}


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_construction(name: str) -> None:
    m = CONSTRUCTIONS[name]
    inputs = random.normal(size=max(20, m.needs)).tolist()
    expected = dense.evaluate(m.sop.node, inputs, FLOATS)
    assert agree(heads.execute(m.sop.node, inputs, FLOATS), expected)


def attention(n: int, d: int, dv: int, recipe: str = "paper") -> Matrix:
    """U as its formula."""
    x, a, v = concatenate(locum.tokens, (n, d), (d, d), (d, dv))
    scores = matmul(matmul(x, a, recipe), transpose(x), recipe)
    return matmul(softmax(scores), matmul(x, v, recipe), recipe)


def instance(n: int, d: int, dv: int, room: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Random X, A, V in one sequence, and softmax(X A Xᵀ) X V."""
    x, a, v = random.normal(size=(n, d)), random.normal(size=(d, d)) / d, random.normal(size=(d, dv))
    tokens = np.concatenate([x.ravel(), a.ravel(), v.ravel()])
    weights = np.exp(x @ a @ x.T - (x @ a @ x.T).max(axis=1, keepdims=True))
    result = weights / weights.sum(axis=1, keepdims=True) @ (x @ v)
    return np.pad(tokens, (0, max(0, room - len(tokens)))), result


@pytest.mark.parametrize("order", [(1, 1, 1), (2, 3, 4), (3, 2, 2), (4, 4, 4), (2, 2, 9), (6, 3, 3)])
@pytest.mark.parametrize("recipe", ["paper", "fetch", "tiled"])
def test_attention(order: tuple[int, int, int], recipe: str) -> None:
    u, (n, _, dv) = attention(*order, recipe=recipe), order
    tokens, expected = instance(*order, room=u.needs)
    actual = heads.evaluate(u.sop.node, tokens)
    np.testing.assert_allclose(actual[: n * dv].reshape(n, dv), expected, rtol=1e-12, atol=1e-14)
    if order != (6, 3, 3):  # dense execution of that one takes seconds
        assert agree(actual.tolist(), dense.evaluate(u.sop.node, tokens.tolist(), FLOATS))


def test_a_product_of_64_by_64() -> None:
    """At this size one head's pattern has 67 million cells, and there are 4,224 heads."""
    a, b = random.normal(size=(2, 64, 64))
    first, second = concatenate(locum.tokens, (64, 64), (64, 64))
    program = matmul(first, second)
    report = heads.Report()
    result = heads.evaluate(program.sop.node, np.concatenate([a.ravel(), b.ravel()]), report=report)
    np.testing.assert_allclose(result[:4096].reshape(64, 64), a @ b, rtol=0, atol=1e-12)
    assert not result[4096:].any()
    assert report.pairs == 3 * 64 * 64 * 8192


@pytest.mark.parametrize(("r", "k", "c"), [(2, 2, 2), (3, 4, 5), (4, 7, 1)])
def test_the_report_counts_what_the_lemma_has(r: int, k: int, c: int) -> None:
    """r + c heads that fetch have k live rows each; r·c heads that sum have one."""
    first, second = concatenate(locum.tokens, (r, k), (k, c))
    program, report = matmul(first, second), heads.Report()
    size = r * k + k * c
    pairs: list[int] = []
    heads.evaluate(
        program.sop.node,
        random.normal(size=size),
        report=report,
        progress=lambda name, scored: pairs.append(scored),
    )
    assert report.heads == r + c + r * c
    assert report.rows == (r + c) * k + r * c
    assert report.pairs == report.rows * size == sum(pairs)
    assert report.width == (size - 1).bit_length()
    assert report.seconds > 0


# Any program ----------------------------------------------------------------------------------------

numbers = st.one_of(
    st.integers(-3, 5), st.sampled_from([0.5, -1.5, 2.0, 0.1, 1e300, math.inf, 0.0]), st.booleans()
)
sequences = st.one_of(
    st.lists(st.integers(-3, 5), min_size=1, max_size=6), st.lists(numbers, min_size=1, max_size=6)
)
numeric_programs = programs(size=16, atoms=numbers, casts=("asis", "int", "float", "bool"))


@given(numeric_programs, sequences)
def test_random_programs_mean_the_same(program: Node, tokens: list[Any]) -> None:
    try:
        expected = dense.evaluate(program, tokens, FLOATS)
    except ExecutionError:
        return
    try:
        actual = heads.execute(program, tokens, FLOATS)
    except ExecutionError as error:
        # Heads are stricter only where int64 and infinities differ from Python's numbers.
        assert error.kind in ("refused", "OverflowError", "not real"), error
        return
    assert agree(actual, expected)


@given(numeric_programs, sequences, st.integers(1, 200))
def test_random_programs_in_chunks_of_any_size(program: Node, tokens: list[Any], memory: int) -> None:
    inputs = np.array(tokens, dtype=np.float64)
    try:
        expected = heads.evaluate(program, inputs)
    except ExecutionError:
        return
    assert agree(heads.evaluate(program, inputs, memory=memory).tolist(), expected.tolist())


@given(numeric_programs, sequences)
def test_random_programs_on_torch(program: Node, tokens: list[Any]) -> None:
    inputs = np.array(tokens, dtype=np.float64)
    try:
        expected = heads.evaluate(program, inputs)
        actual = heads.evaluate(program, torch.from_numpy(inputs))
    except ExecutionError:
        return
    assert isinstance(actual, torch.Tensor)
    assert agree(actual.tolist(), expected.tolist())


def test_most_random_programs_are_run() -> None:
    """Never wrong would be easy for an executor that refuses everything."""
    ran = total = 0

    @settings(max_examples=400, derandomize=True)  # a share is no property: the same sample each time
    @given(numeric_programs, sequences)
    def count(program: Node, tokens: list[Any]) -> None:
        nonlocal ran, total
        try:
            dense.evaluate(program, tokens, FLOATS)
        except ExecutionError:
            return
        total += 1
        try:
            heads.execute(program, tokens, FLOATS)
        except ExecutionError:
            return
        ran += 1

    count()
    assert ran >= 0.95 * total > 0


@given(numeric_programs, sequences, st.data())
def test_random_programs_at_some_positions(program: Node, tokens: list[Any], data: Any) -> None:
    inputs = np.array(tokens, dtype=np.float64)
    chosen = sorted(data.draw(st.sets(st.integers(0, len(tokens) - 1), min_size=1)))
    try:
        expected = heads.evaluate(program, inputs)
        actual = heads.evaluate(program, inputs, positions=chosen)
    except ExecutionError:
        return
    assert agree(actual.tolist(), expected[chosen].tolist())


@st.composite
def sums_of_heads(draw: st.DrawFn) -> locum.SOp:
    """Sums over families as the constructions have them, perturbed in every place.

    Heads are live at positions that a comparison or a condition names, fetch what other heads have
    fetched, and may stand inside another sum.
    """
    outer, l, m = (
        locum.family(2),
        locum.family(draw(st.integers(1, 4))),
        locum.family(draw(st.integers(1, 3))),
    )
    small = st.integers(-1, 4)
    predicate = st.sampled_from(PREDICATES)

    def number(*leaves: locum.SOp) -> locum.SOp:
        value = draw(small) * draw(st.sampled_from(leaves)) + draw(small)
        if draw(st.booleans()):
            value = value + draw(st.sampled_from(leaves))
        divided = draw(st.sampled_from(["no", "no", "%", "//"]))
        return value if divided == "no" else value % 3 if divided == "%" else value // 2

    def about_rows() -> locum.Selector:
        position = draw(st.sampled_from([locum.indices, number(locum.indices)]))
        return locum.select(number(l, m, outer), position, draw(predicate))

    def fetched(*leaves: locum.SOp) -> locum.SOp:
        return locum.aggregate(
            locum.select(locum.indices, number(locum.indices, *leaves), draw(predicate)), locum.tokens
        )

    selector = locum.select(locum.indices, number(locum.indices, l, m), draw(predicate))
    for _ in range(draw(st.integers(0, 3))):
        selector = selector & about_rows()
    if draw(st.integers(0, 4)) == 0:
        selector = selector | about_rows()
    if draw(st.integers(0, 4)) == 0:
        selector = locum.best(selector, number(locum.indices, locum.tokens))
    value = draw(
        st.sampled_from([locum.tokens, fetched(l) * fetched(m), fetched(l, outer), l + locum.tokens])
    )
    default = draw(st.sampled_from([0, 0, 0, 1]))
    body: locum.SOp = locum.aggregate(selector, value, default)
    body = number(l, m, outer) * body if draw(st.booleans()) else body
    if draw(st.booleans()):
        sides = number(locum.indices), number(l, m)
        condition = sides[0] == sides[1] if draw(st.booleans()) else sides[0] < sides[1]
        condition = (
            condition & (locum.indices < draw(st.integers(0, 6))) if draw(st.booleans()) else condition
        )
        body = locum.where(condition, body, draw(st.sampled_from([0, 0, 2])))
    inner = locum.sum_over(l, m, body)
    return locum.sum_over(outer, inner * (outer + 1))


@given(sums_of_heads(), st.lists(st.integers(-3, 5), min_size=1, max_size=9), st.integers(1, 400))
def test_random_sums_of_heads_mean_the_same(program: locum.SOp, tokens: list[int], memory: int) -> None:
    expected = dense.evaluate(program.node, tokens, FLOATS)
    assert agree(heads.execute(program.node, tokens, FLOATS), expected)
    assert agree(heads.evaluate(program.node, np.array(tokens), memory=memory).tolist(), expected)
    assert agree(heads.evaluate(program.node, torch.tensor(tokens)).tolist(), expected)


# Scores ----------------------------------------------------------------------------------------------

score_numbers = st.one_of(
    st.lists(st.integers(-5, 5), min_size=1, max_size=8),
    st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=8),
    st.lists(st.floats(allow_nan=False, width=64), min_size=1, max_size=8),
    st.lists(st.integers(0, 2**24 - 1), min_size=300, max_size=300, unique=True),
)


@given(score_numbers, score_numbers, st.sampled_from(PREDICATES))
def test_scores_say_what_predicates_do(keys: list[Any], queries: list[Any], predicate: str) -> None:
    """In float32, and in bfloat16 if that is how a GPU would score them."""
    if any(isinstance(n, float) for n in keys + queries):
        keys, queries = list(map(float, keys)), list(map(float, queries))
    expected = DOMAINS["float"].select(keys, queries, predicate)
    numpy, torch_ = Arrays(np.zeros(1)), Arrays(torch.zeros(1, dtype=torch.float64))
    product = ScoreProduct(numpy, [code_of(numpy, np.array(keys), np.array(queries), predicate)])
    scores = product.scores(product.queries(0, len(queries)), 0, len(keys))
    assert ((scores >= product.full) == expected).all()
    torch_.on_gpu = True
    given_keys, given_queries = (torch.from_numpy(np.array(part)) for part in (keys, queries))
    product = ScoreProduct(torch_, [code_of(torch_, given_keys, given_queries, predicate)])
    scores = product.scores(product.queries(0, len(queries)), 0, len(keys))
    assert ((scores >= product.full).numpy() == expected).all()


def test_conjunctions_are_one_product() -> None:
    """A key reaches the sum of the full scores just if it reaches each."""
    arrays, index = Arrays(np.zeros(1)), np.arange(40)
    codes = [
        code_of(arrays, index % 7, index % 5, "=="),
        code_of(arrays, index, np.full(40, 9), "<"),
        code_of(arrays, index % 3, index % 2, ">="),
    ]
    product = ScoreProduct(arrays, codes)
    result = product.scores(product.queries(0, 40), 0, 40) >= product.full
    q, k = index[:, None], index[None, :]
    assert (result == ((k % 7 == q % 5) & (k < 9) & (k % 3 >= q % 2))).all()


def test_many_distinct_queries_of_an_order_are_compared_by_digits() -> None:
    tokens = random.permutation(700).astype(np.float64)
    rank = locum.selector_width(locum.select(locum.tokens, locum.tokens, "<"))
    report = heads.Report()
    assert (heads.evaluate(rank.node, tokens, report=report) == tokens).all()
    assert report.width == 7


# Infinities, bounds, types -----------------------------------------------------------------------


@pytest.mark.parametrize("memory", [None, 16])
def test_infinities_at_unselected_keys_do_not_leak(memory: int | None) -> None:
    l = locum.family(2)
    before = locum.select(locum.indices, locum.indices, "<")
    programs = [
        locum.aggregate(locum.select(locum.indices, 1, ">"), locum.tokens),
        locum.aggregate(before, locum.tokens),
        locum.sum_over(l, locum.aggregate(before, locum.tokens * (l + 1))),
        locum.aggregate(locum.best(locum.select(locum.indices, 1, ">"), locum.tokens), locum.tokens),
    ]
    tokens = np.array([math.inf, -math.inf, 1.0, 3.0])
    for program in programs:
        result = heads.evaluate(program.node, tokens, memory=memory)
        assert agree(result.tolist(), dense.evaluate(program.node, tokens.tolist(), FLOATS))
    assert heads.evaluate(programs[0].node, tokens, memory=memory).tolist() == [2.0] * 4


def test_an_infinite_factor_makes_a_head_matter_everywhere() -> None:
    """0 · ∞ is not 0: such a head cannot be left out where it is empty."""
    l = locum.family(2)
    place = locum.select(l, locum.indices, "==") & locum.select(locum.indices, 1, "<=")
    for factor in (math.inf, 2.0):
        program = locum.sum_over(l, locum.constant(factor) * locum.aggregate(place, locum.tokens))
        expected = dense.evaluate(program.node, [1, 2, 3], FLOATS)
        assert agree(heads.execute(program.node, [1, 2, 3], FLOATS), expected)


def test_a_bound_that_is_too_small_is_noticed() -> None:
    """The kernel counts over all keys: values that demand left out cannot go missing silently."""
    arrays, index = Arrays(np.zeros(1)), np.arange(4)
    short = HeadValues(np.ones((1, 2)), np.array([0, 1]), None, finite=True)
    for predicate in ("==", "<="):
        literal = formula_of(locum.select(locum.indices, locum.indices, predicate).node)
        codes: Any = {literal: code_of(arrays, index, index, predicate)}
        head = ScoredSelector(arrays, literal, codes, {}, {}, 4, 4, memory=1 << 20)
        with pytest.raises(ElementError, match="unreachable"):
            head.sums(short)


def test_only_live_rows_are_run() -> None:
    """Rows of a head that a condition rules out are not scored."""
    inside = locum.where(
        locum.indices < 3, locum.aggregate(locum.select(locum.indices, 1, ">="), locum.tokens), 0
    )
    empty = locum.aggregate(
        locum.select(7, locum.indices, "==") & locum.select(locum.indices, 1, ">="), locum.tokens
    )
    for program, rows in ((inside, 3), (empty, 1)):
        report = heads.Report()
        result = heads.evaluate(program.node, np.arange(10.0), report=report)
        assert agree(result.tolist(), program(np.arange(10.0).tolist()))
        assert report.rows == rows


def test_types_of_arrays() -> None:
    mean = locum.aggregate(locum.select(locum.indices, locum.indices, "<="), locum.tokens)
    assert heads.evaluate(mean.node, np.array([1, 2], dtype=np.float32)).dtype == np.float32
    assert heads.evaluate(mean.node, np.array([1, 2])).dtype == np.float64
    assert heads.evaluate(mean.node, np.array([1, 2]), dtype="float32").dtype == np.float32
    assert heads.evaluate(locum.indices.node, np.array([1.5, 2])).dtype == np.int64
    result = heads.evaluate(mean.node, torch.tensor([1.0, 2.0]))
    assert result.dtype == torch.float32
    assert result.tolist() == [1.0, 1.5]


def test_float32_agrees_with_direct_computation() -> None:
    u = attention(8, 8, 8)
    tokens, expected = instance(8, 8, 8, room=0)
    actual = heads.evaluate(u.sop.node, torch.from_numpy(tokens.astype(np.float32)))
    assert np.abs(actual[:64].reshape(8, 8).numpy() - expected).max() < 1e-5 * np.abs(expected).max()


def test_keys_that_differ_between_heads() -> None:
    l, m = locum.family(3), locum.family(2)
    program = locum.sum_over(
        l,
        m,
        locum.aggregate(locum.select(locum.indices * (l + 1), locum.indices + m, "=="), locum.tokens),
    )
    tokens = random.normal(size=7).tolist()
    assert agree(heads.execute(program.node, tokens, FLOATS), program(tokens))


def test_what_cannot_be_run_is_refused() -> None:
    with pytest.raises(
        ExecutionError,
        match=r"which tensors cannot hold, .*; try the tokens as a list: program\(tensor",
    ):
        (locum.lookup(locum.tokens, {1: "a", 2: "b"}) == "a")(torch.tensor([1, 2]), executor="heads")
    with pytest.raises(ExecutionError, match="exact domain"):
        locum.indices("ab", executor="heads", domain="exact")
    with pytest.raises(ExecutionError, match=r"division by zero at position 1, in 1 / \(indices - 1\)"):
        (1 / (locum.indices - 1))("abc", executor="heads")
    with pytest.raises(ExecutionError, match="62 bits"):
        (locum.tokens * locum.tokens)([2**40], executor="heads")
    with pytest.raises(InputError, match="one axis"):
        heads.evaluate(locum.tokens.node, np.zeros((2, 2)))
    with pytest.raises(InputError, match="ascending"):
        heads.evaluate(locum.tokens.node, np.zeros(2), positions=[1, 0])
    with pytest.raises(InputError, match="positive"):
        heads.evaluate(locum.tokens.node, np.zeros(2), memory=0)
    with pytest.raises(InputError, match="numbers"):
        heads.evaluate(locum.tokens.node, np.array([1j]))


# Strings ------------------------------------------------------------------------------------------

texts = locum.tokens
number_text = locum.lookup(locum.tokens, {1: "a", 2: "b", 3: ""})
families = locum.family(3)
STRINGS: dict[str, tuple[locum.SOp, list[Any]]] = {
    "moved": (locum.aggregate(locum.select(locum.indices, 0, "=="), texts), ["b\0", "a", ""]),
    "ordered": (locum.selector_width(locum.select(texts, texts, "<")), ["é", "a", "aa", "", "a"]),
    "unequal": (locum.selector_width(locum.select(texts, "a", "!=")), ["b", "a", "a"]),
    "best": (locum.aggregate(locum.best(locum.full, texts), locum.indices), ["b", "z", "a", "z"]),
    "default": (locum.aggregate(locum.select(texts, "z", "=="), texts, "-"), ["a", "b"]),
    "joined": (texts + texts * 2, ["a", "", "bc"]),
    "true": (locum.where(texts, 1, 0), ["", "a"]),
    "logic": (~(texts & (texts == "a")) | (texts > "b"), ["", "a", "c"]),
    "member": (locum.member(texts, ["a", 1]), ["a", "1"]),
    "table": (locum.lookup(texts, {"a": 1, "b": 2.5}), ["a", "b"]),
    "to strings": (number_text, [1, 2, 3]),
    "static": (
        locum.where(locum.lookup(locum.indices % 2, {0: "", 1: "b"}), texts, "-"),
        ["a", "b", "c"],
    ),
    "never equal": (locum.selector_width(locum.select(number_text, 1, "==")), [1, 2]),
    "sum": (locum.sum_over(families, locum.where(texts == "a", families, 1)), ["a", "b"]),
    "chosen by head": (
        locum.sum_over(families, locum.indicator(locum.where(families == 0, texts, "b") == "b")),
        ["a", "b"],
    ),
    "as text": (locum.rasp.Session().script("tokens_str + tokens;")[-1][1], [1, 2.5, True]),
    "as number": (locum.rasp.Session().script("tokens_int * 2;")[-1][1], ["7", "-1"]),
}


@pytest.mark.parametrize("name", STRINGS)
def test_strings_as_dense_execution_has_them(name: str) -> None:
    program, tokens = STRINGS[name]
    expected = program(tokens)
    actual = program(tokens, executor="heads")
    assert agrees(actual, expected, program, tokens)
    if all(isinstance(token, str) and not token.endswith("\0") for token in tokens):
        assert program(np.array(tokens), executor="heads").tolist() == expected


@pytest.mark.parametrize(
    ("program", "tokens", "words"),
    [
        (texts + 1, ["a"], "add is not defined for 'a' and 1 at position 0"),
        (texts, ["a", 1], "a sequence cannot mix strings with numbers"),
        (
            locum.aggregate(locum.full, texts),
            ["a", "b"],
            "expected numbers to average, got several",
        ),
        (
            locum.aggregate(locum.select(locum.indices, locum.indices - 1, "=="), texts),
            ["z", "b"],
            "cannot mix strings",
        ),
        (locum.selector_width(locum.select(texts, 1, "<")), ["a"], "< is not defined"),
        (locum.lookup(texts, {"a": "b"}), ["a", "c"], "expected a key of the lookup table"),
        (locum.where(texts == "a", texts, 0), ["a", "c"], "cannot mix strings"),
        (locum.sum_over(families, locum.where(families == 0, texts, "b")), ["a"], "not defined"),
        (locum.rasp.Session().script("tokens_int;")[-1][1], ["1", "a"], "invalid literal"),
    ],
)
def test_errors_of_strings(program: locum.SOp, tokens: list[Any], words: str) -> None:
    for executor in ("dense", "heads"):
        with pytest.raises(ExecutionError, match=words):
            program(tokens, executor=executor)


# What once went wrong -----------------------------------------------------------------------------

nearly_one = locum.indices * 1e-9 + 1.0
up_to_here = locum.select(locum.indices, locum.indices, "<=")
f = locum.family(4)
seldom = locum.where(
    locum.indices == locum.SOp(build("lookup", f.node, table=((0, 7), (1, 1), (2, 2), (3, 9)))),
    1 / (locum.tokens - (locum.indices + f * 0)),
    0,
)


@pytest.mark.parametrize(
    ("program", "tokens"),
    [
        (
            locum.selector_width(
                locum.best(up_to_here, locum.tokens) & locum.select(locum.indices, 0, "==")
            ),
            [1, 5, 3],
        ),
        (locum.selector_width(~locum.select(0, locum.tokens, "<")), [1, math.nan, -1]),
        (locum.aggregate(locum.select(nearly_one, 1.0, "=="), locum.tokens), [1, 2, 3, 4]),
        (locum.aggregate(locum.select(nearly_one, nearly_one, "=="), locum.tokens), [1, 2, 3, 4]),
        (locum.selector_width(locum.select(1.0, nearly_one, "==")), [1, 2, 3, 4]),
        (locum.aggregate(locum.best(up_to_here, nearly_one), locum.tokens), [1, 2, 3, 4]),
        (locum.sum_over(f, seldom), [5, 3, 9, 7]),
    ],
)
def test_float32_means_what_dense_execution_means(program: locum.SOp, tokens: list[float]) -> None:
    """Maxima beside comparisons, nan under not, static numbers with many digits, padding."""
    expected = dense.evaluate(program.node, list(map(float, tokens)), FLOATS)
    actual = heads.evaluate(program.node, np.array(tokens, dtype=np.float32)).tolist()
    assert actual == pytest.approx(expected, rel=1e-6)


def test_arrays_that_heads_cannot_hold_are_refused() -> None:
    for tokens in (np.array([2**63 + 5], np.uint64), np.array([-(2**63)]), torch.tensor([1 + 2j])):
        with pytest.raises(InputError):
            heads.evaluate(locum.tokens.node, tokens)
    for positions in ([0.5, 1.5], range(0)):
        with pytest.raises(InputError, match="ascending"):
            heads.evaluate(locum.tokens.node, np.zeros(3), positions=positions)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="empty"):
        heads.execute(locum.tokens.node, [], FLOATS)


def test_the_report_counts_pairs_that_are_scored_and_heads_that_are_run() -> None:
    report = heads.Report()
    heads.evaluate(locum.selector_width(locum.select(1, 1, "==")).node, np.zeros(3), report=report)
    assert (report.rows, report.pairs) == (3, 0)
    l, report = locum.family(50), heads.Report()
    one_row = locum.select(l, locum.indices, "==") & locum.select(locum.indices, 1, ">=")
    program = locum.sum_over(l, locum.aggregate(one_row, locum.tokens))
    heads.evaluate(program.node, np.zeros(3), report=report)
    assert (report.heads, report.rows, report.pairs) == (3, 3, 9)


def test_an_integer_that_a_comparison_of_constants_would_round_is_refused() -> None:
    selector = locum.select(2**53 + 1, 1.0, ">=")
    program = locum.aggregate(selector, locum.tokens_float, 2**53 + 1)
    assert program([1.0]) == [1.0]
    with pytest.raises(ExecutionError, match="floats may round an integer"):
        program([1.0], executor="heads")
