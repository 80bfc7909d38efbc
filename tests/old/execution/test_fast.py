"""Fast execution against its meaning: random programs, every rule, plans, backends, bad input."""

from __future__ import annotations

import functools
import threading
import warnings
from collections import Counter
from importlib import import_module, resources
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from locum import (
    ExecutionError,
    InputError,
    LocumError,
    aggregate,
    constant,
    indices,
    minimum,
    select,
    tokens,
)
from locum.constructions import Matrix, concatenate, matmul, multihead, softmax, transpose
from locum.execution import dense, fast, run, run_parts
from locum.execution.domains.floats import FloatDomain
from locum.execution.fast import FallbackWarning
from locum.execution.fast.symbolic import terms
from locum.execution.fast.symbolic.affine import Affine, Box, bounds, variable
from locum.graph import Node, build
from locum.rasp import Session
from tests.old.execution.positional import trial

FUZZING = settings.default is not None and settings.default.max_examples >= 20_000
#: Programs per run: enough among the tests to meet every rule, a hundred thousand in ``make fuzz``.
PROGRAMS = 104_000 if FUZZING else 800
CHUNKS = 16


def differs(seed: int) -> str | None:
    """How dense and fast execution differ on the program of a seed; None if they do not."""
    program, inputs, positions = trial(seed)
    try:
        expected = dense.evaluate(program, [float(x) for x in inputs], FloatDomain(), max_heads=3_000)
    except LocumError:
        return "no value"
    values = np.array(expected, dtype=float)[positions.start : positions.stop]
    if not np.isfinite(values).all():
        return "no value"
    actual = run(program, np.array(inputs, dtype=float), executor="fast", positions=positions)
    if actual.shape == values.shape and np.allclose(actual, values, rtol=1e-10, atol=1e-10):
        return None
    return f"seed {seed}: dense {values}, fast {actual}"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_programs_agree_with_dense(chunk: int) -> None:
    seeds = range(chunk, PROGRAMS, CHUNKS)
    outcomes = Counter[str]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for seed in seeds:
            result = differs(seed)
            assert result in (None, "no value"), result
            outcomes["compared" if result is None else "skipped"] += 1
    assert outcomes["compared"] > 0.9 * len(seeds)


# Plans ------------------------------------------------------------------------------------------------


def attention(n: int, d: int, d_v: int, **options: Any) -> Matrix:
    x, a, v = concatenate(tokens, (n, d), (d, d), (d, d_v))
    scores = matmul(matmul(x, a), transpose(x))
    return matmul(softmax(scores, **options), matmul(x, v))


def direct(x: Any, a: Any, v: Any) -> Any:
    scores = x @ a @ x.T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ (x @ v)


def parts(n: int, d: int, d_v: int, dtype: Any = float, scale: float = 1.0) -> list[Any]:
    draw = np.random.default_rng(n * 100 + d * 10 + d_v)
    return [(draw.normal(size=shape) * scale).astype(dtype) for shape in ((n, d), (d, d), (d, d_v))]


@pytest.mark.parametrize("order", [(1, 1, 1), (2, 3, 4), (3, 3, 3), (5, 2, 7), (7, 2, 1), (64, 48, 32)])
def test_the_plan_of_attention_is_four_products(order: tuple[int, int, int]) -> None:
    u = attention(*order)
    n, d, d_v = order
    plan = u.plan(segments=[(n, d), (d, d), (d, d_v)])
    assert not plan.opaque
    if min(order) > 1:
        assert plan.counts["matmul"] == 4
    assert plan.counts["gather"] == plan.counts["mask"] == 0
    x, a, v = parts(*order)
    np.testing.assert_allclose(plan(x, a, v).reshape(n, d_v), direct(x, a, v), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("recipe", ["paper", "fetch", "tiled"])
def test_every_recipe_of_the_product_is_one_product(recipe: str) -> None:
    a, b = concatenate(tokens, (4, 3), (3, 6))  # where tiles fill the result
    counts = matmul(a, b, recipe=recipe).plan().counts
    assert (counts["matmul"], counts["gather"], counts["mask"]) == (1, 0, 0)


@pytest.mark.parametrize("recipe", ["view", "paper"])
def test_transposition_is_a_view(recipe: str) -> None:
    plan = matmul(transpose(Matrix(tokens, 4, 3), recipe), Matrix(tokens, 4, 5, offset=12)).plan()
    assert plan.counts["matmul"] == 1
    assert plan.counts["gather"] == plan.counts["mask"] == plan.counts["apply"] == 0


@pytest.mark.parametrize("heads", [2, 5])
def test_heads_are_batched_products(heads: int) -> None:
    n, d = 4, 3
    x = Matrix(tokens, n, d)
    a = Matrix(tokens, d, d, offset=n * d)
    together = multihead(lambda one: matmul(matmul(x, one), transpose(x)), heads, a)
    plan = together.plan(segments=[(n, d), (heads, d, d)])
    sizes = [step.size for step in plan.steps if step.op == "matmul"]
    assert sizes == [heads * n * d, heads * n * n]  # two products for all heads, not two for each
    assert plan.counts["gather"] == plan.counts["mask"] == 0


def test_the_listing_of_the_product_is_rolled_up() -> None:
    text = resources.files("locum.paper").joinpath("listings/matmul.rasp").read_text()
    for k in (2, 5):
        inputs = np.arange(7.0 * k)
        ((_, program),) = Session(inputs.tolist()).script(text)
        plan = program.plan(7 * k)
        assert (plan.counts["matmul"], plan.counts["gather"], plan.counts["mask"]) == (1, 0, 0)
        assert plan(inputs).tolist() == program(inputs).tolist()


def test_a_plan_explains_itself() -> None:
    text = attention(3, 4, 5).plan(segments=[(3, 4), (4, 4), (4, 5)]).explain()
    assert text.count(" @ ") == 4
    assert "softmax" in text
    assert "transposed" in text
    data = aggregate(select(tokens, tokens, "<"), tokens)
    assert "structured, since" in data.plan(4).explain()


def test_plans_are_remembered() -> None:
    program = tokens + 5
    assert program.plan(7) is program.plan(7)
    assert program.plan(7) is not program.plan(8)
    assert program.plan(7) is not program.plan(7, like=np.zeros(1, dtype=np.float32))


def test_only_what_is_asked_for_is_computed() -> None:
    square = matmul(Matrix(tokens, 50, 60), Matrix(tokens, 60, 70, offset=3000))
    plan = square.sop.plan(7200, positions=range(140))
    (product,) = [step for step in plan.steps if step.op == "matmul"]
    assert product.shape == (2, 70)


# Numbers ----------------------------------------------------------------------------------------------


def test_linear_parts_are_exact_on_whole_numbers() -> None:
    draw = np.random.default_rng(0)
    for r, k, c in [(3, 4, 5), (7, 2, 9), (16, 16, 16)]:
        a, b = draw.integers(-99, 99, (r, k)), draw.integers(-99, 99, (k, c))
        left, right = concatenate(tokens, (r, k), (k, c))
        for recipe in ("paper", "fetch", "tiled"):
            result = matmul(left, right, recipe=recipe).run([a, b], executor="fast")
            assert (result == a @ b).all()


def test_large_scores_overflow_nothing() -> None:
    n, d = 6, 5
    x, a, v = parts(n, d, d, np.float32)
    x *= 30 / np.abs(x).max()
    scores = x @ a @ x.T
    a *= np.float32(3000 / np.abs(scores).max())
    result = attention(n, d, d).run([x, a, v], executor="fast", strict=True)
    assert result.dtype == np.float32
    assert np.abs(x @ a @ x.T).max() > 2900
    np.testing.assert_allclose(
        result, direct(*(p.astype(float) for p in (x, a, v))), rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize("infinite", [np.inf, -np.inf, np.nan])
def test_what_is_masked_does_not_leak(infinite: float) -> None:
    scores = np.array([[1.0, 2.0, infinite], [0.5, infinite, infinite], [3.0, 1.0, 2.0]])
    mask = Matrix(tokens, 3, 3, offset=9)
    kept = np.isfinite(scores).astype(float)
    result = softmax(Matrix(tokens, 3, 3), mask=mask).run([scores, kept], executor="fast", strict=True)
    powers = np.where(kept, np.exp(np.where(kept, scores, 0)), 0)
    np.testing.assert_allclose(result, powers / powers.sum(axis=1, keepdims=True), rtol=1e-12)
    causal = np.where(np.tri(3), 1.0, infinite)
    result = softmax(Matrix(tokens, 3, 3), mask="causal").run([causal], executor="fast", strict=True)
    np.testing.assert_allclose(result, np.tri(3) / np.tri(3).sum(axis=1, keepdims=True))


def test_kinds_of_results() -> None:
    assert (tokens + 1)([1, 2], executor="fast") == [2, 3]
    assert all(type(v) is int for v in (tokens + indices)([1, 2], executor="fast"))
    assert all(type(v) is bool for v in (tokens > 1)([1, 2], executor="fast"))
    assert (tokens == "a")("ab", executor="fast") == [True, False]
    assert tokens("ab", executor="fast") == ["a", "b"]
    assert tokens(np.arange(3), executor="fast").dtype == np.int64


def test_errors_are_those_of_dense() -> None:
    with pytest.raises(ExecutionError) as caught:
        (1 / tokens)([1.0, 0.0], executor="fast")
    assert "division by zero at position 1" in str(caught.value)
    with pytest.raises(ExecutionError, match="fast executor does not support"):
        (1 / tokens)([1.0, 0.0], executor="fast", strict=True)


def test_falling_back_is_said_once() -> None:
    program = aggregate(select(tokens, tokens, "=="), tokens * 2**60)
    with pytest.warns(FallbackWarning):
        first = program([1, 2, 1], executor="auto")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert program([1, 2, 1], executor="auto") == first
    assert (1 / constant(3))([1], executor="auto", domain="exact")[0] * 3 == 1


def test_a_constant_beyond_float32_gives_no_warning_of_numpy() -> None:
    program = minimum(tokens, constant(1e300))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = program(np.array([1, 2], dtype=np.float32), executor="fast")
    assert result.tolist() == [1.0, 2.0]


# Torch ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "within"), [("float64", 1e-12), ("float32", 1e-5), ("bfloat16", 5e-2)]
)
def test_tensors_in_tensors_out(kind: str, within: float) -> None:
    torch = pytest.importorskip("torch")
    inputs = parts(5, 4, 3, scale=0.5)
    tensors = [torch.tensor(part, dtype=getattr(torch, kind)) for part in inputs]
    result = attention(5, 4, 3).run(tensors, executor="fast", strict=True)
    assert result.dtype is getattr(torch, kind)
    np.testing.assert_allclose(result.double().numpy(), direct(*inputs), rtol=within, atol=within)


def test_gradients_reach_every_matrix() -> None:
    torch = pytest.importorskip("torch")
    tensors = [torch.tensor(part, requires_grad=True) for part in parts(4, 3, 2, scale=0.5)]
    for options in ({}, {"mask": "causal"}, {"stable": False}):
        plan = attention(4, 3, 2, **options).plan(like=tensors[0], segments=[t.shape for t in tensors])
        assert torch.autograd.gradcheck(lambda *t, plan=plan: plan(*t), tensors)


def test_random_programs_agree_with_dense_on_torch() -> None:
    torch = pytest.importorskip("torch")
    compared = 0
    for seed in range(PROGRAMS // 8):
        program, inputs, positions = trial(seed)
        try:
            expected = dense.evaluate(
                program, [float(x) for x in inputs], FloatDomain(), max_heads=3_000
            )
            plan = fast.plan(program, len(inputs), positions=positions, like=torch.zeros(1).double())
        except LocumError:
            continue
        values = np.array(expected, dtype=float)[positions.start : positions.stop]
        if plan.opaque or not np.isfinite(values).all():
            continue  # the structured tier has its own test on torch
        actual = plan(torch.tensor(inputs, dtype=torch.float64))
        np.testing.assert_allclose(
            actual.numpy(), values, rtol=1e-10, atol=1e-10, err_msg=f"seed {seed}"
        )
        compared += 1
    assert compared > PROGRAMS // 16


# Bad input, interruptions, threads --------------------------------------------------------------------


def test_wrong_shapes_kinds_and_devices() -> None:
    torch = pytest.importorskip("torch")
    plan = (tokens * 2).plan(3)
    for wrong, words in [
        ((np.zeros(4),), "shape"),
        ((np.zeros(3, dtype=np.float32),), "float32"),
        ((np.zeros(3), np.zeros(3)), "expected 1 arrays of tokens, got 2"),
        ((torch.zeros(3),), "NumPy"),
        (([1, 2, 3],), "NumPy"),
    ]:
        with pytest.raises(InputError, match=words):
            plan(*wrong)
    onto = (tokens * 2).plan(3, like=torch.zeros(1))
    for tensor, words in [
        (torch.zeros(3).double(), "float64"),
        (torch.zeros(3, device="meta"), "meta"),
    ]:
        with pytest.raises(InputError, match=words):
            onto(tensor)
    with pytest.raises(InputError, match="expected parts of at most 3 tokens in all"):
        (tokens * 2).plan(3, segments=[2, 2])
    with pytest.raises(InputError, match="without gaps"):
        (tokens * 2).plan(3, positions=range(2, 5))
    with pytest.raises(InputError, match="floating-point"):
        (tokens * 2).plan(3, like=torch.zeros(1, dtype=torch.int64))


def test_an_interrupted_plan_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    program = tokens * 17 + 4
    planning = import_module("locum.execution.fast.planning")
    whole = planning._lower

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(planning, "_lower", interrupted)
    with pytest.raises(KeyboardInterrupt):
        program.plan(5)
    monkeypatch.setattr(planning, "_lower", whole)
    assert program.plan(5)(np.ones(5)).tolist() == [21.0] * 5


def test_programs_that_share_buffers_lower_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same plans come out, whatever was lowered before them: steps of a program, then the whole."""
    shared = aggregate(select(indices, 3 - indices, "=="), tokens * tokens + 1.5)
    steps = [shared, aggregate(select(indices, indices, "<="), shared * 2.0), shared + indices]
    plans: list[list[str]] = []
    lowered: list[object] = []
    planning = import_module("locum.execution.fast.planning")
    whole = planning._lower

    def counted(node: object, *rest: object) -> object:
        lowered.append(node)
        return whole(node, *rest)

    monkeypatch.setattr(planning, "_lower", counted)
    for order in (steps, steps[::-1]):
        fast.forget_plans()
        plans.append(sorted(step.plan(4).explain() for step in order))
    together, alone = len(lowered), []
    for step in steps:
        fast.forget_plans()
        alone.append(step.plan(4).explain())
    assert plans == [sorted(alone)] * 2
    assert together / 2 < len(lowered) - together


def test_plans_run_in_threads() -> None:
    orders = [(3, 4, 5), (6, 2, 3), (5, 5, 5), (4, 7, 2)] * 4
    result: dict[int, Any] = {}
    fast.forget_plans()

    def work(place: int) -> None:
        order = orders[place]
        for _ in range(5):
            result[place] = attention(*order).run(parts(*order), executor="fast", strict=True)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(orders))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place, order in enumerate(orders):
        np.testing.assert_allclose(result[place], direct(*parts(*order)), rtol=1e-12)


def test_deep_programs() -> None:
    program = tokens
    for _ in range(5_000):
        program = program + 1
    assert program([1.0, 2.0], executor="fast") == [5001.0, 5002.0]
    for step in range(3_000):
        program = program * 0.5 + step
    assert program([1.0, 2.0], executor="fast") == program([1.0, 2.0])


# Programs that once came out wrong --------------------------------------------------------------------


def op(name: str, *inputs: Node | float, **attributes: Any) -> Node:
    nodes = [x if isinstance(x, Node) else build("constant", value=x) for x in inputs]
    return build(name, *nodes, **attributes)


I, T = build("indices"), build("tokens", cast="asis")


def chosen(key: Node | float, query: Node | float, predicate: str = "==") -> Node:
    return op("select", key, query, predicate=predicate)


def mean(selector: Node, value: Node) -> Node:
    return build("aggregate", selector, value, default=0)


def fetched(position: int) -> Node:
    return mean(chosen(I, position), T)


def rolled_differently_in_each_piece() -> Node:
    """A run of six addends where p < 4, of three elsewhere."""
    total = fetched(0)
    for t in range(1, 6):
        here = fetched(t)
        total = op("add", total, here if t < 3 else op("if_else", op("less", I, 4), here, 0))
    return total


def nearly_softmax(transposed: str) -> Node:
    """The sum, or the maximum, belongs to the column's row instead of the row."""
    row, column = op("floor_divide", I, 3), op("modulo", I, 3)
    own, other = chosen(row, row), chosen(row, column)
    peak = mean(build("best", other if transposed == "maximum" else own, T), T)
    power = op("exp", op("subtract", T, peak))
    return op("divide", power, op("multiply", mean(other if transposed == "sum" else own, power), 3))


def iterated(times: int) -> Node:
    value = T
    for _ in range(times):
        value = op("multiply", op("tanh", value), value)
    return value


WIDTH = op("selector_width", chosen(I, I, "<="))
ONCE_WRONG: dict[str, tuple[Node, list[float]]] = {
    "rolled up": (rolled_differently_in_each_piece(), [2.0**k for k in range(8)]),
    "sum of another row": (nearly_softmax("sum"), [0.1 * k for k in range(9)]),
    "maximum of another row": (nearly_softmax("maximum"), [0.1 * k for k in range(9)]),
    "integer constants": (
        op("if_else", op("equal", op("modulo", I, 2), 0), WIDTH, T),
        [0.5, 0.25, 0.75],
    ),
    "large products": (op("modulo", op("multiply", T, T), 10), [10**9 + 7, 10**9 + 9]),
    "large constants": (op("modulo", op("power", 3, I), 10), [1] * 50),
    "absorbed": (op("add", T, op("subtract", op("add", 1e16, 1), 1e16)), [1.0, 2.0]),
    "absorbed position": (op("add", T, op("subtract", op("add", 1e17, I), 1e17)), [1.0, 2.0]),
    "rounded by a large number": (
        op("floor", op("add", op("add", op("add", T, 0.5), 1e16), -1e16)),
        [1.0],
    ),
    "out of order": (op("subtract", op("add", op("add", T, 1e17), 1), 1e17), [1.0]),
    "overflow": (op("multiply", op("multiply", T, 1e300), 1e-300), [1e10]),
    "infinite constant": (op("add", T, op("multiply", 1e300, 1e300)), [1.0]),
    "large quotient": (op("add", T, op("divide", 10**400, 3 * 10**399)), [1.0]),
    "shared": (iterated(24), [0.5, 1.0]),
    "divided": (functools.reduce(lambda x, _: op("divide", x, 10**6), range(120), T), [1.0]),
}


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
@pytest.mark.parametrize("name", ONCE_WRONG)
def test_programs_that_once_came_out_wrong(name: str) -> None:
    program, inputs = ONCE_WRONG[name]
    np.testing.assert_allclose(
        run(program, inputs, executor="fast"), run(program, inputs), rtol=1e-12, atol=1e-300
    )


def test_results_are_nobody_elses() -> None:
    program = indices * 0.5
    program(np.zeros(4), executor="fast")[0] = 99
    assert program(np.zeros(4), executor="fast")[0] == 0
    inputs = np.zeros(4)
    tokens(inputs, executor="fast")[0] = 99
    assert inputs[0] == 0


def test_counts_and_names_belong_to_the_plan_that_was_asked_for() -> None:
    program = op(
        "multiply", op("selector_width", chosen(T, T)), op("selector_width", chosen(T, T, "<"))
    )
    plan = fast.plan(program, 4, names={program: "both"})
    plan(np.arange(4.0))
    assert plan.counts["structured"] == 2
    assert plan.counts["sort"] == 2
    assert "# both" in plan.explain()
    assert "# both" not in fast.plan(program, 4).explain()


def test_many_parts_that_cannot_be_lowered() -> None:
    widths = [op("selector_width", chosen(T, op("add", T, k))) for k in range(70)]
    program = functools.reduce(lambda x, y: op("add", x, y), widths)
    assert run(program, [1.0, 2.0, 3.0], executor="fast", strict=True) == [3, 2, 1]


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
@pytest.mark.parametrize("executor", ["auto", "fast", "dense"])
def test_parts_with_integers_beyond_64_bits(executor: str) -> None:
    large = np.array([[2**70], [1]], dtype=object)
    assert run_parts(T, [large, np.ones(1, int)], 4, executor=executor).tolist() == [2**70, 1, 1, 0]


def test_parts_that_are_no_numbers() -> None:
    for parts_given, words in [
        ([], "in one array or more, got none"),
        ([np.array(["a"])], "arrays of numbers"),
    ]:
        with pytest.raises(InputError, match=words):
            run_parts(T, parts_given, 4)
    with pytest.raises(
        InputError, match="expected at most 2 tokens, the length of the sequence, got 3"
    ):
        run_parts(T, [np.zeros(3)], 2)
    with pytest.raises(InputError, match="expected the tokens in arrays of numbers, got <U1"):
        Matrix(tokens, 1, 2).run(["a", "b"])
    for wrong in ({"length": 2.5}, {"positions": (0, 2)}, {"segments": 4}, {"segments": [-1]}):
        with pytest.raises(InputError):
            fast.plan(T, **{"length": 4, **wrong})  # type: ignore[arg-type]


def test_causal_attention_stays_a_product() -> None:
    plan = attention(6, 4, 5, mask="causal").plan(segments=[(6, 4), (4, 4), (4, 5)])
    assert plan.counts["matmul"] == 4
    assert max(step.size for step in plan.steps) == 36


class OfNumPy1(np.ndarray[Any, Any]):
    """An array without a device, as all were before NumPy 2."""

    @property
    def device(self) -> str:  # type: ignore[override]
        raise AttributeError("device")


def test_plans_do_not_ask_numpy_arrays_for_a_device() -> None:
    array = np.array([1.0, 2.0]).view(OfNumPy1)
    assert (tokens * 2).plan(2)(array).tolist() == [2.0, 4.0]
    with pytest.raises(InputError, match=r"got .*float32"):
        (tokens * 2).plan(2)(array.astype(np.float32))


def test_bounds_of_a_deep_expression_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Affine] = []

    def count(e: Affine, box: Box) -> tuple[int, int]:
        calls.append(e)
        return bounds(e, box)

    monkeypatch.setattr(terms, "bounds", count)
    deep: terms.Sum = (terms.Term(1, factors=(terms.Position(variable("p")),)),)
    for _ in range(12):
        deep = (terms.Term(1, factors=(terms.Apply("minimum", (deep, (terms.Term(7),))),)),)
    assert terms.value_bounds(deep, {"p": 20}) == (0, 7)
    assert len(calls) == 1
