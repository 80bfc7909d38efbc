"""The names that every RASP program starts with.

:func:`base_scope` has the leaves, ``True`` and ``False``, the functions that are operations of the
table, and our extensions. What *can* be written in RASP is in ``library.rasp``.

Each function works on s-ops (making a node) and, where RASP's own library does, on plain values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import resources
from typing import Any

from locum.errors import GraphError
from locum.execution.domains import NotRealError
from locum.execution.domains.floats import FloatDomain, describe_failure
from locum.graph import OPERATIONS, is_atom
from locum.rasp import python
from locum.rasp.handles import SOp, apply
from locum.rasp.text.limits import Limits
from locum.rasp.text.machine import Builtin, Machine, Scope, Value, words_for
from locum.rasp.text.mistakes import CATEGORIES, RaspError
from locum.rasp.text.naming import Names
from locum.rasp.text.reader import Statement, read

#: What displays call the standard library, as in Weiss's implementation.
LIBRARY = "RASP_support/rasplib"
#: Names that no program may set, at any depth.
BASE = frozenset(
    (
        *("tokens_asis", "tokens_str", "tokens_int", "tokens_float", "tokens_bool", "indices"),
        *("True", "False", "out", "range", "zip", "len", "get"),
    )
)
#: Functions of one operand that the table has, by the names that RASP text has for them. (``round`` is
#: an operator of the grammar.)
_UNARY = {
    row.called: name
    for name, row in OPERATIONS.items()
    if row.group == "function" and len(row.takes) == 1 and name != "round"
}
#: Extensions: set at the start, but a program may use these names for its own ends.
EXTENSIONS = (*_UNARY, "best", "sum", "constant")
#: Operations of the table that RASP has as library functions.
LIBRARY_FUNCTIONS = ("selector_width", "max", "min")


def base_scope() -> Scope:
    """Make a scope with every name of the language that is not written in RASP."""
    scope = Scope(reserved=BASE)
    scope.passed_on = BASE
    scope.names = {
        "tokens_asis": python.tokens,
        "tokens_str": python.tokens_str,
        "tokens_int": python.tokens_int,
        "tokens_float": python.tokens_float,
        "tokens_bool": python.tokens_bool,
        "indices": python.indices,
        "length": python.length,
        "full_s": python.full,
        "True": True,
        "False": False,
        **{name: _builtin(name) for name in LIBRARY_FUNCTIONS + EXTENSIONS},
    }
    return scope


def _builtin(name: str) -> Builtin:
    parameters, call = _FUNCTIONS[name]
    return Builtin(name, parameters, call, LIBRARY if name in LIBRARY_FUNCTIONS else "locum")


def _elementwise(op: str, *values: Any) -> Any:
    """Apply an operation of the table to s-ops, or the same function to atoms."""
    for value in values:
        if not isinstance(value, SOp) and not is_atom(value):
            raise RaspError("type", f"{op}: expected an s-op or an atom, got {words_for(value)}")
    if any(isinstance(value, SOp) for value in values):
        return apply(op, *values)
    return compute(ON_ATOMS[op], *values, op=op)


def compute(function: Callable[..., Any], *values: Any, op: str = "") -> Any:
    """Compute a Python function of plain values, the operation ``op`` if given; errors are RASP's."""
    try:
        return function(*values)
    except (ArithmeticError, TypeError, ValueError) as error:
        if isinstance(error, RaspError):
            raise
        real = not isinstance(error, NotRealError)
        category = f"runtime:{type(error).__name__}" if real else CATEGORIES["not real"]
        problem = describe_failure(error, op, values) if op else str(error)
        raise RaspError(category, problem) from None


def _sum(selector: Any, values: Any) -> Any:
    """Sum what is selected: its mean times its number (two heads more)."""
    return python.selector_width(selector) * python.aggregate(selector, values)


def _constant(value: Any) -> SOp:
    if not is_atom(value):
        raise GraphError(f"constant: expected an atom, got {words_for(value)}")
    return python.constant(value)


_FUNCTIONS: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    "selector_width": (("sel",), python.selector_width),
    "max": (("a", "b"), partial(_elementwise, "maximum")),
    "min": (("a", "b"), partial(_elementwise, "minimum")),
    **{name: (("a",), partial(_elementwise, op)) for name, op in _UNARY.items()},
    "best": (("selector", "score"), python.best),
    "sum": (("selector", "values"), _sum),
    "constant": (("value",), _constant),
}

#: What operators mean on plain values.
ON_ATOMS = FloatDomain.meanings


@cache
def library() -> tuple[Statement, ...]:
    """Read the statements of the standard library, once."""
    text = resources.files("locum.rasp.text").joinpath("library.rasp").read_text(encoding="utf-8")
    return tuple(read(text, Limits()))


def library_scope(machine: Machine, names: Names) -> Scope:
    """Make the base names, and in a scope above them what ``library.rasp`` defines."""
    scope = Scope(base_scope())
    for name in ("full_s", "length"):
        names.give(scope.get(name, machine.budget), name)
    for statement in library():
        machine.source = statement.source
        machine.evaluate(statement.inner, scope)
    return scope


def program_scope(library: Scope) -> Scope:
    """Make a scope for a program: it may set ``tokens`` and extensions, not the library's names."""
    known = {name for scope in library.chain() for name in scope.names}
    reserved = (known | BASE) - {"tokens", *EXTENSIONS}
    return Scope(library, frozenset(reserved), remembers=True)


def take_away(scope: Scope, name: str) -> None:
    """Have every call of a function of the library refused, by whatever name or list it is reached.

    What else is called so (a parameter, a function inside another) is not that function.
    """
    owner = next(each for each in scope.chain() if name in each.names)
    taken = owner.names[name]

    def refuse(*_: Value) -> Value:
        raise RaspError("reserved-name", f"expected a program without {name} of the library")

    owner.names[name] = Builtin(name, taken.parameters, refuse, taken.origin)
