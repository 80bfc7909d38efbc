"""Undefined values on lists: which executors raise the error of dense execution, as the page says."""

from __future__ import annotations

import pytest

from locum import (
    SOp,
    aggregate,
    best,
    constant,
    exp,
    family,
    full,
    indicator,
    indices,
    length,
    log,
    lookup,
    maximum,
    select,
    selector_width,
    sqrt,
    sum_over,
    tokens,
    where,
)
from locum.errors import ExecutionError

WORD = [1, 0]
LOG, INVERSE, UP_TO_HERE = log(tokens), 1 / tokens, select(indices, indices, "<=")
MEMBER = family(2)

UNDEFINED: list[SOp] = [
    LOG, INVERSE, tokens % tokens, tokens // tokens, tokens / tokens, tokens**-1, sqrt(tokens - 1),
    0.0 * -LOG, LOG * 0, 0 * INVERSE, 0 * (tokens // tokens), 0 * sqrt(tokens - 1), tokens / 0 * 0,
    0 * exp(1000 + tokens), (length - 2) * LOG, (constant(1) - 1) * LOG, indicator(length > 5) * LOG,
    INVERSE**0, LOG - LOG, INVERSE - INVERSE, 2 * LOG - 2 * LOG, 0 / INVERSE, constant(0) / tokens,
    LOG / LOG, 0 * aggregate(full, LOG), aggregate(full, 0 * LOG),
    aggregate(UP_TO_HERE, INVERSE) * 0 + tokens,
    round(0 * LOG), maximum(0 * LOG, 1), 0 * lookup(tokens, {1: 2}), 0 * constant(0) / constant(0),
    where(tokens == 0, 5, INVERSE), (tokens > 5) & (INVERSE > 0), INVERSE == INVERSE,
    selector_width(select(LOG, LOG, "==")), aggregate(best(full, 0 * LOG), indices),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
@pytest.mark.parametrize("program", UNDEFINED, ids=lambda program: str(program.node))
def test_an_undefined_value_is_an_error_of_every_executor(program: SOp) -> None:
    with pytest.raises(ExecutionError) as dense:
        program(WORD)
    for executor in ("fast", "auto"):
        with pytest.raises(ExecutionError) as error:
            program(WORD, executor=executor)
        assert str(error.value) == str(dense.value)
    with pytest.raises(ExecutionError):
        program(WORD, executor="heads")


#: Programs whose undefined values at some position, key or branch are not used, with their results.
UNUSED: list[tuple[SOp, list[float]]] = [
    (aggregate(select(indices, 0, "=="), LOG), [0.0, 0.0]),
    (aggregate(select(indices, 9, "=="), LOG, 3), [3.0, 3.0]),
    (where(indices == 0, LOG, 5), [0.0, 5.0]),
    (where(length > 5, LOG, 5), [5.0, 5.0]),
]
#: Products with a factor that positions or families make 0; ``heads`` computes them.
MASKED: list[tuple[SOp, list[float]]] = [
    (indicator(indices == 0) * INVERSE, [1.0, 0.0]),
    (sum_over(MEMBER, indicator(MEMBER > 5) * LOG), [0.0, 0.0]),
]


def require_results(program: SOp, result: list[float]) -> None:
    with pytest.raises(ExecutionError):
        program(WORD)
    assert program(WORD, executor="fast", strict=True) == program(WORD, executor="auto") == result


@pytest.mark.parametrize(("program", "result"), UNUSED)
def test_values_that_the_result_does_not_use_are_not_computed(
    program: SOp, result: list[float]
) -> None:
    require_results(program, result)
    assert program(WORD, executor="heads") == result


@pytest.mark.parametrize(("program", "result"), MASKED)
def test_products_with_a_factor_that_positions_make_0_are_not_computed(
    program: SOp, result: list[float]
) -> None:
    require_results(program, result)
    with pytest.raises(ExecutionError):
        program(WORD, executor="heads")
