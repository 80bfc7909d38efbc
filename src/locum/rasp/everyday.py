"""Define small standard programs, such as sorting, parity and bracket matching.

Tests and benchmarks of the compiler use these programs. Circuit datasets also contain them.

>>> EVERYDAY["parity"].program("10110")
[1, 1, 1, 1, 1]
>>> EVERYDAY["dyck2"].program("([])[")
['P', 'P', 'P', 'T', 'P']
"""

from __future__ import annotations

from dataclasses import dataclass

from locum.graph import Atom
from locum.rasp.handles import SOp
from locum.rasp.python import (
    aggregate,
    best,
    full,
    indicator,
    indices,
    length,
    lookup,
    member,
    select,
    selector_width,
    tokens,
    where,
)


@dataclass(frozen=True)
class Task:
    """A program and the vocabulary of its input tokens."""

    program: SOp
    vocabulary: tuple[Atom, ...]


_before = select(indices, indices, "<")
_up_to_here = select(indices, indices, "<=")
_same = select(tokens, tokens, "==")


def sort(values: SOp, by: SOp) -> SOp:
    """Sort ``values`` in ascending order of ``by``; ties keep their order."""
    smaller = select(by, by, "<") | (select(by, by, "==") & _before)
    return aggregate(select(selector_width(smaller), indices, "=="), values)


_count = selector_width(_same)
#: The most frequent token, at every position. If there are several, it is the one that occurs first.
_most_frequent = aggregate(best(best(full, _count), -indices), tokens)
_first = selector_width(_same & _before) == 0
_sort_freq = sort(where(_first, tokens, "-"), -where(_first, _count, -1))

_previous = aggregate(select(indices, indices - 1, "=="), tokens, "?")
#: The token after the last occurrence of the current token before the previous position; "?" if there
#: is no such occurrence.
_induction = aggregate(best(select(_previous, tokens, "==") & _before, indices), tokens, "?")

# Add two binary numbers. Each position contains one digit of each number, the most significant first.
# The carry comes from the nearest position to the right whose two digits are equal.
_digits = lookup(tokens, {"00": 0, "01": 1, "10": 1, "11": 2})
_decides = select(_digits, 1, "!=") & select(indices, indices, ">")
_carry = aggregate(best(_decides, -indices), _digits, 0) == 2
_binary_addition = (_digits + indicator(_carry)) % 2

# Brackets of two kinds: each closing bracket is compared with the latest earlier bracket at its level.
# P: a prefix of balanced text; T: balanced; F: can no longer become balanced.
_opening = member(tokens, "([")
_depth = round((indices + 1) * aggregate(_up_to_here, where(_opening, 1, -1)))
_level = _depth + where(_opening, 0, 1)
_partner = best(select(_level, _level, "==") & _before, indices)
_closing = lookup(tokens, {"(": ")", "[": "]", ")": "-", "]": "-"})
_wrong = (~_opening & ~(aggregate(_partner, _closing, "") == tokens)) | (_depth < 0)
_dyck2 = where(aggregate(_up_to_here, indicator(_wrong)) > 0, "F", where(_depth == 0, "T", "P"))

_reverse = aggregate(select(indices, length - 1 - indices, "=="), tokens)
_palindrome = aggregate(full, indicator(_reverse == tokens)) == 1

_starts = ~(_previous == tokens)
_start = aggregate(best(_up_to_here & select(_starts, True, "=="), indices), indices)
#: The length of the run of equal tokens that ends at the current position.
_run_length = indices - _start + 1

_sort = sort(tokens, tokens)
_second_largest = aggregate(select(indices, length - 2, "=="), _sort, -1)
_parity = round(length * aggregate(full, indicator(tokens == "1"))) % 2
_modsum = round(length * aggregate(full, tokens)) % 5

_LETTERS, _NUMBERS = tuple("abcd"), tuple(range(8))

EVERYDAY: dict[str, Task] = {
    "most_frequent": Task(_most_frequent, _LETTERS),
    "induction": Task(_induction, _LETTERS),
    "binary_addition": Task(_binary_addition, ("00", "01", "10", "11")),
    "dyck2": Task(_dyck2, tuple("()[]")),
    "palindrome": Task(_palindrome, _LETTERS),
    "run_length": Task(_run_length, _LETTERS),
    "second_largest": Task(_second_largest, _NUMBERS),
    "parity": Task(_parity, tuple("01")),
    "modsum": Task(_modsum, tuple(range(5))),
    "sort": Task(_sort, _NUMBERS),
    "sort_freq": Task(_sort_freq, _LETTERS),
    "reverse": Task(_reverse, _LETTERS),
}
