"""Read requests strictly: unknown fields, wrong types and sizes beyond the limits are refused by name.

>>> read({"length": 3}, {"length": integer(1, 32)})
{'length': 3}
>>> read({"length": 99}, {"length": integer(1, 32)})
Traceback (most recent call last):
locum.errors.InputError: length: expected an integer from 1 to 32, got 99
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from locum.errors import InputError

#: Characters of a program and of an input, tokens of an input, tokens of a vocabulary.
MAX_SOURCE, MAX_INPUT, MAX_TOKENS, MAX_VOCABULARY = 20_000, 2_000, 64, 40
#: Length of the longest input of a compiled network.
MAX_LENGTH = 32
#: Rows and columns of a matrix of U, the largest of its numbers.
MAX_SIDE, MAX_NUMBER = 6, 1e6

_REQUIRED = object()


@dataclass(frozen=True)
class Field:
    """A field of a request: what is expected, in words, and how its value is read (None: refused)."""

    expected: str
    read: Callable[[Any], Any]
    default: Any = _REQUIRED

    def optional(self, default: Any = None) -> Field:
        """Return the same field, with a value for requests that lack it."""
        return Field(self.expected, self.read, default)


def read(request: Mapping[str, Any], fields: Mapping[str, Field]) -> dict[str, Any]:
    """Return the values of a request that has these fields and no others."""
    unknown = [name for name in request if name not in fields]
    if unknown:
        known = ", ".join(fields) or "none"
        raise InputError(f"expected the fields {known}; got {_shown(unknown[0])} beside them")
    values = {}
    for name, field in fields.items():
        if name not in request:
            if field.default is _REQUIRED:
                raise InputError(f"{name}: expected {field.expected}, got nothing")
            values[name] = field.default
            continue
        value = field.read(request[name])
        if value is None and not (request[name] is None and field.default is None):
            raise InputError(f"{name}: expected {field.expected}, got {_shown(request[name])}")
        values[name] = value
    return values


def _shown(value: Any) -> str:
    """Quote a value for a message, briefly: requests come from strangers."""
    if isinstance(value, (list, dict)):
        return f"a {'list' if isinstance(value, list) else 'object'} of {len(value)}"
    return json.dumps(value) if len(str(value)) <= 40 else json.dumps(str(value)[:40]) + "…"


# Kinds of fields ----------------------------------------------------------------------------------


def text(longest: int) -> Field:
    """Make a field for a text; unpaired surrogates, which UTF-8 lacks, are refused."""

    def read_text(value: Any) -> str | None:
        if not isinstance(value, str) or len(value) > longest:
            return None
        return value if value.isascii() or not _has_surrogates(value) else None

    return Field(f"a text of at most {longest:,} characters", read_text)


def _has_surrogates(value: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in value)


def integer(least: int, most: int) -> Field:
    """Make a field for an integer within bounds."""
    return Field(
        f"an integer from {least} to {most}",
        lambda value: value if type(value) is int and least <= value <= most else None,
    )


def number(least: float, most: float) -> Field:
    """Make a field for a number within bounds."""
    return Field(
        f"a number from {least:g} to {most:g}",
        lambda value: float(value) if _is_number(value) and least <= value <= most else None,
    )


def temperature() -> Field:
    """Make a field for a temperature: 0, or a number that scores can be divided by."""

    def read_temperature(value: Any) -> float | None:
        valid = _is_number(value) and (value == 0 or 1e-3 <= value <= 1e3)
        return float(value) if valid else None

    return Field("0, or a number from 0.001 to 1000", read_temperature)


def choice(*choices: str) -> Field:
    """Make a field for one of several texts."""
    return Field(
        f"one of {', '.join(choices)}",
        lambda value: value if isinstance(value, str) and value in choices else None,
    )


def boolean() -> Field:
    """Make a field for true or false."""
    return Field("true or false", lambda value: value if isinstance(value, bool) else None)


def integers(most: int, largest: int) -> Field:
    """Make a field for a list of positive integers."""

    def read_integers(value: Any) -> list[int] | None:
        if not isinstance(value, list) or len(value) > most:
            return None
        return value if all(type(n) is int and 1 <= n <= largest for n in value) else None

    return Field(f"at most {most} integers from 1 to {largest}", read_integers)


def texts(most: int, longest: int) -> Field:
    """Make a field for a list of texts."""
    one = text(longest)

    def read_texts(value: Any) -> list[str] | None:
        if not isinstance(value, list) or len(value) > most:
            return None
        return value if all(one.read(item) is not None for item in value) else None

    return Field(f"at most {most} texts of at most {longest:,} characters", read_texts)


def matrix() -> Field:
    """Make a field for a matrix of finite numbers."""
    return Field(
        f"a matrix of at most {MAX_SIDE} rows and columns of numbers up to {MAX_NUMBER:g}", _matrix
    )


def _matrix(value: Any) -> list[list[float]] | None:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_SIDE:
        return None
    if not all(isinstance(row, list) and 1 <= len(row) <= MAX_SIDE for row in value):
        return None
    if len({len(row) for row in value}) > 1:
        return None
    if not all(_is_number(entry) and abs(entry) <= MAX_NUMBER for row in value for entry in row):
        return None
    return [[float(entry) for entry in row] for row in value]


def _is_number(value: Any) -> bool:
    # Integers beyond the floats have no place in a matrix, and isfinite cannot look at them.
    return (type(value) is int and abs(value) <= 2**1000) or (
        type(value) is float and math.isfinite(value)
    )


def decimal(text: str) -> float:
    """Read a decimal, if its digits are those of the float: none is dropped without a word.

    Infinite ones are left to who knows where they stand. JSON is read by it: ``parse_float=decimal``.

    >>> decimal("0.30"), decimal("1e-3")
    (0.3, 0.001)
    >>> decimal("0.99999999999999999")
    Traceback (most recent call last):
    locum.errors.InputError: expected a number that floats hold to its last digit ...; try 1.0
    """
    value = float(text)
    if math.isinf(value):
        return value
    try:
        is_held = Decimal(text) == Decimal(repr(value))
    except InvalidOperation:  # an exponent beyond those of decimals, too
        is_held = False
    if not is_held:
        shown = text if len(text) <= 40 else text[:40] + "…"
        raise InputError(
            "expected a number that floats hold to its last digit (15 digits always are), "
            f"got {shown}; try {value!r}"
        )
    return value


# Inputs of programs -------------------------------------------------------------------------------


def tokens(typed: str) -> str | list[Any]:
    """Read an input as it is typed: a JSON list of tokens, a JSON string, or else its characters.

    >>> tokens("hello"), tokens('[1, 2.0, "a"]'), tokens("[()]"), tokens("[[]]"), tokens('"[1]"')
    ('hello', [1, 2.0, 'a'], '[()]', '[[]]', '[1]')
    """
    value = _as_json(typed) if typed.lstrip()[:1] in ("[", '"') else typed
    if isinstance(value, str) and _has_surrogates(value):
        raise InputError("the input contains an unpaired surrogate and is not valid Unicode")
    if not value:
        raise InputError("expected an input of at least one token, got none; try hello")
    if len(value) > MAX_TOKENS:
        raise InputError(f"expected an input of at most {MAX_TOKENS} tokens, got {len(value)}")
    return value


def _as_json(typed: str) -> str | list[Any]:
    """Read a list or a string; brackets alone are characters, half a list is a slip."""
    try:
        value = json.loads(typed, parse_float=decimal)
    except InputError:
        raise  # of these the digits that would be dropped are named
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, str):
        return value
    if _are_tokens(value):
        return list(value)
    if any(character.isalnum() for character in typed):
        raise InputError(
            "expected a list of texts, finite numbers or booleans, or characters in quotes, "
            f'got {typed[:40]}; try ["a", 1.5, true]'
        )
    return typed


def _are_tokens(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(token, (str, bool)) or _is_number(token) for token in value)
        and not any(isinstance(token, str) and _has_surrogates(token) for token in value)
    )


def vocabulary(typed: str) -> Sequence[Any]:
    """Read a vocabulary as an input is read."""
    read_tokens = tokens(typed)
    if len(read_tokens) > MAX_VOCABULARY:
        raise InputError(
            f"expected a vocabulary of at most {MAX_VOCABULARY} tokens, got {len(read_tokens)}"
        )
    return read_tokens
