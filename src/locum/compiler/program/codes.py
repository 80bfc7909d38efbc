"""Strings as numbers: the residual stream holds nothing else.

All strings of a program are numbered in their order, so that comparing codes is comparing strings,
moving a code moves the string, and a choice between strings is a choice between codes. Codes keep clear
of the numbers that may stand in the same s-op (the default 0 of an aggregate, say): they are the first
stretch of whole numbers that has none of these in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from locum.compiler.program.value_tables import require_finite
from locum.compiler.program.values import Values
from locum.graph import Atom, Node, Sort, sort_of


def _rounded(number: float) -> float:
    try:
        return float(number)
    except OverflowError:  # a whole number beyond all codes
        return math.inf


class Codes:
    """The number that stands for each atom."""

    def __init__(self, values: Values, nodes: Iterable[Node]) -> None:
        strings: set[str] = {t for t in values.target.vocabulary or () if isinstance(t, str)}
        beside: set[float] = set()
        for node in nodes:
            found = values.table(node) if sort_of(node) is Sort.SOP else None
            if found is None or not any(isinstance(value, str) for value in found.values):
                continue
            for value in found.values:
                if isinstance(value, str):
                    strings.add(value)
                elif value is not None:
                    beside.add(_rounded(value))
        start = 0
        for number in sorted(beside):
            if start <= number < start + len(strings):
                start = int(number) + 1
        self._codes = {text: start + rank for rank, text in enumerate(sorted(strings))}

    def number(self, atom: Atom, where: Node | str) -> float:
        """The number that the stream holds for it; ``where`` is for the error, if there is none."""
        if isinstance(atom, str):
            return float(self._codes[atom])
        return require_finite(atom, where)
