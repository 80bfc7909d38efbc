"""Rules for statements that a program may contain anywhere: assignments, functions, loops."""

from __future__ import annotations

from locum.language.handles import SOp
from locum.language.rasp.binding import bind, unpacked
from locum.language.rasp.machine import Evaluation, Machine, Rule, Syntax
from locum.language.rasp.mistakes import RaspError
from locum.language.rasp.scope import Scope
from locum.language.rasp.values import Function, words_for


def show(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate an expression that stands alone; whoever runs the statement shows it."""
    machine.budget.spend(1)
    value = yield tree.children[0], scope
    scope.remember(value)
    return value


def assign(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Give names values."""
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
    """Make a function."""
    machine.budget.spend(1)
    name, parameters, *body, returns = tree.children
    names = tuple(str(p) for p in parameters.children) if parameters is not None else ()
    scope.set(
        str(name),
        Function(str(name), names, tuple(body), returns, scope, machine.source, machine.origin),
    )


def loop(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Run statements for each item of a list; names are set in the scope around the loop."""
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
    """Have a program drawn."""
    program = yield tree.children[0], scope
    tokens = (yield tree.children[1], scope) if len(tree.children) > 1 else None
    if not isinstance(program, SOp):
        raise RaspError("type", f"draw: expected an s-op, got {words_for(program)}")
    machine.host.draw_program(program, tokens)
    return None


def load(machine: Machine, tree: Syntax, scope: Scope) -> None:
    """Have a file run."""
    machine.host.load_file(str(tree.children[0])[1:-1], scope)


STATEMENT_RULES: dict[str, Rule] = {
    "show": show,
    "assign": assign,
    "define": define,
    "loop": loop,
    "draw": draw,
    "load": load,
}
