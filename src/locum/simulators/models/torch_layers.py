"""Read torch's own layers as T's: their matrices are copied, and nothing of the module is called.

nn.MultiheadAttention, nn.TransformerEncoderLayer and nn.TransformerDecoderLayer, in any dtype, and
nn.TransformerEncoder, layer by layer. Dropout is left out, as in ``eval()``. What a class computes is
known of torch's own classes alone, so types are compared exactly, at every level: a subclass with
methods of its own, a class of the same name, a replaced part, a method set on the instance and a
forward hook are refused, since each may compute something else. What is read is a copy in double
precision: gradients do not reach the module. torch is not imported here: a module brings its own.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from locum.errors import InputError
from locum.execution.arrays import Array, numpy_of
from locum.simulators.matrices import require_readable
from locum.simulators.models.forms import attention_of
from locum.simulators.modules.decoder import DecoderLayer
from locum.simulators.modules.encoder import Encoder
from locum.simulators.modules.masks import Mask
from locum.simulators.modules.module import AttentionModule, Module, Numbers

#: What a subclass may define and still compute what its base does; attributes that its ``__init__``
#: sets are looked at like all others.
_HARMLESS = {"__module__", "__doc__", "__qualname__", "__annotations__", "__init__", "__constants__"}
#: Where hooks come from that change nothing: the transformers library leaves some on a model that gave
#: its states, torch has some while it counts operations.
RECORDERS = ("transformers.utils.output_capturing", "torch.utils.module_tracker")
#: Where the methods come from that keep hooks off the parts of a stand-in.
GUARDS = "locum.simulators.stand_ins.unchanged"


class LastNorm(NamedTuple):
    """The norm behind the last layer of an encoder: matrices of one row."""

    gain: Array
    bias: Array
    epsilon: Array


class Layers(NamedTuple):
    """A torch module as T's that follow one another."""

    modules: list[Module]
    norm: LastNorm | None = None
    batch_first: bool = True


def from_torch(
    module: Any, *, mask: Mask = None, memory_mask: Mask = None, form: str = "paper"
) -> Module:
    """Read the T that a torch module is.

    ``mask`` is that of its (self-)attention: "causal", a matrix [query, key] that is 1 where a query
    attends to a key (torch's boolean masks say the opposite), or a vector that is 0 at padded keys;
    ``memory_mask`` is that of a decoder's cross-attention. ``form`` is how heads are parametrised:
    paper (A = W_Q W_Kᵀ) or factored (W_Q and W_K as they are).

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
        if is_of(module, nn.TransformerEncoder):
            raise InputError(
                "an nn.TransformerEncoder is several T's: locum.simulate(module, X) runs them one by "
                "one; from_torch(module.layers[0]) reads the first"
            )
        if is_of(module, nn.MultiheadAttention):
            return _attention(module, mask, form)
        if is_of(module, nn.TransformerEncoderLayer):
            require_untouched(module, "the layer")
            return Encoder(_attention(module.self_attn, mask, form), **_around(module, 2))
        if is_of(module, nn.TransformerDecoderLayer):
            require_untouched(module, "the layer")
            cross = _attention(module.multihead_attn, memory_mask, form)
            return DecoderLayer(_attention(module.self_attn, mask, form), cross, **_around(module, 3))
    raise InputError(unknown(module))


def torch_layers(
    module: Any, *, form: str = "factored", live: Callable[[Any], Module] | None = None
) -> Layers:
    """Read a torch module as T's, without masks: one, or those of an nn.TransformerEncoder.

    ``live`` makes T's whose matrices are the module's own tensors (``live_layers.live_layer``).
    """
    nn = _nn()
    read = live or functools.partial(from_torch, form=form)
    if nn is None or not is_of(module, nn.TransformerEncoder):
        T = read(module)
        attention = module if isinstance(T, AttentionModule) else module.self_attn
        return Layers([T], batch_first=bool(attention.batch_first))
    require_untouched(module, "the encoder")
    _require_type(module.layers, nn.ModuleList, "the list of layers")
    if not len(module.layers):
        raise InputError("this nn.TransformerEncoder has no layers: expected one or more")
    for number, layer in enumerate(module.layers):
        _require_type(layer, nn.TransformerEncoderLayer, f"layer {number}")
    modules = [read(layer) for layer in module.layers]
    orders = {bool(layer.self_attn.batch_first) for layer in module.layers}
    if len(orders) > 1:
        raise InputError("expected one batch_first for all layers, got both True and False")
    norm = None if module.norm is None else _last_norm(module.norm, live is not None)
    return Layers(modules, norm, orders.pop())


def _nn() -> Any:
    return getattr(sys.modules.get("torch"), "nn", None)


@functools.lru_cache(maxsize=256)
def _methods(kind: Any) -> frozenset[str]:
    """List the names of a class's methods: they are asked for with every run."""
    return frozenset(name for name in dir(kind) if isinstance(getattr(kind, name, None), FunctionType))


def is_of(module: Any, base: type) -> bool:
    """Return whether a module is of this class, or of a subclass that computes nothing of its own.

    The classes that torch's parametrisations make define their parameters alone, and count as the base.
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


def unknown(module: Any) -> str:
    """Say what is simulated, and what may help for this module."""
    kind = type(module)
    known = (
        "nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder, "
        "nn.TransformerDecoderLayer or a T of locum.simulators"
    )
    nn = _nn()
    hint = ""
    bases = () if nn is None else (nn.MultiheadAttention, nn.TransformerEncoderLayer)
    bases += () if nn is None else (nn.TransformerEncoder, nn.TransformerDecoderLayer)
    base = next((base for base in bases if isinstance(module, base)), None)
    if base is not None:
        hint = (
            f"; it is a subclass of nn.{base.__name__} with methods of its own, and may compute "
            f"something else: try to load its state_dict into an nn.{base.__name__}"
        )
    elif hasattr(module, "save_pretrained"):
        hint = "; module.save_pretrained(folder) writes a folder that locum.simulate may read"
    return f"expected {known}, got {kind.__module__}.{kind.__qualname__}{hint}"


def _require_type(part: Any, expected: type | Iterable[type], what: str) -> None:
    """Refuse a part whose type is not exactly one of these, or that was changed afterwards."""
    types = (expected,) if isinstance(expected, type) else tuple(expected)
    if not any(is_of(part, kind) for kind in types):
        names = " or ".join(f"nn.{kind.__name__}" for kind in types)
        raise InputError(
            f"expected {what} to be an {names}, got {type(part).__module__}.{type(part).__qualname__}, "
            "which may compute something else"
        )
    require_untouched(part, what)


def require_untouched(module: Any, what: str) -> None:
    """Refuse hooks, and methods that were set on the instance."""
    common: Any = sys.modules["torch.nn.modules.module"]
    for hooks, of in (
        (module._forward_hooks, what),
        (module._forward_pre_hooks, what),
        (common._global_forward_hooks, "every module"),
        (common._global_forward_pre_hooks, "every module"),
    ):
        unknown = [hook for hook in hooks.values() if getattr(hook, "__module__", "") not in RECORDERS]
        if unknown:
            raise InputError(
                f"{of} has a forward hook ({unknown[0]!r}), which may change what it "
                "computes: remove it (torch.nn.utils.prune.remove makes pruning permanent)"
            )
    kind: Any = type(module)
    methods = _methods(kind)
    for name, value in vars(module).items():
        if name in methods and not is_guard(value):
            raise InputError(
                f"{what} has a method {name} of its own, which may compute something else: expected an "
                f"nn.{type(module).__name__} as torch made it"
            )


def is_guard(value: Any) -> bool:
    """Return whether a method is the one that keeps hooks off the parts of a stand-in."""
    return getattr(getattr(value, "func", None), "__module__", "") == GUARDS


def require_attention(module: Any) -> None:
    """Refuse an attention that is not torch's own, or has options that are not simulated."""
    nn = _nn()
    _require_type(module, nn.MultiheadAttention, "the attention")
    linear = nn.modules.linear.NonDynamicallyQuantizableLinear
    _require_type(module.out_proj, (linear, nn.Linear), "out_proj")
    if module.bias_k is not None or module.add_zero_attn:
        raise InputError("attention with add_bias_kv or add_zero_attn is not simulated")
    if module._qkv_same_embed_dim is not (module.in_proj_weight is not None):
        raise InputError(
            f"expected _qkv_same_embed_dim as torch sets it, got {module._qkv_same_embed_dim}, by "
            "which torch looks for other parameters than there are"
        )
    if module.kdim != module.vdim:
        raise InputError("keys and values of different inputs (kdim, vdim) are not simulated")


def _attention(module: Any, mask: Mask, form: str) -> AttentionModule:
    """Read all heads, their scale and biases folded in, W_O and b_O behind them."""
    require_attention(module)
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
    return attention_of(
        weights,
        biases,
        _read(out.weight, "out_proj.weight").T,
        None if out.bias is None else _read(out.bias, "out_proj.bias"),
        heads,
        scale=1 / math.sqrt(size // heads),
        mask=mask,
        form=form,
    )


def require_around(module: Any, norms: int) -> None:
    """Refuse a layer whose feed-forward, norms or dropouts are not torch's own."""
    nn = _nn()
    for name, part in module.named_children():
        if name.startswith("dropout"):
            _require_type(part, (nn.Dropout, nn.Identity), name)
    for name in ("linear1", "linear2"):
        _require_type(getattr(module, name), nn.Linear, name)
    _require_norms(_norms_of(module, norms), module.self_attn.embed_dim)


def _norms_of(module: Any, norms: int) -> dict[str, Any]:
    return {f"norm{number}": getattr(module, f"norm{number}") for number in range(1, norms + 1)}


def _around(module: Any, norms: int) -> dict[str, Any]:
    """Read feed-forward and norms of an encoder or decoder layer, as keywords."""
    require_around(module, norms)
    parts: dict[str, Any] = {
        "W1": _read(module.linear1.weight, "linear1.weight").T,
        "W2": _read(module.linear2.weight, "linear2.weight").T,
        "activation": layer_activation(module),
        "norm": "pre" if module.norm_first else "post",
    }
    for bias, linear in (("b1", module.linear1), ("b2", module.linear2)):
        if linear.bias is not None:
            parts[bias] = _read(linear.bias, bias)
    return parts | _norms(_norms_of(module, norms), module.self_attn.embed_dim)


def _require_norms(norms: dict[str, Any], columns: int) -> None:
    """Refuse norms that are not torch's own, or differ in their epsilon."""
    for name, norm in norms.items():
        _require_layer_norm(norm, name, columns)
    if len({norm.eps for norm in norms.values()}) > 1:
        listed = ", ".join(f"{norm.eps} in {name}" for name, norm in norms.items())
        raise InputError(f"expected the same eps for all norms of a layer, got {listed}")


def _norms(norms: dict[str, Any], columns: int) -> dict[str, Any]:
    """Read gains and biases of all norms, and the epsilon that they share, as keywords."""
    parts: dict[str, Any] = {"epsilon": norms["norm1"].eps}
    if any(norm.weight is not None for norm in norms.values()):
        parts |= {name: _gain_and_bias(norm, columns) for name, norm in norms.items()}
    return parts


def _last_norm(norm: Any, live: bool) -> LastNorm:
    """Read the norm behind an encoder's layers."""
    columns = math.prod(getattr(norm, "normalized_shape", (0,)))
    _require_layer_norm(norm, "the last norm", columns)
    if live and norm.weight is not None and norm.bias is not None:
        from locum.simulators.models.torch_matrices import number_token

        gain, bias = norm.weight.detach(), norm.bias.detach()
        return LastNorm(gain[None], bias[None], number_token(norm.eps, gain))
    gain, bias = _gain_and_bias(norm, columns)
    return LastNorm(gain[None], bias[None], np.full((1, 1), norm.eps))


def _require_layer_norm(norm: Any, what: str, columns: int) -> None:
    _require_type(norm, _nn().LayerNorm, what)
    if tuple(norm.normalized_shape) != (columns,):
        raise InputError(
            f"expected {what} to be over one axis of {columns} columns, got {norm.normalized_shape}"
        )


def _gain_and_bias(norm: Any, columns: int) -> tuple[Numbers, Numbers]:
    gain = np.ones(columns) if norm.weight is None else _read(norm.weight, "a norm's weight")
    return gain, np.zeros(columns) if norm.bias is None else _read(norm.bias, "a norm's bias")


def _read(parameter: Any, name: str) -> Numbers:
    """Copy a parameter in double precision."""
    require_numbers(parameter, name)
    return numpy_of(parameter)


def require_numbers(parameter: Any, name: str) -> None:
    """Refuse a parameter that is not a dense tensor of floating-point numbers."""
    require_readable(parameter, name)
    if not parameter.is_floating_point():
        raise InputError(f"expected floating-point numbers in {name}, got {parameter.dtype}")


def layer_activation(module: Any) -> str:
    """Name a layer's activation; an encoder layer also notes it for torch's fast path."""
    name = _activation(module.activation)
    noted = getattr(module, "activation_relu_or_gelu", None)
    expected = {"relu": 1, "gelu": 2}.get(name, 0)
    if noted not in (None, 0, expected):  # with 0, torch takes the path that calls the activation
        raise InputError(
            f"expected activation_relu_or_gelu={expected} or 0 beside the activation {name}, "
            f"got {noted}: torch's fast path computes what was noted, its other path the activation; "
            "try a new layer, built with activation=…"
        )
    return name


def _activation(function: Any) -> str:
    """Name torch's activation: a function, or a module."""
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
        if type(function) in forms:
            _require_type(function, type(function), "the activation")
            _require_default(function)
            return "gelu_tanh" if getattr(function, "approximate", "none") == "tanh" else name
    kind = getattr(function, "__name__", type(function).__name__)
    raise InputError(
        f"the activation {kind} is not simulated: torch's own {', '.join(known)} are, as functions or "
        "as modules"
    )


def _require_default(activation: Any) -> None:
    """Refuse settings of an activation module that U has not."""
    approximation = getattr(activation, "approximate", "none")
    if approximation not in ("none", "tanh"):
        raise InputError(f"GELU: expected approximate to be none or tanh, got {approximation!r}")
    slope = getattr(activation, "negative_slope", 0.01)
    if slope != 0.01:
        raise InputError(f"LeakyReLU: expected negative_slope=0.01, got {slope}")
