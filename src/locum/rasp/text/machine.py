"""Evaluate syntax trees with scopes and values.

Functions in ``literal_rules.py``, ``operator_rules.py`` and ``interpreter.py`` evaluate the rules of
the grammar. ``interpreter.RULES`` maps the rules to their functions. The function of a rule that
evaluates parts is a generator: it yields each part with its scope, and receives the value of the part.
The dense executor works in the same way. A sum of 100,000 terms or a deep recursion therefore uses
memory, not Python's call stack.

Evaluation does not run programs on an example. Loops are unrolled, functions are called, and
atoms are computed with Python's arithmetic. Operations on s-ops build nodes.
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

#: Maximum length of a name that is suggested for a misspelt name, and maximum number of candidates. If
#: there are more candidates, no name is suggested.
_LONGEST_HINT, _MOST_HINTS = 30, 500


class Scope:
    """The names of a function call, comprehension, sum over families, file or session.

    A name that a scope does not define is looked up in its parent.
    """

    def __init__(
        self,
        parent: Scope | None = None,
        reserved: frozenset[str] = frozenset(),
        remembers: bool = False,
    ) -> None:
        self.parent = parent
        #: Whether ``out`` is the last value computed in this scope, as at top level.
        self.remembers = remembers
        #: Names that cannot be assigned in this scope: names passed on by the parent, and ``reserved``.
        self.reserved = reserved | (parent.passed_on if parent else frozenset())
        #: Names that nested scopes also cannot assign (the base names: indices, True, …).
        self.passed_on: frozenset[str] = parent.passed_on if parent else frozenset()
        self.names: dict[str, Any] = {}
        #: Names assigned since the caller last emptied this dict, the most recent one last.
        self.changed: dict[str, None] = {}

    def get(self, name: str, budget: Budget) -> Any:
        """Return the value of a name from the nearest scope that defines it."""
        for scope in self.chain():
            if name in scope.names:
                return scope.names[name]
        hint = self._hint(name, budget)
        raise RaspError("undefined-variable", f"Undefined variable: {cut(name)}{hint}")

    def _hint(self, name: str, budget: Budget) -> str:
        """Return a suggestion of a defined name that is similar to the undefined ``name``, or ""."""
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
        """Assign a value to a name in this scope."""
        self.require_settable(name)
        self.names.pop(name, None)  # keep names in the order of their last assignment
        self.names[name] = value
        self.changed.pop(name, None)
        self.changed[name] = None

    def remember(self, value: Any) -> None:
        """Assign a value to ``out`` if this scope remembers its last value."""
        if self.remembers:
            self.names["out"] = value

    def require_settable(self, name: str) -> None:
        """Raise an error if ``name`` is reserved for the language or its library."""
        if name in self.reserved:
            owner = "the language" if name in self.passed_on else "the language or its library"
            raise RaspError(
                "reserved-name",
                f"Cannot set reserved name: {name} (it belongs to {owner}; try another name, such as "
                f"my_{name})",
            )

    def chain(self) -> Iterator[Scope]:
        """Yield this scope, its parent and all further ancestors."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


Value: TypeAlias = "Any"


@dataclass(frozen=True, eq=False)
class Function:
    """A function defined in RASP text: a closure over the scope of its definition."""

    name: str
    parameters: tuple[str, ...]
    #: Syntax trees of the statements and of the returned expression.
    body: tuple[Any, ...]
    returns: Any
    scope: Scope
    #: The text of the definition, and its origin: the console, or the name of a file.
    source: Source
    origin: str

    def __str__(self) -> str:
        return f"{self.origin} function: {self.name}({', '.join(self.parameters)})"


@dataclass(frozen=True, eq=False)
class Builtin:
    """A function of the language that is not defined in RASP text."""

    name: str
    parameters: tuple[str, ...]
    call: Callable[..., Value]
    #: The origin that is shown in displays.
    origin: str

    def __str__(self) -> str:
        return f"{self.origin} function: {self.name}({', '.join(self.parameters)})"


@dataclass(frozen=True, eq=False)
class Applied:
    """The result of applying an s-op or selector to an input, for display."""

    program: SOp | Selector
    tokens: Any
    value: Any


def words_for(value: Value) -> str:
    """Describe a value in words for error messages."""
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
    """Return ``value`` if it is an s-op or an atom; otherwise raise an error that names ``what``."""
    if isinstance(value, SOp) or is_atom(value):
        return value
    kind = "runtime:TypeError" if isinstance(value, Applied) else "type"
    raise RaspError(kind, f"{what}: expected an s-op or an atom, got {words_for(value)}")


def same(left: Value, right: Value, budget: Budget) -> bool:
    """Compare two values as Python does; s-ops and functions are compared by identity.

    Lists can share members in such a way that a naive comparison takes exponential time. Each pair of
    lists or dicts is therefore compared only once. Each pair costs at most one step of the budget.
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


#: A tree of the grammar, or a token in its place; lark's types do not distinguish them.
Syntax: TypeAlias = Any
#: The evaluation of a tree: yields (tree, scope), receives the value, returns its result.
Evaluation: TypeAlias = Generator[tuple[Syntax, Scope], Value, Value]
#: The function of a rule, which returns the value of a tree, or the evaluation of its parts.
Rule: TypeAlias = "Callable[[Machine, Syntax, Scope], Evaluation | Value]"

#: Steps for evaluating one part of an expression, and for building a node of the graph.
_PART, _NODE = 0.5, 4
#: Bytes of a node with its handle and its entry in the pool, and of one list member.
_NODE_BYTES, MEMBER_BYTES = 1_500, 8


class Host(Protocol):
    """The operations that a machine delegates to its session."""

    def load_file(self, name: str, scope: Scope) -> None:
        """Run the file ``name`` and copy the names that it defines into ``scope``."""

    def draw_program(self, program: SOp, tokens: Any) -> None:
        """Draw a program on ``tokens``, or on the current example if ``tokens`` is None."""

    def run_program(self, program: SOp | Selector, tokens: Any) -> Any:
        """Return the value of a program on the input ``tokens``."""


class Machine:
    """An evaluator of syntax trees with given rules, within a budget."""

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
        #: Names that values had when they were assigned or returned, for displays.
        self.names = names
        #: Origin of functions defined now: the console, or a file.
        self.origin = origin
        #: The text being run. Functions keep the text of their definition for error messages.
        self.source = Source()
        #: The trees being evaluated, outermost first, and the calls among them as (depth, function).
        self.trees: list[Syntax] = []
        self.calls: list[tuple[int, Function]] = []
        #: Number of list members built since :meth:`evaluate` began.
        self._members = 0

    def evaluate(self, tree: Syntax, scope: Scope) -> Value:
        """Evaluate the tree of an expression or statement in ``scope``, and return its value."""
        self._members = 0
        self.trees, self.calls = [], []
        running: list[Evaluation] = []
        try:
            outcome = self._begin(tree, scope)
            while True:
                if type(outcome) is GeneratorType:
                    running.append(outcome)
                    value = None  # start the generator
                else:
                    value = outcome
                    if self.trees[-1].data != "name":
                        self.built(value)
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
        """Charge the budget for a new s-op or selector."""
        if isinstance(value, (SOp, Selector)):
            families = len(value.node.free)
            self.budget.spend(_NODE + families / 10)
            self.budget.reserve(_NODE_BYTES + 100 * families)
            self.names.of(value.node)  # form the name now, from the current names of the parts

    def _located(self, error: RaspError) -> RaspError:
        """Add the position in the current text to an error.

        If the error occurred inside a function of another text (for example, the library), the position
        of the call is added.
        """
        for depth, function in self.calls:
            if function.source is not self.source:
                inside = error.reworded(f"{error.message} (in {function.name})")
                return locate(inside, self.trees[depth - 1])
        return locate(error, self.trees[-1])

    # Methods used by rules ----------------------------------------------------------------------

    def each(self, trees: Sequence[Any], scope: Scope) -> Generator[Any, Value, list[Value]]:
        """Evaluate several trees in order, and return the list of their values."""
        values = []
        for tree in trees:
            values.append((yield tree, scope))
        return values

    def items(self, collection: Value, what: str) -> Iterator[Value]:
        """Iterate over the members of a list or the keys of a dict; each item costs one step of the
        budget.
        """
        if not isinstance(collection, (list, dict)):
            problem = f"{what}: expected a list or dict to iterate over, got {words_for(collection)}"
            raise RaspError("type", problem)
        for item in collection:  # lists and dicts are immutable once built
            self.budget.spend(1)
            yield item

    def require_room(self, members: int, size: int = MEMBER_BYTES) -> None:
        """Charge the budget for list members of ``size`` bytes each before they are built."""
        self._members += members
        if self._members > self.limits.items:
            raise LimitError(f"these lists have too many members; the limit is {self.limits.items:,}")
        self.budget.spend(members / 120)
        self.budget.reserve(members * size)


def locate(error: RaspError, tree: Syntax) -> RaspError:
    """Add the position of a tree to an error; the session adds the source line."""
    first, last = _edge(tree, 1), _edge(tree, -1)
    if first is None or last is None:
        return error
    width = last.end_column - first.column if first.line == last.end_line else len(first)
    return error.located(first.line, first.column, width)


def _edge(tree: Syntax, direction: int) -> Any:
    """Return the first token of a tree (direction 1) or the last (−1), or None if the tree is empty."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Token):
            return part
        if part is not None:
            waiting.extend(part.children[::-direction])
    return None
