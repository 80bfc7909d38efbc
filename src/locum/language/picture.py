"""Hold a picture as SVG: shown in a notebook, written to a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from locum.files import write_file


@dataclass(frozen=True)
class Picture:
    """A picture as the text of an SVG file.

    >>> Picture("<svg/>", "nothing")
    a picture of nothing (SVG); save(path) writes it
    """

    svg: str = field(repr=False)
    subject: str

    def save(self, path: str | Path) -> None:
        """Write the picture to a file."""
        write_file(path, self.svg)

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"a picture of {self.subject} (SVG); save(path) writes it"
