"""Write and read the index of a dataset: ``index.jsonl``, with a JSON object for each item."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from locum.errors import InputError
from locum.files import parse_json, read_text, write_file

INDEX = "index.jsonl"
#: Maximum size of an index in bytes.
_LIMIT = 2**30


def write_index(place: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write the rows of an index in the order of their ids."""
    ordered = sorted(rows, key=lambda row: str(row["id"]))
    lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) for row in ordered)
    write_file(place / INDEX, "".join(f"{line}\n" for line in lines))


def read_index(place: Path) -> list[dict[str, Any]]:
    """Return the rows of the index in the folder of a dataset.

    ``InputError`` is raised if the index is damaged, or if the folder of an item is missing.
    """
    text = read_text(place / INDEX, _LIMIT)
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            row = parse_json(line)
        except InputError as error:
            raise InputError(f"{place / INDEX}, line {number}: {error}") from None
        if not isinstance(row, dict) or not isinstance(row.get("folder"), str):
            raise InputError(f"{place / INDEX}, line {number}: expected an item with its folder")
        if not (place / row["folder"] / "certificate.json").is_file():
            raise InputError(
                f"expected an item in {place / row['folder']}, got none; try locum dataset make again"
            )
        rows.append(row)
    if not text.endswith("\n"):
        raise InputError(f"{place / INDEX}: expected a complete last line, got {text[-40:]!r}")
    return rows
