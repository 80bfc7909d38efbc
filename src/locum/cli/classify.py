"""Classify a regular language: finite, star-free, C-RASP, R, R∞, solvable.

LANGUAGE is a regular expression ('(ab+ba)*', + is union) or a file: .regex, .json (an automaton), .ltl
(a formula), .crasp or .brasp (a program). --from names the form explicitly. Every verdict is computed
from the minimal automaton. C-RASP is read at an end marker, C-RASP_last at the last symbol; both mean
programs without #import.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from locum.cli import output
from locum.cli.languages import language_options, read_language
from locum.cli.options import PATH, json_option
from locum.errors import InputError
from locum.files import check_target, write_file

if TYPE_CHECKING:
    from locum.dialects.classify import Classification
    from locum.dialects.recogniser import Recogniser


@click.command("classify", help=__doc__)
@click.argument("language")
@language_options
@click.option("--program", "show_program", is_flag=True, help="Print a program that recognises it.")
@click.option("--compile", "compile_it", is_flag=True, help="Compile that program to weights.")
@click.option("--length", default=8, show_default=True, help="Symbols of the longest word.")
@click.option("-o", "--output", "folder", type=PATH, help="The folder to write the weights to.")
@click.option("--svg", type=PATH, help="Draw the minimal automaton into a file.")
@json_option
def command(language: str, **options: Any) -> None:
    """Classify, and show what was asked for."""
    from locum.dialects.automata import show_alphabet
    from locum.dialects.classify import classify
    from locum.dialects.equivalence import regular_automaton

    svg: Path | None = options["svg"]
    check_target(svg)
    read = read_language(language, options)
    automaton = read.automaton
    if automaton is None:
        assert read.program is not None
        automaton = regular_automaton(read.program)
        if automaton is None:
            _undecided(read.program, options)
            return
    verdicts = classify(automaton)
    data: dict[str, Any] = {"language": language, "form": read.form} | verdicts.to_dict()
    wants_program = options["show_program"] or options["compile_it"] or options["folder"]
    program = None
    if wants_program:
        program = (
            read.program
            or verdicts.program("end")
            or verdicts.program("last")
            or _star_free_program(verdicts)
        )
        data["program"] = None if program is None else program.text
        data["dialect"] = None if program is None else program.dialect
    model = None
    if program is not None and (options["compile_it"] or options["folder"]):
        model = program.compile(options["length"])
        size = model.architecture
        data["network"] = {
            "layers": size.layers,
            "heads": list(size.heads),
            "d_model": size.d_model,
            "parameters": size.parameters,
            "causal": model.config.causal,
            "length": options["length"],
            "weights": model.hash,
        }
        if options["folder"] is not None:
            model.save(options["folder"])
    if svg is not None:
        from locum.display.automaton import MAX_DRAWN, automaton_svg

        if len(automaton) > MAX_DRAWN:
            raise InputError(
                f"--svg: expected an automaton of at most {MAX_DRAWN} states, got {len(automaton)}"
            )
        write_file(svg, automaton_svg(automaton, language))
        data["svg"] = str(svg)
    if options["as_json"]:
        output.print_json(data)
        return
    shown = language if read.form != "regex" else language.strip()
    output.say(f"{shown} over {show_alphabet(automaton.alphabet)}")
    output.say(f"  automaton    {len(automaton)} states, syntactic monoid of {len(verdicts.monoid)}")
    for line in verdicts.lines():
        output.say(f"  {line.key:<12} {'yes' if line.holds else 'no '}  {line.reason}")
        if line.consequence:
            output.say(f"{'':20}{line.consequence}")
    if wants_program and program is None:
        output.say("No program: it is neither star-free nor in C-RASP with either convention.")
    elif program is not None and options["show_program"]:
        output.say(f"\n// {program.dialect}, read at the {_where(program.accept)}")
        output.say(program.text.rstrip("\n"))
    if model is not None:
        size = model.architecture
        kind = "decoder" if model.config.causal else "encoder"
        output.say(
            f"\n{kind} for words of up to {options['length']} symbols: {size.layers} layers, "
            f"{sum(size.heads)} heads, d_model {size.d_model}, {size.parameters:,} parameters"
        )
    output.say_written("Saved in", options["folder"])
    output.say_written("Drawn in", svg)


def _star_free_program(verdicts: Classification) -> Recogniser | None:
    """Return a B-RASP program for a star-free language that is not in C-RASP."""
    if not verdicts.star_free:
        return None
    from locum.dialects import b_rasp
    from locum.dialects.star_free import ltl_of

    return b_rasp.from_ltl(ltl_of(verdicts.automaton)).recogniser()


def _where(accept: str) -> str:
    return "last symbol" if accept == "last" else "end marker"


def _undecided(program: Recogniser, options: dict[str, Any]) -> None:
    """Print the verdicts on a program whose language could not be shown to be regular."""
    from locum.dialects.counting import require

    keys = ("finite", "star_free", "C-RASP", "C-RASP_last", "R", "R_infinity", "solvable")
    verdicts: dict[str, bool | None] = dict.fromkeys(keys)
    try:
        require(program.sop.node, extensions=())
    except InputError:
        reason = "it is a C-RASP program with #import, and such programs recognise more"
    else:
        reason = f"it is a C-RASP program, read at the {_where(program.accept)}"
        verdicts["C-RASP_last"] = True
        verdicts["C-RASP"] = True if program.accept == "end" else None
    if options["as_json"]:
        output.print_json(verdicts)
        return
    for key in ("C-RASP", "C-RASP_last"):
        output.say(f"  {key:<12} {'yes' if verdicts[key] else 'not decided'}  {reason}")
    output.say(
        "Whether its language is regular is not decided; the other verdicts are about regular ones"
    )
