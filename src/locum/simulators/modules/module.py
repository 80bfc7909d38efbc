"""Define the interface of a module T: its order, its matrices, its masks and a direct computation.

U is built from the *order* of a module. The *matrices* of a module have the names of the blocks in the
layout of its order. The *steps* are all intermediate results, computed directly with NumPy under the
names of U's steps. A simulation can therefore be compared with a direct computation.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from locum.errors import InputError
from locum.execution.arrays import Array, numpy_of
from locum.simulators.attention_order import AttentionOrder
from locum.simulators.matrices import matrix, row
from locum.simulators.order import Order

#: A mask as given by users: None, "causal", a matrix or a vector.
Mask: TypeAlias = Any
#: A mask as stored in a T: None (every key is visible), "causal", or an array with one or two axes.
KeptMask: TypeAlias = "str | Array | None"
#: The names of masks among the matrices of a T. All heads share one mask.
MASK_BLOCKS = ("mask", "attention_mask")

_CONVENTION = "a mask is 1 where a query attends to a key and 0 where it does not"


def read_mask(mask: Mask) -> KeptMask:
    """Check a mask and return it; a mask is None, "causal", or a matrix or vector of zeros and ones."""
    if mask is None or isinstance(mask, str):
        if mask not in (None, "causal"):
            raise InputError(f"expected the mask to be causal, a matrix or a vector, got {mask!r}")
        return mask
    try:
        is_vector = np.ndim(mask) == 1
        entries = (
            row(mask, "the mask", len(mask)).reshape(-1) if is_vector else matrix(mask, "the mask")
        )
    except InputError as error:
        hint = f"; {_CONVENTION}, and is not added to the scores" if "finite" in str(error) else ""
        raise InputError(f"{error}{hint}") from None
    values = numpy_of(entries)
    others = values[(values != 0) & (values != 1)]
    if len(others):
        hint = f"{_CONVENTION}, and is not added to the scores"
        raise InputError(f"expected 0 or 1 in the mask, got {others[0]:g}; {hint}")
    return entries


def require_some_key(mask: KeptMask) -> None:
    """Raise an error if a row of the mask has no visible key, since the softmax of such a row is
    undefined.
    """
    if mask is None or isinstance(mask, str):
        return
    empty = np.flatnonzero((np.atleast_2d(numpy_of(mask)) == 0).all(axis=1))
    if len(empty):
        which = f"row {empty[0]} of the mask" if mask.ndim == 2 else "the mask"
        raise InputError(
            f"{which}: expected a mask that allows one key or more, got one that allows none"
        )


def mask_kind(mask: KeptMask) -> str | None:
    """Return the kind of a mask for an order: None, "causal", "keys" (a vector) or "matrix"."""
    if mask is None or isinstance(mask, str):
        return mask
    return "keys" if mask.ndim == 1 else "matrix"


def mask_matrices(mask: KeptMask) -> dict[str, list[Array]]:
    """Return a mask as a dictionary from the name of its block to its matrix; empty if the mask is not
    an array.
    """
    if mask is None or isinstance(mask, str):
        return {}
    if mask.ndim == 1:
        return {"attention_mask": [mask.reshape(1, -1)]}
    return {"mask": [mask]}


def attended(mask: KeptMask, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return a boolean matrix [query, key] that is true where a query attends to a key."""
    if mask is None:
        return np.ones(shape, dtype=np.bool_)
    if isinstance(mask, str):
        return np.tri(*shape, dtype=np.bool_)
    if mask.ndim == 1:
        keys = numpy_of(row(mask, "the mask", shape[1])) != 0
        return np.broadcast_to(keys, shape)
    return np.asarray(numpy_of(matrix(mask, "the mask", shape)) != 0, dtype=np.bool_)


Numbers = NDArray[np.float64]


class Module(ABC):
    """Base class of the simulated modules T: attention layers, encoder layers and decoder layers."""

    @abstractmethod
    def order(self, n: int, memory: int = 0) -> Order:
        """Return the order of the module for n rows of X and a memory of ``memory`` rows."""

    @abstractmethod
    def matrices(self) -> dict[str, list[Array]]:
        """Return the matrices of the module by the names of their blocks; a block contains one matrix
        or one per head.
        """

    @abstractmethod
    def steps(self, X: Array, memory: Array | None = None) -> dict[str, Numbers]:
        """Return every intermediate result by name, computed directly with NumPy; the last result is
        T(X).
        """

    @property
    def masks(self) -> tuple[KeptMask, KeptMask]:
        """The mask of the module's attention, and the mask of the cross-attention of a decoder
        layer.
        """
        return None, None

    def with_masks(self, mask: Mask, memory_mask: Mask = None) -> Self:
        """Return a module with the same matrices and with these masks, which its kind must support."""
        if mask is None and memory_mask is None:
            return self
        raise InputError(f"{type(self).__name__} does not support a mask")

    def __call__(self, X: Array, memory: Array | None = None) -> Numbers:
        """Compute T(X) directly with NumPy."""
        return list(self.steps(X, memory).values())[-1]


class AttentionModule(Module):
    """Base class of modules T that are an attention layer with one or several heads."""

    @abstractmethod
    def attention_order(self) -> AttentionOrder:
        """Return the order of the attention layer, without the number of rows."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        for remembered in [key for key in self.__dict__ if key.startswith("remembered")]:
            del self.__dict__[remembered]

    def order(self, n: int, memory: int = 0) -> Order:
        """Return the order of the attention layer for n rows of X and a memory of ``memory`` rows."""
        return Order(n, self.attention_order(), memory)

    def __repr__(self) -> str:
        order = self.attention_order()
        return f"{type(self).__name__}({', '.join(sizes(order))})"

    def checked(self, X: Array, memory: Array | None) -> tuple[Numbers, Numbers]:
        """Check X and the memory, and return the input of the queries and the input of the keys."""
        order = self.attention_order()
        queries = numpy_of(matrix(X, "X", (None, order.d)))
        if memory is None:
            if order.d_keys not in (0, order.d):
                raise InputError(f"expected a memory of {order.d_keys} columns, got none")
            return queries, queries
        return queries, numpy_of(matrix(memory, "the memory", (None, order.d_keys or order.d)))


class MaskedAttention(AttentionModule):
    """Base class of attention layers that support a mask."""

    mask: KeptMask

    @staticmethod
    @abstractmethod
    def read_mask(mask: Mask) -> KeptMask:
        """Check a mask, whose kind this attention must support, and return it."""

    @property
    def masks(self) -> tuple[KeptMask, KeptMask]:
        """The mask of the attention, and None in place of the mask of a cross-attention."""
        return self.mask, None

    def with_masks(self, mask: Mask, memory_mask: Mask = None) -> Self:
        """Return a copy of the attention with another mask."""
        made = copy.copy(self)
        made.mask = self.read_mask(mask)
        return made


def sizes(order: AttentionOrder) -> list[str]:
    """Return texts such as ``d=4`` for d, d_v and each optional field whose value is not the
    default.
    """
    sizes = [f"d={order.d}", f"d_v={order.d_v}"]
    for field in fields(order):
        value = getattr(order, field.name)
        if field.name not in ("kind", "d", "d_v") and value != field.default:
            sizes.append(f"{field.name}={value!r}")
    return sizes


def with_ones(X: Numbers) -> Numbers:
    """Return X with an additional column of ones, so that a product with weights can include biases."""
    return np.hstack([X, np.ones((len(X), 1))])
