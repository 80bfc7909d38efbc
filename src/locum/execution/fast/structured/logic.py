"""Elementwise comparison, logic and finite tables on whole arrays.

Truth is Python's: 0, 0.0, False and the empty string do not hold. A string never equals a number, and
has no order with one. Choosing between values of two kinds gives what Python's list would hold: bools
among ints count as ints, ints among floats as floats; strings among numbers are an error, left to
dense execution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from locum.execution.arrays import Array, Arrays
from locum.execution.fast.structured.series import (
    Series,
    Unstructured,
    as_array,
    as_float,
    as_whole,
    constant,
    found_bounds,
    tokens_array,
)
from locum.graph import COMPARISONS, Atom
from locum.graph.atoms import INT64_LIMIT, LARGEST_EXACT


def compare(arrays: Arrays, a: Series, b: Series, predicate: str) -> Series:
    """a ? b, position by position: bools."""
    if a.is_number != b.is_number:
        if predicate not in ("==", "!="):
            raise Unstructured("a string and a number have no order")
        return constant(predicate == "!=")
    if a.constant and b.constant:
        return constant(bool(holds(a.data, b.data, predicate)))
    a, b = comparable(arrays, a, b)
    return Series(holds(a.data, b.data, predicate), "bool")


def holds(a: Any, b: Any, predicate: str) -> Any:
    """a ? b, of scalars or arrays that can be compared."""
    return COMPARISONS[predicate].holds(a, b)


def comparable(arrays: Arrays, a: Series, b: Series) -> tuple[Series, Series]:
    """Two series of numbers, or two of strings, in forms that the library compares as Python does."""
    if not a.is_number:
        return a, b
    a, b = as_whole(arrays, a), as_whole(arrays, b)
    if a.kind == b.kind == "int":
        if max(a.magnitude, b.magnitude) >= INT64_LIMIT:
            raise Unstructured("whole numbers beyond 64 bits")
        return a, b
    return as_float(arrays, a), as_float(arrays, b)


def truth(a: Series) -> Array:
    """Where a holds (a scalar for a constant)."""
    if a.constant:
        return bool(a.data)
    if a.kind == "bool":
        return a.data
    return a.data != ("" if a.kind == "string" else 0)


def and_(arrays: Arrays, a: Series, b: Series) -> Series:
    """Both hold."""
    return Series(truth(a) & truth(b), "bool")


def or_(arrays: Arrays, a: Series, b: Series) -> Series:
    """One holds, or both."""
    return Series(truth(a) | truth(b), "bool")


def not_(arrays: Arrays, a: Series) -> Series:
    """It does not hold."""
    return Series(~truth(a), "bool")


def indicator(arrays: Arrays, a: Series) -> Series:
    """1 where it holds, else 0."""
    return Series(arrays.to_int(truth(a)), "int", (0, 1))


def if_else(arrays: Arrays, condition: Series, then: Series, otherwise: Series) -> Series:
    """``then`` where the condition holds, else ``otherwise``."""
    mask = truth(condition)
    if condition.constant:
        return then if mask else otherwise
    return choose(arrays, mask, then, otherwise)


def minimum(arrays: Arrays, a: Series, b: Series) -> Series:
    """a if a < b else b."""
    return if_else(arrays, compare(arrays, a, b, "<"), a, b)


def maximum(arrays: Arrays, a: Series, b: Series) -> Series:
    """a if a > b else b."""
    return if_else(arrays, compare(arrays, a, b, ">"), a, b)


def choose(arrays: Arrays, mask: Array, then: Series, otherwise: Series) -> Series:
    """By an array of bools; the kind is that of the values that are really chosen."""
    if then.kind != otherwise.kind:
        if arrays.all(mask):
            return then
        if not arrays.any(mask):
            return otherwise
        if not (then.is_number and otherwise.is_number):
            raise Unstructured("a sequence cannot mix strings with numbers")
        then, otherwise = as_whole(arrays, then), as_whole(arrays, otherwise)
        if then.kind != otherwise.kind:
            then, otherwise = as_float(arrays, then), as_float(arrays, otherwise)
    low = min(then.bounds[0], otherwise.bounds[0])
    high = max(then.bounds[1], otherwise.bounds[1])
    chosen = arrays.xp.where(mask, as_array(arrays, then), as_array(arrays, otherwise))
    return Series(chosen, then.kind, (low, high), then.mixed or otherwise.mixed)


# Finite sets and tables ---------------------------------------------------------------------------


def member(arrays: Arrays, a: Series, *, values: tuple[Atom, ...]) -> Series:
    """Whether a is one of a finite set."""
    places = _places(arrays, a, values)
    return constant(False) if places is None else Series(places[1], "bool")


def lookup(arrays: Arrays, a: Series, *, table: tuple[tuple[Atom, Atom], ...]) -> Series:
    """What a finite table has for a; nothing may be missing."""
    keys = [key for key, _ in table]
    places = _places(arrays, a, keys)
    if places is None or not arrays.all(places[1]):
        raise Unstructured("the table has nothing for a value here")
    entries = _usable(keys, a)
    place = places[0]
    used = arrays.positions(arrays.numbers_of(place, len(entries)) > 0).tolist()
    found = tokens_array([table[entries[number]][1] for number in used])
    renumbered = arrays.table(
        len(entries), arrays.xp.asarray(used, device=arrays.device), arrays.arange(len(used))
    )
    data = found.data
    if arrays.on_torch:
        if found.kind == "string":
            raise Unstructured("tensors hold no strings")
        data = arrays.xp.asarray(data, device=arrays.device)
        data = arrays.cast(data, arrays.float) if found.kind == "float" else data
    chosen = arrays.take(data, arrays.take(renumbered, place))
    return Series(chosen, found.kind, found.bounds, found.mixed)


def _usable(keys: Sequence[Atom], a: Series) -> list[int]:
    """Which of the keys can equal a value of this kind, in ascending order."""
    places = [n for n, key in enumerate(keys) if isinstance(key, str) != a.is_number]
    return sorted(places, key=lambda n: keys[n])


def _places(arrays: Arrays, a: Series, keys: Sequence[Atom]) -> tuple[Array, Array] | None:
    """For each position, which of the usable keys may equal it, and whether it does."""
    for key in keys:
        if isinstance(key, float) and math.isnan(key):
            raise Unstructured("nan in a finite set")
        large = isinstance(key, int) and abs(key) >= LARGEST_EXACT
        if large or (isinstance(key, str) and "\0" in key):
            raise Unstructured("a finite set with members that arrays do not hold")
    usable = [keys[place] for place in _usable(keys, a)]
    if not usable:
        return None
    if a.kind == "string":
        held, wanted = a.data, np.array(usable)
    else:
        held = as_float(arrays, as_whole(arrays, a)).data
        wanted = arrays.xp.asarray(list(map(float, usable)), dtype=held.dtype, device=arrays.device)
    held = arrays.detached(held)
    place = arrays.search(wanted, held, "left")
    place = arrays.xp.clip(place, None, len(usable) - 1)
    return place, arrays.take(wanted, place) == held


# Casts of the tokens ------------------------------------------------------------------------------


def cast(arrays: Arrays, tokens: Series, how: str) -> Series:
    """The tokens as ``tokens_str``, ``tokens_int``, ``tokens_float`` or ``tokens_bool`` sees them."""
    if how == "asis" or how == tokens.kind or (how == "str" and tokens.kind == "string"):
        return tokens if not (tokens.mixed and how == "float") else Series(tokens.data, "float")
    if how == "bool":
        return Series(truth(tokens), "bool")
    if tokens.is_number and how == "float":
        return Series(as_float(arrays, as_whole(arrays, tokens)).data, "float")
    if tokens.kind == "bool" and how == "int":
        return as_whole(arrays, tokens)
    if arrays.on_torch:
        if how == "str":
            raise Unstructured("tensors hold no strings")
        if not arrays.all(arrays.xp.abs(tokens.data) < INT64_LIMIT):  # not so for nan either
            raise Unstructured("int of a token that is not finite, or very large")
        whole = arrays.to_int(arrays.xp.trunc(tokens.data))
        return Series(whole, "int", found_bounds(arrays, whole))
    if tokens.mixed and how == "str":
        raise Unstructured("the text of a number depends on its type")
    python = {"str": str, "int": int, "float": float}[how]
    try:
        return tokens_array([python(value) for value in tokens.data.tolist()])
    except (ValueError, OverflowError) as error:
        raise Unstructured(f"a token cannot be cast: {error}") from None
