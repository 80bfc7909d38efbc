"""What a RASP text may ask of the machine, so that hostile or mistaken input ends in an error.

All are adjustable: ``Session(limits=Limits(steps=10_000_000))``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Upper bounds; each error that one of them causes says which."""

    #: Characters in one text: a file, or what is executed at once.
    text: int = 500_000
    #: Brackets inside brackets.
    nesting: int = 500
    #: Statements, calls and loop rounds run for one statement of the program.
    steps: int = 100_000
    #: Calls inside calls.
    calls: int = 250
    #: Members of all the lists that one statement builds.
    items: int = 5_000_000
    #: Members of lists and dicts that one statement shows, and lists in lists.
    shown: int = 20_000
    depth: int = 100
    #: Heads of families expanded to show a value on the example.
    heads: int = 20_000
