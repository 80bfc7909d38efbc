"""Find matchings in bipartite graphs by augmenting paths."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Who = TypeVar("Who", bound=Hashable)


def places_for_all(choices: Mapping[Who, Sequence[int]]) -> dict[Who, int] | None:
    """Assign to each key one of its choices, such that no two keys have the same choice.

    Return None if no such assignment exists. If all choices of a key are taken, other keys are
    reassigned along a shortest augmenting path.

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
        while free is not None:  # each key on the path moves to its next choice
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
    """Return the nearest free choice that an augmenting path from ``newcomer`` reaches; None if there
    is none.

    ``asker`` is filled with the key from which the search reached each choice.
    """
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
