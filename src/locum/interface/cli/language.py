"""Classify and compare languages and their programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    from locum.languages.recogniser import Recogniser

command = Group("language", help=__doc__)
_PLACES = {"last": "last symbol", "end": "end marker"}
_VERDICTS = {True: "yes", False: "no", None: "?"}
_LEVELS = {0: "0", 1: "1", 2: "2 or more", None: "not decided"}
_WIDTH = 23


def _language_options(function: Any) -> Any:
    """Add the options that determine how a language is read from its source."""
    at_marker = "Position of a C-RASP answer.  [default: last]"
    function = choice(
        "--positions", ["0", "1"], "Number of the first position in C-RASP.  [default: 0]"
    )(function)
    function = alphabet_option(choice("--accept", ["last", "end"], at_marker)(function))
    function = choice(
        "--at", ["first", "last"], "Position at which an LTL formula must hold.", "first"
    )(function)
    plus = "Meaning of + in expressions: union, or one or more."
    function = choice("--plus", ["union", "repeat"], plus, "union")(function)
    forms = ["regex", "dfa", "ltl", "c-rasp", "b-rasp", "fo", "name"]
    return choice("--from", forms, "Form of LANGUAGE.  [default: from its suffix]")(function)


def read_language(source: str, options: Mapping[str, Any]) -> Language:
    """Read a language from a file, a name or an expression, as the command-line ``options`` specify."""
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


def _fragment(program: Recogniser) -> str:
    """Return the dialect of a program, with the extensions of C-RASP that the program uses."""
    from locum.languages.counting import fragment

    return fragment(program.sop.node) if program.dialect == "C-RASP" else program.dialect


def _program_data(program: Recogniser | None) -> dict[str, Any]:
    if program is None:
        return dict.fromkeys(("program", "dialect", "depth", "layers"))
    return {"program": program.text, "dialect": program.dialect} | _size(program)


def _show_program(program: Recogniser | None, missing: str) -> Iterator[str]:
    """Yield the lines of a program, or the reason why there is none."""
    if program is None:
        yield f"No program: {missing}."
        return
    yield f"\n// {_fragment(program)}, read at the {_PLACES[program.accept]}"
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
@output_option(".dot", text="File for the minimal automaton as DOT text.")
def classify(language: str, show_program: bool, output: Path | None, **options: Any) -> Report:
    """Classify a regular language for each attention model.

    LANGUAGE is a file, the name of a language such as dyck-2, majority or parity, or a regular
    expression such as '(ab+ba)*', where + is union. The usual suffixes are .regex, .json (an
    automaton), .ltl (a formula), .crasp and .brasp (programs), and .fo (a first-order formula with
    maj). A file is preferred to a name, and a name to an expression. --from specifies the form
    explicitly: with --from regex, parity is a word.

    Every verdict on a regular language is computed from its minimal automaton. With --json, the report
    contains witnesses for most verdicts "no". C-RASP_last means programs that are read at the last
    symbol. For regular languages, the other C-RASP classes mean programs that are read at an end
    marker. C-RASP without brackets means programs without position predicates.

    --program prints a program if one is found, and `locum compile --language` compiles it.
    """
    from locum.languages.automata import DFA
    from locum.languages.classification import classify as decide
    from locum.languages.equivalence import regular_automaton
    from locum.languages.named_languages import find_named

    named = find_named(language, options["from"], split_alphabet(options["alphabet"]))
    read = read_language(language, options) if named is None or named.form else None
    if read is None or (named is not None and named.witness):
        return _classify_without_automaton(language, read, named, show_program, output)
    definition = read.definition
    automaton = definition if isinstance(definition, DFA) else regular_automaton(definition)
    if automaton is None:
        return _classify_without_automaton(language, read, named, show_program, output)
    verdicts = decide(automaton)
    data = _identity(language, read, named) | verdicts.to_dict()
    program, missing = None, "the language is neither star-free nor in C-RASP[periodic, local]"
    try:
        program = find_recogniser(read, verdicts) if show_program else None
    except LimitError as error:
        missing = str(error)
    if show_program:
        data |= _program_data(program)

    def text() -> Iterator[str]:
        yield from _heading(language, read, named)
        states = f"{len(automaton)} state{'' if len(automaton) == 1 else 's'}"
        size = f"{states}, syntactic monoid of {len(verdicts.monoid)}"
        yield f"  {'automaton':<{_WIDTH}} {size}"
        for line in verdicts.lines():
            yield f"  {line.key:<{_WIDTH}} {_VERDICTS[line.holds]:<4} {line.reason}"
            if line.consequence:
                yield f"{'':{_WIDTH + 8}}{line.consequence}"
        if verdicts.star_free:
            yield f"  {'dot-depth':<{_WIDTH}} {_LEVELS[verdicts.dot_depth]}"
            yield f"  {'until-rank 0':<{_WIDTH}} {_VERDICTS[verdicts.until_rank_0]}"
        yield "Attention"
        for row in verdicts.models:
            yield f"  {_VERDICTS[row.holds]:<4} {row.model} ({row.languages})"
            yield f"{'':7}{row.theorem}"
        if show_program:
            yield from _show_program(program, missing)

    return Report(data, text, files={} if output is None else {output: automaton.to_dot() + "\n"})


def _classify_without_automaton(
    source: str,
    read: Language | None,
    named: NamedLanguage | None,
    show_program: bool,
    output: Path | None,
) -> Report:
    """Return the report on a language that is not regular or not known to be regular.

    ``read`` is None for a named language without a definition.
    """
    from locum.languages.automata import DFA
    from locum.languages.classification import IMPORTS
    from locum.languages.non_regular import CLASSES, describe, describe_program

    if output is not None:
        raise InputError("--output: expected a regular language, got one without a known automaton")
    if named is not None:
        verdicts, witness = describe(named), named.witness
    else:
        assert read is not None
        assert not isinstance(read.definition, DFA)
        verdicts, witness = describe_program(read.definition), None
    data = _identity(source, read, named) | dict.fromkeys(("solvable", "AC0", *IMPORTS))
    # These classes contain only regular languages.
    data |= dict.fromkeys(("finite", "R", "R_infinity"), False if witness else None)
    data |= {verdict.key: verdict.holds for verdict in verdicts}
    data |= {
        "witness": witness,
        "reasons": {v.key: v.reason for v in verdicts if v.holds is not None},
        "theorems": {v.key: v.theorem for v in verdicts if v.theorem},
    }
    program = None if read is None else read.program
    if show_program:
        data |= _program_data(program)

    def text() -> Iterator[str]:
        yield from _heading(source, read, named)
        for verdict in verdicts:
            said = {True: "yes", False: "no", None: "not decided"}[verdict.holds]
            yield f"  {CLASSES[verdict.key]}: {said}"
            if verdict.holds is not None:
                yield f"{'':4}{verdict.reason}" + (f" ({verdict.theorem})" if verdict.theorem else "")
        if witness is None:
            yield "It is not decided whether the language is regular."
        if show_program:
            missing = "no C-RASP program is given, and the language is not known to be regular"
            yield from _show_program(program, missing)

    return Report(data, text)


def _identity(source: str, read: Language | None, named: NamedLanguage | None) -> dict[str, Any]:
    """Return the name and the form of a language, and the fragment of C-RASP that its program uses."""
    data: dict[str, Any] = {
        "name": source,
        "form": "name" if read is None else read.form,
        "named": named is not None,
    }
    if read is not None and read.program is not None and read.form == "c-rasp":
        data["fragment"] = _fragment(read.program)
    return data


def _heading(source: str, read: Language | None, named: NamedLanguage | None) -> Iterator[str]:
    """Yield the first lines of the report on a language."""
    from locum.languages.automata import show_alphabet

    if named is not None:
        yield f"language: {named.name} (named)"
        yield f"{named.about} over {show_alphabet(named.alphabet)}"
    elif read is not None:
        shown = source.strip() if read.form == "regex" else source
        yield f"{shown} over {show_alphabet(read.alphabet)}"
    if read is not None and read.program is not None and read.form == "c-rasp":
        yield f"  {'program':<{_WIDTH}} {_fragment(read.program)}"


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
    separates P and Q, the command runs programs on this word by dense execution. The exit code is 1 if
    P and Q differ.
    """
    from locum.languages.automata import show_alphabet, show_word
    from locum.languages.equivalence import EQUIVALENT, SEPARATED, equivalent

    one, other = read_language(p, options), read_language(q, options)
    comparison = equivalent(one, other, seconds=limit)
    named = {side: each.name or None for side, each in (("P", one), ("Q", other))}

    def text() -> Iterator[str]:
        for side, name in named.items():
            if name is not None:
                yield f"{side}: language: {name} (named)"
        over = f"over {show_alphabet(comparison.alphabet)}"
        if comparison.verdict == EQUIVALENT:
            scope = "" if comparison.empty_word else " (on words of one symbol or more)"
            yield f"equivalent {over}, proven by {comparison.method}{scope}"
        elif comparison.word is None:
            yield f"not decided {over} within {limit:g} seconds; {comparison.method}"
        else:
            word = show_word(comparison.word)
            yield f"different {over}: {word} separates them, and no shorter word does"
            for side, accepts in zip(named, comparison.answers, strict=True):
                yield f"  {side} {'accepts' if accepts else 'rejects'} it"

    data = {"named": named} | comparison.to_dict()
    return Report(data, text, holds=comparison.verdict != SEPARATED)
