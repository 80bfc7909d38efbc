"""torch's own layers as T's: ``from_torch(module)`` reads the matrices off and computes nothing else.

nn.MultiheadAttention, nn.TransformerEncoderLayer and nn.TransformerDecoderLayer, in any dtype, and
nn.TransformerEncoder, layer by layer (``encoder_layers``). Dropout is left out, as in ``eval()``. torch
is not imported here: a module brings its own.
"""

from __future__ import annotations

import math
from typing import Any

from understudy.errors import InputError
from understudy.simulators.adapters.forms import attention_of
from understudy.simulators.arrays import numpy_of
from understudy.simulators.decoder import DecoderLayer
from understudy.simulators.encoder import Encoder
from understudy.simulators.module import AttentionModule, Mask, Module


def from_torch(
    module: Any, *, mask: Mask = None, memory_mask: Mask = None, form: str = "paper"
) -> Module:
    """The T that a torch module is.

    ``mask`` is that of its (self-)attention: "causal", a matrix that is 0 where a key is not seen
    (torch's boolean masks say the opposite), or a vector that is 0 at padded keys; ``memory_mask`` that
    of a decoder's cross-attention. ``form`` is how heads are parametrised: paper (A = W_Q W_Kᵀ) or
    factored (W_Q and W_K as they are).
    """
    kinds = [kind.__name__ for kind in type(module).__mro__]
    if "MultiheadAttention" in kinds:
        return _attention(module, mask, form)
    if "TransformerEncoderLayer" in kinds:
        return Encoder(_attention(module.self_attn, mask, form), **_around(module, 2))
    if "TransformerDecoderLayer" in kinds:
        cross = _attention(module.multihead_attn, memory_mask, form)
        return DecoderLayer(_attention(module.self_attn, mask, form), cross, **_around(module, 3))
    raise InputError(
        f"from_torch knows nn.MultiheadAttention, nn.TransformerEncoderLayer and "
        f"nn.TransformerDecoderLayer, not {type(module).__name__}"
        + ("; understudy.simulate runs it layer by layer" if "TransformerEncoder" in kinds else "")
    )


def is_encoder_of_layers(module: Any) -> bool:
    """Whether this is an nn.TransformerEncoder."""
    return "TransformerEncoder" in [kind.__name__ for kind in type(module).__mro__]


def encoder_layers(
    module: Any, *, mask: Mask = None, form: str = "paper"
) -> tuple[list[Module], tuple[Any, Any, float] | None]:
    """The layers of an nn.TransformerEncoder; and gain, bias and epsilon of its last norm, if any."""
    layers = [from_torch(layer, mask=mask, form=form) for layer in module.layers]
    norm = module.norm
    if norm is None:
        return layers, None
    if type(norm).__name__ != "LayerNorm":
        raise InputError(f"the last norm, a {type(norm).__name__}, is not simulated: a LayerNorm is")
    (columns,) = norm.normalized_shape
    gain = [1.0] * columns if norm.weight is None else numpy_of(norm.weight)
    bias = [0.0] * columns if norm.bias is None else numpy_of(norm.bias)
    return layers, (gain, bias, norm.eps)


def _attention(module: Any, mask: Mask, form: str) -> AttentionModule:
    """All heads, their scale and biases folded in, W_O and b_O behind them."""
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
    out = module.out_proj
    return attention_of(
        weights,
        None if biases is None else list(biases),
        numpy_of(out.weight).T,
        None if out.bias is None else numpy_of(out.bias),
        heads,
        scale=1 / math.sqrt(size // heads),
        mask=mask,
        form=form,
    )


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
