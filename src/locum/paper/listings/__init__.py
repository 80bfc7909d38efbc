"""Provide the paper's listings and snippets as RASP files, with corrected versions of wrong listings.

Except for corrected versions, the text is verbatim, and Locum adds further lines. In ``inverse.rasp``,
numbers replace the matrix A. In ``shift.rasp``, Locum adds the end of the expression, which the paper's
source does not show.

>>> "transpose" in names()
True
>>> text("relu").startswith("# Listing 4")
True
"""

from __future__ import annotations

from importlib import resources
from typing import Any

from locum.rasp import Session
from locum.rasp.handles import SOp


def names() -> list[str]:
    """Return the names of all listings that :func:`text` accepts, in alphabetical order."""
    files = resources.files(__name__).iterdir()
    return sorted(file.name.removesuffix(".rasp") for file in files if file.name.endswith(".rasp"))


def text(name: str) -> str:
    """Return the RASP source of the listing ``name``."""
    return resources.files(__name__).joinpath(f"{name}.rasp").read_text(encoding="utf-8")


def program(name: str, example: list[Any]) -> SOp:
    """Build the s-op that a listing shows.

    ``example`` is the running example of the session until the listing sets another one.
    """
    ((_, shown),) = Session(example).script(text(name))
    assert isinstance(shown, SOp)
    return shown
