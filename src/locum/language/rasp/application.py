"""Rules for brackets after a value: an index, a call, a program applied to an input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from locum.errors import LimitError
from locum.graph.atoms import short
from locum.language.handles import Selector, SOp
from locum.language.rasp.binding import require_arity, scope_with
from locum.language.rasp.indexing import indexed
from locum.language.rasp.machine import Evaluation, Machine, Rule, Syntax
from locum.language.rasp.mistakes import RaspError
from locum.language.rasp.scope import Scope
from locum.language.rasp.values import Applied, Builtin, Function, Value, words_for

#: What a call costs, in steps.
_CALL = 5


def index(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Take a member of a list, dict, string or s-op."""
    base, place = yield from machine.each(tree.children, scope)
    value = indexed(base, place, machine.budget)
    if isinstance(base, SOp):
        machine.names.give(value, f"{machine.names.of(base.node)}[{short(place)}]")
    elif isinstance(place, SOp):
        called = (str(part.children[0]) if part.data == "name" else "out" for part in tree.children)
        machine.names.give(value, "{}[{}]".format(*called))
    return value


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
            problem = f"a program runs on a non-empty string or list, not on {words_for(tokens)}"
            raise RaspError("type", problem)
        tokens = tokens if isinstance(tokens, str) else list(tokens)
        return Applied(called, tokens, machine.host.run_program(called, tokens))
    raise RaspError("not-callable", f"{words_for(called)} is not a function")


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


RULES: Mapping[str, Rule] = MappingProxyType({"index": index, "apply": apply})
