"""An account of what a program may ask of the machine: work in steps, memory in bytes.

Whoever runs a stranger's program hands one :class:`Budget` to everything that takes time or memory:
reading text, evaluating expressions, building nodes, running programs, showing values. Each draws on
it *before* it does its work, and what would overdraw it is refused with a :class:`LimitError`.

A step is about five microseconds of work on an ordinary machine. A statement has a limit of its own
within that of its text, so that one greedy statement does not use up what the others need.

>>> budget = Budget(steps=100, text_steps=150)
>>> budget.spend(90)
>>> budget.begin_statement()
>>> budget.spend(70)
Traceback (most recent call last):
locum.errors.LimitError: the text takes more than 150 steps in all (the limit is adjustable)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from locum.errors import LimitError

#: Largest integer (in bits) and string (in characters) that a program may build.
MAX_BITS = 1_000_000
MAX_STRING = 1_000_000

#: Integers of fewer bits are as quick to compute with as any.
_SMALL_BITS = 1_024
#: Characters of a string that one step copies.
_CHARACTERS_PER_STEP = 10_000


class Budget:
    """Steps and bytes that are left to a text and to its current statement."""

    def __init__(
        self,
        steps: float = math.inf,
        text_steps: float = math.inf,
        memory: float = math.inf,
    ) -> None:
        #: The most steps for one statement, and for all statements of one text.
        self.most_steps = steps
        self.most_text_steps = text_steps
        #: The most bytes at one time.
        self.most_memory = memory
        #: Steps taken so far, and bytes that are in use at most.
        self.steps = 0.0
        self.text_steps = 0.0
        self.memory = 0

    def begin_text(self) -> None:
        """Start the account of a new text; values of earlier ones stay in memory."""
        self.steps = self.text_steps = 0.0

    def begin_statement(self) -> None:
        """Start the account of the next statement."""
        self.steps = 0.0

    def spend(self, steps: float) -> None:
        """Take ``steps`` from the statement and its text; what is refused is not taken."""
        if self.steps + steps > self.most_steps:
            raise LimitError(
                f"this takes more than {self.most_steps:,} steps (the limit is adjustable)"
            )
        self.spend_on_text(steps)
        self.steps += steps

    def spend_on_text(self, steps: float) -> None:
        """Take ``steps`` from the text alone: reading is not part of running a statement."""
        if self.text_steps + steps > self.most_text_steps:
            raise LimitError(
                f"the text takes more than {self.most_text_steps:,} steps in all "
                "(the limit is adjustable)"
            )
        self.text_steps += steps

    def reserve(self, size: int) -> None:
        """Take ``size`` bytes of memory, until they are released."""
        if self.memory + size > self.most_memory:
            raise LimitError(
                f"this needs {_megabytes(self.memory + size)} of memory with all that is in use; the "
                f"limit is {_megabytes(self.most_memory)} (adjustable)"
            )
        self.memory += size

    def release(self, size: int) -> None:
        """Give back ``size`` bytes."""
        self.memory -= size

    def charge(self, op: str, atoms: Sequence[object]) -> None:
        """Take what an elementwise operation on these atoms costs: little, unless they are large."""
        steps, size = cost(op, atoms)
        if steps:
            self.spend(steps)
        if size:
            self.reserve(size)


def cost(op: str, atoms: Sequence[object]) -> tuple[float, int]:
    """Bound the steps and bytes of an elementwise operation on atoms; small numbers cost nothing.

    >>> cost("add", (1, 2.5)), cost("multiply", ("ab", 100_000))
    ((0.0, 0), (20.0, 200049))
    """
    if any(isinstance(atom, str) for atom in atoms):
        return _cost_of_text(op, atoms)
    bits = [atom.bit_length() for atom in atoms if isinstance(atom, int)]
    if op == "power" and len(bits) == 2:
        size = min(bits[0] * max(1, *(atom for atom in atoms[1:] if isinstance(atom, int))), MAX_BITS)
        return (_product(size / 2, size / 2), size // 7) if size > _SMALL_BITS else (0.0, 0)
    if sum(bits) <= _SMALL_BITS:
        return 0.0, 0
    largest = max(bits)
    if op == "multiply" and len(bits) == 2:
        return _product(*bits), sum(bits) // 7
    if op in ("modulo", "floor_divide") and len(bits) == 2:
        # Long division is quadratic: digits of the quotient times digits of the divisor.
        return largest / 1e5 + 4e-7 * max(0, bits[0] - bits[1]) * bits[1], largest // 7
    return largest / 1e5, largest // 7


def _product(*bits: float) -> float:
    """Return the number of steps of multiplying two integers as Python does, by Karatsuba's method."""
    shorter, longer = max(1.0, min(bits)), max(bits)
    return 12_500 * math.pow(shorter / 5e5, 1.585) * (longer / shorter)


def _cost_of_text(op: str, atoms: Sequence[object]) -> tuple[float, int]:
    texts = [atom for atom in atoms if isinstance(atom, str)]
    length = sum(map(len, texts))
    if op == "multiply":
        length *= max([0, *(atom for atom in atoms if isinstance(atom, int))])
    elif op != "add":
        return length / _CHARACTERS_PER_STEP, 0
    length = min(length, MAX_STRING)  # a longer one is refused before it is made
    width = 1 if all(text.isascii() for text in texts) else 4
    return length / _CHARACTERS_PER_STEP, width * length + 49


def _megabytes(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"
