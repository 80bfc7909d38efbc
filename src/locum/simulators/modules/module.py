"""The interface of a T: matrices of known shapes, masks, and a direct computation.

A module gives its *order* (from which U is built), its *matrices* by the names that the layout of that
order has, and its *steps*: every intermediate result, computed directly with NumPy under the names
that U's own steps have. The simulation so always has something to be compared with.
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


Numbers = NDArray[np.float64]


class Module(ABC):
    """A T: an attention, an encoder, a decoder layer."""

    @abstractmethod
    def order(self, n: int, memory: int = 0) -> Order:
        """Return the order it has on n rows (and a memory of ``memory`` rows)."""

    @abstractmethod
    def matrices(self) -> dict[str, list[Array]]:
        """Return its matrices by the names of the layout's blocks: one, or one per head."""

    @abstractmethod
    def steps(self, X: Array, memory: Array | None = None) -> dict[str, Numbers]:
        """Compute every intermediate result directly; the last is T(X)."""

    @property
    def masks(self) -> tuple[KeptMask, KeptMask]:
        """The mask of its attention, and that of a decoder's cross-attention."""
        return None, None

    def with_masks(self, mask: Mask, memory_mask: Mask = None) -> Self:
        """Copy it with these masks in place of its own; they must fit its kind."""
        if mask is None and memory_mask is None:
            return self
        raise InputError(f"a {type(self).__name__} takes no mask")

    def __call__(self, X: Array, memory: Array | None = None) -> Numbers:
        """Compute T(X) directly with NumPy."""
        return list(self.steps(X, memory).values())[-1]


class AttentionModule(Module):
    """A T that is an attention, of one head or several."""

    @abstractmethod
    def attention_order(self) -> AttentionOrder:
        """Return its order but for the number of rows."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        for remembered in [key for key in self.__dict__ if key.startswith("remembered")]:
            del self.__dict__[remembered]

    def order(self, n: int, memory: int = 0) -> Order:
        """Return the order it has on n rows (and a memory of ``memory`` rows)."""
        return Order(n, self.attention_order(), memory)

    def __repr__(self) -> str:
        order = self.attention_order()
        return f"{type(self).__name__}({', '.join(sizes(order))})"

    def checked(self, X: Array, memory: Array | None) -> tuple[Numbers, Numbers]:
        """Check the input of the queries and of the keys."""
        order = self.attention_order()
        queries = numpy_of(matrix(X, "X", (None, order.d)))
        if memory is None:
            if order.d_keys not in (0, order.d):
                raise InputError(f"this attention reads a memory of {order.d_keys} columns: give one")
            return queries, queries
        return queries, numpy_of(matrix(memory, "the memory", (None, order.d_keys or order.d)))


class MaskedAttention(AttentionModule):
    """An attention with a mask."""

    mask: KeptMask

    @staticmethod
    @abstractmethod
    def read_mask(mask: Mask) -> KeptMask:
        """Check a mask: it must be one that this attention takes."""

    @property
    def masks(self) -> tuple[KeptMask, KeptMask]:
        """Its mask; it has no second attention."""
        return self.mask, None

    def with_masks(self, mask: Mask, memory_mask: Mask = None) -> Self:
        """Copy the attention with another mask."""
        made = copy.copy(self)
        made.mask = self.read_mask(mask)
        return made


def sizes(order: AttentionOrder) -> list[str]:
    """Abbreviate an order: d and d_v, and whatever else is not the default."""
    sizes = [f"d={order.d}", f"d_v={order.d_v}"]
    for field in fields(order):
        value = getattr(order, field.name)
        if field.name not in ("kind", "d", "d_v") and value != field.default:
            sizes.append(f"{field.name}={value!r}")
    return sizes


def with_ones(X: Numbers) -> Numbers:
    """Append a column of ones to X, which carries the biases."""
    return np.hstack([X, np.ones((len(X), 1))])
