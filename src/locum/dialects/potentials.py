"""Decide whether a regular language is in C-RASP, and find what a program counts by.

A strongly connected component of the minimal automaton has a *potential* if letters can be given
integer weights that add up to 0 on every cycle: the sum of the weights read since the component was
entered then tells how far the state's potential has risen. Where letters alone do not tell all states
apart, pairs of (potential of the state, letter) may: they are the letters of the next level. The
language is in C-RASP, read at an end marker, if and only if in every component the potentials of some
level tell all states apart (the decision procedure of the published classifier, with a basis of cycles
for all of them).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from flint import fmpz_mat

from locum.dialects.automata import DFA, components

#: A letter as a place in the alphabet; at higher levels beside the potential of the state before it.
Label = tuple[int, ...]


@dataclass(frozen=True)
class Level:
    """One potential of a component."""

    #: The weight of each label: (letter,) at level 0, (potential of the level below, letter) above.
    weights: Mapping[Label, int]
    #: The potential of each state.
    of_state: Mapping[int, int]


@dataclass(frozen=True)
class Component:
    """A strongly connected component with potentials, the last of which tells all states apart."""

    states: tuple[int, ...]
    levels: tuple[Level, ...]


def potentials(automaton: DFA) -> list[Component] | None:
    """Return the potentials of every component, from the initial one on; None: it is not in C-RASP."""
    in_order = []
    for part in reversed(components(automaton.transitions)):
        levels = _levels(automaton, part)
        if levels is None:
            return None
        in_order.append(Component(tuple(part), levels))
    return in_order


def _levels(automaton: DFA, states: Sequence[int]) -> tuple[Level, ...] | None:
    inside = set(states)
    edges = [
        (state, letter, target)
        for state in states
        for letter, target in enumerate(automaton.transitions[state])
        if target in inside
    ]
    levels: list[Level] = []
    labels: list[Label] = [(letter,) for _, letter, _ in edges]
    kinds = len(set(labels))
    while len(states) > 1:
        level = _level(states, edges, labels)
        levels.append(level)
        if len(set(level.of_state.values())) == len(states):
            return tuple(levels)
        labels = [(level.of_state[state], letter) for state, letter, _ in edges]
        if len(set(labels)) == kinds:
            return None
        kinds = len(set(labels))
    return ()


def _level(
    states: Sequence[int], edges: Sequence[tuple[int, int, int]], labels: Sequence[Label]
) -> Level:
    """Find weights of the labels whose potential tells apart as many states as any weights do."""
    names = sorted(set(labels))
    place = {label: i for i, label in enumerate(names)}
    # The labels read on the way from the first state to each other one, in a spanning tree.
    ways: dict[int, list[int]] = {states[0]: [0] * len(names)}
    leaving: dict[int, list[tuple[int, Label]]] = {}
    for (state, _, target), label in zip(edges, labels, strict=True):
        leaving.setdefault(state, []).append((target, label))
    stack = [states[0]]
    while stack:
        state = stack.pop()
        for target, label in leaving.get(state, ()):
            if target not in ways:
                ways[target] = [*ways[state]]
                ways[target][place[label]] += 1
                stack.append(target)
    rows = set()
    for (state, _, target), label in zip(edges, labels, strict=True):
        row = [a - b for a, b in zip(ways[state], ways[target], strict=True)]
        row[place[label]] += 1
        if any(row):
            rows.add(tuple(row))
    best: tuple[list[int], dict[int, int]] = [0] * len(names), dict.fromkeys(states, 0)
    for vector in _kernel(rows, len(names)):
        best = _refined(best, vector, ways)
    weights, values = best
    return Level(dict(zip(names, weights, strict=True)), values)


def _kernel(rows: set[tuple[int, ...]], size: int) -> Iterator[list[int]]:
    """Yield a basis of the integer vectors that are orthogonal to all rows, small ones first."""
    if not rows:
        yield from ([int(i == j) for i in range(size)] for j in range(size))
        return
    kernel, nullity = fmpz_mat([list(row) for row in sorted(rows)]).nullspace()
    basis = []
    for column in range(nullity):
        vector = [int(kernel[row, column]) for row in range(size)]
        divisor = gcd(*vector)
        basis.append([entry // divisor for entry in vector])
    if len(basis) > 1:
        reduced = fmpz_mat(basis).lll()
        basis = [[int(reduced[i, j]) for j in range(size)] for i in range(nullity)]
    yield from sorted(basis, key=lambda vector: sum(map(abs, vector)))


def _refined(
    best: tuple[list[int], dict[int, int]], vector: list[int], ways: Mapping[int, list[int]]
) -> tuple[list[int], dict[int, int]]:
    """Add as little of one more vector as tells apart what either of the two does."""
    weights, values = best
    own = {state: sum(w * n for w, n in zip(vector, way, strict=True)) for state, way in ways.items()}
    kinds = len({(values[state], own[state]) for state in values})
    if kinds == len(set(values.values())):
        return best
    factor = 1
    while True:
        for sign in (factor, -factor):
            together = {state: values[state] + sign * own[state] for state in values}
            if len(set(together.values())) == kinds:
                summed = [a + sign * b for a, b in zip(weights, vector, strict=True)]
                return summed, together
        factor += 1
