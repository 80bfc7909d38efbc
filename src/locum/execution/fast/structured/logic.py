"""Elementwise comparison, logic and finite tables on whole arrays.

Truth is Python's: 0, 0.0, False and the empty string do not hold. A string never equals a number, and
has no order with one. Choosing between values of two kinds gives what Python's list would hold: bools
among ints count as ints, ints among floats as floats; strings among numbers are an error, left to
dense execution.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from locum.execution import elementwise, lookups
from locum.execution.arrays import Array, Arrays
from locum.execution.elementwise import MEANINGS
from locum.execution.fast.structured.columns import texts_of_few
from locum.execution.fast.structured.series import (
    Series,
    Unstructured,
    as_array,
    as_float,
    as_whole,
    constant,
    tokens_array,
)
from locum.graph import COMPARISONS, Atom
from locum.graph.atoms import INT64_LIMIT


def compare(arrays: Arrays, a: Series, b: Series, predicate: str) -> Series:
    """Return a ? b, position by position: bools."""
    holds = COMPARISONS[predicate].holds
    if a.is_number != b.is_number:
        if predicate not in ("==", "!="):
            raise Unstructured("a string and a number have no order")
        return constant(predicate == "!=")
    if a.constant and b.constant:
        return constant(bool(holds(a.data, b.data)))
    a, b = comparable(arrays, a, b)
    return Series(holds(a.data, b.data), "bool")


def comparable(arrays: Arrays, a: Series, b: Series) -> tuple[Series, Series]:
    """Return two series (of numbers, or of strings) in forms that compare as in Python."""
    if not a.is_number:
        return a, b
    a, b = as_whole(arrays, a), as_whole(arrays, b)
    if a.kind == b.kind == "int":
        if max(a.magnitude, b.magnitude) >= INT64_LIMIT:
            raise Unstructured("integers beyond 64 bits")
        return a, b
    return as_float(arrays, a), as_float(arrays, b)


def truth(arrays: Arrays, op: str, *inputs: Series) -> Series:
    """Return ``and``, ``or``, ``not`` and ``indicator``, of where each input holds."""
    meaning = MEANINGS[op]
    mask = meaning.array(arrays, *(value.data for value in inputs))
    return Series(arrays.to_int(mask), "int", (0, 1)) if meaning.kind == "int" else Series(mask, "bool")


def if_else(arrays: Arrays, condition: Series, then: Series, otherwise: Series) -> Series:
    """Return ``then`` where the condition holds, else ``otherwise``."""
    mask = elementwise.truth(arrays, condition.data)
    if isinstance(mask, bool):
        return then if mask else otherwise
    return choose(arrays, mask, then, otherwise)


def minimum(arrays: Arrays, a: Series, b: Series) -> Series:
    """Return a if a < b else b."""
    return if_else(arrays, compare(arrays, a, b, "<"), a, b)


def maximum(arrays: Arrays, a: Series, b: Series) -> Series:
    """Return a if a > b else b."""
    return if_else(arrays, compare(arrays, a, b, ">"), a, b)


def choose(arrays: Arrays, mask: Array, then: Series, otherwise: Series) -> Series:
    """Choose by an array of booleans; the kind is that of the values that are really chosen."""
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
    """Return whether a is one of a finite set."""
    _require_plain(values)
    return Series(lookups.member(arrays, a.data, values=values), "bool")


def lookup(arrays: Arrays, a: Series, *, table: tuple[tuple[Atom, Atom], ...]) -> Series:
    """Return what a finite table has for a; nothing may be missing."""
    keys = [key for key, _ in table]
    _require_plain(keys)
    entries = lookups.usable(arrays, a.data, keys)
    place, hit = lookups.find(arrays, a.data, [keys[n] for n in entries]) if entries else (None, False)
    if not arrays.all(hit):
        raise Unstructured("the table has nothing for a value here")
    # The type is that of the values that occur: others may be strings beside numbers.
    used = arrays.positions(arrays.numbers_of(place, len(entries)) > 0).tolist()
    values = tokens_array([table[entries[number]][1] for number in used])
    if arrays.on_torch and values.kind == "string":
        raise Unstructured("tensors hold no strings")
    renumbered = arrays.table(len(entries), arrays.put(np.array(used)), arrays.arange(len(used)))
    chosen = arrays.take(arrays.put(values.data), arrays.take(renumbered, place))
    return Series(chosen, values.kind, values.bounds, values.mixed)


def _require_plain(keys: Sequence[Atom]) -> None:
    if any(isinstance(key, str) and "\0" in key for key in keys):
        raise Unstructured("strings that contain the character NUL")


# Casts of the tokens ------------------------------------------------------------------------------


def cast(arrays: Arrays, tokens: Series, how: str) -> Series:
    """Cast tokens as ``tokens_str``, ``tokens_int``, ``tokens_float`` or ``tokens_bool`` does."""
    if how == "asis" or how == tokens.kind or (how == "str" and tokens.kind == "string"):
        return tokens if not (tokens.mixed and how == "float") else Series(tokens.data, "float")
    if how == "bool":
        return Series(elementwise.truth(arrays, tokens.data), "bool")
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
        return Series(whole, "int", arrays.range_of(whole))
    if tokens.mixed and how == "str":
        raise Unstructured("the text of a number depends on its type")
    texts = texts_of_few(arrays, tokens) if how == "str" and tokens.kind == "int" else None
    if texts is not None:
        return texts
    python = {"str": str, "int": int, "float": float}[how]
    try:
        return tokens_array([python(value) for value in tokens.data.tolist()])
    except (ValueError, OverflowError) as error:
        raise Unstructured(f"a token cannot be cast: {error}") from None
