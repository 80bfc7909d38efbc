"""The machine that evaluates syntax trees, with its scopes and values.

Each rule of the grammar is a function of ``literal_rules.py``, ``operator_rules.py`` or
``interpreter.py``, which joins them in one table. A rule that has parts is a generator that asks for
their values (``yield tree, scope``), as in the dense executor: a sum of 100,000 terms or a deep
recursion costs memory, not Python's stack.

Nothing is run on an example here. Loops unroll, functions are called, atoms are computed as Python
computes them, and whatever contains an s-op becomes a node.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import GeneratorType
from typing import Any, Protocol, TypeAlias

from lark import Token

from locum.budget import Budget
from locum.errors import LimitError, LocumError
from locum.graph import abbreviate, is_atom
from locum.graph.atoms import short
from locum.rasp.handles import Selector, SOp
from locum.rasp.text.limits import Limits
from locum.rasp.text.mistakes import RaspError, cut, from_execution
from locum.rasp.text.naming import Names
from locum.rasp.text.reader import Source

#: Longer names, and names beyond this number, are not suggested for a misspelt one.
_LONGEST_HINT, _MOST_HINTS = 30, 500


class Scope:
    """Names of one function call, comprehension or session; unknown ones are the parent's."""

    def __init__(
        self,
        parent: Scope | None = None,
        reserved: frozenset[str] = frozenset(),
        remembers: bool = False,
    ) -> None:
        self.parent = parent
        #: Whether ``out`` holds the last value computed here, as it does at top level.
        self.remembers = remembers
        #: Names that cannot be set here: the parent's, and those given.
        self.reserved = reserved | (parent.passed_on if parent else frozenset())
        #: Names that nested scopes cannot set either (the base names: indices, True, …).
        self.passed_on: frozenset[str] = parent.passed_on if parent else frozenset()
        self.names: dict[str, Any] = {}
        #: Names that were set, the last one last, since whoever asks emptied it.
        self.changed: dict[str, None] = {}

    def get(self, name: str, budget: Budget) -> Any:
        """Return the value of a name, from the nearest scope that has it."""
        for scope in self.chain():
            if name in scope.names:
                return scope.names[name]
        hint = self._hint(name, budget)
        raise RaspError("undefined-variable", f"Undefined variable: {cut(name)}{hint}")

    def _hint(self, name: str, budget: Budget) -> str:
        """Suggest the name that was probably meant, among those of about its length."""
        known = {
            known
            for scope in self.chain()
            for known in scope.names
            if abs(len(known) - len(name)) <= 2 and len(known) <= _LONGEST_HINT
        }
        if len(known) > _MOST_HINTS:
            return ""
        budget.spend(4 * len(known))
        close = difflib.get_close_matches(name, known, n=1)
        return f" (did you mean {close[0]}?)" if close else ""

    def set(self, name: str, value: Any) -> None:
        """Give a name a value in this scope."""
        self.require_settable(name)
        self.names.pop(name, None)  # names stand in the order of their last definition
        self.names[name] = value
        self.changed.pop(name, None)
        self.changed[name] = None

    def remember(self, value: Any) -> None:
        """Keep a value as ``out``, if this is a scope that does."""
        if self.remembers:
            self.names["out"] = value

    def require_settable(self, name: str) -> None:
        """Refuse the names that belong to the language."""
        if name in self.reserved:
            owner = "the language" if name in self.passed_on else "the language or its library"
            raise RaspError(
                "reserved-name",
                f"Cannot set reserved name: {name} (it belongs to {owner}; try another name, such as "
                f"my_{name})",
            )

    def chain(self) -> Iterator[Scope]:
        """Return this scope and its parents."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


Value: TypeAlias = "Any"


@dataclass(frozen=True, eq=False)
class Function:
    """A function of the program: a closure over the scope it was defined in."""

    name: str
    parameters: tuple[str, ...]
    #: Trees of the grammar: the statements, and what is returned.
    body: tuple[Any, ...]
    returns: Any
    scope: Scope
    #: The text it was defined in, and where that came from: the console, or the name of a file.
    source: Source
    origin: str

    def __str__(self) -> str:
        return f"{self.origin} function: {self.name}({', '.join(self.parameters)})"


@dataclass(frozen=True, eq=False)
class Builtin:
    """A function of the language that is not written in RASP."""

    name: str
    parameters: tuple[str, ...]
    call: Callable[..., Value]
    #: Where displays say that it comes from.
    origin: str

    def __str__(self) -> str:
        return f"{self.origin} function: {self.name}({', '.join(self.parameters)})"


@dataclass(frozen=True, eq=False)
class Applied:
    """An s-op or selector applied to an input: something to look at."""

    program: SOp | Selector
    tokens: Any
    value: Any


def words_for(value: Value) -> str:
    """Describe a value as errors mention it."""
    if isinstance(value, SOp):
        return f"the s-op {abbreviate(value.node)}"
    if isinstance(value, Selector):
        return f"the selector {abbreviate(value.node)}"
    if isinstance(value, (Function, Builtin)):
        return f"the function {value.name}({', '.join(value.parameters)})"
    if isinstance(value, Applied):
        return "the result of applying a program to an input"
    if is_atom(value):
        return f'"{value}"' if isinstance(value, str) and len(value) < 40 else short(value)
    kind = "dict" if isinstance(value, dict) else "list"
    return f"a {kind} of {len(value)}"


def operand(value: Value, what: str) -> Any:
    """Require a value that may stand in an elementwise operation beside an s-op."""
    if isinstance(value, SOp) or is_atom(value):
        return value
    kind = "runtime:TypeError" if isinstance(value, Applied) else "type"
    raise RaspError(kind, f"{what}: expected an s-op or an atom, got {words_for(value)}")


def same(left: Value, right: Value, budget: Budget) -> bool:
    """Compare plain values, lists and dicts as Python does; s-ops and functions are only themselves.

    Lists may share parts so often that comparing them naively never ends: each pair is looked at
    once, at a step of the budget.
    """
    seen: set[tuple[int, int]] = set()
    waiting = [(left, right)]
    while waiting:
        a, b = waiting.pop()
        if a is b or (id(a), id(b)) in seen:
            continue
        budget.spend(1)
        if is_atom(a) and is_atom(b):
            if a != b:
                return False
            continue
        seen.add((id(a), id(b)))
        if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            waiting.extend(zip(a, b, strict=True))
        elif isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
            waiting.extend((a[key], b[key]) for key in a)
        else:
            return False
    return True


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
