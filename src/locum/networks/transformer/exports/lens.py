"""Export a compiled transformer to TransformerLens: configuration, weights and inputs.

In TransformerLens, all layers have the same d_head, d_mlp and number of heads. Smaller layers are
padded with zeros. The gated feed-forward of TransformerLens adds ``b_in`` after the product of gate and
input, whereas Locum adds ``b_in`` before. Since TransformerLens 4.0, neither the gated feed-forward nor
the unembedding has biases. The export therefore adds a last slot to the residual stream. This slot is
always 1, and these biases are read from it. The other slots keep their order.

The sink becomes a separate token, the last row of W_E, and inputs begin with it. Numbers are not ids,
so the input of a model on numbers is the residual stream: ``hooked(inputs, start_at_layer=0)``.

``tests/old/networks/test_lens.py`` tests the export with the installed version of TransformerLens.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from locum.errors import CompileError
from locum.networks.transformer.config import Config
from locum.networks.transformer.weights import HARD, Array, Weights


def settings(config: Config, weights: Weights) -> dict[str, Any]:
    """Return the fields of a ``HookedTransformerConfig``, with ``dtype`` as a string."""
    kind = _kind(weights)
    attentions = [layer.attention for layer in weights.layers if layer.attention is not None]
    feeds = [layer.feed_forward for layer in weights.layers if layer.feed_forward is not None]
    hidden = max((feed.W_out.shape[0] for feed in feeds), default=0)
    return {
        "n_layers": max(len(weights.layers), 1),
        "d_model": weights.W_E.shape[1] + 1,
        "n_ctx": weights.W_pos.shape[0],
        "d_head": max((part.W_Q.shape[2] for part in attentions), default=1),
        "n_heads": max((part.heads for part in attentions), default=1),
        # A gated feed-forward has one extra hidden unit, which adds b_out.
        "d_mlp": (hidden + 1 if kind == "glu" else hidden) or None,
        "act_fn": "gelu" if kind == "gelu" else "relu",
        "gated_mlp": kind == "glu",
        "attn_only": not feeds,
        "d_vocab": weights.W_E.shape[0] + config.sink,
        "d_vocab_out": weights.W_U.shape[1],
        "attention_dir": "causal" if config.causal else "bidirectional",
        "positional_embedding_type": "standard",
        "normalization_type": None,
        # Since 4.0 scores are always divided by √d_head; see ``state``.
        "use_attn_scale": True,
        "init_weights": False,
        "default_prepend_bos": False,
        "dtype": config.dtype,
    }


def state(config: Config, weights: Weights) -> dict[str, Array]:
    """Return the weights with the names of TransformerLens, padded to uniform shapes.

    TransformerLens divides scores by √d_head, so W_Q and b_Q are multiplied by √d_head.
    """
    sizes = settings(config, weights)
    d, heads, width = sizes["d_model"], sizes["n_heads"], sizes["d_head"]
    arrays = {
        "embed.W_E": _padded(weights.W_E, (sizes["d_vocab"], d)),
        "pos_embed.W_pos": _padded(weights.W_pos, (sizes["n_ctx"], d)),
        "unembed.W_U": _padded(weights.W_U, (d, sizes["d_vocab_out"])),
        "unembed.b_U": np.zeros_like(weights.b_U),
    }
    arrays["pos_embed.W_pos"][:, -1] = 1
    arrays["unembed.W_U"][-1] = weights.b_U
    shapes: dict[str, tuple[int, ...]] = {f"W_{name}": (heads, d, width) for name in "QKV"}
    shapes |= {f"b_{name}": (heads, width) for name in "QKV"}
    shapes |= {"W_O": (heads, width, d), "b_O": (d,)}
    for number in range(sizes["n_layers"]):
        layer = weights.layers[number] if weights.layers else None
        for name, shape in shapes.items():
            own = getattr(layer.attention, name) if layer and layer.attention else None
            scale = math.sqrt(width) if name.endswith("Q") else 1.0
            arrays[f"blocks.{number}.attn.{name}"] = scale * _padded(own, shape, config.dtype)
        if not sizes["attn_only"]:
            feed = layer.feed_forward if layer else None
            for name, array in _feed_forward(feed, sizes).items():
                arrays[f"blocks.{number}.mlp.{name}"] = array
    return arrays


def _feed_forward(feed: Any, sizes: dict[str, Any]) -> dict[str, Array]:
    d, hidden, dtype = sizes["d_model"], sizes["d_mlp"], sizes["dtype"]
    shapes = {"W_in": (d, hidden), "b_in": (hidden,), "W_out": (hidden, d), "b_out": (d,)}
    if sizes["gated_mlp"]:
        shapes["W_gate"] = (d, hidden)
    arrays = {
        name: _padded(None if feed is None else getattr(feed, name), shape, dtype)
        for name, shape in shapes.items()
    }
    if sizes["gated_mlp"]:
        # Biases are read from the slot that is 1; the last hidden unit is 1 and adds b_out.
        arrays["W_in"][-1] = arrays["b_in"]
        arrays["W_in"][-1, -1] = arrays["W_gate"][-1, -1] = 1
        arrays["W_out"][-1] = arrays["b_out"]
        arrays["b_in"], arrays["b_out"] = np.zeros_like(arrays["b_in"]), np.zeros_like(arrays["b_out"])
    return arrays


def inputs(config: Config, encoded: Any, stream: Array) -> Any:
    """Return the input array of TransformerLens for a batch.

    The array contains token ids, preceded by the id of the sink if there is one. For a model on
    numbers, the array is the residual stream, with an extra slot of ones.
    """
    if config.vocabulary is None:
        return np.concatenate([stream, np.ones_like(stream[..., :1])], axis=-1)
    sink = np.full((len(encoded), int(config.sink)), len(config.vocabulary), dtype=np.int64)
    return np.concatenate([sink, encoded], axis=1)


def to_lens(config: Config, weights: Weights) -> Any:
    """Return the model as a ``HookedTransformer`` or, since TransformerLens 4.0, a
    ``TransformerBridge``.
    """
    lens = importlib.import_module("transformer_lens")
    torch = importlib.import_module("torch")
    tensors = {name: torch.tensor(array) for name, array in state(config, weights).items()}
    fields = settings(config, weights) | {"dtype": getattr(torch, config.dtype)}
    try:
        hooked = lens.HookedTransformer(lens.HookedTransformerConfig(**fields, device="cpu"))
    except ImportError:  # TransformerLens 4.0 raises this for removed names
        return _bridge(lens, torch, tensors, fields)
    _load(hooked, tensors, known=(".mask", ".IGNORE"))
    return hooked


def _bridge(lens: Any, torch: Any, tensors: dict[str, Any], fields: dict[str, Any]) -> Any:
    conversion = importlib.import_module("transformer_lens.utilities.tl_checkpoint_conversion")
    options = lens.TransformerBridgeConfig(**fields, architecture="TransformerLensNative")
    bridge = lens.TransformerBridge.boot_native(options, device="cpu", dtype=fields["dtype"])
    converted = conversion.convert_tl_checkpoint(tensors, options)
    places = bridge.state_dict()
    for name in [name for name in converted if name not in places]:
        if torch.count_nonzero(converted.pop(name)):
            raise CompileError(f"this version of TransformerLens does not support {name}")
    _load(bridge, converted)
    split = importlib.import_module("locum.networks.transformer.exports.bridge_attention")
    for block in bridge.blocks:
        block.attn.__class__ = split.SplitAttention
        block.hook_mlp_in.__class__ = split.CopyingHookPoint
    return bridge


def _load(module: Any, state: dict[str, Any], known: tuple[str, ...] = ()) -> None:
    keys = module.load_state_dict(state, strict=False)
    missing = [name for name in keys.missing_keys if not name.endswith(known)]
    if missing or keys.unexpected_keys:
        raise CompileError(
            "the parameters of this version of TransformerLens are not supported: "
            f"{', '.join([*missing, *keys.unexpected_keys][:6])}"
        )


def _kind(weights: Weights) -> str | None:
    """Return the kind of all feed-forwards, or None if there are no feed-forwards.

    Raise ``CompileError`` for heads and feed-forwards that the export does not support.
    """
    for number, layer in enumerate(weights.layers):
        if layer.attention is not None and HARD in layer.attention.kinds:
            raise CompileError(
                "TransformerLens: expected softmax attention, got a hard attention head; try "
                "attention='softmax' in locum.compile",
                f"layer {number}",
            )
    kinds = weights.feed_forwards
    if "exact" in kinds or len(kinds) > 1:
        raise CompileError(
            "TransformerLens: expected feed-forwards of one kind (relu, gelu or glu) in all layers, "
            f"got {' and '.join(sorted(kinds))}; try feed_forward='glu', 'gelu' or 'relu' in "
            "locum.compile"
        )
    return kinds.pop() if kinds else None


def _padded(array: Array | None, shape: tuple[int, ...], dtype: Any = None) -> Array:
    """Return ``array`` padded with zeros to ``shape``; zeros only if ``array`` is None."""
    padded: Array = np.zeros(shape, dtype=dtype if array is None else array.dtype)
    if array is not None:
        padded[tuple(slice(size) for size in array.shape)] = array
    return padded
