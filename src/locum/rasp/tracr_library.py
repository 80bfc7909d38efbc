"""Define the programs of Tracr's library as s-ops, for benchmarks, tests and datasets of circuits.

Each :class:`Program` builds an s-op and its vocabulary for a maximum input length. Tracr's ``None``,
the value of an aggregate that selects no key, has no counterpart. ``shift_by`` returns ``""`` instead,
so comparing this value with a token returns False. Tracr's encodings ``numerical`` and
``categorical`` do not change values and are omitted.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from locum.graph import Atom
from locum.rasp.handles import SOp
from locum.rasp.python import (
    aggregate,
    full,
    indicator,
    indices,
    length,
    select,
    selector_width,
    tokens,
)

LETTERS = ("a", "b", "c", "d")
BRACKETS = ("()", "{}", "[]")

up_to_here = select(indices, indices, "<=")
hist = selector_width(select(tokens, tokens, "=="))
counted_length = selector_width(full)
reverse = aggregate(select(indices, length - indices - 1, "=="), tokens)


def count(token: Atom) -> SOp:
    """Return an s-op that counts the positions whose token equals ``token``."""
    return selector_width(select(tokens, token, "=="))


def count_less_freq(n: int) -> SOp:
    """Return an s-op that counts the positions whose token occurs at most ``n`` times."""
    return selector_width(select(hist, n, "<="))


def frac_prevs(condition: SOp) -> SOp:
    """Return the fraction of positions up to the current position at which the condition holds."""
    return aggregate(up_to_here, indicator(condition))


def shift_by(offset: int) -> SOp:
    """Return the token ``offset`` positions before the current position, or "" if there is none."""
    return aggregate(select(indices + offset, indices, "=="), tokens, "")


def detect_pattern(pattern: str) -> SOp:
    """Return an s-op that is true where an occurrence of ``pattern`` ends."""
    matches = [shift_by(i) == letter for i, letter in enumerate(reversed(pattern))]
    return reduce(lambda a, b: a & b, reversed(matches))


def sort_unique(values: SOp, keys: SOp) -> SOp:
    """Sort ``values`` by ``keys``, which must be distinct."""
    place = selector_width(select(keys, keys, "<"))
    return aggregate(select(place, indices, "=="), values)


def sort(values: SOp, keys: SOp, max_length: int) -> SOp:
    """Sort ``values`` by integer ``keys``; ties keep their order."""
    return sort_unique(values, keys + 1 * indices / max_length)


def sort_freq(max_length: int) -> SOp:
    """Sort tokens by descending frequency."""
    return sort(tokens, -hist, max_length)


def pair_balance(opening: str, closing: str) -> SOp:
    """Return the fraction of opening brackets minus the fraction of closing brackets.

    Both fractions count the positions up to the current one.
    """
    return frac_prevs(tokens == opening) - frac_prevs(tokens == closing)


def shuffle_dyck(pairs: Sequence[str]) -> SOp:
    """Return whether each type of bracket is balanced in the whole input."""
    balances = [pair_balance(opening, closing) for opening, closing in map(tuple, pairs)]
    negative = reduce(lambda a, b: a | b, [balance < 0 for balance in balances])
    some_negative = aggregate(full, indicator(negative))
    zero = reduce(lambda a, b: a & b, [balance == 0 for balance in balances])
    zero_at_the_end = aggregate(select(indices, length - 1, "=="), zero, False)
    return zero_at_the_end & ~some_negative


@dataclass(frozen=True)
class Program:
    """Functions that build a program, its vocabulary and random inputs for a maximum length."""

    make: Callable[[int], SOp]
    vocabulary: Callable[[int], Sequence[Atom]]
    #: A function that draws a random input of a given length.
    draw: Callable[[random.Random, Sequence[Atom], int], list[Atom]]


def _any(chance: random.Random, vocabulary: Sequence[Atom], size: int) -> list[Atom]:
    return chance.choices(vocabulary, k=size)


def _distinct(chance: random.Random, vocabulary: Sequence[Atom], size: int) -> list[Atom]:
    return chance.sample(list(vocabulary), size)


def _brackets(chance: random.Random, vocabulary: Sequence[Atom], size: int) -> list[Atom]:
    """Draw a random sequence of brackets.

    With probability 1/2, the function draws a balanced sequence. With probability 1/4, it replaces one
    bracket of a balanced sequence by a random one. Otherwise, the sequence is uniform. If the length is
    odd, balanced sequences have one additional closing bracket.
    """
    kind = chance.randrange(4)
    if kind == 0:
        return _any(chance, vocabulary, size)
    kinds = [(vocabulary[i], vocabulary[i + 1]) for i in range(0, len(vocabulary), 2)]
    open_now: list[Atom] = []
    brackets: list[Atom] = []
    while len(brackets) + len(open_now) < size:
        if open_now and (chance.random() < 0.5 or len(brackets) + len(open_now) + 2 > size):
            brackets.append(open_now.pop(chance.randrange(len(open_now))))
        elif len(brackets) + len(open_now) + 2 > size:
            brackets.append(chance.choice(kinds)[1])
        else:
            opening, closing = chance.choice(kinds)
            brackets.append(opening)
            open_now.append(closing)
    brackets += chance.sample(open_now, len(open_now))
    if kind == 1:
        brackets[chance.randrange(size)] = chance.choice(vocabulary)
    return brackets


def _fixed(
    program: SOp,
    vocabulary: Sequence[Atom] = LETTERS,
    draw: Callable[[random.Random, Sequence[Atom], int], list[Atom]] = _any,
) -> Program:
    """Return a :class:`Program` whose s-op and vocabulary do not depend on the maximum length."""
    return Program(lambda n: program, lambda n: vocabulary, draw)


NUMBERS = (1, 2, 3, 4)

PROGRAMS: dict[str, Program] = {
    "length": _fixed(counted_length),
    "length_numerical": _fixed(counted_length),
    "reverse": _fixed(reverse),
    "hist": _fixed(hist),
    "count_a": _fixed(count("a")),
    "count_less_freq_2": _fixed(count_less_freq(2)),
    "frac_prevs_a": _fixed(frac_prevs(tokens == "a")),
    "shift_by_1": _fixed(shift_by(1)),
    "detect_pattern_ab": _fixed(detect_pattern("ab")),
    "detect_pattern_abc": _fixed(detect_pattern("abc")),
    "sort_unique": Program(
        lambda n: sort_unique(tokens, tokens), lambda n: tuple(range(1, n + 1)), _distinct
    ),
    "sort": Program(lambda n: sort(tokens, tokens, n), lambda n: NUMBERS, _any),
    "sort_freq": Program(sort_freq, lambda n: NUMBERS, _any),
    "pair_balance": _fixed(pair_balance("(", ")"), ("(", ")", "a", "b")),
    "shuffle_dyck1": _fixed(shuffle_dyck(BRACKETS[:1]), tuple("()"), _brackets),
    "shuffle_dyck2": _fixed(shuffle_dyck(BRACKETS[:2]), tuple("(){}"), _brackets),
    "shuffle_dyck3": _fixed(shuffle_dyck(BRACKETS), tuple("(){}[]"), _brackets),
    "nary_sequencemap": _fixed(tokens + tokens - indices, (1, 2, 3)),
}
