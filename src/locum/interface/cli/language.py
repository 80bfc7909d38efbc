"""Classify, compare and minimise languages: expressions, automata, formulas, programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from locum.errors import InputError
from locum.interface.cli.options import alphabet_option, choice, limit_option, output_option
from locum.interface.cli.programs import split_alphabet
from locum.interface.cli.runner import Group, Report
from locum.interface.cli.runner import command as make_command

if TYPE_CHECKING:
    from locum.languages.classification import Classification
    from locum.languages.named_languages import Language
    from locum.languages.recogniser import Recogniser

command = Group("language", help=__doc__, usual="classify")
_PLACES = {"last": "last symbol", "end": "end marker"}


def _c_rasp_options(function: Any) -> Any:
    """Add the options that are the conventions of a C-RASP program."""
    at_marker = "Where a C-RASP program is read.  [default: last]"
    function = choice("--positions", ["0", "1"], "First position in C-RASP.  [default: 0]")(function)
    return alphabet_option(choice("--accept", ["last", "end"], at_marker)(function))


def _language_options(function: Any) -> Any:
    """Add the options that say how a language is written."""
    function = choice("--at", ["first", "last"], "Position where a formula holds.", "first")(function)
    plus = "Meaning of + in an expression: union, or once or more."
    function = choice("--plus", ["union", "repeat"], plus, "union")(function)
    forms = ["regex", "dfa", "ltl", "c-rasp", "b-rasp"]
    return _c_rasp_options(choice("--from", forms, "Form of the language.")(function))


def read_language(source: str, options: Mapping[str, Any]) -> Language:
    """Read a language as the options say."""
    from locum.languages.named_languages import read

    given = {name: options[name] for name in ("plus", "at", "accept") if name in options}
    positions = options.get("positions")
    return read(
        source,
        options.get("from"),
        alphabet=split_alphabet(options["alphabet"]),
        positions=None if positions is None else int(positions),
        **given,
    )


def find_recogniser(language: Language, verdicts: Classification | None = None) -> Recogniser | None:
    """Return a program that recognises a language, or None if no dialect has one."""
    from locum.languages import b_rasp
    from locum.languages.classification import classify
    from locum.languages.star_free import ltl_of

    if language.program is not None:
        return language.program
    assert language.automaton is not None
    verdicts = verdicts or classify(language.automaton)
    program = verdicts.program("end") or verdicts.program("last")
    if program is None and verdicts.star_free:
        return b_rasp.from_ltl(ltl_of(verdicts.automaton)).recogniser()
    return program


# Classes --------------------------------------------------------------------------------------------


@make_command("classify", group=command)
@click.argument("language")
@_language_options
@click.option("--program", "show_program", is_flag=True, help="Print a program that recognises it.")
@output_option(".svg", text="File for a drawing of the minimal automaton.")
def classify(language: str, show_program: bool, output: Path | None, **options: Any) -> Report:
    """Classify a regular language: finite, star-free, C-RASP, R, R∞, solvable.

    LANGUAGE is a regular expression ('(ab+ba)*', + is union) or a file: .regex, .json (an
    automaton), .ltl (a formula), .crasp or .brasp (a program). --from names the form explicitly.
    Every verdict is computed from the minimal automaton. C-RASP is read at an end marker,
    C-RASP_last at the last symbol; both mean programs without #import. `locum compile --language`
    compiles such a program.
    """
    from locum.languages.automata import show_alphabet
    from locum.languages.classification import classify as decide
    from locum.languages.equivalence import regular_automaton

    read = read_language(language, options)
    automaton = read.automaton
    if automaton is None:
        assert read.program is not None
        automaton = regular_automaton(read.program)
        if automaton is None:
            return _undecided(language, read.form, read.program)
    verdicts = decide(automaton)
    data: dict[str, Any] = {"name": language, "form": read.form} | verdicts.to_dict()
    program = find_recogniser(read, verdicts) if show_program else None
    if show_program:
        data["program"] = None if program is None else program.text
        data["dialect"] = None if program is None else program.dialect
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
        yield f"  automaton    {len(automaton)} states, syntactic monoid of {len(verdicts.monoid)}"
        for line in verdicts.lines():
            yield f"  {line.key:<12} {'yes' if line.holds else 'no '}  {line.reason}"
            if line.consequence:
                yield f"{'':20}{line.consequence}"
        if program is not None:
            yield f"\n// {program.dialect}, read at the {_PLACES[program.accept]}"
            yield program.text.rstrip("\n")
        elif show_program:
            yield "No program: it is neither star-free nor in C-RASP with either convention."

    return Report(data, text, files=files)


def _undecided(name: str, form: str, program: Recogniser) -> Report:
    """Return the verdicts on a program whose language could not be shown to be regular."""
    from locum.languages.counting import require

    keys = ("finite", "star_free", "C-RASP", "C-RASP_last", "R", "R_infinity", "solvable")
    verdicts: dict[str, bool | None] = dict.fromkeys(keys)
    try:
        require(program.sop.node, extensions=())
    except InputError:
        reason = "it is a C-RASP program with #import, and such programs recognise more"
    else:
        reason = f"it is a C-RASP program, read at the {_PLACES[program.accept]}"
        verdicts["C-RASP_last"] = True
        verdicts["C-RASP"] = True if program.accept == "end" else None

    def text() -> Iterator[str]:
        for key in ("C-RASP", "C-RASP_last"):
            yield f"  {key:<12} {'yes' if verdicts[key] else 'not decided'}  {reason}"
        yield "Whether its language is regular is not decided; the other verdicts need a regular one."

    return Report({"name": name, "form": form} | verdicts, text)


# Equivalence ----------------------------------------------------------------------------------------


@make_command("equivalent", group=command)
@click.argument("p")
@click.argument("q")
@_language_options
@limit_option(20.0)
def equivalent(p: str, q: str, limit: float, **options: Any) -> Report:
    """Compare two languages or programs: equivalent, or a shortest word that only one has.

    P and Q are written like LANGUAGE of locum language classify and need the same alphabet: use
    --alphabet if they name different symbols. Regular languages are compared by their automata,
    C-RASP programs by z3 (pip install 'locum[solve]'). A word that separates them is run again by
    dense execution and by compiled weights. The exit code is 1 if they differ.
    """
    from locum.languages.automata import show_alphabet, show_word
    from locum.languages.equivalence import EQUIVALENT, SEPARATED, equivalent

    comparison = equivalent(read_language(p, options), read_language(q, options), seconds=limit)

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


@make_command("minimise", group=command)
@click.argument("program")
@_c_rasp_options
@limit_option(60.0)
def minimise(program: str, limit: float, **options: Any) -> Report:
    """Make a C-RASP program smaller: leave out parts while it stays equivalent, proven.

    PROGRAM is a file of C-RASP. Every step is proven by z3 (pip install 'locum[solve]'). The result may
    not be the smallest equivalent program.
    """
    from locum.languages.minimisation import minimise, size

    read = read_language(program, options | {"from": "c-rasp"})
    assert read.program is not None
    smaller = minimise(read.program, seconds=limit)
    (counts, parts), (fewer, left) = size(read.program), size(smaller)
    data = {"program": smaller.text, "counts": [counts, fewer], "parts": [parts, left]}
    heading = f"// {counts} counts and {parts} parts before, {fewer} and {left} now"
    return Report(data, lambda: [heading, smaller.text.removesuffix("\n")])
