"""Load the program of a command: RASP, another dialect, JSON, or a listing or example by name.

The suffix of a file determines its language: .crasp or .cr, .brasp, .ltl, .fo, or .json for a graph.
Other files, such as .rasp files, contain RASP.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from locum.errors import InputError, LimitError, LocumError
from locum.files import read_text
from locum.graph import Node, loads
from locum.interface.cli.options import read_input
from locum.rasp.handles import Selector, SOp, wrap

if TYPE_CHECKING:
    from locum.languages.recogniser import Recogniser
    from locum.rasp import Session

#: Maximum size of a program file in bytes. RASP text has a separate limit in characters.
LIMIT = 2**26
#: Suffixes of programs that accept words.
DIALECTS = (".crasp", ".cr", ".brasp", ".ltl", ".fo")


class Program:
    """A loaded program with its input ``tokens``.

    By default, the input is the example that the program sets, or ``hello``.
    """

    def __init__(self, path: Path, tokens: Any = None) -> None:
        self.path = path
        #: Whether the input is the example of the program. Runs on it have the limits of a session.
        self.runs_on_own_example = tokens is None
        self.session: Session | None = None
        #: Values of nodes on the example of the program.
        self._values: dict[Node, Any] = {}
        #: Names and values of the program's expression statements.
        self.shown: list[tuple[str, Any]] = []
        self._names: dict[Node, str] = {}
        self._load("hello" if tokens is None else tokens)
        if tokens is None:
            tokens = "hello" if self.session is None else self.session.examples.tokens["s-op"]
        self.tokens = tokens

    def _load(self, example: Any) -> None:
        from locum.rasp import RaspError, Session

        text = _source(self.path)
        if self.path.suffix == ".json":
            self.shown = [(self.path.stem, wrap(loads(text)))]
            return
        self.session = Session(example, folders=(Path.cwd(), self.path.parent))
        try:
            self.shown = self.session.script(text)
        except RaspError as error:
            message = f"{self.path}, {error.pretty()}"
            raise RaspError(error.category, message, error.line, error.column) from None

    def value(self, name: str | None) -> tuple[str, Any]:
        """Return a name and its value, by default the last expression statement of the program.

        For a program without expression statements, the default is the last assigned name, whose value
        must be an s-op or a selector.
        """
        if name is not None and self.session is not None:
            return name, self.session.value_of(name)
        if name is not None:
            named = dict(self.shown)
            if name not in named:
                raise InputError(f"{self.path}: expected a name ({', '.join(named)}), got {name}")
            return name, named[name]
        if self.shown:
            return self.shown[-1]
        last = self.session.last_assigned if self.session is not None else None
        if last is not None and self.session is not None:
            value = self.session.get(last)
            if isinstance(value, (SOp, Selector)):
                return last, value
        raise InputError(
            f"expected a program that shows or defines an s-op, got {self.path}; try --name"
        )

    def program(self, name: str | None) -> tuple[str, SOp | Selector]:
        """Return a name and its s-op or selector, by default as in :meth:`value`."""
        name, value = self.value(name)
        if not isinstance(value, (SOp, Selector)):
            from locum.rasp.text.machine import words_for

            raise InputError(f"{name}: expected an s-op or a selector, got {words_for(value)}")
        return name, value

    def sop(self, name: str | None) -> tuple[str, SOp]:
        """Return a name and its s-op, by default as in :meth:`value`."""
        name, value = self.program(name)
        if not isinstance(value, SOp):
            raise InputError(f"{name}: expected an s-op, got a selector; try to aggregate over it")
        return name, value

    def run(self, value: SOp | Selector, executor: str, domain: str) -> Any:
        """Run an s-op or selector on the input.

        A program can set an example of any size. Dense execution on this example therefore has the
        limits of a session. An input given by the user has no limits.
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
        """Return a mapping from the nodes of the program to their names."""
        return self.session.names_of_nodes() if self.session is not None else dict(self._names)

    def named(self) -> dict[str, Any]:
        """Return a mapping from names to the values that the program assigns or shows."""
        named = {} if self.session is None else dict(self.session.scope.names)
        named.pop("out", None)
        return named | dict(self.shown)


class DialectProgram(Program):
    """A C-RASP or B-RASP program, or an LTL or first-order formula, with a word as its input.

    ``shown`` contains the definitions of the program; of equal definitions, only the first.
    """

    recogniser: Recogniser
    #: The position of the answer: "first", "last" or "end".
    accept: str

    def __init__(
        self, path: Path, word: str | None, alphabet: list[str] | None, *, needs_word: bool
    ) -> None:
        self._alphabet = alphabet
        super().__init__(path, ())
        if word is None and needs_word:
            raise InputError(f"{path}: expected a word, got none; try --input WORD")
        self.tokens = self.recogniser.tokens(read_word(word)) if word is not None else ()

    def _load(self, example: Any) -> None:
        from locum.languages.b_rasp import from_ltl
        from locum.languages.named_languages import read

        language = read(self.path, alphabet=self._alphabet)
        if language.program is not None:
            self.recogniser, self.accept = language.program, language.program.accept
        else:
            assert language.ltl is not None
            # The program is true where the formula holds; the first or last value is the verdict.
            everywhere = from_ltl(replace(language.ltl, at="last")).recogniser()
            names = {everywhere.sop.node: self.path.stem}
            self.recogniser = replace(everywhere, dialect="LTL", names=names)
            self.accept = language.ltl.at
        root, self._names = self.recogniser.sop.node, dict(self.recogniser.names)
        others = [(name, wrap(node)) for node, name in self._names.items() if node is not root]
        self.shown = [*others, (self._names.get(root, "accepted"), self.recogniser.sop)]

    def accepted(self, values: list[Any]) -> bool:
        """Return whether the word is accepted, given the values of the last definition."""
        return bool(values[0 if self.accept == "first" else -1])


def load_program(
    path: Path, input_text: str | None = None, alphabet: str | None = None, *, needs_word: bool = False
) -> Program:
    """Load a program in the language of its suffix, with its input in command-line syntax."""
    if path.suffix in DIALECTS:
        return DialectProgram(path, input_text, split_alphabet(alphabet), needs_word=needs_word)
    if alphabet is not None:
        expected = ", ".join(DIALECTS)
        raise InputError(f"--alphabet: expected a program with the suffix {expected}, got {path}")
    return Program(path, read_input(input_text))


def split_alphabet(text: str | None) -> list[str] | None:
    """Return the symbols of an alphabet: single characters, or comma-separated strings.

    The result is None if ``text`` is None.
    """
    if text is None:
        return None
    return [part for part in (text.split(",") if "," in text else text) if part.strip()]


def read_word(text: str) -> list[str]:
    """Return the symbols of a word: its characters, or the strings of a JSON list.

    >>> read_word("0110"), read_word('["a", "bc"]')
    (['0', '1', '1', '0'], ['a', 'bc'])
    """
    try:
        word = json.loads(text) if text.startswith(("[", '"')) else text
    except (ValueError, RecursionError):
        word = text
    if isinstance(word, str) or (isinstance(word, list) and all(isinstance(s, str) for s in word)):
        return list(word)
    raise InputError(
        f"--input: expected a word, got {text[:40]!r}; try abba, or a JSON list of strings"
    )


def _source(path: Path) -> str:
    """Return the text of a program file, or of the listing or example with this name."""
    from locum.paper import listings

    if path.is_file() or path.suffix or path.name != str(path):
        return read_text(path, LIMIT)
    if path.name in listings.names():
        return listings.text(path.name)
    # Imported here, because the import takes longer than running most programs.
    from locum.interface.playground.example_programs import (
        program_names,
        program_text,
    )

    if path.name in program_names():
        return program_text(path.name)
    try:
        return read_text(path, LIMIT)
    except InputError as error:
        names, programs = ", ".join(listings.names()), ", ".join(program_names())
        raise InputError(
            f"{error}; the paper's listings are {names}; the example programs are {programs}"
        ) from None
