"""T5 and BART: an encoder, and a decoder that attends to its last states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from locum.errors import InputError
from locum.execution.arrays import Array
from locum.simulators.models.families.description import Description, Output, Stack
from locum.simulators.models.families.fields import (
    ACTIVATIONS,
    Field,
    activation,
    anything,
    epsilon,
    flag,
    only,
    size,
    size_or_none,
)
from locum.simulators.models.families.parts import (
    attention_of_linears,
    attention_of_source,
    relative_bias,
)
from locum.simulators.models.families.source import Source
from locum.simulators.models.families.stage import Stage
from locum.simulators.modules.decoder import DecoderLayer
from locum.simulators.modules.encoder import Encoder
from locum.simulators.modules.layer import Layer
from locum.simulators.modules.module import AttentionModule

_NAMED = {f"{kind}{name}": name for kind in ("", "gated-") for name in ACTIVATIONS}
T5: dict[str, Field] = {
    "d_model": size(512),
    "d_kv": size(64),
    "d_ff": size(2048),
    "num_layers": size(6, "num_hidden_layers"),
    "num_decoder_layers": size_or_none(None),
    "num_heads": size(8),
    "relative_attention_num_buckets": size(32),
    "relative_attention_max_distance": size(128),
    "layer_norm_epsilon": epsilon(1e-6),
    "feed_forward_proj": Field("relu", "an activation, or gated-…", lambda v: v in _NAMED),
    "dense_act_fn": anything(None),
    "is_gated_act": anything(None),
    "scale_decoder_outputs": anything(None),
    "is_encoder_decoder": anything(True),
    "is_decoder": only(False, "the whole model is simulated, or its encoder"),
    "n_positions": anything(512),
    "tie_word_embeddings": flag(True),
}
BART: dict[str, Field] = {
    "d_model": size(1024),
    "encoder_layers": size(12, "num_hidden_layers"),
    "decoder_layers": size(12),
    "encoder_attention_heads": size(16),
    "decoder_attention_heads": size(16),
    "encoder_ffn_dim": size(4096),
    "decoder_ffn_dim": size(4096),
    "max_position_embeddings": size(1024),
    "activation_function": activation("gelu"),
    "scale_embedding": flag(False),
    "is_encoder_decoder": only(True, "the whole model is simulated"),
    "is_decoder": only(False, "the whole model is simulated"),
    "add_cross_attention": only(False, "decoders without an encoder are not simulated"),
    "normalize_before": only(False, "norms stand behind each part"),
    "add_final_layer_norm": only(False, "there is no last norm"),
    "add_bias_logits": anything(False),
    "normalize_embedding": only(True, "embeddings are normed"),
    "static_position_embeddings": only(False, "positions are learned"),
    "force_bos_token_to_be_generated": anything(False),
    "tie_word_embeddings": flag(True),
}


def t5(source: Source) -> Description:
    """Read a T5: norms by the root mean square, biases of scores by distance, no scale."""
    values = source.fields(T5)
    encoder = _t5_stack(source, values, "encoder", values["num_layers"])
    if source.architecture == "T5EncoderModel":
        return Description("t5", source.where, encoder)
    if values["is_encoder_decoder"] is not True:
        # The library then puts keys of the decoder and of the memory into one cache.
        raise InputError(
            f"{source.where}: expected True (the whole model is simulated) as is_encoder_decoder in "
            f"config.json, got {values['is_encoder_decoder']!r:.60}"
        )
    count = values["num_decoder_layers"] or values["num_layers"]
    stack = _t5_stack(source, values, "decoder", count)
    outputs = {}
    if source.architecture == "T5ForConditionalGeneration":
        logits, scaled = Stage(), values["scale_decoder_outputs"]
        if values["tie_word_embeddings"] if scaled is None else scaled:
            logits.scale(values["d_model"] ** -0.5)
        outputs["logits"] = Output(logits.product(_unembedding(source, values, stack).T))
    return Description("t5", source.where, stack, encoder, outputs)


def _t5_stack(source: Source, values: Mapping[str, Any], side: str, count: int) -> Stack:
    d, heads, width = values["d_model"], values["num_heads"], values["d_kv"]
    small, decoder = values["layer_norm_epsilon"], side == "decoder"
    gated = values["feed_forward_proj"].startswith("gated-")
    act = ACTIVATIONS[_NAMED[values["feed_forward_proj"]]]
    if values["feed_forward_proj"] == "gated-gelu":
        act = "gelu_tanh"  # as the library has it
    if values["dense_act_fn"] is not None and ACTIVATIONS.get(values["dense_act_fn"]) != act:
        raise InputError(
            f"{source.where}: expected dense_act_fn {act} beside feed_forward_proj "
            f"{values['feed_forward_proj']}, got {values['dense_act_fn']!r}"
        )

    def attention(name: str, biased: bool) -> AttentionModule:
        q, k, v = (source.linear(f"{name}.{part}", d, heads * width, False)[0] for part in "qkv")
        W_O = source.linear(f"{name}.o", heads * width, d, False)[0]
        more = {"score_bias": [np.zeros((1, 1))] * heads} if biased else {}
        return attention_of_source(source, [q, k, v], [None] * 3, W_O, None, heads, scale=1.0, **more)

    layers: list[Layer] = []
    for number in range(count):
        name = f"{side}.block.{number}.layer"
        last = f"{name}.{2 if decoder else 1}.DenseReluDense"
        hidden, inner = values["d_ff"], "wi_1" if gated else "wi"
        parts: dict[str, Any] = {
            "W1": source.linear(f"{last}.{inner}", d, hidden, False)[0],
            "W2": source.linear(f"{last}.wo", hidden, d, False)[0],
            "activation": act,
            "norm": "pre",
            "rms": True,
            "epsilon": small,
        }
        if gated:
            parts["W_gate"] = source.linear(f"{last}.wi_0", d, hidden, False)[0]
        for place in range(3 if decoder else 2):
            parts[f"norm{place + 1}"] = source.tensor(f"{name}.{place}.layer_norm.weight", d)
        own = attention(f"{name}.0.SelfAttention", biased=True)
        if decoder:
            cross = attention(f"{name}.1.EncDecAttention", biased=False)
            layers.append(DecoderLayer(own, cross, **parts))
        else:
            layers.append(Encoder(own, **parts))
    table = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    buckets = source.tensor(table, values["relative_attention_num_buckets"], heads)
    return Stack(
        layers,
        heads,
        _words(source, side, d, True),
        final=Stage().norm("rms_norm", small, source.tensor(f"{side}.final_layer_norm.weight", d)),
        causal=decoder,
        relative=relative_bias(
            buckets, values["relative_attention_max_distance"], both_ways=not decoder
        ),
    )


def bart(source: Source) -> Description:
    """Read a BART: learned positions from the third row on, norms behind each part."""
    values = source.fields(BART)
    encoder, stack = (_bart_stack(source, values, side) for side in ("encoder", "decoder"))
    outputs = {}
    if source.architecture == "BartForConditionalGeneration":
        table = _unembedding(source, values, stack)
        bias = np.zeros(len(table))
        if source.has("final_logits_bias"):
            bias = source.tensor("final_logits_bias", 1, len(table)).reshape(-1)
        outputs["logits"] = Output(Stage().product(table.T, bias))
    return Description("bart", source.where, stack, encoder, outputs)


def _bart_stack(source: Source, values: Mapping[str, Any], side: str) -> Stack:
    d, longest, decoder = values["d_model"], values["max_position_embeddings"], side == "decoder"
    heads, hidden = values[f"{side}_attention_heads"], values[f"{side}_ffn_dim"]

    def attention(name: str) -> AttentionModule:
        parts = [f"{name}.{part}_proj" for part in ("q", "k", "v", "out")]
        return attention_of_linears(source, parts, d, heads)

    layers: list[Layer] = []
    for number in range(values[f"{side}_layers"]):
        name = f"{side}.layers.{number}"
        W1, b1 = source.linear(f"{name}.fc1", d, hidden)
        W2, b2 = source.linear(f"{name}.fc2", hidden, d)
        act = ACTIVATIONS[values["activation_function"]]
        parts: dict[str, Any] = {"W1": W1, "W2": W2, "b1": b1, "b2": b2, "activation": act}
        parts |= {"norm": "post", "epsilon": 1e-5}
        norms = ["self_attn_layer_norm", "final_layer_norm"]
        if decoder:
            norms.insert(1, "encoder_attn_layer_norm")
        for place, norm in enumerate(norms, start=1):
            parts[f"norm{place}"] = source.norm(f"{name}.{norm}", d)
        own = attention(f"{name}.self_attn")
        if decoder:
            layers.append(DecoderLayer(own, attention(f"{name}.encoder_attn"), **parts))
        else:
            layers.append(Encoder(own, **parts))
    embedding = Stage()
    if values["scale_embedding"]:
        embedding.scale(d**0.5)
    embedding.add("positions")
    return Stack(
        layers,
        heads,
        _words(source, side, d, values["tie_word_embeddings"]),
        source.layer_norm(embedding, f"{side}.layernorm_embedding", d, 1e-5),
        source.tensor(f"{side}.embed_positions.weight", longest + 2, d),
        lambda ids, mask: np.broadcast_to(np.arange(ids.shape[1]) + 2, ids.shape),
        causal=decoder,
        longest=longest,
    )


def _words(source: Source, side: str, d: int, tied: bool) -> Array:
    """Read the table of words of one side; if tied, files have it once for both."""
    own = f"{side}.embed_tokens.weight"
    if source.folder is None or not tied:
        return source.tensor(own, None, d)
    return source.shared(own, source.tensor("shared.weight", None, d))


def _unembedding(source: Source, values: Mapping[str, Any], stack: Stack) -> Array:
    assert stack.words is not None
    return source.shared("lm_head.weight", stack.words, values["tie_word_embeddings"])
