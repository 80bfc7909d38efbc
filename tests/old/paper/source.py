"""The TeX source of the paper, which is not part of the repository.

``LOCUM_PAPER=file.tex`` names the file. Without it, ``../shared/paper`` next to the repository is read.
Tests that need the source are skipped if neither exists.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).parents[4] / "shared" / "paper" / "universal-simulators-of-attention.tex"


def normalised(text: str) -> str:
    """Replace every run of whitespace by one space."""
    return " ".join(text.split())


def read_source() -> str | None:
    """Return the source, or None if it is not here."""
    named = os.environ.get("LOCUM_PAPER")
    if named is None and not _BESIDE.exists():
        return None
    return Path(named or _BESIDE).read_text(encoding="utf-8")


def paper() -> str:
    """Return the source with normalised whitespace, or skip the test."""
    text = read_source()
    if text is None:
        pytest.skip("the TeX source of the paper is not here; set LOCUM_PAPER to its path")
    return normalised(text)
