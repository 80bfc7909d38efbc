"""When a search for a proof gives up: time, memory, and the size of polynomials."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from flint import fmpq_mpoly


class LimitError(Exception):
    """A proof grew beyond what was allowed; the message says which limit."""


@dataclass
class Limits:
    """When to give up: terms of one polynomial, seconds of processor time, megabytes of memory."""

    terms: int = 200_000
    seconds: float = 600.0
    megabytes: int = 1_500
    started: float = 0.0
    _before: float = 0.0
    _calls: int = 0

    def start(self) -> None:
        """Start counting processor time, which other work on the machine does not use up."""
        self.started = time.process_time()
        self._before = memory_in_use()

    def check(self, polynomial: fmpq_mpoly) -> None:
        """Stop if a polynomial is too long."""
        if len(polynomial) > self.terms:
            raise LimitError(f"{self.terms:,} terms in one polynomial")
        self.check_time()

    def check_product(self, a: fmpq_mpoly, b: fmpq_mpoly) -> None:
        """Stop before a product that could be far too long."""
        if len(a) * len(b) > 100 * self.terms:
            raise LimitError(f"{100 * self.terms:,} products of terms in one multiplication")

    def check_time(self) -> None:
        """Stop if it took too long, or too much memory."""
        if not self.started:
            return
        if time.process_time() - self.started > self.seconds:
            raise LimitError(f"{self.seconds:g} seconds")
        self._calls += 1
        if self._calls % 100 == 0 and memory_in_use() - self._before > self.megabytes:
            raise LimitError(f"{self.megabytes:,} MB of memory")


def memory_in_use() -> float:
    """Return the megabytes that this process holds; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except (OSError, ValueError, AttributeError):
        return 0.0
