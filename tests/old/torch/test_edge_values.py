"""Elementwise operations on edge values: zeros of both signs, infinities, NaN, tiny and huge numbers.

One program per type and executor computes every elementwise row of the table. Results must agree with
eager execution in NaN, infinities and the sign of zeros, and up to a few units in the last place.
PyTorch does not define which of 0 and -0 is the greater one: eager execution depends on the processor.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from locum.errors import InputError, LocumError
from locum.torch.program import Program
from locum.torch.table import TABLE, find_overload
from tests.old.torch.opinfo import capture

INF, NAN = math.inf, math.nan
ROWS = sorted(
    row.name.removeprefix("aten.")
    for row in TABLE.values()
    if row.kind == "elementwise" and "shift" not in row.name  # of integers
)
#: Arguments after the tensors; rows that are not listed get SCALARS for each number they need.
CASES: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "add.Tensor": [((), {}), ((), {"alpha": 0.1})],
    "sub.Tensor": [((), {}), ((), {"alpha": 3})],
    "addcmul.default": [((), {}), ((), {"value": 0.3})],
    "addcdiv.default": [((), {}), ((), {"value": 0.3})],
    "div.Tensor_mode": [((), {"rounding_mode": mode}) for mode in ("floor", "trunc", None)],
    "div.Scalar_mode": [((0.3,), {"rounding_mode": mode}) for mode in ("floor", "trunc")],
    "round.decimals": [((), {"decimals": n}) for n in (0, 2, -1)],
    "gelu.default": [((), {"approximate": kind}) for kind in ("none", "tanh")],
    "gelu_backward.default": [((), {"approximate": kind}) for kind in ("none", "tanh")],
    "leaky_relu_backward.default": [((0.1, False), {})],
    "clamp.default": [(case, {}) for case in ((-0.5, 2.0), (0.0,), (None, 0.1), (NAN,), (1, -1))],
    "hardtanh.default": [((), {}), ((-0.3, 2.5), {})],
    "elu.default": [((), {}), ((1.6, 1.05, 0.5), {})],
    "pow.Tensor_Scalar": [((n,), {}) for n in (0, 1, 2, 3, -1, -2, 0.5, -0.5, 0.3, -2.7, INF, NAN)],
}
SCALARS = (0.1, 2.0, -0.5, 0.0)


def edge_values(dtype: torch.dtype) -> torch.Tensor:
    """Return numbers at which operations behave in special ways."""
    info = torch.finfo(dtype)
    positive = [0.0, info.smallest_normal, 0.1, 0.5, 1.0, 1.5, 2.5, 7.7, info.max / 2, info.max, INF]
    return torch.tensor([*positive, *(-x for x in positive), NAN], dtype=torch.float64).to(dtype)


def operands(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """Return three tensors: pairs of edge values, and the second of the pairs in another order."""
    values, info = edge_values(dtype), torch.finfo(dtype)
    others = [0.0, -0.0, info.smallest_normal, -0.1, 1.0, -1.5, 7.7, info.max, INF, -INF, NAN]
    second = torch.tensor(others, dtype=torch.float64).to(dtype)
    x, y = (part.reshape(-1) for part in torch.meshgrid(values, second, indexing="ij"))
    size = -(-len(x) // 64) * 64  # whole vectors: eager's zeros differ in what is left of them
    x, y = (torch.cat([part, part])[:size] for part in (x, y))
    return x, y, y.roll(97)


def calls(name: str, tensors: tuple[torch.Tensor, ...]) -> Iterator[tuple[Any, tuple[Any, ...], Any]]:
    """Iterate over the overload, arguments and options with which a row is called."""
    overload = find_overload(name)
    required = [a for a in overload._schema.arguments if not a.has_default_value()]
    kinds = [str(argument.type) for argument in required]
    places = iter(tensors)
    given = [next(places) for kind in kinds if "Tensor" in kind]
    if name.startswith("bitwise"):
        given = [tensor > 0 for tensor in given]
    elif name == "where.self":
        given = [tensors[2] > 0, *tensors[:2]]
    if name in CASES:
        for arguments, options in CASES[name]:
            yield overload, (*given, *arguments), options
    elif kinds[0] != "Tensor":
        for number in SCALARS:
            yield overload, (number, *given), {}
    elif len(given) < len(kinds):
        for number in SCALARS if not name.startswith("bitwise") else (True, False):
            yield overload, (*given, number), {}
    elif name == "clamp.Tensor":
        for bounds in (tensors[1:], (None, tensors[1]), (tensors[1], None)):
            yield overload, (*given, *bounds), {}
    else:
        yield overload, tuple(given), {}


def steps_apart(found: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Return how many steps between floating-point numbers are between two tensors, NaN aside."""
    whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}[wanted.dtype.itemsize]
    least = torch.iinfo(whole).min
    one, other = (tensor.contiguous().view(whole).to(torch.int64) for tensor in (found, wanted))
    one, other = (torch.where(bits < 0, least - bits, bits) for bits in (one, other))
    near = (one < 0) == (other < 0)  # the difference of others may overflow
    return torch.where(near, (one - other).abs(), one.abs().maximum(other.abs()))


#: Operations whose result is one of two zeros of different signs, or of a zero and a bound of 0.
TIES = ("clamp", "clamp_max", "clamp_min", "fmax", "fmin", "hardtanh", "maximum", "minimum", "relu")


def problems(
    name: str, found: torch.Tensor, wanted: torch.Tensor, most: int, ignored: torch.Tensor
) -> str:
    """Return how a result differs from eager's; "" where it does not."""
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return f"{found.dtype} {found.shape} instead of {wanted.dtype} {wanted.shape}"
    if wanted.dtype.is_floating_point:
        wrong = found.isnan() != wanted.isnan()
        wrong |= found.isinf() != wanted.isinf()
        is_signed = name.split(".")[0] not in TIES
        wrong |= (wanted == 0) & ((found != 0) | (is_signed & (found.signbit() != wanted.signbit())))
        wrong |= ~wanted.isnan() & (steps_apart(found, wanted) > most)
    else:
        wrong = found != wanted
    wrong &= ~ignored
    if not wrong.any():
        return ""
    place = int(wrong.nonzero()[0])
    return (
        f"{int(wrong.sum())} of {wrong.numel()}, first at {place}: {found[place]} for {wanted[place]}"
    )


#: Steps that a result may be away from eager's; rows that are not listed give the same numbers.
STEPS = {
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "pow", "ldexp"), 4),
    **dict.fromkeys(("acosh", "asinh", "atanh", "cos", "cosh", "hypot", "sin", "sinh", "tan"), 4),
    **dict.fromkeys(("elu", "sigmoid", "sigmoid_backward", "silu", "silu_backward"), 4),
    **dict.fromkeys(("tanh", "tanh_backward"), 4),
}
#: The machine's erf is inaccurate, and gelu loses digits where it is close to 0.
STEPS |= {"erf": 16, "gelu": 64, "gelu_backward": 64}


def most_steps(name: str, options: dict[str, Any], dtype: torch.dtype) -> int:
    """Return how many steps a result may be away from eager's."""
    first = name.split(".")[0]
    if first in ("addcmul", "lerp") or "alpha" in options:
        return 1 if dtype == torch.float32 else 8  # eager execution has a fused multiply-add
    return 1 if first in ("rsqrt", "sqrt") else STEPS.get(first, 0)


def unsettled(name: str, options: dict[str, Any], given: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Return where eager execution depends on the machine, or rounds more or less often."""
    x, y, _ = given
    huge = torch.finfo(x.dtype).max / 4
    first = name.split(".")[0]
    if first in ("fmod", "remainder", "div"):  # the quotient overflows, or is rounded to half precision
        nearest = (x.double() / y.double()).round()
        whole = options.get("rounding_mode") is not None and x.dtype.itemsize == 2
        close = ((x / y).double() - nearest).abs() < 1e-2
        return (x / y).isinf() | (x / 0.1).isinf() | (0.1 / y).isinf() | (whole & close)
    if first == "erf":
        return x.abs() < 1e-7
    if first in ("gelu", "gelu_backward"):
        # Instructions for bfloat16 replace subnormal numbers by 0 on some processors.
        smallest = torch.finfo(x.dtype).smallest_normal if x.dtype == torch.bfloat16 else 0.0
        subnormal: torch.Tensor = (x != 0) & (x.abs() <= smallest)
        if first == "gelu_backward":
            return subnormal
        return subnormal | (x > huge if options["approximate"] == "none" else (x <= 0) | (x > huge))
    if first == "sigmoid_backward":
        return (x.abs() > huge) | (y.abs() > huge)
    if first in ("addcmul", "lerp") or "alpha" in options:  # no fused multiply-add: only of float32
        extreme = [(part.abs() > huge) | (part.abs() < 1e-4) for part in given]
        return torch.stack(extreme).any(0) & (x.dtype != torch.float32)
    return torch.zeros_like(x, dtype=torch.bool)


@pytest.mark.parametrize("executor", ["fast", "dense", "heads"])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str
)
def test_elementwise_rows_on_edge_values(dtype: torch.dtype, executor: str) -> None:
    tensors = operands(dtype)
    called: list[tuple[str, Any, Any]] = []

    def compute_all(*given: torch.Tensor) -> list[torch.Tensor]:
        called.clear()
        results = []
        for name in ROWS:
            for overload, arguments, options in calls(name, given):
                called.append((name, [a for a in arguments if not torch.is_tensor(a)], options))
                results.append(overload(*arguments, **options))
        return results

    wanted = compute_all(*tensors)
    program = Program.of(capture(compute_all, list(tensors)), executor, "forbidden")
    wrong = []
    for (name, numbers, options), one, other in zip(called, program(*tensors), wanted, strict=True):
        ignored = unsettled(name, options, tensors)
        problem = problems(name, one, other, most_steps(name, options, dtype), ignored)
        if problem:
            wrong.append(f"{name} {numbers} {options}: {problem}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("executor", ["fast", "dense", "heads"])
def test_a_product_of_one_term_has_the_sign_of_a_sum(executor: str) -> None:
    def multiply(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return 1 / torch.mm(x, y)

    x, y = torch.zeros(2, 1), torch.tensor([[-1.0, 1.0]])
    options: Any = {"executor": executor}
    found = torch.compile(multiply, backend="locum", fullgraph=True, options=options)(x, y)
    # Eager execution gives 0 · -1 = -0 on some processors, and 0 + 0 · -1 = 0 on others.
    assert torch.equal(found, 1 / (torch.mm(x, y) + 0.0))


_FLOATS = torch.tensor([1.7, 1.6, -1.5, 2.9])
_BYTES = torch.tensor([1, 2, 7, 200, 255], dtype=torch.uint8)
UNUSUAL: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "cumsum of floats as integers": (lambda x: x.cumsum(0, dtype=torch.int64), [_FLOATS]),
    "cumprod of floats as integers": (lambda x: x.cumprod(0, dtype=torch.int32), [_FLOATS]),
    "prod of floats as integers": (lambda x: x.prod(dtype=torch.uint8), [_FLOATS]),
    "gather with one index": (lambda x, i: x.gather(0, i), [_FLOATS, torch.tensor(2)]),
    "scatter with one index": (
        lambda x, i: (x.scatter(0, i, 4), x.scatter_add(0, i, torch.tensor(1.0))),
        [_FLOATS, torch.tensor(2)],
    ),
    "topk without entries": (lambda x: torch.topk(x, 0), [torch.arange(6.0).reshape(2, 3)]),
    "negative numbers with bytes": (lambda x: (x < -3, x % -3, x.clamp(min=-3)), [_BYTES]),
    "bits of uint64": (lambda x: (x & 6, x | 9, x ^ x), [torch.tensor([5, 300], dtype=torch.uint64)]),
    "numbers beyond int8": (lambda x: (x < 200, x % 200), [_BYTES.to(torch.int8)]),
    "product with a power that overflows": (
        lambda x, n: x * torch.exp2(n),
        [torch.tensor([0.0, 0.5]), torch.tensor([255, 128])],
    ),
    "ldexp with a power that overflows": (
        torch.ldexp,
        [torch.tensor([1e-38, 0.0, 3.0, 1e30]), torch.tensor([200, 2000, -3, -2000])],
    ),
    "ldexp of integers": (torch.ldexp, [torch.tensor([0, 1, 3]), torch.tensor([200, 200, -3])]),
    "nll_loss of one sample": (
        lambda x, t: torch.ops.aten.nll_loss_forward(x, t, None, 0, -100),
        [_FLOATS, torch.tensor(1)],
    ),
}


@pytest.mark.parametrize("executor", ["fast", "dense", "heads"])
@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_arguments(name: str, executor: str) -> None:
    function, inputs = UNUSUAL[name]
    program = Program.of(capture(function, inputs), executor, "forbidden")
    wanted = pytree.tree_leaves(function(*inputs))
    for one, other in zip(program(*inputs), wanted, strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)


def test_masks_of_bytes_are_not_indices() -> None:
    def write(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.ops.aten.index_put(x, [mask], torch.ones(2, 4))
        return result

    inputs = [torch.zeros(3, 4), torch.tensor([1, 0, 1], dtype=torch.uint8)]
    with pytest.raises(LocumError, match="masks as indices are not supported"):
        Program.of(capture(write, inputs), "fast", "forbidden")


REJECTED: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "embedding": (torch.nn.functional.embedding, [torch.tensor([-1]), torch.ones(3, 1)]),
    "gather": (lambda i, w: w.gather(0, i), [torch.tensor([-1]), torch.ones(3)]),
    "index_select": (lambda i, w: w.index_select(0, i), [torch.tensor([-1]), torch.ones(3)]),
    "gather from one entry": (lambda i, w: w.gather(0, i), [torch.tensor(1), torch.tensor(2.0)]),
    "index_select from one entry": (
        lambda i, w: w.index_select(0, i),
        [torch.tensor([1]), torch.tensor(2.0)],
    ),
    "scatter": (lambda i, w: w.scatter(0, i, 9.0), [torch.tensor([-1]), torch.ones(3)]),
    "scatter_add": (lambda i, w: w.scatter_add(0, i, w), [torch.tensor([-1]), torch.ones(3)]),
    "index_add": (lambda i, w: w.index_add(0, i, w[:1]), [torch.tensor([-1]), torch.ones(3)]),
    "index_copy": (lambda i, w: w.index_copy(0, i, w[:1]), [torch.tensor([-1]), torch.ones(3)]),
    "one_hot": (lambda i: torch.nn.functional.one_hot(i, 2), [torch.tensor([0, 2])]),
    "one_hot below 0": (lambda i: torch.nn.functional.one_hot(i, 2), [torch.tensor([0, -1])]),
}


@pytest.mark.parametrize("executor", ["fast", "heads"])
@pytest.mark.parametrize("name", REJECTED)
def test_indices_that_eager_rejects_are_rejected(name: str, executor: str) -> None:
    function, inputs = REJECTED[name]
    with pytest.raises((RuntimeError, IndexError)):
        function(*inputs)
    options: Any = {"executor": executor}
    with pytest.raises(InputError):
        torch.compile(function, backend="locum", fullgraph=True, options=options)(*inputs)


@pytest.mark.parametrize("executor", ["fast", "dense", "heads"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
def test_numbers_without_an_integer_are_rejected(value: float, executor: str) -> None:
    def truncate(x: torch.Tensor) -> torch.Tensor:
        return x.long().remainder(3) + 0.5

    compiled = torch.compile(truncate, backend="locum", options={"executor": executor})
    x = torch.tensor([2.9, -7.5])
    assert torch.equal(compiled(x), truncate(x))
    with pytest.raises(InputError, match="expected numbers that int64 has"):
        compiled(torch.tensor([2.0, value]))


def test_one_value_may_have_equal_indices() -> None:
    def write(x: torch.Tensor, i: torch.Tensor) -> Any:
        return x.index_put((i,), torch.tensor(1.0)), x.scatter(0, i, 7.0)

    x, i = torch.zeros(3), torch.tensor([0, 0, 2])
    found = torch.compile(write, backend="locum", fullgraph=True)(x, i)
    assert all(torch.equal(a, b) for a, b in zip(found, write(x, i), strict=True))


def test_running_sums_start_at_zero() -> None:
    x = torch.tensor([-0.0, -0.0, 1.0])
    found = torch.compile(lambda x: 1 / x.cumsum(0), backend="locum", fullgraph=True)(x)
    assert torch.equal(found, 1 / x.cumsum(0))


def test_memory_of_inputs_that_is_replaced_or_shared_in_part() -> None:
    def replace(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.data = y
        return x * 2

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=r"try x\.copy_"):
        torch.compile(replace, backend="locum", fullgraph=True)(torch.ones(2), torch.zeros(2))

    def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return y * 2

    whole = torch.arange(12.0).view(3, 4)
    pair = copy.deepcopy([whole[:3, :3].detach(), whole[:3, :3].detach().t().detach()])
    with pytest.raises(InputError, match="try inputs that do not share memory"):
        torch.compile(add, backend="locum", fullgraph=True)(*pair)


@pytest.mark.parametrize("name", ["avg_pool2d", "avg_pool3d", "max_pool2d", "max_pool3d"])
@pytest.mark.parametrize("batched", [False, True])
def test_pooling_windows_given_by_one_number(name: str, batched: bool) -> None:
    dims = int(name[-2])
    shape = (*([2] if batched else []), 3, *[4] * dims)
    pool = getattr(torch.nn.functional, name)

    def apply(x: torch.Tensor) -> Any:
        y = pool(x, [2])
        return y, torch.autograd.grad((y * y).sum(), x)[0]

    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    expected = apply(x)
    y = torch.compile(lambda x: pool(x, [2]), backend="locum", fullgraph=True)(x)
    torch.testing.assert_close(y, expected[0])
    torch.testing.assert_close(torch.autograd.grad((y * y).sum(), x)[0], expected[1])


@pytest.mark.parametrize("bounds", [(-INF, 1.0), (0.0, INF)])
def test_histc_rejects_infinite_bounds(bounds: tuple[float, float]) -> None:
    def count(x: torch.Tensor) -> torch.Tensor:
        return torch.histc(x, 5, *bounds)

    with pytest.raises(LocumError, match="histc: expected finite min and max"):
        torch.compile(count, backend="locum")(torch.ones(3))
