"""torch's own layers as T's: ``from_torch(module)`` reads the matrices off and computes nothing else.

nn.MultiheadAttention, nn.TransformerEncoderLayer and nn.TransformerDecoderLayer, in any dtype.
Dropout is left out, as in ``eval()``. A module that computes something else than these classes do (a
subclass with a forward of its own, another norm, norms that differ in eps) is refused. What is read off
is a copy in double precision: gradients do not reach the module. torch is not imported here: a module
brings its own.
"""

from __future__ import annotations

import math
import sys
from types import FunctionType
from typing import Any

import numpy as np

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
    nn: Any = getattr(sys.modules.get("torch"), "nn", None)
    if nn is not None and isinstance(module, nn.MultiheadAttention):
        return _attention(module, mask)
    if nn is not None and isinstance(module, nn.TransformerEncoderLayer):
        _require_plain(module, nn.TransformerEncoderLayer)
        return Encoder(_attention(module.self_attn, mask), **_around(module, 2))
    if nn is not None and isinstance(module, nn.TransformerDecoderLayer):
        _require_plain(module, nn.TransformerDecoderLayer)
        cross = _attention(module.multihead_attn, memory_mask)
        return DecoderLayer(_attention(module.self_attn, mask), cross, **_around(module, 3))
    raise InputError(
        f"from_torch knows nn.MultiheadAttention, nn.TransformerEncoderLayer and "
        f"nn.TransformerDecoderLayer, not {type(module).__name__}"
    )


def _require_plain(module: Any, base: type, what: str = "the module") -> None:
    """Refuse what is no ``base``, or has methods of its own: it may compute something else."""
    if not isinstance(module, base):
        raise InputError(f"{what} must be an nn.{base.__name__}, but it is {type(module).__name__}")
    for name, method in vars(base).items():
        if name == "__init__" or not isinstance(method, FunctionType):
            continue
        if getattr(type(module), name) is not method or name in vars(module):
            raise InputError(
                f"{what} is {type(module).__name__}, which has a method {name} of its own: only what "
                f"nn.{base.__name__} itself computes can be read off"
            )


def _attention(module: Any, mask: Mask) -> MultiHeadAttention:
    """Heads with their scale and biases folded in, W_O and b_O behind them."""
    nn: Any = sys.modules["torch"].nn
    _require_plain(module, nn.MultiheadAttention, "the attention")
    _require_plain(module.out_proj, nn.Linear, "out_proj")
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
    nn: Any = sys.modules["torch"].nn
    for name in ("linear1", "linear2"):
        _require_plain(getattr(module, name), nn.Linear, name)
    found: dict[str, Any] = {
        "W1": numpy_of(module.linear1.weight).T,
        "W2": numpy_of(module.linear2.weight).T,
        "activation": _activation(module.activation),
        "norm": "pre" if module.norm_first else "post",
    }
    for bias, linear in (("b1", module.linear1), ("b2", module.linear2)):
        if linear.bias is not None:
            found[bias] = numpy_of(linear.bias)
    return found | _norms(
        {f"norm{number}": getattr(module, f"norm{number}") for number in range(1, norms + 1)},
        module.self_attn.embed_dim,
    )


def _norms(norms: dict[str, Any], columns: int) -> dict[str, Any]:
    """Gains and biases of all norms, and the epsilon that they share, as keywords."""
    nn: Any = sys.modules["torch"].nn
    for name, norm in norms.items():
        _require_plain(norm, nn.LayerNorm, name)
        if tuple(norm.normalized_shape) != (columns,):
            raise InputError(
                f"{name} must be over {columns} columns, but it is over {norm.normalized_shape}"
            )
    epsilons = {norm.eps for norm in norms.values()}
    if len(epsilons) > 1:
        listed = ", ".join(f"{norm.eps} in {name}" for name, norm in norms.items())
        raise InputError(f"all norms of a layer must have the same eps, but it is {listed}")
    found: dict[str, Any] = {"epsilon": epsilons.pop()}
    if any(norm.weight is not None for norm in norms.values()):
        for name, norm in norms.items():
            gain = np.ones(columns) if norm.weight is None else numpy_of(norm.weight)
            found[name] = (gain, np.zeros(columns) if norm.bias is None else numpy_of(norm.bias))
    return found


def _activation(function: Any) -> str:
    """The name of torch's activation: a function, or a module."""
    torch: Any = sys.modules["torch"]
    nn = torch.nn
    if type(function) is nn.GELU and function.approximate != "none":
        raise InputError("GELU approximated by tanh is not simulated: the exact one is")
    known: dict[str, tuple[Any, ...]] = {
        "relu": (nn.functional.relu, torch.relu, nn.ReLU),
        "gelu": (nn.functional.gelu, nn.GELU),
        "silu": (nn.functional.silu, nn.SiLU),
        "tanh": (nn.functional.tanh, torch.tanh, nn.Tanh),
        "sigmoid": (nn.functional.sigmoid, torch.sigmoid, nn.Sigmoid),
    }
    for name, forms in known.items():
        if function in forms or type(function) in forms:
            return name
    given = getattr(function, "__name__", type(function).__name__)
    raise InputError(
        f"the activation {given} is not simulated: torch's own {', '.join(known)} are, as functions or "
        "as modules"
    )
