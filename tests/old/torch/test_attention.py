"""Scaled dot-product attention on U: masks, causal, grouped heads, masked rows, gradients."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention  # noqa: E402

from locum.errors import LocumError  # noqa: E402
from locum.torch.program import Program  # noqa: E402
from tests.old.torch.opinfo import capture, compare_run, difference, exact_values  # noqa: E402

attend: Any = scaled_dot_product_attention
EXECUTORS = ("fast", "dense", "heads")


def tensors(q: int = 3, k: int = 4, heads: int = 2, key_heads: int = 0, dtype: Any = None) -> list[Any]:
    """Return queries, keys and values of a small attention."""
    generator = torch.Generator().manual_seed(q * 100 + k * 10 + heads)
    sizes = [(1, heads, q, 2), *[(1, key_heads or heads, k, 2)] * 2]
    parts = [torch.randn(size, generator=generator, dtype=torch.float64) for size in sizes]
    return [part.to(dtype or torch.float32).requires_grad_() for part in parts]


def check(function: Any, given: list[Any], executor: str, gradients: bool = True) -> set[str]:
    """Compare a function with eager execution; return the operations that ran on U."""
    expected, found, overloads = compare_run(function, given, executor, "allowed", gradients)
    problem = difference(expected, found)
    if problem:
        problem = difference(expected, found, exact_values(function, given, gradients))
    assert not problem
    return overloads


def mask_of(kind: str, q: int, k: int) -> Any:
    """Return a mask whose second row allows no key, if the kind says so."""
    mask = torch.ones(q, k, dtype=torch.bool).tril(1)
    if "empty" in kind:
        mask[1] = False
    if "bool" in kind:
        return mask
    return torch.where(mask, torch.linspace(-1, 1, q * k).reshape(q, k), -torch.inf)


KINDS = ("none", "causal", "bool", "float", "bool empty", "float empty")
CASES = [*((kind, "fast") for kind in KINDS), ("causal", "dense"), ("float empty", "dense")]


@pytest.mark.parametrize(("kind", "executor"), [*CASES, ("causal", "heads"), ("bool empty", "heads")])
def test_masks_and_gradients(kind: str, executor: str) -> None:
    given = [*tensors(), *([] if kind in ("none", "causal") else [mask_of(kind, 3, 4)])]

    def function(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
        return attend(q, k, v, attn_mask=mask, is_causal=kind == "causal")

    overloads = check(function, given, executor)
    assert "aten._scaled_dot_product_flash_attention_for_cpu.default" in overloads
    assert "aten._scaled_dot_product_flash_attention_for_cpu_backward.default" in overloads


@pytest.mark.parametrize("executor", EXECUTORS)
def test_query_without_keys_gives_zeros(executor: str) -> None:
    given = [part.detach() for part in tensors()]
    given.append(mask_of("bool empty", 3, 4))
    (found,) = program_of(lambda *x: attend(*x[:3], attn_mask=x[3]), given, executor)(*given)
    assert (found[:, :, 1] == 0).all()
    assert (found[:, :, 0] != 0).all()


def program_of(function: Any, given: list[Any], executor: str = "fast") -> Program:
    """Return the program of a function on tensors."""
    return Program.of(capture(function, given), executor, "allowed")


@pytest.mark.parametrize(("q", "k"), [(1, 4), (4, 1), (4, 2)])
def test_causal_with_unequal_lengths(q: int, k: int) -> None:
    check(causal, tensors(q, k), "fast")
    check(causal, tensors(q, k), "heads", gradients=False)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_grouped_heads_and_scale(executor: str) -> None:
    given = tensors(heads=4, key_heads=2)
    check(lambda *x: attend(*x, scale=0.3, enable_gqa=True), given, executor, gradients=False)


def test_gradients_of_grouped_heads() -> None:
    given = tensors(heads=4, key_heads=2)
    outer = torch.linspace(-1, 1, 24).reshape(1, 4, 3, 2)
    operation = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        expected = torch.autograd.grad(attend(*given, enable_gqa=True), given, outer)
    given = [part.detach() for part in given]
    result, sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*given)
    given = [outer, *given, result, sums]
    graph = capture(lambda *x: operation(*x, 0.0, False), given)
    found = Program.of(graph, "fast", "allowed")(*given)
    assert not difference([part.contiguous() for part in expected], [p.contiguous() for p in found])


def test_nan_and_infinite_queries() -> None:
    given = [part.detach() for part in tensors()]
    given[0][0, 0, 0, 0], given[0][0, 0, 1, 0] = torch.nan, torch.inf
    # The fused kernel of some processors gives 0 for a query of NaN; the formula gives NaN.
    with sdpa_kernel(SDPBackend.MATH):
        formula = attend(*given)
    for executor in EXECUTORS:
        expected, found, _ = compare_run(attend, given, executor, "allowed", gradients=False)
        assert not difference([formula], found) or not difference(expected, found)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_as_exact_as_eager(dtype: Any) -> None:
    given = tensors(32, 32, dtype=dtype)
    expected, found, _ = compare_run(causal, given, "fast", "allowed", gradients=True)
    exact = exact_values(causal, given, gradients=True)
    for eager, ours, reference in zip(expected, found, exact, strict=True):
        assert ours.dtype == eager.dtype
        assert (ours - reference).norm() <= 1.1 * (eager - reference).norm()


def causal(q: Any, k: Any, v: Any) -> Any:
    """Return causal attention."""
    return attend(q, k, v, is_causal=True)


def test_single_precision_is_as_exact_as_eager() -> None:
    given = [part.detach() for part in tensors(64, 64, heads=4)]
    exact = attend(*(part.double() for part in given))
    (found,) = program_of(attend, given)(*given)
    ours, eager = ((part.double() - exact).norm() for part in (found, attend(*given)))
    assert ours <= 1.1 * eager


def test_dropout_is_rejected() -> None:
    given = [part.detach() for part in tensors()]
    operation = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    graph = capture(lambda *x: operation(*x)[0], given)
    node = next(n for n in graph.graph.nodes if n.op == "call_function")
    node.args = (*node.args[:3], 0.1)
    with pytest.raises(LocumError, match=r"expected dropout_p=0\.0, got 0\.1"):
        Program.of(graph, "fast", "allowed")


@pytest.mark.parametrize("name", ["forward", "backward"])
def test_attention_is_planned(name: str) -> None:
    given = tensors(heads=4, key_heads=2)
    mask = mask_of("float", 3, 4)
    operation = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    if name == "backward":
        result, sums = operation(*given, attn_mask=mask)
        given = [torch.ones_like(result), *given, result, sums]
        operation = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
        function = lambda *x: operation(*x[:6], 0.0, False, attn_mask=x[6])  # noqa: E731
    else:
        function = lambda *x: operation(*x[:3], attn_mask=x[3])  # noqa: E731
    given = [part.detach() for part in (*given, mask)]
    program = program_of(function, given)
    program(*given)
    assert program.plan is not None
    assert not program.plan.opaque


ATEN = torch.ops.aten
#: The operations of CUDA: forward, backward, and the shape of log Σ exp.
CUDA = {
    "flash": (
        lambda q, k, v, bias: ATEN._scaled_dot_product_flash_attention(q, k, v)[:2],
        lambda g, q, k, v, o, l, s, bias: ATEN._scaled_dot_product_flash_attention_backward(
            g, q, k, v, o, l, None, None, 3, 4, 0.0, False, s, s
        ),
        (1, 2, 3),
    ),
    "efficient": (
        lambda q, k, v, bias: ATEN._scaled_dot_product_efficient_attention(q, k, v, bias, True)[:2],
        lambda g, q, k, v, o, l, s, bias: ATEN._scaled_dot_product_efficient_attention_backward(
            g, q, k, v, bias, o, l, s, s, 0.0, [True] * 4
        ),
        (1, 2, 32),
    ),
    "cudnn": (
        lambda q, k, v, bias: ATEN._scaled_dot_product_cudnn_attention(q, k, v, bias, True)[:2],
        lambda g, q, k, v, o, l, s, bias: ATEN._scaled_dot_product_cudnn_attention_backward(
            g, q, k, v, o, l, s, s, bias, None, None, 3, 4, 0.0, False
        ),
        (1, 2, 3, 1),
    ),
}


@pytest.mark.parametrize("name", CUDA)
def test_operations_of_cuda(name: str) -> None:
    """Their shapes are known without a GPU; their values are those of the mathematical definition."""
    forward, backward, shape = CUDA[name]
    given = [part.detach().repeat(1, 1, 1, 4).requires_grad_() for part in tensors()]
    bias = torch.linspace(-1, 1, 12).reshape(1, 1, 3, 4).expand(1, 2, 3, 4)
    bias = bias.clone().requires_grad_(name == "efficient")
    mask = None if name == "flash" else bias
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        expected = attend(*given, attn_mask=mask)
    scores = given[0] @ given[1].mT / 8**0.5 + (0 if mask is None else mask)
    outer = torch.linspace(-1, 1, 48).reshape(1, 2, 3, 8)
    inputs = [*given, *([bias] if name == "efficient" else [])]
    gradients = torch.autograd.grad(expected, inputs, outer)
    parts = [part.detach() for part in (*given, bias)]
    found, sums = program_of(forward, parts)(*parts)
    assert sums.shape == shape
    assert (sums[:, :, 3:] == torch.inf).all()
    torch.testing.assert_close(found, expected.detach())
    torch.testing.assert_close(sums[:, :, :3].reshape(1, 2, 3), scores.logsumexp(-1).detach())
    seed = torch.zeros((), dtype=torch.int64)
    parts = [outer, *parts[:3], found, sums, seed, bias.detach()]
    results = program_of(backward, parts)(*parts)
    for gradient, result in zip(gradients, results, strict=True):
        torch.testing.assert_close(result, gradient)
