"""torch's own layers as T's: ``from_torch(module)`` reads the matrices off and computes nothing else.

nn.MultiheadAttention, nn.TransformerEncoderLayer and nn.TransformerDecoderLayer, in any dtype, and
nn.TransformerEncoder, layer by layer (``encoder_layers``). Dropout is left out, as in ``eval()``. A
module that computes something else than these classes do (a subclass with a forward of its own, another
norm, norms that differ in eps) is refused. What is read off is a copy in double precision: gradients do
not reach the module. torch is not imported here: a module brings its own.
"""

from __future__ import annotations

import math
import sys
from types import FunctionType
from typing import Any

import numpy as np

from locum.errors import InputError
from locum.simulators.arrays import numpy_of
from locum.simulators.models.forms import attention_of
from locum.simulators.modules.decoder import DecoderLayer
from locum.simulators.modules.encoder import Encoder
from locum.simulators.modules.module import AttentionModule, Mask, Module


def from_torch(
    module: Any, *, mask: Mask = None, memory_mask: Mask = None, form: str = "paper"
) -> Module:
    """The T that a torch module is.

    ``mask`` is that of its (self-)attention: "causal", a matrix that is 0 where a key is not seen
    (torch's boolean masks say the opposite), or a vector that is 0 at padded keys; ``memory_mask`` that
    of a decoder's cross-attention. ``form`` is how heads are parametrised: paper (A = W_Q W_Kᵀ) or
    factored (W_Q and W_K as they are).
    """
    nn: Any = getattr(sys.modules.get("torch"), "nn", None)
    if nn is not None and isinstance(module, nn.MultiheadAttention):
        return _attention(module, mask, form)
    if nn is not None and isinstance(module, nn.TransformerEncoderLayer):
        _require_plain(module, nn.TransformerEncoderLayer)
        return Encoder(_attention(module.self_attn, mask, form), **_around(module, 2))
    if nn is not None and isinstance(module, nn.TransformerDecoderLayer):
        _require_plain(module, nn.TransformerDecoderLayer)
        cross = _attention(module.multihead_attn, memory_mask, form)
        return DecoderLayer(_attention(module.self_attn, mask, form), cross, **_around(module, 3))
    raise InputError(
        f"from_torch knows nn.MultiheadAttention, nn.TransformerEncoderLayer and "
        f"nn.TransformerDecoderLayer, not {type(module).__name__}"
        + ("; locum.simulate runs it layer by layer" if is_encoder_of_layers(module) else "")
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
