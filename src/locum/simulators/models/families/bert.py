"""BERT and its kin: encoders with norms behind each part, and embeddings that are summed and normed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from locum.errors import InputError
from locum.simulators.models.families.description import Description, Output, Places, Stack, from_zero
from locum.simulators.models.families.fields import (
    ACTIVATIONS,
    Field,
    activation,
    anything,
    epsilon,
    flag,
    only,
    size,
)
from locum.simulators.models.families.parts import (
    attention_of_linears,
    feed_forward_of_linears,
    relative_bias,
)
from locum.simulators.models.families.source import Source
from locum.simulators.models.families.stage import Stage
from locum.simulators.modules.encoder import Encoder

_NOT_A_DECODER = {
    name: only(False, "BERT and its kin are simulated as encoders")
    for name in ("is_decoder", "add_cross_attention", "is_encoder_decoder")
}
_ABSOLUTE = only("absolute", "relative positions of this family are not simulated")
BERT: dict[str, Field] = _NOT_A_DECODER | {
    "hidden_size": size(768),
    "num_hidden_layers": size(12),
    "num_attention_heads": size(12),
    "intermediate_size": size(3072),
    "max_position_embeddings": size(512),
    "type_vocab_size": size(2),
    "hidden_act": activation("gelu"),
    "layer_norm_eps": epsilon(1e-12),
    "position_embedding_type": _ABSOLUTE,
    "pad_token_id": anything(0),
    "tie_word_embeddings": flag(True),
}
ROBERTA = BERT | {
    "pad_token_id": Field(1, "an id", lambda v: type(v) is int and v >= 0),
}
ELECTRA = BERT | {
    "embedding_size": size(128),
    "hidden_size": size(256),
    "num_attention_heads": size(4),
    "intermediate_size": size(1024),
}
ALBERT = BERT | {
    "embedding_size": size(128),
    "hidden_size": size(4096),
    "num_attention_heads": size(64),
    "intermediate_size": size(16384),
    "hidden_act": activation("gelu_new"),
    "num_hidden_groups": size(1),
    "inner_group_num": size(1),
}
MPNET = {name: field for name, field in BERT.items() if name != "type_vocab_size"} | {
    "pad_token_id": anything(1),  # the library counts positions behind 1, whatever is said
    "relative_attention_num_buckets": only(32, "the library counts 32, whatever is said"),
}
DISTILBERT: dict[str, Field] = {
    "dim": size(768, "hidden_size"),
    "n_layers": size(6, "num_hidden_layers"),
    "n_heads": size(12, "num_attention_heads"),
    "hidden_dim": size(3072, "intermediate_size"),
    "max_position_embeddings": size(512),
    "activation": activation("gelu"),
    "sinusoidal_pos_embds": anything(False),  # how the table is made; it is read as it is
    "is_encoder_decoder": _NOT_A_DECODER["is_encoder_decoder"],
    "pad_token_id": anything(0),
    "tie_word_embeddings": flag(True),
}

#: What the parts of a layer are called: Q, K, V, O, first norm, feed-forward in and out, second norm.
_BERT = (
    *(f"attention.self.{name}" for name in ("query", "key", "value")),
    *("attention.output.dense", "attention.output.LayerNorm"),
    *("intermediate.dense", "output.dense", "output.LayerNorm"),
)
_MPNET = (
    *(f"attention.attn.{name}" for name in "qkvo"),
    *("attention.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm"),
)
_ALBERT = (
    *(f"attention.{name}" for name in ("query", "key", "value", "dense", "LayerNorm")),
    *("ffn", "ffn_output", "full_layer_layer_norm"),
)
_DISTILBERT = (
    *(f"attention.{name}_lin" for name in ("q", "k", "v", "out")),
    *("sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm"),
)


#: Of BERT and DistilBERT: where the layers are, and what the parts of one are called.
LAYERS = {"bert": ("encoder.layer", _BERT), "distilbert": ("transformer.layer", _DISTILBERT)}


def bert(source: Source) -> Description:
    """Read a BERT."""
    values = bert_values(source)
    head = ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions")
    return _encoder(source, values, _names("encoder.layer", values), _BERT, head=head)


def roberta(source: Source) -> Description:
    """Read a RoBERTa, XLM-R or CamemBERT: positions count what is not padding, behind its id."""
    values = source.fields(ROBERTA)
    return _encoder(
        source,
        values,
        _names("encoder.layer", values),
        _BERT,
        head=("lm_head.dense", "lm_head.layer_norm", "lm_head"),
        head_activation="gelu",
        padding=values["pad_token_id"],
    )


def electra(source: Source) -> Description:
    """Read an ELECTRA, whose embeddings may be narrower than its layers."""
    values = source.fields(ELECTRA)
    head = ("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head")
    projection = "" if values["embedding_size"] == values["hidden_size"] else "embeddings_project"
    return _encoder(
        source,
        values,
        _names("encoder.layer", values),
        _BERT,
        head=head,
        head_activation="gelu",
        projection=projection,
    )


def albert(source: Source) -> Description:
    """Read an ALBERT: one layer, or a few, again and again."""
    values = source.fields(ALBERT)
    count, groups = values["num_hidden_layers"], values["num_hidden_groups"]
    names = [
        f"encoder.albert_layer_groups.{int(number / (count / groups))}.albert_layers.{inner}"
        for number in range(count)
        for inner in range(values["inner_group_num"])
    ]
    return _encoder(
        source,
        values,
        names,
        _ALBERT,
        head=("predictions.dense", "predictions.LayerNorm", "predictions"),
        projection="encoder.embedding_hidden_mapping_in",
        pooler="pooler",
    )


def mpnet(source: Source) -> Description:
    """Read an MPNet: scores have a bias for each distance."""
    values = source.fields(MPNET)
    return _encoder(
        source,
        values,
        _names("encoder.layer", values),
        _MPNET,
        head=("lm_head.dense", "lm_head.layer_norm", "lm_head"),
        head_activation="gelu",
        padding=1,
        relative="encoder.relative_attention_bias.weight",
    )


def distilbert(source: Source) -> Description:
    """Read a DistilBERT: no token types, and no pooler."""
    values = bert_values(source)
    head = ("vocab_transform", "vocab_layer_norm", "vocab_projector")
    return _encoder(source, values, _names("transformer.layer", values), _DISTILBERT, head=head)


def bert_values(source: Source) -> dict[str, Any]:
    """Read the config of a BERT or a DistilBERT, by BERT's names."""
    if source.family != "distilbert":
        return source.fields(BERT)
    fields = source.fields(DISTILBERT)
    return {
        "hidden_size": fields["dim"],
        "num_hidden_layers": fields["n_layers"],
        "num_attention_heads": fields["n_heads"],
        "intermediate_size": fields["hidden_dim"],
        "hidden_act": fields["activation"],
        "layer_norm_eps": 1e-12,
        **{name: fields[name] for name in ("max_position_embeddings", "tie_word_embeddings")},
    }


def _names(where: str, values: Mapping[str, Any]) -> list[str]:
    return [f"{where}.{number}" for number in range(values["num_hidden_layers"])]


def _encoder(
    source: Source,
    values: Mapping[str, Any],
    layer_names: Sequence[str],
    parts: Sequence[str],
    *,
    head: tuple[str, str, str],
    head_activation: str | None = None,
    projection: str = "",
    padding: int | None = None,
    relative: str = "",
    pooler: str = "pooler.dense",
) -> Description:
    d, heads = values["hidden_size"], values["num_attention_heads"]
    if d % heads:
        raise InputError(f"{source.where}: {heads} heads cannot share {d} columns equally")
    small, longest = values["layer_norm_eps"], values["max_position_embeddings"]
    act = ACTIVATIONS[values["hidden_act"]]
    width = values.get("embedding_size", d)
    read = {
        name: _layer(source, values, name, parts, bool(relative)) for name in dict.fromkeys(layer_names)
    }
    embedding = Stage().add("positions")
    types = None
    if "type_vocab_size" in values:
        embedding.add("types")
        types = source.tensor(
            "embeddings.token_type_embeddings.weight", values["type_vocab_size"], width
        )
    source.layer_norm(embedding, "embeddings.LayerNorm", width, small)
    if projection:
        embedding.product(*source.linear(projection, width, d))
    words = source.tensor("embeddings.word_embeddings.weight", None, width)
    table = source.tensor("embeddings.position_embeddings.weight", longest, width)
    stack = Stack(
        [read[name] for name in layer_names],
        heads,
        words,
        embedding,
        table,
        from_zero if padding is None else _behind_padding(padding),
        types,
        longest=longest if padding is None else longest - padding - 1,
    )
    if relative:
        stack.relative = relative_bias(source.tensor(relative, 32, heads), 128, both_ways=True)
    outputs = {}
    if source.architecture.endswith("ForMaskedLM"):
        dense, norm, decoder = head
        inner = source.tensor(f"{dense}.weight", None, d).shape[0]
        logits = Stage().product(*source.linear(dense, d, inner)).activate(head_activation or act)
        source.layer_norm(logits, norm, inner, small)
        logits.product(*_vocabulary(source, words, decoder, bool(values["tie_word_embeddings"])))
        outputs["logits"] = Output(logits)
    elif source.has(f"{pooler}.weight"):
        pooled = Stage().product(*source.linear(pooler, d, d)).activate("tanh")
        outputs["pooler_output"] = Output(pooled, first=True)
    return Description(source.family, source.where, stack, outputs=outputs, pad=padding)


def _layer(
    source: Source, values: Mapping[str, Any], name: str, parts: Sequence[str], biased_scores: bool
) -> Encoder:
    d, heads, hidden = (
        values[size] for size in ("hidden_size", "num_attention_heads", "intermediate_size")
    )
    *attention, norm1, inner, outer, norm2 = (f"{name}.{part}" for part in parts)
    more: dict[str, Any] = {"score_bias": [np.zeros((1, 1))] * heads} if biased_scores else {}
    return Encoder(
        attention_of_linears(source, attention, d, heads, **more),
        *feed_forward_of_linears(source, inner, outer, d, hidden),
        activation=ACTIVATIONS[values["hidden_act"]],
        norm="post",
        norm1=source.norm(norm1, d),
        norm2=source.norm(norm2, d),
        epsilon=values["layer_norm_eps"],
    )


def _behind_padding(padding: int) -> Places:
    """Make positions that count what is not padding, from the row behind the padding's on."""

    def places(ids: Any, mask: Any) -> Any:
        counted = ids != padding
        return np.cumsum(counted, axis=1) * counted + padding

    return places


def _vocabulary(source: Source, words: Any, name: str, tied: bool) -> tuple[Any, Any]:
    """Read the product with the table of words, and its bias, wherever these lie."""
    vocabulary = len(words)
    decoder = f"{name}.decoder" if source.has(f"{name}.decoder.weight") else name
    table = source.shared(f"{decoder}.weight", words, tied)
    bias = f"{decoder}.bias" if source.has(f"{decoder}.bias") else f"{name}.bias"
    return table.T, source.tensor(bias, vocabulary)
