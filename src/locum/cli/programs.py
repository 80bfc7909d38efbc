"""What several commands share: reading programs and inputs, printing one JSON object."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from locum.errors import InputError, LocumError
from locum.graph import Node, loads
from locum.language.handles import Selector, SOp, wrap

if TYPE_CHECKING:
    from locum.language import Session

_HINT = "write '\"hello\"' for a string, '[3, 1, 2]' for numbers"
program_argument = click.argument("program", type=click.Path(path_type=Path))
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
input_option = click.option(
    "--input", "given", help='The input, as JSON. [default: the program\'s example, else "hello"]'
)
name_option = click.option("--name", help="The s-op, selector or function without parameters meant.")


class Program:
    """A program from a file: RASP text, or (.json) a graph as ``locum.dumps`` writes it."""

    def __init__(self, path: Path, given: Any = None) -> None:
        self.path = path
        self.session: Session | None = None
        #: What the program shows: names and values of its expressions.
        self.shown: list[tuple[str, Any]] = []
        text = _read(path)
        if path.suffix == ".json":
            self.shown = [(path.stem, wrap(loads(text)))]
        else:
            self._run(text, "hello" if given is None else given)
        self.tokens = given
        if given is None:
            self.tokens = "hello" if self.session is None else self.session.examples.tokens["s-op"]

    def _run(self, text: str, example: Any) -> None:
        from locum.language import RaspError, Session

        self.session = Session(example, folders=(Path.cwd(), self.path.parent))
        try:
            self.shown = self.session.script(text)
        except RaspError as error:
            raise LocumError(f"{self.path}, {error.pretty()}") from None

    def value(self, name: str | None) -> tuple[str, Any]:
        """A name and its value: the one asked for, or the last the program shows."""
        if name is not None and self.session is not None:
            return name, self.session.value_of(name)
        if name is not None and name != self.shown[0][0]:
            raise LocumError(f"{self.path} holds one program, {self.shown[0][0]}, and no {name}")
        if not self.shown:
            raise LocumError(f"{self.path} shows nothing: end it with an expression, or name one")
        return self.shown[-1]

    def program(self, name: str | None) -> tuple[str, SOp | Selector]:
        """Like :meth:`value`, but it must be an s-op or a selector."""
        name, value = self.value(name)
        if not isinstance(value, (SOp, Selector)):
            from locum.language.rasp.values import words_for

            raise LocumError(f"{name} is neither an s-op nor a selector, but {words_for(value)}")
        return name, value

    def names(self) -> dict[Node, str]:
        """The program's own names for nodes."""
        return self.session.names_of_nodes() if self.session is not None else {}


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise LocumError(f"cannot read the program {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise LocumError(f"cannot read the program {path}: it is not text") from None


def read_input(text: str | None, option: str = "--input") -> Any:
    """The value of ``--input``: JSON, so that 1, 1.0, "1" and true are told apart."""
    if text is None:
        return None
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False).encode()  # half characters cannot be shown
    except UnicodeEncodeError:
        raise InputError(
            f"{option} {text[:40]!r} has half a character in it (a lone surrogate)"
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{option} {text[:40]} is not JSON ({error}): {_HINT}") from None
    if value is None:
        raise InputError(f"{option} null is no input: {_HINT}")
    return value


def print_json(data: dict[str, Any]) -> None:
    """One JSON object on standard output; what JSON lacks (fractions, infinities) as strings."""
    click.echo(json.dumps(plain(data), ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """``value`` made of what JSON has."""
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, Fraction) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value
