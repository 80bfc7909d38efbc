"""The paper's listings as RASP files, verbatim, and the corrected forms of the wrong ones.

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
    """List the names that :func:`text` takes, in alphabetical order."""
    files = resources.files(__name__).iterdir()
    return sorted(file.name.removesuffix(".rasp") for file in files if file.name.endswith(".rasp"))


def text(name: str) -> str:
    """Return the RASP source of the listing ``name``."""
    return resources.files(__name__).joinpath(f"{name}.rasp").read_text(encoding="utf-8")


def program(name: str, example: list[Any]) -> SOp:
    """Build the s-op that the listing ``name`` shows; ``example`` is the session's running example."""
    ((_, shown),) = Session(example).script(text(name))
    assert isinstance(shown, SOp)
    return shown
