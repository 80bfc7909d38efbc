"""Evaluate names, literals, lists, dicts, comprehensions and ranges, and bind names."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from locum.execution.domains.floats import to_integer
from locum.graph import is_atom
from locum.rasp.text.builtins import compute
from locum.rasp.text.machine import (
    MEMBER_BYTES,
    Evaluation,
    Machine,
    Rule,
    Scope,
    Syntax,
    Value,
    words_for,
)
from locum.rasp.text.mistakes import RaspError


def bind(names: Sequence[str], value: Value) -> list[tuple[str, Value]]:
    """Pair one name with ``value``, or several names with the members of ``value``."""
    if len(names) == 1:
        return [(names[0], value)]
    if not isinstance(value, (list, str, dict)):
        problem = f"{words_for(value)} cannot be unpacked into {len(names)} names"
        raise RaspError("runtime:TypeError", problem)
    if len(value) != len(names):
        raise RaspError("type", f"expected {len(names)} values, but got: {len(value)}")
    return list(zip(names, value, strict=True))


def unpacked(names: Any, item: Value) -> dict[str, Value]:
    """Return the values of the variables of a loop or comprehension for one item."""
    targets = [str(name) for name in names.children]
    if len(targets) > 1 and (not isinstance(item, (list, str)) or len(item) != len(targets)):
        values = len(item) if isinstance(item, (list, str)) else 1
        raise RaspError("type", f"iterating with {len(targets)} names but got {values} values")
    return dict(bind(targets, item))


def scope_with(parent: Scope, values: dict[str, Value]) -> Scope:
    """Return a scope nested in ``parent`` that assigns ``values`` to their names."""
    scope = Scope(parent)
    for name, value in values.items():
        scope.set(name, value)
    return scope


def name_shown(tree: Any) -> str:
    """Return the name for the value of an expression statement.

    If the expression is a name, return this name, otherwise ``out``.
    """
    expression = tree.children[0]
    return str(expression.children[0]) if expression.data == "name" else "out"


def require_arity(name: str, expected: int, arguments: Sequence[Value]) -> None:
    """Raise an error if the number of arguments in a call of ``name`` differs from ``expected``."""
    if len(arguments) != expected:
        problem = f"wrong number of args for {name}- expected: {expected}, got: {len(arguments)}."
        raise RaspError("arity", problem)


#: Bytes of a dict entry, of an empty list, and of an integer.
_ENTRY_BYTES, _LIST_BYTES, _INTEGER_BYTES = 100, 56, 32


def name(machine: Machine, tree: Syntax, scope: Scope) -> Value:
    """Return the value of a name in ``scope``."""
    return scope.get(str(tree.children[0]), machine.budget)


def integer(machine: Machine, tree: Syntax, scope: Scope) -> Value:
    """Return the value of an integer literal."""
    return compute(to_integer, str(tree.children[0]))


def floating(machine: Machine, tree: Syntax, scope: Scope) -> Value:
    """Return the value of a float literal."""
    return float(str(tree.children[0]))


def string(machine: Machine, tree: Syntax, scope: Scope) -> Value:
    """Return the text of a string literal without its quotes."""
    return str(tree.children[0])[1:-1]


def bad(machine: Machine, tree: Syntax, scope: Scope) -> Value:
    """Raise an error for a character that is not part of RASP's syntax."""
    raise RaspError("syntax", f"RASP does not use the character {str(tree.children[0])!r}")


def expressions(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate expressions separated by commas: return one value, or a list of several values."""
    values = yield from machine.each(tree.children, scope)
    if len(values) == 1:
        return values[0]
    machine.require_room(len(values))
    return values


def list_of(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate the members of a list literal and return them as a list."""
    inner = tree.children[0]
    machine.budget.reserve(_LIST_BYTES)
    if inner is None:
        return []
    machine.require_room(len(inner.children))
    return (yield from machine.each(inner.children, scope))


def dict_of(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate the entries of a dict literal and return them as a dict."""
    result: dict[Value, Value] = {}
    for pair in tree.children:
        if pair is not None:
            key, value = yield from machine.each(pair.children, scope)
            _enter(machine, result, key, value)
    return result


def list_comprehension(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Build a list by evaluating an expression for each item of a list or dict."""
    member, names, iterable = tree.children
    result = []
    for item in machine.items((yield iterable, scope), "a comprehension"):
        machine.require_room(1)
        result.append((yield member, scope_with(scope, unpacked(names, item))))
    return result


def dict_comprehension(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Build a dict by evaluating a key and a value for each item of a list or dict."""
    pair, names, iterable = tree.children
    result: dict[Value, Value] = {}
    for item in machine.items((yield iterable, scope), "a comprehension"):
        inner = scope_with(scope, unpacked(names, item))
        key, value = yield from machine.each(pair.children, inner)
        _enter(machine, result, key, value)
    return result


def range_of(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate ``range(…)`` as a list of integers."""
    bounds = yield from machine.each(tree.children[1].children, scope)
    if len(bounds) > 3 or any(type(bound) not in (int, bool) for bound in bounds):
        raise RaspError("type", f"range: expected one to three integers, got {_shown(bounds)}")
    numbers = compute(range, *bounds)
    members = max(0, (numbers.stop - numbers.start) // numbers.step + 1)
    machine.require_room(members, MEMBER_BYTES + _INTEGER_BYTES)
    return list(numbers)


def zip_of(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate ``zip(…)``: group the members of lists of equal length by their index."""
    lists = yield from machine.each(tree.children[1].children, scope)
    if not all(isinstance(one, list) for one in lists) or len({len(one) for one in lists}) != 1:
        raise RaspError("type", f"zip: expected lists of one length, got {_shown(lists)}")
    machine.budget.spend(len(lists[0]) / 10)
    machine.require_room(len(lists[0]), MEMBER_BYTES + _LIST_BYTES + MEMBER_BYTES * len(lists))
    return [list(group) for group in zip(*lists, strict=True)]


def length_of(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate ``len(…)`` as the number of members of a list."""
    value = yield tree.children[1], scope
    if not isinstance(value, list):
        raise RaspError("type", f"len: expected a list, got {words_for(value)}; try length, the s-op")
    return len(value)


def _enter(machine: Machine, result: dict[Value, Value], key: Value, value: Value) -> None:
    if not is_atom(key):
        raise RaspError("type", f"expected atoms as keys of a dictionary, got {words_for(key)}")
    machine.require_room(1, _ENTRY_BYTES)
    if isinstance(key, int) and abs(key) >= sys.hash_info.modulus:
        # Python hashes integers by a remainder, so a dict of multiples of the modulus is slow.
        machine.budget.spend(len(result) / 100)
    result[key] = value


def _shown(values: Sequence[Value]) -> str:
    return ", ".join(words_for(value) for value in values[:4]) + (", …" if len(values) > 4 else "")


LITERAL_RULES: dict[str, Rule] = {
    "name": name,
    "integer": integer,
    "float": floating,
    "string": string,
    "bad": bad,
    "expressions": expressions,
    "list": list_of,
    "dict": dict_of,
    "list_comprehension": list_comprehension,
    "dict_comprehension": dict_comprehension,
    "range": range_of,
    "zip": zip_of,
    "length_of": length_of,
}
