"""Functions and modules on U give what eager PyTorch gives: one row per function."""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
F = torch.nn.functional

from locum.simulators import UniversalSimulator  # noqa: E402
from locum.torch import (  # noqa: E402
    Recorder,
    Report,
    UnsupportedOperationError,
    from_torch,
    record,
    report,
    simulate,
)

X = lambda *s: torch.randn(*s)  # noqa: E731
#: Name → function, and a function that draws its arguments.
ROWS: dict[str, tuple[Any, Any]] = {
    "linear": (F.linear, lambda: (X(2, 3), X(4, 3), X(4))),
    "matmul": (torch.matmul, lambda: (X(2, 3, 4), X(4, 2))),
    "bmm": (torch.bmm, lambda: (X(2, 3, 4), X(2, 4, 5))),
    "softmax": (lambda x: x.softmax(-1), lambda: (X(3, 4),)),
    "log_softmax": (lambda x: x.log_softmax(0), lambda: (X(3, 4),)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), lambda: (X(3, 4), X(4), X(4))),
    "gelu": (F.gelu, lambda: (X(7),)),
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh"), lambda: (X(7),)),
    "silu": (F.silu, lambda: (X(7),)),
    "relu": (lambda x: F.relu(x) + F.leaky_relu(x) + F.elu(x), lambda: (X(7),)),
    "hardtanh": (lambda x: F.hardtanh(x) + x.clamp(-0.2, 0.4), lambda: (X(7),)),
    "where": (lambda x, y: torch.where(x > y, x, y * 2), lambda: (X(3, 2), X(2))),
    "masked_fill": (lambda x: x.masked_fill(x < 0, -7.0), lambda: (X(3, 3),)),
    "sum mean": (lambda x: (x.sum(0), x.mean(1, keepdim=True), x.sum()), lambda: (X(3, 4),)),
    "var std": (lambda x: (x.var(1), x.std(0, correction=0)), lambda: (X(3, 4),)),
    "max min": (lambda x: (x.max(1), x.amin(0), x.argmax(1), x.argmin(0)), lambda: (X(3, 4),)),
    "prod cumsum": (lambda x: (x.prod(1), x.cumsum(0), x.cumsum(1)), lambda: (X(3, 4),)),
    "any all": (lambda x: ((x > 0).any(1), (x > -9).all(), (x > 0).sum(0)), lambda: (X(3, 4),)),
    "sort topk": (lambda x: (x.sort(1), x.topk(2, 0)), lambda: (X(4, 4),)),
    "sort ties": (
        lambda x: (x.sort(stable=True), x.argsort(stable=True, descending=True)),
        lambda: (torch.tensor([2.0, 1, 2, 1]),),
    ),
    "gather": (lambda x, i: x.gather(1, i), lambda: (X(3, 4), torch.tensor([[0, 3], [1, 1], [2, 0]]))),
    "index": (
        lambda x, i: (x[i], x[:, i], x.index_select(0, i)),
        lambda: (X(4, 4), torch.tensor([3, 0, -1 % 4])),
    ),
    "negative index": (lambda x, i: x[i], lambda: (X(4, 4), torch.tensor([-1, 0]))),
    "index_put": (
        lambda x, i, v: x.index_put((i,), v, accumulate=True),
        lambda: (X(4), torch.tensor([1, 1, 3]), X(3)),
    ),
    "scatter": (
        lambda x, i, v: (x.scatter(1, i, v), x.scatter_add(1, i, v)),
        lambda: (X(2, 4), torch.tensor([[0, 2], [3, 1]]), X(2, 2)),
    ),
    "embedding": (F.embedding, lambda: (torch.tensor([[1, 2], [0, 3]]), X(4, 3))),
    "views": (
        lambda x: (x.t().reshape(6, 2)[1:4:2], x.permute(1, 0).flip(0), x.unsqueeze(1).expand(3, 2, 4)),
        lambda: (X(3, 4),),
    ),
    "cat stack": (lambda x, y: (torch.cat([x, y], 1), torch.stack([x, x])), lambda: (X(2, 3), X(2, 2))),
    "split chunk": (lambda x: (*x.split(2, 1), *x.chunk(2, 0)), lambda: (X(4, 5),)),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 1), value=0.5), lambda: (X(2, 3),)),
    "roll": (lambda x: (x.roll(1, 0), x.roll(-2, 1)), lambda: (X(3, 4),)),
    "tril": (lambda x: (x.tril(), x.triu(1), x.diagonal()), lambda: (X(4, 4),)),
    "repeat": (lambda x: (x.repeat(2, 3), x.repeat_interleave(2, 0)), lambda: (X(2, 2),)),
    "arithmetic": (
        lambda x, y: (x + y, x - 2 * y, x / y, x * y, -x, x**2, x**3),
        lambda: (X(3, 2), X(2)),
    ),
    "functions": (
        lambda x: (
            x.exp(),
            (x * x + 1).log(),
            (x * x).sqrt(),
            x.abs().rsqrt(),
            x.sin(),
            x.cos(),
            x.tanh(),
            x.sigmoid(),
            x.erf(),
        ),
        lambda: (X(5),),
    ),
    "rounding": (
        lambda x: (x.floor(), x.ceil(), x.round(), x.trunc(), x.sign(), x.frac()),
        lambda: (torch.tensor([-1.5, -0.5, 0.5, 1.5, 2.5, 0.0]),),
    ),
    "division": (
        lambda x, y: (x // y, x % y, torch.div(x, y, rounding_mode="trunc"), torch.fmod(x, y)),
        lambda: (torch.tensor([7, -7, 7, -7]), torch.tensor([2, 2, -2, -2])),
    ),
    "integers": (
        lambda x: (x + 1, x * x, x // 2, x.float() / 3, x == 2, x.sum(), x.cumsum(0)),
        lambda: (torch.arange(6),),
    ),
    "logic": (
        lambda x, y: (x & y, x | y, ~x, x ^ y, x.logical_and(y)),
        lambda: (torch.tensor([True, False]), torch.tensor([True, True])),
    ),
    "compare": (
        lambda x, y: (x == y, x != y, x < y, x <= y, x >= y, torch.maximum(x, y)),
        lambda: (torch.tensor([1.0, 2, 3]), torch.tensor([1.0, 3, 2])),
    ),
    "casts": (
        lambda x: (x.long(), x.int().float(), x.bool(), x.double()),
        lambda: (torch.tensor([-1.7, 0.0, 2.9]),),
    ),
    "conv1d": (
        lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=1),
        lambda: (X(1, 2, 7), X(3, 2, 3), X(3)),
    ),
    "conv2d": (
        lambda x, w: F.conv2d(x, w, padding=1, groups=2),
        lambda: (X(1, 2, 4, 4), X(4, 1, 3, 3)),
    ),
    "pool": (lambda x: (F.max_pool2d(x, 2), F.avg_pool2d(x, 2, 1)), lambda: (X(1, 2, 4, 4),)),
    "sdpa": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        lambda: (X(1, 2, 3, 4), X(1, 2, 5, 4), X(1, 2, 5, 4)),
    ),
    "sdpa causal": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda: (X(1, 2, 3, 4), X(1, 2, 3, 4), X(1, 2, 3, 4)),
    ),
    "einsum": (lambda x, y: torch.einsum("bij,bkj->bik", x, y), lambda: (X(2, 3, 4), X(2, 5, 4))),
    "arange": (lambda x: x + torch.arange(3) * torch.ones(2, 1), lambda: (X(2, 3),)),
    "cross_entropy": (F.cross_entropy, lambda: (X(3, 5), torch.tensor([1, 0, 4]))),
    "mutation": (lambda x: (x.add_(1), x[0].mul_(2), x), lambda: (X(2, 2),)),
}


def on_u(function: Any, **options: Any) -> Any:
    torch._dynamo.reset()
    return torch.compile(function, backend="locum", fullgraph=True, options=options or None)


@pytest.mark.parametrize("name", ROWS)
def test_rows(name: str) -> None:
    function, make = ROWS[name]
    torch.manual_seed(0)
    arguments = make()
    copies = [a.clone() for a in arguments]
    torch.testing.assert_close(on_u(function)(*copies), function(*arguments), equal_nan=True)


@pytest.mark.parametrize("executor", ["fast", "dense", "heads"])
def test_modules(executor: str) -> None:
    """A transformer layer, forward and backward."""
    torch.manual_seed(0)
    size = {"fast": (8, 2, 16), "dense": (2, 1, 2), "heads": (2, 1, 2)}[executor]
    layer = torch.nn.TransformerEncoderLayer(
        *size[:2], size[2], dropout=0.0, batch_first=True, norm_first=True
    )
    layer.train()
    x = torch.randn(1, 2, size[0])
    wanted = layer(x)
    found = on_u(layer, executor=executor)(x)
    torch.testing.assert_close(found, wanted)
    if executor == "fast":
        wanted.sum().backward()
        expected = [p.grad.clone() for p in layer.parameters()]
        layer.zero_grad()
        found.sum().backward()
        torch.testing.assert_close([p.grad for p in layer.parameters()], expected)


EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-8, 88.0, -88.0, math.inf, -math.inf, math.nan]
UNARY = [
    "abs", "acos", "asinh", "atan", "ceil", "celu", "cos", "cosh", "elu", "erf", "exp", "exp2",
    "expm1", "floor", "gelu", "hardsigmoid", "hardswish", "hardtanh", "isfinite", "isinf", "isnan",
    "leaky_relu", "log", "log10", "log1p", "log2", "logsigmoid", "mish", "neg", "reciprocal",
    "relu", "relu6", "round", "rsqrt", "selu", "sigmoid", "sign", "silu", "sin", "sinh", "softplus",
    "softsign", "sqrt", "square", "tan", "tanh", "trunc",
]  # fmt: skip
BINARY = [
    "add", "atan2", "copysign", "div", "eq", "floor_divide", "fmax", "fmin", "fmod", "ge", "gt",
    "hypot", "le", "logaddexp", "lt", "maximum", "minimum", "mul", "ne", "pow", "remainder", "sub",
]  # fmt: skip
#: Functions that U does not support.
UNSUPPORTED = {"acos", "atan", "atan2"}


@pytest.mark.parametrize("name", UNARY)
def test_edge_values(name: str) -> None:
    """Operations give eager's results on zeros, infinities, NaN and large numbers, or are rejected."""
    x = torch.tensor(EDGES)
    assert compare(getattr(torch, name, None) or getattr(F, name), x) == (name not in UNSUPPORTED)


@pytest.mark.parametrize("name", BINARY)
def test_edge_pairs(name: str) -> None:
    x, y = torch.meshgrid(torch.tensor(EDGES), torch.tensor(EDGES), indexing="ij")
    assert compare(getattr(torch, name), x, y) == (name not in UNSUPPORTED)


def compare(function: Any, *arguments: Any) -> bool:
    """Return whether U computes a function. If so, the results equal those of eager execution."""
    wanted = function(*arguments)
    try:
        found = on_u(function)(*arguments)
    except UnsupportedOperationError:
        return False
    torch.testing.assert_close(found, wanted, equal_nan=True)
    return True


WINDOWS = [
    window
    for window in itertools.product((1, 2, 3), (1, 2), (0, 1), (1, 2))
    if window[2] * 2 <= window[0]
]


@pytest.mark.parametrize("window", WINDOWS[::2], ids=str)
def test_windows(window: tuple[int, int, int, int]) -> None:
    """Convolutions and pooling by kernel, stride, padding and dilation, with indices and ceil mode."""
    kernel, stride, padding, dilation = window

    def compute(x: Any, w: Any) -> Any:
        return (
            F.conv2d(x, w, None, stride, padding, dilation),
            F.conv_transpose2d(x, w, None, stride, padding),
            F.max_pool2d(x, kernel, stride, padding, dilation, return_indices=True),
            F.avg_pool2d(x, kernel, stride, padding, ceil_mode=True, count_include_pad=False),
            F.unfold(x, kernel, dilation, padding, stride),
        )

    assert compare(compute, X(1, 2, 7, 6), X(2, 2, kernel, kernel))


def test_the_report() -> None:
    """Every run is counted, and all multiply-adds of a linear layer are on U."""
    torch._dynamo.reset()
    module = torch.compile(torch.nn.Linear(3, 4), backend="locum")
    for _ in range(3):
        module(X(2, 3))
    found = report(module)
    assert isinstance(found, Report)
    assert (found.runs, found.multiply_adds, found.share) == (3, 3 * 24, 1.0)
    without = torch.compile(torch.nn.Tanh(), backend="locum")
    assert report(without).share == 0.0
    without(X(2))
    assert (report(without).runs, report(without).multiply_adds, report(without).share) == (1, 0, 1.0)


DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_shapes_and_dtypes(dtype: str) -> None:
    """Empty tensors, scalars, integers, booleans and half precision."""

    def compute(x: Any) -> Any:
        flat = x.flatten().flip(0)
        return x + 1, x * x, x.sum(), x.float().mean(), flat, torch.where(x > 1, x, x + x)

    for shape in ((), (1,), (0,), (2, 3), (2, 0)):
        assert compare(compute, (torch.randn(shape) * 3).to(getattr(torch, dtype)))


def test_dynamic_shapes() -> None:
    """One graph of symbolic sizes gives the results of each size."""
    torch._dynamo.reset()
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    compiled = torch.compile(layer, backend="locum", fullgraph=True, dynamic=True)
    for n in (2, 3, 5):
        x = X(1, n, 4)
        torch.testing.assert_close(compiled(x), layer(x))


def test_recorded_steps() -> None:
    """The steps of a module are those of eager execution, under the paths of its parts."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4))
    x, compiled = X(2, 4), on_u(model)
    with torch.no_grad(), record("1", "2") as recorded:
        result = compiled(x)
    assert isinstance(recorded, Recorder)
    torch.testing.assert_close(recorded["1"]["tanh"], model[0](x).tanh().detach())
    torch.testing.assert_close(recorded["2"]["output"], result)
    assert {*recorded} == {"1", "2"}


def test_simulate() -> None:
    """One call runs a model on U, with the random numbers and the buffers of one eager call."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5))
    other, x = copy.deepcopy(model), X(5, 3)
    torch.manual_seed(1)
    found = simulate(model, x)
    torch.manual_seed(1)
    torch.testing.assert_close(found, other(x))
    torch.testing.assert_close(dict(model.named_buffers()), dict(other.named_buffers()))


def test_layers_of_torch() -> None:
    """U simulates layers that are converted from PyTorch."""
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True).double().eval()
    T, x = from_torch(layer), X(3, 4).double()
    wanted = layer(x[None])[0].detach().numpy()
    for found in (T(x.numpy()), UniversalSimulator.of(T, 3)(T, x.numpy())):
        torch.testing.assert_close(torch.tensor(found), torch.tensor(wanted))
