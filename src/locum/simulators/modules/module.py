"""What a T is: matrices of known shapes, to be flattened into tokens, and a way to evaluate itself.

A module gives its *order* (from which U is built), its *matrices* by the names that the layout of that
order has, and its *steps*: every intermediate result, computed directly with NumPy under the names
that U's own steps have. The simulation so always has something to be compared with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from locum.errors import InputError
from locum.simulators.arrays import Array, matrix, numpy_of, row
from locum.simulators.attention_order import AttentionOrder
from locum.simulators.order import Order

Numbers = NDArray[np.float64]
#: A mask as users say it: "causal", a matrix that is 0 where a key is not seen, or a vector that is 0
#: at keys that no query sees (padding).
Mask = Any
#: The names that masks have among the matrices of a T: all heads share them.
MASK_BLOCKS = ("mask", "seen")


#: A mask that is added to the scores says the opposite by its zeros.
NOT_ADDITIVE = "; a mask is 0 where a key is not seen and 1 where it is, not added to the scores"


class Module(ABC):
    """A T: an attention, an encoder, a decoder layer."""

    @abstractmethod
    def order(self, n: int, memory: int = 0) -> Order:
        """The order it has on n rows (and a memory of so many)."""

    @abstractmethod
    def matrices(self) -> dict[str, list[Array]]:
        """What characterises it, by the names of the layout's blocks: one matrix, or one per head."""

    @abstractmethod
    def steps(self, X: Array, memory: Array | None = None) -> dict[str, Numbers]:
        """Every intermediate result, computed directly; the last is T(X)."""

    def with_masks(self, mask: Mask, memory_mask: Mask = None) -> Self:
        """The same T with other masks: of its attention, and of a decoder's second one."""
        raise InputError(f"a {type(self).__name__} takes no mask")

    def __call__(self, X: Array, memory: Array | None = None) -> Numbers:
        """T(X), computed directly with NumPy."""
        return list(self.steps(X, memory).values())[-1]


class AttentionModule(Module):
    """A T that is an attention, of one head or several."""

    @abstractmethod
    def attention_order(self) -> AttentionOrder:
        """Its order but for the number of rows."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        self.__dict__.pop("remembered_order", None)

    def order(self, n: int, memory: int = 0) -> Order:
        """The order it has on n rows (and a memory of so many)."""
        return Order(n, self.attention_order(), memory)

    def __repr__(self) -> str:
        order = self.attention_order()
        return f"{type(self).__name__}({', '.join(sizes(order))})"

    def checked(self, X: Array, memory: Array | None) -> tuple[Numbers, Numbers]:
        """Queries' and keys' input, of the shapes this attention takes."""
        order = self.attention_order()
        queries = numpy_of(matrix(X, "X", (None, order.d)))
        if memory is None:
            if order.d_keys not in (0, order.d):
                raise InputError(f"this attention reads a memory of {order.d_keys} columns: give one")
            return queries, queries
        return queries, numpy_of(matrix(memory, "the memory", (None, order.d_keys or order.d)))


def sizes(order: AttentionOrder) -> list[str]:
    """An order in short: d and d_v, and whatever else is not the default."""
    found = [f"d={order.d}", f"d_v={order.d_v}"]
    for field in fields(order):
        value = getattr(order, field.name)
        if field.name not in ("kind", "d", "d_v") and value != field.default:
            found.append(f"{field.name}={value!r}")
    return found


def read_mask(mask: Mask) -> str | Array | None:
    """A mask as a T keeps it: a word of its order, a matrix, or a vector."""
    if mask is None or isinstance(mask, str):
        if mask not in (None, "causal"):
            raise InputError(f"there is no mask {mask!r}: choose causal, or give a matrix or a vector")
        return mask
    if np.ndim(mask) == 1:
        found = row(mask, "the mask", len(mask)).reshape(-1)
    else:
        try:
            found = matrix(mask, "the mask")
        except InputError as error:
            raise InputError(f"{error}{NOT_ADDITIVE if 'finite' in str(error) else ''}") from None
    if bool((found < 0).any()):
        raise InputError(f"the mask has negative numbers{NOT_ADDITIVE}")
    return found


def mask_kind(mask: str | Array | None) -> str | None:
    """What the order of a T says of its mask."""
    if mask is None or isinstance(mask, str):
        return mask
    return "keys" if mask.ndim == 1 else "matrix"


def mask_matrices(mask: str | Array | None) -> dict[str, list[Array]]:
    """The mask among the matrices of a T, if it is an array."""
    if mask is None or isinstance(mask, str):
        return {}
    return {"seen": [mask.reshape(1, -1)]} if mask.ndim == 1 else {"mask": [mask]}


def require_some_key(mask: str | Array | None) -> None:
    """Refuse a mask of which some row sees nothing: there is no softmax of nothing."""
    if mask is None or isinstance(mask, str):
        return
    empty = np.flatnonzero((np.atleast_2d(numpy_of(mask)) == 0).all(axis=1))
    if len(empty):
        which = f"row {empty[0]} of the mask" if mask.ndim == 2 else "the mask"
        raise InputError(f"{which} leaves no key to be seen: every query must see one or more")


def seen(mask: str | Array | None, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Which keys each query sees: [query, key]."""
    if mask is None:
        return np.ones(shape, dtype=np.bool_)
    if isinstance(mask, str):
        return np.tri(*shape, dtype=np.bool_)
    if mask.ndim == 1:
        keys = numpy_of(row(mask, "the mask", shape[1])) != 0
        return np.broadcast_to(keys, shape)
    return np.asarray(numpy_of(matrix(mask, "the mask", shape)) != 0, dtype=np.bool_)


def with_ones(X: Numbers) -> Numbers:
    """X with a column of ones behind it, by which biases are reached."""
    return np.hstack([X, np.ones((len(X), 1))])
