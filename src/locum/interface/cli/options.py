"""Arguments and options that several commands share, and how their values are read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from locum.errors import InputError
from locum.settings import Setting, settings_of

Function = TypeVar("Function", bound=Callable[..., Any])
Option = Callable[[Function], Function]

PATH = click.Path(path_type=Path)
#: The enumerations. They are repeated here so that a command starts without importing their modules.
EXECUTORS = ("dense", "fast", "auto", "heads")
DOMAINS = ("float", "exact", "ieee")
RECIPES = ("paper", "fetch", "tiled", "inverse", "width-1")
KINDS = ("softmax", "factored", "linear", "linformer", "performer", "sumformer")
NORMS = ("none", "post", "pre")
DTYPES = ("float64", "float32")
#: Words that mean a value, not four or five characters.
_WORDS_OF_JSON = ("true", "false", "null", "none", "nan", "inf", "infinity")
_HINT = "try '\"hello\"' for a string, '[3, 1, 2]' for numbers"


class OutputFile(click.Path):
    """A file to write, with one of the suffixes; ``-`` is standard output."""

    def __init__(self, *suffixes: str) -> None:
        super().__init__(path_type=Path)
        self.suffixes = suffixes

    def require_suffix(self, option: str, path: Path) -> None:
        """Raise an error for a file with another suffix."""
        if self.suffixes and path.suffix not in self.suffixes:
            expected = " or ".join(self.suffixes)
            raise InputError(f"{option}: expected a {expected} file, got {path}")


def choice(name: str, values: Sequence[str], text: str, default: str | None = None) -> Option[Any]:
    """Return an option for one of several values."""
    shown = default is not None
    return click.option(name, type=click.Choice(values), default=default, show_default=shown, help=text)


def output_option(*suffixes: str, text: str, **settings: Any) -> Option[Any]:
    """Return the option ``-o`` for a file with one of the suffixes."""
    return click.option("-o", "--output", type=OutputFile(*suffixes), help=text, **settings)


def limit_option(default: float | None, text: str = "CPU time limit.") -> Option[Any]:
    """Return the option ``--limit``, in seconds."""

    def read(context: click.Context, option: click.Parameter, seconds: float | None) -> float | None:
        if seconds is not None and not 0 < seconds < math.inf:
            raise InputError(f"--limit: expected a positive number of seconds, got {seconds:g}")
        return seconds

    return click.option(
        "--limit",
        type=float,
        callback=read,
        default=default,
        show_default=default is not None,
        metavar="SECONDS",
        help=text,
    )


def _read_limits(
    context: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, float] | None:
    """Read bounds of resources by name; "none" removes all of them."""
    if texts == ("none",):
        return None
    bounds: dict[str, float] = {}
    for text in texts:
        name, _, number = text.partition("=")
        try:
            bounds[name] = float(number)
        except ValueError:
            raise InputError(
                f"--limit: expected NAME=NUMBER or none, got {text!r}; try --limit units=50000"
            ) from None
    return bounds


resource_limit_option = click.option(
    "--limit", multiple=True, callback=_read_limits, metavar="NAME=NUMBER",
    help="Bound of units, width, seconds or memory (bytes), or none.",
)  # fmt: skip
name_option = click.option("--name", help="S-op, selector or function without parameters.")
input_option = click.option(
    "--input",
    "input_text",
    metavar="TOKENS",
    help='The input: hello, or JSON ("hello", [3, 1, 2]).  [default: the program\'s, else hello]',
)
inputs_option = click.option(
    "--input", "texts", multiple=True, metavar="TOKENS",
    help='An input: abc, or 1,2.5, or JSON ("abc", [1, 2.5]); may be repeated.',
)  # fmt: skip
alphabet_option = click.option(
    "--alphabet", help="Symbols of a language: abc, or with commas.  [default: as named]"
)
seed_option = click.option("--seed", type=click.IntRange(0), help="Random seed.  [default: 0]")


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


def order_option(text: str, name: str = "--order") -> Option[Any]:
    """Return an option for the sizes n,d,d_v of U."""
    return click.option(name, callback=integers(3), metavar="n,d,d_v", help=text)


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


# Inputs ---------------------------------------------------------------------------------------------


def read_input(text: str | None, option: str = "--input") -> Any:
    """Read an input: JSON, or a plain text that cannot be mistaken for JSON or a list.

    1, 1.0, "1" and true are told apart; a text of digits, or one with commas, must say what it is.
    The empty text is the empty sequence.

    >>> read_input("hello"), read_input('"1,2"'), read_input("[1, 2.5, true]"), read_input("")
    ('hello', '1,2', [1, 2.5, True], '')
    """
    if not text:
        return text
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
    """Reject strings with unpaired surrogates, which cannot be written as UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError(f"{where} contains an unpaired surrogate and is not valid Unicode") from None
