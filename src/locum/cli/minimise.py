"""Make a C-RASP program smaller: leave out parts while it stays equivalent, proven.

PROGRAM is a file of C-RASP. Every step is proven by z3 (pip install 'locum[solve]'); that nothing
smaller is equivalent is not claimed.
"""

from __future__ import annotations

from typing import Any

import click

from locum.cli import output
from locum.cli.languages import language_options, read_language
from locum.cli.options import json_option
from locum.errors import InputError


@click.command("minimise", help=__doc__)
@click.argument("program")
@language_options
@click.option("--seconds", default=60.0, show_default=True, help="The limit of processor time.")
@json_option
def command(program: str, seconds: float, **options: Any) -> None:
    """Minimise and print."""
    from locum.dialects.minimise import minimise, size

    read = read_language(program, options)
    if read.program is None:
        raise InputError(f"expected a C-RASP program, got {read.form}; try --from c-rasp")
    smaller = minimise(read.program, seconds=seconds)
    (counts, parts), (fewer, left) = size(read.program), size(smaller)
    if options["as_json"]:
        output.print_json({"program": smaller.text, "counts": [counts, fewer], "parts": [parts, left]})
        return
    output.say(f"// {counts} counts and {parts} parts before, {fewer} and {left} now")
    output.say(smaller.text, end="")
