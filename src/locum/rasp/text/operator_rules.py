"""Evaluate operators: arithmetic, comparison, logic, ternaries and ``in``.

Operators on atoms, lists and dicts are a subset of Python's, with a different precedence
(``PRECEDENCE``); ``^`` is the power. Operators on s-ops build nodes.
"""

from __future__ import annotations

from lark import Tree

from locum.errors import LocumError
from locum.graph import is_atom
from locum.rasp import python
from locum.rasp.handles import Selector, SOp, apply
from locum.rasp.text.builtins import ON_ATOMS, compute
from locum.rasp.text.machine import (
    Evaluation,
    Machine,
    Rule,
    Scope,
    Syntax,
    Value,
    operand,
    same,
    words_for,
)
from locum.rasp.text.mistakes import RaspError

#: Precedence of binary operators, by token of the grammar; all are left-associative. Note that `%`
#: binds less tightly than `*`, and that `and` and `or` have equal precedence.
PRECEDENCE = {
    "CARET": 6, "TIMES": 5, "DIVIDE": 5, "FLOOR_DIVIDE": 5, "PERCENT": 4, "PLUS": 3, "MINUS": 3,
    "PREDICATE": 2, "AND_OR": 1,
}  # fmt: skip
_OPERATIONS = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "modulo", "//": "floor_divide",
    "^": "power", "==": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater",
    ">=": "greater_equal",
}  # fmt: skip
_EQUALITY = ("==", "!=")
_ORDER = ("<", "<=", ">", ">=")
#: Steps for combining two values.
_COMBINING = 0.5


def operation(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate a chain of binary operators by their precedence; operands are evaluated from left to
    right.
    """
    chain = _Chain(machine, tree)
    chain.values.append((yield tree.children[0], scope))
    for place in range(1, len(tree.children), 2):
        chain.combine_down_to(PRECEDENCE[tree.children[place].type])
        chain.operators.append(place)
        chain.values.append((yield tree.children[place + 1], scope))
        chain.starts.append(place + 1)
    chain.combine_down_to(0)
    (value,) = chain.values
    return value


class _Chain:
    """The values and operators of a chain of binary operators that have not been combined."""

    def __init__(self, machine: Machine, tree: Syntax) -> None:
        self.machine = machine
        self.tree = tree
        self.values: list[Value] = []
        #: The indices in the tree at which the values start, and the indices of the operators.
        self.starts = [0]
        self.operators: list[int] = []

    def combine_down_to(self, precedence: int) -> None:
        """Apply all remaining operators whose precedence is at least ``precedence``."""
        parts = self.tree.children
        while self.operators and PRECEDENCE[parts[self.operators[-1]].type] >= precedence:
            self.machine.budget.spend(_COMBINING)
            right, left = self.values.pop(), self.values.pop()
            end, start = self.starts.pop() + 1, self.starts[-1]
            symbol = parts[self.operators.pop()]
            try:
                combine = _logic if symbol.type == "AND_OR" else _binary
                value = combine(self.machine, str(symbol), left, right)
                if self.operators or end < len(parts):  # the last one is the value of the whole tree
                    self.machine.built(value)
            except LocumError:
                # The error belongs to this part of the chain.
                self.machine.trees[-1] = Tree("operation", parts[start:end])
                raise
            self.values.append(value)


def _binary(machine: Machine, symbol: str, left: Value, right: Value) -> Value:
    if isinstance(left, Selector) or isinstance(right, Selector):
        raise RaspError("type", f"Cannot apply {symbol} to selector(s); combine them with and, or, not")
    if isinstance(left, SOp) or isinstance(right, SOp):
        return _on_sops(symbol, left, right)
    if is_atom(left) and is_atom(right):
        operation = _OPERATIONS[symbol]
        machine.budget.charge(operation, (left, right))
        return compute(ON_ATOMS[operation], left, right, op=operation)
    if symbol in _EQUALITY:
        return same(left, right, machine.budget) is (symbol == "==")
    return _on_lists(machine, symbol, left, right)


def _on_sops(symbol: str, left: Value, right: Value) -> SOp:
    others = [value for value in (left, right) if not isinstance(value, SOp) and not is_atom(value)]
    if others and symbol in _EQUALITY:
        # No value equals a list or a function. The comparison still depends on the s-op.
        sop = left if isinstance(left, SOp) else right
        never = apply("and", sop, False)
        return never if symbol == "==" else apply("not", never)
    if others:
        # Python repeats a list, but the result cannot be an element of a sequence.
        category = "type" if symbol == "*" and isinstance(others[0], list) else "runtime:TypeError"
        raise RaspError(category, f"cannot compute {words_for(left)} {symbol} {words_for(right)}")
    return apply(_OPERATIONS[symbol], left, right)


def _on_lists(machine: Machine, symbol: str, left: Value, right: Value) -> Value:
    if symbol == "+" and isinstance(left, list) and isinstance(right, list):
        machine.require_room(len(left) + len(right))
        return left + right
    if symbol == "*" and isinstance(left, int):
        left, right = right, left
    if symbol == "*" and isinstance(left, list) and isinstance(right, int):
        machine.require_room(len(left) * max(0, right))
        return left * right
    if symbol in _ORDER and _atoms_only(left) and _atoms_only(right):
        machine.budget.spend(min(len(left), len(right)) / 100)
        return compute(ON_ATOMS[_OPERATIONS[symbol]], left, right, op=_OPERATIONS[symbol])
    problem = f"cannot compute {words_for(left)} {symbol} {words_for(right)}"
    raise RaspError("runtime:TypeError", problem)


def _logic(machine: Machine, word: str, left: Value, right: Value) -> Value:
    selectors = isinstance(left, Selector) + isinstance(right, Selector)
    if selectors == 2:
        return left & right if word == "and" else left | right
    if selectors == 1:
        raise RaspError("type", "Cannot apply and/or between selector and non-selector")
    if isinstance(left, SOp) or isinstance(right, SOp):
        return apply(word, operand(left, word), operand(right, word))
    return (left and right) if word == "and" else (left or right)


def unary(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate a unary operator: ``not``, ``-`` or ``+``."""
    symbol, value = str(tree.children[0]), (yield tree.children[1], scope)
    if symbol == "not":
        return ~value if isinstance(value, (SOp, Selector)) else not value
    if isinstance(value, SOp):
        if symbol == "-":
            return -value
        same_value = 0 + value
        machine.names.give(same_value, f"( + {machine.names.of(value.node)} )")
        return same_value
    if not is_atom(value) or isinstance(value, str):
        raise RaspError("runtime:TypeError", f"there is no {symbol} of {words_for(value)}")
    machine.budget.charge("negate", (value,))
    return -value if symbol == "-" else +value


def rounded(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate ``round``: round to the nearest integer, with ties to even."""
    value = yield tree.children[0], scope
    if isinstance(value, SOp):
        return round(value)
    if not is_atom(value) or isinstance(value, str):
        raise RaspError("runtime:TypeError", f"round: expected a number, got {words_for(value)}")
    return compute(round, value, op="round")


def indicator(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate ``indicator``: return an s-op that is 1 where the given s-op is true, else 0."""
    value = yield tree.children[0], scope
    if not isinstance(value, SOp):
        raise RaspError("type", f"indicator: expected an s-op, got {words_for(value)}")
    return python.indicator(value)


def conditional(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate ``then if condition else otherwise``.

    If the condition is an s-op, both values are evaluated. Otherwise only one of them is evaluated. A
    selector as the condition raises an error.
    """
    then, condition, otherwise = tree.children
    holds = yield condition, scope
    if isinstance(holds, Selector):
        raise RaspError(
            "type", "expected an s-op or an atom as the condition of a ternary, got a selector"
        )
    if not isinstance(holds, SOp):
        return (yield (then if holds else otherwise), scope)
    a, b = yield from machine.each((then, otherwise), scope)
    return python.where(holds, operand(a, "if"), operand(b, "else"))


def contains(machine: Machine, tree: Syntax, scope: Scope) -> Evaluation:
    """Evaluate ``value in collection``: test whether a list or an s-op contains a value.

    If ``value`` is an s-op, each of its values is tested. If ``collection`` is an s-op, ``value`` is an
    atom.
    """
    value, collection = yield from machine.each(tree.children, scope)
    if isinstance(value, Selector):
        raise RaspError("type", "in: expected an atom or an s-op to look for, got a selector")
    if isinstance(collection, list):
        machine.budget.spend(len(collection) / 20 if is_atom(value) else len(collection))
        if is_atom(value):
            return any(is_atom(member) and value == member for member in collection)
        if not isinstance(value, SOp):
            problem = f"expected an atom or an s-op to look for in a list, got {words_for(value)}"
            raise RaspError("type", problem)
        if not _atoms_only(collection):
            raise RaspError(
                "type", "expected a list of atoms to look for an s-op in, got other members"
            )
        machine.budget.reserve(100 * len(collection))
        contained = python.member(value, collection)
        where = tree.children[1]
        called = str(where.children[0]) if where.data == "name" else machine.names.members(collection)
        machine.names.give(contained, f"{machine.names.of(value.node)} in {called}")
        return contained
    if isinstance(collection, SOp) and is_atom(value):
        return python.aggregate(python.full, python.indicator(collection == value)) > 0
    raise RaspError(
        "type", f"in: expected a list (or, for an atom, an s-op), got {words_for(collection)}"
    )


def _atoms_only(value: Value) -> bool:
    return isinstance(value, list) and all(is_atom(member) for member in value)


OPERATOR_RULES: dict[str, Rule] = {
    "operation": operation,
    "unary": unary,
    "round": rounded,
    "indicator": indicator,
    "conditional": conditional,
    "contains": contains,
}
