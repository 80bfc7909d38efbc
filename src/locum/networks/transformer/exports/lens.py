"""Export a compiled transformer to TransformerLens: configuration, state and inputs.

TransformerLens has the same number and width of heads, and the same d_mlp, in every layer; smaller ones
are padded with zeros. Its gated feed-forward adds ``b_in`` after the product (ours before), and since
4.0 neither it nor the unembedding has biases. One more slot of the stream, which is always 1 and stands
last, carries these biases; the other slots are ours, in their order.

The sink is a token of its own, the last of W_E; an input begins with it. Numbers are not ids, so a
model on numbers takes its residual stream: ``hooked(inputs, start_at_layer=0)``.

Run against TransformerLens 3.9.0 (``HookedTransformer``) and 4.3.0 (``TransformerBridge``): see
``tests/transformer/test_lens.py``.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from locum.errors import CompileError
from locum.networks.transformer.config import Config
from locum.networks.transformer.weights import Array, Weights


def settings(config: Config, weights: Weights) -> dict[str, Any]:
    """Return the fields of a ``HookedTransformerConfig`` (``dtype`` by its name)."""
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
        # A gated feed-forward has one unit more, which adds b_out.
        "d_mlp": (hidden + 1 if kind == "glu" else hidden) or None,
        "act_fn": "gelu" if kind == "gelu" else "relu",
        "gated_mlp": kind == "glu",
        "attn_only": not feeds,
        "d_vocab": weights.W_E.shape[0] + config.sink,
        "d_vocab_out": weights.W_U.shape[1],
        "attention_dir": "causal" if config.causal else "bidirectional",
        "positional_embedding_type": "standard",
        "normalization_type": None,
        # Since 4.0 scores are divided by √d_head whatever this says; see ``state``.
        "use_attn_scale": True,
        "init_weights": False,
        "default_prepend_bos": False,
        "dtype": config.dtype,
    }


def state(config: Config, weights: Weights) -> dict[str, Array]:
    """Return the weights by TransformerLens's names and in its uniform shapes.

    TransformerLens divides scores by √d_head; W_Q and b_Q are multiplied by √d_head.
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
        # Biases come from the slot that is 1; the last hidden unit is 1 and adds b_out.
        arrays["W_in"][-1] = arrays["b_in"]
        arrays["W_in"][-1, -1] = arrays["W_gate"][-1, -1] = 1
        arrays["W_out"][-1] = arrays["b_out"]
        arrays["b_in"], arrays["b_out"] = np.zeros_like(arrays["b_in"]), np.zeros_like(arrays["b_out"])
    return arrays


def inputs(config: Config, encoded: Any, stream: Array) -> Any:
    """Return token ids after the sink's; for numbers, the residual stream with its slot of 1."""
    if config.vocabulary is None:
        return np.concatenate([stream, np.ones_like(stream[..., :1])], axis=-1)
    sink = np.full((len(encoded), int(config.sink)), len(config.vocabulary), dtype=np.int64)
    return np.concatenate([sink, encoded], axis=1)


def to_lens(config: Config, weights: Weights) -> Any:
    """Return a ``HookedTransformer`` (since TransformerLens 4.0, a ``TransformerBridge``)."""
    lens = importlib.import_module("transformer_lens")
    torch = importlib.import_module("torch")
    tensors = {name: torch.tensor(array) for name, array in state(config, weights).items()}
    fields = settings(config, weights) | {"dtype": getattr(torch, config.dtype)}
    try:
        hooked = lens.HookedTransformer(lens.HookedTransformerConfig(**fields, device="cpu"))
    except ImportError:  # raised by 4.0 for names that it has dropped
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
            raise CompileError(f"this version of TransformerLens has no place for {name}")
    _load(bridge, converted)
    return bridge


def _load(module: Any, state: dict[str, Any], known: tuple[str, ...] = ()) -> None:
    keys = module.load_state_dict(state, strict=False)
    missing = [name for name in keys.missing_keys if not name.endswith(known)]
    if missing or keys.unexpected_keys:
        raise CompileError(
            "this version of TransformerLens has other parameters: "
            f"{', '.join([*missing, *keys.unexpected_keys][:6])}"
        )


def _kind(weights: Weights) -> str | None:
    """Return the kind of all feed-forwards; refuse what TransformerLens cannot hold."""
    weights.require_soft("TransformerLens")
    kinds = weights.feed_forwards
    if "exact" in kinds or len(kinds) > 1:
        raise CompileError(
            "TransformerLens has relu, gelu or relu-gated feed-forwards, one kind in all layers, but "
            f"these are {' and '.join(sorted(kinds))}: compile with feed_forward='glu', 'gelu' or "
            "'relu'"
        )
    return kinds.pop() if kinds else None


def _padded(array: Array | None, shape: tuple[int, ...], dtype: Any = None) -> Array:
    """Return ``array`` padded with zeros to this shape."""
    padded: Array = np.zeros(shape, dtype=dtype if array is None else array.dtype)
    if array is not None:
        padded[tuple(slice(size) for size in array.shape)] = array
    return padded
