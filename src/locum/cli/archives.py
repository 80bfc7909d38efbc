"""A T as the named arrays of a file, and back: what ``locum simulate`` saves, it reads again.

Matrices have the names of the layout's blocks; those of several heads are stacked, but for W_O, which
is one matrix. What a T has beside matrices (its kind, mask, norm, activation, …) are arrays of one
word, one number or one truth value. Nothing is pickled, and a name that means nothing is an error: half
a T is another T.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from locum.cli.matrices import Numbers
from locum.errors import InputError
from locum.execution.arrays import numpy_of
from locum.simulators import (
    Attention,
    Encoder,
    LinearAttention,
    Linformer,
    Module,
    MultiHeadAttention,
    Performer,
    Sumformer,
)
from locum.simulators.modules.layer import Layer
from locum.simulators.modules.module import AttentionModule

#: The class of each kind, the matrices of a head, and its settings: name in the file → keyword.
KINDS: dict[str, tuple[type[AttentionModule], tuple[str, ...], dict[str, str]]] = {
    "softmax": (Attention, ("A", "V"), {"mask": "mask", "pooling": "pooling"}),
    "linear": (
        LinearAttention,
        ("W_Q", "W_K", "V"),
        {"mask": "mask", "feature_map": "feature_map"},
    ),
    "linformer": (Linformer, ("W_Q", "W_K", "V", "E", "F"), {}),
    "performer": (Performer, ("W_Q", "W_K", "V", "omega"), {}),
    "sumformer": (Sumformer, ("W_phi", "W_x", "W_sum", "V"), {"nonlinearity": "activation"}),
}
BEHIND = ("W_O", "b_O")
FEED_FORWARD = ("W1", "W2", "b1", "b2")
NORMS = ("gain1", "bias1", "gain2", "bias2")
#: One word, one truth value, one number each. A mask may be a word, too.
WORDS = ("kind", "pooling", "feature_map", "nonlinearity", "combine", "norm", "activation")
FLAGS = ("biased", "feed_forward_residual")
#: What belongs to an encoder, around its attention.
AROUND = ("activation", "epsilon", "feed_forward_residual")
#: What --save writes beside T.
RESULTS = ("result", "direct")
_MATRICES = dict.fromkeys(name for _, names, _ in KINDS.values() for name in names)
NAMES = (
    *("X", *_MATRICES, *BEHIND, *FEED_FORWARD, *NORMS),
    *("mask", *WORDS, *FLAGS, "epsilon"),
)


def known_arrays(arrays: Mapping[str, Numbers], where: str) -> dict[str, Any]:
    """Return the arrays that describe X and T, by their proper names; settings as plain values.

    All names are checked before any array is read.
    """
    proper = {name.lower(): name for name in NAMES}
    chosen: dict[str, str] = {}
    for given in arrays:
        if given in RESULTS or given.startswith("step "):
            continue
        name = proper.get(given.lower())
        if name is None:
            raise InputError(f"{where} has an array {given!r}, which is no part of T: {_offered()}")
        if name in chosen:
            raise InputError(f"{where} has {name} twice, in capital and in small letters")
        chosen[name] = given
    found = {name: arrays[given] for name, given in chosen.items()}
    return {name: _setting(name, a) if _is_setting(name, a) else a for name, a in found.items()}


def _offered() -> str:
    return f"the names are {', '.join(NAMES)}"


def _is_setting(name: str, array: Numbers) -> bool:
    return name in (*WORDS, *FLAGS, "epsilon") or (name == "mask" and array.dtype.kind == "U")


def _setting(name: str, array: Numbers) -> str | bool | float:
    """One word, one truth value or one number."""
    wanted, kinds = ("one number", "fiu") if name == "epsilon" else ("one word", "U")
    if name in FLAGS:
        wanted, kinds = "one truth value", "b"
    if array.size != 1 or array.dtype.kind not in kinds:
        raise InputError(f"{name} must be {wanted}, but it is {array.dtype} of shape {array.shape}")
    value: str | bool | float = array.reshape(-1)[0].item()
    return value


def module_of(arrays: Mapping[str, Any]) -> Module:
    """The T that the arrays of a file describe (those that ``known_arrays`` gives)."""
    left = {name: value for name, value in arrays.items() if name != "X"}
    norm = left.pop("norm", "none")
    attention = _attention(left)
    affine: dict[str, Any] = {}
    for number in ("1", "2"):
        gain, bias = left.pop(f"gain{number}", None), left.pop(f"bias{number}", None)
        if gain is not None or bias is not None:
            gain = np.ones_like(bias) if gain is None else gain
            affine[f"norm{number}"] = (gain, np.zeros_like(gain) if bias is None else bias)
    around = {name: left.pop(name) for name in (*FEED_FORWARD, *AROUND) if name in left}
    kind = arrays.get("kind", "softmax")
    if left:
        raise InputError(f"{', '.join(left)} would be left out: a T of kind {kind} has no such thing")
    if not around and not affine and norm == "none":
        return attention
    return Encoder(attention, **around, **affine, norm=norm)


def _attention(left: dict[str, Any]) -> AttentionModule:
    """One head, or as many as its matrices have on their first axis; takes what it uses."""
    kind = left.pop("kind", "softmax")
    if kind not in KINDS:
        raise InputError(f"there is no kind {kind!r}: choose one of {', '.join(KINDS)}")
    made, names, settings = KINDS[kind]
    matrices = [left.pop(name) for name in names]
    options = {keyword: left.pop(name) for name, keyword in settings.items() if name in left}
    options["biased"] = left.pop("biased", False)
    behind = {name: left.pop(name) for name in (*BEHIND, "combine") if name in left}
    if all(array.ndim != 3 for array in matrices):
        head = made(*matrices, **options)
        return MultiHeadAttention([head], **behind) if behind else head
    stacked = [array[None] if array.ndim == 2 else array for array in matrices]
    if any(array.ndim != 3 or len(array) != len(stacked[0]) for array in stacked):
        shapes = ", ".join("×".join(map(str, array.shape)) for array in matrices)
        raise InputError(
            f"{' and '.join(names)} of several heads have the heads on their first axis, as many in "
            f"all of them, but their shapes are {shapes}"
        )
    return MultiHeadAttention([made(*each, **options) for each in zip(*stacked, strict=True)], **behind)


def arrays_of(module: Module) -> dict[str, Numbers]:
    """All that T is, as arrays: ``module_of`` gives it back."""
    found: dict[str, Numbers] = {}
    for name, copies in module.matrices().items():
        parts = [numpy_of(copy) for copy in copies]
        if name == "W_O":
            found[name] = np.vstack(parts)
        else:
            found[name] = np.stack(parts) if len(parts) > 1 else parts[0]
    order = module.order(1)
    attention = order.attention
    _, _, of_kind = KINDS[attention.kind]
    settings: dict[str, Any] = {"kind": attention.kind, "biased": attention.bias}
    settings |= {name: getattr(attention, name) for name in of_kind}
    if settings.get("mask") != "causal":
        settings.pop("mask", None)  # there is none, or it is a matrix, and found already
    if isinstance(module.attention if isinstance(module, Layer) else module, MultiHeadAttention):
        settings["combine"] = attention.combine
    if isinstance(module, Layer):
        names = ("norm", "activation", "feed_forward_residual")  # ε is among the matrices
        settings |= {name: getattr(order, name) for name in names}
    return found | {name: np.array(value) for name, value in settings.items()}
