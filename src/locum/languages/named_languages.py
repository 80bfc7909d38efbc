"""Read a language in whatever form it is written: expression, automaton, formula or program."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from locum.errors import InputError, LimitError
from locum.files import read_text
from locum.languages import b_rasp, c_rasp, regular
from locum.languages.automata import DFA, MAX_STATES, Letter
from locum.languages.ltl import FIRST, LTL
from locum.languages.recogniser import Recogniser

#: The forms, and the suffixes of their files.
FORMS = {
    "regex": (".regex",),
    "dfa": (".json", ".dfa"),
    "ltl": (".ltl",),
    "c-rasp": (".crasp", ".cr"),
    "b-rasp": (".brasp",),
}
#: The most bytes of a file.
LIMIT = 2**22


@dataclass(frozen=True)
class Language:
    """A language as it was written."""

    form: str
    text: str
    #: The minimal automaton; None for a C-RASP program, whose language may not be regular.
    automaton: DFA | None
    #: The program, where it is one.
    program: Recogniser | None = None
    ltl: LTL | None = None

    @property
    def alphabet(self) -> tuple[Letter, ...]:
        """Return the alphabet."""
        if self.automaton is not None:
            return self.automaton.alphabet
        assert self.program is not None
        return self.program.alphabet


#: What a language may be given as: its text or file, or what was made of it.
Source: TypeAlias = "str | Path | Language | DFA | LTL | Recogniser | b_rasp.Program"


def as_language(source: Source) -> Language:
    """Return a language in whatever form it comes; text is read as :func:`read` reads it."""
    match source:
        case Language():
            return source
        case DFA():
            return Language("dfa", "", source.minimal())
        case LTL():
            return Language("ltl", str(source), source.automaton(), ltl=source)
        case b_rasp.Program():
            formula = source.to_ltl()
            program = source.recogniser()
            return Language("b-rasp", str(source), formula.automaton(), program, formula)
        case Recogniser(dialect="C-RASP"):
            return Language("c-rasp", source.text, None, source)
        case str() | Path():
            return read(source)
        case _:
            raise InputError(
                "expected an expression, a file, an automaton, a formula or a program, got "
                f"{type(source).__name__}; a B-RASP program is compared as b_rasp.parse gives it"
            )


def read(
    source: str | Path,
    form: str | None = None,
    *,
    alphabet: Iterable[Letter] | None = None,
    plus: str = "union",
    at: str = FIRST,
    accept: str | None = None,
    positions: int | None = None,
) -> Language:
    """Read a language from a file, or from the text itself.

    ``form`` is one of :data:`FORMS`; without it, the suffix of the file says which, and a text that is
    no file is a regular expression. The other arguments are those of the form's own reader.
    """
    if form is not None and form not in FORMS:
        raise InputError(f"expected one of {', '.join(FORMS)} as the form, got {form!r}")
    text, form = _text(source, form)
    letters = None if alphabet is None else tuple(dict.fromkeys(alphabet))
    made: Source
    try:
        match form:
            case "regex":
                made = regular.language(text.strip(), letters, plus=plus)
            case "dfa":
                automaton = read_dfa(text)
                made = automaton.over(letters) if letters else automaton
            case "ltl":
                formula = LTL.parse(text, alphabet=letters, at=at)  # written out it may be too long
                return Language(form, text, formula.automaton(), ltl=formula)
            case "b-rasp":
                made = b_rasp.parse(text, alphabet=letters)
            case _:
                made = c_rasp.parse(text, alphabet=letters, accept=accept, positions=positions)
        return replace(as_language(made), form=form, text=text)
    except LimitError as error:
        raise LimitError(f"this language is too large to decide anything: {error}") from None


def _text(source: str | Path, form: str | None) -> tuple[str, str]:
    path = Path(source) if isinstance(source, Path) or len(str(source)) < 1000 else None
    by_suffix = {suffix: name for name, suffixes in FORMS.items() for suffix in suffixes}
    suffix = path.suffix if path is not None and "\n" not in str(path) else ""
    try:
        is_file = path is not None and path.is_file()
    except (OSError, ValueError):
        is_file = False
    if path is not None and (is_file or (isinstance(source, Path) or suffix in by_suffix)):
        guessed = form or by_suffix.get(suffix)
        if guessed is None:
            raise InputError(
                f"{path}: expected a suffix that tells the form ({', '.join(by_suffix)}), got "
                f"{suffix!r}; try --from"
            )
        return read_text(path, LIMIT), guessed
    return str(source), form or "regex"


def read_dfa(text: str) -> DFA:
    """Read an automaton from JSON, and minimise it.

    The object has ``alphabet`` (a list), ``start``, ``accepting`` (a list of states) and
    ``transitions`` (for each state, the next one by letter); a transition that is missing leads to
    rejection.
    """
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"DFA: expected a JSON object, got {str(error)[:80]}") from None
    keys = ("alphabet", "start", "accepting", "transitions")
    if not isinstance(data, dict) or any(key not in data for key in keys):
        raise InputError(f"DFA: expected a JSON object with {', '.join(keys)}")
    alphabet, rows = data["alphabet"], data["transitions"]
    if (
        not isinstance(alphabet, list)
        or not alphabet
        or not all(isinstance(letter, str) and letter for letter in alphabet)
        or len(set(alphabet)) != len(alphabet)
    ):
        raise InputError("DFA: expected different strings in alphabet")
    if not isinstance(rows, dict) or not all(isinstance(row, dict) for row in rows.values()):
        raise InputError("DFA: expected {state: {letter: state}} in transitions")
    if not isinstance(data["accepting"], list):
        raise InputError("DFA: expected a list of states in accepting")
    if len(rows) > MAX_STATES:
        raise InputError(f"DFA: expected at most {MAX_STATES:,} states, got {len(rows):,}")
    start = str(data["start"])
    if start not in rows:
        raise InputError(
            f"DFA: start: there is no state {start[:40]!r} in transitions; a state without transitions "
            "is written with {}"
        )
    names = list(dict.fromkeys([start, *map(str, rows)]))
    number = {name: i for i, name in enumerate(names)}
    dead = len(names)
    table = []
    for name in names:
        row = rows.get(name, {})
        for letter, target in row.items():
            if letter not in alphabet:
                raise InputError(f"DFA: state {name}: {letter!r} is not in the alphabet")
            if str(target) not in number:
                raise InputError(f"DFA: state {name}: there is no state {str(target)[:40]!r}")
        table.append(tuple(number[str(row[letter])] if letter in row else dead for letter in alphabet))
    unknown = [str(state) for state in data["accepting"] if str(state) not in number]
    if unknown:
        raise InputError(f"DFA: accepting: expected states of transitions, got {unknown[0][:40]!r}")
    table.append((dead,) * len(alphabet))
    accepting = frozenset(number[str(state)] for state in data["accepting"])
    return DFA(tuple(alphabet), tuple(table), accepting).minimal()
