"""The machine that evaluates trees: a driver, the state of one run, and what it asks of its host.

What each rule of the grammar means is a function of the modules beside this one (``statements.py``,
``literals.py``, ``operators.py``, ``attention.py``, ``application.py``); ``interpreter.py`` joins them
in one table. A rule that has parts is a generator that asks for their values (``yield tree, scope``),
as in the dense executor: a sum of 100,000 terms or a deep recursion costs memory, not Python's stack.

Nothing is run on an example here. Loops unroll, functions are called, atoms are computed as Python
computes them, and whatever contains an s-op becomes a node.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from types import GeneratorType
from typing import Any, Protocol, TypeAlias

from lark import Token

from locum.budget import Budget
from locum.errors import LimitError, LocumError
from locum.language.handles import Selector, SOp
from locum.language.rasp.limits import Limits
from locum.language.rasp.mistakes import RaspError, from_execution
from locum.language.rasp.naming import Names
from locum.language.rasp.reader import Source
from locum.language.rasp.scope import Scope
from locum.language.rasp.values import Function, Value, words_for

#: A tree of the grammar, or a token where it has one: lark's types do not tell which.
Syntax: TypeAlias = Any
#: Evaluating a tree: asks for (tree, scope), is sent the value, returns its own.
Evaluation: TypeAlias = Generator[tuple[Syntax, Scope], Value, Value]
#: The meaning of a rule: the value of a tree that has no parts, or the evaluation of one that has.
Rule: TypeAlias = "Callable[[Machine, Syntax, Scope], Evaluation | Value]"

#: Steps that evaluating one part of an expression takes, and building a node of the graph.
_PART, _NODE = 0.5, 4
#: Bytes of a node with its handle and its place in the pool, and of one member of a list.
_NODE_BYTES, MEMBER_BYTES = 1_500, 8


class Host(Protocol):
    """What a machine leaves to the session it belongs to."""

    def load_file(self, name: str, scope: Scope) -> None:
        """Run a file and copy its names into ``scope``."""

    def draw_program(self, program: SOp, tokens: Any) -> None:
        """Draw a program on an input, or (None) on the running example."""

    def run_program(self, program: SOp | Selector, tokens: Any) -> Any:
        """Run a program on an input."""


class Machine:
    """Evaluates trees by the rules it is given, within a budget."""

    def __init__(
        self,
        rules: Mapping[str, Rule],
        host: Host,
        limits: Limits,
        budget: Budget,
        names: Names,
        origin: str = "console",
    ) -> None:
        self.rules = rules
        self.host = host
        self.limits = limits
        self.budget = budget
        #: What values were called when they were assigned or returned, for displays.
        self.names = names
        #: Where functions defined now come from: the console, or a file.
        self.origin = origin
        #: The text being run: functions remember theirs, so that errors point into the right one.
        self.source = Source()
        #: Called with every s-op and selector built, but for those about to be applied to an input.
        self.watch: Callable[[SOp | Selector], object] | None = None
        #: The trees being evaluated, outermost first, and the calls among them: (depth, function).
        self.trees: list[Syntax] = []
        self.calls: list[tuple[int, Function]] = []
        #: How many programs are being built only to be applied to an input.
        self.applying = 0
        #: Members of lists built since :meth:`evaluate` began.
        self._members = 0

    def evaluate(self, tree: Syntax, scope: Scope) -> Value:
        """Return the value of an expression, or run a statement (None)."""
        self._members = self.applying = 0
        self.trees, self.calls = [], []
        running: list[Evaluation] = []
        try:
            outcome = self._begin(tree, scope)
            while True:
                if type(outcome) is GeneratorType:
                    running.append(outcome)
                    value = None  # starts it
                else:
                    value = outcome
                    if self.trees[-1].data != "name":
                        self.built(value)
                    elif self.watch is not None:
                        self._watch(value)
                    self.trees.pop()
                    if not running:
                        return value
                try:
                    part, inside = running[-1].send(value)
                except StopIteration as done:
                    running.pop()
                    outcome = done.value
                else:
                    outcome = self._begin(part, inside)
        except LocumError as error:
            raise self._located(from_execution(error)) from None

    def _begin(self, tree: Syntax, scope: Scope) -> Evaluation | Value:
        self.trees.append(tree)
        self.budget.spend(_PART)
        return self.rules[tree.data](self, tree, scope)

    def built(self, value: Value) -> None:
        """Account for a value that was computed, if it is a node, and show it to whoever watches."""
        if isinstance(value, (SOp, Selector)):
            families = len(value.node.free)
            self.budget.spend(_NODE + families / 10)
            self.budget.reserve(_NODE_BYTES + 100 * families)
            self.names.of(value.node)  # spelled out by the names its parts have now
            self._watch(value)

    def _watch(self, value: Value) -> None:
        if self.watch is None or self.applying or not isinstance(value, (SOp, Selector)):
            return
        if not value.node.free:  # what is still part of a family has no value yet
            self.watch(value)

    def _located(self, error: RaspError) -> RaspError:
        """Give the error its place in the text being run.

        Inside a function of another text (an earlier statement, the library) that is its call.
        """
        for depth, function in self.calls:
            if function.source is not self.source:
                inside = error.reworded(f"{error.message} (in {function.name})")
                return _at(inside, self.trees[depth - 1])
        return _at(error, self.trees[-1])

    # What rules share ---------------------------------------------------------------------------

    def each(self, trees: Sequence[Any], scope: Scope) -> Generator[Any, Value, list[Value]]:
        """Evaluate several trees, one after the other."""
        values = []
        for tree in trees:
            values.append((yield tree, scope))
        return values

    def items(self, collection: Value, what: str) -> Iterator[Value]:
        """Go through the members of a list or the keys of a dict, a step for each."""
        if not isinstance(collection, (list, dict)):
            problem = f"{what}: expected a list or dict to iterate over, got {words_for(collection)}"
            raise RaspError("type", problem)
        for item in collection:  # nothing changes a list or dict once it is made
            self.budget.spend(1)
            yield item

    def require_room(self, members: int, size: int = MEMBER_BYTES) -> None:
        """Account for members of lists, of ``size`` bytes each, before they are made."""
        self._members += members
        if self._members > self.limits.items:
            raise LimitError(f"these lists have too many members; the limit is {self.limits.items:,}")
        self.budget.spend(members / 120)
        self.budget.reserve(members * size)


def _at(error: RaspError, tree: Syntax) -> RaspError:
    """Give an error the place of the tree it happened in (the session adds the source line)."""
    first, last = _edge(tree, 1), _edge(tree, -1)
    if first is None or last is None:
        return error
    width = last.end_column - first.column if first.line == last.end_line else len(first)
    return error.located(first.line, first.column, width)


def _edge(tree: Syntax, direction: int) -> Any:
    """Find the first token of a tree (direction 1) or the last (−1), if it has any."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Token):
            return part
        if part is not None:
            waiting.extend(part.children[::-direction])
    return None
