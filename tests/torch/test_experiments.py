"""Experiments on semantics: each is right, or raises a clear error."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import locum

torch: Any = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from locum.torch import UnsupportedOperationError  # noqa: E402
from tests.torch.comparing import assert_same, check_like_eager, compile_on_u  # noqa: E402

EXECUTORS = ("fast", "dense", "heads")
NAN, INF = float("nan"), float("inf")


# Capture --------------------------------------------------------------------------------------------


def test_another_backend_shows_0_runs() -> None:
    """Such as the one that a library chooses for its static cache."""
    model = nn.Linear(4, 4)
    torch.compile(model, backend="eager", fullgraph=True)(torch.randn(2, 4))
    report = locum.torch.report(model)
    assert (report.calls, report.runs) == (0, 0)
    assert "0 runs" in report.warnings[0]


def test_twelve_shapes_with_dynamic_shapes() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    compiled = compile_on_u(model)
    with torch.no_grad():
        for n in range(1, 13):
            x = torch.randn(n, 4)
            assert_same(model(x), compiled(x))
    report = locum.torch.report(compiled)
    assert (report.calls, report.runs, report.warnings) == (12, 12, [])


def test_loops_and_python_branches_are_captured() -> None:
    def function(x: Any, upwards: bool) -> Any:
        if upwards:
            return x + 1
        for _ in range(x.shape[0]):
            x = x * 2
        return x

    compiled = compile_on_u(function)
    for upwards in (True, False):
        assert_same(function(torch.ones(3), upwards), compiled(torch.ones(3), upwards))
    assert locum.torch.report(compiled).runs == 2


def test_branches_that_depend_on_data_raise() -> None:
    function = compile_on_u(lambda x: x + 1 if x.sum() > 0 else x - 1)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="Data-dependent branching"):
        function(torch.ones(3))
    torch._dynamo.reset()
    broken = compile_on_u(lambda x: x + 1 if x.sum() > 0 else x - 1, fullgraph=False)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="graph break"):
        broken(torch.ones(3))


def test_inference_mode_and_no_grad() -> None:
    model, x = nn.Linear(4, 4), torch.randn(2, 4)
    compiled = compile_on_u(model)
    with torch.inference_mode():
        result = compiled(x)
        assert result.is_inference()
        torch.testing.assert_close(result, model(x))
    with torch.no_grad():
        assert_same(model(x), compiled(x))


def test_vmap_and_grad_inside_a_function() -> None:
    check_like_eager(
        lambda x: torch.vmap(lambda row: torch.tanh(row) * row.sum())(x), torch.randn(3, 2)
    )
    check_like_eager(lambda x: torch.func.grad(lambda row: torch.tanh(row).sum())(x), torch.randn(3))


def test_vmap_of_a_compiled_function_raises() -> None:
    with pytest.raises(torch._dynamo.exc.Unsupported, match="vmap"):
        torch.vmap(compile_on_u(torch.tanh))(torch.randn(3, 2))


def test_hooks() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    model[0].register_forward_hook(lambda module, arguments, result: result * 2)
    model[1].register_forward_pre_hook(lambda module, arguments: (arguments[0] + 1,))
    compiled, x = compile_on_u(model), torch.randn(2, 4)
    assert_same(model(x), compiled(x))
    seen: list[Any] = []
    leaf = x.clone().requires_grad_()
    leaf.register_hook(lambda gradient: seen.append(gradient.clone()))
    compiled(leaf).sum().backward()
    torch.testing.assert_close(seen, [leaf.grad])
    model[0].register_forward_hook(lambda module, arguments, result: result - 1)
    assert_same(model(x), compiled(x))


class Tripled(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return torch.tanh(x)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        return gradient * 3 * x


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_custom_autograd_functions() -> None:
    x = torch.randn(3, requires_grad=True)
    compile_on_u(lambda x: Tripled.apply(x) * 2)(x).sum().backward()
    torch.testing.assert_close(x.grad, 6 * x.detach())


# Numbers --------------------------------------------------------------------------------------------

VALUES = {
    "relu of nan": (functional.relu, [NAN, -1.0, 2.0, -0.0]),
    "division by zero": (lambda x: x / 0, [1.0, -1.0, 0.0, NAN]),
    "division by negative zero": (lambda x: 1 / x, [0.0, -0.0, INF, -INF]),
    "silu of large numbers": (functional.silu, [-200.0, 200.0, -INF, NAN]),
    "a cast that overflows": (lambda x: x.half().float(), [70000.0, 1e-9, -0.0, INF]),
    "float32 in, float64 out": (lambda x: x.double() * 1.1, [1.1, 1e30, -0.0]),
    "tanh of infinities": (torch.tanh, [INF, -INF, NAN]),
    "overflow of a sum": (lambda x: x.sum() * 10, [3e38, 3e38, -3e38]),
}


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("name", VALUES)
def test_ieee_arithmetic(name: str, executor: str) -> None:
    function, numbers = VALUES[name]
    check_like_eager(function, torch.tensor(numbers), executor=executor)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_masked_row_of_attention(executor: str) -> None:
    q, k, v = torch.randn(3, 1, 1, 3, 2)
    mask = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])
    check_like_eager(
        lambda q, k, v, mask: functional.scaled_dot_product_attention(q, k, v, attn_mask=mask),
        *(q, k, v, mask),
        executor=executor,
    )


@pytest.mark.parametrize("executor", EXECUTORS)
def test_attention_with_more_scores_than_entries(executor: str) -> None:
    """The sequence is as long as the largest intermediate result."""
    q, k, v = torch.randn(3, 1, 1, 8, 1)
    check_like_eager(functional.scaled_dot_product_attention, q, k, v, executor=executor)


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed:UserWarning")
def test_half_precision_rounds_once() -> None:
    """The error against float64 is at most 1.1 times the error of eager execution."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64))
    x = torch.randn(128, 64)
    for dtype in (torch.bfloat16, torch.float16):
        half = copy.deepcopy(model).to(dtype)
        exact = copy.deepcopy(half).double()(x.to(dtype).double())
        with torch.no_grad():
            errors = [
                (function(x.to(dtype)).double() - exact).square().mean().sqrt().item()
                for function in (half, compile_on_u(half))
            ]
        assert errors[1] <= 1.1 * errors[0]


# Layouts --------------------------------------------------------------------------------------------


def test_channels_last() -> None:
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    compiled = check_like_eager(lambda x: torch.tanh(x) * 2, x)
    result = compiled(x)
    torch.testing.assert_close(
        result.as_strided((4,), (1,)), (torch.tanh(x) * 2).as_strided((4,), (1,))
    )


@pytest.mark.slow
def test_small_experiments() -> None:
    x = torch.randn(3, 4)
    check_like_eager(lambda x, n: x * n, x, torch.arange(4))
    check_like_eager(lambda x: torch.add(x, x, alpha=0.5) - torch.sub(x, 1, alpha=2), x)
    check_like_eager(lambda x: (x[:, :0] * 2, x[:0].sum(0)), x)
    check_like_eager(lambda x: x[1].mul_(2) + 1, x)
    check_like_eager(lambda x: x.t()[1:].add_(1).sum(), x)


def test_the_gradient_of_an_embedding() -> None:
    weight, ids = torch.randn(5, 3, requires_grad=True), torch.tensor([[1, 4], [1, 0]])
    compiled = compile_on_u(lambda ids, weight: functional.embedding(ids, weight) * 2)
    assert_same(functional.embedding(ids, weight) * 2, compiled(ids, weight))
    compiled(ids, weight).sum().backward()
    expected = torch.autograd.grad((functional.embedding(ids, weight) * 2).sum(), weight)[0]
    torch.testing.assert_close(weight.grad, expected)


# Modules --------------------------------------------------------------------------------------------


def test_batch_norm_in_training_runs_on_u() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    other = copy.deepcopy(model)
    compiled, x = compile_on_u(other), torch.randn(5, 4)
    for _ in range(2):
        assert_same(model(x), compiled(x))
    assert_same(list(model.buffers()), list(other.buffers()))
    model(x).sum().backward()
    compiled(x).sum().backward()
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)
    report = locum.torch.report(compiled)
    assert any("batch_norm" in name for name in report.on_u["1"])
    assert all("aten.add.Tensor" == name for name in report.on_host.get("1", {}))  # calls are counted


def test_cosine_of_a_linear_module_runs_on_u() -> None:
    model = nn.Linear(4, 3)
    compiled = check_like_eager(lambda x: torch.cos(model(x)), torch.randn(2, 4))
    report = locum.torch.report(compiled)
    assert any("aten.cos.default" in module for module in report.on_u.values())
    assert report.on_host == {}


@pytest.mark.slow
def test_a_training_graph_with_many_outputs() -> None:
    """Two encoder layers: one program computes all results of the forward graph in one run."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).double()
    compiled, x = compile_on_u(model), torch.randn(2, 5, 8, dtype=torch.float64)
    parameters = list(model.parameters())
    expected = torch.autograd.grad(model(x).square().sum(), parameters)
    found = torch.autograd.grad(compiled(x).square().sum(), parameters)
    torch.testing.assert_close(found, expected)
    report = locum.torch.report(compiled)
    assert report.runs_by_kind == {"inference": 0, "forward": 1, "backward": 1}
    assert report.share == 1
    forward = report.programs[0].program
    assert forward is not None
    assert len(forward.roots) > 20


def test_attention_under_autocast_has_eager_types_and_gradients() -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return functional.scaled_dot_product_attention(q, k @ torch.eye(4), v)

    inputs = [torch.randn(1, 2, 3, 4, requires_grad=True) for _ in range(3)]
    compiled = compile_on_u(function)
    results = [f(*inputs) for f in (function, compiled)]
    assert results[0].dtype == results[1].dtype
    gradients = [torch.autograd.grad(result.float().sum(), inputs) for result in results]
    torch.testing.assert_close(results[0], results[1], rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=5e-2, atol=5e-2)


def test_exported_programs() -> None:
    model, x = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), torch.randn(2, 4)
    exported = torch.export.export(model, (x,)).module()
    compiled = compile_on_u(exported)
    torch.testing.assert_close(compiled(x), model(x))
    assert locum.torch.report(compiled).runs == 1


def test_tensor_subclasses_of_strided_tensors() -> None:
    """AOT autograd passes the tensors inside a wrapper subclass to the backend."""
    two = pytest.importorskip("torch.testing._internal.two_tensor").TwoTensor
    a, b = torch.randn(3), torch.randn(3)
    result = compile_on_u(lambda x: x * 2 + 1)(two(a, b))
    assert isinstance(result, two)
    torch.testing.assert_close((result.a, result.b), (a * 2 + 1, b * 2 + 1))


# What is not supported ------------------------------------------------------------------------------


@torch.library.custom_op("locum_tests::twice", mutates_args=())  # type: ignore[untyped-decorator]
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake  # type: ignore[untyped-decorator]
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def branch(x: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


def flexible(q: Any) -> Any:
    return torch.nn.attention.flex_attention.flex_attention(q, q, q)


UNSUPPORTED: dict[str, tuple[Any, Any, str]] = {
    "cond": (branch, lambda: torch.ones(3), "cond: expected .*got a higher-order operation"),
    "flex_attention": (flexible, lambda: torch.ones(1, 1, 16, 8), "flex_attention: expected"),
    "custom operation": (lambda x: twice(x) + 1, lambda: torch.ones(3), "twice.default: .* a custom"),
    "complex numbers": (
        lambda x: torch.view_as_real(torch.fft.fft(x)),
        lambda: torch.ones(3),
        "aten._fft_r2c.default: expected numbers of type .* got complex64",
    ),
    "complex input": (
        lambda x: x.real * 2,
        lambda: torch.ones(3, dtype=torch.complex64),
        "aten.view_as_real.default: expected numbers of type .* got complex64",
    ),
    "float8": (
        lambda x: x.float() + 1,
        lambda: torch.ones(3).to(torch.float8_e4m3fn),
        "aten._to_copy.default: expected numbers of type .* got float8_e4m3fn",
    ),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_operations_raise(name: str) -> None:
    function, argument, message = UNSUPPORTED[name]
    compiled = compile_on_u(function)
    with pytest.raises(UnsupportedOperationError, match=message) as caught:
        compiled(argument())
    assert "File " in str(caught.value)
    assert locum.torch.report(compiled).runs == 0


def test_triton_kernels_raise() -> None:
    """Dynamo captures a Triton kernel as a higher-order operation, which has no construction."""
    from locum.torch.table import TABLE

    wrapper = pytest.importorskip("torch._higher_order_ops.triton_kernel_wrap")
    assert isinstance(wrapper.triton_kernel_wrapper_functional, torch._ops.HigherOrderOperator)
    assert not any(isinstance(target, torch._ops.HigherOrderOperator) for target in TABLE)


@pytest.mark.filterwarnings("ignore:.*deprecated:UserWarning", "ignore:Sparse:UserWarning")
@pytest.mark.filterwarnings("ignore:.*prototype stage:UserWarning")
def test_tensors_without_strides_raise() -> None:
    dense = torch.eye(3)
    for tensor in (dense.to_sparse(), dense.to_sparse_csr()):
        with pytest.raises(torch._dynamo.exc.Unsupported, match="sparse"):
            compile_on_u(lambda x, y: x @ y)(tensor, dense)
    quantised = torch.quantize_per_tensor(dense, 0.1, 0, torch.qint8)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="quantized"):
        compile_on_u(lambda x: x.dequantize() + 1)(quantised)
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="expected strided tensors"):
        compile_on_u(lambda x: x + 1)(nested)


def test_quantised_weights_as_integers() -> None:
    """Weights that are stored as int8 with a scale are ordinary tensors."""
    weight, scale = torch.randint(-100, 100, (3, 4), dtype=torch.int8), torch.rand(3, 1)
    for host in ("allowed", "forbidden"):
        torch._dynamo.reset()
        check_like_eager(
            lambda x, w, s: x @ (w.float() * s).t(), torch.randn(2, 4), weight, scale, host=host
        )


def test_shapes_that_depend_on_data_raise() -> None:
    compiled = compile_on_u(lambda x: torch.nonzero(x) * 2)
    with (
        torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True),
        pytest.raises(UnsupportedOperationError, match=r"aten\.nonzero\.default"),
    ):
        compiled(torch.ones(3))
