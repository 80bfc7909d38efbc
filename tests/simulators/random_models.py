"""Random models of the transformers library, with options that are simulated and options that are not.

``verdict`` says what came of one: refused, or right; anything accepted and wrong raises.
"""

from __future__ import annotations

import copy
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locum
from locum.errors import InputError
from tests.simulators.families import CASES, Case, built, in_full_precision, inputs_of

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

ACTIVATIONS = (
    *("gelu", "relu", "silu", "tanh", "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "quick_gelu"),
    *("mish", "gelu_10", "relu2", "relu6", "linear", "sigmoid", "laplace", "leaky_relu", "swish"),
)
ROPES: list[dict[str, Any]] = [
    {"rope_type": "default", "rope_theta": 30.0},
    {"rope_type": "linear", "rope_theta": 100.0, "factor": 2.0},
    {"rope_type": "dynamic", "rope_theta": 100.0, "factor": 2.0},
    {"rope_type": "yarn", "rope_theta": 100.0, "factor": 2.0, "original_max_position_embeddings": 8},
    {
        "rope_type": "llama3",
        "rope_theta": 50.0,
        "factor": 4.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 2.0,
        "original_max_position_embeddings": 16,
    },
]
#: Fields that may be drawn, by their names, if a config has them.
DRAWN: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("hidden_act", "activation_function", "activation"), ACTIVATIONS),
    "feed_forward_proj": ("relu", "gated-gelu", "gated-silu", "gelu", "gated-relu", "mish"),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers"), (1, 2, 3)),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), (1, 2, 4)),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), (1, 2, 4)),
    "num_key_value_heads": (1, 2, 4),
    "head_dim": (2, 4, 6),
    "d_kv": (2, 5),
    **dict.fromkeys(("intermediate_size", "hidden_dim", "ffn_dim", "n_inner", "d_ff"), (3, 7)),
    **dict.fromkeys(("layer_norm_eps", "rms_norm_eps", "layer_norm_epsilon"), (1e-05, 1e-12, 0.1)),
    "tie_word_embeddings": (True, False),
    "sliding_window": (None, 1, 2, 4),
    "use_sliding_window": (True, False),
    "max_window_layers": (0, 1),
    **dict.fromkeys(("attention_bias", "mlp_bias", "qkv_bias", "enable_bias"), (True, False)),
    **dict.fromkeys(("use_parallel_residual", "scale_embedding"), (True, False)),
    **dict.fromkeys(("do_layer_norm_before", "layer_norm_elementwise_affine"), (True, False)),
    **dict.fromkeys(("scale_attn_weights", "scale_attn_by_inverse_layer_idx"), (True, False)),
    **dict.fromkeys(("reorder_and_upcast_attn", "_remove_final_layer_norm"), (True, False)),
    **dict.fromkeys(("is_decoder", "add_cross_attention"), (False, False, True)),
    "embedding_size": (4, 8),
    "word_embed_proj_dim": (4, 8),
    "type_vocab_size": (1, 2, 3),
    "num_hidden_groups": (1, 2),
    "inner_group_num": (1, 2),
    "relative_attention_num_buckets": (4, 8, 32),
    "relative_attention_max_distance": (8, 20),
    "pad_token_id": (0, 1, 2),
    "patch_size": (1, 2, 3),
    "chunk_size_feed_forward": (0, 2),
    "rope_parameters": tuple(ROPES),
}
#: Heads of other tasks, which are not simulated.
OTHERS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")


def random_case(seed: int) -> tuple[Case, np.random.Generator]:
    """Draw a family, a class and some fields of its config."""
    chance = np.random.default_rng(seed)
    family = list(CASES)[chance.integers(len(CASES))]
    first = CASES[family][chance.integers(len(CASES[family]))]
    kind = first.kind
    if chance.random() < 0.08:
        stem = next(c.kind for c in CASES[family] if c.kind.endswith("Model")).removesuffix("Model")
        kind = stem + str(chance.choice(OTHERS))
    if not hasattr(transformers, kind):
        kind = first.kind
    known = getattr(transformers, kind).config_class().to_dict()
    config = dict(first.config)
    names = [name for name in DRAWN if name in known]
    for name in chance.choice(names, size=min(len(names), int(chance.integers(0, 5))), replace=False):
        config[str(name)] = DRAWN[name][chance.integers(len(DRAWN[name]))]
    if chance.random() < 0.04:
        config["attention_sinks"] = 2
    return Case(kind, config, str(chance.choice(["", "left", "right"]))), chance


def changed(model: Any, chance: np.random.Generator) -> bool:
    """Now and then change a part of the model, so that it computes something else."""
    if chance.random() > 0.1:
        return False
    parts = [part for part in model.modules() if isinstance(part, torch.nn.Linear)]
    part = parts[chance.integers(len(parts))]
    match chance.integers(4):
        case 3:
            inner, layers = (
                getattr(model, model.base_model_prefix, model),
                model.config.num_hidden_layers,
            )
            if inner is model or layers == 1:
                return False
            inner.config = copy.deepcopy(model.config)
            inner.config.num_hidden_layers = layers - 1
        case 0:
            part.register_forward_hook(lambda module, inputs, output: output * 1.5)
        case 1:
            part.forward = lambda x: torch.nn.functional.linear(x, part.weight, part.bias) * 1.5
        case _:
            norms = [m for m in model.modules() if isinstance(m, torch.nn.LayerNorm)]
            if not norms:
                return False
            norms[chance.integers(len(norms))].eps = 0.5
    return True


def verdict(seed: int) -> str:
    """Run one random model by the library and by U: "refused", "right", or "the library refuses"."""
    case, chance = random_case(seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, inputs = built(case, torch.float64, seed), inputs_of(case, seed)
            was_changed = changed(model, chance)
            with torch.no_grad():
                expected = in_full_precision(model)(**_double(inputs))
    except Exception:  # the library raises whatever it likes for configs that make no model
        return "the library refuses"
    as_folder = not was_changed and chance.random() < 0.2
    try:
        if as_folder:
            with tempfile.TemporaryDirectory() as folder:
                model.save_pretrained(folder)
                if chance.random() < 0.4:
                    expected = rounded(model, Path(folder), inputs)
                outputs = locum.simulate(folder, inputs, dtype="float64")
        else:
            outputs = locum.simulate(model, inputs)
    except InputError:
        return "refused"
    assert not was_changed, f"{seed}: a changed model was accepted: {case}"
    counts = inputs.get("attention_mask", torch.ones(2, 1)).bool()
    for name in ("last_hidden_state", "logits", "pooler_output"):
        theirs, ours = getattr(expected, name, None), getattr(outputs, name)
        if theirs is None or ours is None:
            continue
        difference = (ours - theirs).abs()
        if difference.ndim == 3 and counts.shape == difference.shape[:2]:
            difference, theirs = difference[counts], theirs[counts]
        scale = 1 + float(theirs.abs().max())
        assert float(difference.max()) <= 1e-9 * scale, f"{seed}: {name}, {case}"
    if outputs.logits is not None and "input_ids" in inputs and chance.random() < 0.3:
        require_same_text(model, inputs, f"{seed}: {case}")
    return "right"


def rounded(model: Any, folder: Path, inputs: dict[str, Any]) -> Any:
    """Let the config of a folder name a half type; gives what the library computes of it."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"dtype": "bfloat16"}))
    loaded = type(model).from_pretrained(folder).double().eval()
    with torch.no_grad():
        return in_full_precision(loaded)(**_double(inputs))


def require_same_text(model: Any, inputs: dict[str, Any], what: str) -> None:
    """Let both write a few tokens behind each text, if both do."""
    tokens = {name: x for name, x in inputs.items() if name in ("input_ids", "attention_mask")}
    pad, encodes = model.config.pad_token_id, model.config.is_encoder_decoder
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            expected = in_full_precision(model).generate(**tokens, max_new_tokens=4, do_sample=False)
        result = locum.generate(model, tokens, 4)
    except (InputError, TypeError, AttributeError, ValueError):  # one of them does not write
        return
    begin = 1 if encodes else tokens["input_ids"].shape[1]
    for row, one in zip(expected[:, begin:].tolist(), result, strict=True):
        assert row == one.ids + [pad] * (len(row) - len(one.ids)), f"{what}: {row}, {one.ids}"


def _double(inputs: dict[str, Any]) -> dict[str, Any]:
    return {name: x.double() if x.is_floating_point() else x for name, x in inputs.items()}
