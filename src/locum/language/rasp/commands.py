"""The commands of the REPL, which act on a session wherever they stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from locum.language.rasp.examples import Examples
from locum.language.rasp.machine import Machine, Syntax
from locum.language.rasp.mistakes import RaspError
from locum.language.rasp.results import Result
from locum.language.rasp.scope import Scope
from locum.language.rasp.values import words_for


class Commanded(Protocol):
    """What commands change of a session."""

    examples: Examples
    finished: bool


Command = Callable[[Commanded, Syntax, Scope, Machine], Result]


def _set_example(session: Commanded, tree: Syntax, scope: Scope, machine: Machine) -> Result:
    kind, expression = tree.children
    tokens = machine.evaluate(expression, scope)
    if not isinstance(tokens, (str, list, dict)):
        raise RaspError("type", f"example not iterable: {words_for(tokens)}")
    scope.remember(tokens)
    session.examples.use(kind, tokens if isinstance(tokens, str) else list(tokens))
    return Result("none")


def _show_example(session: Commanded, tree: Syntax, scope: Scope, machine: Machine) -> Result:
    return Result("none", session.examples.described(tree.children[0]))


def _switch_examples(session: Commanded, tree: Syntax, scope: Scope, machine: Machine) -> Result:
    session.examples.switch(tree.children[0], str(tree.children[1]) == "on")
    return Result("none")


def _switch_display(session: Commanded, tree: Syntax, scope: Scope, machine: Machine) -> Result:
    session.examples.full_display = str(tree.children[-1]) == "on"
    return Result("none")


def _leave(session: Commanded, tree: Syntax, scope: Scope, machine: Machine) -> Result:
    session.finished = True
    return Result("exit")


COMMANDS: Mapping[str, Command] = MappingProxyType(
    {
        "set_example": _set_example,
        "show_example": _show_example,
        "switch_examples": _switch_examples,
        "switch_display": _switch_display,
        "leave": _leave,
    }
)
