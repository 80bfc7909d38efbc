"""How values look as text: RASP's own format, to the letter.

Sequences that are all equal collapse to ``[v]*n``, floats show three decimals, bools are T and F,
strings are bare, and the type follows in brackets. A selector is a grid, queries as rows, keys as
columns, blanks where nothing is selected.

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

from understudy.graph import sequence_type
from understudy.graph.atoms import short


def sequence(values: Sequence[object]) -> str:
    """A sequence with its type, as the REPL prints it."""
    shown = [scalar(value) for value in values]
    kind = sequence_type(values)
    suffix = f" ({kind}s)" if kind else ""
    if len(shown) > 1 and len(set(shown)) == 1:
        return f"[{shown[0]}]*{len(shown)}{suffix}"
    return f"[{', '.join(shown)}]{suffix}"


def scalar(value: object) -> str:
    """One value of a sequence."""
    if isinstance(value, bool):
        return "T" if value else "F"
    if isinstance(value, float):
        return str(round(value, 3))
    if isinstance(value, Fraction) and value.denominator == 1:
        return str(value.numerator)
    return short(value) if isinstance(value, int) else str(value)


def grid(pattern: Sequence[Sequence[bool]], tokens: Sequence[object]) -> str:
    """A selector, tokens on both axes."""
    labels = [str(token) for token in tokens]
    lines = ["     " + " ".join(labels)]
    for label, row in zip(labels, pattern, strict=True):
        lines.append(f" {label} | " + " ".join("1" if selected else " " for selected in row))
    return "\n".join(lines)
