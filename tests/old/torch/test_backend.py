"""The backend: options, the order, inputs, outputs, dynamic shapes and errors."""

from __future__ import annotations

import importlib.metadata
import threading
import tomllib
from pathlib import Path
from typing import Any

import pytest

import locum
from locum.graph import postorder

torch: Any = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from locum.torch import UnsupportedOperationError  # noqa: E402
from locum.torch.backend import backend, decompositions  # noqa: E402
from locum.torch.compiled_graph import MOST_PROGRAMS  # noqa: E402
from locum.torch.host_operations import RANDOM, TABLE_OPERATIONS  # noqa: E402
from locum.torch.numbers import require  # noqa: E402
from locum.torch.program import Program  # noqa: E402
from locum.torch.table import TABLE, Row  # noqa: E402
from tests.torch.comparing import assert_same, check_like_eager, compile_on_u  # noqa: E402

PROJECT = Path(__file__).parents[3] / "pyproject.toml"


def make_network() -> Any:
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))


# Registration and options ---------------------------------------------------------------------------


def test_the_entry_point_names_the_backend() -> None:
    points = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["entry-points"]
    reference = points["torch_dynamo_backends"]["locum"]
    point = importlib.metadata.EntryPoint("locum", reference, "torch_dynamo_backends")
    assert point.load() is backend


def test_the_installed_package_registers_the_backend() -> None:
    """If this fails in a development environment, install the package again: ``make install``."""
    assert "locum" in torch._dynamo.list_backends()
    network, x = make_network(), torch.randn(3, 4)
    assert_same(network(x), torch.compile(network, backend="locum", fullgraph=True)(x))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"options": {"exector": "fast"}},
            "options: expected executor, host, cuda_graphs, got 'exector'; try executor",
        ),
        (
            {"options": {"executor": "quick"}},
            "executor: expected one of fast, dense, heads",
        ),
        ({"options": {"host": True}}, "host: expected one of allowed, forbidden, got True"),
        ({"mode": "reduce-overhead"}, 'mode: expected none for the backend "locum"'),
    ],
)
def test_unknown_options_raise(settings: dict[str, Any], message: str) -> None:
    compiled = torch.compile(lambda x: x + 1, backend=backend, **settings)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as caught:
        compiled(torch.ones(2))
    assert isinstance(caught.value.inner_exception, locum.InputError)
    assert message in str(caught.value)


@pytest.mark.parametrize("executor", ["fast", "dense", "heads"])
def test_every_executor_runs_forward_and_backward(executor: str) -> None:
    network, x = make_network(), torch.randn(2, 4)
    compiled = compile_on_u(network, executor=executor)
    assert_same(network(x), compiled(x))
    expected = torch.autograd.grad(network(x).sum(), list(network.parameters()))
    assert_same(expected, torch.autograd.grad(compiled(x).sum(), list(network.parameters())))
    assert locum.torch.report(compiled).runs_by_kind == {"inference": 0, "forward": 2, "backward": 1}


def test_no_global_setting_of_dynamo_changes() -> None:
    before = torch._dynamo.config.get_config_copy()
    compile_on_u(make_network())(torch.ones(1, 4))
    assert torch._dynamo.config.get_config_copy() == before


def test_random_operations_are_not_decomposed() -> None:
    decomposed = {getattr(overload, "overloadpacket", None) for overload in decompositions()}
    assert not decomposed & RANDOM
    assert not set(decompositions()) & set(TABLE)


def test_seeded_operations_are_random_or_not_on_the_host() -> None:
    """No operation that PyTorch tags as random is on the list for tables."""
    for name in TABLE_OPERATIONS:
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads():
            assert torch.Tag.nondeterministic_seeded not in getattr(packet, overload).tags


# The order ------------------------------------------------------------------------------------------


def test_other_weights_need_no_other_program() -> None:
    network, other, x = make_network(), make_network(), torch.randn(3, 4)
    compiled = compile_on_u(network)
    compiled(x)
    network.load_state_dict(other.state_dict())
    assert_same(other(x), compiled(x))
    report = locum.torch.report(compiled)
    assert (len(report.graphs), len(report.programs), report.plans, report.runs) == (1, 1, 1, 2)


def test_weights_are_not_in_the_program() -> None:
    x = torch.randn(3, 4)
    roots = []
    for _ in range(2):
        torch._dynamo.reset()
        compiled = compile_on_u(make_network())
        compiled(x)
        (program,) = locum.torch.report(compiled).programs
        assert program.program is not None
        roots.append(program.program.roots)
    assert roots[0] == roots[1]


def test_tensor_constants_are_tokens() -> None:
    compiled = check_like_eager(lambda x: x * torch.tensor([1.5, 2.5]), torch.ones(2))
    (program,) = locum.torch.report(compiled).programs
    assert program.usage.tokens == 4
    assert program.program is not None
    values = {node.value for node in postorder(*program.program.roots) if node.op == "constant"}
    assert not values & {1.5, 2.5}


# Inputs ---------------------------------------------------------------------------------------------

BASE = torch.arange(24.0)
INPUTS = {
    "contiguous": BASE.reshape(4, 6),
    "transposed": BASE.reshape(4, 6).t(),
    "sliced": BASE.reshape(4, 6)[1:, ::2],
    "expanded": BASE[:6].expand(4, 6),
    "overlapping": BASE.as_strided((4, 3), (2, 1)),
    "no dimension": BASE[3],
    "one entry": BASE[3:4],
    "empty": BASE.reshape(4, 6)[:0],
    "empty dimension": BASE.reshape(4, 6)[:, 3:3],
    "channels last": BASE.reshape(1, 2, 3, 4).to(memory_format=torch.channels_last),
    "float64": BASE.double(),
    "bfloat16": BASE.bfloat16(),
    "float16": BASE.half(),
}


@pytest.mark.parametrize("name", INPUTS)
def test_inputs_of_any_layout(name: str) -> None:
    x = INPUTS[name]
    check_like_eager(lambda x: (x * 2 + 1, torch.tanh(x), x.sum()), x)


def test_inputs_are_not_copied() -> None:
    graph = torch.fx.experimental.proxy_tensor.make_fx(lambda x: (x + 1,), tracing_mode="fake")
    for x in (INPUTS["transposed"], INPUTS["expanded"], INPUTS["overlapping"]):
        (feed,) = Program.of(graph(x)).feeds
        assert feed.entries(x).data_ptr() == x.data_ptr()


def test_a_call_with_other_strides_than_the_graph_has() -> None:
    graph = torch.fx.experimental.proxy_tensor.make_fx(lambda x: (x * 2,), tracing_mode="fake")
    x = torch.randn(3, 4)
    (result,) = Program.of(graph(x))(x.t().contiguous().t())
    torch.testing.assert_close(result, x * 2)


def test_inputs_of_several_types() -> None:
    check_like_eager(
        lambda a, b, c, d: (a * b, a + c, d * a, b.double() * a),
        torch.randn(3),
        torch.randn(3).bfloat16(),
        torch.randn(3).double(),
        torch.tensor([1, 2, 3]),
    )


def test_aliased_and_mutated_inputs() -> None:
    def function(x: Any, y: Any) -> Any:
        return x.add_(1), y + 1

    first, second = torch.arange(5.0), torch.arange(5.0)
    expected = function(first[:3], first[1:4])
    assert_same([expected, first], [compile_on_u(function)(second[:3], second[1:4]), second])


def test_as_strided_reads_the_memory_around_an_input() -> None:
    def function(x: Any) -> Any:
        return x.as_strided((2, 2), (1, 4), 1) + x[0], x.as_strided((2,), (2,)) * 2

    storage = torch.randn(10)
    compiled = compile_on_u(function)
    for first in (2, 3):  # Dynamo does not guard where an input begins in its storage
        x = storage[first : first + 4]
        assert_same(function(x), compiled(x))
    assert len(locum.torch.report(compiled).graphs) == 1


@pytest.mark.parametrize("host", ["allowed", "forbidden"])
def test_copies_of_integers_are_exact(host: str) -> None:
    """A copy of the first input is read from the input, not from all tokens in one type."""
    check_like_eager(
        lambda x, y: (x.clone(), y + 1), torch.tensor([2**25 + 1]), torch.ones(2), host=host
    )


# Outputs --------------------------------------------------------------------------------------------


def share(x: Any) -> Any:
    y = x + 1
    return y, y.t(), x + 1, x, x.t(), y[0], y[1:, ::2], (y, y)


def mutate(x: Any) -> Any:
    x.mul_(2)
    x[0].add_(1)
    return x.sum()


OUTPUTS = {
    "views and equal results": share,
    "mutated input": mutate,
    "returned input": lambda x: x,
    "detached": lambda x: (x * 2, (x * 2).detach()),
    "expanded result": lambda x: (x.sum(0).expand(5, 4), x.sum(0)),
    "empty results": lambda x: (x[:0] * 2, x.new_empty(0, 3), x[:, 2:2].sum(0)),
    "constants": lambda x: (torch.ones(3) * 2, torch.tensor([1.0, 2.0]), 5, None, x + 1),
    "float64 of float32": lambda x: x.double() * 1.1,
    "a view of a copy": lambda x: (x.clone().t(), x.t().clone()),
    "storage of a result": lambda x: (x * 2).as_strided((2, 3), (2, 3), 1),
    "transposed result": lambda x: (x.t() * 2, x.t().contiguous() * 2),
    "integers": lambda x: (torch.arange(4) * 2, torch.arange(4) + x[0]),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_are_those_of_eager_execution(name: str) -> None:
    check_like_eager(OUTPUTS[name], torch.randn(3, 4))
    if name not in ("mutated input",):
        check_like_eager(OUTPUTS[name], torch.randn(3, 4, requires_grad=True))


def test_writing_to_an_output_reaches_its_views() -> None:
    y, view, other = compile_on_u(share)(torch.zeros(2, 2))[:3]
    y.zero_()
    assert view.tolist() == [[0, 0], [0, 0]]
    assert other.tolist() == [[1, 1], [1, 1]]


def test_results_do_not_share_memory_with_the_program() -> None:
    compiled = compile_on_u(lambda x: (x.clone(), x * 1, torch.ones(2)))
    x = torch.ones(2)
    for result in compiled(x):
        result.zero_()
    assert [result.tolist() for result in compiled(x)] == [[1, 1]] * 3


def test_one_run_computes_all_outputs() -> None:
    compiled = compile_on_u(lambda x: tuple(x * n for n in range(20)))
    assert_same(tuple(torch.ones(2) * n for n in range(20)), compiled(torch.ones(2)))
    report = locum.torch.report(compiled)
    assert (report.runs, report.plans) == (1, 1)


def test_buffers_are_mutated() -> None:
    class Counting(nn.Module):
        total: Any
        calls: Any

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(3))
            self.register_buffer("calls", torch.tensor(0))

        def forward(self, x: Any) -> Any:
            self.total.add_(x)
            self.calls += 1
            return self.total * 2

    module = Counting()
    compiled = compile_on_u(module)
    for _ in range(3):
        result = compiled(torch.ones(3))
    assert (module.total.tolist(), module.calls.item(), result.tolist()) == ([3] * 3, 3, [6] * 3)


def test_integers_beyond_float64_raise() -> None:
    compiled = compile_on_u(lambda x: x * x, host="forbidden", executor="dense")
    with pytest.raises(locum.LocumError, match="2⁵³"):
        compiled(torch.tensor([2**40]))


# Dynamic shapes -------------------------------------------------------------------------------------


def shapes(x: Any) -> Any:
    return (x.view(-1) * x.shape[0]).sum() / x.shape[1], x[: x.shape[0] // 2] + torch.arange(x.shape[1])


@pytest.mark.parametrize("dynamic", [None, True])
def test_a_program_for_each_shape(dynamic: bool | None) -> None:
    compiled = compile_on_u(shapes, dynamic=dynamic)
    for n in [2, 3, 5, 3, 7, 2]:
        x = torch.randn(n, n + 1)
        assert_same(shapes(x), compiled(x))
    report = locum.torch.report(compiled)
    assert (report.calls, report.runs) == (6, 6)
    assert len(report.graphs) < 4


def test_programs_of_shapes_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locum.torch.compiled_graph.MOST_PROGRAMS", 2)
    assert MOST_PROGRAMS > 2
    compiled = compile_on_u(lambda x: x * 2, dynamic=True)
    for n in (2, 3, 5, 9, 2):
        assert compiled(torch.ones(n)).tolist() == [2] * n
    report = locum.torch.report(compiled)
    assert report.runs == 5
    assert sum(program.program is not None for program in report.programs) == 2


def test_python_numbers_that_change() -> None:
    compiled = compile_on_u(lambda x, s: x * s)
    x = torch.randn(3)
    for s in (1.5, 2.5, 3.5, 2, 3, 4):
        assert_same(x * s, compiled(x, s))
    assert len(locum.torch.report(compiled).graphs) <= 4


def test_dynamic_shapes_in_training() -> None:
    network = make_network()
    compiled = compile_on_u(network, dynamic=True)
    for n in (2, 3, 5):
        x = torch.randn(n, 4)
        expected = torch.autograd.grad(network(x).sum(), list(network.parameters()))
        assert_same(expected, torch.autograd.grad(compiled(x).sum(), list(network.parameters())))


# Errors ---------------------------------------------------------------------------------------------


class Inner(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.special.bessel_j0(x)


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Identity(), Inner()])

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


def test_an_error_names_operation_module_and_line() -> None:
    compiled = compile_on_u(Outer())
    for _ in range(2):  # the second call is not run elsewhere
        with pytest.raises(UnsupportedOperationError) as caught:
            compiled(torch.ones(2))
        message = str(caught.value)
        assert message.startswith(
            "aten.special_bessel_j0.default: expected an operation that U computes"
        )
        assert "in module layers.1" in message
        assert "test_backend.py" in message
        assert "in forward" in message
    assert locum.torch.report(compiled).runs == 0


def test_modules_without_the_operation_can_be_compiled() -> None:
    """What the error suggests."""
    model = nn.Sequential(nn.Linear(2, 2), Inner())
    x = torch.randn(3, 2)
    expected = model(x)
    model[0] = compile_on_u(model[0])
    assert_same(expected, model(x))
    assert locum.torch.report(model).runs == 1


def test_graph_breaks_raise() -> None:
    def function(x: Any) -> Any:
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    with pytest.raises(
        torch._dynamo.exc.BackendCompilerFailed, match="graph break: expected"
    ) as caught:
        compile_on_u(function, fullgraph=False)(torch.ones(2))
    assert isinstance(caught.value.inner_exception, locum.InputError)
    assert "test_backend.py" in str(caught.value)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="graph_break"):
        compile_on_u(function)(torch.ones(2))


def test_wrong_decompositions_of_pytorch_raise() -> None:
    """PyTorch's decomposition differs from eager execution, and the suggested call agrees."""
    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    labels = torch.tensor([[3, 0, -1, 1], [1, -1, -1, -1], [0, 1, 2, 3]])

    def loss(x: Any) -> Any:
        return nn.functional.multilabel_margin_loss(x, labels)

    decomposed = torch.compile(loss, backend="aot_eager", fullgraph=True)
    assert not torch.allclose(decomposed(x), loss(x))
    with pytest.raises(
        torch._dynamo.exc.BackendCompilerFailed, match="multilabel_margin_loss: expected"
    ):
        compile_on_u(loss)(x)
    assert_same(loss(x * 2), loss(compile_on_u(lambda x: x * 2)(x)))


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_a_backward_graph_is_translated_when_it_is_called() -> None:
    class Odd(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return torch.special.bessel_j0(grad)

    compiled = compile_on_u(lambda x: Odd.apply(x))
    result = compiled(torch.ones(2, requires_grad=True))
    assert result.tolist() == [2, 2]
    with pytest.raises(UnsupportedOperationError, match="bessel"):
        result.sum().backward()


# Threads --------------------------------------------------------------------------------------------


def test_threads() -> None:
    network = make_network()
    compiled = compile_on_u(network)
    wrong: list[int] = []

    def work(number: int) -> None:
        with torch.no_grad():
            for n in range(4):
                x = torch.full((3, 4), float(number + n))
                if not torch.allclose(compiled(x), network(x), atol=1e-6):
                    wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    report = locum.torch.report(compiled)
    assert (report.calls, report.runs) == (12, 12)


# Conditions on inputs -------------------------------------------------------------------------------


def test_a_condition_of_a_construction_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """A construction notes a condition; a run raises an error where the condition does not hold."""
    overload = torch.ops.aten.tanh.default
    row = TABLE[overload]

    def positive(out: Any, a: Any) -> Any:
        require(locum.where(a.at(0) < 0, 1.0, 0.0), "tanh: expected a first entry above 0")
        return row.construct(out, a)

    monkeypatch.setitem(TABLE, overload, Row(overload, row.kind, positive))
    compiled = compile_on_u(torch.tanh)
    assert_same(torch.tanh(torch.ones(2)), compiled(torch.ones(2)))
    with pytest.raises(locum.InputError, match=r"aten\.tanh\.default: tanh: expected a first entry"):
        compiled(-torch.ones(2))
