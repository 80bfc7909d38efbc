"""Recording steps of modules while they run on U."""

from __future__ import annotations

from typing import Any

import pytest

import locum

torch: Any = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from locum.constructions.observation import observe  # noqa: E402
from locum.torch.table import TABLE, Row  # noqa: E402
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


@pytest.mark.parametrize("executor", ["fast", "dense", "heads"])
def test_steps_are_those_of_the_module(executor: str) -> None:
    model: Any = Model()
    x = torch.randn(2, 4)
    compiled = compile_on_u(model, executor=executor)
    with torch.no_grad(), locum.torch.record("blocks.*") as recorded:
        result = compiled(x)
    inner = torch.tanh(model.blocks[0].up(x))
    steps = recorded["blocks.0"]
    assert list(steps) == ["addmm", "tanh", "addmm_1", "output"]
    torch.testing.assert_close(steps["tanh"], inner.detach())
    torch.testing.assert_close(steps["addmm_1"], model.blocks[0](x).detach())
    torch.testing.assert_close(recorded["blocks.1.down"]["output"], result)
    assert set(recorded) == {f"blocks.{n}{part}" for n in (0, 1) for part in ("", ".up", ".down")}


def test_the_output_has_the_shape_of_the_module() -> None:
    model: Any = Model()
    x = torch.randn(2, 3, 4)
    with torch.no_grad(), locum.torch.record("blocks.0") as recorded:
        compile_on_u(model)(x)
    assert recorded["blocks.0"]["addmm_1"].shape == (6, 4)
    torch.testing.assert_close(recorded["blocks.0"]["output"], model.blocks[0](x).detach())


def test_only_the_block_records() -> None:
    compiled = compile_on_u(Model())
    x = torch.randn(2, 4)
    with torch.no_grad():
        before = compiled(x)
        with locum.torch.record("blocks.1") as recorded:
            inside = compiled(x)
            compiled(x + 1)
        after = compiled(x)
    assert len(recorded.runs) == 2
    assert not torch.equal(recorded.runs[0]["blocks.1"]["tanh"], recorded.runs[1]["blocks.1"]["tanh"])
    assert torch.equal(recorded["blocks.1"]["tanh"], recorded.runs[1]["blocks.1"]["tanh"])
    torch.testing.assert_close(before, inside)
    torch.testing.assert_close(before, after)
    with pytest.raises(KeyError, match=r"blocks\.0: expected a recorded module"):
        recorded["blocks.0"]


def test_training_records_forward_graphs_only() -> None:
    compiled = compile_on_u(Model())
    with locum.torch.record("blocks.0") as recorded:
        compiled(torch.randn(2, 4)).sum().backward()
    assert len(recorded.runs) == 1


def test_recording_changes_no_result_and_no_random_numbers() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    compiled = compile_on_u(model)
    x = torch.randn(5, 4)
    torch.manual_seed(3)
    expected = compiled(x)
    torch.manual_seed(3)
    with locum.torch.record("*") as recorded:
        assert torch.equal(compiled(x), expected)
    assert recorded["1"]["mul_1"].shape == (5, 4)
    assert list(recorded["1"]) == ["native_dropout.1", "mul", "mul_1", "output"]


def test_views_on_the_host_are_no_steps() -> None:
    class Embed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(5, 4)

        def forward(self, i: torch.Tensor) -> torch.Tensor:
            return torch.where((i + 1).unsqueeze(-1).transpose(0, 1) > 2, self.embed(i), 0.0)

    with torch.no_grad(), locum.torch.record("*") as recorded:
        model = Embed()
        compile_on_u(lambda i: model(i))(torch.tensor([[1, 3], [2, 4]]))
    assert set(recorded[""]) >= {"add", "gt", "where"}
    assert not {"unsqueeze", "transpose", "permute"} & set(recorded[""])


def test_parts_that_a_construction_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A construction calls ``observe`` to name a tensor inside it."""
    overload = torch.ops.aten.tanh.default
    row = TABLE[overload]

    def named(out: Any, a: Any) -> Any:
        return observe("pattern", row.construct(out, a))

    monkeypatch.setitem(TABLE, overload, Row(overload, row.kind, named))
    model: Any = Model()
    x = torch.randn(2, 4)
    with torch.no_grad(), locum.torch.record("blocks.?") as recorded:
        compile_on_u(model)(x)
    assert list(recorded.patterns) == ["blocks.0", "blocks.1"]
    torch.testing.assert_close(
        recorded.patterns["blocks.0"], torch.tanh(model.blocks[0].up(x)).detach()
    )


def test_dynamic_shapes_are_recorded() -> None:
    compiled = compile_on_u(Model(), dynamic=True)
    with torch.no_grad(), locum.torch.record("blocks.0") as recorded:
        for n in (2, 3):
            compiled(torch.randn(n, 4))
    assert [tuple(run["blocks.0"]["tanh"].shape) for run in recorded.runs] == [(2, 8), (3, 8)]


def test_a_path_without_a_module_is_reported() -> None:
    compiled = compile_on_u(Model())
    with (
        torch.no_grad(),
        pytest.warns(UserWarning, match=r"got 'block\.\*'; try one of blocks\.0, blocks\.0\.up"),
        locum.torch.record("block.*", "blocks.1") as recorded,
    ):
        compiled(torch.randn(2, 4))
    assert list(recorded) == ["blocks.1"]


def test_layers_that_pytorch_fuses_are_reported() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 1)).eval()
    x = torch.randn(1, 3, 8)
    with (
        torch.no_grad(),
        pytest.warns(UserWarning, match=r"try one of 0, 0\.layers\.0$"),
        locum.torch.record("0.layers.*.self_attn"),
    ):
        compile_on_u(model)(x)
    with torch.no_grad(), locum.torch.record("0.layers.*") as recorded:
        compile_on_u(model)(x)
    assert list(recorded.patterns) == ["0.layers.0"]


def test_wrong_arguments_raise() -> None:
    with pytest.raises(locum.InputError, match="record: expected paths of modules"):
        locum.torch.record().__enter__()
    with pytest.raises(locum.InputError, match="record: expected paths of modules"):
        locum.torch.record(nn.Linear(1, 1)).__enter__()  # type: ignore[arg-type]
