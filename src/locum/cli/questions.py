"""Answer what is asked of the language in the REPL: ``help``, ``help name``, ``?name``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from locum.language import Session


def asked(line: str, session: Session) -> str | None:
    """Return what ``help``, ``help name`` or ``?name`` asks for ("" for help itself), or None.

    A program that has a name ``help`` of its own keeps it.
    """
    match = re.fullmatch(r"\s*(\?|help\b)\s*(\w*)\s*;?\s*", line)
    if match is None or (match.group(1) == "help" and "help" in session.names()):
        return None
    return match.group(2)


def answer(question: str, session: Session) -> str:
    """Describe the name asked for, or say how to begin."""
    from locum.language.rasp import describing

    if not question:
        return describing.OVERVIEW
    if question == "names":
        return describing.list_names()
    return describing.describe(question, session.names())
