"""Run a program line by line, and record which statement built each node of the graph.

This information links the panes. A head, a slot or a row of values belongs to every statement whose
value is its node, and to the statement that first built this node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from locum.errors import InputError, LimitError
from locum.graph import Node, postorder
from locum.graph.atoms import identity
from locum.graph.definitions import expand_definitions
from locum.interface.playground.dialects import (
    definitions,
    dialect_of,
    recogniser,
    require_end,
    require_symbols,
)
from locum.languages.recogniser import Recogniser
from locum.languages.syntax import DialectError
from locum.rasp import echo
from locum.rasp.handles import Selector, SOp, wrap
from locum.rasp.text.builtins import take_away
from locum.rasp.text.file_loading import with_newlines
from locum.rasp.text.limits import Limits
from locum.rasp.text.results import Result
from locum.rasp.text.session import Session

#: Lower limits than in a REPL, because the page runs the program while the user types.
LIMITS = Limits(steps=50_000, text_steps=75_000, memory=150_000_000, heads=5_000)

#: Reasons why a program has no s-op, by the kind of its last statement of one of these kinds.
_NO_SOP = {
    "none": "a loop or a command defines no s-op; assign a name in it, as in x = indices + 1;",
    "function": "a function defines an s-op only when it is called, as in x = f(tokens);",
    "list": "a list is not an s-op; assign one of its members, as in x = members[0];",
    "dict": "a dict is not an s-op; assign one of its members, as in x = members[0];",
    "atom": "a plain value is not an s-op; constant(3) is one",
    "selector": "a selector is not an s-op; use it in aggregate or selector_width",
}


#: Matches the error of an undefined name, and the names that a statement sets: names before =, or a
#: function.
_UNDEFINED = re.compile(r"Undefined variable: (\w+)")
_SETS = re.compile(r"(?:^|[;{}])\s*(\w+(?:\s*,\s*\w+)*)\s*=(?!=)|\bdef\s+(\w+)", re.MULTILINE)


@dataclass
class Statement:
    """A statement with its first and last line (counted from 1) and its results."""

    first: int
    last: int
    result: Result
    #: The line at which reading the statement began. An error may be in a later line.
    begin: int = 1
    #: Nodes of the assigned names, and the values of each node on the current example.
    built: dict[str, Node] = field(default_factory=dict)
    parts: list[Result] = field(default_factory=list)

    def was_run_on(self, tokens: Sequence[Any]) -> bool:
        """Return whether a value of the statement was computed on ``tokens``."""
        run_on = [part.tokens for part in (self.result, *self.parts) if part.tokens is not None]
        return any(same_tokens(one, tokens) for one in run_on)


class Program:
    """A program that is run on an input within the limits of a session, and cannot load files.

    ``without`` contains the names of library functions that the program may not call.
    """

    def __init__(self, source: str, tokens: Any, without: Sequence[str] = ()) -> None:
        self.session = Session(tokens, folders=(), limits=LIMITS)
        if without and dialect_of(source) is not None:
            raise InputError(
                f"expected a program in RASP, since {without[0]} of its library is forbidden, got one "
                f"in {dialect_of(source)}; try without the first line"
            )
        for name in without:
            take_away(self.session.scope, name)
        self.statements: list[Statement] = []
        #: The program in C-RASP, B-RASP or LTL, or None for RASP.
        self._recogniser: Recogniser | None = None
        self._run(source)
        self.tokens = self.session.examples.tokens["s-op"]
        #: Whether the program ends with an example other than the given input. The last line with a
        #: value that was computed on the given input, or 0.
        self.has_own_example = not same_tokens(self.tokens, tokens)
        self.used_until = max((s.last for s in self.statements if s.was_run_on(tokens)), default=0)
        self.names = self.session.names_of_nodes()
        #: The statement that first built a node, in the original graph and with definitions expanded,
        #: and the statements whose value is this node.
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
        # A single carriage return also ends a line, as in files and in the editor of the page.
        self._lines = lines = with_newlines(source).split("\n")
        if dialect_of(source) is not None:
            self._run_dialect(with_newlines(source))
            return
        session, begin = self.session, 1
        for number, line in enumerate(lines, start=1):
            if session.finished or session.exhausted:
                return
            if not session.waiting:
                begin = number
            self._add(session.feeding(line + "\n"), begin, number)
        self._add(session.end(), begin, len(lines))

    def _run_dialect(self, source: str) -> None:
        """Run a C-RASP or B-RASP program or an LTL formula, with each definition as a statement."""
        examples = self.session.examples
        try:
            self._recogniser = recogniser(source, examples.tokens["s-op"])
            found = definitions(source, self._recogniser)
            for name, first, last, node in found:
                value = self.session.scope.names[name] = wrap(node)
                result = examples.result(value, name)
                self.statements.append(
                    Statement(first, last, result, built={name: node}, parts=[result])
                )
        except DialectError as error:
            result = Result(
                "error", message=error.problem, category="syntax", line=error.line, column=error.column
            )
            self.statements.append(Statement(error.line, error.line, result))

    def _add(self, results: Iterable[Result], begin: int, end: int) -> None:
        """Store the results of the lines from ``begin`` to ``end`` as statements.

        The lines of errors are relative to ``begin``.
        """
        scope = self.session.scope
        scope.changed.clear()
        for result in results:
            statement = Statement(begin + (result.line or 1) - 1, end, result, begin)
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
        """Run new s-ops and selectors on the example, within the limits of the program."""
        try:
            return [self.session.examples.result(wrap(node), name) for name, node in built.items()]
        except LimitError:
            return []

    @property
    def errors(self) -> list[dict[str, Any]]:
        """Errors of the program with line, column and message.

        If a name is undefined because of an error in an earlier statement, ``because`` is the line of
        this earlier error.
        """
        found: list[dict[str, Any]] = []
        #: Names that are not set because of an error, with the line of the first such error.
        missing: dict[str, int] = {}
        for s in self.statements:
            if s.result.kind != "error":
                for name in (*s.built, s.result.name or ""):
                    missing.pop(name, None)
                continue
            error = {"line": s.first, "column": s.result.column or 1, "message": s.result.message}
            undefined = _UNDEFINED.match(s.result.message or "")
            cause = missing.get(undefined[1]) if undefined else None
            if cause is not None:
                error["because"] = cause
            text = "\n".join(self._lines[s.begin - 1 : s.last])
            for names in _SETS.findall(text):
                for name in re.split(r"\s*,\s*", "".join(names)):
                    missing.setdefault(name, s.first if cause is None else cause)
            found.append(error)
        return found

    def require_right(self) -> None:
        """Raise the first error of the program, if it has errors."""
        for error in self.errors:
            place = f"line {error['line']}, column {error['column']}"
            raise InputError(f"{place}: {error['message']}")

    def programs(self) -> dict[str, SOp | Selector]:
        """Return a mapping from names to the s-ops and selectors that the program assigns or shows.

        Each name has its last s-op or selector. Names that have another value at the end, for example a
        number, are excluded.
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
        """Return a name and its s-op; if ``name`` is None, return the last s-op of the program."""
        sops = {n: value for n, value in self.programs().items() if isinstance(value, SOp)}
        if name is not None and name not in sops:
            known = ", ".join(sops) or "none"
            raise InputError(f"expected the name of an s-op of the program ({known}), got {name!r}")
        if not sops:
            raise InputError(self.why_no_sop())
        name = name if name is not None else list(sops)[-1]
        return name, sops[name]

    def require_input(self, tokens: Sequence[Any]) -> None:
        """Raise an error if ``tokens`` is not an input of a program in C-RASP, B-RASP or LTL."""
        if self._recogniser is not None:
            require_symbols(self._recogniser.dialect, tokens)
            require_end(self._recogniser, tokens)

    def run(self, value: SOp, tokens: Sequence[Any]) -> list[Any]:
        """Run an s-op of the program on another input, within the limits of the session."""
        self.session.budget.begin_text()
        self.session.budget.begin_statement()
        self.require_input(tokens)
        return list(self.session.run_program(value, tokens))

    def why_no_sop(self) -> str:
        """Return an error message for a program without s-ops, with advice."""
        shown = [s.result.kind for s in self.statements if s.result.kind in _NO_SOP]
        if not shown:
            return "there is no s-op yet; try reverse = aggregate(flip, tokens);"
        return f"there is no s-op yet: {_NO_SOP[shown[-1]]}"

    # Links ----------------------------------------------------------------------------------------

    def statements_of(self, nodes: Iterable[Node]) -> list[int]:
        """Return the numbers of the statements that first built one of ``nodes``.

        Statements with one of ``nodes`` as their value are included.
        """
        statements: set[int] = set()
        for node in nodes:
            statements |= self._valued.get(node, set())
            if node in self.owner:
                statements.add(self.owner[node])
        return sorted(statements)


def _is_still(now: Any, built: SOp | Selector, exactly: bool) -> bool:
    """Return whether ``now``, the current value of a name, is an s-op or a selector.

    With ``exactly``, it must also be the same node as ``built``.
    """
    if not isinstance(now, (SOp, Selector)):
        return False
    return not exactly or now.node is built.node


def same_tokens(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Return whether two inputs are equal, where 1, 1.0 and true are different tokens."""
    return list(map(identity, one)) == list(map(identity, other))


def described(statement: Statement, tokens: Sequence[Any]) -> dict[str, Any]:
    """Return a statement as a JSON-compatible dictionary, with values formatted as in the REPL.

    ``input`` is present if the statement was run on an input other than ``tokens``. ``parts`` contains
    the values of a loop or of several assigned names.
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
    """Return the text that the editor shows next to the statement."""
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
