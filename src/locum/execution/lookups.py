"""Finite sets and tables on arrays: which of some keys an element is.

Keys are atoms of any type, arrays hold integers, floats or (NumPy only) strings; equality is Python's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from locum.execution.arrays import Array, Arrays
from locum.graph.atoms import EXACT_INTEGERS


def usable(arrays: Arrays, a: Array, keys: Sequence[Any]) -> list[int]:
    """Return which of the keys can equal an element of ``a``, in ascending order of the keys.

    A string equals no number, NaN equals nothing, 2.5 equals no integer, and an integer that the
    floating-point type does not hold equals no float.
    """
    if not arrays.on_torch and a.dtype.kind == "U":
        places = [n for n, key in enumerate(keys) if isinstance(key, str)]
    else:
        bits = None if arrays.is_int(a) else _significant_bits(a)
        places = [n for n, key in enumerate(keys) if _can_occur(key, bits)]
    return sorted(places, key=lambda n: keys[n])


def _significant_bits(array: Array) -> int:
    return EXACT_INTEGERS[str(array.dtype).removeprefix("torch.")].bit_length() - 1


def _can_occur(key: Any, bits: int | None) -> bool:
    """Return whether a key can stand in an array of int64, or of floats of so many significant bits."""
    if isinstance(key, str) or key != key:
        return False
    if bits is None:
        return bool(abs(key) < 2**63 and int(key) == key)
    return isinstance(key, float) or not key % 2 ** max(0, int(key).bit_length() - bits)


def find(arrays: Arrays, a: Array, keys: Sequence[Any]) -> tuple[Array, Array]:
    """Return for each element, which of the keys it may equal, and whether it does.

    There is at least one key, and all are :func:`usable`, in ascending order.
    """
    xp = arrays.xp
    if isinstance(keys[0], str):
        ascending: Array = np.array(keys)
    else:
        a = arrays.to_int(a) if arrays.is_int(a) else a
        exact = np.array(list(map(int, keys)) if arrays.is_int(a) else list(map(float, keys)))
        ascending = xp.asarray(exact, dtype=a.dtype, device=arrays.device)
    held = arrays.detached(a)
    place = arrays.search(ascending, held.reshape(-1), "left")
    place = xp.clip(place, 0, len(keys) - 1).reshape(a.shape)
    return place, ascending[place] == held


def member(arrays: Arrays, a: Array, *, values: Sequence[Any]) -> Array:
    """Return whether each element is one of ``values``."""
    keys = [values[n] for n in usable(arrays, a, values)]
    return find(arrays, a, keys)[1] if keys else arrays.xp.zeros_like(a, dtype=arrays.xp.bool)


def lookup(arrays: Arrays, a: Array, *, table: Sequence[tuple[Any, Any]]) -> Array:
    """Return what ``table`` has for each element; anything where it is :func:`missing`."""
    entries = [table[n] for n in usable(arrays, a, [key for key, _ in table])]
    if not entries:
        return arrays.full(tuple(a.shape), 0)
    values = [value for _, value in entries]
    if any(isinstance(value, float) for value in values):
        values = list(map(float, values))
    elif not all(isinstance(value, (bool, str)) for value in values):
        values = list(map(int, values))
    return arrays.put(np.array(values))[find(arrays, a, [key for key, _ in entries])[0]]


def missing(arrays: Arrays, a: Array, *, table: Sequence[tuple[Any, Any]]) -> Array:
    """Return where ``table`` has nothing for an element."""
    keys = [table[n][0] for n in usable(arrays, a, [key for key, _ in table])]
    if not keys:
        return arrays.xp.ones_like(a, dtype=arrays.xp.bool)
    return ~find(arrays, a, keys)[1]
