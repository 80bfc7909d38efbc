"""Read a language from a name or a definition: an expression, an automaton, a formula or a program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from locum.errors import InputError, LimitError
from locum.files import parse_json, read_text
from locum.languages import b_rasp, c_rasp, first_order, regular
from locum.languages.automata import DFA, MAX_STATES, Letter, show_alphabet
from locum.languages.language_catalogue import NAMED, NamedLanguage
from locum.languages.later_counts import without_later_counts
from locum.languages.ltl import FIRST, LTL
from locum.languages.recogniser import END, Recogniser

#: The forms of a definition, with the suffixes of their files.
FORMS = {
    "regex": (".regex",),
    "dfa": (".json", ".dfa"),
    "ltl": (".ltl",),
    "c-rasp": (".crasp", ".cr"),
    "b-rasp": (".brasp",),
    "fo": (".fo",),
}
#: The form of a text that is the name of a language.
NAME = "name"
#: Maximum size of a file in bytes.
LIMIT = 2**22


@dataclass(frozen=True)
class Language:
    """A language with its definition."""

    form: str
    text: str
    #: The finite automaton; None for C-RASP programs without a computed automaton.
    automaton: DFA | None
    #: The program, if the language is given by a program or by a first-order formula.
    program: Recogniser | None = None
    ltl: LTL | None = None
    #: A program for the same language without counts of later positions, if ``program`` has such
    #: counts and such a program was found. The two programs agree at the position of the answer.
    reduced: Recogniser | None = None
    #: The name of the language, if the language is given by its name.
    name: str = ""

    @property
    def definition(self) -> DFA | Recogniser:
        """The definition of the language: its automaton or its program.

        A program with counts of later positions is replaced by its reduced program, if there is one.
        """
        found = self.automaton or self.reduced or self.program
        assert found is not None
        return found

    @property
    def alphabet(self) -> tuple[Letter, ...]:
        """The alphabet of the language."""
        return self.definition.alphabet


#: Accepted definitions of a language: text, a file, or an object that represents a definition.
Source: TypeAlias = "str | Path | Language | DFA | LTL | Recogniser | b_rasp.Program"


def as_language(source: Source) -> Language:
    """Convert a definition of a language to a :class:`Language`; text is read by :func:`read`.

    A recogniser must be a C-RASP program.
    """
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
        case Recogniser(dialect="C-RASP", causal=True):
            return Language("c-rasp", source.text, None, source)
        case Recogniser(dialect="C-RASP"):
            reduced = without_later_counts(source)
            if isinstance(reduced, DFA):
                return Language("c-rasp", source.text, reduced, source)
            return Language("c-rasp", source.text, None, source, reduced=reduced)
        case str() | Path():
            return read(source)
        case _:
            raise InputError(
                "expected an expression, a file, an automaton, a formula or a program, got "
                f"{type(source).__name__}; for B-RASP, try the result of b_rasp.parse"
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
    """Read a language from a file, from its name, or from the text itself.

    ``form`` is "name" or one of :data:`FORMS`. The default for a file is determined by its suffix. The
    default for a name in :data:`~locum.languages.language_catalogue.NAMED` is "name", and other text is
    read as a regular expression. The other arguments are passed to the parsers that have these
    arguments.

    >>> read("parity").name, read("parity", "regex").name
    ('parity', '')
    """
    if form is not None and form not in (*FORMS, NAME):
        raise InputError(f"expected one of {', '.join((*FORMS, NAME))} as the form, got {form!r}")
    letters = None if alphabet is None else tuple(dict.fromkeys(alphabet))
    named = find_named(source, form, letters)
    if named is not None:
        return _read_named(named)
    text, form = _text(source, form)
    made: Source
    try:
        match form:
            case "regex":
                made = regular.language(text.strip(), letters, plus=plus)
            case "dfa":
                automaton = read_dfa(text)
                made = automaton.over(letters) if letters else automaton
            case "ltl":
                formula = LTL.parse(
                    text, alphabet=letters, at=at
                )  # the expanded formula may be too long
                return Language(form, text, formula.automaton(), ltl=formula)
            case "fo":
                made = first_order.parse(text, alphabet=letters)
            case "b-rasp":
                made = b_rasp.parse(text, alphabet=letters)
            case _:
                made = c_rasp.parse(text, alphabet=letters, accept=accept, positions=positions)
        return replace(as_language(made), form=form, text=text)
    except LimitError as error:
        raise LimitError(f"the language is too large: {error}") from None


def find_named(
    source: str | Path, form: str | None = None, alphabet: Iterable[Letter] | None = None
) -> NamedLanguage | None:
    """Return the named language that a text refers to, or None for a file or any other text.

    If ``form`` is "name", an unknown name raises an error. An ``alphabet`` other than the alphabet of
    the named language always raises an error.
    """
    if form not in (None, NAME) or (form is None and _file(source) is not None):
        return None
    name = str(source).strip()
    named = NAMED.get(name)
    if named is None and form == NAME:
        raise InputError(
            f"expected the name of a language, got {name!r}; try one of {', '.join(NAMED)}"
        )
    if named is not None and alphabet is not None and set(alphabet) != set(named.alphabet):
        raise InputError(
            f"{name}: expected the alphabet {show_alphabet(named.alphabet)} of this language, got "
            f"{show_alphabet(alphabet)}; try form='regex' (--from regex) to read the name as a word"
        )
    return named


def _read_named(named: NamedLanguage) -> Language:
    if not named.form:
        raise InputError(
            f"{named.name}: expected a language with a definition, got one that has only a Python "
            "function; try locum language classify"
        )
    accept = END if named.form == "c-rasp" else None
    language = read(named.text, named.form, alphabet=named.alphabet, accept=accept)
    return replace(language, name=named.name)


def _file(source: str | Path) -> Path | None:
    """Return the path of a source that is a file or has the suffix of a file, or None."""
    if not isinstance(source, Path) and (len(source) >= 1000 or "\n" in source):
        return None
    path = Path(source)
    suffixes = {suffix for each in FORMS.values() for suffix in each}
    try:
        is_file = path.is_file()
    except (OSError, ValueError):
        is_file = False
    return path if is_file or isinstance(source, Path) or path.suffix in suffixes else None


def _text(source: str | Path, form: str | None) -> tuple[str, str]:
    """Return the text of a definition, and its form."""
    path = _file(source)
    if path is None:
        return str(source), form or "regex"
    by_suffix = {suffix: name for name, suffixes in FORMS.items() for suffix in suffixes}
    guessed = form or by_suffix.get(path.suffix)
    if guessed is None:
        raise InputError(
            f"{path}: expected a file with the suffix of a known form ({', '.join(by_suffix)}), got "
            f"{path.suffix!r}; try --from"
        )
    return read_text(path, LIMIT), guessed


def read_dfa(text: str) -> DFA:
    """Parse an automaton in JSON format, and minimise it.

    The JSON object contains ``alphabet``, ``start``, ``accepting`` and ``transitions``. ``alphabet``
    and ``accepting`` are lists. ``transitions`` maps each state to a mapping from letters to next
    states. A word is rejected if a transition is missing.
    """
    try:
        data: Any = parse_json(text)
    except InputError as error:
        raise InputError(f"DFA: expected a JSON object: {str(error)[:120]}") from None
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
            f"DFA: start: expected a state of transitions, got {start[:40]!r}; a state without "
            "transitions is written with {}"
        )
    names = list(dict.fromkeys([start, *map(str, rows)]))
    number = {name: i for i, name in enumerate(names)}
    dead = len(names)
    table = []
    for name in names:
        row = rows.get(name, {})
        for letter, target in row.items():
            if letter not in alphabet:
                raise InputError(
                    f"DFA: state {name}: expected letters of the alphabet {show_alphabet(alphabet)}, "
                    f"got {letter!r}"
                )
            if str(target) not in number:
                raise InputError(
                    f"DFA: state {name}: expected states of transitions, got {str(target)[:40]!r}"
                )
        table.append(tuple(number[str(row[letter])] if letter in row else dead for letter in alphabet))
    unknown = [str(state) for state in data["accepting"] if str(state) not in number]
    if unknown:
        raise InputError(f"DFA: accepting: expected states of transitions, got {unknown[0][:40]!r}")
    table.append((dead,) * len(alphabet))
    accepting = frozenset(number[str(state)] for state in data["accepting"])
    return DFA(tuple(alphabet), tuple(table), accepting).minimal()
