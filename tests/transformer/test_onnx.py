"""ONNX: the graph gives what the forward pass gives, by ONNX's own reference."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from locum.errors import CompileError, InputError, LocumError
from locum.execution.elementwise import MEANINGS
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.exports.onnx_graph import SPECIAL
from locum.networks.transformer.functions import INSTRUCTIONS, Instruction
from tests.transformer.random_models import logits, random_inputs, random_model
from tests.transformer.single_instructions import (
    TOKENS,
    assert_same,
    elementwise,
    expected,
    single,
)
from tests.transformer.test_compiled import previous


def test_every_instruction_can_be_written() -> None:
    named = {op for op, meaning in MEANINGS.items() if meaning.onnx is not None}
    assert named.isdisjoint(SPECIAL)
    assert named | SPECIAL.keys() | {"constant", "table", "member"} == INSTRUCTIONS


def test_without_onnx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match=r"pip install 'locum\[onnx\]'"):
        previous().to_onnx(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


onnx: Any = pytest.importorskip("onnx")


def run(path: Path, encoded: Any) -> Any:
    reference = pytest.importorskip("onnx.reference")
    with np.errstate(all="ignore"):
        return reference.ReferenceEvaluator(onnx.load(path)).run(None, {"inputs": encoded})[0]


def encoded(model: CompiledTransformer, inputs: Any) -> Any:
    result = model.encode(inputs)
    assert result.dtype == (model.config.dtype if model.config.vocabulary is None else np.int64)
    return result


@pytest.mark.parametrize("seed", range(40))
def test_the_graph_is_the_forward_pass(seed: int, tmp_path: Path) -> None:
    # With norms, numbers are rounded in another order, which a hard head or a step would show.
    smooth: dict[str, Any] = {"heads": ["softmax"], "feeds": ["glu", "relu", None], "norms": True}
    model = random_model(seed, **(smooth if seed % 4 == 0 else {}))
    inputs = random_inputs(model, seed)
    model.to_onnx(tmp_path / "model.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    actual, reference = run(tmp_path / "model.onnx", encoded(model, inputs)), logits(model, inputs)
    nodes = onnx.load(tmp_path / "model.onnx").graph.node
    # The reference has its error function in float32.
    exact = model.config.dtype == "float64" and not any(node.op_type == "Erf" for node in nodes)
    tolerance = 1e-12 if exact else 1e-5
    np.testing.assert_allclose(actual, reference, atol=tolerance, rtol=tolerance)
    properties = {row.key: row.value for row in onnx.load(tmp_path / "model.onnx").metadata_props}
    assert properties["weights"] == model.hash
    names = {row.name for row in onnx.load(tmp_path / "model.onnx").graph.initializer}
    assert names >= {name for name, _ in model.weights.named()}


@pytest.mark.parametrize("op", sorted(INSTRUCTIONS))
def test_every_instruction(op: str, tmp_path: Path) -> None:
    model = single(op)
    model.to_onnx(tmp_path / "model.onnx")
    assert_same(run(tmp_path / "model.onnx", TOKENS), expected(model), 1e-6 if op == "erf" else 1e-12)


def test_an_unknown_instruction_is_named(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="ONNX does not support sine, in the sine of x"):
        elementwise(Instruction("sine", (0,), label="the sine of x"), 1).to_onnx(
            tmp_path / "model.onnx"
        )
    assert not list(tmp_path.iterdir())


def test_a_file_comes_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    path = tmp_path / "model.onnx"
    path.write_text("before")

    def failing(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(KeyboardInterrupt):
        previous().to_onnx(path)
    monkeypatch.undo()
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.onnx"]
    assert path.read_text() == "before"
    previous().to_onnx(path)
    assert run(path, np.array([[3.0, 1.0]])).shape == (1, 2, 1)
    with pytest.raises(LocumError, match="not a regular file"):
        previous().to_onnx(tmp_path)
    with pytest.raises(LocumError, match="cannot write"):
        previous().to_onnx(tmp_path / "nowhere" / "model.onnx")
