"""Define the names that are available to every RASP program.

:func:`base_scope` contains the inputs such as ``indices``, the constants ``True`` and ``False``,
functions that correspond to operations of the graph, and Locum's extensions. The other functions of the
standard library are written in RASP (``library.rasp``).

Functions build nodes. Elementwise functions of atoms return an atom.
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

#: The name of the standard library in displays, as in Weiss's implementation.
LIBRARY = "RASP_support/rasplib"
#: Names that no program may assign, in any scope.
BASE = frozenset(
    (
        *("tokens_asis", "tokens_str", "tokens_int", "tokens_float", "tokens_bool", "indices"),
        *("True", "False", "out", "range", "zip", "len", "get"),
    )
)
#: Functions of one operand, by their names in RASP text. (``round`` is a rule of the grammar.)
_UNARY = {
    row.called: name
    for name, row in OPERATIONS.items()
    if row.group == "function" and len(row.takes) == 1 and name != "round"
}
#: Extensions, which programs may redefine.
EXTENSIONS = (*_UNARY, "best", "sum", "constant")
#: Graph operations that are library functions in RASP.
LIBRARY_FUNCTIONS = ("selector_width", "max", "min")


def base_scope() -> Scope:
    """Return a scope with the inputs, constants and functions that are not defined in RASP text."""
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
    """Apply the operation ``op`` to s-ops, or compute its result directly if all values are atoms."""
    for value in values:
        if not isinstance(value, SOp) and not is_atom(value):
            raise RaspError("type", f"{op}: expected an s-op or an atom, got {words_for(value)}")
    if any(isinstance(value, SOp) for value in values):
        return apply(op, *values)
    return compute(ON_ATOMS[op], *values, op=op)


def compute(function: Callable[..., Any], *values: Any, op: str = "") -> Any:
    """Call a Python function on plain values, and raise its arithmetic, type and value errors as
    :class:`RaspError`.
    """
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
    """Return the sum of the selected values: the number of selected keys times the mean."""
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

#: Functions that compute each operation on plain values.
ON_ATOMS = FloatDomain.meanings


@cache
def library() -> tuple[Statement, ...]:
    """Return the parsed statements of ``library.rasp``; the file is read only once."""
    text = resources.files("locum.rasp.text").joinpath("library.rasp").read_text(encoding="utf-8")
    return tuple(read(text, Limits()))


def library_scope(machine: Machine, names: Names) -> Scope:
    """Return a scope that contains the definitions of ``library.rasp``, with the base scope as its
    parent.
    """
    scope = Scope(base_scope())
    for name in ("full_s", "length"):
        names.give(scope.get(name, machine.budget), name)
    for statement in library():
        machine.source = statement.source
        machine.evaluate(statement.inner, scope)
    return scope


def program_scope(library: Scope) -> Scope:
    """Return a scope in which a program can assign ``tokens``, extensions and new names, but no other
    predefined names.
    """
    known = {name for scope in library.chain() for name in scope.names}
    reserved = (known | BASE) - {"tokens", *EXTENSIONS}
    return Scope(library, frozenset(reserved), remembers=True)


def take_away(scope: Scope, name: str) -> None:
    """Replace the library function ``name`` by a function that raises an error.

    Calls through aliases and lists that are created later also raise the error. Parameters and local
    functions with the same name are not affected.
    """
    owner = next(each for each in scope.chain() if name in each.names)
    taken = owner.names[name]

    def refuse(*_: Value) -> Value:
        raise RaspError(
            "reserved-name", f"expected a program that does not use the library function {name}"
        )

    owner.names[name] = Builtin(name, taken.parameters, refuse, taken.origin)
