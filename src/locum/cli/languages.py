"""Options of the commands that take a language, and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from locum.dialects.languages import Language

Command = TypeVar("Command", bound=Callable[..., Any])

_FORMS = click.Choice(["regex", "dfa", "ltl", "c-rasp", "b-rasp"])


def language_options(command: Command) -> Command:
    """Add the options that say how a language is written."""
    for option in reversed(
        (
            click.option("--from", "form", type=_FORMS, help="How the language is written."),
            click.option("--alphabet", help="Its symbols: abc, or with commas.  [default: as named]"),
            click.option(
                "--plus",
                type=click.Choice(["union", "repeat"]),
                default="union",
                show_default=True,
                help="What + is in a regular expression: union, or once or more.",
            ),
            click.option(
                "--at",
                type=click.Choice(["first", "last"]),
                default="first",
                show_default=True,
                help="The position at which a formula has to hold.",
            ),
            click.option(
                "--accept",
                type=click.Choice(["last", "end"]),
                help="Where a C-RASP program is read: last symbol or end marker.  [default: last]",
            ),
            click.option(
                "--positions",
                type=click.Choice(["0", "1"]),
                help="The number of the first position in a C-RASP program.  [default: 0]",
            ),
        )
    ):
        command = option(command)
    return command


def read_language(source: str, options: Mapping[str, Any]) -> Language:
    """Read a language as the options say."""
    from locum.dialects.languages import read

    text = options["alphabet"]
    alphabet = None
    if text is not None:
        alphabet = [part for part in (text.split(",") if "," in text else text) if part.strip()]
    positions = options["positions"]
    return read(
        source,
        options["form"],
        alphabet=alphabet,
        plus=options["plus"],
        at=options["at"],
        accept=options["accept"],
        positions=None if positions is None else int(positions),
    )
