"""Places for all: a matching in a bipartite graph, by augmenting paths."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Who = TypeVar("Who", bound=Hashable)


def places_for_all(choices: Mapping[Who, Sequence[int]]) -> dict[Who, int] | None:
    """Return a place for each out of its choices, for no two the same; None if that cannot be.

    Whoever finds all its choices taken asks those who have them, the nearest first, to move on to
    another of theirs.

    >>> places_for_all({"a": [1, 2], "b": [1], "c": [2, 3]})
    {'a': 2, 'b': 1, 'c': 3}
    >>> places_for_all({"a": [1], "b": [1]}) is None
    True
    """
    owner: dict[int, Who] = {}
    place_of: dict[Who, int] = {}
    for newcomer in choices:
        asker: dict[int, Who] = {}
        free = _free_place(newcomer, choices, owner, asker)
        if free is None:
            return None
        while free is not None:  # everyone on the way moves up by one
            mover = asker[free]
            left = place_of.get(mover)
            owner[free], place_of[mover] = mover, free
            free = left
    return place_of


def _free_place(
    newcomer: Who,
    choices: Mapping[Who, Sequence[int]],
    owner: Mapping[int, Who],
    asker: dict[int, Who],
) -> int | None:
    """Return the nearest free place; ``asker`` gets who asked for it, and for each place on the way."""
    waiting = [newcomer]
    for who in waiting:
        for place in choices[who]:
            if place in asker:
                continue
            asker[place] = who
            if place not in owner:
                return place
            waiting.append(owner[place])
    return None
