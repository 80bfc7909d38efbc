"""Masks of an attention: 1 where a query attends to a key, 0 where it does not.

This is the convention of ``attention_mask`` in the transformers library and of boolean masks in
``torch.nn.functional.scaled_dot_product_attention``. ``key_padding_mask`` and ``attn_mask`` of
PyTorch's modules have the opposite meaning. A mask is the word "causal", a matrix [query, key], or a
vector over the keys.

>>> attended(read_mask([1, 1, 0]), (2, 3)).tolist()
[[True, True, False], [True, True, False]]
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from locum.errors import InputError
from locum.execution.arrays import Array, numpy_of
from locum.simulators.matrices import matrix, row

#: A mask as users give it: None, "causal", a matrix or a vector.
Mask: TypeAlias = Any
#: A mask as a T keeps it: None (attend everywhere), "causal", or an array of one or two axes.
KeptMask: TypeAlias = "str | Array | None"
#: The names that masks have among the matrices of a T: all heads share them.
MASK_BLOCKS = ("mask", "attention_mask")

_CONVENTION = "a mask is 1 where a query attends to a key and 0 where it does not"


def read_mask(mask: Mask, name: str = "the mask") -> KeptMask:
    """Check a mask: a known word, or a matrix or vector of zeros and ones."""
    if mask is None or isinstance(mask, str):
        if mask not in (None, "causal"):
            raise InputError(f"expected {name} to be causal, a matrix or a vector, got {mask!r}")
        return mask
    try:
        entries = row(mask, name, len(mask)).reshape(-1) if np.ndim(mask) == 1 else matrix(mask, name)
    except InputError as error:
        hint = f"; {_CONVENTION}, and is not added to the scores" if "finite" in str(error) else ""
        raise InputError(f"{error}{hint}") from None
    values = numpy_of(entries)
    others = values[(values != 0) & (values != 1)]
    if len(others):
        hint = f"{_CONVENTION}, and is not added to the scores"
        raise InputError(f"expected 0 or 1 in {name}, got {others[0]:g}; {hint}")
    return entries


def require_some_key(mask: KeptMask, name: str = "the mask") -> None:
    """Refuse a mask of which some row attends to nothing: there is no softmax of nothing."""
    if mask is None or isinstance(mask, str):
        return
    empty = np.flatnonzero((np.atleast_2d(numpy_of(mask)) == 0).all(axis=1))
    if len(empty):
        which = f"row {empty[0]} of {name}" if mask.ndim == 2 else name
        raise InputError(f"{which} leaves no key to attend to: expected one or more")


def mask_kind(mask: KeptMask) -> str | None:
    """Name the kind of a mask, as an order has it: None, causal, keys or matrix."""
    if mask is None or isinstance(mask, str):
        return mask
    return "keys" if mask.ndim == 1 else "matrix"


def mask_matrices(mask: KeptMask, prefix: str = "") -> dict[str, list[Array]]:
    """Give the mask by the name of its block among the matrices of a T, if it is an array."""
    if mask is None or isinstance(mask, str):
        return {}
    if mask.ndim == 1:
        return {f"{prefix}attention_mask": [mask.reshape(1, -1)]}
    return {f"{prefix}mask": [mask]}


def attended(mask: KeptMask, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Tell which keys each query attends to: a boolean matrix [query, key]."""
    if mask is None:
        return np.ones(shape, dtype=np.bool_)
    if isinstance(mask, str):
        return np.tri(*shape, dtype=np.bool_)
    if mask.ndim == 1:
        keys = numpy_of(row(mask, "the mask", shape[1])) != 0
        return np.broadcast_to(keys, shape)
    return np.asarray(numpy_of(matrix(mask, "the mask", shape)) != 0, dtype=np.bool_)
