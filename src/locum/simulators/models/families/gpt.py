"""GPT-2: learned positions, norms before each part, fused projections of queries, keys and values."""

from __future__ import annotations

from locum.simulators.models.families.description import Description, Stack
from locum.simulators.models.families.fields import (
    activation,
    epsilon,
    flag,
    only,
    size,
    size_or_none,
)
from locum.simulators.models.families.parts import decoder_attention, unembedding
from locum.simulators.models.families.source import Source
from locum.simulators.models.families.stage import Stage
from locum.simulators.modules.encoder import Encoder

GPT2 = {
    "n_embd": size(768, "hidden_size"),
    "n_layer": size(12, "num_hidden_layers"),
    "n_head": size(12, "num_attention_heads"),
    "n_positions": size(1024, "max_position_embeddings"),
    "n_ctx": size_or_none(),
    "n_inner": size_or_none(),
    "activation_function": activation("gelu_new"),
    "layer_norm_epsilon": epsilon(1e-5),
    "scale_attn_weights": flag(True),
    "scale_attn_by_inverse_layer_idx": flag(False),
    "reorder_and_upcast_attn": only(False, "it computes scores in float32"),
    "add_cross_attention": only(False, "decoders alone are simulated"),
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
        attention = decoder_attention(
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
                values["activation_function"],
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
    logits = unembedding(source, words, values) if source.architecture == "GPT2LMHeadModel" else None
    return Description("gpt2", source.where, stack, logits=logits)
