"""Llama, Qwen2 and Mistral: norms by the root mean square, rotary positions, shared keys, gates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from locum.errors import InputError
from locum.simulators.models.families import rotary
from locum.simulators.models.families.description import Description, Stack
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
from locum.simulators.models.families.parts import attention_of_source, unembedding
from locum.simulators.models.families.source import Source
from locum.simulators.models.families.stage import Stage
from locum.simulators.modules.encoder import Encoder

_COMMON: dict[str, Field] = rotary.FIELDS | {
    "hidden_size": size(4096),
    "num_hidden_layers": size(32),
    "num_attention_heads": size(32),
    "num_key_value_heads": size_or_none(None),
    "head_dim": size_or_none(None),
    "max_position_embeddings": size(2048),
    "hidden_act": activation("silu"),
    "rms_norm_eps": epsilon(1e-6),
    "is_encoder_decoder": only(False, "decoders alone are simulated"),
    "tie_word_embeddings": flag(False),
}
LLAMA = _COMMON | {
    "intermediate_size": size(11008),
    "attention_bias": flag(False),
    "rope_interleaved": only(False, "rotary columns are turned half against half"),
    "mlp_bias": flag(False),
}
QWEN2 = _COMMON | {
    "intermediate_size": size(22016),
    "max_position_embeddings": size(32768),
    "num_key_value_heads": size_or_none(32),
    "use_sliding_window": flag(False),
    "sliding_window": size_or_none(4096),
    "max_window_layers": anything(28),
    "layer_types": anything(None),
}
MISTRAL = _COMMON | {
    "intermediate_size": size(14336),
    "max_position_embeddings": size(131072),
    "num_key_value_heads": size_or_none(8),
    "sliding_window": size_or_none(4096),
}


def llama(source: Source) -> Description:
    """Read a Llama."""
    values = source.fields(LLAMA)
    return _decoder(source, values, values["attention_bias"], values["attention_bias"])


def qwen2(source: Source) -> Description:
    """Read a Qwen2, whose projections of queries, keys and values have biases."""
    values = source.fields(QWEN2)
    count, window = values["num_hidden_layers"], values["sliding_window"]
    if not values["use_sliding_window"]:
        window = None
    kinds = values["layer_types"]
    if kinds is None:
        late = values["max_window_layers"]
        kinds = [
            "full_attention" if window is None or n < late else "sliding_attention"
            for n in range(count)
        ]
    if len(kinds) != count or not set(kinds) <= {"full_attention", "sliding_attention"}:
        raise InputError(
            f"{source.where}: expected full_attention or sliding_attention for each of {count} layers "
            f"as layer_types in config.json, got {kinds!r:.60}"
        )
    if window is None and "sliding_attention" in kinds:
        raise InputError(
            f"{source.where}: expected a sliding_window (and use_sliding_window) beside "
            "sliding_attention in config.json, got none: the library does not run such a model"
        )
    windows = [window if kind == "sliding_attention" else None for kind in kinds]
    return _decoder(source, values, True, False, windows)


def mistral(source: Source) -> Description:
    """Read a Mistral, all layers of which have the same window."""
    values = source.fields(MISTRAL)
    windows = [values["sliding_window"]] * values["num_hidden_layers"]
    return _decoder(source, values, False, False, windows)


def _decoder(
    source: Source,
    values: Mapping[str, Any],
    bias: bool,
    output_bias: bool,
    windows: list[int | None] | None = None,
) -> Description:
    d, heads, hidden = (
        values[name] for name in ("hidden_size", "num_attention_heads", "intermediate_size")
    )
    shared = values["num_key_value_heads"] or heads
    width = values["head_dim"] or d // heads
    if heads % shared:
        raise InputError(f"{source.where}: {heads} heads cannot share {shared} key heads equally")
    frequencies = rotary.frequencies(source, values, width)
    turn, small = rotary.rotation(frequencies), values["rms_norm_eps"]
    mlp_bias = values.get("mlp_bias", False)
    layers = []
    for number in range(values["num_hidden_layers"]):
        name = f"layers.{number}"
        projections = [
            source.linear(f"{name}.self_attn.{part}_proj", d, count * width, bias)
            for part, count in (("q", heads), ("k", shared), ("v", shared))
        ]
        attention = attention_of_source(
            source,
            [weights for weights, _ in projections],
            [own for _, own in projections],
            *source.linear(f"{name}.self_attn.o_proj", heads * width, d, output_bias),
            heads,
            scale=width**-0.5,
            key_heads=shared,
            rotary=turn,
        )
        up, down, gate = (
            source.linear(f"{name}.mlp.{part}_proj", *shape, mlp_bias)
            for part, shape in (("up", (d, hidden)), ("down", (hidden, d)), ("gate", (d, hidden)))
        )
        layers.append(
            Encoder(
                attention,
                *(up[0], down[0], up[1], down[1]),
                activation=ACTIVATIONS[values["hidden_act"]],
                norm="pre",
                norm1=source.tensor(f"{name}.input_layernorm.weight", d),
                norm2=source.tensor(f"{name}.post_attention_layernorm.weight", d),
                epsilon=small,
                W_gate=gate[0],
                b_gate=gate[1],
                rms=True,
            )
        )
    words = source.tensor("embed_tokens.weight", None, d)
    stack = Stack(
        layers,
        heads,
        words,
        final=Stage().norm("rms_norm", small, source.tensor("norm.weight", d)),
        causal=True,
        windows=windows or (),
        frequencies=frequencies,
        trained=values["max_position_embeddings"],
    )
    return Description(source.family, source.where, stack, outputs=unembedding(source, words, values))
