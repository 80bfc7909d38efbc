"""Define the limits of requests, and read the inputs, vocabularies and matrices in requests."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from locum.errors import InputError
from locum.settings import Setting, has_surrogates

#: Maximum number of characters of a program and of an input, and of tokens of an input and of a
#: vocabulary.
MAX_SOURCE, MAX_INPUT, MAX_TOKENS, MAX_VOCABULARY = 20_000, 2_000, 64, 40
#: Maximum length of an input of a compiled network.
MAX_LENGTH = 32
#: Maximum number of rows and columns of a matrix of U, and maximum magnitude of its entries.
MAX_SIDE, MAX_NUMBER = 6, 1e6

#: Error messages for requests that fail.
MEMORY = "this program needs more memory than the playground allows; try a smaller program"
INTERNAL = "the playground has a bug here: this request could not be answered"


def _matrix(value: Any) -> list[list[float]]:
    entry = Setting("a list of numbers", least=-MAX_NUMBER, most=MAX_NUMBER, longest=MAX_SIDE)
    rows = [entry.normalise(row) for row in value] if isinstance(value, list) else []
    if not 1 <= len(rows) <= MAX_SIDE or len({*map(len, rows)}) > 1 or not rows[0]:
        raise ValueError
    return rows


def _temperature(value: Any) -> Any:
    # 0 is hard attention. Scores divided by a positive temperature below 0.001 could overflow.
    number = Setting("a number").normalise(value)
    return number if number == 0 else Setting("a number", least=1e-3, most=1e3).normalise(value)


SOURCE, INPUT = Setting("a text", longest=MAX_SOURCE), Setting("a text", longest=MAX_INPUT)
TEMPERATURE = Setting("0, or a number from 0.001 to 1000", convert=_temperature)
MATRIX = Setting(
    f"a matrix of at most {MAX_SIDE} rows and columns of numbers up to {MAX_NUMBER:g}", convert=_matrix
)


def decimal(text: str) -> float:
    """Convert a decimal to a float; raise an error if the float does not have the same digits.

    Use this function as ``parse_float`` to read JSON. Infinite results are returned, so that the caller
    can name their position in an error.

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
    except InvalidOperation:  # an exponent that decimals do not support either
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
    """Return the tokens of a typed input: a JSON list, a JSON string, or characters.

    >>> tokens("hello"), tokens('[1, 2.0, "a"]'), tokens("[()]"), tokens("[[]]"), tokens('"[1]"')
    ('hello', [1, 2.0, 'a'], '[()]', '[[]]', '[1]')
    """
    value = _as_json(typed) if typed.lstrip()[:1] in ("[", '"') else typed
    if isinstance(value, str) and has_surrogates(value):
        raise InputError("the input contains an unpaired surrogate and is not valid Unicode")
    if not value:
        raise InputError("expected an input of at least one token, got none; try hello")
    if len(value) > MAX_TOKENS:
        raise InputError(f"expected an input of at most {MAX_TOKENS} tokens, got {len(value)}")
    return value


def _as_json(typed: str) -> str | list[Any]:
    """Return the list or the string that is typed as JSON.

    Text without letters and digits, such as brackets, is returned as characters. Other text raises an
    error.
    """
    try:
        value = json.loads(typed, parse_float=decimal)
    except InputError:
        raise  # this error names the digits that would be dropped
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(map(_is_token, value)):
        return value
    if any(character.isalnum() for character in typed):
        raise InputError(
            "expected a list of texts, finite numbers or booleans, or characters in quotes, "
            f'got {typed[:40]}; try ["a", 1.5, true]'
        )
    return typed


def _is_token(value: Any) -> bool:
    if isinstance(value, bool):
        return True
    try:
        Setting("a text" if isinstance(value, str) else "a number").normalise(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def vocabulary(typed: str) -> Sequence[Any]:
    """Return the tokens of a vocabulary, which has the same notation as an input."""
    read_tokens = tokens(typed)
    if len(read_tokens) > MAX_VOCABULARY:
        raise InputError(
            f"expected a vocabulary of at most {MAX_VOCABULARY} tokens, got {len(read_tokens)}"
        )
    return read_tokens
