"""What a RASP expression can be worth while a program is built.

Atoms (Python's own), lists, dicts, functions, s-ops and selectors (the handles of the Python front
end), and the result of applying one of those to an input, which is shown but is not a value to
compute with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from locum.budget import Budget
from locum.graph import abbreviate, is_atom
from locum.graph.atoms import short
from locum.language.handles import Selector, SOp
from locum.language.rasp.mistakes import RaspError
from locum.language.rasp.reader import Source
from locum.language.rasp.scope import Scope

Value: TypeAlias = "Any"


@dataclass(frozen=True, eq=False)
class Function:
    """A function of the program: a closure over the scope it was defined in."""

    name: str
    parameters: tuple[str, ...]
    #: Trees of the grammar: the statements, and what is returned.
    body: tuple[Any, ...]
    returns: Any
    scope: Scope
    #: The text it was defined in, and where that came from: the console, or the name of a file.
    source: Source
    origin: str

    def __str__(self) -> str:
        return f"{self.origin} function: {self.name}({', '.join(self.parameters)})"


@dataclass(frozen=True, eq=False)
class Builtin:
    """A function of the language that is not written in RASP."""

    name: str
    parameters: tuple[str, ...]
    call: Callable[..., Value]
    #: Where displays say that it comes from.
    origin: str

    def __str__(self) -> str:
        return f"{self.origin} function: {self.name}({', '.join(self.parameters)})"


@dataclass(frozen=True, eq=False)
class Applied:
    """An s-op or selector applied to an input: something to look at."""

    program: SOp | Selector
    tokens: Any
    value: Any


def words_for(value: Value) -> str:
    """Describe a value as errors mention it."""
    if isinstance(value, SOp):
        return f"the s-op {abbreviate(value.node)}"
    if isinstance(value, Selector):
        return f"the selector {abbreviate(value.node)}"
    if isinstance(value, (Function, Builtin)):
        return f"the function {value.name}({', '.join(value.parameters)})"
    if isinstance(value, Applied):
        return "the result of applying a program to an input"
    if is_atom(value):
        return f'"{value}"' if isinstance(value, str) and len(value) < 40 else short(value)
    kind = "dict" if isinstance(value, dict) else "list"
    return f"a {kind} of {len(value)}"


def operand(value: Value, what: str) -> Any:
    """Require a value that may stand in an elementwise operation beside an s-op."""
    if isinstance(value, SOp) or is_atom(value):
        return value
    kind = "runtime:TypeError" if isinstance(value, Applied) else "type"
    raise RaspError(kind, f"{what}: expected an s-op or an atom, got {words_for(value)}")


def same(left: Value, right: Value, budget: Budget) -> bool:
    """Compare plain values, lists and dicts as Python does; s-ops and functions are only themselves.

    Lists may share parts so often that comparing them naively never ends: each pair is looked at
    once, at a step of the budget.
    """
    seen: set[tuple[int, int]] = set()
    waiting = [(left, right)]
    while waiting:
        a, b = waiting.pop()
        if a is b or (id(a), id(b)) in seen:
            continue
        budget.spend(1)
        if is_atom(a) and is_atom(b):
            if a != b:
                return False
            continue
        seen.add((id(a), id(b)))
        if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            waiting.extend(zip(a, b, strict=True))
        elif isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
            waiting.extend((a[key], b[key]) for key in a)
        else:
            return False
    return True
