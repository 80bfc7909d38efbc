"""ONNX: the graph gives what the forward pass gives, by ONNX's own reference."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.transformer.random_models import logits, random_inputs, random_model
from tests.transformer.test_compiled import previous
from understudy.errors import CompileError, InputError, UnderstudyError
from understudy.transformer import (
    CompiledTransformer,
    Config,
    FeedForwardWeights,
    LayerWeights,
    Weights,
)
from understudy.transformer.functions import INSTRUCTIONS, Functions, Instruction
from understudy.transformer.instructions import ARITIES
from understudy.transformer.onnx_functions import NUMBERS, PLAIN, TRUTHS


def test_every_instruction_can_be_written() -> None:
    assert (
        PLAIN.keys() | TRUTHS.keys() | NUMBERS.keys() | {"constant", "table", "member"} == INSTRUCTIONS
    )


def test_without_onnx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match=r"pip install 'understudy\[onnx\]'"):
        previous().to_onnx(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


onnx: Any = pytest.importorskip("onnx")


def run(path: Path, encoded: Any) -> Any:
    reference = pytest.importorskip("onnx.reference")
    with np.errstate(all="ignore"):
        return reference.ReferenceEvaluator(onnx.load(path)).run(None, {"inputs": encoded})[0]


def encoded(model: CompiledTransformer, inputs: Any) -> Any:
    found = model.encode(inputs)
    return found.astype(model.config.dtype) if model.config.vocabulary is None else found


@pytest.mark.parametrize("seed", range(40))
def test_the_graph_is_the_forward_pass(seed: int, tmp_path: Path) -> None:
    model = random_model(seed)
    inputs = random_inputs(model, seed)
    model.to_onnx(tmp_path / "model.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    found, wanted = run(tmp_path / "model.onnx", encoded(model, inputs)), logits(model, inputs)
    nodes = onnx.load(tmp_path / "model.onnx").graph.node
    # The reference has its error function in float32.
    exact = model.config.dtype == "float64" and not any(node.op_type == "Erf" for node in nodes)
    tolerance = 1e-12 if exact else 1e-5
    np.testing.assert_allclose(found, wanted, atol=tolerance, rtol=tolerance)
    properties = {row.key: row.value for row in onnx.load(tmp_path / "model.onnx").metadata_props}
    assert properties["weights"] == model.hash
    names = {row.name for row in onnx.load(tmp_path / "model.onnx").graph.initializer}
    assert names >= {name for name, _ in model.weights.named()}


def elementwise(instruction: Instruction, arguments: int) -> CompiledTransformer:
    """Without attention: token x, and the instruction on x, x·(its place) and its place."""
    size, d = 8, 5
    first, places = np.zeros((1, d)), np.zeros((size, d))
    first[0, 0] = 1
    places[:, 1] = np.arange(size) - 3
    places[:, 2] = np.arange(size) % 2
    read = np.zeros((d, arguments))
    read[range(arguments), range(arguments)] = 1
    write, answer = np.zeros((1, d)), np.zeros((d, 1))
    write[0, 3] = answer[3, 0] = 1
    functions = Functions(arguments, (instruction,), (arguments,))
    feed = FeedForwardWeights(
        "exact", read, np.zeros(arguments), write, np.zeros(d), functions=functions
    )
    config = Config(None, (1, size), False, None, "hard", "exact", "float64", tuple("abcde"), ((),))
    return CompiledTransformer(
        config, Weights(first, places, (LayerWeights(None, feed),), answer, np.zeros(1))
    )


ATTRIBUTES: dict[str, dict[str, Any]] = {
    "constant": {"value": 2.5},
    "member": {"values": (-3, 1.25)},
    "table": {"keys": ((-1.0, 0.0, 2.5), (0.0, 1.0)), "values": (1.0, 2.0, 3.0, 4.0, None, 6.0)},
}


@pytest.mark.parametrize("op", sorted(INSTRUCTIONS))
def test_every_instruction(op: str, tmp_path: Path) -> None:
    attributes = ATTRIBUTES.get(op, {})
    arity = ARITIES.get(op, 2)
    model = elementwise(Instruction(op, tuple(range(arity)), attributes), max(arity, 1))
    functions = model.weights.layers[0].feed_forward.functions  # type: ignore[union-attr]
    assert functions is not None
    model.to_onnx(tmp_path / "model.onnx")
    tokens = np.array(
        [[-3.0, -1.0, 0.0, 1.25, 2.0, 2.5, 7.0, 1e30], [-6.5, 0.5, 0.75, 1, -4, 5, 1.5, 3]]
    )
    stream = model.embed(tokens.tolist())
    wanted = functions(np, [stream[..., i] for i in range(functions.arguments)])[0]
    found = run(tmp_path / "model.onnx", tokens)[..., 0]
    # What has no value may be inf or nan: W_out's zeros make one of the other.
    assert (np.isfinite(found) == np.isfinite(wanted)).all()
    there = np.isfinite(wanted)
    np.testing.assert_allclose(found[there], wanted[there], rtol=1e-12 if op != "erf" else 1e-6)


def test_an_unknown_instruction_is_named(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="ONNX has no sine, in the sine of x"):
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
    with pytest.raises(UnderstudyError, match="not an ordinary file"):
        previous().to_onnx(tmp_path)
    with pytest.raises(UnderstudyError, match="cannot write"):
        previous().to_onnx(tmp_path / "nowhere" / "model.onnx")
