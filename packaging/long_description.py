"""Make the long description of the distribution from README.md: a hook of hatchling."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def long_description(text: str, repository: str | None) -> str:
    """Return the text without links that a package index cannot resolve.

    Relative links become absolute if the project has the URL "Repository". Otherwise only their text
    remains, and pictures of the repository are removed.
    """
    link = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|#|mailto:)([^()\s]+)\)")
    base = f"{repository.rstrip('/')}/raw/HEAD/" if repository else None
    pages = f"{repository.rstrip('/')}/blob/HEAD/" if repository else None

    def replace(match: re.Match[str]) -> str:
        picture, label, target = match.groups()
        if base and pages:
            return f"{picture}[{label}]({base if picture else pages}{target})"
        return "" if picture else label

    return link.sub(replace, text)


class CustomMetadataHook(MetadataHookInterface):
    """A metadata hook that sets the field ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the long description to the metadata."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": long_description(text, repository),
        }
