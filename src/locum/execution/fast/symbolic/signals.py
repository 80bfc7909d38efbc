"""Signals that lowering raises instead of a value: begin again, or leave it to another tier."""

from __future__ import annotations

from locum.graph import Node


class Refine(Exception):  # noqa: N818 - a request, not an error
    """Split a variable into digits, or cut its range in two, and begin again."""

    def __init__(self, name: str, kind: str, at: int) -> None:
        self.name, self.kind, self.at = name, kind, at
        super().__init__(f"{kind} {name} at {at}")


class Stuck(Exception):  # noqa: N818 - the normal end of what can be lowered
    """There is no rule for this."""


class Opaque(Exception):  # noqa: N818 - a request, as Refine is
    """A closed s-op that lowering cannot express: the structured tier runs it."""

    def __init__(self, node: Node, reason: str) -> None:
        self.node, self.reason = node, reason
        super().__init__(reason)


class NotNumeric(Exception):  # noqa: N818 - decides which tier runs the program
    """The program computes strings, which are not lowered."""
