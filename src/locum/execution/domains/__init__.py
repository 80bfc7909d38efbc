"""Number domains: what a value is, and what each elementwise operation does to it.

The dense executor gives a program its meaning; a domain gives numbers theirs. The same literal run
is a computation in floats, a proof in symbols or a certificate in balls, according to the domain.

A domain has, for every elementwise operation of the table, either a function of scalars
(``meanings``) or a reason why there is none (``refusals``); it casts tokens, lifts constants, takes
means, and says which sequences are legal. ``select``, ``best`` and ``aggregate`` are written here
once, as literally as their definition; a domain may override them with something faster that gives
the very same answer (``floats.py`` does, and a test compares the two).

Functions of scalars report a value they do not have by raising ``ArithmeticError``, ``TypeError`` or
``ValueError`` with a message for people; the executor adds which s-op and which position.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from locum.graph import COMPARISONS, Atom
from locum.graph.atoms import short

#: A scalar of some domain: an atom, a rational, a ball, a polynomial…
Value: TypeAlias = Any
#: The value of a selector: [query, key].
Pattern: TypeAlias = NDArray[np.bool_]


class AverageError(TypeError):
    """A mean was asked for of values that are not all numbers."""


class NotRealError(ValueError):
    """A value that is not a real number, such as the square root of −1."""


class MissingError(ValueError):
    """A table was asked for something it does not have."""


class PairError(TypeError):
    """A comparison that failed, with the query and the key it failed for."""

    def __init__(self, problem: str, query: int, key: int) -> None:
        self.query = query
        super().__init__(f"{problem} (key {key})")


class Domain(ABC):
    """A kind of number to run programs on."""

    name: ClassVar[str]
    #: Elementwise operation → function of scalars (attributes come as keywords).
    meanings: Mapping[str, Callable[..., Value]]
    #: Elementwise operation → why it has no meaning here.
    refusals: Mapping[str, str] = {}

    @abstractmethod
    def token(self, value: Value, cast: str) -> Value:
        """Return an input value as the program sees it through ``tokens_<cast>``."""

    @abstractmethod
    def constant(self, atom: Atom) -> Value:
        """Return an atom of the program as a scalar of this domain."""

    @abstractmethod
    def accepts(self, value: object) -> bool:
        """Return whether an input may contain ``value``."""

    @abstractmethod
    def mixture(self, values: Sequence[Value]) -> str | None:
        """Say why these values cannot stand in one sequence; None where they can."""

    @abstractmethod
    def is_numeric(self, values: Sequence[Value]) -> bool:
        """Return whether a sequence may be averaged."""

    @abstractmethod
    def mean(self, values: Sequence[Value]) -> Value:
        """Return the arithmetic mean of two or more numbers."""

    def result(self, value: Value) -> Any:
        """Return a scalar in the form in which it is handed to the user."""
        return value

    # Attention, literally ---------------------------------------------------------------------

    def select(self, keys: Sequence[Value], queries: Sequence[Value], predicate: str) -> Pattern:
        """Return pattern[q, k] = keys[k] ? queries[q]"""
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
        """Keep of the selected keys of each query those that no other selected key exceeds."""
        greater = self.meanings["greater"]
        pattern = np.zeros_like(selected)
        for q, row in enumerate(selected):
            keys = [int(k) for k in np.flatnonzero(row)]
            for k in keys:
                pattern[q, k] = not any(greater(scores[other], scores[k]) for other in keys)
        return pattern

    def aggregate(self, selected: Pattern, values: Sequence[Value], default: Value) -> list[Value]:
        """Aggregate: no key gives the default, one its value, more the mean, of numbers only."""
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
        """Return how many keys each query selects."""
        return [self.constant(int(count)) for count in selected.sum(axis=1)]

    def require_numbers(self, selected: Pattern, values: Sequence[Value]) -> None:
        """Refuse a mean unless *all* values are numbers, as RASP does: the selected and the others."""
        if not self.is_numeric(values) and bool((selected.sum(axis=1) > 1).any()):
            raise AverageError(
                "asked to average several values, but they are not all numbers "
                f"({', '.join(map(short, values[:4]))}{', …' if len(values) > 4 else ''}); "
                "select one key per query, or average numbers such as indicator(…)"
            )
