"""Run and display values on the examples of a session, and run the commands of the REPL.

Values are kept until the example changes or memory runs low, so that each part of a program is normally
computed once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from locum.budget import Budget
from locum.errors import InputError, LimitError
from locum.execution import DOMAINS, dense, inputs
from locum.graph import Node, Sort, is_atom, sequence_type, sort_of
from locum.graph.atoms import Atom, is_unprintable, short
from locum.rasp import echo
from locum.rasp.handles import Selector, SOp
from locum.rasp.text.limits import Limits
from locum.rasp.text.machine import (
    Applied,
    Builtin,
    Function,
    Machine,
    Scope,
    Syntax,
    Value,
    words_for,
)
from locum.rasp.text.mistakes import RaspError
from locum.rasp.text.naming import Names
from locum.rasp.text.results import Result

#: Values and characters displayed per step, characters rewritten per step, and steps for a list member
#: with its block.
_VALUES, _CHARACTERS, _WRITTEN, _MEMBER = 10, 100, 5_000, 3
#: Steps for a statement that displays something, and for running a program.
_SHOWN, _RUN = 8, 10
#: Maximum number of displayed rows and columns of a selector with too many cells.
_FIRST = 20


class Examples:
    """The example inputs for s-ops and for selectors, with the display switches."""

    def __init__(
        self,
        tokens: Any,
        limits: Limits,
        budget: Budget,
        names: Names,
        names_of_nodes: Callable[[], dict[Node, str]],
    ) -> None:
        self.limits = limits
        self.budget = budget
        self.names = names
        self.names_of_nodes = names_of_nodes
        self.tokens: dict[str, Any] = {"s-op": tokens, "selector": tokens}
        self.showing = {"s-op": True, "selector": True}
        self.full_display = False
        self._known: dict[str, WeakKeyDictionary[Node, dense.Result]] = {
            "s-op": WeakKeyDictionary(),
            "selector": WeakKeyDictionary(),
        }
        #: List members and characters displayed since the last :meth:`fresh_page`, the depth of nested
        #: lists, and their indentation.
        self._members = self._characters = self._depth = 0
        self._margin = ""

    def fresh_page(self) -> None:
        """Reset the counters of displayed members and characters for a new statement."""
        self._members = self._characters = self._depth = 0
        self._margin = ""

    def forget(self) -> None:
        """Delete the values that were computed on the examples; they can be computed again."""
        for known in self._known.values():
            known.clear()

    def use(self, kind: object, tokens: Any) -> None:
        """Set the example for "s-op" or "selector", or for both if ``kind`` is None."""
        for which in kinds(kind):
            self.tokens[which] = tokens
            self._known[which].clear()

    def switch(self, kind: object, on: bool) -> None:
        """Turn the display of examples on or off for "s-op" or "selector", or for both if ``kind`` is
        None.
        """
        for which in kinds(kind):
            self.showing[which] = on

    def described(self, kind: object) -> str:
        """Return the text that ``show example`` prints."""
        for which in kinds(kind):
            self._account(self.tokens[which])
        lines = (f"\t{which} example: {echo.quoted(self.tokens[which])}\n" for which in kinds(kind))
        return "".join(lines)

    def result(self, value: Value, name: str | None, run: bool = True) -> Result:
        """Return the displayed result of a value; with ``run``, s-ops and selectors are run on the
        example.
        """
        self.budget.spend(_SHOWN)
        return self._result(value, name, run)

    def _result(self, value: Value, name: str | None, run: bool) -> Result:
        match value:
            case Applied():
                return self._applied(value)
            case SOp():
                return self._sop(value, name, run)
            case Selector():
                return self._selector(value, name, run)
            case Function() | Builtin():
                text, parameters = f"     {value}\n", list(value.parameters)
                return Result("function", text, name or value.name, args=parameters)
            case list() | dict():
                return self._collection(value, name, run)
        self._account([value])
        kind = sequence_type([value]) if is_atom(value) else None
        return Result("atom", echo.atom_block(name or "", value), name, type=kind, value=value)

    def _sop(self, sop: SOp, name: str | None, run: bool) -> Result:
        tokens = self.tokens["s-op"]
        values = self.on_example(sop.node) if run else []
        self._account(values)
        shown = name if name is not None else self.names.of(sop.node)
        visible = values if run and self.showing["s-op"] else None
        if visible is not None:
            self._account(tokens)
        text = echo.sop_block(shown, tokens, visible, self.full_display)
        kind = sequence_type(values)
        return Result("s-op", text, name, type=kind, values=list(values), node=sop.node, tokens=tokens)

    def _selector(self, selector: Selector, name: str | None, run: bool) -> Result:
        pattern = self.on_example(selector.node) if run else []
        shown = name if name is not None else self.names.of(selector.node)
        tokens, most, matrix = self._grid(self.tokens["selector"], pattern)
        node = selector.node
        visible = pattern if run and self.showing["selector"] else None
        text = echo.selector_block(shown, tokens, visible, most)
        return Result("selector", text, name, matrix=matrix, node=node, tokens=tokens)

    def _applied(self, applied: Applied) -> Result:
        node = applied.program.node
        if isinstance(applied.program, Selector):
            tokens, most, matrix = self._grid(applied.tokens, applied.value)
            text = echo.applied_block(tokens, applied.value, True, most=most)
            return Result("selector", text, matrix=matrix, node=node, tokens=tokens)
        self._account(applied.value)
        if self.full_display:
            self._account(applied.tokens)
        text = echo.applied_block(applied.tokens, applied.value, False, self.full_display)
        kind, values = sequence_type(applied.value), list(applied.value)
        return Result("s-op", text, type=kind, values=values, node=node, tokens=applied.tokens)

    def _grid(self, tokens: Any, pattern: Any) -> tuple[Any, int | None, list[list[int]] | None]:
        """Return the labels, the number of displayed rows (None: all), and the cells of a selector's
        pattern.

        The cells are None if the pattern is too large to be displayed completely.
        """
        cells = len(pattern) ** 2
        if cells > self.limits.cells:
            first = min(_FIRST, math.isqrt(self.limits.cells))
            self._account(tokens[:first])
            return tokens, first, None
        self._account(tokens)
        self.budget.spend(cells / 50)
        return tokens, None, [[int(cell) for cell in row] for row in pattern]

    def _collection(
        self, value: list[Value] | dict[Value, Value], name: str | None, run: bool
    ) -> Result:
        kind = "list" if isinstance(value, list) else "dict"
        parts = value if isinstance(value, list) else list(value.values())
        self._members += len(parts)
        if self._members > self.limits.shown:
            raise LimitError(f"expected at most {self.limits.shown:,} members to show, got more")
        if self._depth >= self.limits.depth:
            problem = f"this is nested more than {self.limits.depth} lists deep"
            raise LimitError(problem, "too deep")
        self.budget.spend(_MEMBER * len(parts))
        self._account(key for key in value if kind == "dict")
        margin, deeper = self._margin, "\t\t" if kind == "list" else "\t\t\t"
        items: list[Any]
        if all(is_atom(part) for part in parts):
            items, texts, flat = [self._atom(part) for part in parts], [], _flat(value)
        else:
            self._depth, self._margin = self._depth + 1, margin + deeper
            members = [self._result(part, None, run) for part in parts]
            self._depth, self._margin = self._depth - 1, margin
            items, flat = [member.to_dict() for member in members], None
            texts = [member.printed for member in members]
            if kind == "dict":
                texts = [f" {echo.atom(key)} :{text}" for key, text in zip(value, texts, strict=True)]
            # Each enclosing list copies the text once more.
            self.budget.spend(sum(map(len, texts)) / _WRITTEN)
        if kind == "dict":
            items = [[key, item] for key, item in zip(value, items, strict=True)]
        text = echo.collection_block(name or "", kind, flat, texts, margin)
        return Result(kind, text, name, items=items)

    def _atom(self, value: Atom) -> dict[str, Any]:
        """Return the result fields of an atom in a list or dict."""
        self._account((value,))
        return {"kind": "atom", "type": sequence_type((value,)), "value": value}

    def _account(self, values: Iterable[Any]) -> None:
        """Charge the budget for values that are about to be displayed, and raise an error above the
        limit.
        """
        count = characters = 0
        for value in [values] if isinstance(values, str) else values:
            count += 1
            if isinstance(value, str):
                characters += len(value)
            elif isinstance(value, int) and not is_unprintable(value):
                characters += value.bit_length() // 3
        self._characters += characters
        if self._characters > self.limits.characters:
            raise LimitError(
                f"this has {self._characters:,} characters, too many to show; "
                f"the limit is {self.limits.characters:,}"
            )
        self.budget.spend(count / _VALUES + characters / _CHARACTERS)

    def quietly(self, value: Value, name: str) -> str:
        """Return the text that the REPL prints for a loaded name, without running the value on the
        example.
        """
        return self.result(value, name, run=False).printed

    def on_example(self, node: Node) -> Any:
        """Return the value of a program on the current example for s-ops or for selectors."""
        kind = "selector" if sort_of(node) is Sort.SELECTOR else "s-op"
        known = self._known[kind]
        if node not in known:
            known[node] = self.evaluate(node, self.tokens[kind], known)
        return known[node]

    def evaluate(self, node: Node, tokens: Any, known: Any = None) -> dense.Result:
        """Return the value of a program on the input ``tokens``, computed by dense execution."""
        domain = DOMAINS["float"]
        self.budget.spend(_RUN + len(tokens) / _VALUES)
        read = inputs.read(tokens, domain)
        if read.batch:
            raise InputError("expected one sequence at a time, got a list of lists")
        return dense.evaluate(
            node,
            read.sequences[0],
            domain,
            self.names_of_nodes,
            known=known,
            max_heads=self.limits.heads,
            budget=self.budget,
        )


def kinds(kind: object) -> tuple[str, ...]:
    """Return the kinds of examples to which a REPL command refers: the named kind, or both."""
    return ("s-op", "selector") if kind is None else (str(kind),)


def _flat(value: list[Value] | dict[Value, Value]) -> str:
    """Format a list or dict as Python does; numbers that Python cannot print are shortened."""
    if isinstance(value, list):
        return f"[{', '.join(map(_plain, value))}]"
    return f"{{{', '.join(f'{_plain(key)}: {_plain(part)}' for key, part in value.items())}}}"


def _plain(value: Value) -> str:
    return short(value) if is_unprintable(value) else repr(value)


class Commanded(Protocol):
    """The attributes of a session that the commands of the REPL change."""

    examples: Examples
    finished: bool


Command = Callable[[Commanded, Syntax, Scope, Machine], Result]


def _set_example(session: Commanded, tree: Syntax, scope: Scope, machine: Machine) -> Result:
    kind, expression = tree.children
    tokens = machine.evaluate(expression, scope)
    if not isinstance(tokens, (str, list, dict)):
        raise RaspError("type", f"example not iterable: {words_for(tokens)}")
    scope.remember(tokens)
    session.examples.use(kind, tokens if isinstance(tokens, str) else list(tokens))
    return Result("none")


def _show_example(session: Commanded, tree: Syntax, scope: Scope, machine: Machine) -> Result:
    return Result("none", session.examples.described(tree.children[0]))


def _switch_examples(session: Commanded, tree: Syntax, scope: Scope, machine: Machine) -> Result:
    session.examples.switch(tree.children[0], str(tree.children[1]) == "on")
    return Result("none")


def _switch_display(session: Commanded, tree: Syntax, scope: Scope, machine: Machine) -> Result:
    session.examples.full_display = str(tree.children[-1]) == "on"
    return Result("none")


def _leave(session: Commanded, tree: Syntax, scope: Scope, machine: Machine) -> Result:
    session.finished = True
    return Result("exit")


COMMANDS: Mapping[str, Command] = MappingProxyType(
    {
        "set_example": _set_example,
        "show_example": _show_example,
        "switch_examples": _switch_examples,
        "switch_display": _switch_display,
        "leave": _leave,
    }
)
