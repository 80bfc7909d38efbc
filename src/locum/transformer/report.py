"""Write a report of nested data as readable text.

>>> print(render({"bound": 1e-3, "heads": [{"layer": 0, "temperature": 64.0}], "name": "reverse"}))
bound: 0.001
heads:
  - layer: 0
    temperature: 64
name: reverse
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from locum.shortening import at_most, shortened

#: A list of plain values stands in one line up to here, and a string is cut here.
_LINE, _LETTERS = 96, 200


def render(data: Any) -> str:
    """Return ``data`` (dicts, lists, atoms) as indented lines."""
    return "\n".join(_lines(data))


def _lines(data: Any) -> list[str]:
    if isinstance(data, Mapping):
        return [line for key, value in data.items() for line in _entry(f"{key}:", _bound(key, value))]
    if isinstance(data, Sequence) and not isinstance(data, str):
        lines = []
        for value in data:
            first, *rest = _lines(value) or ["(nothing)"]
            lines += [f"- {first}", *(f"  {line}" for line in rest)]
        return lines
    return _plain(data).splitlines() or [""]


def _entry(label: str, value: Any) -> list[str]:
    if _is_plain(value):
        lines = _lines(value)
        if len(lines) == 1:
            return [f"{label} {lines[0]}".rstrip()]
    elif not value:
        return [f"{label} (nothing)"]
    elif not isinstance(value, Mapping) and all(map(_is_plain, value)):
        line = ", ".join(map(_plain, value))
        if len(label) + len(line) < _LINE and "\n" not in line:
            return [f"{label} {line}"]
    return [label, *(f"  {line}" for line in _lines(value))]


def _bound(key: object, value: Any) -> Any:
    """Return errors, and shares that leak, as texts that do not claim less than these."""
    is_bound = isinstance(key, str) and ("error" in key or key == "leak") and isinstance(value, float)
    return at_most(value, ".6g") if is_bound else value


def _is_plain(value: Any) -> bool:
    return isinstance(value, str) or not isinstance(value, (Mapping, Sequence))


def _plain(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, float):
        return f"{value:.6g}"
    return shortened(str(value), _LETTERS)
