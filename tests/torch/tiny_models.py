"""Tiny random models of the transformers library, and inputs for them."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

_TEXT = {"vocab_size": 12, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
_SIZES = {"hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 6}
_GPT2 = {"n_embd": 4, "n_layer": 1, "n_head": 2, "n_positions": 8}
_T5 = {"d_model": 4, "d_kv": 2, "d_ff": 6, "num_layers": 1, "num_heads": 2, "dropout_rate": 0.1}
_BART = {
    "d_model": 4,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 6,
    "decoder_ffn_dim": 6,
    "max_position_embeddings": 8,
}


class Kind(NamedTuple):
    """A class of models: its name, its config, and the modules that have attention patterns."""

    name: str
    config: dict[str, Any]
    attention: str


#: The dropout of all kinds is 0.1.
KINDS = {
    "bert": Kind("Bert", _TEXT | _SIZES | {"max_position_embeddings": 8}, "*.attention.self"),
    "gpt2": Kind("GPT2", _TEXT | _GPT2, "h.*.attn"),
    "llama": Kind(
        "Llama",
        _TEXT | _SIZES | {"hidden_size": 8, "num_attention_heads": 4, "num_key_value_heads": 2},
        "*.self_attn",
    ),
    "vit": Kind("ViT", _SIZES | {"image_size": 4, "patch_size": 2, "num_channels": 1}, "*.attention"),
    "t5": Kind("T5", _TEXT | _T5, "*.SelfAttention"),
    "bart": Kind("Bart", _TEXT | _BART, "*.self_attn"),
}
#: How configs name the probability of dropout of attention where its default is 0.
_DROPOUT = {
    "llama": {"attention_dropout": 0.1},
    "vit": {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1},
    "bart": {"attention_dropout": 0.1, "activation_dropout": 0.1},
}


def make_model(kind: str, **config: Any) -> Any:
    """Return a random model with dropout 0.1, in evaluation mode; ``config`` overrides its config."""
    name, own, _ = KINDS[kind]
    chosen = getattr(transformers, f"{name}Config")(**own | _DROPOUT.get(kind, {}) | config)
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}Model")(chosen).eval()
    for parameter in model.parameters():  # the library's initial values are close to 0
        torch.nn.init.normal_(parameter, std=0.5)
    return model


def make_inputs(kind: str, batch: int = 1, length: int = 3, dtype: Any = None) -> dict[str, Any]:
    """Return the arguments of a model."""
    generator = torch.Generator().manual_seed(batch * 10 + length)
    if kind == "vit":
        pixels = torch.randn((batch, 1, 4, 4), generator=generator, dtype=dtype)
        return {"pixel_values": pixels, "interpolate_pos_encoding": False}
    ids = torch.randint(3, 12, (batch, length), generator=generator)
    decoder = {"decoder_input_ids": ids.flip(1)} if kind in ("t5", "bart") else {}
    return {"input_ids": ids, **decoder, "use_cache": False}
