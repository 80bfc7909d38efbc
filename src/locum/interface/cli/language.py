"""Classify and compare languages and their programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from locum.errors import InputError, LimitError
from locum.interface.cli.options import (
    alphabet_option,
    choice,
    limit_option,
    output_option,
)
from locum.interface.cli.programs import split_alphabet
from locum.interface.cli.runner import Group, Report
from locum.interface.cli.runner import command as make_command

if TYPE_CHECKING:
    from locum.languages.classification import Classification
    from locum.languages.language_catalogue import NamedLanguage
    from locum.languages.named_languages import Language
    from locum.languages.non_regular import PumpingWitness, Verdict
    from locum.languages.recogniser import Recogniser

command = Group("language", help=__doc__, usual="classify")
_PLACES = {"last": "last symbol", "end": "end marker"}
_VERDICTS = {True: "yes", False: "no", None: "?"}
_LEVELS = {0: "0", 1: "1", 2: "2 or more", None: "not decided"}
_WIDTH = 23


def _show_rank(ranks: tuple[int, int | None] | None) -> str:
    least, most = ranks or (0, None)
    if least == most:
        return str(least)
    return f"at least {least}" if most is None else f"from {least} to {most}"


def _c_rasp_options(function: Any) -> Any:
    """Add the options ``--accept``, ``--positions`` and ``--alphabet`` for C-RASP programs."""
    at_marker = "Position of a C-RASP answer.  [default: last]"
    function = choice(
        "--positions", ["0", "1"], "Number of the first position in C-RASP.  [default: 0]"
    )(function)
    return alphabet_option(choice("--accept", ["last", "end"], at_marker)(function))


def _language_options(function: Any) -> Any:
    """Add the options that determine how a language is read from its source."""
    function = choice(
        "--at", ["first", "last"], "Position at which an LTL formula must hold.", "first"
    )(function)
    plus = "Meaning of + in expressions: union, or one or more."
    function = choice("--plus", ["union", "repeat"], plus, "union")(function)
    forms = ["regex", "dfa", "ltl", "c-rasp", "b-rasp", "counter", "fo", "name"]
    return _c_rasp_options(
        choice("--from", forms, "Form of LANGUAGE.  [default: from its suffix]")(function)
    )


def read_language(source: str, options: Mapping[str, Any]) -> Language:
    """Read a language from a file, an expression or a name, as the command-line ``options`` specify."""
    from locum.languages.named_languages import read

    if options.get("from") == "name":
        return _find_named(source, options).language()
    given = {name: options[name] for name in ("plus", "at", "accept") if name in options}
    positions = options.get("positions")
    return read(
        source,
        options.get("from"),
        alphabet=split_alphabet(options["alphabet"]),
        positions=None if positions is None else int(positions),
        **given,
    )


def _find_named(name: str, options: Mapping[str, Any]) -> NamedLanguage:
    """Return a named language; raise ``InputError`` if ``options`` contain an alphabet."""
    from locum.languages.automata import show_alphabet
    from locum.languages.language_catalogue import find

    named = find(name)
    if options["alphabet"] is not None:
        raise InputError(
            f"--alphabet: expected no alphabet for {name}, which has the alphabet "
            f"{show_alphabet(named.alphabet)}, got {options['alphabet']!r}"
        )
    return named


def find_recogniser(language: Language, verdicts: Classification | None = None) -> Recogniser | None:
    """Return a C-RASP or B-RASP program that recognises ``language``, or None if none is found."""
    from locum.languages import b_rasp
    from locum.languages.classification import classify
    from locum.languages.star_free import ltl_of

    if language.program is not None:
        return language.program
    verdicts = verdicts or classify(language)
    program = verdicts.program("end") or verdicts.program("last")
    for decision in verdicts.positions.values():
        program = program or decision.program(verdicts.automaton)
    if program is None and verdicts.star_free:
        return b_rasp.from_ltl(ltl_of(verdicts.automaton)).recogniser()
    return program


#: Maximum word length for which a program is compiled to count its layers.
_LAYERS_LENGTH = 8


def _size(program: Recogniser) -> dict[str, int | None]:
    """Return the depth of a C-RASP program and the number of layers of its compiled network, or None
    for each unknown number.
    """
    from locum.errors import CompileError
    from locum.languages.counting import depth

    try:
        layers: int | None = program.compile(_LAYERS_LENGTH).architecture.layers
    except CompileError:
        layers = None
    is_c_rasp = program.dialect == "C-RASP"
    return {"depth": depth(program.sop.node) if is_c_rasp else None, "layers": layers}


def _program_data(program: Recogniser | None) -> dict[str, Any]:
    if program is None:
        return dict.fromkeys(("program", "dialect", "depth", "layers"))
    return {"program": program.text, "dialect": program.dialect} | _size(program)


def _show_program(program: Recogniser | None, missing: str) -> Iterator[str]:
    """Yield the lines of a program, or the reason why there is none."""
    if program is None:
        yield f"No program: {missing}."
        return
    yield f"\n// {program.dialect}, read at the {_PLACES[program.accept]}"
    known = [f"{name} {value}" for name, value in _size(program).items() if value is not None]
    if known:
        yield f"// {', '.join(known)} (words of up to {_LAYERS_LENGTH} symbols)"
    yield program.text.rstrip("\n")


# Classes --------------------------------------------------------------------------------------------


@make_command("classify", group=command)
@click.argument("language")
@_language_options
@click.option(
    "--program", "show_program", is_flag=True, help="Print a program that recognises the language."
)
@output_option(".svg", text="File for a drawing (SVG) of the minimal automaton.")
def classify(language: str, show_program: bool, output: Path | None, **options: Any) -> Report:
    """Classify a regular language for each attention model.

    LANGUAGE is a regular expression such as '(ab+ba)*', where + is union, or a file. The usual suffixes
    are .regex, .json (an automaton), .ltl (a formula), .crasp and .brasp (programs), .fo (a first-order
    formula with maj) and .counter (a counter automaton). --from specifies the form explicitly. With
    --from name, LANGUAGE is a named language such as dyck-2 or majority; `locum language names` lists
    these names.

    Every verdict on a regular language is computed from its minimal automaton. With --json, the report
    contains witnesses for most verdicts "no", and for a non-regular language a pumping witness, if one
    is found. C-RASP_last means programs that are read at the last symbol. For regular languages, the
    other C-RASP classes mean programs that are read at an end marker. C-RASP without brackets means
    programs without #import.

    --program prints a program if one is found, and `locum compile --language` compiles it.
    """
    from locum.languages.automata import DFA, show_alphabet
    from locum.languages.classification import classify as decide
    from locum.languages.equivalence import regular_automaton

    named = _find_named(language, options) if options["from"] == "name" else None
    if named is not None and named.witness is not None:
        return _non_regular_name(named, show_program, output)
    read = read_language(language, options)
    definition = read.definition
    automaton = definition if isinstance(definition, DFA) else regular_automaton(definition)
    if automaton is None:
        return _non_regular(language, read, show_program, output)
    verdicts = decide(automaton)
    data: dict[str, Any] = {"name": language, "form": read.form} | verdicts.to_dict()
    program, missing = None, "the language is neither star-free nor in C-RASP[periodic, local]"
    try:
        program = find_recogniser(read, verdicts) if show_program else None
    except LimitError as error:
        missing = str(error)
    if show_program:
        data |= _program_data(program)
    files: dict[Path | None, Any] = {}
    if output is not None:
        from locum.interface.display.automaton import MAX_DRAWN, automaton_svg

        if len(automaton) > MAX_DRAWN:
            raise InputError(
                f"--output: expected an automaton of at most {MAX_DRAWN} states, got {len(automaton)}"
            )
        files[output] = automaton_svg(automaton, language)

    def text() -> Iterator[str]:
        shown = language if read.form != "regex" else language.strip()
        yield f"{shown} over {show_alphabet(automaton.alphabet)}"
        states = f"{len(automaton)} state{'' if len(automaton) == 1 else 's'}"
        size = f"{states}, syntactic monoid of {len(verdicts.monoid)}"
        yield f"  {'automaton':<{_WIDTH}} {size}"
        for line in verdicts.lines():
            yield f"  {line.key:<{_WIDTH}} {_VERDICTS[line.holds]:<4} {line.reason}"
            if line.consequence:
                yield f"{'':{_WIDTH + 8}}{line.consequence}"
        if verdicts.star_free:
            yield f"  {'dot-depth':<{_WIDTH}} {_LEVELS[verdicts.dot_depth]}"
            yield f"  {'until-rank':<{_WIDTH}} {_show_rank(verdicts.until_rank)}"
        yield "Attention"
        for row in verdicts.models:
            yield f"  {_VERDICTS[row.holds]:<4} {row.model} ({row.languages})"
            yield f"{'':7}{row.theorem}"
        if show_program:
            yield from _show_program(program, missing)

    return Report(data, text, files=files)


def _non_regular_name(named: NamedLanguage, show_program: bool, output: Path | None) -> Report:
    """Return the report on a named language that is not regular."""
    from locum.languages.language_catalogue import describe

    _reject_drawing(output)
    report = _report(
        named.name, named.form or "name", describe(named), named.witness, f": {named.about}"
    )
    program = named.language().program if named.form else None
    return _with_program(report, program) if show_program else report


def _reject_drawing(output: Path | None) -> None:
    if output is not None:
        raise InputError("--output: expected a regular language, got one without a known automaton")


def _with_program(report: Report, program: Recogniser | None) -> Report:
    """Return a report on a language that is not regular, with a program if one is known."""
    missing = "no C-RASP program is given, and the language is not known to be regular"

    def text() -> Iterator[Any]:
        yield from report.text()
        yield from _show_program(program, missing)

    return Report(report.to_dict() | _program_data(program), text)


def _non_regular(name: str, read: Language, show_program: bool, output: Path | None) -> Report:
    """Return the report on a language for which no finite automaton is known."""
    from locum.languages.automata import DFA
    from locum.languages.non_regular import find_witness, verdicts

    _reject_drawing(output)
    definition = read.definition
    assert not isinstance(definition, DFA)
    witness = find_witness(definition)
    report = _report(name, read.form, verdicts(definition, witness), witness)
    return _with_program(report, read.program) if show_program else report


def _report(
    name: str,
    form: str,
    verdicts: Sequence[Verdict],
    witness: PumpingWitness | None,
    about: str = "",
) -> Report:
    from locum.languages.classification import IMPORTS
    from locum.languages.non_regular import CLASSES

    regular = ("finite", "R", "R_infinity")  # classes that contain only regular languages
    data: dict[str, Any] = {"name": name, "form": form, **dict.fromkeys(("solvable", "AC0", *IMPORTS))}
    data |= dict.fromkeys(regular, None if witness is None else False)
    data |= {verdict.key: verdict.holds for verdict in verdicts}
    data |= {
        "witness": None if witness is None else witness.to_dict(),
        "reasons": {v.key: v.reason for v in verdicts if v.holds is not None},
        "theorems": {v.key: v.theorem for v in verdicts if v.theorem},
    }

    def text() -> Iterator[str]:
        yield f"{name}{about}"
        for verdict in verdicts:
            said = {True: "yes", False: "no", None: "not decided"}[verdict.holds]
            yield f"  {CLASSES[verdict.key]}: {said}"
            if verdict.holds is not None:
                yield f"{'':4}{verdict.reason}" + (f" ({verdict.theorem})" if verdict.theorem else "")
        if witness is None:
            yield "It is not decided whether the language is regular."

    return Report(data, text)


@make_command("names", group=command)
def names() -> Report:
    """List the named languages, with published results."""
    from locum.interface.cli.output import table
    from locum.languages.language_catalogue import NAMED

    rows = [
        {
            "name": language.name, "about": language.about, "alphabet": list(language.alphabet),
            "form": language.form or None, "regular": language.witness is None,
            "claims": [claim._asdict() for claim in language.claims],
        }
        for language in NAMED.values()
    ]  # fmt: skip

    def text() -> Iterator[Any]:
        cells = [
            (
                language.name,
                language.about,
                "\n".join(
                    f"{'in' if claim.holds else 'not in'} {claim.key} ({claim.source})"
                    for claim in language.claims
                ),
            )
            for language in NAMED.values()
        ]
        yield table("name", "words", "literature", rows=cells, lines=True)

    return Report({"languages": rows}, text)


# Equivalence ----------------------------------------------------------------------------------------


@make_command("equivalent", group=command)
@click.argument("p")
@click.argument("q")
@_language_options
@limit_option(20.0)
def equivalent(p: str, q: str, limit: float, **options: Any) -> Report:
    """Decide whether two languages or programs are equivalent.

    P and Q have the forms of LANGUAGE in `locum language classify`, and need the same alphabet. Use
    --alphabet if they contain different symbols. Regular languages are compared by their automata.
    C-RASP programs are compared on short words, and by z3 (pip install 'locum[solve]'). If a word
    separates P and Q, the command runs programs and LTL formulas on this word, by dense execution and
    by compiled weights, and other forms by their automata. The exit code is 1 if P and Q differ.
    """
    from locum.languages.automata import show_alphabet, show_word
    from locum.languages.equivalence import EQUIVALENT, SEPARATED, equivalent

    one, other = read_language(p, options), read_language(q, options)
    if options["from"] == "name" and set(one.alphabet) != set(other.alphabet):
        raise InputError(
            "alphabets: expected two named languages over the same alphabet, got "
            f"{show_alphabet(one.alphabet)} and {show_alphabet(other.alphabet)}"
        )
    comparison = equivalent(one, other, seconds=limit)

    def text() -> Iterator[str]:
        over = f"over {show_alphabet(comparison.alphabet)}"
        if comparison.verdict == EQUIVALENT:
            scope = "" if comparison.empty_word else " (on words of one symbol or more)"
            yield f"equivalent {over}, proven by {comparison.method}{scope}"
        elif comparison.word is None:
            yield f"not decided {over} within {limit:g} seconds; {comparison.method}"
        else:
            word = show_word(comparison.word)
            yield f"different {over}: {word} separates them, and no shorter word does"
            for name, answer in zip("PQ", comparison.answers, strict=True):
                runs = ", ".join(f"{how} {_said(value)}" for how, value in answer.by.items())
                yield f"  {name} {_said(answer.expected)} it ({runs})"

    return Report(comparison.to_dict(), text, holds=comparison.verdict != SEPARATED)


def _said(value: bool | str) -> str:
    return value if isinstance(value, str) else "accepts" if value else "rejects"
