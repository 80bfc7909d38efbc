"""Folders of sentence-transformers: what modules.json says is done, and what is unknown is refused."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import locum
from locum.errors import InputError
from locum.simulators.models import EncoderModel
from tests.simulators.checkpoints import D, write, write_tokenizer

IDS = [[2, 5, 6, 3], [2, 3]]
PARTS = ("Transformer", "Pooling", "Normalize")


def sentence_folder(
    folder: Path,
    pooling: dict[str, Any],
    modules: tuple[str, ...] = PARTS,
    **files: dict[str, Any],
) -> Path:
    """A checkpoint with what sentence-transformers writes beside it."""
    write(folder)
    listed = [
        {
            "idx": n,
            "path": "" if n == 0 else f"{n}_{kind}",
            "type": f"sentence_transformers.models.{kind}",
        }
        for n, kind in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(listed), encoding="utf-8")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling), encoding="utf-8")
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def pooled(folder: Path) -> Any:
    """The embeddings that U gives, and the last states that they are made of."""
    run = locum.simulate(folder, IDS, backend="numpy")
    return run.embeddings, run.states[-1]


POOLINGS: list[tuple[dict[str, Any], str]] = [
    ({"pooling_mode": "cls", "embedding_dimension": D}, "cls"),
    ({"pooling_mode": "mean"}, "mean"),
    ({"pooling_mode": ["cls"]}, "cls"),
    ({}, "mean"),
    ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
    ({"pooling_mode_mean_tokens": True, "word_embedding_dimension": D}, "mean"),
]


@pytest.mark.parametrize(("config", "mode"), POOLINGS)
@pytest.mark.parametrize("modules", [PARTS, PARTS[:2]])
def test_poolings_of_both_versions(
    tmp_path: Path, config: dict[str, Any], mode: str, modules: tuple[str, ...]
) -> None:
    embeddings, states = pooled(sentence_folder(tmp_path / "model", config, modules))
    rows = np.array([state[0] if mode == "cls" else state.mean(axis=0) for state in states])
    if "Normalize" in modules:
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert np.abs(embeddings - rows).max() <= 1e-12


REFUSED: list[tuple[dict[str, Any], tuple[str, ...], dict[str, Any], str]] = [
    ({"pooling_mode": "max"}, PARTS, {}, "mean, cls, got 'max'"),
    ({"pooling_mode": "lasttoken"}, PARTS, {}, "mean, cls, got 'lasttoken'"),
    ({"pooling_mode": ["cls", "mean"]}, PARTS, {}, "mean, cls, got 'cls and mean'"),
    ({"pooling_mode_cls_token": True}, PARTS, {}, "mean, cls, got 'cls and mean'"),
    ({"pooling_mode_max_tokens": True}, PARTS, {}, "mean, cls, got 'mean and max'"),
    ({"pooling_mode_median": True}, PARTS, {}, "mean, cls, got 'mean and pooling_mode_median'"),
    ({"embedding_dimension": 2 * D}, PARTS, {}, "embedding_dimension to be 6, as in the model, got 12"),
    ({}, (*PARTS, "Dense"), {}, "Dense are not simulated"),
    ({}, ("Transformer", "Pooling", "Dense", "Normalize"), {}, "Dense, Normalize are not simulated"),
    ({}, ("Transformer",), {}, "the modules Transformer are not simulated"),
    ({}, PARTS, {"config_sentence_transformers": {"default_prompt_name": "query"}}, "a prompt before"),
    ({}, PARTS, {"sentence_bert_config": {"max_seq_length": "long"}}, "max_seq_length as a positive"),
    ({}, PARTS, {"sentence_bert_config": {"foo": 1}}, "foo is not simulated"),
    (
        {},
        PARTS,
        {"sentence_bert_config": {"tokenizer_args": {"use_fast": False}}},
        "tokenizer_args to be",
    ),
    ({}, PARTS, {"sentence_bert_config": {"transformer_task": "fill-mask"}}, "transformer_task to be"),
    ({}, PARTS, {"sentence_roberta_config": {"foo": 1}}, "foo is not simulated"),
    ({}, PARTS, {"config_sentence_transformers": {"truncate_dim": 3}}, "truncate_dim to be null"),
    ({}, PARTS, {"config_sentence_transformers": {"model_type": "SparseEncoder"}}, "model_type to be"),
    ({}, PARTS, {"2_Normalize/config": {"module_input_name": "token_embeddings"}}, "module_input_name"),
    ({"include_prompt": 1}, PARTS, {}, "include_prompt to be true or false"),
    ({"foo": 1}, PARTS, {}, "foo is not simulated"),
    ({"pooling_mode_mean_tokens": "false"}, PARTS, {}, "pooling_mode_mean_tokens as true or false"),
    ({}, ("Transformer", "Normalize", "Pooling"), {}, "Transformer, Normalize, Pooling are not"),
    ({}, ("Transformer", "Pooling", "Dense", "Dense"), {}, "Dense, Dense are not simulated"),
    ({}, ("WordEmbeddings", "Pooling"), {}, "WordEmbeddings, Pooling are not simulated"),
    ({}, ("Router",), {}, "Router are not simulated"),
]


@pytest.mark.parametrize(("config", "modules", "files", "problem"), REFUSED)
def test_what_is_not_simulated_is_refused(
    tmp_path: Path, config: Any, modules: Any, files: Any, problem: str
) -> None:
    folder = sentence_folder(tmp_path / "model", config, modules, **files)
    with pytest.raises(InputError, match=problem):
        locum.simulate(folder, IDS, backend="numpy")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"type": "own_code.Pooling"}, "Transformer, own_code.Pooling, Normalize are not simulated"),
        ({"foo": ["task"]}, "foo is not simulated"),
        ({"name": "0"}, "a name of its own for each module, got 0, 0, 2"),
        ({"path": 5}, "expected the Transformer in the folder itself"),
    ],
)
def test_modules_that_are_others(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    folder = sentence_folder(tmp_path / "model", {})
    modules = json.loads((folder / "modules.json").read_text())
    for number, module in enumerate(modules):
        module["name"] = str(number)
    modules[1] |= change
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    with pytest.raises(InputError, match=problem):
        locum.simulate(folder, IDS, backend="numpy")


def test_what_newer_versions_write_is_known(tmp_path: Path) -> None:
    """Names of modules, fields of the Transformer, and limits of the tokenizer of version 6."""
    pytest.importorskip("tokenizers")
    text = {"method": "forward", "method_output_name": "last_hidden_state"}
    folder = sentence_folder(
        tmp_path / "model",
        {"embedding_dimension": D, "pooling_mode": "mean", "include_prompt": True},
        sentence_bert_config={
            "transformer_task": "feature-extraction",
            "modality_config": {"text": text},
            "module_output_name": "token_embeddings",
        },
        config_sentence_transformers={
            "model_type": "SentenceTransformer",
            "prompts": {"query": "search: "},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
    )
    modules = json.loads((folder / "modules.json").read_text())
    for module, place in zip(
        modules,
        ("base.modules.transformer", "sentence_transformer.modules.pooling", "base.modules.normalize"),
        strict=True,
    ):
        module["kwargs"] = ["task"]
        module["type"] = f"sentence_transformers.{place}.{module['type'].rpartition('.')[2]}"
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    assert np.abs(np.linalg.norm(pooled(folder)[0], axis=1) - 1).max() <= 1e-12
    write_tokenizer(folder, model_max_length=5)
    (cut,) = EncoderModel(folder, backend="numpy").texts(["the cat sat on the mat"])
    assert cut.numbers == [2, 9, 5, 6, 3]


@pytest.mark.parametrize(
    ("files", "model_max_length", "expected"),
    [
        ({}, 5, [2, 9, 5, 6, 3]),
        ({"sentence_bert_config": {"max_seq_length": None}}, 5, [2, 9, 5, 6, 3]),
        ({"sentence_bert_config": {"max_seq_length": 6}}, 5, [2, 9, 5, 6, 7, 3]),
        (
            {"sentence_bert_config": {}, "sentence_roberta_config": {"max_seq_length": 4}},
            5,
            [2, 9, 5, 3],
        ),
        ({}, None, [2, 9, 5, 6, 7, 9, 3]),  # the positions of the model
        ({}, 100, [2, 9, 5, 6, 7, 9, 3]),
    ],
)
def test_texts_are_cut_to_what_the_tokenizer_takes(
    tmp_path: Path, files: Any, model_max_length: int | None, expected: list[int]
) -> None:
    pytest.importorskip("tokenizers")
    folder = sentence_folder(tmp_path / "a", {}, **files)
    write_tokenizer(folder, model_max_length=model_max_length)
    (text,) = EncoderModel(folder, backend="numpy").texts(["the cat sat on the mat"])
    assert text.numbers == expected


def test_texts_are_cut_as_the_folder_says(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    folder = sentence_folder(tmp_path / "a", {}, sentence_bert_config={"max_seq_length": 4})
    write_tokenizer(folder)
    model = EncoderModel(folder, backend="numpy")
    (text,) = model.texts(["hello world hello world hello"])
    assert len(text.numbers) <= 4


def test_weights_of_bfloat16_are_read(tmp_path: Path) -> None:
    folder = write(tmp_path)
    tensors = load_file(folder / "model.safetensors")
    rounded = {k: (v.astype("<f4").view("<u4") >> 16).astype("<u2") for k, v in tensors.items()}
    exact = {k: (v.astype("<u4") << 16).view("<f4") for k, v in rounded.items()}
    header: dict[str, Any] = {}
    content = b""
    for key, value in rounded.items():
        ends = [len(content), len(content) + value.nbytes]
        header[key] = {"dtype": "BF16", "shape": value.shape, "data_offsets": ends}
        content += value.tobytes()
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + content)
    model = EncoderModel(folder, backend="numpy")
    name = "embeddings.word_embeddings.weight"
    assert np.array_equal(model.checkpoint.source.tensors[name], exact[name])
    assert max(model.run(IDS).errors) <= 1e-12


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (np.array([[1, 2]]), "expected a list of texts, .* got ndarray"),
        ((text for text in ["a"]), "got generator"),
        ([None], "expected a text or a list of token ids, got NoneType"),
        ([5], "got int"),
        ([b"abc"], "got bytes"),
        ([[1.7, 2]], "expected token ids as integers, got 1.7"),
        ([[True]], "expected token ids as integers, got True"),
        ([[99]], ", got 99"),
        ([[]], "expected 1 to 7 tokens"),
    ],
)
def test_texts_that_are_none(tmp_path: Path, texts: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        EncoderModel(write(tmp_path), backend="numpy").run(texts)


@pytest.mark.parametrize("family", ["bert", "distilbert"])
def test_models_are_compared_with_transformers(tmp_path: Path, family: str) -> None:
    for package in ("torch", "transformers"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    sizes: dict[str, Any] = {"vocab_size": 13} | ({"type_vocab_size": 2} if family == "bert" else {})
    for backend in ("numpy", "torch"):
        model = EncoderModel(
            write(tmp_path / backend, family, **sizes), backend=backend, dtype="float64"
        )
        run = model.run(IDS)
        assert run.compared_with == "transformers' own forward pass"
        assert max(run.errors) <= 1e-12
        ours, theirs = run.attention(0, 1, 1)
        assert theirs is not None
        assert np.abs(ours - theirs).max() <= 1e-12
    first = EncoderModel(tmp_path / "torch", backend="torch", dtype="float64", layers=1).run(IDS)
    assert max(first.errors) <= 1e-12
    assert first.comparison is not None
    assert first.comparison.attentions is not None
    assert len(first.comparison.attentions) == 1  # no layer is run in vain


def test_a_folder_that_transformers_does_not_load_is_compared_with_a_formula(tmp_path: Path) -> None:
    run = EncoderModel(write(tmp_path), backend="numpy").run(IDS)  # its config has no vocab_size
    assert run.compared_with == "a plain formula of ours"
    assert run.to_dict()["compared_with"] == "a plain formula of ours"
    assert max(run.errors) <= 1e-12
