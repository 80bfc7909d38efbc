"""What a RASP expression can be worth while a program is built.

Atoms (Python's own), lists, dicts, functions, s-ops and selectors (the handles of the Python front
end), and the result of applying one of those to an input, which is shown but is not a value to
compute with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from understudy.graph import is_atom
from understudy.language.echo import auto_name
from understudy.language.handles import Selector, SOp
from understudy.language.mistakes import RaspError
from understudy.language.scope import Scope

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
    #: The text it was defined in.
    text: str


@dataclass(frozen=True, eq=False)
class Builtin:
    """A function of the language that is not written in RASP."""

    name: str
    parameters: tuple[str, ...]
    call: Callable[..., Value]


@dataclass(frozen=True, eq=False)
class Applied:
    """An s-op or selector applied to an input: something to look at."""

    program: SOp | Selector
    given: Any
    value: Any


def words_for(value: Value) -> str:
    """A value as errors mention it."""
    if isinstance(value, SOp):
        return f"the s-op {auto_name(value.node)}"
    if isinstance(value, Selector):
        return f"the selector {auto_name(value.node)}"
    if isinstance(value, (Function, Builtin)):
        return f"the function {value.name}({', '.join(value.parameters)})"
    if isinstance(value, Applied):
        return "the result of applying a program to an input"
    if is_atom(value):
        return f'"{value}"' if isinstance(value, str) else repr(value)
    kind = "dict" if isinstance(value, dict) else "list"
    return f"a {kind} of {len(value)}"


def operand(value: Value, what: str) -> Any:
    """What may stand in an elementwise operation beside an s-op."""
    if isinstance(value, SOp) or is_atom(value):
        return value
    kind = "runtime:TypeError" if isinstance(value, Applied) else "type"
    raise RaspError(kind, f"{what} needs an s-op or an atom, but got {words_for(value)}")
