"""Read the program of a command: RASP text, a graph as JSON, a listing or an example by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from locum.errors import InputError, LimitError, LocumError
from locum.files import read_text
from locum.graph import Node, loads
from locum.language.handles import Selector, SOp, wrap

if TYPE_CHECKING:
    from locum.language import Session

#: The most bytes of a program's file. RASP text has a limit of its own, in characters.
LIMIT = 2**26


class Program:
    """A program and the input it is run on: ``tokens``, or else the program's own example."""

    def __init__(self, path: Path, tokens: Any = None) -> None:
        self.path = path
        #: Whether the input is the program's own: then it is limited, as everything of a program is.
        self.runs_on_own_example = tokens is None
        self.session: Session | None = None
        #: Values on the program's own example.
        self._values: dict[Node, Any] = {}
        #: What the program shows: names and values of its expressions.
        self.shown: list[tuple[str, Any]] = []
        text = _source(path)
        if path.suffix == ".json":
            self.shown = [(path.stem, wrap(loads(text)))]
        else:
            self._run(text, "hello" if tokens is None else tokens)
        if tokens is None:
            tokens = "hello" if self.session is None else self.session.examples.tokens["s-op"]
        self.tokens = tokens

    def _run(self, text: str, example: Any) -> None:
        from locum.language import RaspError, Session

        self.session = Session(example, folders=(Path.cwd(), self.path.parent))
        try:
            self.shown = self.session.script(text)
        except RaspError as error:
            raise LocumError(f"{self.path}, {error.pretty()}") from None

    def value(self, name: str | None) -> tuple[str, Any]:
        """Return a name and its value: the one asked for, or the last that the program shows.

        A program that shows nothing has the s-op or selector that it assigned last.
        """
        if name is not None and self.session is not None:
            return name, self.session.value_of(name)
        if name is not None and name != self.shown[0][0]:
            raise InputError(f"{self.path}: expected the name {self.shown[0][0]}, got {name}")
        if self.shown:
            return self.shown[-1]
        last = self.session.last_assigned if self.session is not None else None
        if last is not None and self.session is not None:
            value = self.session.get(last)
            if isinstance(value, (SOp, Selector)):
                return last, value
        raise InputError(
            f"{self.path} shows nothing; try to end it with an expression, or name an s-op "
            "(--name; for run: --show)"
        )

    def program(self, name: str | None) -> tuple[str, SOp | Selector]:
        """Return a name and the s-op or selector of that name."""
        name, value = self.value(name)
        if not isinstance(value, (SOp, Selector)):
            from locum.language.rasp.values import words_for

            raise InputError(f"{name}: expected an s-op or a selector, got {words_for(value)}")
        return name, value

    def sop(self, name: str | None) -> tuple[str, SOp]:
        """Return a name and the s-op of that name."""
        name, value = self.program(name)
        if not isinstance(value, SOp):
            raise InputError(f"{name}: expected an s-op, got a selector; try to aggregate over it")
        return name, value

    def run(self, value: SOp | Selector, executor: str, domain: str) -> Any:
        """Run an s-op or selector on the input.

        A program with an example of its own could ask for any amount of work: on that, dense execution
        has to stay within the limits of a session. An input of the user's has no limits.
        """
        from locum.execution import run

        if self.session is not None and self.runs_on_own_example:
            try:
                if value.node not in self._values:
                    self.session.budget.begin_statement()
                    self._values[value.node] = self.session.run_program(value, self.tokens)
                if (executor, domain) == ("dense", "float"):
                    return self._values[value.node]
            except LimitError as error:
                raise LimitError(f"{error}; try --input, for which there is no limit") from None
            except LocumError:
                if (executor, domain) == ("dense", "float"):
                    raise
        return run(value.node, self.tokens, names=self.names(), executor=executor, domain=domain)

    def names(self) -> dict[Node, str]:
        """Return the program's own names for nodes."""
        return self.session.names_of_nodes() if self.session is not None else {}


def known() -> list[str]:
    """List the names of the listings and examples."""
    from locum.paper import listings
    from locum.playground.examples import program_names

    return sorted({*listings.names(), *program_names()})


def _source(path: Path) -> str:
    """Read a file, or the listing or example of that name if there is no such file."""
    from locum.paper import listings

    if path.is_file() or path.suffix or path.name != str(path):
        return read_text(path, LIMIT)
    if path.name in listings.names():
        return listings.text(path.name)
    from locum.playground.examples import program_names, program_text  # takes longer than to run most

    if path.name in program_names():
        return program_text(path.name)
    try:
        return read_text(path, LIMIT)
    except InputError as error:
        names, programs = ", ".join(listings.names()), ", ".join(program_names())
        raise InputError(
            f"{error}; the paper's listings are {names}; the example programs are {programs}"
        ) from None
