"""torch's own layers as T's: ``from_torch(module)`` reads the matrices off and computes nothing else.

nn.MultiheadAttention, nn.TransformerEncoderLayer and nn.TransformerDecoderLayer, in any dtype.
Dropout is left out, as in ``eval()``. torch is not imported here: a module brings its own.
"""

from __future__ import annotations

import math
from typing import Any

from understudy.errors import InputError
from understudy.simulators.arrays import numpy_of
from understudy.simulators.attention import Attention, MultiHeadAttention
from understudy.simulators.decoder import DecoderLayer
from understudy.simulators.encoder import Encoder
from understudy.simulators.module import Mask, Module


def from_torch(module: Any, *, mask: Mask = None, memory_mask: Mask = None) -> Module:
    """The T that a torch module is.

    ``mask`` is that of its (self-)attention: "causal", or a matrix that is 0 where a key is not seen
    (torch's boolean masks say the opposite); ``memory_mask`` that of a decoder's cross-attention.
    """
    kinds = [kind.__name__ for kind in type(module).__mro__]
    if "MultiheadAttention" in kinds:
        return _attention(module, mask)
    if "TransformerEncoderLayer" in kinds:
        return Encoder(_attention(module.self_attn, mask), **_around(module, 2))
    if "TransformerDecoderLayer" in kinds:
        cross = _attention(module.multihead_attn, memory_mask)
        return DecoderLayer(_attention(module.self_attn, mask), cross, **_around(module, 3))
    raise InputError(
        f"from_torch knows nn.MultiheadAttention, nn.TransformerEncoderLayer and "
        f"nn.TransformerDecoderLayer, not {type(module).__name__}"
    )


def _attention(module: Any, mask: Mask) -> MultiHeadAttention:
    """Heads with their scale and biases folded in, W_O and b_O behind them."""
    if module.bias_k is not None or module.add_zero_attn:
        raise InputError("attention with add_bias_kv or add_zero_attn is not simulated")
    size, heads = module.embed_dim, module.num_heads
    if module.kdim != module.vdim:
        raise InputError("keys and values of different inputs (kdim, vdim) are not simulated")
    if module.in_proj_weight is not None:
        stacked = numpy_of(module.in_proj_weight)
        weights = [stacked[part * size : (part + 1) * size].T for part in range(3)]
    else:
        parts = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
        weights = [numpy_of(part).T for part in parts]
    biases = None if module.in_proj_bias is None else numpy_of(module.in_proj_bias).reshape(3, size)
    width = size // heads
    found = []
    for h in range(heads):
        columns = slice(h * width, (h + 1) * width)
        found.append(
            Attention.from_projections(
                *(weight[:, columns] for weight in weights),
                scale=1 / math.sqrt(width),
                biases=None if biases is None else [bias[columns] for bias in biases],
                mask=mask,
            )
        )
    out = module.out_proj
    bias = None if out.bias is None else numpy_of(out.bias)
    return MultiHeadAttention(found, numpy_of(out.weight).T, bias)


def _around(module: Any, norms: int) -> dict[str, Any]:
    """Feed-forward and norms of an encoder or decoder layer, as keywords."""
    first = module.norm1
    found: dict[str, Any] = {
        "W1": numpy_of(module.linear1.weight).T,
        "W2": numpy_of(module.linear2.weight).T,
        "activation": _activation(module.activation),
        "norm": "pre" if module.norm_first else "post",
        "epsilon": first.eps,
    }
    if module.linear1.bias is not None:
        found |= {"b1": numpy_of(module.linear1.bias), "b2": numpy_of(module.linear2.bias)}
    for number in range(1, norms + 1):
        norm = getattr(module, f"norm{number}")
        if norm.weight is not None:
            gain = numpy_of(norm.weight)
            found[f"norm{number}"] = (gain, 0 * gain if norm.bias is None else numpy_of(norm.bias))
    return found


def _activation(function: Any) -> str:
    """The name of torch's activation: a function, or a module."""
    name = getattr(function, "__name__", type(function).__name__).lower()
    if name == "gelu" and getattr(function, "approximate", "none") != "none":
        raise InputError("GELU approximated by tanh is not simulated: the exact one is")
    if name not in ("relu", "gelu", "silu", "tanh", "sigmoid"):
        raise InputError(f"the activation {name} is not simulated")
    return name
