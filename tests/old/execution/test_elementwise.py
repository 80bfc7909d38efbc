"""Elementwise operations: one table, and every executor agrees with dense execution at the edges."""

from __future__ import annotations

import gc
import itertools
import math
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import locum
from locum import LocumError
from locum.execution import array_numbers, fast, run
from locum.execution.arrays import Arrays
from locum.execution.elementwise import MEANINGS
from locum.execution.fast import structured
from locum.graph import OPERATIONS, Node, Operation, build
from locum.graph.atoms import canonical_set, canonical_table, identity
from locum.graph.node import pool_size
from locum.networks.transformer.functions import INSTRUCTIONS, Functions, Instruction
from tests.old.execution.one_type import agrees, one_type_holds

pytestmark = pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")

INTEGERS = [0, 1, -1, 3, -2, 2**53, 2**53 + 1]
FLOATS = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 2.0**53),
    *(1e300, -1e300, math.inf, -math.inf, math.nan),
]
NUMBERS = [*INTEGERS, *FLOATS, True, False]
STRINGS = ["", "a", "b"]
#: For operations of three operands.
FEW = [0, -0.0, 1, 0.5, 2**53, math.inf, math.nan, True]
SETS: list[tuple[Any, ...]] = [(), (0, 1.5), (True, "a"), (2**53 + 1, math.inf), (math.nan, 1)]
TABLES: list[dict[Any, Any]] = [
    *({key: number for number, key in enumerate(keys)} for keys in SETS if keys),
    {0: 2.5, 1: True, 3: 7},
    {0: "x", 1: True, 3: 7, "a": "b"},
]
ELEMENTWISE = [row for row in OPERATIONS.values() if row.elementwise]


def attributes(row: Operation) -> list[dict[str, Any]]:
    """What an operation is tried with beside its operands."""
    match row.name:
        case "member":
            return [{"values": canonical_set(values)} for values in SETS]
        case "lookup":
            return [{"table": canonical_table(table)} for table in TABLES]
    return [{}]


def operands(row: Operation) -> list[list[Any]]:
    """The grid: all combinations of numbers, and all of strings."""
    arity = len(row.takes)
    numbers = itertools.product(NUMBERS if arity < 3 else FEW, repeat=arity)
    return [list(values) for values in (*numbers, *itertools.product(STRINGS, repeat=arity))]


def on_tokens(row: Operation, **columns: Any) -> Node:
    """The operation on the first tokens, fetched by heads: at every position the same."""
    first = (locum.select(locum.indices, place, "==") for place in range(len(row.takes)))
    return build(row.name, *(locum.aggregate(s, locum.tokens).node for s in first), **columns)


#: What dense execution says, by program and input: every executor is held against the same answers.
_answers: dict[Hashable, list[Any] | None] = {}


def dense(program: Node, values: list[Any]) -> list[Any] | None:
    """What the program means; None where it has no value."""
    key = (program, identity(tuple(values)))
    if key not in _answers:
        try:
            _answers[key] = run(program, values)
        except LocumError:
            _answers[key] = None
    return _answers[key]


def same(value: Any, expected: Any) -> bool:
    """Equal; functions may differ in their last digits; NaN is NaN."""
    if isinstance(expected, str) or isinstance(value, str):
        return bool(value == expected)
    if value != value or expected != expected:
        return bool(value != value and expected != expected)
    close = isinstance(expected, float) and math.isclose(value, expected, rel_tol=1e-14)
    return bool(value == expected or (close and math.isfinite(expected)))


class Unheld(Exception):  # noqa: N818 - what an executor says beforehand that it does not run
    """These values are not what the executor runs on, or not what its arrays hold."""


def as_lists(executor: str) -> Callable[[Node, list[Any]], Any]:
    def execute(program: Node, values: list[Any]) -> Any:
        _require_held(program, values)
        return run(program, values, executor=executor)

    return execute


def by_heads(program: Node, values: list[Any]) -> Any:
    try:
        return run(program, values, executor="heads")
    except locum.ExecutionError as error:
        if error.kind == "refused":  # strings, and integers that int64 or floats do not hold
            raise Unheld from None
        raise


def by_structured(program: Node, values: list[Any]) -> Any:
    try:
        return structured.evaluate(program, structured.tokens_array(values)).tolist()
    except structured.Unstructured:
        raise Unheld from None


def _one_type(values: list[Any]) -> None:
    if len(set(map(type, values))) > 1:
        raise Unheld


def _require_held(program: Node, values: list[Any], *results: float) -> None:
    """Integers that may be floats are floats: integers that floats would round are not held."""
    expected = dense(program, values)
    if expected is not None and not one_type_holds([*expected, *results], program, [*values, *results]):
        raise Unheld


def on_numpy(program: Node, values: list[Any]) -> Any:
    _one_type(values)
    _require_held(program, values)
    return run(program, np.array(values), executor="fast").tolist()


def on_torch(program: Node, values: list[Any]) -> Any:
    _one_type(values)
    if isinstance(values[0], str):
        raise Unheld
    dtype = torch.float64 if isinstance(values[0], float) else None
    if dense(program, values) is None:
        raise Unheld  # docs/execution.md: tensors follow IEEE 754 there
    # A tensor of floats stays one.
    _require_held(program, values, *([0.0] if dtype is not None else []))
    try:
        return run(program, torch.tensor(values, dtype=dtype), executor="fast").tolist()
    except locum.InputError:  # strings, and integers beyond 64 bits
        raise Unheld from None


#: Executor → how it runs a program, and whether its results have the type of the program.
EXECUTORS: dict[str, tuple[Callable[[Node, list[Any]], Any], bool]] = {
    "fast": (as_lists("fast"), True),
    "auto": (as_lists("auto"), True),
    "structured": (by_structured, False),
    "NumPy": (on_numpy, False),
    "torch": (on_torch, False),
    "heads": (by_heads, True),
}
#: Every so many-th row of the grid is tried, all of them under ``make fuzz``; prime to the number of
#: values, so that every value meets every operation. ``auto`` is ``fast`` here, heads are slow.
STRIDE = {"auto": 13, "heads": 13}


def rows(row: Operation, executor: str) -> list[list[Any]]:
    """Operands to try."""
    everything = settings().max_examples >= 20_000
    return operands(row)[:: 1 if everything or len(row.takes) == 1 else STRIDE.get(executor, 3)]


def disagreement(executor: str, program: Node, values: list[Any]) -> str | None:
    """How an executor differs from dense execution, if it does."""
    execute, typed = EXECUTORS[executor]
    expected = dense(program, values)
    try:
        result = execute(program, values)
    except Unheld:
        return None
    except LocumError:
        return None if expected is None else f"refused, but it is {expected}"
    if expected is None:
        return f"{result}, but dense execution refuses"
    has_type = not typed or agrees(result, expected, program, values)
    if has_type and all(map(same, result, expected)):
        return None
    return f"{result} instead of {expected}"


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("row", ELEMENTWISE, ids=lambda row: row.name)
def test_executors_agree_with_dense_at_edge_values(row: Operation, executor: str) -> None:
    for columns in attributes(row):
        program = on_tokens(row, **columns)
        for values in rows(row, executor):
            assert disagreement(executor, program, values) is None, (row.name, columns, values)


@given(st.data())
def test_executors_agree_with_dense_at_edge_values_and_constants(data: st.DataObject) -> None:
    """One operand is known when the program is planned, and may be of another kind than the tokens."""
    row = data.draw(st.sampled_from([row for row in ELEMENTWISE if len(row.takes) == 2]))
    atom: Any = data.draw(st.sampled_from([*NUMBERS, *STRINGS]))
    tokens: Any = data.draw(st.sampled_from([INTEGERS, FLOATS, [True, False], STRINGS]))
    values = data.draw(st.lists(st.sampled_from(tokens), min_size=1, max_size=3))
    sides = [locum.tokens.node, build("constant", value=atom)]
    program = build(row.name, *(sides if data.draw(st.booleans()) else sides[::-1]))
    for executor in EXECUTORS:
        assert disagreement(executor, program, values) is None, executor


def finite_operands(row: Operation) -> Iterator[list[float]]:
    for values in operands(row):
        if all(not isinstance(value, str) and math.isfinite(value) for value in values):
            yield list(map(float, values))


@pytest.mark.parametrize("library", [np.array, partial(torch.tensor, dtype=torch.float64)])
@pytest.mark.parametrize("op", sorted(INSTRUCTIONS & MEANINGS.keys()))
def test_exact_feed_forwards_agree_with_dense_at_edge_values(op: str, library: Any) -> None:
    """On floats, booleans being 1 and 0; what has no value, or none that is finite, is not finite."""
    row = OPERATIONS[op]
    arity = len(row.takes)
    for columns in attributes(row):
        held = {name: [v for v in value if not isinstance(v, str)] for name, value in columns.items()}
        functions = Functions(arity, (Instruction(op, tuple(range(arity)), held),), (arity,))
        program = on_tokens(row, **columns)
        for values in finite_operands(row):
            arguments = [library([value]) for value in values]
            (result,) = functions(arguments)[0].tolist()
            expected = dense(program, values)
            beyond = op in ("modulo", "floor_divide") and max(map(abs, values)) > 2**53
            if expected is None or not math.isfinite(float(expected[0])) or beyond:
                assert not math.isfinite(result), (op, values)
            else:
                assert same(result, float(expected[0])), (op, values)


def test_every_elementwise_operation_has_a_meaning() -> None:
    assert set(MEANINGS) == {row.name for row in ELEMENTWISE}


@pytest.mark.parametrize("op", ["minimum", "maximum"])
def test_tensors_choose_among_nan_as_dense_does(op: str) -> None:
    """a if a < b else b: torch's own minimum passes NaN on, whichever operand it is."""
    program = getattr(locum, op)(locum.tokens, 1.0)
    tokens = torch.tensor([math.nan, 2.0], dtype=torch.float64)
    assert program(tokens, executor="fast")[0] == program([math.nan, 2.0])[0] == 1.0


@pytest.mark.parametrize(
    ("program", "values"),
    [
        (locum.tokens / 0, [math.inf]),
        (locum.tokens / (locum.tokens - locum.tokens), [1.0, math.nan]),
        (locum.floor(locum.tokens), [math.inf]),
        (round(locum.tokens), [math.nan]),
        (locum.tokens % 0, [math.nan]),
        (locum.tokens // (locum.indices * 0.0), [math.inf]),
    ],
)
def test_plans_refuse_what_dense_refuses_on_infinite_tokens(program: locum.SOp, values: Any) -> None:
    with pytest.raises(LocumError):
        program(values)
    with pytest.raises(LocumError):
        program(np.array(values), executor="fast")
    with pytest.raises(LocumError):
        program.plan(len(values))(np.array(values))


def test_the_root_of_minus_infinity_as_a_power() -> None:
    program = locum.tokens**0.5
    tokens = [-math.inf, 4.0]  # two: only then the exponent is broadcast, and NumPy takes a root
    assert program(tokens) == program(tokens, executor="heads") == [math.inf, 2.0]


def test_integers_that_floats_round_are_seen_before_they_are_rounded() -> None:
    """2⁵³ + 1 became 2⁵³, which floats hold: plans computed with the wrong number."""
    for tokens in ([2**53 + 1, 3], np.array([2**53 + 1, 3])):
        assert list((locum.tokens % 3)(tokens, executor="fast")) == [0, 0]


def test_tensors_of_integers_give_quotients_in_double_precision() -> None:
    """What dense execution computed was handed out in torch's default type, float32."""
    quotient = (locum.tokens / 3)(torch.tensor([2**53 + 1]), executor="dense")
    assert quotient.dtype == torch.float64
    assert quotient.tolist() == [(2**53 + 1) / 3]


@pytest.mark.parametrize("program", [locum.floor(locum.tokens), round(locum.tokens)])
def test_tensors_round_to_floats_what_integers_do_not_hold(program: locum.SOp) -> None:
    for value in (1e300, -math.inf):
        assert program(torch.tensor([value], dtype=torch.float64), executor="fast").tolist() == [value]


def test_values_that_no_tensor_holds_are_refused() -> None:
    for program in (locum.tokens**100, locum.where(locum.tokens > 0, "a", "b")):
        with pytest.raises(locum.InputError, match="a tensor cannot hold; try the tokens as a list"):
            program(torch.tensor([3]), executor="dense")


def test_nan_is_no_member_even_of_a_set_that_has_it() -> None:
    """Membership is equality; it used to hold if both were the same Python object."""
    program = locum.member(locum.tokens, [math.nan, 1])
    for executor in ("dense", "fast", "heads"):
        assert program([math.nan, 1.0], executor=executor) == [False, True]


def test_programs_that_fell_back_are_forgotten() -> None:
    """What was warned of is held weakly: it used to keep every such program alive."""
    fast.forget_plans()
    gc.collect()
    before = pool_size()
    for number in range(40):
        program = locum.tokens + f"{number:0100}"  # too long for an array of strings
        with pytest.warns(fast.FallbackWarning):
            program("ab", executor="fast")
    del program
    gc.collect()
    assert pool_size() <= before + 2


def test_the_smallest_int64_is_found() -> None:
    array = np.array([-(2**63), 5, 2**63 - 1])
    found = array_numbers.member(Arrays(array), array, values=[-(2**63), 2**63 - 1, 2**63])
    assert found.tolist() == [True, False, True]
