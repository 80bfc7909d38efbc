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

import itertools
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from locum.errors import InputError, LimitError
from locum.languages import b_rasp
from locum.languages.automata import DFA, Letter, Word
from locum.languages.formulas import FALSE, TRUE, Formula, atom, conjunction, disjunction, negation

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


def unmasked_program(automaton: DFA) -> b_rasp.Program:
    """Return a B-RASP program without masks for a language that depends only on the orders.

    For each letter, one head determines whether the letter occurs. For each pair of letters, one head
    determines which letter occurs first, and another head determines which letter occurs last.
    """
    states = read_orders(automaton)
    if isinstance(states, Conflict):
        raise InputError(
            "expected a language whose words are decided by the orders of first and last occurrences"
        )
    definitions: dict[str, Formula | b_rasp.Attention] = {}
    names = {letter: atom(f'"{letter}"@j') for letter in automaton.alphabet}

    def head(direction: str, name: str, score: Formula, value: Formula) -> Formula:
        definitions[name] = b_rasp.Attention(direction, "true", score, value, FALSE)
        return atom(name)

    numbered = list(enumerate(automaton.alphabet))
    occurs = {a: head(b_rasp.LEFTMOST, f"occurs{i}", names[a], TRUE) for i, a in numbered}
    before: dict[tuple[Letter, Letter, str], Formula] = {}
    for (i, a), (k, b) in itertools.combinations(numbered, 2):
        for direction, name in ((b_rasp.LEFTMOST, "first"), (b_rasp.RIGHTMOST, "last")):
            either = disjunction(names[a], names[b])
            is_a = head(direction, f"{name}{i}_{k}", either, names[a])
            before[a, b, direction], before[b, a, direction] = is_a, negation(is_a)

    def in_order(letters: Sequence[Letter], direction: str) -> list[Formula]:
        return [before[a, b, direction] for a, b in itertools.pairwise(letters)]

    accepted = []
    for (first, last), state in states.items():
        if state in automaton.accepting and first:
            present = [occurs[a] if a in first else negation(occurs[a]) for a in automaton.alphabet]
            firsts = in_order(first, b_rasp.LEFTMOST)
            lasts = in_order(last[::-1], b_rasp.RIGHTMOST)
            accepted.append(conjunction(*present, *firsts, *lasts))
    definitions["accepted"] = disjunction(*accepted)
    return b_rasp.Program(definitions, automaton.alphabet)
