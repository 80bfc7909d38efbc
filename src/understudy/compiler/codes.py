"""Strings as numbers: the residual stream holds nothing else.

All strings of a program are numbered in their order, so that comparing codes is comparing strings,
moving a code moves the string, and a choice between strings is a choice between codes. Codes keep
clear of the numbers that may stand in the same s-op (the default 0 of an aggregate, say).
"""

from __future__ import annotations

from collections.abc import Iterable

from understudy.compiler.values import Values, require_finite
from understudy.graph import Atom, Node, Sort, sort_of


class Codes:
    """The number that stands for each atom."""

    def __init__(self, values: Values, nodes: Iterable[Node]) -> None:
        strings: set[str] = {t for t in values.target.vocabulary or () if isinstance(t, str)}
        beside = [0.0]
        for node in nodes:
            found = values.column(node) if sort_of(node) is Sort.SOP else None
            if found is None or not any(isinstance(value, str) for value in found.values):
                continue
            for value in found.values:
                if isinstance(value, str):
                    strings.add(value)
                elif value is not None:
                    beside.append(abs(float(value)))
        start = int(max(beside)) + 1 if len(beside) > 1 else 0
        self._codes = {text: start + rank for rank, text in enumerate(sorted(strings))}

    def number(self, atom: Atom, where: Node | str) -> float:
        """The number that the stream holds for it; ``where`` is for the error, if there is none."""
        if isinstance(atom, str):
            return float(self._codes[atom])
        return require_finite(atom, where)
