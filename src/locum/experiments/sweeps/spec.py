"""Read the specification of a sweep from a TOML file.

Each ``[[sweep]]`` section contains the name of a kind and its settings. If settings are lists, every
combination of their values is a case (a grid). ``{ first = 0, count = 100 }`` is a range of integers,
such as seeds. If the value of a setting is itself a list, such as a shape, the section contains one
list or a list of lists. ``cases = "all"`` selects a list of cases that the kind defines under this
name.
"""

from __future__ import annotations

import itertools
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from locum.errors import InputError
from locum.experiments.sweeps.sweep_case import Case
from locum.experiments.sweeps.sweep_kinds import Kind, kind_named, resolve
from locum.files import read_text
from locum.settings import Setting, require_known

#: Maximum size of a specification in bytes, and maximum number of cases.
MOST_BYTES, MOST_CASES = 2**20, 1_000_000


def read_spec(path: str | Path) -> list[Case]:
    """Return the cases of the specification in the file ``path``."""
    try:
        return parse_spec(read_text(path, MOST_BYTES))
    except SpecError as error:
        raise InputError(f"{path}{error.place}: {error}") from None


class SpecError(InputError):
    """An error in a specification, with its line if the line is known."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        self.place = "" if line is None else f", line {line}"
        super().__init__(problem)


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
        raise SpecError(f"not TOML ({error})") from None
    for name in content:
        if name != "sweep":
            raise SpecError(f"expected [[sweep]], got the unknown name {name!r}", _line(text, name))
    sections = content.get("sweep")
    if (
        not isinstance(sections, list)
        or not sections
        or not all(isinstance(part, dict) for part in sections)
    ):
        raise SpecError("expected at least one [[sweep]] with a kind and its settings")
    cases: list[Case] = []
    for number, section in enumerate(sections):
        cases += _cases(section, _Place(text, number), MOST_CASES - len(cases))
    return cases


class _Place:
    """A section of a specification, which adds line numbers to errors in its fields."""

    def __init__(self, text: str, number: int) -> None:
        self.text, self.number = text, number

    def error(self, problem: str, name: str | None = None) -> SpecError:
        line = _line(self.text, name, self.number)
        return SpecError(problem, _line(self.text, None, self.number) if line is None else line)

    @contextmanager
    def errors(self, name: str | None = None) -> Iterator[None]:
        """Add the line of a field to every ``InputError`` that is raised in the block."""
        try:
            yield
        except InputError as error:
            raise self.error(str(error), name) from None


def _line(text: str, name: str | None, section: int = -1) -> int | None:
    """Return the line number of a field in a section, where section −1 precedes all sections.

    Without a field name, return the line of the section itself; None if the line is not found.
    """
    seen = -1
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(r"\s*\[\[", line):
            seen += 1
            if seen == section and name is None:
                return number
        place = re.match(r"""\s*\[?\s*["']?([^"'\s=.\]]+)""", line)
        if seen == section and place is not None and place[1] == name:
            return number
    return None


def _cases(section: Mapping[str, Any], place: _Place, room: int) -> list[Case]:
    fields = dict(section)
    if "kind" not in fields:
        raise place.error('a [[sweep]] needs a kind, such as kind = "fuzz"')
    name = fields.pop("kind")
    with place.errors("kind"):
        kind = kind_named(name)
    if "cases" in fields and "cases" not in kind.settings:
        return _listed(name, kind, fields, place)
    known = [*kind.settings, *(["cases"] if kind.lists else [])]
    for field in fields:
        with place.errors(field):
            require_known([field], known, f"settings of kind {name}")
    values = [_values(field, kind.settings[field], value, place) for field, value in fields.items()]
    count = math.prod(map(len, values))
    if count > room:
        raise place.error(f"this makes {count:,} cases; a spec may have {MOST_CASES:,} in all")
    with place.errors():
        grid = itertools.product(*values)
        cases = [Case(name, dict(zip(fields, point, strict=True))) for point in grid]
    if kind.check is not None:
        problem_of = resolve(kind.check)
        for case in cases:
            if (problem := problem_of(case.settings)) is not None:
                raise place.error(f"{problem[0]}: {problem[1]}", problem[0])
    return cases


def _listed(name: str, kind: Kind, fields: dict[str, Any], place: _Place) -> list[Case]:
    """Return the cases of a named list that the kind defines."""
    asked = fields.pop("cases")
    if fields:
        raise place.error(f"cases = … stands alone, without {next(iter(fields))!r}", next(iter(fields)))
    if not isinstance(asked, str) or asked not in kind.lists:
        known = ", ".join(kind.lists) or "none"
        raise place.error(f"kind {name} has no list {asked!r} of cases: it has {known}", "cases")
    return [Case(name, settings) for settings in resolve(kind.lists[asked])()]


def _values(name: str, setting: Setting, value: Any, place: _Place) -> Sequence[Any]:
    """Return all values of a field: a range, several values, or one value."""
    if isinstance(value, dict) and setting.type == "an integer":
        first, count = value.get("first"), value.get("count")
        if value.keys() != {"first", "count"} or type(first) is not int or type(count) is not int:
            raise place.error(
                f"{name}: expected a range {{ first = 0, count = 100 }} of integers, got {value}", name
            )
        if count < 1:
            raise place.error(f"{name}: expected a count of 1 or more, got {count}", name)
        return range(first, first + count)
    many = isinstance(value, list) and not (
        setting.is_list and not any(isinstance(item, list) for item in value)
    )
    values = value if many else [value]
    if not values:
        raise place.error(f"{name}: expected at least one value, got []", name)
    with place.errors(name):
        return [setting.read(item, name) for item in values]
