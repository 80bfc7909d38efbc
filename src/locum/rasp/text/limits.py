"""Limit the resources of RASP texts, so that hostile or erroneous input ends in an error.

On an ordinary machine, the defaults limit a text to about two seconds of work, and a session to about
one gigabyte of memory. The limits in :class:`Limits` are adjustable:
``Session(limits=Limits(steps=10_000_000, text_steps=10_000_000))``.
"""

from __future__ import annotations

from dataclasses import dataclass

from locum.budget import Budget


@dataclass(frozen=True)
class Limits:
    """Upper bounds on the resources of a text and of a session."""

    #: Number of characters in one text: a file, or one call of ``execute``.
    text: int = 500_000
    #: Depth of nested brackets.
    nesting: int = 500
    #: Steps for one statement, and for all statements of a text and its parsing. A step takes about
    #: five microseconds. An iteration of a loop, for example, costs at least one step.
    steps: int = 100_000
    text_steps: int = 150_000
    #: Bytes of memory for the values of a session and for intermediate results.
    memory: int = 300_000_000
    #: Depth of nested calls, and of files that load files.
    calls: int = 250
    loads: int = 100
    #: Number of list members that one statement builds.
    items: int = 5_000_000
    #: Limits on the display of a statement: number of members of lists and dicts, depth of nested
    #: lists, and number of characters.
    shown: int = 20_000
    depth: int = 100
    characters: int = 200_000
    #: Number of displayed cells of a selector. Of a larger selector, only the first rows and columns
    #: are displayed.
    cells: int = 40_000
    #: Number of heads of families that are expanded to display a value.
    heads: int = 20_000

    def budget(self) -> Budget:
        """Return a new budget with these limits."""
        return Budget(self.steps, self.text_steps, self.memory)
