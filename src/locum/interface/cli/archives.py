"""Save a transformer layer T and its input X as named arrays, and read them again.

An archive contains X and the matrices of T, under their names in ⟨T, X⟩. Matrices of several heads are
stacked on the first axis, except W_O and the matrices of factored attention. Fields of ``Order`` that
shapes do not determine (kind, norm, activation, …) are arrays of one entry. The mask is an array of one
entry or a matrix. Nothing is pickled. Unknown names raise an error, because T would otherwise be read
incompletely.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from locum.errors import InputError
from locum.execution.arrays import numpy_of
from locum.interface.cli.matrices import Numbers
from locum.simulators import Encoder, Module, MultiHeadAttention
from locum.simulators.attention_order import KINDS
from locum.simulators.modules.encoder_layers import Layer
from locum.simulators.modules.module import AttentionModule


def npz(arrays: Mapping[str, Any]) -> bytes:
    """Return the bytes of a ``.npz`` file that contains ``arrays``."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


#: Biases of factored attention, and the output matrix and bias, which are applied after the heads.
BIASES, BEHIND = ("b_Q", "b_K", "b_V"), ("W_O", "b_O")
FEED_FORWARD = ("W1", "W2", "b1", "b2")
NORMS = ("gain1", "bias1", "gain2", "bias2")
#: Fields of ``Order`` that belong to an encoder layer, but not to its attention.
AROUND = ("norm", "activation", "epsilon", "feed_forward_residual")
#: Maps settings to the NumPy kinds of their entries, and to descriptions. A mask may also be a matrix.
SETTINGS = {
    **dict.fromkeys(
        ("kind", "mask", "pooling", "feature_map", "nonlinearity", "combine", "norm", "activation"),
        ("U", "one word"),
    ),
    **dict.fromkeys(("bias", "feed_forward_residual"), ("b", "one boolean")),
    "heads": ("iu", "one integer"),
    "epsilon": ("fiu", "one number"),
}
_MATRICES = dict.fromkeys(name for kind in KINDS.values() for name in kind.matrices)
NAMES = ("X", *_MATRICES, *BIASES, *BEHIND, *FEED_FORWARD, *NORMS, *SETTINGS)


def is_result(name: str) -> bool:
    """Return whether an array named ``name`` is a saved result or step, not a part of X or T."""
    return name in ("result", "direct") or name.startswith("step ")


def known_arrays(arrays: Mapping[str, Numbers], where: str) -> dict[str, Any]:
    """Return the arrays of X and T under their canonical names, with settings as plain Python values.

    Names are case-insensitive, and saved results are omitted. ``where`` is the name of the file in
    errors.
    """
    proper = {name.lower(): name for name in NAMES}
    spelled: dict[str, str] = {}
    for name in arrays:
        if is_result(name):
            continue
        if name.lower() not in proper:
            raise InputError(f"{where}: expected arrays named {', '.join(NAMES)}, got {name!r}")
        if proper[name.lower()] in spelled:
            raise InputError(f"{where} has {name} twice, in upper and in lower case")
        spelled[proper[name.lower()]] = name
    # Check all names before reading values, because a file may be large.
    return {name: _value(name, arrays[other]) for name, other in spelled.items()}


def _value(name: str, array: Numbers) -> Any:
    """Return the plain value of a setting, or an unchanged matrix."""
    is_matrix = name not in SETTINGS or (name == "mask" and array.dtype.kind != "U")
    return array if is_matrix else _setting(name, array)


def _setting(name: str, array: Numbers) -> Any:
    kinds, words = SETTINGS[name]
    if array.size != 1 or array.dtype.kind not in kinds:
        raise InputError(f"{name}: expected {words}, got {array.dtype} of shape {array.shape}")
    return array.reshape(-1)[0].item()


def module_of(arrays: Mapping[str, Any]) -> Module:
    """Return the T that is described by ``arrays``, the result of :func:`known_arrays`."""
    left = {name: value for name, value in arrays.items() if name != "X"}
    attention = _attention(left)
    around = {name: left.pop(name) for name in (*FEED_FORWARD, *AROUND) if name in left}
    for number in ("1", "2"):
        gain, bias = left.pop(f"gain{number}", None), left.pop(f"bias{number}", None)
        if gain is not None or bias is not None:
            gain = np.ones_like(bias) if gain is None else gain
            around[f"norm{number}"] = (gain, np.zeros_like(gain) if bias is None else bias)
    if left:
        kind = arrays.get("kind", "softmax")
        raise InputError(f"a T of kind {kind} has no {' and no '.join(left)}: leave it out of the file")
    return attention if around in ({}, {"norm": "none"}) else Encoder(attention, **around)


def _attention(left: dict[str, Any]) -> AttentionModule:
    """Return the attention layer that is described by ``left``, and remove its arrays from ``left``.

    Except in factored attention, several heads are stacked on the first axis of each matrix.
    """
    name = left.pop("kind", "softmax")
    if name not in KINDS:
        raise InputError(f"kind: expected one of {', '.join(KINDS)}, got {name!r}")
    kind = KINDS[name]
    matrices = [left.pop(part) for part in kind.matrices]
    options = {word: left.pop(field) for field, word in kind.settings.items() if field in left}
    if kind.whole:
        options |= {part: left.pop(part) for part in (*BIASES, *BEHIND) if part in left}
        whole: AttentionModule = kind.module(*matrices, **options)
        return whole
    behind = {part: left.pop(part) for part in (*BEHIND, "combine") if part in left}
    if all(array.ndim != 3 for array in matrices):
        head = kind.module(*matrices, **options)
        return MultiHeadAttention([head], **behind) if behind else head
    stacked = [array[None] if array.ndim == 2 else array for array in matrices]
    if any(array.ndim != 3 or len(array) != len(stacked[0]) for array in stacked):
        shapes = ", ".join("×".join(map(str, array.shape)) for array in matrices)
        raise InputError(
            f"{' and '.join(kind.matrices)}: expected as many heads on the first axis of each, "
            f"got shapes {shapes}"
        )
    heads = [kind.module(*each, **options) for each in zip(*stacked, strict=True)]
    return MultiHeadAttention(heads, **behind)


def arrays_of(module: Module) -> dict[str, Numbers]:
    """Return matrices and settings of T as named arrays.

    :func:`known_arrays` and :func:`module_of` restore T from these arrays, unless T has rotary
    embeddings, shared key heads or score biases.
    """
    arrays: dict[str, Numbers] = {}
    for name, copies in module.matrices().items():
        parts = [numpy_of(copy) for copy in copies]
        if name == "W_O":
            arrays[name] = np.vstack(parts)
        elif name == "attention_mask":  # a mask of keys: one row for all queries
            arrays["mask"] = parts[0].reshape(-1)
        else:
            arrays[name] = np.stack(parts) if len(parts) > 1 else parts[0]
    order = module.order(1)
    attention = order.attention
    settings = {"kind": attention.kind}
    settings |= {field: getattr(attention, field) for field in KINDS[attention.kind].settings}
    if settings.get("mask") != "causal":
        settings.pop("mask", None)  # the mask is absent, or is one of the matrices
    if isinstance(module.attention if isinstance(module, Layer) else module, MultiHeadAttention):
        settings["combine"] = attention.combine
    if isinstance(module, Layer):
        settings |= {field: getattr(order, field) for field in AROUND if field != "epsilon"}
    return arrays | {name: np.array(value) for name, value in settings.items()}
