r"""Run programs in C-RASP, B-RASP and LTL in the playground.

The first line of such a program is a comment with the name of the dialect. No RASP program begins with
``//``, so the first line determines the dialect.

>>> dialect_of("// C-RASP"), dialect_of("x = indices;")
('C-RASP', None)
>>> source = '// B-RASP\nodd = "a"\neven = !odd'
>>> [(each.name, each.first) for each in definitions(source, recogniser(source))]
[('odd', 2), ('even', 3)]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from locum.errors import InputError
from locum.graph import Node
from locum.languages import b_rasp, c_rasp
from locum.languages.ltl import LTL
from locum.languages.recogniser import END, MARKER, Recogniser

_FIRST_LINE = re.compile(r"//[ \t]*(C-RASP|B-RASP|LTL)[ \t]*(?:[\r\n]|$)")


class Definition(NamedTuple):
    """A definition of a program: its name, its first and last line (from 1), and its node."""

    name: str
    first: int
    last: int
    node: Node


def dialect_of(source: str) -> str | None:
    """Return the dialect that the first line of a program names, or None for RASP."""
    found = _FIRST_LINE.match(source)
    return found[1] if found else None


def recogniser(source: str, tokens: Sequence[Any] = ()) -> Recogniser:
    """Return the program that ``source`` contains.

    ``tokens`` is the input of the program. If the program contains no symbol, the symbols of the input,
    without an end marker, are its alphabet.
    """
    dialect = dialect_of(source) or ""
    require_symbols(dialect, tokens)
    symbols = tuple(dict.fromkeys(tokens))
    try:
        found = _READERS[dialect](source, None)
    except InputError as error:
        if hasattr(error, "line") or not symbols:
            raise
        try:  # the program names no symbol
            found = _READERS[dialect](source, symbols)
        except InputError:  # the end marker is not a symbol
            found = _READERS[dialect](source, tuple(s for s in symbols if s != MARKER))
    if tokens:
        require_end(found, tokens)
    return found


def definitions(source: str, program: Recogniser) -> list[Definition]:
    """Return the definitions of a program in order; the last definition decides acceptance."""
    lines = source.split("\n")
    if program.dialect == "LTL":
        return [Definition("holds", 2, len(lines), program.sop.node)]
    found = [Definition(name, *_lines(lines, name), node) for node, name in program.names.items()]
    root = program.sop.node
    if root not in program.names:
        found.append(Definition("accepted", len(lines), len(lines), root))
    return sorted(found, key=lambda each: (each.node is root, each.first))


def require_symbols(dialect: str, tokens: Sequence[Any]) -> None:
    """Raise an error if an input of a program in ``dialect`` contains numbers or booleans."""
    if any(not isinstance(token, str) for token in tokens):
        raise InputError(
            f"expected an input of symbols for {dialect}, got numbers or booleans; try abab"
        )


def require_end(program: Recogniser, tokens: Sequence[Any]) -> None:
    """Raise an error if a program accepts at an end marker, and the input does not end with it."""
    if program.accept == END and tokens[-1] != MARKER:
        raise InputError(
            f"expected an input that ends with the end marker {MARKER}, since the program accepts "
            f"there, got {tokens[-1]!r} at the end; try {''.join(tokens)[:20]}{MARKER}"
        )


def _lines(lines: list[str], name: str) -> tuple[int, int]:
    """Return the first and last line of a definition, which can span several lines within brackets."""
    begin = re.compile(rf"(?:^|;)[ \t]*{re.escape(name)}[ \t]*=(?!=)")
    first = next((n for n, line in enumerate(lines, 1) if begin.search(line)), len(lines))
    last, depth = first - 1, 1
    while depth > 0 and last < len(lines):
        line, last = lines[last], last + 1
        depth += sum(map(line.count, "([")) - sum(map(line.count, ")]")) - (last == first)
    return first, last


def _ltl(source: str, alphabet: Sequence[str] | None) -> Recogniser:
    """Return a program that is true at the positions where the LTL formula ``source`` holds."""
    formula = LTL.parse(source, alphabet=alphabet)
    return replace(b_rasp.from_ltl(replace(formula, at="last")).recogniser(), dialect="LTL")


_READERS: dict[str, Callable[[str, Sequence[str] | None], Recogniser]] = {
    "C-RASP": lambda source, alphabet: c_rasp.parse(source, alphabet=alphabet),
    "B-RASP": lambda source, alphabet: b_rasp.parse(source, alphabet=alphabet).recogniser(),
    "LTL": _ltl,
}
