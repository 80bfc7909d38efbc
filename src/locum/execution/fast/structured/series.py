"""Represent the value of an s-op in the structured evaluator: an array, or a constant scalar.

A :class:`Series` has a type (bool, int, float or string). Constants remain scalars, so that selectors
that do not depend on the key, or on the query, are recognised. Series of integers include bounds, so
that overflow can be excluded without reading the numbers.

Dense execution computes with Python objects. The numbers in an array can differ from these objects if
integers exceed 64 bits, or 53 bits in a float array. A float array for a sequence that may contain ints
is ``mixed``, and the absolute values of its elements are checked. Values that arrays cannot represent
raise :class:`Unstructured`.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from locum.errors import LocumError
from locum.execution.arrays import Array, Arrays, is_tensor
from locum.graph import Atom
from locum.graph.atoms import INT64_LIMIT, LARGEST_EXACT

#: Maximum length of strings in an array. Every element uses the memory of the longest string.
MAX_CHARACTERS = 64

_KINDS = {bool: "bool", int: "int", float: "float", str: "string"}
_KINDS_OF_DTYPES = {"b": "bool", "i": "int", "u": "int", "f": "float", "U": "string"}


class Unstructured(LocumError):  # noqa: N818  # a reason to use another executor, not a mistake
    """Raised for a program, or a part of one, that the structured evaluator does not support."""


def arrays_for(tokens: Array, counts: MutableMapping[str, int] | None = None) -> Arrays:
    """Return the :class:`Arrays` of a run on these tokens.

    Tensors keep their floating-point type, and NumPy arrays use float64.
    """
    return Arrays(tokens, None if is_tensor(tokens) else "float64", counts)


@dataclass(frozen=True, eq=False)
class Series:
    """A value for each position.

    ``data`` is a scalar if the value is known to be constant, else an array. ``given`` is the data, or
    a function that returns the array and is called on first use.
    """

    given: Any
    kind: str
    #: For integers: the lower and the upper bound.
    bounds: tuple[int, int] = (0, 1)
    #: Whether the data are floats, some of which may represent ints.
    mixed: bool = False
    #: Whether the data are the positions 0, 1, 2, …
    is_indices: bool = False
    #: Derived facts about the data, such as their order (``columns.py``).
    cache: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def data(self) -> Any:
        """The scalar, or the array with one element per position."""
        return self.given() if callable(self.given) else self.given

    @property
    def constant(self) -> bool:
        """Whether the value is known to be constant."""
        return type(self.given) in _KINDS

    @property
    def has_ints(self) -> bool:
        """Whether dense execution may compute an int or a bool at some position."""
        return self.kind in ("bool", "int") or self.mixed

    @property
    def is_number(self) -> bool:
        """Whether the series has a numeric type."""
        return self.kind != "string"

    @property
    def magnitude(self) -> int:
        """A bound on the absolute values of the integers of the series."""
        return max(abs(self.bounds[0]), abs(self.bounds[1]))


def constant(atom: Atom) -> Series:
    """Return the series with the same atom at every position."""
    whole = (int(atom), int(atom)) if isinstance(atom, int) else (0, 1)
    return Series(atom, _KINDS[type(atom)], whole)


def series(arrays: Arrays, array: Array, *, mixed: bool = False) -> Series:
    """Convert an array of tokens, or of known values of an s-op, to a series."""
    if array.ndim != 1 or array.shape[0] != arrays.size:
        raise Unstructured(f"an array of shape {tuple(array.shape)} is not one value per position")
    if arrays.size == 0:
        raise Unstructured("an empty sequence")
    if not arrays.on_torch:
        kind = _KINDS_OF_DTYPES.get(array.dtype.kind)
        if kind is None:
            raise Unstructured(f"arrays of {array.dtype} are not values of a program")
        if kind == "string":
            return _strings(array)
        if kind == "float":
            return Series(np.asarray(array, dtype=np.float64), "float", mixed=mixed)
        if array.dtype.kind == "u" and array.size and int(array.max()) >= INT64_LIMIT:
            raise Unstructured("integers beyond 64 bits")
    elif arrays.xp.isdtype(array.dtype, "real floating"):
        return Series(array, "float")
    elif arrays.xp.isdtype(array.dtype, ("complex floating",)):
        raise Unstructured(f"arrays of {array.dtype} are not values of a program")
    else:
        kind = "bool" if arrays.xp.isdtype(array.dtype, "bool") else "int"
    if kind == "bool":
        return Series(array, "bool")
    whole = arrays.to_int(array)
    bounds = arrays.range_of(whole)
    if max(-bounds[0], bounds[1]) >= INT64_LIMIT:
        raise Unstructured("integers beyond 64 bits")
    return Series(whole, "int", bounds)


def tokens_array(values: Sequence[Any]) -> Series:
    """Convert a list of tokens to a series with one array.

    >>> tokens_array([1, 2.5]).data
    array([1. , 2.5])
    >>> tokens_array(["a", "bc"]).kind
    'string'
    """
    types = set(map(type, values))
    if not types:
        raise Unstructured("an empty sequence")
    if types == {str}:
        longest = max(map(len, values))
        if longest > MAX_CHARACTERS or any("\0" in value for value in values):
            raise Unstructured("long strings, or strings that contain the character NUL")
        array = np.array(values, dtype=np.str_)
    elif types == {bool}:
        array = np.array(values, dtype=np.bool_)
    elif types == {int}:
        whole = integers(values)
        if whole is None:
            raise Unstructured("integers too large for an array")
        array = whole
    elif types <= {int, float}:
        if any(type(value) is int and abs(value) >= LARGEST_EXACT for value in values):
            raise Unstructured("integers too large for an array")
        array = np.array(values, dtype=np.float64)
    else:
        raise Unstructured("tokens of different types")
    return series(arrays_for(array), array, mixed=types == {int, float})


def integers(values: Sequence[int]) -> Array | None:
    """Convert integers to an int64 array, or return None if some of them exceed 64 bits.

    >>> integers([3, -(2**63)]), integers([2**63])
    (array([                   3, -9223372036854775808]), None)
    """
    try:
        return np.fromiter(values, np.int64, len(values))
    except OverflowError:
        return None


def _strings(array: Array) -> Series:
    width = array.dtype.itemsize // 4
    if width > MAX_CHARACTERS:
        raise Unstructured(f"strings of more than {MAX_CHARACTERS} characters")
    if width > 1:
        # NumPy strips trailing NULs from strings; a NUL before other characters is kept and compared.
        letters = np.ascontiguousarray(array).view(np.uint32).reshape(array.shape[0], width)
        if bool(((letters[:, :-1] == 0) & (letters[:, 1:] != 0)).any()):
            raise Unstructured("strings that contain the character NUL")
    return Series(array, "string")


def as_array(arrays: Arrays, value: Series) -> Array:
    """Return a series as an array; the array of a constant uses the memory of one element."""
    if not value.constant:
        return value.data
    if value.kind == "string":
        if len(value.data) > MAX_CHARACTERS or "\0" in value.data or arrays.on_torch:
            raise Unstructured("an array cannot contain this string")
        return np.broadcast_to(np.array(value.data), (arrays.size,))
    if value.kind == "float":
        return arrays.same(value.data, arrays.float)
    if value.magnitude >= INT64_LIMIT:
        raise Unstructured("integers beyond 64 bits")
    return arrays.same(value.data, arrays.xp.bool if value.kind == "bool" else arrays.xp.int64)


def as_whole(arrays: Arrays, value: Series) -> Series:
    """Convert a series of bools to ints; other series are unchanged."""
    if value.kind != "bool":
        return value
    data = int(value.data) if value.constant else arrays.to_int(value.data)
    return Series(data, "int", value.bounds)


def as_float(arrays: Arrays, value: Series) -> Series:
    """Convert a series of numbers to floats if no integer is rounded, else raise an error."""
    if value.kind == "float":
        return value
    if value.magnitude > LARGEST_EXACT:
        raise Unstructured("integers beyond 53 bits are combined with floats")
    if value.constant:
        return Series(float(value.data), "float", mixed=True)
    dtype = arrays.xp.float64
    if arrays.on_torch and value.magnitude <= 2 / arrays.xp.finfo(arrays.float).eps:
        dtype = arrays.float  # represents these integers exactly, so the run keeps its type
    return Series(arrays.cast(value.data, dtype), "float", mixed=True)
