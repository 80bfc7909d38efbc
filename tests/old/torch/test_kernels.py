"""Plans use PyTorch's kernels where the steps compute the same, and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from locum.execution import fast  # noqa: E402
from locum.execution.fast import plan_cache  # noqa: E402
from locum.torch.program import Program  # noqa: E402
from tests.old.torch.captured_function import capture  # noqa: E402

ATEN = torch.ops.aten
SDPA = torch.nn.functional.scaled_dot_product_attention
DTYPES = ["float32", "float64", "bfloat16", "float16"]


def numbers(*shape: int) -> Any:
    """Return numbers that are the same in each run."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


Q, K, V = numbers(2, 6, 5, 4), numbers(2, 3, 7, 4), numbers(2, 3, 7, 4)
X, WEIGHT, BIAS = numbers(3, 4), numbers(4, 5), numbers(5)
MASK = numbers(2, 1, 5, 7)
HIDDEN = torch.where(numbers(2, 1, 5, 7) > 0, 0.0, -math.inf)
HIDDEN[0, 0, 1] = -math.inf  # a row without a key


def grouped(**options: Any) -> Callable[..., Any]:
    """Return attention in which heads share keys."""
    return lambda q, k, v, *mask: SDPA(q, k, v, *mask, enable_gqa=True, **options)


KERNELS: dict[str, tuple[str, Callable[..., Any], list[Any]]] = {
    "attention": ("attention", grouped(), [Q, K, V]),
    "causal attention": ("attention", grouped(is_causal=True), [Q, K, V]),
    "masked attention": ("attention", grouped(), [Q, K, V, MASK]),
    "attention of no key": ("attention", grouped(scale=0.3), [Q, K, V, HIDDEN]),
    "mask of keys": ("attention", grouped(), [Q, K, V, MASK[:, :, :1]]),
    "mask of all heads": ("attention", grouped(), [Q, K, V, numbers(2, 6, 5, 7)]),
    "softmax": ("softmax", lambda x: torch.softmax(x, -1), [X]),
    "biased product": ("biased_product", lambda x, w, b: ATEN.addmm(b, x, w), [X, WEIGHT, BIAS]),
    "GELU": ("gelu", ATEN.gelu, [X]),
    "GELU with tanh": ("gelu", lambda x: ATEN.gelu(x, approximate="tanh"), [X]),
    "SiLU": ("silu", ATEN.silu, [X]),
    "layer norm": (
        "layer_norm",
        lambda x, w, b: ATEN.native_layer_norm(x, [4], w, b, 1e-5)[0],
        [X, WEIGHT[:, 0].clone(), WEIGHT[:, 1].clone()],
    ),
    "rows": ("take_rows", ATEN.embedding, [X, torch.tensor([[2, 0], [1, 1]])]),
    "joined": ("join", lambda x, y: torch.cat([x, y], 1), [X, numbers(3, 2)]),
    "stacked": ("join", lambda x, y: torch.stack([x, y], 1), [X, X + 1]),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KERNELS)
def test_kernel(name: str, dtype: str) -> None:
    op, function, given = KERNELS[name]
    given = [x.to(getattr(torch, dtype)) if x.is_floating_point() else x for x in given]
    program = Program.of(capture(function, given), "fast", "forbidden")
    (found, *_) = program(*given)
    assert program.plan is not None
    assert sum(step.op == op for step in program.plan.steps) == 1
    assert not program.plan.counts["matmul"] or op in ("attention", "biased_product")
    error = 2e-2 if dtype in DTYPES[2:] else 1e-5
    torch.testing.assert_close(found, function(*given), rtol=error, atol=error, equal_nan=True)


SPECIAL = torch.tensor([[0.0, -0.0, 1.0, -1.0], [math.inf, -math.inf, 2.0, 3.0], [math.nan, 1, 2, 3]])


@pytest.mark.parametrize("name", ["softmax", "GELU", "GELU with tanh", "SiLU"])
def test_kernel_of_special_numbers(name: str) -> None:
    _, function, _ = KERNELS[name]
    (found,) = Program.of(capture(function, [SPECIAL]), "fast", "forbidden")(SPECIAL)
    torch.testing.assert_close(found, function(SPECIAL), equal_nan=True)


NEAR_MISSES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "GELU with another constant": (lambda x: x * 0.5 * (1 + torch.erf(x * 0.7)), [X]),
    "exp without the sign": (lambda x: x / (1 + torch.exp(x)), [X]),
    "sums of columns": (lambda x: torch.exp(x - x.amax(1, True)) / torch.exp(x).sum(0), [X]),
    "softmax of columns": (lambda x: torch.softmax(x, 0), [X]),
    "unbiased variance": (
        lambda x: (x - x.mean(1, True)) / (x.var(1, keepdim=True) + 1e-5).sqrt(),
        [X],
    ),
    "bias of rows": (lambda x, w: x @ w + numbers(3, 1), [X, WEIGHT]),
    "masked after the softmax": (lambda q, m: torch.softmax(q @ q.mT, -1) * m @ q, [Q, Q @ Q.mT]),
    "mask times scores": (lambda q, m: torch.softmax(q @ q.mT * m, -1) @ q, [Q, Q @ Q.mT]),
    "keys backwards": (lambda q: torch.softmax(q @ q.mT, -1).flip(-1) @ q, [Q]),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_miss(name: str) -> None:
    function, given = NEAR_MISSES[name]
    (found,) = Program.of(capture(function, given), "fast", "forbidden")(*given)
    torch.testing.assert_close(found, function(*given), rtol=1e-5, atol=1e-5)


def test_equal_layers_are_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    for layers in (1, 5):
        fast.forget_plans()
        made: list[Any] = []
        original = plan_cache._steps

        def count(*arguments: Any, made: Any = made, original: Any = original) -> Any:
            made.append(arguments)
            return original(*arguments)

        monkeypatch.setattr(plan_cache, "_steps", count)
        block = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        model = torch.nn.Sequential(*(block for _ in range(layers))).eval()
        torch._dynamo.reset()
        with torch.no_grad():
            torch.compile(model, backend="locum", fullgraph=True)(numbers(2, 3, 8))
        monkeypatch.setattr(plan_cache, "_steps", original)
        counts.append(len(made))
    assert counts[0] == counts[1] > 0


def test_attention_over_many_tokens_holds_no_scores() -> None:
    x = torch.empty(1, 8, 8192, 16)
    graph = capture(lambda x: SDPA(x, x, x, is_causal=True), [x])
    plan = Program.of(graph, "fast", "forbidden").make_plan()
    assert max(step.size for step in plan.steps) <= x.numel()
