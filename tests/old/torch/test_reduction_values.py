"""Reductions of NaN, infinities and empty dimensions give eager's values in every executor."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")
pytestmark = pytest.mark.filterwarnings(
    "ignore:var.*degrees of freedom", "ignore:std.*degrees of freedom"
)

from locum.errors import InputError  # noqa: E402
from locum.torch import UnsupportedOperationError  # noqa: E402
from tests.old.torch.opinfo import compare_run, difference  # noqa: E402

EXECUTORS = ("fast", "dense", "heads")
ROWS = torch.tensor(
    [
        [1.0, -2.0, 0.5],
        [math.nan, 1.0, math.inf],
        [math.inf, math.nan, 2.0],
        [math.inf, math.inf, -1.0],
        [math.inf, -math.inf, 0.0],
        [-math.inf, -math.inf, -math.inf],
        [-0.0, 0.0, -0.0],
        [3e38, 3e38, 1e38],
    ]
)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda x: x.sum(1),
    "mean": lambda x: x.mean(1, keepdim=True),
    "prod": lambda x: x.prod(1),
    "amax": lambda x: x.amax(1),
    "amin": lambda x: x.amin(1),
    "max": lambda x: tuple(x.max(1)),
    "min": lambda x: tuple(x.min(1)),
    "argmax": lambda x: x.argmax(1),
    "argmin": lambda x: x.argmin(1),
    "any": lambda x: x.any(1),
    "all": lambda x: x.all(1),
    "var": lambda x: x.var(1),
    "logsumexp": lambda x: x.logsumexp(1),
    "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(1),
    "vector_norm": lambda x: torch.linalg.vector_norm(x, dim=1),
    "infinity_norm": lambda x: torch.linalg.vector_norm(x, math.inf, dim=1),
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(1),
    "safe_softmax": lambda x: torch.ops.aten._safe_softmax(x, 1),
    "layer_norm": lambda x: torch.nn.functional.layer_norm(x, [3]),
}


def check(functions: Any, given: list[Any], executor: str) -> None:
    """Compare functions with eager execution, all in one program."""
    listed = functions if isinstance(functions, list) else [functions]

    def together(*parts: Any) -> Any:
        return [function(*parts) for function in listed]

    expected, found, overloads = compare_run(together, given, executor, "forbidden", gradients=False)
    assert overloads
    assert not difference(expected, found)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("first", range(0, len(FUNCTIONS), 7))
def test_nan_infinities_and_overflow(first: int, executor: str) -> None:
    check(list(FUNCTIONS.values())[first : first + 7], [ROWS], executor)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_empty_dimensions(executor: str) -> None:
    names = ("sum", "mean", "prod", "any", "all", "var", "logsumexp", "cumsum")
    functions = [lambda x, name=name: FUNCTIONS[name](x[:, :0]) for name in names]
    check(functions, [ROWS], executor)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_first_of_equal_entries(executor: str) -> None:
    equal = torch.tensor([[3.0, 1.0, 3.0], [1.0, 1.0, 1.0], [-0.0, 0.0, 0.0]])
    check(lambda x: (x.argmax(1), x.argmin(1), *x.max(0), *x.min(1)), [equal], executor)
    check(lambda x: (x.argmax(1), x.argmin(1), x.amax(0)), [equal.to(torch.int64)], executor)
    check(lambda x: (x.amax(0), x.amin(1)), [equal > 1], executor)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_unread_matrix_of_a_product(executor: str) -> None:
    c, a = torch.full((2, 2), math.nan), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    check(lambda c, a: torch.addmm(c, a, a, beta=0, alpha=0.5), [c, a], executor)
    check(lambda c, a: torch.addmm(c, a, a, beta=0.5), [c, a], executor)


def test_corrections_of_variances() -> None:
    functions = [
        lambda x, f=f, c=c: f(x[:1], 1, correction=c)
        for f in (torch.var_mean, torch.std_mean)
        for c in (0, 1, 3, 4, 0.5)
    ]
    check(functions, [ROWS], "fast")
    empty = [
        lambda x, f=f, c=c: f(x[:0], 0, correction=c)
        for f in (torch.var_mean, torch.std_mean)
        for c in (-1, 0, 1)
    ]
    check(empty, [ROWS], "fast")


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_error_is_at_most_that_of_eager(name: str, dtype: Any) -> None:
    generator = torch.Generator().manual_seed(1)
    functions = {**FUNCTIONS, "layer_norm": lambda x: torch.nn.functional.layer_norm(x, x.shape[1:])}
    x = (torch.randn(64, 257, generator=generator) * 3).to(dtype)
    (expected,), (found,), _ = compare_run(functions[name], [x], "fast", "allowed", gradients=False)
    exact = functions[name](x.double())
    assert (found - exact).norm() <= 1.1 * (expected - exact).norm()


def test_ties_at_the_end_of_topk_raise() -> None:
    compiled = torch.compile(lambda x: x.topk(2).indices, backend="locum", fullgraph=True)
    x = torch.tensor([[1.0, 3.0, 2.0], [5.0, 5.0, 4.0], [-math.inf, 1.0, -math.inf]])
    assert torch.equal(compiled(x)[:2].sort().values, torch.tensor([[1, 2], [0, 1]]))
    with pytest.raises(InputError, match="of which PyTorch may choose any"):
        compiled(torch.tensor([[1.0, 3.0, 1.0], [5.0, 5.0, 4.0], [1.0, 2.0, 3.0]]))


@pytest.mark.parametrize("executor", ["fast", "dense"])
def test_ties_of_topk_are_found_next_to_nan(executor: str) -> None:
    options = {"executor": executor}
    compiled = torch.compile(
        lambda x: x.topk(2).values, backend="locum", fullgraph=True, options=options
    )
    assert compiled(torch.tensor([math.nan, 2.0, 1.0])).isnan().tolist() == [True, False]
    with pytest.raises(InputError, match="of which PyTorch may choose any"):
        compiled(torch.tensor([math.nan, 1.0, 1.0]))


@pytest.mark.parametrize("executor", ["fast", "dense"])
@pytest.mark.parametrize(
    "function", [torch.min, torch.max, lambda x: x.min(0), lambda x: x[5:].max(0).values]
)
def test_extremes_of_empty_tensors_raise(function: Any, executor: str) -> None:
    options = {"executor": executor}
    compiled = torch.compile(function, backend="locum", fullgraph=True, options=options)
    with pytest.raises(UnsupportedOperationError, match="expected one entry or more"):
        compiled(torch.zeros(0))
