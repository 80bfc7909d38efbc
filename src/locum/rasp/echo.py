"""Format values in the text format of Weiss's RASP.

By default, a sequence is printed on one line. Its floats are rounded to three decimals, its booleans
are printed as T and F, and its strings are printed without quotes. The type follows in parentheses. A
sequence of two or more equal values is shortened to ``[v]*n``. A selector is a grid with queries as
rows and keys as columns; cells that are not selected are blank.

>>> sequence([0, 0, 0.5, 1.0])
'[0, 0, 0.5, 1.0] (floats)'
>>> sequence([1 / 3, 1 / 3]), sequence(["a"]), sequence([True, False])
('[0.333]*2 (floats)', '[a] (strings)', '[T, F] (bools)')
>>> print(grid([[False, True], [True, True]], "ab"))
     a b
 a |   1
 b | 1 1
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from locum.graph import sequence_type
from locum.graph.atoms import is_unprintable, short

#: Appended to a sequence of one value or of equal values, which is not printed as rows.
SKIPPED = " [skipped full display: identical values]"


def sequence(values: Sequence[object]) -> str:
    """Format a sequence with its type, as the REPL prints it."""
    shown = [scalar(value) for value in values]
    kind = sequence_type(values)
    suffix = f" ({kind}s)" if kind else ""
    if is_constant(values):
        return f"[{shown[0]}]*{len(shown)}{suffix}"
    return f"[{', '.join(shown)}]{suffix}"


def is_constant(values: Sequence[object]) -> bool:
    """Return whether a sequence contains at least two values and all of them are equal."""
    return len(values) > 1 and all(value == values[0] for value in values)


def _is_uniform(values: Sequence[object]) -> bool:
    return len(values) == 1 or is_constant(values)


def scalar(value: object) -> str:
    """Format one value of a sequence, without quotes."""
    if isinstance(value, bool):
        return "T" if value else "F"
    if isinstance(value, float):
        return str(round(value, 3))
    if isinstance(value, Fraction) and value.denominator == 1:
        return str(value.numerator)
    return short(value) if is_unprintable(value) else str(value)


def grid(pattern: Sequence[Sequence[int]], tokens: Sequence[object], most: int | None = None) -> str:
    """Draw a selector as a grid with the tokens on both axes, and at most ``most`` rows and columns.

    >>> print(grid([[True] * 9] * 9, "abcdefghi", most=2))
         a b …
     a | 1 1 …
     b | 1 1 …
     …   (9 × 9 cells, the first 2 rows and columns shown)
    """
    labels = [str(token) for token in tokens[:most]]
    more = [] if most is None else ["…"]
    lines = ["     " + " ".join([*labels, *more])]
    for label, row in zip(labels, pattern, strict=most is None):
        cells = ["1" if selected else " " for selected in row[:most]]
        lines.append(f" {label} | " + " ".join([*cells, *more]))
    if most is not None:
        size = f"{len(pattern):,} × {len(pattern):,}"
        lines.append(f" …   ({size} cells, the first {most} rows and columns shown)")
    return "\n".join(lines)


def quoted(tokens: object) -> str:
    """Quote an input as the REPL does: strings in double quotes, lists in Python syntax."""
    return f'"{tokens}"' if isinstance(tokens, str) else repr(tokens)


def atom(value: object) -> str:
    """Format a single atom, with strings in double quotes."""
    if isinstance(value, str):
        return f'"{value}"'
    return short(value) if is_unprintable(value) else str(value)


# Blocks, as the REPL prints them after a statement -----------------------------------------------


def sop_block(name: str, tokens: Any, values: Sequence[object] | None, full: bool = False) -> str:
    """Format an s-op and its value on the example.

    With ``full``, input and output are printed as aligned rows, unless all values are equal.
    """
    head = f"     s-op: {name}\n"
    if values is None:
        return head
    if full and not _is_uniform(values):
        return f"{head} \t Example:\n{_rows(tokens, values)}"
    skipped = SKIPPED if full else ""
    return f"{head} \t Example: {name}({quoted(tokens)}) = {sequence(values)}{skipped}\n"


def selector_block(
    name: str, tokens: Any, pattern: Sequence[Sequence[bool]] | None, most: int | None = None
) -> str:
    """Format a selector on the example as a grid with at most ``most`` rows and columns."""
    head = f"     selector: {name}\n"
    return head if pattern is None else f"{head} \t Example:\n{_indented_grid(pattern, tokens, most)}"


def applied_block(
    tokens: Any, value: Any, is_selector: bool, full: bool = False, most: int | None = None
) -> str:
    """Format the value of an s-op or selector on an input, as the REPL prints it after a call."""
    if is_selector:
        return f"\t = \n{_indented_grid(value, tokens, most)}"
    if full and not _is_uniform(value):
        return f"\t = \n{_rows(tokens, value)}"
    return f"\t =   {sequence(value)}{SKIPPED}\n" if full else f"\t =  {sequence(value)}\n"


def atom_block(name: str, value: object) -> str:
    """Format an atom, with its ``name`` if the name is not empty, as the REPL prints it."""
    return f"    value: {name + ' = ' if name else ''} {atom(value)}\n"


def collection_block(
    name: str, kind: str, flat: str | None, members: Sequence[str], outer: str = ""
) -> str:
    """Format a list or dict: on one line if it contains only atoms, else with a block for each member.

    ``flat`` is the text of a collection of atoms, else None. ``outer`` is the indentation of a nested
    collection, which RASP repeats before the bracket.
    """
    left, right = "[]" if kind == "list" else "{}"
    title = f"     {kind}: {name + ' = ' if name else ''}"
    if flat is not None:
        return f"{title}{flat}\n"
    margin = "\t\t" if kind == "list" else "\t\t\t"
    inner = "".join(
        margin + member.rstrip("\n").replace("\n", f"\n{margin}") + "\n" for member in members
    )
    closing = len(f"   {kind}: {name + ' = ' if name else ''}") + 2
    return f"{title}{outer} {left}\n{inner}{' ' * closing}{right}\n"


def _indented_grid(pattern: Sequence[Sequence[bool]], tokens: Any, most: int | None) -> str:
    return "".join(f" \t\t\t{line}\n" for line in grid(pattern, tokens, most).split("\n"))


def _rows(tokens: Any, values: Sequence[object]) -> str:
    """Format the input above the output in aligned columns.

    In a boolean output, the more frequent of T and F is left blank.
    """
    above = [str(token) for token in tokens]
    below = [str(value) for value in values]
    if sequence_type(values) == "bool":
        true = sum(map(bool, values))
        hidden = {2 * true > len(values): "T", 2 * true < len(values): "F"}.get(True)
        letters = ["T" if value else "F" for value in values]
        below = [" " if letter == hidden else letter for letter in letters]
    width = max(map(len, above + below))
    lines = ""
    for label, cells, kind in (
        ("input:  ", above, "string"),
        ("output: ", below, sequence_type(values)),
    ):
        row = " ".join(cell.rjust(width) for cell in cells)
        lines += f" \t\t{label} {row} \t ({kind}s)\n"
    return lines
