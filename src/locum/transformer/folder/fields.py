"""Reading data that somebody else wrote: each function gives what it is asked for, or says where it is
not.

``where`` names the place in the file, as ``layers[2].attention``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar

from locum.errors import GraphError, InputError
from locum.graph import Atom, is_atom
from locum.graph.atoms import identity
from locum.graph.serialize import decode_attribute

T = TypeVar("T")
Reader = Callable[[Any, str], T]

#: No size is larger: products of a few of them stay small enough to be counted with.
_LARGEST = 2**40


def refuse(where: str, wanted: str, value: Any) -> NoReturn:
    """Say what was wanted, and what (a little of it) was found."""
    shown = type(value).__name__ if isinstance(value, (dict, list)) else _short(value)
    raise InputError(f"{where} must be {wanted}, not {shown}")


def _short(value: Any) -> str:
    if isinstance(value, int) and abs(value) > 2**200:
        return "a gigantic number"
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:59] + "…"


def fields(
    value: Any, where: str, names: Iterable[str], optional: Iterable[str] = ()
) -> Mapping[str, Any]:
    """An object with exactly these names."""
    if not isinstance(value, dict):
        refuse(where, "an object", value)
    for name in names:
        if name not in value:
            raise InputError(f"{where} lacks {name}")
    for name in value:
        if name not in {*names, *optional}:
            raise InputError(f"{where} has {_short(name)}, which is not known")
    return value


def items(value: Any, where: str, read: Reader[T], *, exactly: int | None = None) -> tuple[T, ...]:
    """A list, each item read."""
    if not isinstance(value, list):
        refuse(where, "a list", value)
    if exactly is not None and len(value) != exactly:
        raise InputError(f"{where} must have {exactly} items, not {len(value)}")
    return tuple(read(item, f"{where}[{number}]") for number, item in enumerate(value))


def whole(value: Any, where: str) -> int:
    """A size: a whole number from 0 on."""
    if type(value) is not int or not 0 <= value <= _LARGEST:
        refuse(where, "a whole number from 0 on (and not gigantic)", value)
    return value


def number(value: Any, where: str) -> int | float:
    """A number that a float holds."""
    try:
        value = decode_attribute(value)
        if type(value) in (bool, int, float) and math.isfinite(float(value)):
            found: int | float = value
            return found
    except (GraphError, OverflowError):
        pass
    refuse(where, "a finite number", value)


def text(value: Any, where: str) -> str:
    """A string."""
    if not isinstance(value, str):
        refuse(where, "a string", value)
    return value


def flag(value: Any, where: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        refuse(where, "true or false", value)
    return value


def choice(names: tuple[str, ...]) -> Reader[str]:
    """One of these strings."""

    def read(value: Any, where: str) -> str:
        if not isinstance(value, str) or value not in names:
            refuse(where, f"one of {', '.join(names)}", value)
        return value

    return read


def atom(value: Any, where: str) -> Atom:
    """A bool, a number or a string."""
    try:
        found = decode_attribute(value)
    except GraphError:
        refuse(where, "an atom", value)
    if not is_atom(found):
        refuse(where, "an atom", value)
    return found


def atoms(value: Any, where: str) -> tuple[Atom, ...]:
    """Some atoms, each once."""
    found = items(value, where, atom)
    if not found or len({identity(token) for token in found}) < len(found):
        raise InputError(f"{where} must be one token or more, each once")
    return found


def pair(value: Any, where: str) -> tuple[Atom, str]:
    """An atom, and what is said of it."""
    if not isinstance(value, list) or len(value) != 2:
        refuse(where, "a token and a reason", value)
    return atom(value[0], where), text(value[1], where)


def ranges(value: Any, where: str) -> tuple[tuple[float, float], ...]:
    """Pairs of numbers, the lower first; infinities are numbers here."""
    return items(value, where, _range)


def _range(value: Any, where: str) -> tuple[float, float]:
    low, high = items(value, where, _end, exactly=2)
    if not low <= high:
        refuse(where, "two numbers, the lower first", value)
    return low, high


def _end(value: Any, where: str) -> float:
    try:
        found = decode_attribute(value)
    except GraphError:
        found = ""
    if not isinstance(found, float):
        refuse(where, "a number", value)
    return found
