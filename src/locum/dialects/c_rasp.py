"""C-RASP: counts of earlier positions, compared. Text and Python, on the one graph.

A program is a list of definitions, one on each line (or ended by ``;``); the last one accepts.
Booleans: ``"a"`` (the symbol here is a), ``true``, ``false``, ``!``, ``&&``, ``||``, comparisons of
counts (``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=``). Counts: ``#P`` or ``#[P]`` (positions up to here
where P holds), integers, ``+``, ``-``, an integer ``*`` a count, ``min(x, y)``, ``max(x, y)``, ``x if
P else y``. Whatever stands behind ``#`` binds to it as tightly as to ``!``. ``//`` begins a comment.

``#import periodic`` declares positions modulo a constant, ``i % 2 == 0``, and ``#import local`` counts
at one distance, ``#[j == i - 1] P``: extensions, with which more languages are recognised. ``#accept
last`` or ``#accept end`` and ``#positions 0`` or ``#positions 1`` say the conventions: by default the
answer is read at the last symbol, and positions are counted from 0.

>>> dyck = parse('''
... opened = #"("
... closed = #")"
... accepted = #[opened < closed] == 0 && opened == closed
... ''')
>>> dyck.accepts("(())()"), dyck.accepts("())(")
(True, False)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from locum.dialects.automata import Letter
from locum.dialects.c_rasp_reader import ProgramReader
from locum.dialects.counting import (
    as_count,
    as_sop,
    count,
    is_remainder,
    is_symbol,
    parts_of,
    recogniser,
    symbol,
    symbols,
)
from locum.dialects.recogniser import LAST, Recogniser
from locum.dialects.syntax import alphabet_of
from locum.errors import InputError
from locum.graph import COMPARISONS, Node

__all__ = ["count", "parse", "recogniser", "show", "symbol"]


_INFIX = {row.operation: symbol for symbol, row in COMPARISONS.items()} | {
    "and": "&&",
    "or": "||",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
}


def show(program: Recogniser) -> str:
    """Write a program as text that is read back as the same; parts keep their names."""
    root = program.sop.node
    order = parts_of(root)
    uses: dict[Node, int] = {}
    for node in order:
        counted = as_count(node)
        for part in (counted.condition,) if counted is not None else node.inputs:
            uses[part] = uses.get(part, 0) + 1
    imports = [
        name
        for name, needed in (
            ("periodic", any(map(is_remainder, order))),
            ("local", any(c is not None and c.distance is not None for c in map(as_count, order))),
        )
        if needed
    ]
    lines = [f"#accept {program.accept}", *(f"#import {name}" for name in imports)]
    texts: dict[Node, str] = {}
    taken = set(program.names.values())
    free = (name for number in itertools.count(1) if (name := f"v{number}") not in taken)
    for node in order:
        text = _text(node, texts)
        plain = is_symbol(node) or node.op == "constant"
        name = program.names.get(node, "")
        if node is root:
            lines.append(f"{name or ('accepted' if 'accepted' not in taken else next(free))} = {text}")
        elif name or (uses.get(node, 0) > 1 and not plain):
            texts[node] = name or next(free)
            lines.append(f"{texts[node]} = {text}")
        else:
            texts[node] = text
    return "\n".join(lines) + "\n"


def _text(node: Node, texts: dict[Node, str]) -> str:
    """Write a part whose own parts are written, in brackets where it has operators."""
    counted = as_count(node)
    if is_symbol(node):
        return f'"{node.inputs[1].attributes["value"]}"'
    if node.op == "constant":
        value = node.attributes["value"]
        return str(value).lower() if isinstance(value, bool) else str(value)
    if counted is not None:
        where = "" if counted.distance is None else f"[j == i - {counted.distance}] "
        return f"#{where}{texts[counted.condition]}"
    if is_remainder(node):
        if node.inputs[0].op != "indices":
            shift = node.inputs[0].inputs[1].attributes["value"]
            raise InputError(f"C-RASP: positions that are counted from {shift} have no text here")
        return f"i % {node.inputs[1].attributes['value']}"
    inner = [texts[part] for part in node.inputs]
    match node.op:
        case "not" | "negate":
            return f"{'!' if node.op == 'not' else '-'}{inner[0]}"
        case "minimum" | "maximum":
            return f"{node.op[:3]}({inner[0]}, {inner[1]})"
        case "if_else":
            return f"({inner[1]} if {inner[0]} else {inner[2]})"
        case op:
            return f"({inner[0]} {_INFIX[op]} {inner[1]})"


def parse(
    text: str,
    *,
    alphabet: Iterable[Letter] | None = None,
    accept: str | None = None,
    positions: int | None = None,
) -> Recogniser:
    """Read a program; ``alphabet`` defaults to the symbols it names.

    ``accept`` ("last", the default, or "end") and ``positions`` (0, the default, or 1: the number of
    the first position, for periodic predicates) are said here or in the text, and must not contradict
    it.
    """
    reader = ProgramReader(accept, positions)
    root = reader.read(text)
    letters = alphabet_of("C-RASP", symbols(root), alphabet)
    return Recogniser(
        "C-RASP", as_sop(root), letters, reader.conventions["accept"] or LAST, reader.names, text
    )
