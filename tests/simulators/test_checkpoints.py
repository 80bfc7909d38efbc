"""Checkpoints of the BERT family, small and random, on U against the plain formula; and refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import locum
from locum.errors import InputError
from locum.simulators.models import FORMS, EncoderModel, read_checkpoint
from locum.simulators.models.batch import simulator_of
from tests.simulators.checkpoints import D, Formula, unit_mean, write, write_tokenizer

TEXTS = [[2, 5, 6, 3], [2, 3], [2, 4, 5, 6, 7, 8, 3], [9]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("family", "prefix"), [("bert", ""), ("bert", "bert."), ("distilbert", "distilbert.")]
)
def test_every_layer_against_the_formula(tmp_path: Path, family: str, prefix: str, form: str) -> None:
    plain = Formula(write(tmp_path / "plain", family), family)
    run = locum.simulate(write(tmp_path / "model", family, prefix), TEXTS, form=form, backend="numpy")
    assert isinstance(run, locum.simulators.ModelRun)
    assert max(run.errors) <= 1e-12
    for text, numbers in enumerate(TEXTS):
        expected = plain(numbers)
        for layer, state in enumerate(expected):
            np.testing.assert_allclose(run.states[layer][text], state, rtol=0, atol=1e-12)
        np.testing.assert_allclose(run.embeddings[text], unit_mean(expected[-1]), rtol=0, atol=1e-12)
        for head in range(2):
            ours, theirs = run.attention(text, 1, head)
            wanted_weights = plain.attention(1, expected[1])[head]
            np.testing.assert_allclose(ours, wanted_weights, rtol=0, atol=1e-12)
            assert theirs is not None
            np.testing.assert_allclose(theirs, wanted_weights, rtol=0, atol=1e-12)
    np.testing.assert_allclose(run.cosines, 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_same_in_torch(tmp_path: Path, dtype: str) -> None:
    pytest.importorskip("torch")
    folder = write(tmp_path)
    run = locum.simulate(folder, TEXTS, dtype=dtype, backend="torch")
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    assert max(run.errors) <= tolerance
    expected = Formula(folder)(TEXTS[2])
    np.testing.assert_allclose(run.states[-1][2], expected[-1], rtol=0, atol=tolerance)


@pytest.mark.parametrize("executor", ["dense", "heads"])
def test_the_same_by_the_network_itself(tmp_path: Path, executor: str) -> None:
    folder = write(tmp_path)
    run = locum.simulate(folder, [[2, 5, 3]], backend="numpy", executor=executor)
    assert max(run.errors) <= 1e-12
    np.testing.assert_allclose(run.states[-1][0], Formula(folder)([2, 5, 3])[-1], rtol=0, atol=1e-12)


def test_one_program_serves_all_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from locum.execution.fast import cache

    made = []
    original: Any = cache.__dict__["blueprint"]

    def counted(*arguments: Any) -> Any:
        made.append(arguments[0])
        return original(*arguments)

    monkeypatch.setattr(cache, "blueprint", counted)
    cache.forget_plans()
    model = EncoderModel(write(tmp_path), backend="numpy")
    model.run(TEXTS)
    assert len(made) == 3  # embeddings, layers, pooling
    other_lengths = [TEXTS[2], [4] * 5, [4] * 6, TEXTS[0]]
    model.run(other_lengths)
    assert len(made) == 3
    order = replace(model.layers[0].order(7), batch=4)  # it has 7 positions
    assert simulator_of(order) is model.run(TEXTS).batch.U


def test_texts_of_mixed_lengths_are_run_in_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.simulators.checkpoints.POSITIONS", 40)
    folder = write(tmp_path, max_position_embeddings=40)
    texts = [[2] * n for n in (3, 30, 24, 1, 12, 40, 5, 6, 7, 8, 9, 38, 2)]
    run = locum.simulate(folder, texts, backend="numpy")
    shapes = [(group.n, len(group.texts)) for group in run.batch.groups]
    assert shapes == [(8, 4), (8, 3), (12, 2), (24, 1), (32, 1), (40, 2)]
    assert [group.is_padded for group in run.batch.groups] == [True, True, True, False, True, True]
    alone = [locum.simulate(folder, [text], backend="numpy") for text in texts]
    for text, one in enumerate(alone):
        np.testing.assert_allclose(run.states[-1][text], one.states[-1][0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(run.embeddings[text], one.embeddings[0], rtol=0, atol=1e-12)
        ours, theirs = run.attention(text, 0, 1)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


def test_old_names_pooling_and_fewer_layers(tmp_path: Path) -> None:
    folder = write(tmp_path)
    tensors = load_file(folder / "model.safetensors")
    renamed = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): t
        for name, t in tensors.items()
    }
    plain = Formula(folder, layers=1)
    save_file(renamed, folder / "model.safetensors")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(
        '{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}', encoding="utf-8"
    )
    run = locum.simulate(folder, TEXTS, layers=1, backend="numpy")
    first = plain(TEXTS[0])[-1][0]
    np.testing.assert_allclose(run.embeddings[0], first / np.linalg.norm(first), rtol=0, atol=1e-12)
    assert len(run.states) == 2


def test_text_is_tokenised(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers", reason="the extra models is not installed")
    folder = write(tmp_path)
    write_tokenizer(folder)
    run = locum.simulate(folder, ["the cat sat", "dog"], backend="numpy")
    assert run.batch.texts[0].tokens == ["[CLS]", "the", "cat", "sat", "[SEP]"]
    assert run.batch.texts[0].numbers == [2, 9, 5, 6, 3]
    with pytest.raises(InputError, match="8 tokens, but the model has only 7 positions"):
        locum.simulate(folder, ["the cat sat on the mat"])
    (folder / "tokenizer.json").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=r"tokenizer\.json cannot be read"):
        locum.simulate(folder, ["cat"])
    (folder / "tokenizer.json").unlink()
    with pytest.raises(InputError, match=r"no tokenizer\.json"):
        locum.simulate(folder, ["cat"])


def test_folders_that_are_no_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        read_checkpoint(tmp_path / "none")
    with pytest.raises(InputError, match=r"it has no config\.json"):
        read_checkpoint(tmp_path)
    folder = write(tmp_path / "model")
    with pytest.raises(InputError, match="is not a folder"):
        read_checkpoint(folder / "config.json")
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(InputError, match="may be truncated"):
        read_checkpoint(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"no weights: there is no model\.safetensors"):
        read_checkpoint(folder)
    (folder / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(InputError, match="is a pickle, and never loaded"):
        read_checkpoint(folder)
    (folder / "config.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(InputError, match="JSON object"):
        read_checkpoint(folder)
    (folder / "config.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(InputError, match="nested too deeply"):
        read_checkpoint(folder)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"model_type": "gpt2"}, "architecture 'gpt2'"),
        ({"hidden_act": "mish"}, r"expected one of gelu, .* as hidden_act in config.json, got 'mish'"),
        ({"position_embedding_type": "relative_key"}, r"expected 'absolute' .* got 'relative_key'"),
        ({"is_decoder": True}, r"expected False .* as is_decoder in config.json, got True"),
        ({"hidden_size": None}, "expected a positive integer as hidden_size in config.json, got None"),
        ({"own": 3}, r"the field own of config.json .* is not known for the family bert"),
        ({"n_heads": 3}, r"the field n_heads of config.json .* is not known for the family bert"),
        ({"architectures": ["BertForSequenceClassification"]}, "head of BertForSequenceClassification"),
        ({"num_attention_heads": 4}, "4 heads cannot share 6 columns"),
        ({"model_type": [1]}, r"architecture '\[1\]' \(model_type\) is not simulated"),
        ({"hidden_act": [1]}, r"expected one of gelu, .* as hidden_act in config\.json, got \[1\]"),
        ({"layer_norm_eps": "abc"}, "expected a number from 0 to 1 as layer_norm_eps"),
        ({"layer_norm_eps": None}, "expected a number from 0 to 1 as layer_norm_eps"),
    ],
)
def test_architectures_that_are_not_simulated(
    tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        read_checkpoint(write(tmp_path, **change))


@pytest.mark.parametrize("activation", ["gelu_new", "quick_gelu", "relu"])
def test_activations_of_all_families_are_those_of_the_library(tmp_path: Path, activation: str) -> None:
    pytest.importorskip("transformers")
    folder = write(tmp_path, hidden_act=activation, vocab_size=13, type_vocab_size=2)
    run = locum.simulate(folder, TEXTS, dtype="float64")
    assert run.compared_with == "transformers' own forward pass"
    assert max(run.errors) <= 1e-12


def test_weights_that_do_not_fit(tmp_path: Path) -> None:
    folder = write(tmp_path, num_hidden_layers=3)
    with pytest.raises(InputError, match=r"lack encoder\.layer\.2\.attention\.self\.query\.weight"):
        locum.simulate(folder, TEXTS)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    changed = json.dumps(config | {"intermediate_size": 9, "num_hidden_layers": 2})
    (folder / "config.json").write_text(changed, encoding="utf-8")
    with pytest.raises(
        InputError, match=rf"expected .*intermediate\.dense\.weight as 9×{D}, got 8×{D}"
    ):
        locum.simulate(folder, TEXTS)
    tensors = load_file(folder / "model.safetensors")
    tensors["embeddings.LayerNorm.bias"][0] = np.nan
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(InputError, match="not finite"):
        locum.simulate(folder, TEXTS)


@pytest.mark.parametrize(
    ("texts", "options", "problem"),
    [
        ([], {}, "expected a list of texts"),
        ("cat", {}, "expected a list of texts"),
        ([[]], {}, "1 to 7 tokens in this model, got 0"),
        ([[1] * 8], {}, "got 8"),
        ([[13]], {}, "expected tokens from 0 to 12, got 13"),
        ([[1]], {"layers": 3}, "2 layers: expected 1 to 2, got 3"),
        ([[1]], {"dtype": "int8"}, "float64, got 'int8'"),
        ([[1]], {"backend": "jax"}, "numpy, got 'jax'"),
        ([[1]], {"backend": "numpy", "dtype": "float32"}, "NumPy runs float64"),
        ([[1]], {"mask": "causal"}, "makes its masks itself"),
        ([[1]], {"colour": 1}, "expected options .*, got colour"),
    ],
)
def test_inputs_that_are_refused(
    tmp_path: Path, texts: Any, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        locum.simulate(write(tmp_path), texts, **options)
