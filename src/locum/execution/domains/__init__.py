"""Define number domains: the values of a run, and the elementwise operations on them.

The domain determines, for example, whether dense execution computes with floats, proves statements
symbolically or certifies bounds with balls.

For every elementwise operation, ``meanings`` contains a function of scalars, or ``refusals`` contains
the reason why the operation is not supported. A domain also converts tokens and constants, computes
means and decides which sequences are valid. This module implements ``select``, ``best`` and
``aggregate`` by their definitions. A domain may override them. For example, ``floats.py`` contains
faster implementations that return the same result, and a test compares the two implementations.

If the result is undefined, functions of scalars raise ``ArithmeticError``, ``TypeError`` or
``ValueError``. The executor adds the s-op and the position. The IEEE domain returns infinities and NaN
instead where IEEE 754 defines them, and the symbolic domain records the undefined operation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from locum.graph import COMPARISONS, Atom
from locum.graph.atoms import short

#: A scalar of some domain: an atom, a rational, a ball, a polynomial, …
Value: TypeAlias = Any
#: The value of a selector: [query, key].
Pattern: TypeAlias = NDArray[np.bool_]


class AverageError(TypeError):
    """Raised for a mean of values that are not all numbers."""


class NotRealError(ValueError):
    """Raised for a power, or an exact root, that is not a real number, such as (−1)^0.5."""


class MissingError(ValueError):
    """Raised for a key that is not in a table."""


class PairError(TypeError):
    """Raised if a comparison of a key with a query is undefined."""

    def __init__(self, problem: str, query: int, key: int) -> None:
        self.query = query
        super().__init__(f"{problem} (key {key})")


class Domain(ABC):
    """A kind of number on which programs can be run."""

    name: ClassVar[str]
    #: Maps elementwise operations to functions of scalars (attributes are keyword arguments).
    meanings: Mapping[str, Callable[..., Value]]
    #: Maps elementwise operations to the reason why they are not supported.
    refusals: Mapping[str, str] = {}

    @abstractmethod
    def token(self, value: Value, cast: str) -> Value:
        """Convert an input value as ``tokens_<cast>`` does."""

    @abstractmethod
    def constant(self, atom: Atom) -> Value:
        """Convert an atom of the program to a scalar of this domain."""

    @abstractmethod
    def accepts(self, value: object) -> bool:
        """Return whether an input may contain ``value``."""

    @abstractmethod
    def mixture(self, values: Sequence[Value]) -> str | None:
        """Return the reason why these values cannot be in one sequence, or None if they can."""

    @abstractmethod
    def is_numeric(self, values: Sequence[Value]) -> bool:
        """Return whether the values of a sequence may be averaged."""

    @abstractmethod
    def mean(self, values: Sequence[Value]) -> Value:
        """Return the arithmetic mean of two or more numbers."""

    def result(self, value: Value) -> Any:
        """Convert a scalar to the form in which it is returned to the user."""
        return value

    # Attention by its definition ---------------------------------------------------------------------

    def select(self, keys: Sequence[Value], queries: Sequence[Value], predicate: str) -> Pattern:
        """Return the pattern whose entry [q, k] is ``keys[k] predicate queries[q]``."""
        holds = self.meanings[COMPARISONS[predicate].operation]
        pattern = np.zeros((len(queries), len(keys)), dtype=np.bool_)
        for q, query in enumerate(queries):
            row: list[bool] = []
            try:
                for key in keys:
                    row.append(bool(holds(key, query)))
            except TypeError:
                shown = f"{short(keys[len(row)])} and {short(query)}"
                raise PairError(f"{predicate} is not defined for {shown}", q, len(row)) from None
            pattern[q] = row
        return pattern

    def best(self, selected: Pattern, scores: Sequence[Value]) -> Pattern:
        """Return, for each query, the selected keys whose score no selected key exceeds."""
        greater = self.meanings["greater"]
        pattern = np.zeros_like(selected)
        for q, row in enumerate(selected):
            keys = [int(k) for k in np.flatnonzero(row)]
            for k in keys:
                pattern[q, k] = not any(greater(scores[other], scores[k]) for other in keys)
        return pattern

    def aggregate(self, selected: Pattern, values: Sequence[Value], default: Value) -> list[Value]:
        """Return, for each query, the mean of the values at its selected keys.

        A query that selects no key receives ``default``. The value of a single selected key is returned
        unchanged. If a query selects several keys, all values must be numbers.
        """
        self.require_numbers(selected, values)
        result = []
        for row in selected:
            chosen = [values[k] for k in np.flatnonzero(row).tolist()]
            if not chosen:
                result.append(default)
            elif len(chosen) == 1:
                result.append(chosen[0])
            else:
                result.append(self.mean(chosen))
        return result

    def widths(self, selected: Pattern) -> list[Value]:
        """Return the number of keys that each query selects."""
        return [self.constant(int(count)) for count in selected.sum(axis=1)]

    def require_numbers(self, selected: Pattern, values: Sequence[Value]) -> None:
        """Raise an error if a query selects several keys and the values may not be averaged.

        As in RASP, this depends on *all* values, selected or not: see :meth:`is_numeric`.
        """
        if not self.is_numeric(values) and bool((selected.sum(axis=1) > 1).any()):
            raise AverageError(
                "expected numbers to average, got several values that are not all numbers "
                f"({', '.join(map(short, values[:4]))}{', …' if len(values) > 4 else ''}); "
                "try a selector of one key per query, or numbers such as indicator(…)"
            )
