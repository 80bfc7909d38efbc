"""Evaluate RASP text: ``RULES`` maps rules of ``rasp.lark`` to the functions that evaluate them.

The commands of the REPL are evaluated by ``session_examples.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from locum.budget import Budget
from locum.errors import LimitError
from locum.graph import is_atom
from locum.graph.atoms import short
from locum.rasp import python
from locum.rasp.handles import Selector, SOp
from locum.rasp.text.literal_rules import LITERAL_RULES, bind, require_arity, scope_with, unpacked
from locum.rasp.text.machine import (
    Applied,
    Builtin,
    Evaluation,
    Function,
    Machine,
    Rule,
    Scope,
    Syntax,
    Value,
    operand,
    words_for,
)
from locum.rasp.text.mistakes import RaspError
from locum.rasp.text.operator_rules import OPERATOR_RULES

#: Steps for creating a family and assigning it to a name.
_FAMILY = 15


def select(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate ``select(keys, queries, predicate)`` as a selector."""
    keys, queries = yield from machine.each(tree.children[1:3], scope)
    predicate = str(tree.children[3])
    return python.select(operand(keys, "select"), operand(queries, "select"), predicate)


def aggregate(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate ``aggregate(selector, values, default)`` as an s-op; without a default, 0 is used."""
    _, *operands, last = tree.children
    selector, values = yield from machine.each(operands, scope)
    default = 0 if last is None else (yield last, scope)
    if not isinstance(selector, Selector):
        raise RaspError("type", f"aggregate: expected a selector first, got {words_for(selector)}")
    if not is_atom(default):
        raise RaspError("type", f"aggregate: expected an atom as its default, got {words_for(default)}")
    return python.aggregate(selector, operand(values, "aggregate"), default)


def sum_over(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate a sum over families of heads (an extension of RASP).

    The syntax is ``sum l in range(r), m in range(c) { …; body }``.
    """
    machine.budget.spend(1)
    _, *parts, last = tree.children
    inner, families = Scope(scope), []
    statements = [part for part in parts if part.data != "family"]
    for part in parts:
        if part.data == "family":
            size = yield part.children[2], scope
            if type(size) is not int:
                problem = f"expected an integer as the size of a family, got {words_for(size)}"
                raise RaspError("type", problem)
            machine.budget.spend(_FAMILY)
            families.append(python.family(size))
            inner.set(str(part.children[0]), families[-1])
    if last is None and statements and statements[-1].data == "show":
        last = statements.pop().children[0]
    if last is None:
        raise RaspError("syntax", "the body of a sum ends with an expression: `{ x = l + 1; x * x }`")
    for statement in statements:
        yield statement, inner
    body = yield last, inner
    return python.sum_over(*families, operand(body, "sum"))


ATTENTION_RULES: dict[str, Rule] = {"select": select, "aggregate": aggregate, "sum_over": sum_over}


#: Steps of a call, and steps and bytes of an entry of a lookup table.
_CALL, _ENTRY_STEPS, _ENTRY_BYTES = 5, 1, 250


def index(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate ``base[place]``, where ``base`` is a list, dict, string or s-op."""
    base, place = yield from machine.each(tree.children, scope)
    value = _indexed(base, place, machine.budget)
    if isinstance(base, SOp):
        machine.names.give(value, f"{machine.names.of(base.node)}[{short(place)}]")
    elif isinstance(place, SOp):
        called = (str(part.children[0]) if part.data == "name" else "out" for part in tree.children)
        machine.names.give(value, "{}[{}]".format(*called))
    return value


def _indexed(base: Value, index: Value, budget: Budget) -> Value:
    """Return ``base[index]``; if ``index`` is an s-op, look up each of its values."""
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
        raise RaspError("index", f"expected a {what} with members to index, got an empty one")
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
    """Return an s-op that looks up each value of ``index`` in a table.

    Entries of the table that are not atoms are omitted, so looking them up is an error.
    """
    atoms = {key: value for key, value in table.items() if is_atom(value)}
    if not table:
        raise RaspError("index", "expected a dict with entries to index, got an empty one")
    if not atoms:
        member = words_for(next(iter(table.values())))
        raise RaspError(
            "type", f"expected a list or dict of atoms to index by an s-op, got one of {member}"
        )
    return python.lookup(index, atoms)


def _index_sop(base: SOp, index: Any) -> SOp:
    """Return an s-op whose value at every position is the value of ``base`` at position ``index``."""
    if not isinstance(index, int):
        raise RaspError(
            "index", f"expected an integer as the index into an s-op, got {words_for(index)}"
        )
    return base[int(index)]


def apply(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate a call: call a function on arguments, or run a program on an input."""
    called = yield tree.children[0], scope
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


def show(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate an expression statement and return its value."""
    machine.budget.spend(1)
    value = yield tree.children[0], scope
    scope.remember(value)
    return value


def assign(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate an assignment such as ``a, b = 1, 2``."""
    machine.budget.spend(1)
    names, values = tree.children
    value = yield values, scope
    assigned = bind([str(name) for name in names.children], value)
    for name, part in assigned:
        scope.set(name, part)
        machine.names.give(part, name)
    scope.remember(value if len(values.children) == 1 else value[-1])
    return None


def define(machine: Machine, tree: Syntax, scope: Scope) -> None:
    """Define the function of a ``def`` statement."""
    machine.budget.spend(1)
    name, parameters, *body, returns = tree.children
    names = tuple(str(p) for p in parameters.children) if parameters is not None else ()
    scope.set(
        str(name),
        Function(str(name), names, tuple(body), returns, scope, machine.source, machine.origin),
    )


def loop(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Run the body of a ``for`` loop for each item of a list or dict.

    The loop variables are assigned in the enclosing scope.
    """
    machine.budget.spend(1)
    names, iterable, *body = tree.children
    collection = yield iterable, scope
    for item in machine.items(collection, "a for loop"):
        for name, value in unpacked(names, item).items():
            scope.set(name, value)
        for statement in body:
            yield statement, scope
    return None


def draw(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate a ``draw`` statement with the drawing function of the session."""
    program = yield tree.children[0], scope
    tokens = (yield tree.children[1], scope) if len(tree.children) > 1 else None
    if not isinstance(program, SOp):
        raise RaspError("type", f"draw: expected an s-op, got {words_for(program)}")
    machine.host.draw_program(program, tokens)
    return None


def load(machine: Machine, tree: Syntax, scope: Scope) -> None:
    """Load the file that a ``load`` statement names."""
    machine.host.load_file(str(tree.children[0])[1:-1], scope)


STATEMENT_RULES: dict[str, Rule] = {
    "show": show,
    "assign": assign,
    "define": define,
    "loop": loop,
    "draw": draw,
    "load": load,
}


RULES: Mapping[str, Rule] = MappingProxyType(
    STATEMENT_RULES | LITERAL_RULES | OPERATOR_RULES | ATTENTION_RULES | APPLICATION_RULES
)
