"""What several commands share: reading programs and inputs, printing one JSON object."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from understudy.errors import InputError, UnderstudyError
from understudy.graph import Node, loads

program_argument = click.argument("program", type=click.Path(path_type=Path))
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def read_program(path: Path) -> Node:
    """The program in a file: a graph as JSON, as ``understudy.dumps`` writes it."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UnderstudyError(f"cannot read the program {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UnderstudyError(f"cannot read the program {path}: it is not text") from None
    return loads(text)


def read_input(text: str) -> Any:
    """The value of ``--input``: JSON, so that 1, 1.0, "1" and true are told apart."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(
            f"--input {text[:40]} is not JSON: write '\"hello\"' for a string, '[3, 1, 2]' for numbers"
        ) from None


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
