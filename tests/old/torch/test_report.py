"""The report: what ran on U, and what did not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import locum

torch: Any = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from locum.torch.program import Program  # noqa: E402
from locum.torch.usage_report import EXECUTORS  # noqa: E402
from tests.torch.comparing import compile_on_u  # noqa: E402


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(4, 8)
        self.down = nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        return self.down(torch.tanh(self.up(x)))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return x

    def generate(self, x: Any) -> Any:
        for _ in range(3):
            x = self(x)
        return x


def test_operations_by_module() -> None:
    compiled = compile_on_u(Model())
    with torch.no_grad():
        compiled(torch.randn(3, 4))
        compiled(torch.randn(3, 4))
    report = locum.torch.report(compiled)
    assert (report.calls, report.runs, report.plans) == (2, 2, 1)
    assert report.runs_by_kind == {"inference": 2, "forward": 0, "backward": 0}
    assert report.multiply_adds == 2 * 2 * (3 * 4 * 8 + 3 * 8 * 4)
    assert report.share == 1
    assert report.on_host == {}
    assert report.on_u == {
        **{f"blocks.{n}": {"aten.tanh.default": 2} for n in range(2)},
        **{
            f"blocks.{n}.{name}": {"aten.t.default": 2, "aten.addmm.default": 2}
            for n in range(2)
            for name in ("up", "down")
        },
    }
    assert report.warnings == []


def test_tables_of_integers_are_reported_and_can_be_forbidden() -> None:
    def function(x: Any, ids: Any) -> Any:
        return x * (ids * 2 + torch.arange(3)).float()

    listed = dict.fromkeys(("arange.start_step", "_to_copy.default", "mul.Tensor", "add.Tensor"), 1)
    on_host = {f"aten.{name}": number for name, number in listed.items()}
    for host in ("allowed", "forbidden"):
        torch._dynamo.reset()
        compiled = compile_on_u(function, host=host)
        result = compiled(torch.ones(3), torch.tensor([1, 2, 3]))
        assert result.tolist() == [2, 5, 8]
        found = locum.torch.report(compiled).on_host
        assert found == ({} if host == "forbidden" else {"": on_host})


def test_products_of_integers_do_not_run_on_the_host() -> None:
    """Matrix products are not on the list of operations that the host may run."""
    compiled = compile_on_u(lambda ids: ids.float() @ ids.float())
    compiled(torch.ones(2, 2, dtype=torch.int64))
    report = locum.torch.report(compiled)
    assert (report.multiply_adds, report.multiply_adds_on_host) == (8, 0)
    assert set(report.on_host[""]) == {"aten._to_copy.default"}


def test_executors_are_named() -> None:
    for executor, words in EXECUTORS.items():
        torch._dynamo.reset()
        compiled = compile_on_u(lambda x: torch.tanh(x) * 2, executor=executor)
        compiled(torch.ones(2))
        report = locum.torch.report(compiled)
        assert report.executors == [executor]
        assert f"{executor}: {words}" in str(report)
        assert report.plans == (1 if executor == "fast" else 0)
    assert "runs no heads" in EXECUTORS["fast"]
    assert "runs every head" in EXECUTORS["heads"]


def test_json_and_text() -> None:
    compiled = compile_on_u(Model())
    compiled(torch.randn(3, 4)).sum().backward()
    report = locum.torch.report(compiled)
    loaded = json.loads(json.dumps(report.to_dict()))
    assert loaded["runs"] == {"inference": 0, "forward": 1, "backward": 1}
    assert [program["kind"] for program in loaded["programs"]] == ["forward", "backward"]
    weights = sum(p.numel() for p in Model().parameters())
    assert loaded["programs"][0]["tokens"] == weights + 12
    assert loaded["programs"][0]["layers"] == 4
    assert loaded["programs"][0]["heads"] > 0
    assert loaded["multiply_adds"]["share_on_u"] == 1
    text = str(report)
    for line in ("executor", "calls", "runs", "multiply-adds", "plans", "time", "on U", "on the host"):
        assert line in text
    assert f"{weights + 12:,} tokens, 4 layers" in text


# Which compiled object ------------------------------------------------------------------------------


def test_runs_are_counted_for_the_object_that_was_called() -> None:
    """Dynamo shares one graph between both models."""
    first, second = Model(), Model()
    one, two = compile_on_u(first), compile_on_u(second)
    x = torch.randn(3, 4)
    with torch.no_grad():
        one(x), one(x), two(x)
    reports = [locum.torch.report(each) for each in (one, first, two, second)]
    assert [report.runs for report in reports] == [2, 2, 1, 1]
    assert [len(report.graphs) for report in reports] == [1, 1, 1, 1]
    assert reports[0].graphs == reports[2].graphs


@torch.no_grad()  # type: ignore[untyped-decorator]
def test_every_form_of_a_compiled_object() -> None:
    x = torch.randn(3, 4)
    function = compile_on_u(lambda x: x * 2)
    function(x)
    assert locum.torch.report(function).runs == 1

    method: Any = Model()
    method.forward = compile_on_u(method.forward)
    method(x)
    assert locum.torch.report(method).runs == 1

    part = Model()
    part.blocks[1] = compile_on_u(part.blocks[1])
    part(x)
    assert locum.torch.report(part).runs == 1
    assert locum.torch.report(part.blocks[1]).runs == 1
    assert locum.torch.report(part.blocks[0]).runs == 0

    whole = Model()
    whole.compile(backend="locum", fullgraph=True)
    whole(x)
    assert locum.torch.report(whole).runs == 1
    assert locum.torch.report().runs >= 4
    with pytest.raises(locum.InputError, match="expected a compiled function or module, got int"):
        locum.torch.report(3)


@torch.no_grad()  # type: ignore[untyped-decorator]
def test_a_run_inside_of_another_compiled_object_counts_once() -> None:
    torch._dynamo.reset()
    inner = compile_on_u(Model())

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def call(x: Any) -> Any:
        return inner(x)

    whole = torch.compile(lambda x: call(x + 1), backend="eager")
    whole(torch.randn(3, 4))
    for compiled in (inner, whole):
        found = locum.torch.report(compiled)
        assert (found.calls, found.runs) == (1, 1)
    ours = [graph for graph in locum.torch.report().graphs if graph in found.graphs]
    assert [graph.calls(None) for graph in ours] == [1]
    assert [usage.count(None).runs for graph in ours for usage in graph.programs] == [1]


# What did not run on U ------------------------------------------------------------------------------


@torch.no_grad()  # type: ignore[untyped-decorator]
def test_methods_of_the_original_module_show_0_runs() -> None:
    """``torch.compile(model).generate()`` calls the original model."""
    model = Model()
    compiled = compile_on_u(model)
    x = torch.randn(3, 4)
    expected = compiled.generate(x)
    report = locum.torch.report(compiled)
    assert (report.calls, report.runs, report.share) == (0, 0, 0)
    assert report.warnings[0].startswith("0 runs: nothing ran on U.")
    assert "0 runs" in str(report)

    model.compile(backend="locum", fullgraph=True)  # what the warning suggests
    torch.testing.assert_close(model.generate(x), expected)
    assert locum.torch.report(model).runs == 3


def test_a_compiled_ddp_module_shows_0_runs(tmp_path: Path) -> None:
    distributed = pytest.importorskip("torch.distributed")
    if not distributed.is_available() or not distributed.is_gloo_available():
        pytest.skip("no gloo")
    distributed.init_process_group("gloo", rank=0, world_size=1, init_method=f"file://{tmp_path}/init")
    try:
        wrap = nn.parallel.DistributedDataParallel
        model, x = nn.Linear(4, 4), torch.randn(3, 4)
        outside = compile_on_u(wrap(model), fullgraph=False)
        outside(x)
        report = locum.torch.report(outside)
        assert report.runs == 0
        assert any("graph breaks" in warning for warning in report.warnings)

        inside = wrap(compile_on_u(model))
        torch.testing.assert_close(inside(x), model(x))
        inside(x).sum().backward()
        assert locum.torch.report(inside).runs_by_kind == {"inference": 0, "forward": 2, "backward": 1}
    finally:
        distributed.destroy_process_group()


def test_the_recompilation_limit_is_reported() -> None:
    model = Model()
    compiled = compile_on_u(model, fullgraph=False, dynamic=False)
    with torch.no_grad(), torch._dynamo.config.patch(recompile_limit=3):
        for n in range(2, 8):
            x = torch.randn(n, 4)
            torch.testing.assert_close(compiled(x), model(x))
        report = locum.torch.report(compiled)
        assert (report.calls, report.runs) == (3, 3)
        assert any("limit of recompilations" in warning for warning in report.warnings)
        torch._dynamo.reset()
        strict = compile_on_u(model, dynamic=False)
        for n in range(2, 5):
            strict(torch.randn(n, 4))
        with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit):
            strict(torch.randn(5, 4))


def test_a_call_that_fails_is_no_run() -> None:
    compiled = compile_on_u(lambda x: torch.special.bessel_j0(x))
    with pytest.raises(locum.LocumError):
        compiled(torch.ones(2))
    report = locum.torch.report(compiled)
    assert (report.calls, report.runs) == (1, 0)
    assert any("some calls failed" in warning for warning in report.warnings)


def test_multiply_adds_of_products() -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    from locum.torch.program import count_multiply_adds

    def function(a: Any, b: Any, v: Any) -> Any:
        return a @ b, torch.bmm(a[None], b[None]), b @ v, torch.dot(v, v), a + 1

    a, b, v = torch.ones(2, 3), torch.ones(3, 4), torch.ones(4)
    program = Program.of(make_fx(function, tracing_mode="fake")(a, b, v))
    counts = [count_multiply_adds(program.concrete, node) for node in program.on_u]
    assert [count for count in counts if count] == [24, 24, 12, 4]


@pytest.mark.parametrize("key_heads", [4, 2])
def test_multiply_adds_of_attention(key_heads: int) -> None:
    def attend(q: Any, k: Any, v: Any) -> Any:
        attention: Any = torch.nn.functional.scaled_dot_product_attention
        return attention(q, k, v, enable_gqa=key_heads < 4)

    inputs = [torch.ones(1, heads, 5, 8, requires_grad=True) for heads in (4, key_heads, key_heads)]
    compiled = torch.compile(attend, backend="locum", fullgraph=True)
    compiled(*inputs).sum().backward()
    report = locum.torch.report(compiled)
    # Two products forward; backward, the scores are computed again, followed by four products.
    assert report.multiply_adds == (2 + 5) * 4 * 5 * 5 * 8


def test_multiply_adds_of_a_sum_of_products() -> None:
    compiled = torch.compile(torch.addbmm, backend="locum", fullgraph=True)
    compiled(torch.ones(3, 5), torch.ones(2, 3, 4), torch.ones(2, 4, 5))
    assert locum.torch.report(compiled).multiply_adds == 2 * 3 * 4 * 5
