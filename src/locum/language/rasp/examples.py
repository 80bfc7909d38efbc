"""The running examples: what s-ops and selectors are shown on, and how values become results.

Only what is shown is run, and on one example every part of a program is run once: values of earlier
statements are remembered until the example changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from locum.errors import InputError
from locum.execution import DOMAINS, dense, inputs
from locum.graph import Node, Sort, is_atom, sequence_type, sort_of
from locum.graph.atoms import is_unprintable, short
from locum.language import echo
from locum.language.handles import Selector, SOp
from locum.language.rasp.limits import Limits
from locum.language.rasp.mistakes import LimitError
from locum.language.rasp.results import Result
from locum.language.rasp.values import Applied, Builtin, Function, Value


class Examples:
    """An input for s-ops and one for selectors, and switches for what is shown on them."""

    def __init__(
        self, tokens: Any, limits: Limits, names_of_nodes: Callable[[], dict[Node, str]]
    ) -> None:
        self.limits = limits
        self.names_of_nodes = names_of_nodes
        self.tokens: dict[str, Any] = {"s-op": tokens, "selector": tokens}
        self.showing = {"s-op": True, "selector": True}
        self.full_display = False
        self._known: dict[str, WeakKeyDictionary[Node, dense.Result]] = {
            "s-op": WeakKeyDictionary(),
            "selector": WeakKeyDictionary(),
        }
        #: Members of lists shown since the last :meth:`fresh_page`, and how deep in lists we are.
        self._shown = self._depth = 0

    def fresh_page(self) -> None:
        """A new statement begins."""
        self._shown = self._depth = 0

    def use(self, kind: object, tokens: Any) -> None:
        """Change the example of one kind, or (None) of both."""
        for which in kinds(kind):
            self.tokens[which] = tokens
            self._known[which].clear()

    def switch(self, kind: object, on: bool) -> None:
        """Show examples of one kind, or (None) of both, or do not."""
        for which in kinds(kind):
            self.showing[which] = on

    def described(self, kind: object) -> str:
        """What ``show example`` prints."""
        lines = (f"\t{which} example: {echo.given(self.tokens[which])}\n" for which in kinds(kind))
        return "".join(lines)

    def result(self, value: Value, name: str | None, run: bool = True) -> Result:
        """A value as a result, run on the example (if ``run``) where it is an s-op or selector."""
        shown = name or ""
        match value:
            case Applied():
                return _applied(value, self.full_display)
            case SOp():
                tokens = self.tokens["s-op"]
                values = self.on_example(value.node) if run else []
                shown = name if name is not None else echo.auto_name(value.node)
                visible = values if run and self.showing["s-op"] else None
                text = echo.sop_block(shown, tokens, visible, self.full_display)
                kind = sequence_type(values)
                return Result("s-op", text, name, type=kind, values=list(values), node=value.node)
            case Selector():
                pattern = self.on_example(value.node) if run else []
                matrix = [[int(cell) for cell in row] for row in pattern]
                shown = name if name is not None else echo.auto_name(value.node)
                visible = pattern if run and self.showing["selector"] else None
                text = echo.selector_block(shown, self.tokens["selector"], visible)
                return Result("selector", text, name, matrix=matrix, node=value.node)
            case Function() | Builtin():
                origin = value.origin if isinstance(value, Function) else "rasplib"
                text = echo.function_block(value.name, value.parameters, origin)
                return Result("function", text, name or value.name, args=list(value.parameters))
            case list() | dict():
                return self._collection(value, name, run)
        kind = sequence_type([value]) if is_atom(value) else None
        return Result("atom", echo.atom_block(shown, value), name, type=kind, value=value)

    def _collection(
        self, value: list[Value] | dict[Value, Value], name: str | None, run: bool
    ) -> Result:
        kind = "list" if isinstance(value, list) else "dict"
        parts = value if isinstance(value, list) else list(value.values())
        self._shown += len(parts)
        if self._shown > self.limits.shown:
            problem = f"this has more than {self.limits.shown:,} members, too many to show"
            raise LimitError("runtime:Exception", problem)
        if self._depth >= self.limits.depth:
            raise LimitError("recursion", f"this is nested more than {self.limits.depth} lists deep")
        self._depth += 1
        members = [self.result(part, None, run) for part in parts]
        self._depth -= 1
        items: list[Any] = [member.to_dict() for member in members]
        texts = [member.printed for member in members]
        flat = _flat(value) if all(is_atom(part) for part in parts) else None
        if isinstance(value, dict):
            items = [[key, item] for key, item in zip(value, items, strict=True)]
            texts = [f" {echo.atom(key)} :{text}" for key, text in zip(value, texts, strict=True)]
        text = echo.collection_block(name or "", kind, flat, texts)
        return Result(kind, text, name, items=items)

    def quietly(self, value: Value, name: str) -> str:
        """What is printed of a loaded name: everything but examples."""
        return self.result(value, name, run=False).printed

    def on_example(self, node: Node) -> Any:
        """The value of a program on the running example of its kind."""
        kind = "selector" if sort_of(node) is Sort.SELECTOR else "s-op"
        known = self._known[kind]
        if node not in known:
            known[node] = self.evaluate(node, self.tokens[kind], known)
        return known[node]

    def evaluate(self, node: Node, given: Any, known: Any = None) -> dense.Result:
        """The value of a program on an input."""
        domain = DOMAINS["float"]
        read = inputs.read(given, domain)
        if read.batch:
            raise InputError("RASP runs on one sequence at a time, but this is a list of lists")
        tokens = read.sequences[0]
        return dense.evaluate(
            node, tokens, domain, self.names_of_nodes, known=known, max_heads=self.limits.heads
        )


def kinds(kind: object) -> tuple[str, ...]:
    """The kinds a command of the REPL is about: the one it names, or both."""
    return ("s-op", "selector") if kind is None else (str(kind),)


def _applied(applied: Applied, full: bool) -> Result:
    if isinstance(applied.program, Selector):
        matrix = [[int(cell) for cell in row] for row in applied.value]
        text = echo.applied_block(applied.given, applied.value, True)
        return Result("selector", text, matrix=matrix, node=applied.program.node)
    kind, text = (
        sequence_type(applied.value),
        echo.applied_block(applied.given, applied.value, False, full),
    )
    return Result("s-op", text, type=kind, values=list(applied.value), node=applied.program.node)


def _flat(value: list[Value] | dict[Value, Value]) -> str:
    """As Python writes it, but for numbers that Python refuses to write."""
    if isinstance(value, list):
        return f"[{', '.join(map(_plain, value))}]"
    return f"{{{', '.join(f'{_plain(key)}: {_plain(part)}' for key, part in value.items())}}}"


def _plain(value: Value) -> str:
    return short(value) if is_unprintable(value) else repr(value)
