"""Folders as the transformers library loads them: types of weights, names of sizes, heads."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import locum
from locum.errors import InputError
from locum.simulators.models.families.rotary import frequencies
from locum.simulators.models.families.source import Source
from locum.simulators.models.folders import read_tensors
from tests.simulators.families import CASES, built, in_full_precision, inputs_of

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")


def saved(family: str, folder: Path, stored: Any, **config: Any) -> tuple[Any, dict[str, Any]]:
    """Save a model of a family with other fields in its config, where None leaves one out."""
    case = CASES[family][0]
    model = built(case, stored)
    model.save_pretrained(folder)
    path = folder / "config.json"
    fields = json.loads(path.read_text()) | config
    path.write_text(json.dumps({name: value for name, value in fields.items() if value is not None}))
    return model, inputs_of(case)


@pytest.mark.parametrize(
    ("family", "stored", "dtype"),
    [
        ("bert", "float32", "bfloat16"),
        ("gpt2", "float64", "float16"),
        ("t5", "float64", "float16"),  # a part of which stays in float32
        ("llama", "float64", "float32"),
        ("llama", "bfloat16", None),
        ("distilbert", "float16", "bfloat16"),
    ],
)
def test_weights_are_rounded_as_the_library_rounds_them(
    family: str, stored: str, dtype: str | None, tmp_path: Path
) -> None:
    model, inputs = saved(family, tmp_path, getattr(torch, stored), dtype=dtype)
    loaded = type(model).from_pretrained(tmp_path).double().eval()
    with torch.no_grad():
        expected = in_full_precision(loaded)(**inputs)
    result = locum.simulate(tmp_path, inputs, dtype="float64")
    name = "last_hidden_state" if result.logits is None else "logits"
    difference = (getattr(result, name) - getattr(expected, name)).abs()
    counts = inputs.get("attention_mask", torch.ones(2, 1)).bool()
    if counts.shape == difference.shape[:2]:
        difference = difference[counts]
    assert float(difference.max()) <= 1e-10


def test_bfloat16_is_rounded_to_even_and_nan_stays(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    numbers = torch.tensor([1.00390625, 1.01171875, -3.0e38, 3.4e38, torch.nan, torch.inf, 1e-40, 0.1])
    save_file({"a": numbers}, tmp_path / "model.safetensors")
    result = read_tensors(tmp_path, {"torch_dtype": "bfloat16"})["a"]
    assert np.array_equal(result, numbers.bfloat16().float().numpy(), equal_nan=True)
    save_file({"a": numbers, "b": numbers.half()}, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match=r"weights of one type, or a dtype .* got F16 and F32"):
        read_tensors(tmp_path, {})
    with pytest.raises(InputError, match=r"expected float64, .* as dtype in config.json, got 'int8'"):
        read_tensors(tmp_path, {"dtype": "int8"})


@pytest.mark.parametrize(
    ("family", "field", "value"),
    [
        ("gpt2", "num_attention_heads", 4),
        ("gpt2", "num_hidden_layers", 1),
        ("distilbert", "num_hidden_layers", 1),
        ("t5", "num_hidden_layers", 1),
        ("bart", "num_hidden_layers", 1),
    ],
)
def test_two_names_of_a_size_with_two_values(
    family: str, field: str, value: int, tmp_path: Path
) -> None:
    """The library takes one of them, and which one is a matter of its versions."""
    _, inputs = saved(family, tmp_path, torch.float64, **{field: value})
    with pytest.raises(InputError, match=f"expected one value of .* {value} as {field}"):
        locum.simulate(tmp_path, inputs)


def test_heads_that_nobody_here_knows_are_refused(tmp_path: Path) -> None:
    model, inputs = saved("llama", tmp_path, torch.float64)
    for name in ("LlamaForSequenceClassification", "LlamaForTokenClassification", "BertModel"):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"architectures": [name]}))
        with pytest.raises(InputError, match=f"the head of {name} .* LlamaForCausalLM are; try"):
            locum.simulate(tmp_path, inputs)
    result = locum.simulate(transformers.AutoModel.from_pretrained(tmp_path), inputs)
    expected = locum.simulate(model, inputs)
    assert (result.last_hidden_state - expected.last_hidden_state).abs().max() == 0


@pytest.mark.parametrize("family", ["llama", "qwen2", "mistral", "opt", "gpt_neox", "gpt2"])
def test_a_config_of_a_part_that_says_something_else(family: str) -> None:
    """The library runs as many layers as the config of the inner model says."""
    case = CASES[family][0]
    model, inputs = built(case, torch.float64), inputs_of(case)
    inner = getattr(model, model.base_model_prefix)
    for field, value in (("num_hidden_layers", 1), ("vocab_size", 7)):
        inner.config = copy.deepcopy(model.config)
        setattr(inner.config, field, value)
        with pytest.raises(InputError, match=r"has a config of its own, in which .* is "):
            locum.simulate(model, inputs)


def test_rotary_frequencies_are_those_of_the_library_to_the_last_bit() -> None:
    """Of a folder they are computed here; torch rounds twice where it divides a number by a tensor."""
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    chance = np.random.default_rng(0)
    for _ in range(60):
        width = int(chance.choice([4, 6, 16, 64]))
        rope = {
            "rope_type": "llama3",
            "rope_theta": float(chance.choice([30, 100, 500000])),
            "factor": float(chance.choice([2, 3, 8])),
            "low_freq_factor": float(chance.choice([1, 1.5])),
            "high_freq_factor": float(chance.choice([2, 4])),
            "original_max_position_embeddings": int(chance.choice([16, 64, 100])),
        }
        sizes = {"hidden_size": 2 * width, "num_attention_heads": 2, "head_dim": width}
        config = transformers.LlamaConfig(**sizes, rope_parameters=rope)
        values = dict.fromkeys(("rope_scaling", "rope_theta", "partial_rotary_factor"))
        result = frequencies(Source("", {}, {}, ""), values | {"rope_parameters": rope}, width)
        assert np.array_equal(result[: width // 2], LlamaRotaryEmbedding(config).inv_freq.numpy())


def in_parts(folder: Path) -> tuple[Any, dict[str, Any]]:
    """A model whose weights lie in several files, with an index."""
    case = CASES["bert"][0]
    model = built(case, torch.float64)
    model.save_pretrained(folder, max_shard_size="4KB")
    return model, inputs_of(case)


def test_weights_in_parts_are_those_that_the_index_lists(tmp_path: Path) -> None:
    """Parts of an older model may lie beside them."""
    model, inputs = in_parts(tmp_path)
    parts = sorted(tmp_path.glob("model-*.safetensors"))
    assert len(parts) > 1
    for part in parts:
        stale = {name: tensor + 1 for name, tensor in load_file(part).items()}
        save_file(stale, tmp_path / part.name.replace("-of-0", "-of-9"))
    with torch.no_grad():
        expected = model(**inputs)[0]
    result = locum.simulate(tmp_path, inputs, dtype="float64")
    found = result.last_hidden_state if result.logits is None else result.logits
    kept = inputs.get("attention_mask", torch.ones(expected.shape[:2])).bool()
    assert float((found - expected).abs()[kept].max()) <= 1e-10


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("no index", r"no model\.safetensors, and no model\.safetensors\.index\.json"),
        (
            "no part",
            r"expected model-00001.*, which model\.safetensors\.index\.json lists, got no such",
        ),
        ("no map", "expected weight_map as an object"),
        ("elsewhere", "expected names of safetensors in the folder itself, got '../a.safetensors'"),
        ("twice", "expected each tensor in one file, got .* in two or more"),
        ("adapter", r"an adapter \(adapter_config\.json\) is not simulated"),
    ],
)
def test_weights_in_parts_that_are_refused(change: str, problem: str, tmp_path: Path) -> None:
    _, inputs = in_parts(tmp_path)
    index = tmp_path / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    first, *_, last = sorted(tmp_path.glob("model-*.safetensors"))
    match change:
        case "no index":
            index.unlink()
        case "no part":
            first.unlink()
        case "no map":
            index.write_text("[]")
        case "elsewhere":
            content["weight_map"]["x"] = "../a.safetensors"
            index.write_text(json.dumps(content))
        case "twice":
            save_file(load_file(first) | load_file(last), first)
        case "adapter":
            (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(InputError, match=problem):
        locum.simulate(tmp_path, inputs)
