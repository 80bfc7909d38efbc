"""The names that every program starts with: the base names, and what ``library.rasp`` defines."""

from __future__ import annotations

from functools import cache
from importlib import resources

from locum.language.rasp.builtins import BASE, EXTENSIONS, base_scope
from locum.language.rasp.limits import Limits
from locum.language.rasp.machine import Machine
from locum.language.rasp.mistakes import RaspError
from locum.language.rasp.naming import Names
from locum.language.rasp.reader import Statement, read
from locum.language.rasp.scope import Scope
from locum.language.rasp.values import Builtin, Value


@cache
def library() -> tuple[Statement, ...]:
    """Read the statements of the standard library, once."""
    text = resources.files("locum.language.rasp").joinpath("library.rasp").read_text(encoding="utf-8")
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
