"""A session: RASP statements in, one result per statement out.

The REPL, the command line, notebooks and pages all use this. A session has names, a running
example for s-ops and one for selectors, and switches for what is shown. Building a program never
depends on the example; only what is shown is run on it, and each part of it once.

>>> session = Session(example="hello")
>>> for result in session.execute("x = indices + 1; select(tokens, tokens, ==);"):
...     print(result.kind, result.name, result.values or result.matrix)
s-op x [1, 2, 3, 4, 5]
selector out [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from lark import Token, Tree

from locum.errors import LocumError
from locum.graph import Node
from locum.language import echo
from locum.language.handles import Selector, SOp
from locum.language.rasp.binding import bind
from locum.language.rasp.builtins import BASE, EXTENSIONS, base_scope
from locum.language.rasp.examples import Examples
from locum.language.rasp.interpreter import Interpreter
from locum.language.rasp.limits import Limits
from locum.language.rasp.mistakes import LimitError, RaspError, from_execution
from locum.language.rasp.reader import Statement, read, unfinished
from locum.language.rasp.results import Result, error_result
from locum.language.rasp.scope import Scope
from locum.language.rasp.values import Function, Value, words_for

#: Draws a program on an input and says where the picture is.
Drawer = Callable[[SOp, str, Any], Path]


class Session:
    """Names, examples and switches that last from one statement to the next."""

    def __init__(
        self,
        example: Any = "hello",
        *,
        limits: Limits | None = None,
        folders: Sequence[Path | str] = (".",),
        drawer: Drawer | None = None,
    ) -> None:
        self.limits = limits or Limits()
        #: Where ``load`` looks, in this order.
        self.folders = [Path(folder) for folder in folders]
        self.drawer = drawer
        self.examples = Examples(example, self.limits, self.names_of_nodes)
        self.finished = False
        self._interpreter = Interpreter(self.limits, self._load, self._draw, self._apply)
        #: What a statement has to say beside its value.
        self._notes: list[str] = []
        self._loading: list[Path] = []
        self._library = self._library_scope()
        self.scope = self._new_scope()

    # Running statements -------------------------------------------------------------------------

    def execute(self, text: str) -> list[Result]:
        """Run every statement of ``text``; one that fails leaves the others alone."""
        if not isinstance(text, str):
            raise LocumError(f"a session executes text, not {type(text).__name__}")
        self._interpreter.text = text
        reading = read(text, self.limits)
        lines = text.split("\n")
        results = []
        for statement in reading.statements:
            results.append(self._run(statement, lines))
            if self.finished:
                return results
        if reading.rest:
            results.append(error_result(unfinished(reading.rest, text)))
        return results

    def is_complete(self, text: str) -> bool:
        """Whether a REPL can run ``text`` as it is, or must ask for more of it."""
        return not read(text, self.limits).rest

    def define(self, text: str) -> None:
        """Run a program for its names alone: nothing is shown or run on the example.

        The first error is raised.
        """
        for _ in self._statements(text, self.scope):
            pass

    def script(self, text: str) -> list[tuple[str, Value]]:
        """Run a program as a script: names and values of what stands alone as an expression.

        The first error is raised.
        """
        return [(name, value) for name, value in self._statements(text, self.scope) if name]

    def value_of(self, name: str) -> Value:
        """The value of a name; of a function without parameters, what it returns."""
        value = self.scope.get(name)
        if isinstance(value, Function) and not value.parameters:
            statement = read(f"{name}();", self.limits).statements[0]
            return self._interpreter.evaluate(_inner(statement.tree), self.scope)
        return value

    def get(self, name: str) -> Value:
        """The value of a name, as the program would see it."""
        return self.scope.get(name)

    def names(self) -> dict[str, Value]:
        """All names that can be used now, the language's own included."""
        return {n: v for scope in reversed(list(self.scope.chain())) for n, v in scope.names.items()}

    def _run(self, statement: Statement, lines: list[str]) -> Result:
        if statement.error is not None:
            return error_result(statement.error)
        assert statement.tree is not None
        self._notes = []
        self.examples.fresh_page()
        tree = _inner(statement.tree)
        try:
            return getattr(self, f"_run_{tree.data}", self._run_quietly)(tree)
        except LocumError as problem:
            error = from_execution(problem)
            if not isinstance(problem, LimitError):
                error = self._first_error(tree) or error
        return error_result(_with_source(error, lines, statement.line))

    def _first_error(self, tree: Any) -> RaspError | None:
        """The error RASP would report for a statement that failed.

        RASP runs every part of a statement on the example as soon as it is built, and so may stop at
        another mistake than we do. A statement that failed is run again that way, for its error alone.
        """
        if tree.data not in ("show", "assign"):
            return None
        before = dict(self.scope.names)
        self._interpreter.watch = lambda program: self.examples.on_example(program.node)
        try:
            self._interpreter.evaluate(tree, self.scope)
        except LocumError as problem:
            return from_execution(problem)
        finally:
            self._interpreter.watch = None
            self.scope.names = before
        return None

    def _run_show(self, tree: Any) -> Result:
        value = self._interpreter.evaluate(tree, self.scope)
        return self.examples.result(value, _name_shown(tree))

    def _run_assign(self, tree: Any) -> Result:
        names = [str(name) for name in tree.children[0].children]
        value = self._interpreter.evaluate(tree.children[1], self.scope)
        assigned = bind(names, value)
        # Shown before it is set: what has no value on the example is refused, as in RASP.
        results = [self.examples.result(part, name) for name, part in assigned]
        self.scope.assign(assigned)
        self.scope.remember(value if len(tree.children[1].children) == 1 else value[-1])
        if len(results) == 1:
            return results[0]
        printed = "".join(result.printed for result in results)
        return Result("multi", printed, items=[result.to_dict() for result in results])

    def _run_define(self, tree: Any) -> Result:
        self._interpreter.evaluate(tree, self.scope)
        function = self.scope.get(str(tree.children[0]))
        return self.examples.result(function, function.name)

    def _run_loop(self, tree: Any) -> Result:
        before = dict(self.scope.names)
        self._interpreter.evaluate(tree, self.scope)
        # What a loop leaves behind must have a value on the example, like any assignment.
        for name, value in list(self.scope.names.items()):
            if isinstance(value, (SOp, Selector)) and before.get(name) is not value:
                self.examples.on_example(value.node)
        return Result("none")

    def _run_quietly(self, tree: Any) -> Result:
        self._interpreter.evaluate(tree, self.scope)
        return Result("none", "".join(self._notes))

    def _run_set_example(self, tree: Any) -> Result:
        kind, expression = tree.children
        given = self._interpreter.evaluate(expression, self.scope)
        if not isinstance(given, (str, list, dict)):
            raise RaspError("type", f"example not iterable: {words_for(given)}")
        self.scope.remember(given)
        self.examples.use(kind, given if isinstance(given, str) else list(given))
        return Result("none")

    def _run_show_example(self, tree: Any) -> Result:
        return Result("none", self.examples.described(tree.children[0]))

    def _run_switch_examples(self, tree: Any) -> Result:
        self.examples.switch(tree.children[0], str(tree.children[1]) == "on")
        return Result("none")

    def _run_switch_display(self, tree: Any) -> Result:
        self.examples.full_display = str(tree.children[-1]) == "on"
        return Result("none")

    def _run_leave(self, tree: Any) -> Result:
        self.finished = True
        return Result("exit")

    def names_of_nodes(self) -> dict[Node, str]:
        """What errors call nodes: the program's own names."""
        return {
            value.node: name
            for name, value in self.scope.names.items()
            if isinstance(value, (SOp, Selector)) and value.node.inputs and name != "out"
        }

    # What the interpreter asks for --------------------------------------------------------------

    def _apply(self, program: SOp | Selector, given: Any) -> Any:
        return self.examples.evaluate(program.node, given)

    def _draw(self, program: SOp, given: Any) -> None:
        tokens = self.examples.tokens["s-op"] if given is None else given
        if not isinstance(tokens, (str, list)) or not tokens:
            raise RaspError("type", "draw needs a non-empty string or list to draw the program on")
        value = self._apply(program, tokens)
        if self.drawer is None:
            raise RaspError("draw", "this session cannot draw; `locum draw` and the REPL can")
        names = self.names_of_nodes()
        path = self.drawer(program, names.get(program.node, echo.auto_name(program.node)), tokens)
        self._notes.append(f"{echo.applied_block(tokens, value, False)}\t drawn in {path}\n")

    def _load(self, name: str, scope: Scope) -> None:
        """Run a file among the library's names alone, and take over what it defines."""
        found = [(folder / f"{name}.rasp").resolve() for folder in self.folders]
        path = next((path for path in found if path.is_file()), None)
        if path is None:
            raise RaspError("load", f"could not find file: {name}.rasp")
        if path in self._loading:
            raise RaspError("load", f"{name}.rasp loads itself")
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise RaspError("load", f"cannot read file {name}.rasp: {error}") from None
        inner = self._new_scope()
        outer = self._interpreter
        origin = path.stem
        self._interpreter = Interpreter(self.limits, self._load, self._draw, self._apply, origin)
        self._loading.append(path)
        try:
            for _ in self._statements(text, inner):
                pass
        except RaspError as error:
            place = "" if error.line is None else f" (line {error.line}, column {error.column})"
            raise RaspError(error.category, f"in {name}.rasp{place}: {error.message}") from None
        finally:
            self._interpreter = outer
            self._loading.pop()
        loaded = {n: v for n, v in inner.names.items() if not n.startswith("_") and n != "out"}
        self._notes += [self.examples.quietly(value, new) for new, value in loaded.items()]
        scope.names.update(loaded)

    def _statements(self, text: str, scope: Scope) -> Iterator[tuple[str, Value]]:
        """Run statements one by one without showing anything.

        Gives the name and value of each expression that stands alone (name "" for others).
        """
        self._interpreter.text = text
        reading, lines = read(text, self.limits), text.split("\n")
        for statement in _checked(reading.statements):
            tree = _inner(statement.tree)
            command = tree.data not in ("show", "assign", "define", "loop", "load", "draw")
            try:
                if command:
                    getattr(self, f"_run_{tree.data}")(tree)
                    value, name = None, ""
                else:
                    value, name = self._interpreter.evaluate(tree, scope), ""
                if tree.data == "show":
                    name = _name_shown(tree)
            except LocumError as problem:
                raise _with_source(from_execution(problem), lines, statement.line) from None
            yield name, value
            if self.finished:
                return
        if reading.rest:
            raise unfinished(reading.rest, text)

    # Scopes -------------------------------------------------------------------------------------

    def _library_scope(self) -> Scope:
        """The base names, and in a scope above them what ``library.rasp`` defines."""
        scope = Scope(base_scope())
        for statement in library():
            self._interpreter.evaluate(_inner(statement.tree), scope)
        return scope

    def _new_scope(self) -> Scope:
        """A scope for a program: it may set ``tokens`` and extensions, not the library's names."""
        known = {name for scope in self._library.chain() for name in scope.names}
        reserved = (known | BASE) - {"tokens", *EXTENSIONS}
        return Scope(self._library, frozenset(reserved), remembers=True)


@cache
def library() -> tuple[Statement, ...]:
    """The statements of the standard library, read once."""
    text = resources.files("locum.language.rasp").joinpath("library.rasp").read_text(encoding="utf-8")
    return tuple(_checked(read(text, Limits()).statements))


def _checked(statements: list[Statement]) -> Iterator[Statement]:
    for statement in statements:
        if statement.error is not None:
            raise statement.error
        yield statement


def _inner(tree: Tree[Token] | None) -> Any:
    assert tree is not None
    return tree.children[0]


def _name_shown(tree: Any) -> str:
    """An expression that is just a name is shown under it; any other is ``out``."""
    expression = tree.children[0]
    return str(expression.children[0]) if expression.data == "name" else "out"


def _with_source(error: RaspError, lines: list[str], line: int) -> RaspError:
    """The error with its line of the program (that of the statement, if nothing nearer is known)."""
    number = error.line or line
    source = lines[number - 1] if number <= len(lines) else ""
    column = error.column or 1 + len(source) - len(source.lstrip())
    return RaspError(error.category, error.message, number, column, source, error.width)
