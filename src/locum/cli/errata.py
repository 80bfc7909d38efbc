"""List the paper's errata: quote, problem, counterexample, correction and severity.

`locum prove NUMBER` refutes those that are claims about programs.
"""

from __future__ import annotations

import textwrap

import click

from locum.cli import output
from locum.cli.options import json_option

_WIDTH = 100


@click.command("errata", help=__doc__)
@json_option
def command(as_json: bool) -> None:
    """Print the list."""
    from locum.paper.errata import ERRATA, SEVERITIES

    if as_json:
        names = ("number", "severity", "where", "quotes", "wrong", "counterexample", "right")
        rows = [{name: getattr(erratum, name) for name in names} for erratum in ERRATA.values()]
        output.print_json({"errata": rows})
        return
    for erratum in ERRATA.values():
        output.say(f"{erratum.number} ({erratum.severity}): {erratum.where}")
        for quote in erratum.quotes:
            _paragraph("Quote", quote)
        _paragraph("Problem", erratum.wrong)
        _paragraph("Counterexample", erratum.counterexample)
        _paragraph("Correction", erratum.right)
        output.say()
    output.say("; ".join(f"{letter}: {meaning}" for letter, meaning in SEVERITIES.items()))


def _paragraph(label: str, text: str) -> None:
    """Print a labelled paragraph, indented and wrapped at spaces."""
    lines = textwrap.wrap(
        f"{label}: {text}", _WIDTH, initial_indent="  ", subsequent_indent="    ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    output.say("\n".join(lines))
