"""Run a program line by line, and remember which statement made which part of the graph.

That is what links the panes: a head, a slot or a row of values belongs to the statement that first
built its node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from locum.errors import InputError
from locum.graph import Node, postorder
from locum.graph.atoms import identity
from locum.graph.definitions import expand_definitions, names_of_definitions
from locum.graph.labels import Labels
from locum.language import echo
from locum.language.handles import Selector, SOp, wrap
from locum.language.rasp.limits import Limits
from locum.language.rasp.results import Result
from locum.language.rasp.session import Session

#: Tighter than those of a REPL: a page answers while one types.
LIMITS = Limits(steps=50_000, text_steps=75_000, memory=150_000_000, heads=5_000)

_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


@dataclass
class Statement:
    """A statement: the lines it begins and ends in (from 1), and what came of it."""

    first: int
    last: int
    result: Result
    #: What it built: names and graphs.
    built: dict[str, Node] = field(default_factory=dict)


class Program:
    """A source text, run on an input within the limits of a session; no file can be loaded."""

    def __init__(self, source: str, tokens: Any) -> None:
        self.session = Session(tokens, folders=(), limits=LIMITS)
        self.statements: list[Statement] = []
        self._run(source)
        self.tokens = self.session.examples.tokens["s-op"]
        self.has_own_example = list(map(identity, self.tokens)) != list(map(identity, tokens))
        self.names = self.session.names_of_nodes()
        #: Which statement built a node first, in the graph as written and with definitions expanded.
        self.owner: dict[Node, int] = {}
        for number, statement in enumerate(self.statements):
            for node in statement.built.values():
                for part in postorder(node, expand_definitions(node)):
                    if part.inputs:
                        self.owner.setdefault(part, number)

    def _run(self, source: str) -> None:
        session, begin = self.session, 1
        lines = source.split("\n")
        for number, line in enumerate(lines, start=1):
            if session.finished or session.exhausted:
                return
            if not session.waiting:
                begin = number
            before = dict(session.scope.names)
            self._add(session.feed(line + "\n"), begin, number, before)
        before = dict(session.scope.names)
        self._add(session.end(), begin, len(lines), before)

    def _add(self, results: list[Result], begin: int, end: int, before: dict[str, Any]) -> None:
        """Keep the results of one line; errors count their lines from where reading began."""
        changed = {
            name: value.node
            for name, value in self.session.scope.names.items()
            if isinstance(value, (SOp, Selector)) and before.get(name) is not value and name != "out"
        }
        for result in results:
            first = begin + (result.line or 1) - 1
            statement = Statement(first, end, result)
            if result.kind in ("none", "multi"):  # a loop, or several names at once
                statement.built = changed
            elif result.node is not None:
                statement.built = {result.name or "out": result.node}
            self.statements.append(statement)

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
        """Return every s-op and selector that the program names or shows, in order."""
        found: dict[str, SOp | Selector] = {}
        for statement in self.statements:
            for name, node in statement.built.items():
                found.pop(name, None)
                found[name] = wrap(node)
        return found

    def sop(self, name: str | None) -> tuple[str, SOp]:
        """Return the s-op of that name, or the last one."""
        sops = {n: value for n, value in self.programs().items() if isinstance(value, SOp)}
        if name is not None and name not in sops:
            known = ", ".join(sops) or "none"
            raise InputError(f"expected the name of an s-op of the program ({known}), got {name!r}")
        if not sops:
            raise InputError("the program has no s-op yet; try reverse = aggregate(flip, tokens);")
        name = name if name is not None else list(sops)[-1]
        return name, sops[name]

    # Links ----------------------------------------------------------------------------------------

    def statements_of(self, nodes: Iterable[Node]) -> list[int]:
        """Return the statements that built any of these nodes."""
        return sorted({self.owner[node] for node in nodes if node in self.owner})

    def by_label(self, root: Node) -> LabelOwners:
        """Return who owns what, by the labels that pictures and networks give to nodes."""
        names = {**names_of_definitions(root), **self.names}
        return LabelOwners(self, names)


class LabelOwners:
    """The statements that own the labels of slots and heads in a compiled network."""

    def __init__(self, program: Program, names: dict[Node, str]) -> None:
        self._exact: dict[str, int] = {}
        label = Labels(names)
        for node, number in program.owner.items():
            self._exact.setdefault(label(node), number)
        self._named = {
            name: number
            for number, statement in enumerate(program.statements)
            for name in statement.built
        }

    def of(self, label: str) -> list[int]:
        """Return the statement whose node has this label, or else those whose names occur in it."""
        if label in self._named:
            return [self._named[label]]
        if label in self._exact:
            return [self._exact[label]]
        known = [self._named.get(word, self._exact.get(word)) for word in _WORD.findall(label)]
        return sorted({number for number in known if number is not None})


def described(statement: Statement) -> dict[str, Any]:
    """Describe a statement as JSON; values are texts, as the REPL writes them."""
    result = statement.result
    entry: dict[str, Any] = {"line": statement.last, "first": statement.first, "kind": result.kind}
    for name in ("name", "type", "matrix", "args"):
        value = getattr(result, name)
        if value is not None:
            entry[name] = value
    if result.values is not None:
        entry["values"] = [echo.scalar(value) for value in result.values]
    entry["text"] = _beside(result)
    return entry


def _beside(result: Result) -> str:
    """Write what stands beside the line."""
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
