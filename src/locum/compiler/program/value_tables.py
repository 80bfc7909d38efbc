"""Columns: what an s-op is, value by value, over the few things that it depends on.

A :class:`ValueTable` lists the values over all combinations of *sources*; :func:`each` makes one out of
others, with the meaning that RASP gives an operation. ``values.py`` finds the columns of a program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

from locum.compiler.program.ranges import Range
from locum.compiler.target import DOMAIN
from locum.errors import CompileError
from locum.graph import Atom, Node, abbreviate
from locum.graph.atoms import short

#: What a value depends on: "indices", "length", "tokens", or an attention operation.
Source: TypeAlias = "str | Node"

_WRONG = (ArithmeticError, LookupError, TypeError, ValueError)


@dataclass(frozen=True)
class ValueTable:
    """The value for each combination of sources, the last source running fastest; None: an error."""

    sources: tuple[Source, ...]
    values: tuple[Atom | None, ...]

    @property
    def constant(self) -> bool:
        """Whether it depends on nothing."""
        return not self.sources

    @cached_property
    def _types(self) -> set[type]:
        """The types of its values: they say most of long columns at once."""
        return set(map(type, self.values))

    @cached_property
    def _whole(self) -> Range:
        """Between which integers those of its values lie that are integers."""
        if self._types.isdisjoint((int, bool)):
            return Range(0, 0)
        whole: Any = self.values
        if not self._types <= {int, bool}:
            whole = [value for value in self.values if isinstance(value, int)]
        return Range(min(whole), max(whole))

    @property
    def integers(self) -> Range | None:
        """Between which integers its values lie, or None where one is another number or a string."""
        return self._whole if self._types.isdisjoint((float, str)) else None

    @property
    def largest_whole(self) -> float:
        """The absolute value of its largest integer; strings count as larger than any."""
        return math.inf if str in self._types else self._whole.largest


def meaning(node: Node) -> Callable[..., Atom]:
    """Return what an elementwise operation does to scalars."""
    if node.op == "lookup":  # a dictionary finds at once what the definition looks for
        return table_of(node).__getitem__
    return partial(DOMAIN.meanings[node.op], **node.attributes)


def table_of(node: Node) -> dict[Atom, Atom]:
    """Return the table of a ``lookup``; of equal keys the first counts."""
    table: dict[Atom, Atom] = {}
    for key, value in node.table:
        table.setdefault(key, value)
    return table


def each(
    function: Callable[..., Atom], arguments: Sequence[Sequence[Atom | None]]
) -> list[Atom | None]:
    """Apply the function to every combination; None where it fails, or where an argument did."""
    if not any(None in argument for argument in arguments):
        try:
            return list(map(function, *arguments))
        except _WRONG:
            pass
    results: list[Atom | None] = []
    for scalars in zip(*arguments, strict=True):
        try:
            results.append(None if None in scalars else function(*scalars))
        except _WRONG:
            results.append(None)
    return results


def is_constant(values: Sequence[Atom | None]) -> bool:
    """Return whether all values are one, of one type."""
    first = values[0]
    return first is not None and all(type(v) is type(first) and v == first for v in values)


def distinct(values: Iterable[Atom]) -> tuple[Atom, ...]:
    """List each value once, in order: numbers, then strings; of equal boolean and number, the number.

    >>> distinct([3, True, 1, 1.0, "b", "a"]), distinct([True, False])
    ((1, 3, 'a', 'b'), (False, True))
    """
    # A mean of booleans is an error, so what is all booleans is known to be moved; with a number among
    # them it is not.
    listed = list(values)
    if set(map(type, listed)) <= {int, float}:  # at once, for long columns
        return tuple(sorted(dict.fromkeys(listed)))
    once = dict.fromkeys(listed)
    if any(isinstance(v, bool) for v in once):
        once = dict.fromkeys(v for v in listed if not isinstance(v, bool)) | once
    return tuple(sorted(once, key=lambda v: (isinstance(v, str), v)))


def require_finite(value: Atom, where: Node | str) -> float:
    """Return the value as a number that a weight can be, or refuse it."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        place = where if isinstance(where, str) else abbreviate(where)
        raise CompileError(f"expected finite numbers, which weights hold, got {short(value)}", place)
    return number
