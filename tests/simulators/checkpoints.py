"""Small random checkpoints of the BERT family as folders, and their forward pass by the plain formula.

The forward pass is written from the definition of the architecture in NumPy, double precision: it
shares nothing with the package.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

Numbers = NDArray[Any]
BERT = (
    "encoder.layer.{}.attention.self.query",
    "encoder.layer.{}.attention.self.key",
    "encoder.layer.{}.attention.self.value",
    "encoder.layer.{}.attention.output.dense",
    "encoder.layer.{}.attention.output.LayerNorm",
    "encoder.layer.{}.intermediate.dense",
    "encoder.layer.{}.output.dense",
    "encoder.layer.{}.output.LayerNorm",
)
DISTILBERT = (
    "transformer.layer.{}.attention.q_lin",
    "transformer.layer.{}.attention.k_lin",
    "transformer.layer.{}.attention.v_lin",
    "transformer.layer.{}.attention.out_lin",
    "transformer.layer.{}.sa_layer_norm",
    "transformer.layer.{}.ffn.lin1",
    "transformer.layer.{}.ffn.lin2",
    "transformer.layer.{}.output_layer_norm",
)
NAMES = {"bert": BERT, "distilbert": DISTILBERT}
WORDS, POSITIONS, D, HIDDEN, HEADS, LAYERS = 13, 7, 6, 8, 2, 2


def write(folder: Path, family: str = "bert", prefix: str = "", seed: int = 0, **changes: Any) -> Path:
    """A folder with config.json, model.safetensors and a tokenizer of thirteen words."""
    chance = np.random.default_rng(seed)

    def draw(*shape: int) -> Numbers:
        return np.asarray(chance.normal(size=shape) / math.sqrt(shape[-1]), dtype=np.float32)

    tensors = {
        "embeddings.word_embeddings.weight": draw(WORDS, D),
        "embeddings.position_embeddings.weight": draw(POSITIONS, D),
        "embeddings.LayerNorm.weight": 1 + draw(D),
        "embeddings.LayerNorm.bias": draw(D),
    }
    if family == "bert":
        tensors["embeddings.token_type_embeddings.weight"] = draw(2, D)
    shapes = [(D, D)] * 4 + [(D,), (HIDDEN, D), (D, HIDDEN), (D,)]
    for layer in range(LAYERS):
        for name, shape in zip(NAMES[family], shapes, strict=True):
            tensors[f"{name.format(layer)}.weight"] = draw(*shape)
            tensors[f"{name.format(layer)}.bias"] = draw(shape[0])
    config = {
        "bert": {
            "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "hidden_size": D,
            "intermediate_size": HIDDEN, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
        },
        "distilbert": {
            "n_layers": LAYERS, "n_heads": HEADS, "dim": D, "hidden_dim": HIDDEN, "activation": "gelu",
        },
    }[family]  # fmt: skip
    config |= {"model_type": family, "max_position_embeddings": POSITIONS} | changes
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    save_file({prefix + name: tensor for name, tensor in tensors.items()}, folder / "model.safetensors")
    return folder


def write_tokenizer(folder: Path, **fields: Any) -> None:
    """Words of a made-up language, one token each, between [CLS] and [SEP]."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "a",
        "cat",
        "sat",
        "on",
        "mat",
        "the",
        "dog",
        "ran",
        "off",
    ]
    numbers = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    save_tokenizer(tokenizer, folder, **fields)


def save_tokenizer(tokenizer: Any, folder: Path, **fields: Any) -> None:
    """Write a tokenizer that is what tokenizer.json says, of no family's own class."""
    tokenizer.save(str(folder / "tokenizer.json"))
    # Versions of the library differ in what such a tokenizer gives, unless it is said.
    inputs = ["input_ids", "attention_mask"]
    config = json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": inputs} | fields
    )
    (folder / "tokenizer_config.json").write_text(config, encoding="utf-8")


class Formula:
    """The forward pass of a checkpoint, one text at a time, without padding."""

    def __init__(
        self, folder: Path, family: str = "bert", heads: int = HEADS, layers: int = LAYERS
    ) -> None:
        tensors = load_file(folder / "model.safetensors")
        self.tensors = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
        self.names, self.heads, self.layers = NAMES[family], heads, layers

    def __call__(self, numbers: Sequence[int]) -> list[Numbers]:
        """The states after the embeddings and after each layer."""
        t = self.tensors
        x = t["embeddings.word_embeddings.weight"][list(numbers)]
        x = x + t["embeddings.position_embeddings.weight"][: len(numbers)]
        if "embeddings.token_type_embeddings.weight" in t:
            x = x + t["embeddings.token_type_embeddings.weight"][0]
        states = [self.norm(x, "embeddings.LayerNorm")]
        for layer in range(self.layers):
            states.append(self.layer(layer, states[-1]))
        return states

    def layer(self, number: int, x: Numbers) -> Numbers:
        _, _, v, o, norm1, w1, w2, norm2 = (name.format(number) for name in self.names)
        weights = self.attention(number, x)
        values = np.split(self.linear(x, v), self.heads, axis=1)
        context = np.hstack([a @ b for a, b in zip(weights, values, strict=True)])
        x = self.norm(x + self.linear(context, o), norm1)
        hidden = self.linear(x, w1)
        hidden = hidden * 0.5 * (1 + np.vectorize(math.erf)(hidden / math.sqrt(2)))
        return self.norm(x + self.linear(hidden, w2), norm2)

    def attention(self, number: int, x: Numbers) -> list[Numbers]:
        """Weights of each head."""
        q, k = (self.linear(x, name.format(number)) for name in self.names[:2])
        result = []
        for a, b in zip(np.split(q, self.heads, 1), np.split(k, self.heads, 1), strict=True):
            powers = np.exp(a @ b.T / math.sqrt(a.shape[1]))
            result.append(powers / powers.sum(axis=1, keepdims=True))
        return result

    def linear(self, x: Numbers, name: str) -> Numbers:
        return np.asarray(x @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"])

    def norm(self, x: Numbers, name: str) -> Numbers:
        centred = x - x.mean(axis=1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12)
        return np.asarray(
            centred / spread * self.tensors[f"{name}.weight"] + self.tensors[f"{name}.bias"]
        )


def unit_mean(state: Numbers) -> Numbers:
    """The embedding of a text: the mean of its rows, of length 1."""
    mean = state.mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean))
