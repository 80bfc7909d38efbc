"""What constructions say of a program while it is translated: conditions on its input.

A construction calls :func:`require` where PyTorch raises an error for some values, such as an index out
of range. The conditions become roots of the program, and a run raises an error where one does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from locum.language.handles import SOp


@dataclass
class Notes:
    """What was noted of one program."""

    #: Each counts, at position 0, how often its problem occurs; the problem in words.
    required: list[tuple[SOp, str]] = field(default_factory=list)


_notes: ContextVar[Notes | None] = ContextVar("notes", default=None)


@contextmanager
def collect_notes() -> Iterator[Notes]:
    """Collect what constructions note within the block."""
    notes = Notes()
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)


def require(violations: SOp, problem: str) -> None:
    """Note that a run raises ``problem`` unless ``violations`` is 0 at position 0."""
    notes = _notes.get()
    if notes is not None:
        notes.required.append((violations, problem))
