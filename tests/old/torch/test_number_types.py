"""Types of numbers: promotion, casts, integers and Python's numbers, as in eager execution."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from locum.errors import InputError, LocumError
from locum.torch.program import Program
from tests.old.torch.opinfo import capture

INF, NAN = math.inf, math.nan
EXECUTORS = ("fast", "dense", "heads")


def run(function: Callable[..., Any], *tensors: torch.Tensor, executor: str = "fast") -> Any:
    """Run a function of tensors as a program that computes integers, too."""
    program = Program.of(capture(function, list(tensors)), executor, "forbidden")
    return program(*tensors)


def assert_same(function: Callable[..., Any], *tensors: torch.Tensor) -> None:
    """Assert that every executor gives eager's numbers, to the last bit and in type."""
    wanted = function(*tensors)
    wanted = wanted if isinstance(wanted, (tuple, list)) else [wanted]
    for executor in EXECUTORS:
        for one, other in zip(run(function, *tensors, executor=executor), wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True, msg=executor)
            if other.is_floating_point():
                assert torch.equal(one.signbit() & ~one.isnan(), other.signbit() & ~other.isnan())


def vector(*numbers: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(numbers, dtype=dtype)


FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
OTHERS = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


@pytest.mark.parametrize("source", [*FLOATS, *OTHERS], ids=str)
def test_casts_between_all_types(source: torch.dtype) -> None:
    numbers = vector(0.0, -0.0, 0.4, -1.6, 1.5, 2.5, 77.7, -77.7, 100.0, -128.0, dtype=torch.float64)
    if source in (torch.bool, torch.uint8):
        numbers = numbers.abs()
    x = numbers.to(source)
    targets = [kind for kind in (*FLOATS, *OTHERS) if kind != torch.uint8 or source not in FLOATS]
    assert_same(lambda x: [x.to(kind) for kind in targets if kind != source], x)


def test_casts_round_and_overflow() -> None:
    x = vector(70000.0, -70000.0, 65519.9, 1e-8, 3.4e38, 1.00390625, INF, -INF, NAN)
    assert_same(lambda x: [x.half().float(), x.bfloat16().float(), (x.double() * 1e10).float()], x)


def test_narrow_integers_wrap_around() -> None:
    for kind in (torch.int8, torch.uint8, torch.int16, torch.int32):
        info = torch.iinfo(kind)
        x = torch.tensor([info.max, info.min, 1, 3], dtype=kind)
        y = torch.tensor([1, 1, 2, info.max // 2], dtype=kind)
        assert_same(lambda x, y: [x + y, x - y, y * 3, x + 1, -x, ~x, x.abs(), x.to(torch.int8)], x, y)


def test_arithmetic_of_integers() -> None:
    x = torch.tensor([7, -7, 7, -7, 0, 2**40])
    y = torch.tensor([2, 2, -2, -2, 5, 3])
    assert_same(
        lambda x, y: [
            x * y, x // y, x % y, torch.fmod(x, y), torch.div(x, y, rounding_mode="trunc"), x / y,
            (x % 5) ** (y + 2), torch.sign(x), x.clamp(-1, 3), torch.maximum(x, y), x & y, x | y, x ^ y,
            x << 2, x >> y.abs(), x == y, x < 3, x > 2.5, torch.where(x > y, x, y),
        ],
        x,
        y,
    )  # fmt: skip


def test_an_integer_zero_has_no_sign() -> None:
    assert_same(lambda x: [1.0 / (-x), 1.0 / (x * -3), 1.0 / (x - 1).float().long()], torch.tensor([0]))


def test_arithmetic_of_booleans() -> None:
    x, y = torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False])
    assert_same(
        lambda x, y: [
            x + y, x * y, x & y, x | y, x ^ y, ~x, x == y, x < y, torch.logical_xor(x, y), x + 1,
            x * 0.5, x.sum(), torch.maximum(x, y), (x + y) == y, x / y,
        ],
        x,
        y,
    )  # fmt: skip


@pytest.mark.parametrize("one", [*FLOATS, torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize("other", [torch.float64, torch.float32, torch.bfloat16, torch.int32], ids=str)
def test_tensors_without_dimensions_are_promoted(one: torch.dtype, other: torch.dtype) -> None:
    x = vector(0.1, 1.0, -3.3, 7.0).to(one)
    y = torch.tensor(1.1).to(other)
    assert_same(lambda x, y: [x + y, x * y, y / x, x < y, x == y, torch.where(x > 0, x, y)], x, y)


@pytest.mark.parametrize("kind", FLOATS, ids=str)
def test_python_numbers_are_rounded_as_in_eager_execution(kind: torch.dtype) -> None:
    x = vector(0.1, 0.3, -0.7, 16777217.0, 2.0).to(kind)
    assert_same(
        lambda x: [
            x + 0.1, x - 0.1, 0.1 - x, x * 0.1, x / 0.3, 0.1 / x, x == 0.1, x <= 0.3, x.clamp(0.1, 0.3),
            x % 0.3, x > 16777217, torch.nn.functional.leaky_relu(x, 0.1), x.masked_fill(x > 0, 0.1),
            torch.nn.functional.threshold(x, 0.1, 0.7), torch.full_like(x, 0.1), x + True,
        ],
        x,
    )  # fmt: skip


@pytest.mark.parametrize("executor", EXECUTORS)
def test_integers_beyond_float64_raise(executor: str) -> None:
    x = torch.tensor([2**52, 3, -(2**52)])
    assert torch.equal(run(lambda x: x + 1 > 3, x, executor=executor)[0], x + 1 > 3)
    for function in (lambda x: x * 4 > 3, lambda x: x**2 == 9, lambda x: x % (x - 3) == 0):
        with pytest.raises((LocumError, RuntimeError), match=r"2⁵³|divisors|ZeroDivisionError"):
            run(function, x, executor=executor)
    with pytest.raises((LocumError, RuntimeError), match="2⁵³"):
        run(lambda x: x + 1, torch.tensor([2**53]), executor=executor)  # rounded to 2⁵³
    with pytest.raises((LocumError, RuntimeError), match="2⁵³"):
        run(lambda x: torch.add(x, x > 0, alpha=2), torch.tensor([2**53 - 1]), executor=executor)


def test_views_outside_of_the_storage_raise() -> None:
    x = torch.arange(6.0)
    inside = run(lambda x: (x * 2).as_strided((2, 2), (2, 1), 1), x)[0]
    assert torch.equal(inside, (x * 2).as_strided((2, 2), (2, 1), 1))
    with pytest.raises(LocumError, match=r"as_strided: expected a view within the 6 entries"):
        run(lambda x: torch.ops.aten.as_strided((x * 2)[:3], (3,), (4,), 0), x)


def test_narrow_integers_widen_before_they_are_multiplied() -> None:
    for narrow, wide in itertools.pairwise((torch.int8, torch.int16, torch.int32, torch.int64)):
        limits = torch.iinfo(narrow)
        x = torch.tensor([limits.max, limits.min // 3, -1, 0], dtype=narrow)
        assert_same(lambda x, w=wide: [x.to(w) * 100, x.to(w) + x, (x * 1).sum(), x.sum()], x)
    x = torch.tensor([200, 255, 0], dtype=torch.uint8)
    assert_same(lambda x: [x.short() * 100, x.long() * x.long(), x.sum(), x.float() * 3], x)


LARGE = torch.tensor([2**53 + 1, 5, -(2**60) - 3])
INTEGER_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "comparison": lambda x: x == 2**53,
    "remainder": lambda x: x % 2,
    "where": lambda x: torch.where(x > 0, x, 0),
    "max": lambda x: x.max(),
    "float": lambda x: x.float(),
}


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("name", INTEGER_FUNCTIONS)
def test_tokens_above_the_integers_of_float64_raise(name: str, executor: str) -> None:
    function = INTEGER_FUNCTIONS[name]
    with pytest.raises(InputError, match=f"expected tokens of at most 2⁵³, got {2**53 + 1}"):
        run(function, LARGE, executor=executor)
    exact = LARGE.clamp(-(2**53), 2**53)
    torch.testing.assert_close(run(function, exact, executor=executor), [function(exact)])


def test_large_integers_are_copied_and_computed_on_the_host() -> None:
    assert torch.equal(run(lambda x: x.clone(), LARGE)[0], LARGE)
    program = Program.of(capture(INTEGER_FUNCTIONS["remainder"], [LARGE]), "fast", "allowed")
    assert program(LARGE)[0].tolist() == [1, 1, 1]
    unsigned = torch.tensor([2**64 - 1, 3], dtype=torch.uint64)
    with pytest.raises(InputError, match=f"got {2**64 - 1}"):
        run(lambda x: x.double() * 1, unsigned)


def test_gelu_of_float32_is_as_accurate_as_eager() -> None:
    x, g = torch.linspace(-5, 5, 4001), torch.linspace(1, 2, 4001)

    def function(x: Any, g: Any) -> Any:
        return torch.nn.functional.gelu(x), torch.ops.aten.gelu_backward(g, x)

    exact = function(x.double(), g.double())
    for found, eager, wanted in zip(run(function, x, g), function(x, g), exact, strict=True):
        error, limit = ((part.double() - wanted).norm() for part in (found, eager))
        assert error <= 1.1 * limit


def test_averages_of_integers_are_rounded_towards_0() -> None:
    x = torch.tensor([[[[3, 4, -4, -3, 8, 9]]]])
    assert_same(lambda x: 0.5 * torch.nn.functional.avg_pool2d(x, (1, 2)), x)


def test_equidistant_integers_are_computed_in_float64() -> None:
    x = torch.tensor([4.3])
    assert_same(lambda x: torch.linspace(0, 7, 50, dtype=torch.int64) + 0 * x, x)
    assert_same(lambda x: torch.linspace(x[0], -3, 50, dtype=torch.int64), x)
    assert_same(lambda x: torch.linspace(x[0], 2, 1) + x, x)


@pytest.mark.parametrize("kind", [torch.int32, torch.int64], ids=str)
def test_indexing_does_not_round_large_integers(kind: torch.dtype) -> None:
    x = torch.tensor([2**31 - 1, 7, 2**24 + 1], dtype=kind)
    i = torch.tensor([2, 0])
    assert_same(
        lambda x, i: [
            x[i], torch.gather(x, 0, i), torch.sort(x)[0], torch.topk(x, 2)[0],
            torch.index_copy(x, 0, i, x[:2]), torch.diagonal_scatter(x.expand(3, 3), x),
        ],
        x,
        i,
    )  # fmt: skip


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16], ids=str)
def test_operands_of_products_are_rounded_to_half_precision(kind: torch.dtype) -> None:
    x, y = torch.tensor([70000, 2049, 5]), torch.tensor([2.0, 1.5, 4.0], dtype=kind)
    number = torch.tensor(70000)
    assert_same(
        lambda x, y, number: [
            x * y, x / y, y / x, number * y, y * number, number / y, y / number, x / y[0],
            torch.div(x, y, rounding_mode="floor"), torch.div(x, y, rounding_mode="trunc"),
        ],
        x,
        y,
        number,
    )  # fmt: skip


@pytest.mark.parametrize("executor", EXECUTORS)
def test_large_intermediate_integers_raise(executor: str) -> None:
    most = 2**31 - 1
    x = torch.tensor([[most, most, 5], [3, most, 7]], dtype=torch.int32)
    functions: list[Callable[[Any], Any]] = [
        lambda x: x @ x.T,
        lambda x: x @ x[0],
        lambda x: torch.bmm(x[None], x.T[None]),
        lambda x: torch.prod(x, dtype=torch.int32),
        lambda x: torch.cumprod(x, 1, dtype=torch.int32),
        lambda x: torch.add(x, x, alpha=most),
    ]
    for function in functions:
        with pytest.raises(InputError, match="expected integers below 2⁵³ in magnitude"):
            run(function, x, executor=executor)
        torch.testing.assert_close(run(function, x % 9, executor=executor), [function(x % 9)])


@pytest.mark.parametrize("kind", [torch.int32, torch.float32], ids=str)
def test_powers_with_equidistant_exponents(kind: torch.dtype) -> None:
    ranges = ((1.5, -2, 1), (0.5, 2.7, 4), (-1, 2.9, 6), (1, 2, 0))

    def powers(x: torch.Tensor) -> list[torch.Tensor]:
        return [torch.logspace(start, end, steps, dtype=kind) + x for start, end, steps in ranges]

    x = torch.zeros(1, dtype=kind)
    torch.testing.assert_close(run(powers, x), powers(x))


def test_ldexp_of_integers_raises_with_another_default_dtype() -> None:
    x = torch.tensor([5, -3])
    try:
        torch.set_default_dtype(torch.float64)
        with pytest.raises(LocumError, match=r"ldexp: integers are not supported .* float64"):
            run(torch.ldexp, x, x)
    finally:
        torch.set_default_dtype(torch.float32)
