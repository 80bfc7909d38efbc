"""Arguments and options that several commands share, and how their values are read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from locum.errors import InputError
from locum.settings import Setting, settings_of

PATH = click.Path(path_type=Path)
#: Words that mean a value, not four or five characters.
_WORDS_OF_JSON = ("true", "false", "null", "none", "nan", "inf", "infinity")
_HINT = "try '\"hello\"' for a string, '[3, 1, 2]' for numbers"


def complete_program(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Offer the listings and examples, by name, and the programs in this folder."""
    from locum.cli.programs import known

    here = sorted(path.name for ending in ("rasp", "json") for path in Path.cwd().glob(f"*.{ending}"))
    return [name for name in [*known(), *here] if name.startswith(begun)]


def complete_claim(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Offer the claims that there are, and the errata that can be refuted."""
    from locum.paper.errata import ERRATA
    from locum.verification.claims.named import FAMILIES

    refutable = (number for number, erratum in ERRATA.items() if erratum.refutable)
    return [name for name in [*FAMILIES, *refutable] if name.startswith(begun)]


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
program_argument = click.argument("program", type=PATH, shell_complete=complete_program)
name_option = click.option("--name", help="The s-op, selector or function without parameters meant.")
input_option = click.option(
    "--input",
    "input_text",
    metavar="TOKENS",
    help='The input: hello, or JSON ("hello", [3, 1, 2]).  [default: the program\'s, else hello]',
)
executor_option = click.option(
    "--executor", help="dense, fast, heads or auto.  [default: dense while that is quick, else auto]"
)


def settings_options(record: type, **replaced: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds an option for each setting of a dataclass, or what replaces it."""

    def option(name: str, setting: Setting) -> Callable[[Any], Any]:
        flag = f"--{name.replace('_', '-')}"
        default = None if setting.is_required else setting.default
        if setting.type == "true or false":
            flag += f"/--no-{flag[2:]}" if default else ""
            return click.option(flag, name, is_flag=True, default=default, help=setting.help)
        kind = {"an integer": click.INT, "a number": click.FLOAT}.get(setting.type, click.STRING)
        choices = None if setting.choices is None else click.Choice(list(setting.choices))
        return click.option(
            flag, name, type=choices or kind, default=default, show_default=True, help=setting.help
        )

    def decorate(command: Any) -> Any:
        for name, setting in reversed(settings_of(record).items()):
            command = replaced.get(name, option(name, setting))(command)
        return command

    return decorate


def integers(
    count: int, least: int = 1
) -> Callable[[click.Context, click.Parameter, str | None], tuple[int, ...] | None]:
    """Make a callback that reads ``count`` integers, each ``least`` or more, separated by commas."""

    def read(
        context: click.Context, option: click.Parameter, text: str | None
    ) -> tuple[int, ...] | None:
        if text is None:
            return None
        try:
            numbers = tuple(int(part) for part in text.split(","))
        except ValueError:
            numbers = ()
        if len(numbers) != count or min(numbers) < least:
            raise InputError(
                f"--{option.name}: expected {count} integers ≥ {least}, with commas, got {text!r}"
            )
        return numbers

    return read


def read_base(context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    """Read the base of the exponential: a positive number, or e (None)."""
    if text is None or text == "e":
        return None
    try:
        base = float(text)
    except ValueError:
        base = 0.0
    if not (base > 0 and math.isfinite(base)):
        raise InputError(f"--base: expected a positive number or e, got {text!r}")
    return base


base_option = click.option(
    "--base", callback=read_base, metavar="NUMBER", help="Base of the exponential.  [default: e]"
)


def read_input(text: str | None, option: str = "--input") -> Any:
    """Read an input: JSON, or a plain text that cannot be mistaken for JSON or a list.

    1, 1.0, "1" and true are told apart; a text of digits, or one with commas, must say what it is.

    >>> read_input("hello"), read_input('"1,2"'), read_input("[1, 2.5, true]")
    ('hello', '1,2', [1, 2.5, True])
    """
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if not _is_plain(text):
            raise InputError(f"{option}: expected JSON, got {text[:40]!r} ({error}); {_HINT}") from None
        value = text
    require_unicode(value, f"{option} {text[:40]!r}")
    if value is None:
        raise InputError(f"{option}: expected a string or a list, got null; {_HINT}")
    return value


def _is_plain(text: str) -> bool:
    """Return whether a text can only be meant as a string of characters."""
    return (
        re.match(r"[\[{\"']", text) is None
        and "," not in text
        and re.search(r"[^\d\s.eE+-]", text) is not None
        and text.strip().lower() not in _WORDS_OF_JSON
    )


def require_unicode(value: Any, where: str) -> None:
    """Refuse strings with unpaired surrogates, which cannot be written as UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError(f"{where} contains an unpaired surrogate and is not valid Unicode") from None
