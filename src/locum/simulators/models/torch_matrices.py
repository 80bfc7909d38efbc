"""The matrices of torch's own layers as tokens: views of their parameters, made when they are used.

Nothing is copied but what the scale of the scores is folded into, so nothing is out of date.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from locum.errors import InputError
from locum.execution.arrays import lasting, remember_number
from locum.simulators.order import Order


def attention_matrices(module: Any, prefix: str = "") -> dict[str, Tensor]:
    """Return the matrices of an attention as tokens, by the names of their blocks."""
    size = module.embed_dim
    if module.in_proj_weight is not None:
        stacked = module.in_proj_weight  # once: a parametrisation computes it
        weights = [stacked[part * size : (part + 1) * size] for part in range(3)]
    else:
        weights = [module.q_proj_weight, module.k_proj_weight, module.v_proj_weight]
    scale = (size // module.num_heads) ** -0.5
    matrices = {"W_Q": weights[0].T * scale, "W_K": weights[1].T, "V": weights[2].T}
    if module.in_proj_bias is not None:
        stacked = module.in_proj_bias
        biases = [stacked[part * size : (part + 1) * size][None] for part in range(3)]
        matrices |= {"b_Q": biases[0] * scale, "b_K": biases[1], "b_V": biases[2]}
    matrices["W_O"] = module.out_proj.weight.T
    if module.out_proj.bias is not None:
        matrices["b_O"] = module.out_proj.bias[None]
    return {prefix + name: tensor for name, tensor in matrices.items()}


def layer_matrices(module: Any, order: Order) -> dict[str, Tensor]:
    """Return the matrices of an encoder or decoder layer as tokens, by the names of their blocks."""
    matrices = attention_matrices(module.self_attn)
    norms = [module.norm1, module.norm2]
    if module.self_attn.num_heads != order.attention.heads:
        raise InputError(
            f"expected num_heads={order.attention.heads}, as the layer had when it was read, got "
            f"{module.self_attn.num_heads}: change the original, and read it again"
        )
    if order.cross is not None:
        matrices |= attention_matrices(module.multihead_attn, "cross ")
        norms.append(module.norm3)
    for name, linear in (("1", module.linear1), ("2", module.linear2)):
        weight = linear.weight
        matrices[f"W{name}"] = weight.T
        if order.feed_forward_bias:
            bias = weight.new_zeros(len(weight)) if linear.bias is None else linear.bias
            matrices[f"b{name}"] = bias[None]
    if order.affine != any(norm.weight is not None for norm in norms):
        raise InputError("norms got or lost their gains after the layer was read: read it again")
    if order.affine:
        for number, norm in enumerate(norms, start=1):
            matrices |= norm_matrices(norm, matrices["W1"], str(number))
    if any(norm.eps != norms[0].eps for norm in norms):
        raise InputError(f"expected one eps for all norms, got {[norm.eps for norm in norms]}")
    matrices["epsilon"] = number_token(norms[0].eps, matrices["W1"])
    return matrices


def norm_matrices(norm: Any, like: Tensor, number: str = "") -> dict[str, Tensor]:
    """Return gain and bias of a norm as tokens; ``like`` has their type and device."""
    gain = like.new_ones(norm.normalized_shape) if norm.weight is None else norm.weight
    bias = torch.zeros_like(gain) if norm.bias is None else norm.bias
    return {f"gain{number}": gain[None], f"bias{number}": bias[None]}


def number_token(number: float, like: Tensor) -> Tensor:
    """Return a number as a 1×1 block in the type that is computed in, on the device of ``like``."""
    dtype = torch.float64 if like.dtype is torch.float64 else torch.float32
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0:
        return torch.full((1, 1), number, dtype=dtype, device=like.device)
    return _kept_token(number, dtype, like.device)


@functools.lru_cache(maxsize=256)
def _kept_token(number: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    with lasting():  # it may be part of a training later
        token = torch.full((1, 1), number, dtype=dtype, device=device)
        remember_number(token, torch.full((), number, dtype=dtype).item())
    return token
