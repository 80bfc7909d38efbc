"""What a RASP text may ask of the machine, so that hostile or mistaken input ends in an error.

The defaults keep any text, and any session, below two seconds of work and one gigabyte of memory on
an ordinary machine. All are adjustable: ``Session(limits=Limits(steps=10_000_000))``.
"""

from __future__ import annotations

from dataclasses import dataclass

from locum.budget import Budget


@dataclass(frozen=True)
class Limits:
    """Upper bounds; each error that one of them causes says which."""

    #: Characters in one text: a file, or what is executed at once.
    text: int = 500_000
    #: Brackets inside brackets.
    nesting: int = 500
    #: Steps for one statement, and for all statements of one text with the reading of it. A step is
    #: about five microseconds: a loop round, a statement, two parts of an expression.
    steps: int = 100_000
    text_steps: int = 150_000
    #: Bytes that the values of a session, and what is computed with them, may take at one time.
    memory: int = 300_000_000
    #: Calls inside calls, and files that load files.
    calls: int = 250
    loads: int = 100
    #: Members of all the lists that one statement builds.
    items: int = 5_000_000
    #: Members of lists and dicts that one statement shows, lists in lists, and characters of it all.
    shown: int = 20_000
    depth: int = 100
    characters: int = 200_000
    #: Cells of a selector that are shown; of a larger one, its first rows and columns are.
    cells: int = 40_000
    #: Heads of families expanded to show a value on the example.
    heads: int = 20_000

    def budget(self) -> Budget:
        """Open an account with these limits."""
        return Budget(self.steps, self.text_steps, self.memory)
