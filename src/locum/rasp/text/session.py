"""Run RASP statements in a session and return one result per statement.

The REPL, the command line, notebooks and the playground use sessions. A session contains the defined
names, an example input for s-ops, an example input for selectors, and display switches. Building a
program does not depend on the examples. Results are computed on an example, and each part of a program
is normally computed once per example.

>>> session = Session(example="hello")
>>> for result in session.execute("x = indices + 1; select(tokens, tokens, ==);"):
...     print(result.kind, result.name, result.values or result.matrix)
s-op x [1, 2, 3, 4, 5]
selector out [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from locum.errors import LimitError, LocumError
from locum.graph import Node, postorder
from locum.graph.architecture import architecture
from locum.rasp import echo
from locum.rasp.handles import Selector, SOp
from locum.rasp.text import file_loading
from locum.rasp.text.builtins import LIBRARY, library_scope, program_scope
from locum.rasp.text.interpreter import RULES
from locum.rasp.text.limits import Limits
from locum.rasp.text.literal_rules import bind, name_shown
from locum.rasp.text.machine import Function, Machine, Scope, Syntax, Value, locate
from locum.rasp.text.memory import Census
from locum.rasp.text.mistakes import RaspError, cut, from_execution
from locum.rasp.text.naming import Names
from locum.rasp.text.reader import Reader, Statement, read
from locum.rasp.text.results import Result, error_result
from locum.rasp.text.session_examples import COMMANDS, Examples

#: A function that draws a program on an input and returns the path of the picture.
Drawer = Callable[[SOp, str, Any], Path]

#: Steps of any statement, of a failed statement, and of loading a file.
_STATEMENT, _FAILURE, _FILE = 6, 30, 100
#: Steps of any picture, of counting the heads of each node, and of each pair of heads.
_PICTURE, _COUNTED_NODE, _PAIRS_OF_HEADS = 400, 2, 40
#: Number of characters of a file read in one step.
_CHARACTERS_PER_STEP = 500


class Session:
    """An interpreter for RASP text, whose names, examples and switches persist between statements."""

    def __init__(
        self,
        example: Any = "hello",
        *,
        limits: Limits | None = None,
        folders: Sequence[Path | str] = (".",),
        drawer: Drawer | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.budget = self.limits.budget()
        #: Folders searched by ``load``, in order.
        self.folders = [Path(folder) for folder in folders]
        self.drawer = drawer
        self.display_names = Names()
        self.examples = Examples(
            example, self.limits, self.budget, self.display_names, self.names_of_nodes
        )
        #: Whether a statement has requested an exit, and whether the text has used all its steps.
        self.finished = self.exhausted = False
        self._machine = self._new_machine(LIBRARY)
        self._reader = Reader(self.limits, self.budget)
        self._census = Census(self.limits, self.budget)
        #: The text last read by :meth:`is_complete`, with its statements.
        self._read_ahead: tuple[str, list[Statement]] | None = None
        #: Notes that a statement displays in addition to its value.
        self._notes: list[str] = []
        #: The name in the last assignment of programs run by :meth:`script` or :meth:`define`, or None.
        self.last_assigned: str | None = None
        self._listed: list[tuple[str, str]] = []
        self._loading: list[Path] = []
        self._library = library_scope(self._machine, self.display_names)
        self._machine = self._new_machine("console")
        self.scope = program_scope(self._library)
        self.budget.memory = 0
        self._begin_text()

    # Running statements -------------------------------------------------------------------------

    def execute(self, text: str) -> list[Result]:
        """Run the statements of ``text`` and return the results.

        The statements after a failed statement are normally also run. The run ends at an ``exit``
        statement, or when the text has used all its steps.
        """
        if not isinstance(text, str):
            raise LocumError(f"expected a string of RASP, got {type(text).__name__}")
        self._begin_text()
        return list(self._results(self._statements_of(text)))

    def feed(self, lines: str) -> list[Result]:
        """Run the statements that end in these further lines of a text.

        After the last line, :meth:`end` runs the remaining statement.
        """
        return list(self.feeding(lines))

    def feeding(self, lines: str) -> Iterator[Result]:
        """Yield the results of :meth:`feed`; each statement is run when its result is requested."""
        return self._results(self._reader.feed(lines))

    def end(self) -> list[Result]:
        """Run the last statement of the lines passed to :meth:`feed`, or return its error if it is
        incomplete.
        """
        return list(self._results(self._reader.end()))

    @property
    def waiting(self) -> bool:
        """Whether the lines passed to :meth:`feed` end within a statement."""
        return self._reader.waiting

    def is_complete(self, text: str) -> bool:
        """Return False if ``text`` ends within a statement, so that a REPL must read further lines."""
        reader = Reader(self.limits, self.limits.budget())
        try:
            self._read_ahead = text, list(reader.feed(text))
        except LimitError:
            return True  # running it reports the error
        return not reader.waiting

    def define(self, text: str) -> None:
        """Run a program only to define its names, without displaying values.

        The first error is raised.
        """
        self.script(text)

    def script(self, text: str) -> list[tuple[str, Value]]:
        """Run a program as a script, and return the name and value of each expression statement at
        top level.

        The first error is raised.
        """
        self._begin_text()
        return [(name, value) for name, value in self._quietly(text, self.scope) if name]

    def value_of(self, name: str) -> Value:
        """Return the value of a name; a function without parameters is called."""
        value = self.get(name)
        if isinstance(value, Function) and not value.parameters:
            (statement,) = read(f"{name}();", self.limits)
            self._begin(statement)
            return self._machine.evaluate(statement.inner, self.scope)
        return value

    def get(self, name: str) -> Value:
        """Return the value of a name in the scope of the program."""
        return self.scope.get(name, self.limits.budget())

    def names(self) -> dict[str, Value]:
        """Return all defined names with their values, including the names of the language."""
        return {n: v for scope in reversed(list(self.scope.chain())) for n, v in scope.names.items()}

    def names_of_nodes(self) -> dict[Node, str]:
        """Return the names that the program assigned to nodes with inputs, for errors and drawings."""
        return {
            value.node: name
            for name, value in self.scope.names.items()
            if isinstance(value, (SOp, Selector)) and value.node.inputs and name != "out"
        }

    def _statements_of(self, text: str) -> Iterator[Statement]:
        if self._read_ahead is not None and self._read_ahead[0] == text:
            statements, self._read_ahead = self._read_ahead[1], None
            return iter(statements)
        return read(text, self.limits, self.budget)

    def _results(self, statements: Iterable[Statement]) -> Iterator[Result]:
        """Run statements and yield their results, until an exit or until all steps are used."""
        try:
            for statement in statements:
                yield self._result(statement)
                if self.finished:
                    return
        except LimitError as problem:
            self.exhausted = True
            yield error_result(from_execution(problem).located(1, 1, 1))

    def _result(self, statement: Statement) -> Result:
        if statement.error is not None:
            return error_result(statement.error)
        tree = statement.inner
        try:
            self._begin(statement)
            return _RUN.get(tree.data, Session._run_quietly)(self, tree)
        except LocumError as problem:
            error = locate(from_execution(problem), tree)
        except MemoryError:
            self.examples.forget()
            error = RaspError("runtime:MemoryError", "not enough memory to run this statement")
        self.budget.spend_on_text(_FAILURE)
        return error_result(statement.located(error))

    def _begin_text(self) -> None:
        self.budget.begin_text()
        self.exhausted = False
        self._census.begin_text()

    def _begin(self, statement: Statement) -> None:
        self._notes, self._listed = [], []
        self._machine.source = statement.source
        self.examples.fresh_page()
        self.budget.begin_statement()
        self.budget.spend(_STATEMENT)
        if self._census.is_due:
            self.examples.forget()
            self._census.count(self.scope)

    def _run_show(self, tree: Syntax) -> Result:
        value = self._machine.evaluate(tree, self.scope)
        return self.examples.result(value, name_shown(tree))

    def _run_assign(self, tree: Syntax) -> Result:
        names = [str(name) for name in tree.children[0].children]
        value = self._machine.evaluate(tree.children[1], self.scope)
        assigned = bind(names, value)
        # Display before assigning: a value that fails on the example is an error, as in RASP.
        results = [self.examples.result(part, name) for name, part in assigned]
        for name, part in assigned:
            self.scope.set(name, part)
            self.display_names.give(part, name)
        self.scope.remember(value if len(tree.children[1].children) == 1 else value[-1])
        if len(results) == 1:
            return results[0]
        text = "".join(result.printed for result in results)
        return Result("multi", text, items=[result.to_dict() for result in results])

    def _run_define(self, tree: Syntax) -> Result:
        self._machine.evaluate(tree, self.scope)
        function = self.get(str(tree.children[0]))
        return self.examples.result(function, function.name)

    def _run_loop(self, tree: Syntax) -> Result:
        """Run a loop; afterwards, s-ops and selectors that it assigned must have values on the example,
        as in an assignment.

        If one of them has no value, the loop assigns nothing.
        """
        before = dict(self.scope.names)
        self._machine.evaluate(tree, self.scope)
        try:
            for name, value in self.scope.names.items():
                if isinstance(value, (SOp, Selector)) and before.get(name) is not value:
                    self.examples.on_example(value.node)
        except LocumError:
            self.scope.names = before
            raise
        return Result("none")

    def _run_quietly(self, tree: Syntax) -> Result:
        self._machine.evaluate(tree, self.scope)
        return Result("none", "".join(self._notes))

    def _run_command(self, tree: Syntax) -> Result:
        return COMMANDS[tree.data](self, tree, self.scope, self._machine)

    # Operations that the machine calls ----------------------------------------------------------

    def run_program(self, program: SOp | Selector, tokens: Any) -> Any:
        """Run a program on an input, within the limits."""
        return self.examples.evaluate(program.node, tokens)

    def draw_program(self, program: SOp, tokens: Any) -> None:
        """Draw a program on ``tokens``, or on the current example if ``tokens`` is None."""
        tokens = self.examples.tokens["s-op"] if tokens is None else tokens
        if not isinstance(tokens, (str, list)) or not tokens:
            raise RaspError("type", "draw: expected a non-empty string or list to draw the program on")
        value = self.run_program(program, tokens)
        if self.drawer is None:
            raise RaspError("draw", "this session cannot draw; `locum run --draw` and the REPL can")
        self.budget.spend(_PICTURE + _COUNTED_NODE * sum(1 for _ in postorder(program.node)))
        heads = sum(architecture(program.node).heads)
        self.budget.spend(heads * (_PAIRS_OF_HEADS * heads + len(tokens) ** 2 / 3))
        names = self.names_of_nodes()
        name = names.get(program.node, self.display_names.of(program.node))
        path = self.drawer(program, name, tokens)
        self._notes.append(f"{echo.applied_block(tokens, value, False)}\t drawn in {path}\n")

    def load_file(self, name: str, scope: Scope) -> None:
        """Run a file in a scope that contains only the library, and copy its definitions into
        ``scope``.

        Names that begin with an underscore are not copied.
        """
        self.budget.spend(_FILE)
        path = file_loading.find(name, self.folders)
        if path in self._loading:
            raise RaspError("load", f"{cut(name)}.rasp loads itself")
        if len(self._loading) >= self.limits.loads:
            raise LimitError(
                f"expected at most {self.limits.loads} nested loads of files, got more", "too deep"
            )
        text = file_loading.read(path, name, self.limits.text)
        self.budget.spend(len(text) / _CHARACTERS_PER_STEP)
        scope_of_file = program_scope(self._library)
        outer, self._machine = self._machine, self._new_machine(name)
        self._loading.append(path)
        try:
            for _ in self._quietly(text, scope_of_file):
                pass
        except RaspError as error:
            if error.file:  # a file loaded by this one
                raise error.reworded(error.message) from None
            place = "" if error.line is None else f" (line {error.line}, column {error.column})"
            raise error.reworded(f"in {cut(name)}.rasp{place}: {error.message}", name) from None
        finally:
            self._machine = outer
            self._loading.pop()
        scope.names.update(
            (n, v) for n, v in scope_of_file.names.items() if not n.startswith("_") and n != "out"
        )
        # A name that is assigned more than once is listed at its last place.
        last = {name: place for place, (name, _) in enumerate(self._listed)}
        self._notes += [self._listed[place][1] for place in sorted(last.values())]
        self._listed = []

    def _quietly(self, text: str, scope: Scope) -> Iterator[tuple[str, Value]]:
        """Run statements one by one without displaying anything.

        Yield the name and value of each expression statement at top level, and the name "" for any
        other statement at top level.
        """
        for statement in read(text, self.limits, self.budget):
            if statement.error is not None:
                raise statement.error
            tree, name, value = statement.inner, "", None
            if not self._loading:
                self._begin(statement)
            self._machine.source = statement.source
            try:
                if tree.data in COMMANDS:
                    COMMANDS[tree.data](self, tree, scope, self._machine)
                else:
                    value = self._machine.evaluate(tree, scope)
                if tree.data == "show":
                    name = name_shown(tree)
                elif tree.data == "assign" and not self._loading:
                    self.last_assigned = str(tree.children[0].children[-1])
                if self._loading:
                    self._list(tree, scope)
            except LocumError as problem:
                raise statement.located(from_execution(problem)) from None
            yield name, value
            if self.finished:
                return

    def _list(self, tree: Syntax, scope: Scope) -> None:
        """Record the names that a statement of a loaded file would display, without examples."""
        names: list[str] = []
        if tree.data == "assign":
            names = [str(name) for name in tree.children[0].children]
        elif tree.data == "define":
            names = [str(tree.children[0])]
        elif tree.data == "show" and tree.children[0].data == "name":
            names = [name_shown(tree)]
        for name in names:
            if not name.startswith("_") and name in scope.names:
                self._listed.append((name, self.examples.quietly(scope.names[name], name)))

    # Scopes -------------------------------------------------------------------------------------

    def _new_machine(self, origin: str) -> Machine:
        return Machine(RULES, self, self.limits, self.budget, self.display_names, origin)


#: Methods that run a statement at top level and return its result. The other statements are run by
#: :meth:`Session._run_quietly`.
_RUN: Mapping[str, Callable[[Session, Syntax], Result]] = MappingProxyType(
    {
        "show": Session._run_show,
        "assign": Session._run_assign,
        "define": Session._run_define,
        "loop": Session._run_loop,
        **dict.fromkeys(COMMANDS, Session._run_command),
    }
)
