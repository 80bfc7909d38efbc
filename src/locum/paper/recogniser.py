"""Recognise a language by encoders: a word becomes X, encoders run on it, one number decides.

``accepts`` runs the encoders on U, in series and as one program; ``accepts_directly`` runs the encoders
themselves. They depend on the length of the word alone, and so does U.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from locum.errors import InputError
from locum.simulators.modules.module import Module, Numbers
from locum.simulators.order import Order
from locum.simulators.stack import Stack
from locum.simulators.universal import UniversalSimulator

#: A word: a string of 0 and 1, or a sequence of integers.
Word = str | Sequence[int]


class Recogniser(ABC):
    """A language as encoders recognise it."""

    @abstractmethod
    def modules(self, length: int) -> list[Module]:
        """Make the encoders for words of this length."""

    @abstractmethod
    def embed(self, word: Sequence[int]) -> Numbers:
        """Embed a word as X."""

    @abstractmethod
    def read(self, result: Numbers) -> float:
        """Read the number that decides: a word is accepted unless it is negative."""

    def simulator(self, length: int) -> Stack:
        """Build the U's for words of this length, in series."""
        return _stack_for(self.modules(length), len(self.embed([0] * length)))

    def accepts(self, word: Word, *, executor: str | None = None) -> bool:
        """Tell whether the word is in the language, as U computes it."""
        return self.margin(word, executor=executor) >= 0

    def margin(self, word: Word, *, executor: str | None = None) -> float:
        """Compute the number that decides, by U."""
        read = self.read_word(word)
        modules, X = self.modules(len(read)), self.embed(read)
        return self.read(np.asarray(_stack_for(modules, len(X))(modules, X, executor=executor)))

    def accepts_directly(self, word: Word) -> bool:
        """Tell whether the word is in the language, as the encoders themselves compute it."""
        read = self.read_word(word)
        value = self.embed(read)
        for module in self.modules(len(read)):
            value = module(value)
        return self.read(value) >= 0

    def read_word(self, word: Word) -> list[int]:
        """Read the bits of a word."""
        bits: Sequence[int] = [] if isinstance(word, str) else word
        if isinstance(word, str):
            bits = [int(bit) if bit in ("0", "1") else -1 for bit in word]
        if any(bit not in (0, 1) for bit in bits):
            raise InputError(f"expected a word of 0 and 1, got {word!r}")
        return [int(bit) for bit in bits]


def _stack_for(modules: Sequence[Module], rows: int) -> Stack:
    return _stack(tuple(module.order(rows) for module in modules))


@lru_cache(maxsize=64)
def _stack(orders: tuple[Order, ...]) -> Stack:
    """Build the stack once for these orders: the program depends on nothing else."""
    return Stack([UniversalSimulator(order) for order in orders])


def sparse(rows: int, columns: int, entries: Mapping[tuple[int, int], float]) -> Numbers:
    """Make a matrix that is 0 but for ``entries``."""
    matrix = np.zeros((rows, columns))
    for place, value in entries.items():
        matrix[place] = value
    return matrix
