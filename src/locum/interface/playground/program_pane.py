"""Run a program line by line, and remember which statement made which part of the graph.

That is what links the panes: a head, a slot or a row of values belongs to the statement that first
built its node, and to those whose value it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from locum.errors import InputError, LimitError
from locum.graph import Node, postorder
from locum.graph.atoms import identity
from locum.graph.definitions import expand_definitions
from locum.rasp import echo
from locum.rasp.handles import Selector, SOp, wrap
from locum.rasp.text.builtins import take_away
from locum.rasp.text.file_loading import with_newlines
from locum.rasp.text.limits import Limits
from locum.rasp.text.results import Result
from locum.rasp.text.session import Session

#: Tighter than those of a REPL: a page answers while one types.
LIMITS = Limits(steps=50_000, text_steps=75_000, memory=150_000_000, heads=5_000)

#: Why a program that ends so has no s-op, by what its last statement is.
_NO_SOP = {
    "none": "a loop or a command gives none; name what a loop computes, as in x = indices + 1;",
    "function": "a function makes one when it is called, as in x = f(tokens);",
    "list": "a list is not an s-op; name one of its members, as in x = members[0];",
    "dict": "a dict is not an s-op; name one of its members, as in x = members[0];",
    "atom": "a plain value is not an s-op; constant(3) is one",
    "selector": "a selector is not an s-op; aggregate with it, or take its selector_width",
}


@dataclass
class Statement:
    """A statement: the lines it begins and ends in (from 1), and what came of it."""

    first: int
    last: int
    result: Result
    #: What it built: names and graphs; and each of these on the example of the moment.
    built: dict[str, Node] = field(default_factory=dict)
    parts: list[Result] = field(default_factory=list)

    def was_run_on(self, tokens: Sequence[Any]) -> bool:
        """Tell whether a value of it was computed on these tokens."""
        run_on = [part.tokens for part in (self.result, *self.parts) if part.tokens is not None]
        return any(same_tokens(one, tokens) for one in run_on)


class Program:
    """A source text, run on an input within the limits of a session; no file can be loaded.

    ``without``: functions of the library that it may not call.
    """

    def __init__(self, source: str, tokens: Any, without: Sequence[str] = ()) -> None:
        self.session = Session(tokens, folders=(), limits=LIMITS)
        for name in without:
            take_away(self.session.scope, name)
        self.statements: list[Statement] = []
        self._run(source)
        self.tokens = self.session.examples.tokens["s-op"]
        #: Whether the example is the program's own in the end; and the lines up to the last value that
        #: was computed on what was given, 0 if none was.
        self.has_own_example = not same_tokens(self.tokens, tokens)
        self.used_until = max((s.last for s in self.statements if s.was_run_on(tokens)), default=0)
        self.names = self.session.names_of_nodes()
        #: Which statement built a node first, in the graph as written and with definitions expanded;
        #: and which have it as their own value.
        self.owner: dict[Node, int] = {}
        self._valued: dict[Node, set[int]] = {}
        for number, statement in enumerate(self.statements):
            for node in statement.built.values():
                for same in (node, expand_definitions(node)):
                    self._valued.setdefault(same, set()).add(number)
                for part in postorder(node, expand_definitions(node)):
                    if part.inputs or part.op == "length":
                        self.owner.setdefault(part, number)

    def _run(self, source: str) -> None:
        session, begin = self.session, 1
        # A lone carriage return ends a line, too, as it does in files and in the editor of the page.
        lines = with_newlines(source).split("\n")
        for number, line in enumerate(lines, start=1):
            if session.finished or session.exhausted:
                return
            if not session.waiting:
                begin = number
            self._add(session.feeding(line + "\n"), begin, number)
        self._add(session.end(), begin, len(lines))

    def _add(self, results: Iterable[Result], begin: int, end: int) -> None:
        """Keep the results of one line; errors count their lines from where reading began."""
        scope = self.session.scope
        scope.changed.clear()
        for result in results:
            statement = Statement(begin + (result.line or 1) - 1, end, result)
            if result.kind in ("none", "multi"):  # a loop, or several names at once
                values = {name: scope.names[name] for name in scope.changed if name != "out"}
                statement.built = {
                    name: value.node
                    for name, value in values.items()
                    if isinstance(value, (SOp, Selector))
                }
                statement.parts = self._shown(statement.built)
            elif result.node is not None:
                statement.built = {result.name or "out": result.node}
                statement.parts = [result]
            self.statements.append(statement)
            scope.changed.clear()

    def _shown(self, built: dict[str, Node]) -> list[Result]:
        """Run what has just been built on the example, as far as the budget of the text goes."""
        try:
            return [self.session.examples.result(wrap(node), name) for name, node in built.items()]
        except LimitError:
            return []

    @property
    def errors(self) -> list[dict[str, Any]]:
        """Return every mistake with its place."""
        return [
            {"line": s.first, "column": s.result.column or 1, "message": s.result.message}
            for s in self.statements
            if s.result.kind == "error"
        ]

    def require_right(self) -> None:
        """Refuse a program with a mistake in it."""
        for error in self.errors:
            place = f"line {error['line']}, column {error['column']}"
            raise InputError(f"{place}: {error['message']}")

    def programs(self) -> dict[str, SOp | Selector]:
        """Return every s-op and selector that the program names or shows, in order.

        A name that was set again, to a number or a function, say, is not an s-op any more; ``out`` is
        the last value, whatever that is.
        """
        built: dict[str, SOp | Selector] = {}
        for statement in self.statements:
            for name, node in statement.built.items():
                built.pop(name, None)
                built[name] = wrap(node)
        now = self.session.scope.names
        return {
            name: value
            for name, value in built.items()
            if _is_still(now.get(name, value), value, exactly=name == "out")
        }

    def sop(self, name: str | None) -> tuple[str, SOp]:
        """Return the s-op of that name, or the last one."""
        sops = {n: value for n, value in self.programs().items() if isinstance(value, SOp)}
        if name is not None and name not in sops:
            known = ", ".join(sops) or "none"
            raise InputError(f"expected the name of an s-op of the program ({known}), got {name!r}")
        if not sops:
            raise InputError(self.why_no_sop())
        name = name if name is not None else list(sops)[-1]
        return name, sops[name]

    def why_no_sop(self) -> str:
        """Say why there is no s-op, and what would make one."""
        shown = [s.result.kind for s in self.statements if s.result.kind in _NO_SOP]
        if not shown:
            return "there is no s-op yet; try reverse = aggregate(flip, tokens);"
        return f"there is no s-op yet: {_NO_SOP[shown[-1]]}"

    # Links ----------------------------------------------------------------------------------------

    def statements_of(self, nodes: Iterable[Node]) -> list[int]:
        """Return the statements that first built any of these nodes, or have it as their value."""
        statements: set[int] = set()
        for node in nodes:
            statements |= self._valued.get(node, set())
            if node in self.owner:
                statements.add(self.owner[node])
        return sorted(statements)


def _is_still(now: Any, built: SOp | Selector, exactly: bool) -> bool:
    """Tell whether a name still stands for an s-op or selector; ``out``, for the very same one."""
    if not isinstance(now, (SOp, Selector)):
        return False
    return not exactly or now.node is built.node


def same_tokens(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Tell whether two inputs are the same; 1, 1.0 and true are three tokens."""
    return list(map(identity, one)) == list(map(identity, other))


def described(statement: Statement, tokens: Sequence[Any]) -> dict[str, Any]:
    """Describe a statement as JSON; values are texts, as the REPL writes them.

    ``input`` is there where it was run on other ``tokens`` than these; ``parts`` where it gave several
    names, or those of a loop, their values.
    """
    result = statement.result
    entry: dict[str, Any] = {"line": statement.last, "first": statement.first, "kind": result.kind}
    entry |= _values(result, tokens) | {"text": _beside(statement)}
    if result.kind in ("none", "multi"):
        entry["parts"] = [{"kind": part.kind} | _values(part, tokens) for part in statement.parts]
    return entry


def _values(result: Result, tokens: Sequence[Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    for name in ("name", "type", "matrix", "args"):
        value = getattr(result, name)
        if value is not None:
            entry[name] = value
    if result.values is not None:
        entry["values"] = [echo.scalar(value) for value in result.values]
    if result.tokens is not None and not same_tokens(result.tokens, tokens):
        entry["input"] = [echo.scalar(token) for token in result.tokens]
    return entry


def _beside(statement: Statement) -> str:
    """Write what stands beside the line."""
    result = statement.result
    if result.kind == "multi" and len(statement.parts) == len(result.items or []):
        return ", ".join(f"{part.name} = {_echoed(part)}" for part in statement.parts)
    return _echoed(result)


def _echoed(result: Result) -> str:
    match result.kind:
        case "s-op":
            return echo.sequence(result.values or [])
        case "selector":
            rows = result.matrix or []
            return f"selector, {sum(map(sum, rows))} of {len(rows) ** 2} pairs"
        case "atom":
            return echo.atom(result.value)
        case "function":
            return f"function of {len(result.args or [])}"
        case "list" | "dict":
            return f"{result.kind} of {len(result.items or [])}"
        case "multi":
            return ", ".join(str(item.get("name")) for item in result.items or [])
        case "error":
            return ""
    return result.printed.strip()
