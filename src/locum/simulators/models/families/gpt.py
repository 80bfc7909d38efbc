"""GPT-2, GPT-NeoX and OPT: decoders with layer norms and one product before their activation."""

from __future__ import annotations

import numpy as np

from locum.execution.arrays import Array
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
from locum.simulators.models.families.parts import (
    attention_of_linears,
    attention_of_source,
    feed_forward_of_linears,
    unembedding,
)
from locum.simulators.models.families.source import Source
from locum.simulators.models.families.stage import Stage
from locum.simulators.modules.encoder import Encoder

GPT2 = {
    "n_embd": size(768, "hidden_size"),
    "n_layer": size(12, "num_hidden_layers"),
    "n_head": size(12, "num_attention_heads"),
    "n_positions": size(1024, "max_position_embeddings"),
    "n_ctx": size_or_none(None),
    "n_inner": size_or_none(None),
    "activation_function": activation("gelu_new"),
    "layer_norm_epsilon": epsilon(1e-5),
    "scale_attn_weights": flag(True),
    "scale_attn_by_inverse_layer_idx": flag(False),
    "reorder_and_upcast_attn": only(False, "it computes scores in float32"),
    "add_cross_attention": only(False, "decoders alone are simulated"),
    "is_encoder_decoder": only(False, "decoders alone are simulated"),
    "tie_word_embeddings": flag(True),
}

GPT_NEOX = rotary.FIELDS | {
    "hidden_size": size(6144),
    "num_hidden_layers": size(44),
    "num_attention_heads": size(64),
    "intermediate_size": size(24576),
    "max_position_embeddings": size(2048),
    "hidden_act": activation("gelu"),
    "layer_norm_eps": epsilon(1e-5),
    "attention_bias": flag(True),
    "use_parallel_residual": flag(True),
    "rotary_pct": Field(0.25, "a number from 0 to 1", lambda v: type(v) in (int, float) and 0 < v <= 1),
    "rotary_emb_base": size_or_none(10000),
    "is_decoder": anything(False),
    "is_encoder_decoder": only(False, "decoders alone are simulated"),
    "tie_word_embeddings": flag(False),
}
OPT = {
    "hidden_size": size(768),
    "num_hidden_layers": size(12),
    "num_attention_heads": size(12),
    "ffn_dim": size(3072),
    "max_position_embeddings": size(2048),
    "word_embed_proj_dim": size(768),
    "do_layer_norm_before": flag(True),
    "_remove_final_layer_norm": flag(False),
    "activation_function": activation("relu"),
    "enable_bias": flag(True),
    "layer_norm_elementwise_affine": flag(True),
    "is_encoder_decoder": only(False, "decoders alone are simulated"),
    "tie_word_embeddings": flag(True),
}


def gpt2(source: Source) -> Description:
    """Read a GPT-2."""
    values = source.fields(GPT2)
    d, heads = values["n_embd"], values["n_head"]
    hidden = values["n_inner"] or 4 * d
    layers = []
    for number in range(values["n_layer"]):
        name = f"h.{number}"
        fused = source.tensor(f"{name}.attn.c_attn.weight", d, 3 * d)
        biases = source.tensor(f"{name}.attn.c_attn.bias", 3 * d)
        scale = (d // heads) ** -0.5 if values["scale_attn_weights"] else 1.0
        if values["scale_attn_by_inverse_layer_idx"]:
            scale /= number + 1
        attention = attention_of_source(
            source,
            [fused[:, part * d : (part + 1) * d] for part in range(3)],
            [biases[part * d : (part + 1) * d] for part in range(3)],
            source.tensor(f"{name}.attn.c_proj.weight", d, d),
            source.tensor(f"{name}.attn.c_proj.bias", d),
            heads,
            scale=scale,
        )
        layers.append(
            Encoder(
                attention,
                source.tensor(f"{name}.mlp.c_fc.weight", d, hidden),
                source.tensor(f"{name}.mlp.c_proj.weight", hidden, d),
                source.tensor(f"{name}.mlp.c_fc.bias", hidden),
                source.tensor(f"{name}.mlp.c_proj.bias", d),
                ACTIVATIONS[values["activation_function"]],
                "pre",
                norm1=source.norm(f"{name}.ln_1", d),
                norm2=source.norm(f"{name}.ln_2", d),
                epsilon=values["layer_norm_epsilon"],
            )
        )
    longest = values["n_positions"]
    words = source.tensor("wte.weight", None, d)
    stack = Stack(
        layers,
        heads,
        words,
        Stage().add("positions"),
        source.tensor("wpe.weight", longest, d),
        final=source.layer_norm(Stage(), "ln_f", d, values["layer_norm_epsilon"]),
        causal=True,
        longest=longest,
    )
    return Description("gpt2", source.where, stack, outputs=unembedding(source, words, values))


def gpt_neox(source: Source) -> Description:
    """Read a GPT-NeoX: rotary positions on a part of the columns, both parts of a layer in parallel."""
    values = source.fields(GPT_NEOX)
    d, heads, hidden = (
        values[name] for name in ("hidden_size", "num_attention_heads", "intermediate_size")
    )
    width, small, bias = d // heads, values["layer_norm_eps"], values["attention_bias"]
    own = values | {"rope_theta": values["rope_theta"] or values["rotary_emb_base"]}
    frequencies = rotary.frequencies(source, own, width, values["rotary_pct"])
    turn = rotary.rotation(frequencies)
    layers = []
    for number in range(values["num_hidden_layers"]):
        name = f"layers.{number}"
        # Of each head the queries, keys and values lie together.
        fused = source.tensor(f"{name}.attention.query_key_value.weight", 3 * d, d)
        split = fused.reshape(heads, 3, width, d)
        biases = [None] * 3
        if bias:
            rows = source.tensor(f"{name}.attention.query_key_value.bias", 3 * d)
            biases = [rows.reshape(heads, 3, width)[:, part].reshape(d) for part in range(3)]
        attention = attention_of_source(
            source,
            [split[:, part].reshape(d, d).T for part in range(3)],
            biases,
            *source.linear(f"{name}.attention.dense", d, d, bias),
            heads,
            scale=width**-0.5,
            rotary=turn,
        )
        inner, outer = (f"{name}.mlp.dense_{which}" for which in ("h_to_4h", "4h_to_h"))
        layers.append(
            Encoder(
                attention,
                *feed_forward_of_linears(source, inner, outer, d, hidden),
                activation=ACTIVATIONS[values["hidden_act"]],
                norm="pre",
                norm1=source.norm(f"{name}.input_layernorm", d),
                norm2=source.norm(f"{name}.post_attention_layernorm", d),
                epsilon=small,
                parallel=values["use_parallel_residual"],
            )
        )
    words = source.tensor("embed_in.weight", None, d)
    final = source.layer_norm(Stage(), "final_layer_norm", d, small)
    stack = Stack(
        layers,
        heads,
        words,
        final=final,
        causal=True,
        frequencies=frequencies,
        trained=values["max_position_embeddings"],
    )
    return Description("gpt_neox", source.where, stack, outputs=unembedding(source, words, values))


def opt(source: Source) -> Description:
    """Read an OPT: positions count the tokens that are not padding, from the third row on."""
    values = source.fields(OPT)
    d, heads, hidden = (values[name] for name in ("hidden_size", "num_attention_heads", "ffn_dim"))
    narrow, bias, before = (
        values[name] for name in ("word_embed_proj_dim", "enable_bias", "do_layer_norm_before")
    )
    affine = values["layer_norm_elementwise_affine"]

    def norm(name: str) -> tuple[Array, Array] | None:
        return source.norm(name, d) if affine else None

    layers = []
    for number in range(values["num_hidden_layers"]):
        name = f"decoder.layers.{number}"
        parts = [f"{name}.self_attn.{part}_proj" for part in ("q", "k", "v", "out")]
        layers.append(
            Encoder(
                attention_of_linears(source, parts, d, heads, bias=bias, output_bias=bias),
                *feed_forward_of_linears(source, f"{name}.fc1", f"{name}.fc2", d, hidden, bias),
                activation=ACTIVATIONS[values["activation_function"]],
                norm="pre" if before else "post",
                norm1=norm(f"{name}.self_attn_layer_norm"),
                norm2=norm(f"{name}.final_layer_norm"),
                epsilon=1e-5,
            )
        )
    words = source.tensor("decoder.embed_tokens.weight", None, narrow)
    embedding, final = Stage(), Stage()
    if narrow != d:
        embedding.product(source.linear("decoder.project_in", narrow, d, False)[0])
    if before and not values["_remove_final_layer_norm"]:
        final.norm("layer_norm", 1e-5, *(norm("decoder.final_layer_norm") or (None, None)))
    if narrow != d:
        final.product(source.linear("decoder.project_out", d, narrow, False)[0])
    longest = values["max_position_embeddings"]
    stack = Stack(
        layers,
        heads,
        words,
        embedding.add("positions"),
        source.tensor("decoder.embed_positions.weight", longest + 2, d),
        lambda ids, mask: np.asarray(mask.cumsum(axis=1) * mask + 1, dtype=np.int64),
        final=final,
        causal=True,
        longest=longest,
    )
    return Description("opt", source.where, stack, outputs=unembedding(source, words, values))
