"""Strings as numbers: the residual stream holds nothing else.

All strings of a program are numbered in their order, so that comparing codes is comparing strings,
moving a code moves the string, and a choice between strings is a choice between codes. Codes keep clear
of the numbers that may stand in the same s-op (the default 0 of an aggregate, say): they are the first
range of integers that has none of these in it. Where these cannot be listed (strings beside means of
numbers), the program is refused: its codes might come out as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product

from locum.compiler.program.value_tables import each, meaning, require_finite
from locum.compiler.program.values import Values
from locum.errors import CompileError
from locum.execution.types import has_strings, possible_types, types_of
from locum.graph import OPERATIONS, Atom, Node, Sort, abbreviate, postorder, sort_of
from locum.graph.atoms import short

#: Rows of a table that is made of the values of an s-op's inputs.
MAX_ROWS = 2**13


class Codes:
    """The number that stands for each atom."""

    def __init__(self, values: Values, root: Node) -> None:
        self.target = values.target
        self._codes: dict[str, int] = {}
        vocabulary = values.target.vocabulary
        strings: set[str] = {t for t in vocabulary or () if isinstance(t, str)}
        if not strings and not has_strings(root):
            values.table(root)  # an s-op that has no values is refused by every program alike
            return
        beside: set[float] = set()
        tokens = frozenset([float]) if vocabulary is None else types_of(vocabulary)
        types = possible_types(root, tokens)
        for node in postorder(root):
            if sort_of(node) is not Sort.SOP:
                continue
            listed = values.finite(node) if node is root else values.table(node)
            if str in types[node] and listed is None:
                raise CompileError(
                    "expected strings that can be listed with all that may stand in their place, got "
                    "strings beside means of numbers, or too many; codes could not be told apart; "
                    "try s-ops of their own for strings and numbers, or a smaller vocabulary or length",
                    abbreviate(node),
                )
            atoms = list(_values(node, values))
            if any(isinstance(value, str) for value in atoms):
                strings.update(value for value in atoms if isinstance(value, str))
                beside.update(_rounded(value) for value in atoms if not isinstance(value, str))
        start = 0
        for number in sorted(beside):
            if start <= number < start + len(strings):
                start = int(number) + 1
        self._codes = {text: start + rank for rank, text in enumerate(sorted(strings))}

    def number(self, atom: Atom, where: Node | str) -> float:
        """Return the number that the stream holds for it; an error names ``where`` if there is none."""
        if not isinstance(atom, str):
            return require_finite(atom, where)
        if atom not in self._codes:
            raise CompileError(
                f"strings meet too many other values here to be told apart: {short(atom)} is not among "
                "those known to occur; try a smaller vocabulary or length",
                where if isinstance(where, str) else abbreviate(where),
            )
        return float(self._codes[atom])

    def numbers(self, atoms: Iterable[Atom], where: Node | str) -> list[float]:
        """Return the numbers that the stream holds for some atoms."""
        return [self.number(atom, where) for atom in atoms]


def _values(node: Node, values: Values) -> Iterator[Atom]:
    """Return its values over its sources, and over all values of its inputs, which units look up."""
    table = values.table(node)
    if table is not None:
        yield from (value for value in dict.fromkeys(table.values) if value is not None)
    if not OPERATIONS[node.op].elementwise:
        return
    domains = [values.finite(i) for i in node.inputs]
    known = [domain for domain in domains if domain is not None]
    texts = any(isinstance(value, str) for domain in known for value in domain)
    made = texts or (node.op == "lookup" and table is None)
    if made and len(known) == len(domains) and math.prod(map(len, known)) <= MAX_ROWS:
        rows = each(meaning(node), list(zip(*product(*known), strict=True)))
        yield from (value for value in rows if value is not None)


def _rounded(number: float) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer beyond all codes
        return math.inf
