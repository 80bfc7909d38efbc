"""Rules for attention: ``select``, ``aggregate``, and families of heads."""

from __future__ import annotations

from locum.graph import is_atom
from locum.language import python
from locum.language.handles import Selector
from locum.language.rasp.machine import Evaluation, Machine, Rule, Syntax
from locum.language.rasp.mistakes import RaspError
from locum.language.rasp.scope import Scope
from locum.language.rasp.values import operand, words_for

#: Steps that it takes to make a family and to bind it.
_FAMILY = 15


def select(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Compare keys with queries."""
    keys, queries = yield from machine.each(tree.children[1:3], scope)
    predicate = str(tree.children[3])
    return python.select(operand(keys, "select"), operand(queries, "select"), predicate)


def aggregate(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Average values over the selected keys."""
    _, *operands, last = tree.children
    selector, values = yield from machine.each(operands, scope)
    default = 0 if last is None else (yield last, scope)
    if not isinstance(selector, Selector):
        raise RaspError("type", f"aggregate: expected a selector first, got {words_for(selector)}")
    if not is_atom(default):
        raise RaspError("type", f"aggregate: expected an atom as its default, got {words_for(default)}")
    return python.aggregate(selector, operand(values, "aggregate"), default)


def sum_over(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Sum over families of heads: ``sum l in range(r), m in range(c) { …; body }``, an extension."""
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
