"""Define the arguments and options that several commands share, and read their values."""

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
#: Choices of options, repeated here so that a command starts without importing the modules that define
#: them.
EXECUTORS = ("dense", "fast", "auto", "heads")
DOMAINS = ("float", "exact", "ieee")
RECIPES = ("paper", "fetch", "tiled", "inverse", "width-1")
KINDS = ("softmax", "factored", "linear", "linformer", "performer", "sumformer")
NORMS = ("none", "post", "pre")
DTYPES = ("float64", "float32")
#: Words that could be mistaken for JSON values, and are therefore not read as plain text.
_WORDS_OF_JSON = ("true", "false", "null", "none", "nan", "inf", "infinity")
_HINT = "try '\"hello\"' for a string, '[3, 1, 2]' for numbers"


class OutputFile(click.Path):
    """The path of a file to write, with one of the required suffixes, if there are any.

    No file is written for ``-``, which stands for standard output.
    """

    def __init__(self, *suffixes: str) -> None:
        super().__init__(path_type=Path)
        self.suffixes = suffixes

    def require_suffix(self, option: str, path: Path) -> None:
        """Raise an error that names ``option`` if the suffix of ``path`` is not supported."""
        if self.suffixes and path.suffix not in self.suffixes:
            expected = " or ".join(self.suffixes)
            raise InputError(f"{option}: expected a {expected} file, got {path}")


def choice(name: str, values: Sequence[str], text: str, default: str | None = None) -> Option[Any]:
    """Return an option ``name`` that accepts one of ``values``, with the help text ``text``."""
    shown = default is not None
    return click.option(name, type=click.Choice(values), default=default, show_default=shown, help=text)


def output_option(*suffixes: str, text: str, **settings: Any) -> Option[Any]:
    """Return the option ``-o`` for a file with one of the ``suffixes``."""
    return click.option("-o", "--output", type=OutputFile(*suffixes), help=text, **settings)


def limit_option(default: float | None, text: str = "CPU time limit in seconds.") -> Option[Any]:
    """Return the option ``--limit``, a positive number of seconds."""

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
) -> dict[str, float | None] | None:
    """Return the compile limits by resource, or None for ``none`` alone.

    ``NAME=NUMBER`` sets a limit, ``NAME=none`` removes one limit, and ``none`` removes all limits that
    are not set explicitly.
    """
    named = [text for text in texts if text.lower() != "none"]
    if texts and not named:
        return None
    bounds: dict[str, float | None] = {}
    if len(named) < len(texts):
        from locum.networks.compiler.compile_limits import RESOURCES

        bounds |= dict.fromkeys(RESOURCES)
    for text in named:
        name, _, number = text.partition("=")
        try:
            bounds[name] = None if number.lower() == "none" else float(number)
        except ValueError:
            raise InputError(
                f"--limit: expected NAME=NUMBER, NAME=none or none, got {text!r}; try --limit "
                "units=50000"
            ) from None
    return bounds


resource_limit_option = click.option(
    "--limit", multiple=True, callback=_read_limits, metavar="NAME=NUMBER",
    help="Limit of units, width, seconds or memory (bytes); or none.",
)  # fmt: skip
name_option = click.option("--name", help="Name of an s-op, selector or parameterless function.")
input_option = click.option(
    "--input",
    "input_text",
    metavar="TOKENS",
    help='Input: hello, or JSON ("hello", [3, 1, 2]).  [default: set by the program, else hello]',
)
alphabet_option = click.option(
    "--alphabet", help="Alphabet: abc, or one,two.  [default: symbols in the source]"
)
seed_option = click.option("--seed", type=click.IntRange(0), help="Random seed.  [default: 0]")


def settings_options(record: type, **replaced: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds an option for each setting of the dataclass ``record``.

    ``replaced`` maps names of settings to the options that replace the default options.
    """

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
    """Return a click callback that reads ``count`` comma-separated integers ≥ ``least``."""

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
    """Return the option ``name`` for the sizes n,d,d_v of U."""
    return click.option(name, callback=integers(3), metavar="n,d,d_v", help=text)


def read_base(context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    """Return the base of the exponential as a positive number, or None for e."""
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
    """Read an input: JSON, or plain text that cannot be mistaken for JSON or a list.

    The inputs 1, 1.0, "1" and true are different. A text of digits, or a text with commas, must be
    quoted. An empty text is the empty sequence.

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
    """Return whether ``text`` cannot be mistaken for JSON, a number or a list."""
    return (
        re.match(r"[\[{\"']", text) is None
        and "," not in text
        and re.search(r"[^\d\s.eE+-]", text) is not None
        and text.strip().lower() not in _WORDS_OF_JSON
    )


def require_unicode(value: Any, where: str) -> None:
    """Raise ``InputError`` for strings with unpaired surrogates, which UTF-8 cannot encode."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError(f"{where} contains an unpaired surrogate and is not valid Unicode") from None
