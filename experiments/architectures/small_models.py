"""Build small models of the types in the transformers library, with random weights.

The sizes in a configuration are reduced according to the names of its fields, such as widths, layers,
heads, vocabularies and images. No model type is treated specially. If the library rejects the small
configuration of a type, the type is reported as not built.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

import torch
import transformers
from transformers.models.auto import modeling_auto

#: For each task, the mapping of the library from model types to the classes of their models.
TASKS: Mapping[str, str] = {
    "base": "MODEL_MAPPING_NAMES",
    "causal LM": "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "seq2seq": "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "speech seq2seq": "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES",
    "masked LM": "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    "classification": "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES",
    "token classification": "MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES",
    "question answering": "MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES",
    "image classification": "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES",
    "image and text": "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES",
}
_VOCABULARY, _POSITIONS, _IMAGE = 99, 64, 16
#: Fields that are omitted: the library derives them, or they refer to parts that a small model lacks.
_DERIVED = (
    "transformers_version", "model_type", "architectures", "dtype", "torch_dtype", "out_features",
    "out_indices", "stage_names", "per_layer_config", "num_labels",
)  # fmt: skip
_WIDTHS = (
    "hidden_size|d_model|n_embd|embed_dim|embedding_dim|embedding_size|projection_dim|dim|width|d_embed|"
    "hidden_dim|input_dim|output_dim|embed_size|model_dim|word_embed_proj_dim|projector_dim|"
    "projection_size|channels"
)
#: Maximum values of integer fields, by a pattern for the whole name. The first match is used.
_SIZES: tuple[tuple[str, int], ...] = (
    (r".*(key_value|kv)_heads|num_kv_heads|n_head_kv|multi_query_group_num", 2),
    (r"(.*_)?(num_|n_)?(attention_)?heads?|n_head|.*attention_heads", 4),
    (r"(.*_)?(head_dim|d_kv|head_size|attention_head_size|qk_nope_head_dim|v_head_dim)", 8),
    (r"(.*_)?(qk_rope_head_dim|rotary_dim)", 4),
    (r"q_lora_rank|kv_lora_rank|.*lora_rank|dt_rank|time_step_rank", 8),
    (r".*(intermediate|ffn|d_ff|n_inner|inner|mlp_dim|dim_feedforward|feedforward|feed_forward).*", 64),
    (r"hidden_dim", 64),
    (r"(.*_)?vocab_size(_.*)?", _VOCABULARY),
    (r"type_vocab_size", 2),
    (
        r".*(max_position|max_source_positions|max_target_positions|n_positions|n_ctx|seq_len).*",
        _POSITIONS,
    ),
    (r".*(num_experts_per_tok|num_experts_per_token|top_k|topk|moe_k|k)", 2),
    (r".*(n_group|topk_group)", 1),
    (r".*(experts?|num_local_experts|n_routed_experts).*", 4),
    (r"(.*_)?(num_|n_)?(hidden_)?layers?|depth|n_layers?|num_blocks|.*_layers", 2),
    (r"(.*_)?(image|input|crop)_size|img_size|image_resolution", _IMAGE),
    (r"(.*_)?patch_size", 4),
    (r"num_mel_bins|feature_size|num_mels", 8),
    (rf"(.*_)?({_WIDTHS})", 32),
)


def shrink(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a model configuration, with sizes reduced to small values."""
    small: dict[str, Any] = {}
    for name, value in values.items():
        if name in _DERIVED:
            continue
        small[name] = _shrink_field(name, value)
    layers = next(
        (small[key] for key in ("num_hidden_layers", "n_layer", "num_layers") if key in small), 2
    )
    for name, value in small.items():
        if isinstance(value, list) and name in ("layer_types", "mlp_layer_types", "layers_block_type"):
            small[name] = _spread(value, layers)
    return small


def _shrink_field(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return shrink(value) if "config" in name else dict(value)
    if isinstance(value, bool) or not isinstance(value, (int, list, tuple)):
        return value
    if isinstance(value, (list, tuple)):
        return value
    if name.endswith(("token_id", "token_index")):
        return value if value < _VOCABULARY else value % 10 + 3
    for pattern, size in _SIZES:
        if re.fullmatch(pattern, name):
            return min(value, size) if value > 0 else value
    return value


def _spread(values: list[Any], count: int) -> list[Any]:
    """Return ``count`` entries of a list, with as many different values as possible."""
    kinds = list(dict.fromkeys(values))
    return [kinds[i % len(kinds)] for i in range(count)] if kinds else []


def model_types(task: str) -> list[str]:
    """Return the model types for which the library provides a class for this task."""
    return sorted(getattr(modeling_auto, TASKS[task]))


def build(model_type: str, task: str, seed: int = 0) -> torch.nn.Module:
    """Return a small model of this type with random weights, in evaluation mode."""
    config_class = transformers.CONFIG_MAPPING[model_type]
    config = config_class(**shrink(config_class().to_dict()))
    if getattr(config, "pad_token_id", None) is None:
        config.pad_token_id = 0
    names = getattr(modeling_auto, TASKS[task])[model_type]
    name = names if isinstance(names, str) else names[0]
    torch.manual_seed(seed)
    model: torch.nn.Module = getattr(transformers, name)(config).eval()
    enlarge_weights(model, seed)
    return model


def enlarge_weights(model: torch.nn.Module, seed: int) -> None:
    """Add noise of standard deviation 0.1 to all weights, so that every part influences the result."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))


def sample_inputs(model: torch.nn.Module, seed: int = 0) -> dict[str, torch.Tensor]:
    """Return random inputs for a model, chosen by the parameter names of its method ``forward``."""
    generator = torch.Generator().manual_seed(seed)
    names = inspect.signature(model.forward).parameters
    config = model.config
    tokens = torch.randint(5, 90, (2, 7), generator=generator)
    inputs: dict[str, torch.Tensor] = {}
    if "input_ids" in names:
        inputs["input_ids"] = tokens
        if "attention_mask" in names:
            mask = torch.ones_like(tokens)
            mask[1, 5:] = 0
            inputs["attention_mask"] = mask
    if "pixel_values" in names and model.main_input_name in ("pixel_values", "input_ids"):
        vision = getattr(config, "vision_config", None) or config
        size = getattr(vision, "image_size", _IMAGE)
        height, width = (size, size) if isinstance(size, int) else tuple(size)
        channels = getattr(vision, "num_channels", 3)
        needed = (
            model.main_input_name == "pixel_values" or names["pixel_values"].default is inspect._empty
        )
        has_vision = hasattr(config, "vision_config") and not hasattr(config, "image_token_id")
        if needed or has_vision:
            inputs["pixel_values"] = torch.randn(2, channels, height, width, generator=generator)
    if "input_features" in names:
        bins = getattr(config, "num_mel_bins", 8)
        length = 2 * getattr(config, "max_source_positions", 20)
        inputs["input_features"] = torch.randn(2, bins, length, generator=generator)
        inputs.pop("attention_mask", None)
    if "input_values" in names and "input_ids" not in names:
        inputs["input_values"] = torch.randn(2, 800, generator=generator)
    if "decoder_input_ids" in names:
        inputs["decoder_input_ids"] = tokens[:, :4]
    return inputs
