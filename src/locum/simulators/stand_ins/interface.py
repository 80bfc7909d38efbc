"""``attn_implementation="locum"``: models of the transformers library run their attention on U.

The library hands over queries, keys and values behind their projections (and rotary positions, and
cache), and a mask that a second registry of it makes: both are registered here. What U computes are the
scores, the softmax and its product with the values; everything else stays the model's own.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any

import torch
from torch import Tensor, nn

from locum.errors import InputError
from locum.simulators import recording
from locum.simulators.stand_ins.running import run_projected

NAME = "locum"
#: What the library hands over beside its tensors, and what does not change what is computed.
_HARMLESS = {
    *("output_attentions", "output_hidden_states", "return_dict", "use_cache", "past_key_values"),
    *("position_ids", "cache_position", "logits_to_keep", "num_items_in_batch", "deterministic"),
    *("max_length_q", "max_length_k", "sliding_window"),
}
#: What changes it, and what of it there is no U for.
_REFUSED = {
    "softcap": "scores that are capped by tanh",
    "s_aux": "sinks beside the keys",
    "sinks": "sinks beside the keys",
    "head_mask": "heads that are masked",
    "cache": "paged caches",
    "cu_seq_lens_q": "packed sequences",
    "cu_seq_lens_k": "packed sequences",
    "cu_seqlens": "packed sequences",
}
#: While one token at a time is generated, keys are padded to a multiple of this: fewer plans are made.
_STEP = 64


def register_attention() -> None:
    """Register "locum" with the transformers library: ``model.set_attn_implementation("locum")``.

    Both of its registries are told: that of attention functions, and that of masks (without which
    padding and causality would not arrive). Calling it again changes nothing.

    >>> import transformers
    >>> register_attention()
    >>> config = transformers.BertConfig(
    ...     vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2
    ... )
    >>> model = transformers.BertModel(config)
    >>> model.set_attn_implementation("locum")
    >>> model.config._attn_implementation
    'locum'
    """
    try:
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.masking_utils import eager_mask
    except ImportError as error:
        raise InputError(
            f"register_attention needs transformers with both of its registries ({error}): try "
            "pip install 'transformers>=5'"
        ) from None
    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, eager_mask)


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    """Compute softmax(scaling · Q Kᵀ + mask) V by U: [item, query, head, column], and weights if asked.

    Queries are [item, head, row, column]; keys and values may have fewer heads. The mask is one of
    booleans, true where a key counts, or of numbers that are added; without one, a module that is
    causal attends to no later key.
    """
    _require_known(options, dropout)
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.dim() != 4 or tensor.numel() == 0:
            raise InputError(f"expected {name} as [item, head, row, column], got {tuple(tensor.shape)}")
    batch, heads, n, width = query.shape
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    if attention_mask is None and causal and n > 1:
        key, value = key[:, :, :n], value[:, :, :n]  # a cache may have room behind the last row
        if key.shape[2] != n:
            raise InputError(f"expected a mask beside {n} queries and {key.shape[2]} keys, got none")
        later = torch.ones(n, n, dtype=torch.bool, device=query.device).triu(1)
        attention_mask = ~later[None, None]
        _require_window(options, n)
    elif attention_mask is None:
        _require_window(options, key.shape[2])
    _, key_heads, m, d_v = value.shape
    if heads % key_heads or key.shape != (batch, key_heads, m, width):
        raise InputError(
            f"expected keys {(batch, key_heads, m, width)} beside values {tuple(value.shape)} and "
            f"queries {tuple(query.shape)}, got {tuple(key.shape)}"
        )
    if n > 1 and key_heads < heads:  # then one kernel computes all heads, without their scores
        key, value = (x.repeat_interleave(heads // key_heads, 1) for x in (key, value))
        key_heads = heads
    dtype = query.dtype if query.is_cuda or query.dtype is torch.float64 else torch.float32
    added = _added(attention_mask, position_bias, (batch, heads, n, m), dtype)
    rows = m
    # Recorded are the keys that there are, and no others.
    if n == 1 and m % _STEP and not (torch.compiler.is_compiling() or recording.is_active()):
        key, value, added = _padded(key, value, added, -m % _STEP)
        m = key.shape[2]
    scale = width**-0.5 if scaling is None else scaling
    inputs = {
        "Q": (query.to(dtype) * scale).transpose(1, 2).reshape(batch * n, -1),
        "K": key.to(dtype).transpose(1, 2).reshape(batch * m, -1),
        "V": value.to(dtype).transpose(1, 2).reshape(batch * m, -1),
    }
    masks = 0
    if added is not None:
        masks = added.shape[1]
        inputs["added"] = added.expand(batch, masks, n, m).reshape(-1, m)
    block = 0 if torch.compiler.is_compiling() else recording.place_of(module)
    sizes = (batch, n, m, heads, key_heads, width, d_v, masks)
    result, *weights = run_projected(sizes, block, inputs, bool(options.get("output_attentions")))
    result = result.reshape(batch, heads, n, d_v).transpose(1, 2).contiguous().to(query.dtype)
    return result, weights[0][..., :rows].to(query.dtype) if weights else None


def _added(
    mask: Tensor | None,
    position_bias: Tensor | None,
    sizes: tuple[int, int, int, int],
    dtype: torch.dtype,
) -> Tensor | None:
    """Return what masks and biases add to the scores: [1 or item, 1 or head, query, key]."""
    total: Tensor | None = None
    for name, part in (("attention_mask", mask), ("position_bias", position_bias)):
        if part is None:
            continue
        shape = tuple(getattr(part, "shape", ()))
        batch, heads, n, m = sizes
        fits = (
            isinstance(part, Tensor)
            and len(shape) == 4
            and shape[0] in (1, batch)
            and shape[1] in (1, heads)
            and shape[2] == n
            and shape[3] >= m
        )
        if not fits:
            kind = shape if isinstance(part, Tensor) else type(part).__name__
            raise InputError(f"expected {name} of shape {sizes}, or 1 for items and heads, got {kind}")
        part = part[..., :m]
        if part.dtype is torch.bool:
            lowest = torch.finfo(dtype).min  # not −∞: a query without a key must stay finite
            zeros = torch.zeros(part.shape, dtype=dtype, device=part.device)
            part = zeros.masked_fill(~part, lowest)
        elif not part.is_floating_point():
            raise InputError(f"expected {name} of booleans or floating-point numbers, got {part.dtype}")
        total = part.to(dtype) if total is None else total + part.to(dtype)
    return total


def _padded(
    key: Tensor, value: Tensor, added: Tensor | None, more: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Append so many rows to keys and values, which the mask hides."""
    pad = nn.functional.pad
    if added is None:
        added = key.new_zeros(1, 1, 1, key.shape[2])
    key, value = pad(key, (0, 0, 0, more)), pad(value, (0, 0, 0, more))
    return key, value, pad(added, (0, more), value=torch.finfo(added.dtype).min)


def _require_known(options: dict[str, Any], dropout: float) -> None:
    """Refuse what U does not compute, by name."""
    if dropout:
        raise InputError(
            f"attention dropout of {dropout} is not computed by U: expected 0 in the model's config, "
            "or a model in eval()"
        )
    for name, value in options.items():
        if value is None or value is False or name in _HARMLESS:
            continue
        why = _REFUSED.get(name, "an option that U does not know")
        raise InputError(f'{name} is not computed by attn_implementation="{NAME}": {why}')


def _require_window(options: dict[str, Any], m: int) -> None:
    """Refuse a sliding window that no mask speaks of."""
    window = options.get("sliding_window")
    if window is not None and m > window:
        raise InputError(f"expected a mask beside a sliding window of {window} and {m} keys, got none")


# Parts of models --------------------------------------------------------------------------------------


def uses_attention_interface(module: Any) -> bool:
    """Return whether a module is one of the library's own whose attention can be another's."""
    if not type(module).__module__.startswith("transformers.") or not hasattr(module, "config"):
        return False
    forward = inspect.unwrap(type(module).forward)
    return "ALL_ATTENTION_FUNCTIONS" in forward.__code__.co_names


def attention_of_transformers(module: Any) -> bool:
    """Let an attention module of the library run on U, whatever the rest of its model does."""
    if not uses_attention_interface(module):
        return False
    register_attention()
    module.config = copy.copy(module.config)
    module.config._attn_implementation = NAME
    return True
