"""Trees → values: builds the graph that a RASP program describes.

Nothing is run on an example here. Loops unroll, functions are called, atoms are computed as Python
computes them, and whatever contains an s-op becomes a node.

Evaluating a tree is a generator that asks for what it needs (``yield tree, scope``), as in the dense
executor: a sum of 100,000 terms or a deep recursion costs memory, not Python's stack.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias

from lark import Token

from understudy.errors import UnderstudyError
from understudy.graph import is_atom
from understudy.language import python
from understudy.language.builtins import ON_ATOMS, compute
from understudy.language.limits import Limits
from understudy.language.mistakes import RaspError, from_execution
from understudy.language.python import Selector, SOp
from understudy.language.scope import Scope
from understudy.language.values import Applied, Builtin, Function, Value, words_for

#: A tree of the grammar, or a token where it has one: lark's types do not tell which.
Syntax: TypeAlias = Any
#: Evaluating a tree: asks for (tree, scope), is sent the value, returns its own.
Evaluation: TypeAlias = Generator[tuple[Syntax, Scope], Value, Value]

_OPERATORS = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "modulo", "//": "floor_divide",
    "^": "power", "==": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater",
    ">=": "greater_equal",
}  # fmt: skip


class Interpreter:
    """Runs statements and expressions in scopes; ``load`` and ``draw`` are the session's business."""

    def __init__(
        self,
        limits: Limits,
        load: Callable[[str, Scope], None],
        draw: Callable[[Any, Any], None],
        run: Callable[[SOp | Selector, Any], Any],
    ) -> None:
        self.limits = limits
        self.load_file = load
        self.draw_program = draw
        self.run_program = run
        self.steps = 0
        self.calls = 0
        self.items = 0
        #: Called with every s-op and selector built, but for those about to be applied to an input.
        self.watch: Callable[[SOp | Selector], object] | None = None
        self._applying = 0

    def evaluate(self, tree: Syntax, scope: Scope) -> Value:
        """The value of an expression, or of running a statement (None)."""
        self.steps = self.calls = self.items = self._applying = 0
        trees, running = [tree], [self._start(tree, scope)]
        value: Value = None
        try:
            while running:
                try:
                    wanted, inside = running[-1].send(value)
                except StopIteration as done:
                    running.pop()
                    trees.pop()
                    value = done.value
                    if self.watch and not self._applying:
                        self._watch(value)
                else:
                    value = None
                    trees.append(wanted)
                    running.append(self._start(wanted, inside))
        except UnderstudyError as error:
            raise _at(from_execution(error), trees[-1]) from None
        return value

    def _watch(self, value: Value) -> None:
        # What is still part of a family has no value yet.
        if self.watch and isinstance(value, (SOp, Selector)) and not value.node.free:
            self.watch(value)

    def _start(self, tree: Syntax, scope: Scope) -> Evaluation:
        evaluation: Evaluation = getattr(self, f"_{tree.data}")(tree, scope)
        return evaluation

    def step(self) -> None:
        """Count one unit of work."""
        self.steps += 1
        if self.steps > self.limits.steps:
            problem = f"this takes more than {self.limits.steps:,} steps (the limit is adjustable)"
            raise RaspError("runtime:Exception", problem)

    # Statements ---------------------------------------------------------------------------------

    def _show(self, tree: Syntax, scope: Scope) -> Evaluation:
        self.step()
        return (yield tree.children[0], scope)

    def _assign(self, tree: Syntax, scope: Scope) -> Evaluation:
        self.step()
        names, values = tree.children
        assigned = bind([str(name) for name in names.children], (yield values, scope))
        for name in assigned:
            scope.require_settable(name)
        scope.names.update(assigned)
        return None

    def _define(self, tree: Syntax, scope: Scope) -> Evaluation:
        self.step()
        name, parameters, *body, returns = tree.children
        names = tuple(str(p) for p in parameters.children) if parameters is not None else ()
        scope.set(str(name), Function(str(name), names, tuple(body), returns, scope))
        return None
        yield  # a generator like its siblings

    def _loop(self, tree: Syntax, scope: Scope) -> Evaluation:
        self.step()
        names, iterable, *body = tree.children
        collection = yield iterable, scope
        for item in self._items(collection, "a for loop"):
            for name, value in _unpacked(names, item).items():
                scope.set(name, value)
            for statement in body:
                yield statement, scope
        return None

    def _draw(self, tree: Syntax, scope: Scope) -> Evaluation:
        program = yield tree.children[0], scope
        given = (yield tree.children[1], scope) if len(tree.children) > 1 else None
        if not isinstance(program, SOp):
            raise RaspError("type", f"draw expects an s-op, but got {words_for(program)}")
        self.draw_program(program, given)
        return None

    def _load(self, tree: Syntax, scope: Scope) -> Evaluation:
        self.load_file(str(tree.children[0])[1:-1], scope)
        return None
        yield

    # Plain values -------------------------------------------------------------------------------

    def _name(self, tree: Syntax, scope: Scope) -> Evaluation:
        return scope.get(str(tree.children[0]))
        yield

    def _integer(self, tree: Syntax, scope: Scope) -> Evaluation:
        return compute(int, str(tree.children[0]))
        yield

    def _float(self, tree: Syntax, scope: Scope) -> Evaluation:
        return float(str(tree.children[0]))
        yield

    def _string(self, tree: Syntax, scope: Scope) -> Evaluation:
        return str(tree.children[0])[1:-1]
        yield

    def _bad(self, tree: Syntax, scope: Scope) -> Evaluation:
        raise RaspError("syntax", f"RASP has no character {str(tree.children[0])!r}")
        yield

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
            result.append((yield member, _scope_with(scope, _unpacked(names, item))))
        return result

    def _dict_comprehension(self, tree: Syntax, scope: Scope) -> Evaluation:
        pair, names, iterable = tree.children
        result = {}
        for item in self._items((yield iterable, scope), "a comprehension"):
            inner = _scope_with(scope, _unpacked(names, item))
            key, value = yield from self._each(pair.children, inner)
            result[_key(key)] = value
        return result

    def _range(self, tree: Syntax, scope: Scope) -> Evaluation:
        bounds = yield from self._each(tree.children[1].children, scope)
        if any(type(bound) not in (int, bool) for bound in bounds):
            raise RaspError("runtime:TypeError", f"range needs whole numbers, but got {_shown(bounds)}")
        numbers = compute(range, *bounds)
        self.require_room(len(range(*bounds)) if len(bounds) < 4 else 0)
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
            return python.apply(_OPERATORS[symbol], _operand(left, symbol), _operand(right, symbol))
        if is_atom(left) and is_atom(right):
            return compute(ON_ATOMS[_OPERATORS[symbol]], left, right)
        if symbol in ("==", "!="):
            return (left == right) is (symbol == "==")
        return self._on_lists(symbol, left, right)

    def _on_lists(self, symbol: str, left: Value, right: Value) -> Value:
        if symbol == "+" and isinstance(left, list) and isinstance(right, list):
            self.require_room(len(left) + len(right))
            return left + right
        if symbol == "*" and isinstance(left, list) and isinstance(right, int):
            self.require_room(len(left) * right)
            return left * right
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
            return python.apply(word, _operand(left, word), _operand(right, word))
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
        return python.where(holds, _operand(a, "if"), _operand(b, "else"))

    def _contains(self, tree: Syntax, scope: Scope) -> Evaluation:
        value, collection = yield from self._each(tree.children, scope)
        if isinstance(value, Selector):
            raise RaspError("type", "selectors cannot be looked for: use in with an atom or an s-op")
        if isinstance(collection, list):
            if not isinstance(value, SOp):
                return any(value is member or _same(value, member) for member in collection)
            if all(is_atom(member) for member in collection):
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
        return python.select(_operand(keys, "select"), _operand(queries, "select"), predicate)

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
        return python.aggregate(selector, _operand(values, "aggregate"), default)

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
        return python.sum_over(*families, _operand(body, "sum"))

    # Indexing and application -------------------------------------------------------------------

    def _index(self, tree: Syntax, scope: Scope) -> Evaluation:
        base, index = yield from self._each(tree.children, scope)
        if isinstance(base, (list, str)):
            return _index_list(base, index)
        if isinstance(base, dict):
            return _index_dict(base, index)
        if isinstance(base, SOp):
            if type(index) is not int:
                problem = f"index into an s-op has to be a whole number, not {words_for(index)}"
                raise RaspError("index", problem)
            place = index if index >= 0 else python.length + index
            return python.aggregate(python.select(python.indices, place, "=="), base)
        raise RaspError(
            "type", f"only lists, dicts, strings and s-ops have an index, not {words_for(base)}"
        )

    def _apply(self, tree: Syntax, scope: Scope) -> Evaluation:
        self._applying += 1
        called = yield tree.children[0], scope
        self._applying -= 1
        inner = tree.children[1]
        arguments = (yield from self._each(inner.children, scope)) if inner is not None else []
        if isinstance(called, Function):
            return (yield from self._call(called, arguments))
        if isinstance(called, Builtin):
            self.step()
            _require_arity(called.name, len(called.parameters), arguments)
            return called.call(*arguments)
        if isinstance(called, (SOp, Selector)):
            _require_arity("a program applied to an input", 1, arguments)
            given = arguments[0]
            if not isinstance(given, (str, list, dict)) or not given:
                problem = f"a program runs on a non-empty string or list, not on {words_for(given)}"
                raise RaspError("type", problem)
            given = given if isinstance(given, str) else list(given)
            return Applied(called, given, self.run_program(called, given))
        raise RaspError("not-callable", f"{words_for(called)} is not a function")

    def _call(self, function: Function, arguments: Sequence[Value]) -> Evaluation:
        self.step()
        _require_arity(function.name, len(function.parameters), arguments)
        self.calls += 1
        if self.calls > self.limits.calls:
            problem = f"{function.name} is called more than {self.limits.calls} calls deep"
            raise RaspError("recursion", problem)
        inner = _scope_with(function.scope, dict(zip(function.parameters, arguments, strict=True)))
        for statement in function.body:
            yield statement, inner
        result = yield function.returns, inner
        self.calls -= 1
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
            problem = f"lists of {self.items:,} members in all are too long; the limit is {self.limits.items:,}"
            raise RaspError("runtime:Exception", problem)


def bind(names: Sequence[str], value: Value) -> dict[str, Value]:
    """Names with the values an assignment gives them: one value, or one to be unpacked."""
    if len(names) == 1:
        return {names[0]: value}
    if not isinstance(value, (list, str)):
        problem = f"{words_for(value)} cannot be unpacked into {len(names)} names"
        raise RaspError("runtime:TypeError", problem)
    if len(value) != len(names):
        raise RaspError("type", f"expected {len(names)} values, but got: {len(value)}")
    return dict(zip(names, value, strict=True))


def _unpacked(names: Syntax, item: Value) -> dict[str, Value]:
    wanted = [str(name) for name in names.children]
    if len(wanted) > 1 and (not isinstance(item, (list, str)) or len(item) != len(wanted)):
        found = len(item) if isinstance(item, (list, str)) else 1
        raise RaspError("type", f"iterating with {len(wanted)} names but got {found} values")
    return bind(wanted, item)


def _scope_with(parent: Scope, values: dict[str, Value]) -> Scope:
    scope = Scope(parent)
    for name, value in values.items():
        scope.set(name, value)
    return scope


def _operand(value: Value, what: str) -> Any:
    """What may stand in an elementwise operation beside an s-op."""
    if isinstance(value, SOp) or is_atom(value):
        return value
    kind = "runtime:TypeError" if isinstance(value, Applied) else "type"
    raise RaspError(kind, f"{what} needs an s-op or an atom, but got {words_for(value)}")


def _key(value: Value) -> Value:
    if is_atom(value):
        return value
    raise RaspError("type", f"dictionary keys can only be atoms, not {words_for(value)}")


def _index_list(base: list[Value] | str, index: Value) -> Value:
    if isinstance(index, SOp):
        places = {i: base[i] for i in range(-len(base), len(base))}
        return python.lookup(index, {i: _operand(value, "indexing") for i, value in places.items()})
    if not isinstance(index, int):
        raise RaspError("type", f"index into list has to be s-op or integer, got: {words_for(index)}")
    if not -len(base) <= index < len(base):
        raise RaspError("runtime:IndexError", f"index {index} is outside a list of {len(base)}")
    return base[index]


def _index_dict(base: dict[Value, Value], index: Value) -> Value:
    if isinstance(index, SOp):
        return python.lookup(index, {key: _operand(value, "indexing") for key, value in base.items()})
    if not is_atom(index):
        raise RaspError("type", f"index into dict has to be s-op or atom, got: {words_for(index)}")
    if index not in base:
        raise RaspError("index", f"index [ {words_for(index)} ] not in dict.")
    return base[index]


def _same(a: Value, b: Value) -> bool:
    """Python's equality, which s-ops do not have."""
    return bool(a == b) if not isinstance(b, (SOp, Selector)) else False


def _require_arity(name: str, wanted: int, arguments: Sequence[Value]) -> None:
    if len(arguments) != wanted:
        problem = f"wrong number of args for {name}- expected: {wanted}, got: {len(arguments)}."
        raise RaspError("arity", problem)


def _shown(values: Sequence[Value]) -> str:
    return ", ".join(words_for(value) for value in values)


def _at(error: RaspError, tree: Syntax) -> RaspError:
    """The error with the place of the tree it happened in (the session adds the source line)."""
    first, last = _edge(tree, 1), _edge(tree, -1)
    if first is None or last is None:
        return error
    width = last.end_column - first.column if first.line == last.end_line else len(first)
    return error.located(first.line, first.column, "", width)


def _edge(tree: Syntax, direction: int) -> Any:
    """The first token of a tree (direction 1) or the last (−1), if it has any."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Token):
            return part
        if part is not None:
            waiting.extend(part.children[::-direction])
    return None
