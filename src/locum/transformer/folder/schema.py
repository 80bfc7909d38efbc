"""Read and write dataclasses as JSON by their annotations: one schema for both directions.

A field that has its default value is left out of the file. Integers are sizes and indices, and never
negative. ``where`` names a place in the file, such as ``layers[2].attention``.

>>> from dataclasses import dataclass
>>> @dataclass
... class Point:
...     at: tuple[int, ...]
...     name: str = ""
>>> to_data(Point((1, 2)))
{'at': [1, 2]}
>>> from_data(Point, {"at": [1, -2]}, "point")
Traceback (most recent call last):
locum.errors.InputError: point.at[1]: expected an integer from 0 to 1,099,511,627,776, got -2
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from operator import or_
from types import NoneType
from typing import Any, NoReturn, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np

from locum.errors import GraphError, InputError
from locum.graph import Atom, is_atom
from locum.graph.serialize import decode_attribute, encode_attribute
from locum.settings import Setting, settings_of, show

#: A number that is finite as a float.
Number: TypeAlias = bool | int | float

#: No size is larger, so that products of a few of them are still cheap to compute.
_LARGEST = 2**40


def refuse(where: str, expected: str, value: Any) -> NoReturn:
    """Raise an error that says what was expected at a place of the file, and what was there."""
    raise InputError(f"{where}: expected {expected}, got {show(value)}")


# Writing -----------------------------------------------------------------------------------------


def to_data(value: Any) -> Any:
    """Return data that JSON can hold; what JSON lacks, such as infinities, as graph files have it."""
    if dataclasses.is_dataclass(value):
        return {
            field.name: to_data(part)
            for field in dataclasses.fields(value)
            if not _is_default(field, part := getattr(value, field.name))
        }
    if isinstance(value, Mapping):
        return {str(name): to_data(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_data(part) for part in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return to_data(value.tolist())
    return None if value is None else encode_attribute(value)


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    factory = field.default_factory
    default = field.default if factory is dataclasses.MISSING else factory()
    return type(value) is type(default) and bool(value == default)


# Reading -----------------------------------------------------------------------------------------


def from_data(kind: Any, value: Any, where: str) -> Any:
    """Return what :func:`to_data` made data of, checked against the annotation ``kind``."""
    if kind == Atom:
        return _attribute(value, where, "a boolean, a number or a string")
    if kind == Number:
        return _number(value, where)
    if kind in _READERS:
        return _READERS[kind](value, where)
    if dataclasses.is_dataclass(kind):
        return _record(kind, value, where)
    parts = get_args(kind)
    if NoneType in parts:
        others = [part for part in parts if part is not NoneType]
        return None if value is None else from_data(functools.reduce(or_, others), value, where)
    if get_origin(kind) is tuple:
        return _tuple(parts, value, where)
    if isinstance(value, dict):  # a mapping of anything
        return {name: _open(part) for name, part in value.items()}
    refuse(where, "an object", value)


def _record(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        refuse(where, "an object", value)
    hints, required = _fields(kind)
    prefix = f"{where}." if where else ""
    for name in value:
        if name not in hints:
            raise InputError(f"{where or 'it'} has the field {name[:60]!r}, which is not known")
    for name in required:
        if name not in value:
            raise InputError(f"{prefix}{name} is missing")
    values = {name: from_data(hints[name], part, prefix + name) for name, part in value.items()}
    for name, declared in settings_of(kind).items():
        declared.read(values[name], prefix + name)
    return kind(**values)


@functools.cache
def _fields(kind: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the annotations of a dataclass, and its fields without a default."""
    missing = (dataclasses.MISSING, dataclasses.MISSING)
    own = dataclasses.fields(kind)
    return get_type_hints(kind), [f.name for f in own if (f.default, f.default_factory) == missing]


def _tuple(parts: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        refuse(where, "a list", value)
    kinds = [parts[0]] * len(value) if parts[-1] is Ellipsis else list(parts)
    if len(kinds) != len(value):
        refuse(where, f"a list of {len(kinds)}", value)
    pairs = enumerate(zip(kinds, value, strict=True))
    return tuple(from_data(kind, part, f"{where}[{place}]") for place, (kind, part) in pairs)


def _open(value: Any) -> Any:
    """Return data of any form, as it was before :func:`to_data`, but for tuples."""
    if isinstance(value, list):
        return [_open(part) for part in value]
    if isinstance(value, dict):
        try:
            return decode_attribute(value)
        except GraphError:
            return {name: _open(part) for name, part in value.items()}
    return value


def _attribute(value: Any, where: str, expected: str) -> Any:
    try:
        atom = decode_attribute(value)
    except GraphError:
        refuse(where, expected, value)
    return atom if is_atom(atom) else refuse(where, expected, value)


def _number(value: Any, where: str) -> Number:
    number: Atom = _attribute(value, where, "a finite number")
    try:
        if not isinstance(number, str) and math.isfinite(number):
            return number
    except OverflowError:  # an integer beyond the floats
        pass
    refuse(where, "a finite number", value)


def _float(value: Any, where: str) -> float:
    number = _attribute(value, where, "a number")
    return number if type(number) is float else refuse(where, "a floating-point number", value)


def _text(value: Any, where: str) -> str:
    return value if isinstance(value, str) else refuse(where, "a string", value)


_READERS: Mapping[Any, Callable[[Any, str], Any]] = {
    bool: Setting("true or false").read,
    str: _text,
    int: Setting("an integer", least=0, most=_LARGEST).read,
    float: _float,
}
