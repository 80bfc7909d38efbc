"""Trees → values: builds the graph that a RASP program describes.

Nothing is run on an example here. Loops unroll, functions are called, atoms are computed as Python
computes them, and whatever contains an s-op becomes a node.

Evaluating a tree that has parts is a generator that asks for their values (``yield tree, scope``), as
in the dense executor: a sum of 100,000 terms or a deep recursion costs memory, not Python's stack.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from lark import Token

from locum.errors import LocumError
from locum.language.handles import Selector, SOp
from locum.language.rasp.binding import bind, unpacked
from locum.language.rasp.expressions import Evaluation, Expressions, Syntax
from locum.language.rasp.limits import Limits
from locum.language.rasp.mistakes import RaspError, from_execution
from locum.language.rasp.scope import Scope
from locum.language.rasp.values import Function, Value, words_for


class Interpreter(Expressions):
    """Runs statements and expressions in scopes; ``load`` and ``draw`` are the session's business."""

    def __init__(
        self,
        limits: Limits,
        load: Callable[[str, Scope], None],
        draw: Callable[[Any, Any], None],
        run: Callable[[SOp | Selector, Any], Any],
        origin: str = "console",
    ) -> None:
        super().__init__(limits, run)
        self.load_file = load
        #: Where functions defined now come from: the console, or a file.
        self.origin = origin
        self.draw_program = draw
        #: Called with every s-op and selector built, but for those about to be applied to an input.
        self.watch: Callable[[SOp | Selector], object] | None = None

    def evaluate(self, tree: Syntax, scope: Scope) -> Value:
        """The value of an expression, or of running a statement (None)."""
        self.steps = self.items = self.applying = 0
        self.trees, self.calls = [], []
        running: list[Evaluation] = []
        try:
            outcome = self._begin(tree, scope)
            while True:
                if isinstance(outcome, Generator):
                    running.append(outcome)
                    value = None  # starts it
                else:
                    value = outcome
                    self._watch(value)
                    self.trees.pop()
                    if not running:
                        return value
                try:
                    wanted, inside = running[-1].send(value)
                except StopIteration as done:
                    running.pop()
                    outcome = done.value
                else:
                    outcome = self._begin(wanted, inside)
        except LocumError as error:
            raise self._located(from_execution(error)) from None

    def _begin(self, tree: Syntax, scope: Scope) -> Evaluation | Value:
        """The value of a tree that has no parts, or the evaluation of one that has."""
        self.trees.append(tree)
        return getattr(self, f"_{tree.data}")(tree, scope)

    def _watch(self, value: Value) -> None:
        if self.watch is None or self.applying or not isinstance(value, (SOp, Selector)):
            return
        if not value.node.free:  # what is still part of a family has no value yet
            self.watch(value)

    def _located(self, error: RaspError) -> RaspError:
        """The error with its place in the text being run.

        Inside a function of another text (an earlier statement, the library) that is its call.
        """
        for depth, function in self.calls:
            if function.text is not self.text:
                inside = RaspError(error.category, f"{error.message} (in {function.name})")
                return _at(inside, self.trees[depth - 1])
        return _at(error, self.trees[-1])

    # Statements ---------------------------------------------------------------------------------

    def _show(self, tree: Syntax, scope: Scope) -> Evaluation:
        self.step()
        value = yield tree.children[0], scope
        scope.remember(value)
        return value

    def _assign(self, tree: Syntax, scope: Scope) -> Evaluation:
        self.step()
        names, values = tree.children
        value = yield values, scope
        assigned = bind([str(name) for name in names.children], value)
        scope.assign(assigned)
        scope.remember(value if len(values.children) == 1 else value[-1])
        return None

    def _define(self, tree: Syntax, scope: Scope) -> None:
        self.step()
        name, parameters, *body, returns = tree.children
        names = tuple(str(p) for p in parameters.children) if parameters is not None else ()
        scope.set(
            str(name), Function(str(name), names, tuple(body), returns, scope, self.text, self.origin)
        )

    def _loop(self, tree: Syntax, scope: Scope) -> Evaluation:
        self.step()
        names, iterable, *body = tree.children
        collection = yield iterable, scope
        for item in self._items(collection, "a for loop"):
            for name, value in unpacked(names, item).items():
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

    def _load(self, tree: Syntax, scope: Scope) -> None:
        self.load_file(str(tree.children[0])[1:-1], scope)


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
