"""Decide whether membership depends only on the orders in which letters first and last occur.

The *orders* of a word are the sequence of its letters by first occurrence, and the sequence of its
letters by last occurrence. A language is recognised by unique hard attention without masks and
positions if and only if it depends only on the orders (docs/classification.md). The syntactic monoids
of these languages are regular bands.

>>> from locum.languages.regular import language
>>> found = read_orders(language("~∅ b ~∅ a ~∅ & ~(b ~∅)", alphabet="ab"))
>>> "".join(found.one), "".join(found.other)
('ab', 'abab')
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TypeAlias

from locum.errors import LimitError
from locum.languages.automata import DFA, Letter, Word

#: The letters of a word by first occurrence, and by last occurrence.
Orders: TypeAlias = tuple[tuple[Letter, ...], tuple[Letter, ...]]

#: Maximum number of orders; an alphabet of five letters has about 18,000.
MAX_ORDERS = 5_000


def orders_of(word: Word) -> Orders:
    """Return the letters of a word by first and by last occurrence.

    >>> orders_of("abcab")
    (('a', 'b', 'c'), ('c', 'a', 'b'))
    """
    return tuple(dict.fromkeys(word)), tuple(dict.fromkeys(reversed(word)))[::-1]


@dataclass(frozen=True)
class Conflict:
    """Two words with the same orders that lead to different states of an automaton."""

    one: tuple[Letter, ...]
    other: tuple[Letter, ...]


def read_orders(automaton: DFA) -> dict[Orders, int] | Conflict:
    """Return a mapping from orders of first and last occurrences to states, or a conflict.

    A conflict consists of two words with equal orders that lead to different states.
    """
    start: Orders = ((), ())
    states = {start: 0}
    words: dict[Orders, tuple[Letter, ...]] = {start: ()}
    queue = deque([start])
    while queue:
        orders = queue.popleft()
        for place, letter in enumerate(automaton.alphabet):
            first, last = orders
            following: Orders = (
                first if letter in first else (*first, letter),
                (*(each for each in last if each != letter), letter),
            )
            state = automaton.transitions[states[orders]][place]
            word = (*words[orders], letter)
            if states.setdefault(following, state) != state:
                return Conflict(words[following], word)
            if following not in words:
                if len(words) >= MAX_ORDERS:
                    raise LimitError(f"more than {MAX_ORDERS:,} orders of occurrences")
                words[following] = word
                queue.append(following)
    return states
