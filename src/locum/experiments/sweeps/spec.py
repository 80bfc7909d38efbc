"""Read the specification of a sweep from a TOML file.

Each ``[[sweep]]`` section contains the name of a kind and its settings. If settings are lists, every
combination of their values is a case (a grid). ``{ first = 0, count = 100 }`` is a range of integers,
such as seeds.
"""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from locum.errors import InputError
from locum.experiments.sweeps.sweep_case import Case
from locum.experiments.sweeps.sweep_kinds import kind_named, resolve
from locum.files import read_text
from locum.settings import Setting, require_known

#: Maximum size of a specification in bytes, and maximum number of cases.
MOST_BYTES, MOST_CASES = 2**20, 1_000_000


def read_spec(path: str | Path) -> list[Case]:
    """Return the cases of the specification in the file ``path``."""
    text = read_text(path, MOST_BYTES)
    try:
        return parse_spec(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def parse_spec(text: str) -> list[Case]:
    """Return the cases of the specification in ``text``.

    >>> [case.settings["seed"] for case in parse_spec('''
    ... [[sweep]]
    ... kind = "trial"
    ... seed = { first = 5, count = 2 }
    ... ends = ["done", "failed"]
    ... ''')]
    [5, 5, 6, 6]
    """
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"not TOML ({error})") from None
    require_known(content, ["sweep"], "specification")
    sections = content.get("sweep")
    if (
        not isinstance(sections, list)
        or not sections
        or not all(isinstance(part, dict) for part in sections)
    ):
        raise InputError("expected at least one [[sweep]] with a kind and its settings")
    cases: list[Case] = []
    for number, section in enumerate(sections, start=1):
        try:
            cases += _cases(section, MOST_CASES - len(cases))
        except InputError as error:
            raise InputError(f"[[sweep]] number {number}: {error}") from None
    return cases


def _cases(section: Mapping[str, Any], room: int) -> list[Case]:
    fields = dict(section)
    if "kind" not in fields:
        raise InputError('expected a kind, such as kind = "fuzz", got none')
    name = fields.pop("kind")
    kind = kind_named(name)
    require_known(fields, kind.settings, f"settings of kind {name}")
    values = [_values(field, kind.settings[field], value) for field, value in fields.items()]
    count = math.prod(map(len, values))
    if count > room:
        raise InputError(f"expected at most {MOST_CASES:,} cases in all, got {count:,} cases here")
    cases = [Case(name, dict(zip(fields, point, strict=True))) for point in itertools.product(*values)]
    if kind.check is not None:
        check = resolve(kind.check)
        for case in cases:
            check(case.settings)
    return cases


def _values(name: str, setting: Setting, value: Any) -> Sequence[Any]:
    """Return all values of a field: a range, several values, or one value."""
    if isinstance(value, dict) and setting.type == "an integer":
        first, count = value.get("first"), value.get("count")
        if value.keys() != {"first", "count"} or type(first) is not int or type(count) is not int:
            raise InputError(
                f"{name}: expected a range {{ first = 0, count = 100 }} of integers, got {value}"
            )
        if count < 1:
            raise InputError(f"{name}: expected a count of 1 or more, got {count}")
        return range(first, first + count)
    values = value if isinstance(value, list) else [value]
    if not values:
        raise InputError(f"{name}: expected at least one value, got []")
    return [setting.read(item, name) for item in values]
