"""Limit the work (in steps) and the memory (in bytes) that an untrusted program may use.

A session of RASP text passes one :class:`Budget` to the code whose time or memory depends on the text:
parsing, evaluating expressions, building nodes, dense execution and displaying values. Steps are
usually charged *before* the work is done. A charge that exceeds the budget raises :class:`LimitError`.

A step is about five microseconds of work on an ordinary machine. The limit for one statement can be
smaller than the limit for the whole text, so that one expensive statement leaves steps for the other
statements.

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

#: Maximum number of bits of a product or power of integers, and of characters of a string, that a
#: program may build.
MAX_BITS = 1_000_000
MAX_STRING = 1_000_000

#: Arithmetic is free if its integer operands have at most this number of bits in total, or, for a
#: power, if its result has.
_SMALL_BITS = 1_024
#: Number of characters of a string that one step copies.
_CHARACTERS_PER_STEP = 10_000


class Budget:
    """The steps and bytes that a RASP text and its current statement have used, with their limits."""

    def __init__(
        self,
        steps: float = math.inf,
        text_steps: float = math.inf,
        memory: float = math.inf,
    ) -> None:
        #: Maximum number of steps for one statement, and for the whole text.
        self.most_steps = steps
        self.most_text_steps = text_steps
        #: Maximum number of bytes in use at the same time.
        self.most_memory = memory
        #: Number of steps charged so far to the statement and to the text, and number of bytes in use.
        self.steps = 0.0
        self.text_steps = 0.0
        self.memory = 0

    def begin_text(self) -> None:
        """Reset the step counts for a new text; the memory of earlier texts remains reserved."""
        self.steps = self.text_steps = 0.0

    def begin_statement(self) -> None:
        """Reset the step count of the statement at the beginning of the next statement."""
        self.steps = 0.0

    def spend(self, steps: float) -> None:
        """Charge ``steps`` to the current statement and to the text.

        A charge that exceeds a limit raises :class:`LimitError` and is not recorded.
        """
        if self.steps + steps > self.most_steps:
            raise LimitError(
                f"this takes more than {self.most_steps:,} steps (the limit is adjustable)"
            )
        self.spend_on_text(steps)
        self.steps += steps

    def spend_on_text(self, steps: float) -> None:
        """Charge ``steps`` only to the text, for work that belongs to no statement, such as parsing."""
        if self.text_steps + steps > self.most_text_steps:
            raise LimitError(
                f"the text takes more than {self.most_text_steps:,} steps in all "
                "(the limit is adjustable)"
            )
        self.text_steps += steps

    def reserve(self, size: int) -> None:
        """Reserve ``size`` bytes of memory until they are released, or raise :class:`LimitError`."""
        if self.memory + size > self.most_memory:
            raise LimitError(
                f"this needs {_megabytes(self.memory + size)} of memory with all that is in use; the "
                f"limit is {_megabytes(self.most_memory)} (adjustable)"
            )
        self.memory += size

    def release(self, size: int) -> None:
        """Release ``size`` bytes of reserved memory."""
        self.memory -= size

    def charge(self, op: str, atoms: Sequence[object]) -> None:
        """Charge the cost of the elementwise operation ``op`` on ``atoms``; see :func:`cost`."""
        steps, size = cost(op, atoms)
        if steps:
            self.spend(steps)
        if size:
            self.reserve(size)


def cost(op: str, atoms: Sequence[object]) -> tuple[float, int]:
    """Return the numbers of steps and bytes that are charged for the elementwise operation ``op`` on
    ``atoms``.

    Both numbers are 0 for floats, and for integers of at most 1,024 bits in total. A power is charged
    if its result may have more bits.

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
        # The cost of long division is the product of the numbers of digits of quotient and divisor.
        return largest / 1e5 + 4e-7 * max(0, bits[0] - bits[1]) * bits[1], largest // 7
    return largest / 1e5, largest // 7


def _product(*bits: float) -> float:
    """Estimate the number of steps for multiplying two integers of these sizes in bits by Karatsuba's
    method.
    """
    shorter, longer = max(1.0, min(bits)), max(bits)
    return 12_500 * math.pow(shorter / 5e5, 1.585) * (longer / shorter)


def _cost_of_text(op: str, atoms: Sequence[object]) -> tuple[float, int]:
    texts = [atom for atom in atoms if isinstance(atom, str)]
    length = sum(map(len, texts))
    if op == "multiply":
        length *= max([0, *(atom for atom in atoms if isinstance(atom, int))])
    elif op != "add":
        return length / _CHARACTERS_PER_STEP, 0
    length = min(length, MAX_STRING)  # a longer string is rejected before it is built
    width = 1 if all(text.isascii() for text in texts) else 4
    return length / _CHARACTERS_PER_STEP, width * length + 49


def _megabytes(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"
