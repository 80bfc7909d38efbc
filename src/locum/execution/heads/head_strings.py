"""Compute with strings in object arrays for the head executor, with the same values as dense execution.

Elementwise operations apply the functions of dense execution to one value at a time. A head compares
strings by rank, and moves the indices of strings in the list of all selectable values. Tensors cannot
contain strings, so strings that depend on tokens raise an error if the input is a tensor.

>>> keys, queries = comparable("<", np.array(["b", "a"], object), np.array(["b"], object))
>>> keys.tolist(), queries.tolist()
([1, 0], [1])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.execution.arrays import Array, Arrays
from locum.execution.dense import error_kind
from locum.execution.domains.floats import FloatDomain, describe_failure
from locum.graph import Attribute
from locum.graph.atoms import INT64_LIMIT, LARGEST_EXACT, short

_DOMAIN = FloatDomain()
Objects = NDArray[np.object_]


class ElementError(Exception):
    """Raised if an operation is undefined for some elements, or is not supported.

    ``bad`` is a mask of these elements, or None if the error has no position.
    """

    def __init__(self, problem: str, kind: str, bad: Array | None = None) -> None:
        super().__init__(problem)
        self.kind = kind
        self.bad = bad


def is_text(array: Array) -> bool:
    """Return whether an array has the dtype ``object``, and may therefore contain strings."""
    return isinstance(array, np.ndarray) and array.dtype == object


def require_atom(value: Any) -> None:
    """Raise an error if a value is an integer of more than 62 bits."""
    if isinstance(value, int) and abs(value) >= INT64_LIMIT:
        raise ElementError("a value is an integer of more than 62 bits", "refused")


def require_strings(arrays: Arrays) -> None:
    """Raise an error if strings would have to be computed on tensors."""
    if arrays.on_torch:
        raise ElementError(
            "expected numbers, got strings, which tensors cannot hold; "
            "try the tokens as a list: program(tensor.tolist())",
            "refused",
        )


def put(arrays: Arrays, array: NDArray[Any]) -> Array:
    """Move an array from the host to the device of the run; floats receive the type of the run."""
    if is_text(array):
        require_strings(arrays)
    return arrays.put(array)


def array_of(values: Sequence[Any]) -> Array:
    """Convert a sequence of values to an array that represents them exactly.

    If there are strings, the array has the dtype ``object``.
    """
    types = set(map(type, values))
    if str in types:
        problem = _DOMAIN.mixture(values)
        if problem is not None:
            raise ElementError(problem, "mixture")
        return objects_of(values)
    for value in values:
        require_atom(value)
    if types == {bool}:
        return np.array(values, dtype=np.bool_)
    if float not in types:
        return np.array(values, dtype=np.int64)
    if any(abs(value) > LARGEST_EXACT for value in values if type(value) is not float):
        raise ElementError(
            "the values contain both floats and integers that floats would round", "refused"
        )
    return np.array(values, dtype=np.float64)


def objects_of(values: Sequence[Any]) -> Objects:
    """Return an object array with the given values, without conversion."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def cast_values(values: Sequence[Any], kind: str) -> Array:
    """Cast tokens to the type ``kind`` by the rules of dense execution, and return them as an array."""
    found: list[Any] = []
    for place, value in enumerate(values):
        try:
            found.append(_DOMAIN.token(value, kind))
        except (ArithmeticError, TypeError, ValueError) as error:
            bad = np.arange(len(values)) == place
            problem = describe_failure(error, "tokens", (value,))
            raise ElementError(problem, error_kind(error), bad) from None
    return array_of(found)


def apply(op: str, inputs: Sequence[Array], attributes: Mapping[str, Attribute]) -> Array:
    """Compute an elementwise operation one value at a time, as dense execution does."""
    function = _DOMAIN.meanings[op]
    if attributes:
        function = partial(function, **attributes)
    together = np.broadcast_arrays(*(np.asarray(a).astype(object) for a in inputs))
    shape = together[0].shape
    found: list[Any] = []
    for place, values in enumerate(zip(*(a.ravel() for a in together), strict=True)):
        try:
            found.append(function(*values))
        except (ArithmeticError, TypeError, ValueError) as error:
            bad = (np.arange(together[0].size) == place).reshape(shape)
            raise ElementError(describe_failure(error, op, values), error_kind(error), bad) from None
    return settle(objects_of(found).reshape(shape))


def choose(condition: NDArray[np.bool_], a: Array, b: Array) -> Array:
    """Return ``a`` where the condition holds, else ``b``."""
    chosen = np.where(condition, np.asarray(a).astype(object), np.asarray(b).astype(object))
    return settle(chosen)


def settle(values: Objects) -> Array:
    """Convert an object array without strings to a numeric array; return other arrays unchanged.

    A row that mixes strings with other values raises an error.
    """
    listed = values.ravel().tolist()
    texts = sum(isinstance(value, str) for value in listed)
    if not texts:
        return array_of(listed).reshape(values.shape)
    if texts < len(listed):
        for row in values.reshape(-1, values.shape[-1] if values.ndim else 1):
            problem = _DOMAIN.mixture(row.tolist())
            if problem is not None:
                raise ElementError(problem, "mixture")
    return values


def comparable(predicate: str, keys: Array, queries: Array) -> tuple[Array, Array]:
    """Map keys and queries to integers that compare in the same way.

    Arrays without strings are returned unchanged.
    """
    if not (is_text(keys) or is_text(queries)):
        return keys, queries
    values = [*np.asarray(keys).astype(object), *np.asarray(queries).astype(object)]
    distinct = dict.fromkeys(values)
    if any(value != value for value in distinct):
        raise ElementError("cannot rank NaN: executor='heads' compares keys by rank", "refused")
    if predicate in ("==", "!="):  # a string equals no number
        ranks = {value: rank for rank, value in enumerate(distinct)}
    else:
        _require_order(predicate, values[: len(keys)], values[len(keys) :])
        ranks = {value: rank for rank, value in enumerate(sorted(distinct))}
    together = np.array([ranks[value] for value in values], dtype=np.int64)
    return together[: len(keys)], together[len(keys) :]


def _require_order(predicate: str, keys: Sequence[Any], queries: Sequence[Any]) -> None:
    """Raise the error of dense execution if a string is compared with a number."""
    for query in queries:
        for place, key in enumerate(keys):
            if isinstance(key, str) is not isinstance(query, str):
                shown = f"{short(key)} and {short(query)}"
                problem = f"{predicate} is not defined for {shown} (key {place})"
                raise ElementError(problem, "TypeError")


def ranks_of(values: Objects) -> NDArray[np.int64]:
    """Return the rank of each string among the distinct strings, starting at 0."""
    return np.unique(values, return_inverse=True)[1].reshape(values.shape).astype(np.int64)


def number_values(values: Objects) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the distinct values of an array, and the index of each element among them."""
    places: dict[Any, int] = {}
    numbers = [places.setdefault((type(v), v), len(places)) for v in values.ravel()]
    return [value for _, value in places], np.array(numbers, np.int64).reshape(values.shape)


def move(counts: Array, numbers: Array, values: Sequence[Any], default: Any) -> Array:
    """Return, for each row, the string at its single selected key, or ``default`` if there is no key.

    ``numbers`` are the indices of the selected strings in ``values``.
    """
    if bool((counts > 1).any()):
        problem = "expected numbers to average, got several strings"
        raise ElementError(problem, "average", None)
    found = [
        values[number] if count else default
        for count, number in zip(counts.ravel().tolist(), numbers.ravel().tolist(), strict=True)
    ]
    return objects_of(found).reshape(counts.shape)
