"""Compute elementwise arithmetic, comparisons, logic and finite tables on series.

Truth values follow Python: 0, 0.0, False and the empty string are false. A string never equals a number
and has no order with one. If a choice returns values of two types, bools are converted to ints, and
ints to floats. A choice that would mix strings with numbers raises :class:`Unstructured`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from locum.execution import array_numbers, elementwise
from locum.execution.array_numbers import Interval
from locum.execution.arrays import Array, Arrays
from locum.execution.elementwise import MEANINGS, apply, checked, ieee, refusing
from locum.execution.fast.structured.columns import texts_of_few
from locum.execution.fast.structured.series import (
    MAX_CHARACTERS,
    Series,
    Unstructured,
    as_array,
    as_float,
    as_whole,
    constant,
    tokens_array,
)
from locum.graph import COMPARISONS, Atom
from locum.graph.atoms import INT64_LIMIT, LARGEST_EXACT


def compare(arrays: Arrays, a: Series, b: Series, predicate: str) -> Series:
    """Return whether a ? b holds at each position, as a series of booleans."""
    holds = COMPARISONS[predicate].holds
    if a.is_number != b.is_number:
        if predicate not in ("==", "!="):
            raise Unstructured("a string and a number cannot be ordered")
        return constant(predicate == "!=")
    if a.constant and b.constant:
        return constant(bool(holds(a.data, b.data)))
    a, b = comparable(arrays, a, b)
    return Series(holds(a.data, b.data), "bool")


def comparable(arrays: Arrays, a: Series, b: Series) -> tuple[Series, Series]:
    """Convert two series, both of numbers or both of strings, to types that compare as in Python."""
    if not a.is_number:
        return a, b
    a, b = as_whole(arrays, a), as_whole(arrays, b)
    if a.kind == b.kind == "int":
        if max(a.magnitude, b.magnitude) >= INT64_LIMIT:
            raise Unstructured("integers beyond 64 bits")
        return a, b
    return as_float(arrays, a), as_float(arrays, b)


def truth(arrays: Arrays, op: str, *inputs: Series) -> Series:
    """Apply ``and``, ``or``, ``not`` or ``indicator`` to the truth values of the inputs."""
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
    """Return a where a < b, else b."""
    return if_else(arrays, compare(arrays, a, b, "<"), a, b)


def maximum(arrays: Arrays, a: Series, b: Series) -> Series:
    """Return a where a > b, else b."""
    return if_else(arrays, compare(arrays, a, b, ">"), a, b)


def choose(arrays: Arrays, mask: Array, then: Series, otherwise: Series) -> Series:
    """Return ``then`` where the mask is True, else ``otherwise``.

    The result has the common type of the chosen values.
    """
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
    """Return whether a is one of the values of a finite set."""
    _require_plain(values)
    return Series(array_numbers.member(arrays, a.data, values=values), "bool")


def lookup(arrays: Arrays, a: Series, *, table: tuple[tuple[Atom, Atom], ...]) -> Series:
    """Look up the values ``a`` in a finite table; a missing entry raises :class:`Unstructured`."""
    keys = [key for key, _ in table]
    _require_plain(keys)
    entries = array_numbers.usable(arrays, a.data, keys)
    place, hit = (
        array_numbers.find(arrays, a.data, [keys[n] for n in entries]) if entries else (None, False)
    )
    if not arrays.all(hit):
        raise Unstructured("the lookup table has no entry for some value")
    # The type depends only on the values that occur, since other entries of the table may be strings.
    used = arrays.positions(arrays.numbers_of(place, len(entries)) > 0).tolist()
    values = tokens_array([table[entries[number]][1] for number in used])
    if arrays.on_torch and values.kind == "string":
        raise Unstructured("tensors cannot contain strings")
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
            raise Unstructured("tensors cannot contain strings")
        if not arrays.all(arrays.xp.abs(tokens.data) < INT64_LIMIT):  # true for NaN as well
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


_REFUSE = refusing(lambda problem, kind, where: Unstructured(problem))


def compute(arrays: Arrays, op: str, *inputs: Series) -> Series:
    """Compute an arithmetic operation or a function of series that are not all constant."""
    if not all(value.is_number for value in inputs):
        return _of_strings(arrays, op, *inputs)
    numbers = [as_whole(arrays, value) for value in inputs]
    meaning = MEANINGS[op]
    if all(number.kind == "int" for number in numbers):
        if meaning.kind == "int":
            return numbers[0]
        if meaning.keeps_whole:
            return _integers(arrays, op, numbers)
        if op == "power":
            return _integer_power(arrays, *numbers)
    data = _floats(arrays, op, numbers)
    if meaning.kind == "int":
        return _rounded(arrays, data)
    return _exact(arrays, data, meaning.kind is None and all(value.has_ints for value in inputs))


# Integers -----------------------------------------------------------------------------------------


def _integers(arrays: Arrays, op: str, numbers: list[Series]) -> Series:
    """Return the result of an operation on integers in int64, or raise an error if it may overflow."""
    bounds = _bounds(op, [number.bounds for number in numbers])
    if not _fits(bounds, *numbers):
        bounds = _bounds(op, [_tight(arrays, number) for number in numbers])
    if not _fits(bounds, *numbers):
        raise Unstructured("integers beyond 64 bits")
    divisor = numbers[-1].bounds
    policy = ieee if divisor[0] > 0 or divisor[1] < 0 else _REFUSE
    data = apply(arrays, op, [number.data for number in numbers], policy)
    return Series(data, "int", (int(bounds[0]), int(bounds[1])))


def _bounds(op: str, inputs: list[Interval]) -> Interval:
    bound = MEANINGS[op].bound
    assert bound is not None
    return bound(*inputs)


def _fits(bounds: Interval, *numbers: Series) -> bool:
    return max(-bounds[0], bounds[1], *(number.magnitude for number in numbers)) < INT64_LIMIT


def _tight(arrays: Arrays, number: Series) -> tuple[int, int]:
    return number.bounds if number.constant else arrays.range_of(number.data)


def _integer_power(arrays: Arrays, a: Series, b: Series) -> Series:
    tight = [Series(number.data, "int", _tight(arrays, number)) for number in (a, b)]
    if tight[1].bounds[0] >= 0:
        return _integers(arrays, "power", tight)
    power = _floats(arrays, "power", tight)
    # If the exponent is not negative, Python's result is an integer. Libraries may be off by one bit.
    power = arrays.xp.where(as_array(arrays, b) >= 0, arrays.xp.round(power), power)
    return _exact(arrays, power, True)


# Floats -------------------------------------------------------------------------------------------


def _floats(arrays: Arrays, op: str, numbers: list[Series]) -> Array:
    inputs = [as_float(arrays, number).data for number in numbers]
    if arrays.on_torch:
        return apply(arrays, op, inputs, ieee)
    return checked(arrays, op, inputs, _REFUSE)


def _rounded(arrays: Arrays, data: Array) -> Series:
    """Convert floats with integer values to integers, or raise an error if an absolute value is 2⁶² or
    more.

    On tensors, the result remains a series of floats.
    """
    if arrays.on_torch:
        return Series(data, "float")  # the type determines the precision
    if not bool((np.abs(data) < INT64_LIMIT).all()):
        raise Unstructured("integers beyond 64 bits")
    integers = arrays.to_int(data)
    return Series(integers, "int", arrays.range_of(integers))


def _exact(arrays: Arrays, data: Array, mixed: bool) -> Series:
    """Return floats as a series; if ``mixed``, raise an error if an integer may have been rounded.

    For example, 2⁵³ + 1 is rounded. Tensors are not checked.
    """
    if mixed and not arrays.on_torch:
        sizes = np.abs(data)
        if bool(((sizes >= LARGEST_EXACT) & (sizes < np.inf)).any()):
            raise Unstructured("integers beyond 53 bits among floats")
    return Series(data, "float", mixed=mixed)


# Strings ------------------------------------------------------------------------------------------


def _of_strings(arrays: Arrays, op: str, *inputs: Series) -> Series:
    """Concatenate strings (``add``), or repeat a string (``multiply``)."""
    texts = [value for value in inputs if not value.is_number]
    if op == "add" and len(texts) == 2:
        _require_short(sum(map(_characters, texts)))
        return Series(np.char.add(texts[0].data, texts[1].data), "string")
    if op == "multiply" and len(texts) == 1:
        (times,) = (value for value in inputs if value.is_number)
        if times.kind in ("bool", "int"):
            _require_short(_characters(texts[0]) * max(times.bounds[1], 0))
            return Series(np.char.multiply(texts[0].data, as_whole(arrays, times).data), "string")
    raise Unstructured("arithmetic with strings")


def _require_short(characters: int) -> None:
    if characters > MAX_CHARACTERS:
        raise Unstructured(f"strings of more than {MAX_CHARACTERS} characters")


def _characters(text: Series) -> int:
    return len(text.data) if text.constant else text.data.dtype.itemsize // 4
