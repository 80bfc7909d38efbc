"""Expressions → values: the part of the interpreter that computes.

Each method is the meaning of one rule of ``rasp.lark``. Where the rule has parts it is a generator:
``yield tree, scope`` asks for the value of a part and is sent it (``interpreter.py`` says why). Atoms
are computed as Python computes them, lists and dicts are Python's, and whatever contains an s-op
becomes a node.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias

from locum.graph import is_atom
from locum.language import python
from locum.language.handles import Selector, SOp, apply
from locum.language.rasp.binding import require_arity, scope_with, unpacked
from locum.language.rasp.builtins import ON_ATOMS, compute
from locum.language.rasp.indexing import indexed
from locum.language.rasp.limits import Limits
from locum.language.rasp.mistakes import LimitError, RaspError
from locum.language.rasp.scope import Scope
from locum.language.rasp.values import Applied, Builtin, Function, Value, operand, same, words_for

#: A tree of the grammar, or a token where it has one: lark's types do not tell which.
Syntax: TypeAlias = Any
#: Evaluating a tree: asks for (tree, scope), is sent the value, returns its own.
Evaluation: TypeAlias = Generator[tuple[Syntax, Scope], Value, Value]

#: What a call costs, in steps.
_CALL = 5
_OPERATORS = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "modulo", "//": "floor_divide",
    "^": "power", "==": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater",
    ">=": "greater_equal",
}  # fmt: skip


class Expressions:
    """The meaning of every expression; an :class:`Interpreter` adds statements and the driver."""

    def __init__(self, limits: Limits, run: Callable[[SOp | Selector, Any], Any]) -> None:
        self.limits = limits
        #: Applies a program to an input.
        self.run_program = run
        #: The text being run: functions remember theirs, so that errors point into the right one.
        self.text = ""
        #: Work done and list members built, for one statement of the program.
        self.steps = self.items = 0
        #: The trees being evaluated, outermost first, and the calls among them: (depth, function).
        self.trees: list[Syntax] = []
        self.calls: list[tuple[int, Function]] = []
        #: How many programs are being built only to be applied to an input.
        self.applying = 0

    def step(self, work: int = 1) -> None:
        """Count units of work."""
        self.steps += work
        if self.steps > self.limits.steps:
            problem = f"this takes more than {self.limits.steps:,} steps (the limit is adjustable)"
            raise LimitError("runtime:Exception", problem)

    # Plain values -------------------------------------------------------------------------------

    def _name(self, tree: Syntax, scope: Scope) -> Value:
        return scope.get(str(tree.children[0]))

    def _integer(self, tree: Syntax, scope: Scope) -> Value:
        return compute(int, str(tree.children[0]))

    def _float(self, tree: Syntax, scope: Scope) -> Value:
        return float(str(tree.children[0]))

    def _string(self, tree: Syntax, scope: Scope) -> Value:
        return str(tree.children[0])[1:-1]

    def _bad(self, tree: Syntax, scope: Scope) -> Value:
        raise RaspError("syntax", f"RASP has no character {str(tree.children[0])!r}")

    def _expressions(self, tree: Syntax, scope: Scope) -> Evaluation:
        """One value, or the list of several."""
        values = yield from self._each(tree.children, scope)
        return values[0] if len(values) == 1 else values

    def _list(self, tree: Syntax, scope: Scope) -> Evaluation:
        inner = tree.children[0]
        return (yield from self._each(inner.children, scope)) if inner is not None else []

    def _dict(self, tree: Syntax, scope: Scope) -> Evaluation:
        result = {}
        for pair in tree.children:
            if pair is not None:
                key, value = yield from self._each(pair.children, scope)
                result[_key(key)] = value
        return result

    def _list_comprehension(self, tree: Syntax, scope: Scope) -> Evaluation:
        member, names, iterable = tree.children
        result = []
        for item in self._items((yield iterable, scope), "a comprehension"):
            result.append((yield member, scope_with(scope, unpacked(names, item))))
        return result

    def _dict_comprehension(self, tree: Syntax, scope: Scope) -> Evaluation:
        pair, names, iterable = tree.children
        result = {}
        for item in self._items((yield iterable, scope), "a comprehension"):
            inner = scope_with(scope, unpacked(names, item))
            key, value = yield from self._each(pair.children, inner)
            result[_key(key)] = value
        return result

    def _range(self, tree: Syntax, scope: Scope) -> Evaluation:
        bounds = yield from self._each(tree.children[1].children, scope)
        if len(bounds) > 3 or any(type(bound) not in (int, bool) for bound in bounds):
            raise RaspError("type", f"range needs one to three whole numbers, but got {_shown(bounds)}")
        numbers = compute(range, *bounds)
        self.require_room(max(0, (numbers.stop - numbers.start) // numbers.step + 1))
        return list(numbers)

    def _zip(self, tree: Syntax, scope: Scope) -> Evaluation:
        lists = yield from self._each(tree.children[1].children, scope)
        if not all(isinstance(one, list) for one in lists) or len({len(one) for one in lists}) != 1:
            raise RaspError("type", f"zip needs lists of one length, but got {_shown(lists)}")
        return [list(group) for group in zip(*lists, strict=True)]

    def _length_of(self, tree: Syntax, scope: Scope) -> Evaluation:
        value = yield tree.children[1], scope
        if not isinstance(value, list):
            raise RaspError("type", f"len needs a list, but got {words_for(value)}; length is the s-op")
        return len(value)

    # Operators ----------------------------------------------------------------------------------

    def _binary(self, tree: Syntax, scope: Scope) -> Evaluation:
        left, right = yield from self._each((tree.children[0], tree.children[2]), scope)
        return self._operate(str(tree.children[1]), left, right)

    def _operate(self, symbol: str, left: Value, right: Value) -> Value:
        if isinstance(left, Selector) or isinstance(right, Selector):
            raise RaspError(
                "type", f"Cannot apply {symbol} to selector(s); combine them with and, or, not"
            )
        if isinstance(left, SOp) or isinstance(right, SOp):
            return apply(_OPERATORS[symbol], operand(left, symbol), operand(right, symbol))
        if is_atom(left) and is_atom(right):
            return compute(ON_ATOMS[_OPERATORS[symbol]], left, right)
        if symbol in ("==", "!="):
            return same(left, right, self.step) is (symbol == "==")
        return self._on_lists(symbol, left, right)

    def _on_lists(self, symbol: str, left: Value, right: Value) -> Value:
        if symbol == "+" and isinstance(left, list) and isinstance(right, list):
            self.require_room(len(left) + len(right))
            return left + right
        if symbol == "*" and isinstance(left, int):
            left, right = right, left
        if symbol == "*" and isinstance(left, list) and isinstance(right, int):
            self.require_room(len(left) * max(0, right))
            return left * right
        if symbol in ("<", "<=", ">", ">=") and _atoms_only(left) and _atoms_only(right):
            return compute(ON_ATOMS[_OPERATORS[symbol]], left, right)
        raise RaspError(
            "runtime:TypeError", f"cannot compute {words_for(left)} {symbol} {words_for(right)}"
        )

    def _logic(self, tree: Syntax, scope: Scope) -> Evaluation:
        left, right = yield from self._each((tree.children[0], tree.children[2]), scope)
        word = str(tree.children[1])
        selectors = isinstance(left, Selector) + isinstance(right, Selector)
        if selectors == 2:
            return left & right if word == "and" else left | right
        if selectors == 1:
            raise RaspError("type", "Cannot apply and/or between selector and non-selector")
        if isinstance(left, SOp) or isinstance(right, SOp):
            return apply(word, operand(left, word), operand(right, word))
        return (left and right) if word == "and" else (left or right)

    def _unary(self, tree: Syntax, scope: Scope) -> Evaluation:
        symbol, value = str(tree.children[0]), (yield tree.children[1], scope)
        if symbol == "not":
            return ~value if isinstance(value, (SOp, Selector)) else not value
        if isinstance(value, SOp):
            return -value if symbol == "-" else 0 + value
        if not is_atom(value) or isinstance(value, str):
            problem = f"there is no {symbol} of {words_for(value)}"
            raise RaspError("runtime:TypeError", problem)
        return -value if symbol == "-" else +value

    def _round(self, tree: Syntax, scope: Scope) -> Evaluation:
        value = yield tree.children[0], scope
        if isinstance(value, SOp):
            return round(value)
        if not is_atom(value) or isinstance(value, str):
            raise RaspError("runtime:TypeError", f"round needs a number, but got {words_for(value)}")
        return compute(round, value)

    def _indicator(self, tree: Syntax, scope: Scope) -> Evaluation:
        value = yield tree.children[0], scope
        if not isinstance(value, SOp):
            raise RaspError("type", f"indicator needs an s-op, but got {words_for(value)}")
        return python.indicator(value)

    def _conditional(self, tree: Syntax, scope: Scope) -> Evaluation:
        then, condition, otherwise = tree.children
        holds = yield condition, scope
        if isinstance(holds, Selector):
            raise RaspError(
                "type", "the condition of a ternary must be an s-op or an atom, not a selector"
            )
        if not isinstance(holds, SOp):
            return (yield (then if holds else otherwise), scope)
        a, b = yield from self._each((then, otherwise), scope)
        return python.where(holds, operand(a, "if"), operand(b, "else"))

    def _contains(self, tree: Syntax, scope: Scope) -> Evaluation:
        value, collection = yield from self._each(tree.children, scope)
        if isinstance(value, Selector):
            raise RaspError("type", "selectors cannot be looked for: use in with an atom or an s-op")
        if isinstance(collection, list):
            if is_atom(value):
                return any(is_atom(member) and value == member for member in collection)
            if not isinstance(value, SOp):
                problem = f"only atoms and s-ops are looked for in lists, not {words_for(value)}"
                raise RaspError("type", problem)
            self.step(len(collection))
            if _atoms_only(collection):
                return python.member(value, collection)
            raise RaspError("type", "[s-op] in X expects X to be a list of atoms")
        if isinstance(collection, SOp) and is_atom(value):
            return python.aggregate(python.full, python.indicator(collection == value)) > 0
        raise RaspError(
            "type", f"in needs a list (or, for an atom, an s-op), but got {words_for(collection)}"
        )

    # Attention ----------------------------------------------------------------------------------

    def _select(self, tree: Syntax, scope: Scope) -> Evaluation:
        keys, queries = yield from self._each(tree.children[1:3], scope)
        predicate = str(tree.children[3])
        return python.select(operand(keys, "select"), operand(queries, "select"), predicate)

    def _aggregate(self, tree: Syntax, scope: Scope) -> Evaluation:
        _, *operands, last = tree.children
        selector, values = yield from self._each(operands, scope)
        default = 0 if last is None else (yield last, scope)
        if not isinstance(selector, Selector):
            raise RaspError(
                "type", f"aggregate expects a selector first, but got {words_for(selector)}"
            )
        if not is_atom(default):
            raise RaspError(
                "type", f"the default of aggregate must be an atom, not {words_for(default)}"
            )
        return python.aggregate(selector, operand(values, "aggregate"), default)

    def _sum_over(self, tree: Syntax, scope: Scope) -> Evaluation:
        """``sum l in range(r), m in range(c) { …; body }``, our extension for families."""
        self.step()
        _, *parts, last = tree.children
        inner, families = Scope(scope), []
        statements = [part for part in parts if part.data != "family"]
        for part in parts:
            if part.data == "family":
                size = yield part.children[2], scope
                if type(size) is not int:
                    raise RaspError(
                        "type", f"a family needs a whole number of heads, not {words_for(size)}"
                    )
                families.append(python.family(size))
                inner.set(str(part.children[0]), families[-1])
        if last is None and statements and statements[-1].data == "show":
            last = statements.pop().children[0]
        if last is None:
            raise RaspError(
                "syntax", "the body of a sum ends with an expression: `{ x = l + 1; x * x }`"
            )
        for statement in statements:
            yield statement, inner
        body = yield last, inner
        return python.sum_over(*families, operand(body, "sum"))

    # Indexing and application -------------------------------------------------------------------

    def _index(self, tree: Syntax, scope: Scope) -> Evaluation:
        base, index = yield from self._each(tree.children, scope)
        return indexed(base, index)

    def _apply(self, tree: Syntax, scope: Scope) -> Evaluation:
        self.applying += 1
        called = yield tree.children[0], scope
        self.applying -= 1
        inner = tree.children[1]
        arguments = (yield from self._each(inner.children, scope)) if inner is not None else []
        if isinstance(called, Function):
            return (yield from self._call(called, arguments))
        if isinstance(called, Builtin):
            self.step()
            require_arity(called.name, len(called.parameters), arguments)
            return called.call(*arguments)
        if isinstance(called, (SOp, Selector)):
            require_arity("a program applied to an input", 1, arguments)
            given = arguments[0]
            if not isinstance(given, (str, list, dict)) or not given:
                problem = f"a program runs on a non-empty string or list, not on {words_for(given)}"
                raise RaspError("type", problem)
            given = given if isinstance(given, str) else list(given)
            return Applied(called, given, self.run_program(called, given))
        raise RaspError("not-callable", f"{words_for(called)} is not a function")

    def _call(self, function: Function, arguments: Sequence[Value]) -> Evaluation:
        self.step(_CALL)
        require_arity(function.name, len(function.parameters), arguments)
        self.calls.append((len(self.trees), function))
        if len(self.calls) > self.limits.calls:
            problem = f"{function.name} is called more than {self.limits.calls} calls deep"
            raise LimitError("recursion", problem)
        inner = scope_with(function.scope, dict(zip(function.parameters, arguments, strict=True)))
        for statement in function.body:
            yield statement, inner
        result = yield function.returns, inner
        self.calls.pop()
        return result

    # Helpers ------------------------------------------------------------------------------------

    def _each(self, trees: Sequence[Any], scope: Scope) -> Generator[Any, Value, list[Value]]:
        values = []
        for tree in trees:
            values.append((yield tree, scope))
        return values

    def _items(self, collection: Value, what: str) -> Generator[Value, None, None]:
        if not isinstance(collection, (list, dict)):
            problem = f"{what} needs to iterate over a list or dict, but got {words_for(collection)}"
            raise RaspError("type", problem)
        for item in list(collection):
            self.step()
            yield item

    def require_room(self, items: int) -> None:
        """Count members of lists before they are made."""
        self.items += items
        if self.items > self.limits.items:
            limit = f"{self.limits.items:,}"
            problem = f"lists of {self.items:,} members in all are too long; the limit is {limit}"
            raise LimitError("runtime:Exception", problem)


def _key(value: Value) -> Value:
    if is_atom(value):
        return value
    raise RaspError("type", f"dictionary keys can only be atoms, not {words_for(value)}")


def _atoms_only(value: Value) -> bool:
    return isinstance(value, list) and all(is_atom(member) for member in value)


def _shown(values: Sequence[Value]) -> str:
    return ", ".join(words_for(value) for value in values)
