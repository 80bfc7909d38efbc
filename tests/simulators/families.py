"""Tiny random models of every family, and how far U is from what the transformers library computes."""

from __future__ import annotations

import copy
import functools
from typing import Any, NamedTuple

import pytest

import locum

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

#: Ids that a config of a tiny vocabulary must not leave to its defaults.
SMALL = {"vocab_size": 23, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}


class Case(NamedTuple):
    """One tiny model: its class, what differs in its config, and whether its inputs are padded."""

    kind: str
    config: dict[str, Any]
    padding: str = ""


def gpt2(**options: Any) -> dict[str, Any]:
    return SMALL | {"n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 12} | options


def opt(**options: Any) -> dict[str, Any]:
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 6}
    return SMALL | sizes | {"max_position_embeddings": 12, "word_embed_proj_dim": 8} | options


def neox(**options: Any) -> dict[str, Any]:
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    return SMALL | sizes | {"intermediate_size": 6} | options


def llama(**options: Any) -> dict[str, Any]:
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4}
    return SMALL | sizes | {"num_key_value_heads": 2, "intermediate_size": 6, "head_dim": 2} | options


def bert(**options: Any) -> dict[str, Any]:
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
    return SMALL | sizes | {"intermediate_size": 6, "max_position_embeddings": 12} | options


def distilbert(**options: Any) -> dict[str, Any]:
    sizes = {"dim": 8, "n_layers": 2, "n_heads": 2, "hidden_dim": 6}
    return SMALL | sizes | {"max_position_embeddings": 12} | options


def of_roberta(name: str) -> list[Case]:
    return [
        Case(f"{name}Model", bert(), "right"),
        Case(f"{name}ForMaskedLM", bert(tie_word_embeddings=False, hidden_act="relu"), "left"),
        Case(f"{name}Model", bert(pad_token_id=0, num_attention_heads=4, type_vocab_size=1)),
        Case(f"{name}ForMaskedLM", bert(hidden_act="gelu_new", layer_norm_eps=0.1)),
    ]


def vit(**options: Any) -> dict[str, Any]:
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
    images = {"intermediate_size": 6, "image_size": 6, "patch_size": 2, "num_channels": 2}
    return sizes | images | {"pooler_output_size": 8} | options


def t5(**options: Any) -> dict[str, Any]:
    sizes = {"d_model": 8, "d_kv": 3, "d_ff": 6, "num_layers": 2, "num_heads": 2}
    more = {"relative_attention_num_buckets": 6, "relative_attention_max_distance": 7}
    return SMALL | sizes | more | {"decoder_start_token_id": 0} | options


def bart(**options: Any) -> dict[str, Any]:
    sizes = {"d_model": 8, "encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": 12}
    sides = {f"{side}_{part}": 2 for side in ("encoder", "decoder") for part in ("attention_heads",)}
    hidden = {"encoder_ffn_dim": 5, "decoder_ffn_dim": 6, "decoder_start_token_id": 0}
    return SMALL | sizes | sides | hidden | {"forced_eos_token_id": 1} | options


LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 100.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
PARTLY = {"rope_type": "default", "rope_theta": 50.0, "partial_rotary_factor": 0.5}
LINEAR = {"rope_type": "linear", "rope_theta": 100.0, "factor": 3.0}

CASES: dict[str, list[Case]] = {
    "bert": [
        Case("BertModel", bert(), "right"),
        Case("BertForMaskedLM", bert(hidden_act="relu"), "left"),
        Case("BertModel", bert(num_attention_heads=4, hidden_act="silu", type_vocab_size=3)),
        Case("BertForMaskedLM", bert(tie_word_embeddings=False, layer_norm_eps=0.1)),
    ],
    "distilbert": [
        Case("DistilBertModel", distilbert(), "right"),
        Case("DistilBertForMaskedLM", distilbert(activation="relu"), "left"),
        Case("DistilBertModel", distilbert(n_heads=1, sinusoidal_pos_embds=True)),
        Case("DistilBertForMaskedLM", distilbert(tie_word_embeddings=False, n_layers=1)),
    ],
    "roberta": of_roberta("Roberta"),
    "xlm-roberta": of_roberta("XLMRoberta"),
    "camembert": of_roberta("Camembert"),
    "electra": [
        Case("ElectraModel", bert(embedding_size=6), "right"),
        Case("ElectraForMaskedLM", bert(embedding_size=6, hidden_act="relu"), "left"),
        Case("ElectraModel", bert(embedding_size=8, num_attention_heads=4)),
        Case("ElectraForMaskedLM", bert(embedding_size=4, tie_word_embeddings=False)),
    ],
    "albert": [
        Case("AlbertModel", bert(embedding_size=6, num_hidden_layers=3), "right"),
        Case("AlbertForMaskedLM", bert(embedding_size=6, hidden_act="relu"), "left"),
        Case("AlbertModel", bert(embedding_size=8, num_hidden_layers=4, num_hidden_groups=2)),
        Case("AlbertForMaskedLM", bert(embedding_size=4, inner_group_num=2)),
    ],
    "mpnet": [
        Case("MPNetModel", bert(pad_token_id=1), "right"),
        Case("MPNetForMaskedLM", bert(pad_token_id=1, hidden_act="relu"), "left"),
        Case("MPNetModel", bert(pad_token_id=1, num_attention_heads=4)),
        Case("MPNetForMaskedLM", bert(pad_token_id=1, tie_word_embeddings=False)),
    ],
    "vit": [
        Case("ViTModel", vit()),
        Case("ViTForImageClassification", vit(num_labels=3, hidden_act="relu")),
        Case("ViTModel", vit(qkv_bias=False, pooler_output_size=5, pooler_act="relu")),
        Case("ViTModel", vit(image_size=(4, 6), patch_size=(2, 3), num_attention_heads=4)),
    ],
    "t5": [
        Case("T5ForConditionalGeneration", t5(), "right"),
        Case("T5Model", t5(feed_forward_proj="gated-gelu", num_decoder_layers=1), "left"),
        Case("T5EncoderModel", t5(feed_forward_proj="gated-silu")),
        Case("T5ForConditionalGeneration", t5(tie_word_embeddings=False, num_heads=1)),
    ],
    "bart": [
        Case("BartForConditionalGeneration", bart(), "right"),
        Case("BartModel", bart(scale_embedding=True, activation_function="relu"), "left"),
        Case("BartModel", bart(encoder_attention_heads=4, decoder_layers=1)),
        Case("BartForConditionalGeneration", bart(tie_word_embeddings=False)),
    ],
    "gpt2": [
        Case("GPT2LMHeadModel", gpt2()),
        Case("GPT2Model", gpt2(n_head=4, activation_function="relu", n_inner=5), "right"),
        Case("GPT2LMHeadModel", gpt2(tie_word_embeddings=False, scale_attn_weights=False), "left"),
        Case("GPT2LMHeadModel", gpt2(n_head=1, scale_attn_by_inverse_layer_idx=True)),
    ],
    "opt": [
        Case("OPTForCausalLM", opt(), "left"),
        Case("OPTModel", opt(do_layer_norm_before=False, activation_function="gelu"), "right"),
        Case("OPTForCausalLM", opt(word_embed_proj_dim=4, tie_word_embeddings=False)),
        Case("OPTModel", opt(enable_bias=False, layer_norm_elementwise_affine=False)),
        Case("OPTModel", opt(_remove_final_layer_norm=True, num_attention_heads=4)),
    ],
    "gpt_neox": [
        Case("GPTNeoXForCausalLM", neox()),
        Case("GPTNeoXModel", neox(use_parallel_residual=False, hidden_act="gelu_new"), "right"),
        Case("GPTNeoXForCausalLM", neox(rope_parameters=PARTLY, tie_word_embeddings=True), "left"),
        Case("GPTNeoXModel", neox(attention_bias=False, num_attention_heads=1)),
    ],
    "llama": [
        Case("LlamaForCausalLM", llama()),
        Case("LlamaModel", llama(attention_bias=True, mlp_bias=True, hidden_act="gelu"), "left"),
        Case("LlamaForCausalLM", llama(num_key_value_heads=1, rope_parameters=LLAMA3), "right"),
        Case("LlamaForCausalLM", llama(num_key_value_heads=4, tie_word_embeddings=True)),
        Case("LlamaModel", llama(head_dim=6, rope_parameters=LINEAR)),
    ],
    "qwen2": [
        Case("Qwen2ForCausalLM", llama()),
        Case("Qwen2Model", llama(use_sliding_window=True, sliding_window=3, max_window_layers=1)),
        Case("Qwen2ForCausalLM", llama(num_key_value_heads=4, tie_word_embeddings=True), "right"),
        Case("Qwen2ForCausalLM", llama(num_key_value_heads=1), "left"),
    ],
    "mistral": [
        Case("MistralForCausalLM", llama(sliding_window=3)),
        Case("MistralModel", llama(sliding_window=2), "left"),
        Case("MistralForCausalLM", llama(sliding_window=None, num_key_value_heads=1), "right"),
        Case("MistralForCausalLM", llama(head_dim=4, sliding_window=5), "right"),
    ],
}


def built(case: Case, dtype: Any, seed: int = 0) -> Any:
    """Build the model, with parameters that are all random: norms and biases, too."""
    kind = getattr(transformers, case.kind)
    torch.manual_seed(seed)
    model = kind(kind.config_class(**case.config)).to(dtype).eval()
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, dtype=dtype) * 0.4
    model.tie_weights()
    return model


def inputs_of(case: Case, seed: int = 0, n: int = 6) -> dict[str, Any]:
    """Random ids of two texts, one of them padded if the case says so."""
    torch.manual_seed(seed)
    if "image_size" in case.config:
        side = case.config["image_size"]
        sides = side if isinstance(side, tuple) else (side, side)
        return {"pixel_values": torch.randn(2, case.config["num_channels"], *sides)}
    inputs = {"input_ids": torch.randint(3, case.config["vocab_size"], (2, n))}
    if case.config.get("type_vocab_size", 1) > 1:
        inputs["token_type_ids"] = torch.randint(0, 2, (2, n))
    if case.padding:
        mask = torch.ones(2, n).long()
        mask[1, n - 2 :] = 0
        if case.padding == "left":
            mask = mask.flip(1)
        inputs["attention_mask"] = mask
        inputs["input_ids"] = inputs["input_ids"].where(mask != 0, case.config["pad_token_id"])
    if case.kind.startswith(("T5", "Bart")) and case.kind != "T5EncoderModel":
        inputs["decoder_input_ids"] = torch.randint(3, case.config["vocab_size"], (2, 4))
    return inputs


def in_full_precision(model: Any) -> Any:
    """Copy a model with norms by the root mean square that compute in its dtype.

    The library's own round to float32, whatever the dtype, which no comparison in float64 survives.
    """

    def forward(norm: Any, x: Any) -> Any:
        return norm.weight * x * (x.square().mean(-1, keepdim=True) + norm.variance_epsilon).rsqrt()

    copied = copy.deepcopy(model)
    for part in copied.modules():
        if type(part).__name__.endswith(("RMSNorm", "T5LayerNorm")):
            part.forward = functools.partial(forward, part)
    return copied


def errors(case: Case, dtype: Any) -> dict[str, float]:
    """The greatest difference of each output, over the tokens that count."""
    model, inputs = built(case, dtype), inputs_of(case)
    with torch.no_grad():
        expected = in_full_precision(model)(
            **{name: x.to(dtype) if x.is_floating_point() else x for name, x in inputs.items()}
        )
    outputs = locum.simulate(model, inputs)
    counts = inputs.get("attention_mask", torch.ones(2, 1)).bool()
    result = {}
    for name in ("last_hidden_state", "logits", "pooler_output", "encoder_last_hidden_state"):
        theirs, ours = getattr(expected, name, None), getattr(outputs, name)
        if theirs is None:
            assert ours is None or name == "last_hidden_state", f"{name}: {case}"
            continue
        assert ours is not None, f"{name}: {case}"
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        difference = (ours - theirs).abs()
        if name in ("last_hidden_state", "logits") and counts.shape == difference.shape[:2]:
            difference = difference[counts]
        result[name] = float(difference.max())
    assert result
    return result
