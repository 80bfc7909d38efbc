"""Rules for brackets after a value: an index, a call, a program applied to an input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from locum.budget import Budget
from locum.errors import LimitError
from locum.graph import is_atom
from locum.graph.atoms import short
from locum.language import python
from locum.language.handles import Selector, SOp
from locum.language.rasp.binding import require_arity, scope_with
from locum.language.rasp.machine import Evaluation, Machine, Rule, Syntax
from locum.language.rasp.mistakes import RaspError
from locum.language.rasp.scope import Scope
from locum.language.rasp.values import Applied, Builtin, Function, Value, words_for

#: What a call costs, in steps, and an entry of a lookup table, in steps and bytes.
_CALL, _ENTRY_STEPS, _ENTRY_BYTES = 5, 1, 250


def index(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Take a member of a list, dict, string or s-op."""
    base, place = yield from machine.each(tree.children, scope)
    value = _indexed(base, place, machine.budget)
    if isinstance(base, SOp):
        machine.names.give(value, f"{machine.names.of(base.node)}[{short(place)}]")
    elif isinstance(place, SOp):
        called = (str(part.children[0]) if part.data == "name" else "out" for part in tree.children)
        machine.names.give(value, "{}[{}]".format(*called))
    return value


def _indexed(base: Value, index: Value, budget: Budget) -> Value:
    """Return ``base[index]``; by an s-op, an s-op that looks each of its values up."""
    if isinstance(base, (list, str)):
        return _index_list(base, index, budget)
    if isinstance(base, dict):
        return _index_dict(base, index, budget)
    if isinstance(base, SOp):
        return _index_sop(base, index)
    raise RaspError("type", f"expected a list, dict, string or s-op to index, got {words_for(base)}")


def _index_list(base: list[Value] | str, index: Value, budget: Budget) -> Value:
    what = "string" if isinstance(base, str) else "list"
    if not base:
        raise RaspError("index", f"an empty {what} has nothing to index")
    if isinstance(index, SOp):
        _charge(2 * len(base), budget)
        return _lookup(index, {i: base[i] for i in range(-len(base), len(base))})
    if not isinstance(index, int):
        raise RaspError("type", f"index into list has to be s-op or integer, got: {words_for(index)}")
    if not -len(base) <= index < len(base):
        problem = f"index {words_for(index)} is outside a {what} of {len(base)}"
        raise RaspError("index", problem)
    return base[index]


def _index_dict(base: dict[Value, Value], index: Value, budget: Budget) -> Value:
    if isinstance(index, SOp):
        _charge(len(base), budget)
        return _lookup(index, base)
    if not is_atom(index):
        raise RaspError("type", f"index into dict has to be s-op or atom, got: {words_for(index)}")
    if index not in base:
        raise RaspError("index", f"index [ {words_for(index)} ] not in dict.")
    return base[index]


def _charge(entries: int, budget: Budget) -> None:
    budget.spend(_ENTRY_STEPS * entries)
    budget.reserve(_ENTRY_BYTES * entries)


def _lookup(index: SOp, table: dict[Value, Value]) -> SOp:
    """Look values up; a member that cannot stand in a sequence matters only where it is met."""
    atoms = {key: value for key, value in table.items() if is_atom(value)}
    if not table:
        raise RaspError("index", "an empty dict has nothing to index")
    if not atoms:
        member = words_for(next(iter(table.values())))
        raise RaspError(
            "type", f"expected a list or dict of atoms to index by an s-op, got one of {member}"
        )
    return python.lookup(index, atoms)


def _index_sop(base: SOp, index: Any) -> SOp:
    """Attend to one position, from everywhere."""
    if not isinstance(index, int):
        raise RaspError(
            "index", f"expected an integer as the index into an s-op, got {words_for(index)}"
        )
    return base[int(index)]


def apply(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Call a function, or run a program on an input."""
    machine.applying += 1
    called = yield tree.children[0], scope
    machine.applying -= 1
    inner = tree.children[1]
    arguments = (yield from machine.each(inner.children, scope)) if inner is not None else []
    if isinstance(called, (Function, Builtin)):
        if isinstance(called, Function):
            value = yield from _call(machine, called, arguments)
        else:
            machine.budget.spend(1)
            require_arity(called.name, len(called.parameters), arguments)
            value = called.call(*arguments)
        machine.names.give(value, machine.names.call(called.name, arguments))
        return value
    if isinstance(called, (SOp, Selector)):
        require_arity("a program applied to an input", 1, arguments)
        (tokens,) = arguments
        if not isinstance(tokens, (str, list, dict)) or not tokens:
            problem = (
                f"expected a non-empty string or list to run a program on, got {words_for(tokens)}"
            )
            raise RaspError("type", problem)
        tokens = tokens if isinstance(tokens, str) else list(tokens)
        return Applied(called, tokens, machine.host.run_program(called, tokens))
    raise RaspError("not-callable", f"expected a function to call, got {words_for(called)}")


def _call(machine: Machine, function: Function, arguments: Sequence[Value]) -> Evaluation:
    machine.budget.spend(_CALL)
    require_arity(function.name, len(function.parameters), arguments)
    machine.calls.append((len(machine.trees), function))
    if len(machine.calls) > machine.limits.calls:
        problem = f"{function.name} is called more than {machine.limits.calls} calls deep"
        raise LimitError(problem, "too deep")
    inner = scope_with(function.scope, dict(zip(function.parameters, arguments, strict=True)))
    for statement in function.body:
        yield statement, inner
    result = yield function.returns, inner
    machine.calls.pop()
    return result


APPLICATION_RULES: dict[str, Rule] = {"index": index, "apply": apply}
