"""Define atoms, the values at single positions of a sequence; attributes of nodes also contain atoms.

RASP has four types of atom: Python's ``bool``, ``int``, ``float`` and ``str``. In Python
``1 == 1.0 == True``, but RASP prints these values differently, as ``1``, ``1.0`` and ``T``.
:func:`identity` returns a key that distinguishes such atoms when nodes are interned.

>>> identity(1) == identity(1.0), identity(True) == identity(1), identity(0.0) == identity(-0.0)
(False, False, False)
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard

Atom: TypeAlias = bool | int | float | str
#: Attributes of a node: atoms, and nested tuples of atoms.
Attribute: TypeAlias = "Atom | tuple[Attribute, ...]"

#: For each floating-point type, the largest n such that the type represents all integers up to n.
EXACT_INTEGERS: Mapping[str, int] = {
    "float64": 2**53,
    "float32": 2**24,
    "float16": 2**11,
    "bfloat16": 2**8,
}
#: The largest n such that Python's ``float`` represents all integers up to n.
LARGEST_EXACT = EXACT_INTEGERS["float64"]
#: The absolute values of integers in int64 arrays are below this limit, so that the sum of two such
#: integers cannot overflow.
INT64_LIMIT = 2**62

_NAMES: dict[type, str] = {bool: "bool", int: "int", float: "float", str: "string"}


def is_atom(value: object) -> TypeGuard[Atom]:
    """Return whether ``value`` has one of the four atom types (not a subclass, not a NumPy scalar).

    >>> is_atom(2.5), is_atom("a"), is_atom(None), is_atom([1])
    (True, True, False, False)
    """
    return type(value) in _NAMES


def identity(value: Attribute) -> Hashable:
    """Return a dictionary key for an attribute; the keys of ``1``, ``1.0`` and ``True`` differ.

    The keys of ``0.0`` and ``-0.0`` also differ. The keys of two NaNs are equal.
    """
    if isinstance(value, tuple):
        return (tuple, tuple(identity(part) for part in value))
    if type(value) is float:
        return (float, repr(value))
    if type(value) is int and abs(value) >= sys.hash_info.modulus:
        # Python's hash of an integer is its remainder, so multiples of the modulus would all collide.
        return (int, value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
    return (type(value), value)


def canonical_set(atoms: Iterable[Atom]) -> tuple[Atom, ...]:
    """Return a finite set of atoms as an attribute: a sorted tuple in which equal atoms (1, 1.0, True)
    occur once.

    >>> canonical_set("bab"), canonical_set([2, 1.0, 1])
    (('a', 'b'), (1.0, 2))
    """
    return tuple(dict.fromkeys(sorted(atoms, key=_order)))


def canonical_table(table: Mapping[Atom, Atom]) -> tuple[tuple[Atom, Atom], ...]:
    """Return a finite table as an attribute: a sorted tuple of pairs (key, value)."""
    return tuple(sorted(table.items(), key=lambda pair: (_order(pair[0]), _order(pair[1]))))


def is_canonical(atoms: Sequence[Any]) -> bool:
    """Return whether a sequence of atoms is sorted and free of duplicates, as in a canonical set or
    table.

    >>> is_canonical([1, 2, "a"]), is_canonical([2, 1]), is_canonical([1.0, 1])
    (True, False, False)
    """
    ordered = all(_order(a) <= _order(b) for a, b in itertools.pairwise(atoms))
    return ordered and len(dict.fromkeys(atoms)) == len(atoms)


def _order(atom: Atom) -> tuple[str, Any]:
    """Return the sort key of an atom: the name of its type, then its value (for floats, the text of the
    value).
    """
    return type(atom).__name__, repr(atom) if isinstance(atom, float) else atom


def sequence_type(values: Iterable[object]) -> str | None:
    """Return RASP's name for the type of a sequence, or None if it mixes strings with other types.

    The result is also None if a value is not an atom. An empty sequence has the type "bool".

    >>> sequence_type([1, 2]), sequence_type([1, 2.5]), sequence_type([True, 5])
    ('int', 'float', 'int')
    >>> sequence_type([True, False]), sequence_type("ab"), sequence_type(["a", 1])
    ('bool', 'string', None)
    """
    types = set(map(type, values))
    if not types <= _NAMES.keys() or (str in types and len(types) > 1):
        return None
    for candidate in (str, float, int):
        if candidate in types:
            return _NAMES[candidate]
    return "bool"


def short(value: object, limit: int = 40) -> str:
    """Return the text of a value for a message, shortened to at most ``limit`` characters.

    A value that is too large to print is instead described by its size or type.

    >>> short(1.5), short("abc"), short(10**5000)
    ('1.5', "'abc'", 'an integer of 16610 bits')
    """
    if is_unprintable(value):
        return f"an integer of {int.bit_length(value)} bits"
    try:
        text = repr(value[:limit] if isinstance(value, str) else value)
    except ValueError:  # a tuple that contains an integer with more digits than Python prints
        return f"a {type(value).__name__} that is too long to print"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def is_unprintable(value: object) -> TypeGuard[int]:
    """Return whether the value is an integer that is displayed by its size: more than 10,000 bits."""
    return isinstance(value, int) and value.bit_length() > 10_000
