"""Compare two languages or programs: equivalent, or a shortest word that only one has.

P and Q are written like LANGUAGE of locum classify and need the same alphabet: use --alphabet if they
name different symbols. Regular languages are compared by their automata, C-RASP programs by z3
(pip install 'locum[solve]'). A word that separates them is run again by dense execution and by
compiled weights. The exit code is 1 if they differ.
"""

from __future__ import annotations

from typing import Any

import click

from locum.cli import output
from locum.cli.languages import language_options, read_language
from locum.cli.options import json_option


@click.command("equivalent", help=__doc__)
@click.argument("p")
@click.argument("q")
@language_options
@click.option("--seconds", default=20.0, show_default=True, help="The limit of processor time.")
@json_option
def command(p: str, q: str, seconds: float, **options: Any) -> None:
    """Compare and tell."""
    from locum.dialects.automata import show_alphabet, show_word
    from locum.dialects.equivalence import EQUIVALENT, SEPARATED, equivalent

    comparison = equivalent(read_language(p, options), read_language(q, options), seconds=seconds)
    over = f"over {show_alphabet(comparison.alphabet)}"
    if options["as_json"]:
        output.print_json(comparison.to_dict())
    elif comparison.verdict == EQUIVALENT:
        scope = "" if comparison.empty_word else " (on words of one symbol or more)"
        output.say(f"equivalent {over}, proven by {comparison.method}{scope}")
    elif comparison.word is not None:
        word = show_word(comparison.word)
        output.say(f"different {over}: {word} separates them, and no shorter word does")
        for name, answer in zip("PQ", comparison.answers, strict=True):
            runs = ", ".join(f"{how} {_said(value)}" for how, value in answer.by.items())
            output.say(f"  {name} {'accepts' if answer.expected else 'rejects'} it ({runs})")
    else:
        output.say(f"not decided {over} within {seconds:g} seconds; {comparison.method}")
    if comparison.verdict == SEPARATED:
        raise click.exceptions.Exit(1)


def _said(value: bool | str) -> str:
    return value if isinstance(value, str) else "accepts" if value else "rejects"
