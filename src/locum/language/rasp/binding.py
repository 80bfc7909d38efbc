"""Names meet values: assignments, loop variables, parameters, what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from locum.language.rasp.mistakes import RaspError
from locum.language.rasp.scope import Scope
from locum.language.rasp.values import Value, words_for


def bind(names: Sequence[str], value: Value) -> list[tuple[str, Value]]:
    """Pair names with the values an assignment gives them: one value, or one to be unpacked."""
    if len(names) == 1:
        return [(names[0], value)]
    if not isinstance(value, (list, str, dict)):
        problem = f"{words_for(value)} cannot be unpacked into {len(names)} names"
        raise RaspError("runtime:TypeError", problem)
    if len(value) != len(names):
        raise RaspError("type", f"expected {len(names)} values, but got: {len(value)}")
    return list(zip(names, value, strict=True))


def unpacked(names: Any, item: Value) -> dict[str, Value]:
    """Give the variables of a loop or comprehension their values for one item."""
    targets = [str(name) for name in names.children]
    if len(targets) > 1 and (not isinstance(item, (list, str)) or len(item) != len(targets)):
        values = len(item) if isinstance(item, (list, str)) else 1
        raise RaspError("type", f"iterating with {len(targets)} names but got {values} values")
    return dict(bind(targets, item))


def scope_with(parent: Scope, values: dict[str, Value]) -> Scope:
    """Make a nested scope in which these names are set."""
    scope = Scope(parent)
    for name, value in values.items():
        scope.set(name, value)
    return scope


def name_shown(tree: Any) -> str:
    """Name an expression for its display: a name is shown under itself, any other as ``out``."""
    expression = tree.children[0]
    return str(expression.children[0]) if expression.data == "name" else "out"


def require_arity(name: str, expected: int, arguments: Sequence[Value]) -> None:
    """Refuse a call with too few or too many arguments."""
    if len(arguments) != expected:
        problem = f"wrong number of args for {name}- expected: {expected}, got: {len(arguments)}."
        raise RaspError("arity", problem)
