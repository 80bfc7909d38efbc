"""Convert a PyTorch layer or arrays to a module T that U can simulate.

The supported classes are nn.MultiheadAttention, nn.TransformerEncoderLayer and
nn.TransformerDecoderLayer, in float64, float32 or half precision. Dropout is ignored, as in ``eval()``.
The classes of a module and of its parts must be classes of PyTorch, or subclasses that define only
``__init__``. Other subclasses, replaced parts, methods set on the instance and forward hooks
raise an error, because they may change the result. The hooks with which PyTorch counts operations are
accepted. The weights are copied in double precision, and the module is not called. This file does not
import torch.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from locum.errors import GraphError, InputError
from locum.execution.arrays import Array, numpy_of
from locum.settings import require_choice
from locum.simulators.matrices import require_readable
from locum.simulators.modules.attention import Attention, MultiHeadAttention
from locum.simulators.modules.encoder_layers import DecoderLayer, Encoder
from locum.simulators.modules.factored import FactoredAttention
from locum.simulators.modules.module import AttentionModule, Mask, Module, Numbers

#: Forms of a converted attention layer; the first form is the default.
FORMS = ("paper", "factored")
#: The names of arrays that ``from_arrays`` accepts; the first three are required.
NAMES = (
    *("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O"),
    *("W1", "b1", "W2", "b2", "gain1", "bias1", "gain2", "bias2"),
)


def make_attention(
    weights: Sequence[Array],
    biases: Sequence[Array] | None,
    W_O: Array | None,
    b_O: Array | None,
    heads: int,
    *,
    scale: float,
    mask: Mask,
    form: str,
) -> AttentionModule:
    """Return the attention layer with these projections W_Q, W_K and W_V, and with biases if given.

    Weights are inputs×outputs, with the columns of all heads side by side.
    """
    require_choice(form, FORMS, "form", error=GraphError)
    if form == "factored":
        W_Q, W_K, W_V = weights
        b_Q, b_K, b_V = biases or (None, None, None)
        return FactoredAttention(
            W_Q, W_K, W_V, W_O, heads, b_Q=b_Q, b_K=b_K, b_V=b_V, b_O=b_O, scale=scale, mask=mask
        )
    parts = [_split(numpy_of(part), heads) for part in weights]
    biased = None if biases is None else [_split(numpy_of(part), heads) for part in biases]
    modules = [
        Attention.from_projections(
            *(part[h] for part in parts),
            scale=scale,
            biases=None if biased is None else [part[h] for part in biased],
            mask=mask,
        )
        for h in range(heads)
    ]
    return MultiHeadAttention(modules, W_O, b_O)


def from_arrays(
    arrays: Mapping[str, Array],
    heads: int = 1,
    *,
    scale: float | None = None,
    activation: str = "relu",
    norm: str | None = None,
    epsilon: float = 1e-5,
    mask: Mask = None,
    form: str = FORMS[0],
) -> Module:
    """Convert arrays to a module T that U can simulate.

    ``arrays`` maps the names W_Q, W_K, W_V, and optionally W_O, b_Q, …, W1, b1, W2, b2, gain1, …, to
    arrays. Weights are inputs×outputs, with the columns of all heads side by side. ``scale`` is
    1/√(columns of W_Q per head) by default. With W1 and W2, gains, or ``norm``, the result is an
    encoder layer. With gains, the encoder layer has norms (post-norm, unless ``norm`` is given).

    >>> T = from_arrays({name: [[1.0]] for name in ("W_Q", "W_K", "W_V")})
    >>> T([[2.0]]).tolist()
    [[2.0]]
    """
    missing = [name for name in NAMES[:3] if name not in arrays]
    if missing:
        raise InputError(f"expected {', '.join(missing)} among the arrays, got {sorted(arrays)}")
    wrong = sorted(set(arrays) - set(NAMES))
    if wrong:
        raise InputError(f"expected arrays of the names {', '.join(NAMES)}, got {', '.join(wrong)}")
    names = [name for name in ("b_Q", "b_K", "b_V") if name in arrays]
    if len(names) not in (0, 3):
        raise InputError(f"expected all of b_Q, b_K and b_V, or none, got {', '.join(names)}")
    columns = len(arrays["W_Q"][0])
    if scale is None:
        scale = (columns / heads) ** -0.5
    attention = make_attention(
        [arrays[name] for name in NAMES[:3]],
        [arrays[name] for name in names] or None,
        arrays.get("W_O"),
        arrays.get("b_O"),
        heads,
        scale=scale,
        mask=mask,
        form=form,
    )
    layer: dict[str, Any] = {name: arrays[name] for name in ("W1", "W2", "b1", "b2") if name in arrays}
    for number in ("1", "2"):
        pair = (arrays.get("gain" + number), arrays.get("bias" + number))
        if (pair[0] is None) != (pair[1] is None):
            raise InputError(f"expected both gain{number} and bias{number}, got one of them")
        if pair[0] is not None:
            layer["norm" + number] = pair
    if not layer and norm is None:
        return attention
    if norm is None:
        norm = "post" if "norm1" in layer else "none"
    return Encoder(attention, **layer, activation=activation, norm=norm, epsilon=epsilon)


def _split(part: Numbers, heads: int) -> list[Numbers]:
    """Split a matrix into the columns of each head, or a vector into the entries of each head."""
    size = part.shape[-1]
    if size % heads:
        raise InputError(f"expected a number of columns divisible by {heads} heads, got {size}")
    width = size // heads
    return [part[..., h * width : (h + 1) * width] for h in range(heads)]


#: Attributes that an accepted subclass may define.
_HARMLESS = {
    *("__module__", "__doc__", "__qualname__", "__annotations__", "__init__", "__constants__"),
    *("__firstlineno__", "__static_attributes__"),  # Python 3.13 and newer
    *("__annotate_func__", "__annotations_cache__"),  # Python 3.14 and newer
}
#: The module of hooks that PyTorch sets while it counts operations; they do not change results.
_TRACKER = "torch.utils.module_tracker"


def from_torch(
    module: Any, *, mask: Mask = None, memory_mask: Mask = None, form: str = FORMS[0]
) -> Module:
    """Convert a PyTorch attention, encoder or decoder layer to a module T that U can simulate.

    ``mask`` is the mask of the self-attention: "causal", a matrix or a vector. A matrix [query, key] is
    1 where a query attends to a key, and a vector is 0 at padded keys. Boolean masks of PyTorch's
    modules have the opposite meaning. ``memory_mask`` is the mask of a decoder's cross-attention.
    ``form`` is "paper" if each head has the matrix A = W_Q W_Kᵀ, or "factored" if W_Q and W_K are kept.

    >>> import torch
    >>> import locum
    >>> _ = torch.manual_seed(0)
    >>> layer = torch.nn.MultiheadAttention(4, 2, batch_first=True).double()
    >>> x = torch.randn(3, 4, dtype=torch.float64)
    >>> T = from_torch(layer)
    >>> U = locum.UniversalSimulator.of(T, 3)
    >>> bool((U(T, x) - layer(x, x, x)[0]).abs().max() < 1e-12)
    True
    """
    nn = _nn()
    if nn is not None:
        if _is_of(module, nn.TransformerEncoder):
            raise InputError(
                "module: expected one layer, got an nn.TransformerEncoder; try "
                "from_torch(module.layers[0]), or locum.torch.simulate(module, X) for all layers"
            )
        if _is_of(module, nn.MultiheadAttention):
            return _attention(module, mask, form)
        if _is_of(module, nn.TransformerEncoderLayer):
            _require_untouched(module, "the layer")
            return Encoder(_attention(module.self_attn, mask, form), **_around(module, 2))
        if _is_of(module, nn.TransformerDecoderLayer):
            _require_untouched(module, "the layer")
            cross = _attention(module.multihead_attn, memory_mask, form)
            return DecoderLayer(_attention(module.self_attn, mask, form), cross, **_around(module, 3))
    raise InputError(_unknown(module))


def _nn() -> Any:
    return getattr(sys.modules.get("torch"), "nn", None)


def _is_of(module: Any, base: type) -> bool:
    """Return whether the class of a module is ``base``, or a subclass that defines only ``__init__``.

    The classes that PyTorch creates for parametrised modules only define parameters and are accepted.
    """
    kind = type(module)
    if kind is base:
        return True
    if not isinstance(module, base):
        return False
    if kind.__name__ == f"Parametrized{kind.__bases__[0].__name__}" and hasattr(
        module, "parametrizations"
    ):
        kind = kind.__bases__[0]
    own = [parent for parent in kind.__mro__ if parent not in base.__mro__]
    return all(set(vars(parent)) <= _HARMLESS for parent in own)


def _unknown(module: Any) -> str:
    """Return the error message for a module that is not supported."""
    kind, nn = type(module), _nn()
    names = ("MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer")
    base = None
    if nn is not None:
        base = next((name for name in names if isinstance(module, getattr(nn, name))), None)
    hint = ""
    if base is not None:
        hint = (
            f", a subclass that defines methods, which may change the result; try loading its "
            f"state_dict into an nn.{base}"
        )
    elif nn is not None and isinstance(module, nn.Module):
        hint = "; try locum.torch.simulate(module, ...)"
    return (
        f"module: expected {', '.join(f'nn.{name}' for name in names)}, got "
        f"{kind.__module__}.{kind.__qualname__}{hint}"
    )


def _require_type(part: Any, expected: type | Iterable[type], what: str) -> None:
    """Raise an error if a part of a layer is not of an expected type, or if it has forward hooks or
    replaced methods that may change the result.
    """
    types = (expected,) if isinstance(expected, type) else tuple(expected)
    if not any(_is_of(part, kind) for kind in types):
        names = " or ".join(f"nn.{kind.__name__}" for kind in types)
        raise InputError(
            f"{what}: expected an {names}, got {type(part).__module__}.{type(part).__qualname__}, "
            "which may change the result"
        )
    _require_untouched(part, what)


def _require_untouched(module: Any, what: str) -> None:
    """Raise an error for forward hooks that may change the result of a module, or for methods that were
    set on the instance.
    """
    common: Any = sys.modules["torch.nn.modules.module"]
    for hooks, owner in (
        (module._forward_hooks, what),
        (module._forward_pre_hooks, what),
        (common._global_forward_hooks, "every module"),
        (common._global_forward_pre_hooks, "every module"),
    ):
        others = [hook for hook in hooks.values() if getattr(hook, "__module__", "") != _TRACKER]
        if others:
            raise InputError(
                f"{owner}: expected no forward hook, got {others[0]!r}, which may change the result; "
                "remove it (torch.nn.utils.prune.remove makes pruning permanent)"
            )
    kind: Any = type(module)
    own = (name for name in vars(module) if isinstance(getattr(kind, name, None), FunctionType))
    replaced = next(own, None)
    if replaced is not None:
        raise InputError(
            f"{what}: expected the methods of nn.{kind.__name__}, got its own {replaced}, "
            "which may change the result"
        )


def _attention(module: Any, mask: Mask, form: str) -> AttentionModule:
    """Convert an nn.MultiheadAttention with all heads, biases and the output projection."""
    nn = _nn()
    _require_type(module, nn.MultiheadAttention, "the attention")
    linear = nn.modules.linear.NonDynamicallyQuantizableLinear
    _require_type(module.out_proj, (linear, nn.Linear), "out_proj")
    if module.bias_k is not None or module.add_zero_attn:
        raise InputError("attention with add_bias_kv or add_zero_attn is not supported")
    if module._qkv_same_embed_dim is not (module.in_proj_weight is not None):
        raise InputError(
            f"_qkv_same_embed_dim: expected {module.in_proj_weight is not None}, which its parameters "
            f"require, got {module._qkv_same_embed_dim}"
        )
    if module.kdim != module.vdim:
        raise InputError(f"expected kdim = vdim, got {module.kdim} and {module.vdim}")
    size, heads = module.embed_dim, module.num_heads
    if module.in_proj_weight is not None:
        stacked = _read(module.in_proj_weight, "in_proj_weight")
        weights = [stacked[part * size : (part + 1) * size].T for part in range(3)]
    else:
        names = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
        weights = [_read(getattr(module, name), name).T for name in names]
    biases = None
    if module.in_proj_bias is not None:
        biases = list(_read(module.in_proj_bias, "in_proj_bias").reshape(3, size))
    out = module.out_proj
    return make_attention(
        weights,
        biases,
        _read(out.weight, "out_proj.weight").T,
        None if out.bias is None else _read(out.bias, "out_proj.bias"),
        heads,
        scale=1 / math.sqrt(size // heads),
        mask=mask,
        form=form,
    )


def _around(module: Any, count: int) -> dict[str, Any]:
    """Return the feed-forward and the norms of a PyTorch layer, as keyword arguments of ``Encoder`` or
    ``DecoderLayer``.

    ``count`` is the number of norms.
    """
    nn = _nn()
    for name, part in module.named_children():
        if name.startswith("dropout"):
            _require_type(part, (nn.Dropout, nn.Identity), name)
    for name in ("linear1", "linear2"):
        _require_type(getattr(module, name), nn.Linear, name)
    parts: dict[str, Any] = {
        "W1": _read(module.linear1.weight, "linear1.weight").T,
        "W2": _read(module.linear2.weight, "linear2.weight").T,
        "activation": _layer_activation(module),
        "norm": "pre" if module.norm_first else "post",
    }
    for bias, linear in (("b1", module.linear1), ("b2", module.linear2)):
        if linear.bias is not None:
            parts[bias] = _read(linear.bias, bias)
    norms = {f"norm{number}": getattr(module, f"norm{number}") for number in range(1, count + 1)}
    return parts | _norms(norms, module.self_attn.embed_dim)


def _norms(norms: dict[str, Any], columns: int) -> dict[str, Any]:
    """Return the gains, the biases and the common epsilon of the norms, as keyword arguments of
    ``Encoder`` or ``DecoderLayer``.
    """
    for name, norm in norms.items():
        _require_type(norm, _nn().LayerNorm, name)
        if tuple(norm.normalized_shape) != (columns,):
            raise InputError(
                f"{name}: expected normalized_shape ({columns},), got {norm.normalized_shape}"
            )
    if len({norm.eps for norm in norms.values()}) > 1:
        listed = ", ".join(f"{norm.eps} in {name}" for name, norm in norms.items())
        raise InputError(f"expected the same eps for all norms of a layer, got {listed}")
    parts: dict[str, Any] = {"epsilon": norms["norm1"].eps}
    if any(norm.weight is not None for norm in norms.values()):
        parts |= {name: _gain_and_bias(norm, columns) for name, norm in norms.items()}
    return parts


def _gain_and_bias(norm: Any, columns: int) -> tuple[Numbers, Numbers]:
    gain = np.ones(columns) if norm.weight is None else _read(norm.weight, "a norm's weight")
    return gain, np.zeros(columns) if norm.bias is None else _read(norm.bias, "a norm's bias")


def _read(parameter: Any, name: str) -> Numbers:
    """Return a parameter as a NumPy array in double precision."""
    require_readable(parameter, name)
    if not parameter.is_floating_point():
        raise InputError(f"{name}: expected floating-point numbers, got {parameter.dtype}")
    return numpy_of(parameter)


def _layer_activation(module: Any) -> str:
    """Return the name of the activation function of an encoder or decoder layer."""
    name = _activation(module.activation)
    noted = getattr(module, "activation_relu_or_gelu", None)  # read by PyTorch's fast path
    expected = {"relu": 1, "gelu": 2}.get(name, 0)
    if noted not in (None, 0, expected):  # with 0, PyTorch calls the activation
        raise InputError(
            f"activation_relu_or_gelu: expected {expected} or 0 for the activation {name}, got "
            f"{noted}; try a new layer with activation=…"
        )
    return name


def _activation(function: Any) -> str:
    """Return the name of a PyTorch activation, which is given as a function or as a module."""
    torch: Any = sys.modules["torch"]
    nn = torch.nn
    known: dict[str, tuple[Any, ...]] = {
        "relu": (nn.functional.relu, torch.relu, nn.ReLU),
        "gelu": (nn.functional.gelu, nn.GELU),
        "silu": (nn.functional.silu, nn.SiLU),
        "tanh": (nn.functional.tanh, torch.tanh, nn.Tanh),
        "sigmoid": (nn.functional.sigmoid, torch.sigmoid, nn.Sigmoid),
        "leaky_relu": (nn.functional.leaky_relu, nn.LeakyReLU),
    }
    for name, forms in known.items():
        if function in forms:
            return name
        if _is_of(function, forms[-1]):
            _require_type(function, forms[-1], "the activation")
            _require_default(function)
            return "gelu_tanh" if getattr(function, "approximate", "none") == "tanh" else name
    kind = getattr(function, "__name__", type(function).__name__)
    raise InputError(
        f"activation: expected {', '.join(known)} of PyTorch, as a function or a module, got {kind}"
    )


def _require_default(activation: Any) -> None:
    """Raise an error if an activation module has options that are not supported."""
    approximation = getattr(activation, "approximate", "none")
    if approximation not in ("none", "tanh"):
        raise InputError(f"GELU: expected approximate to be none or tanh, got {approximation!r}")
    slope = getattr(activation, "negative_slope", 0.01)
    if slope != 0.01:
        raise InputError(f"LeakyReLU: expected negative_slope=0.01, got {slope}")
