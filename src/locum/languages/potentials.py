"""Decide which states of a labelled graph can be distinguished by counts.

A :class:`Graph` consists of states, labelled transitions, and for each state the facts that are visible
without counting. States with equal visible facts *look the same*. Consider integer weights of the
labels in a strongly connected component. If their sum is 0 on every cycle, they define a *potential* of
each state. If labels alone do not separate all states that look the same, pairs of (potential, label)
are the labels of the next level. The levels end when these states are separated, or when the number of
labels does not change.

If the last level separates all states that look the same, the potentials define a program
(``c_rasp_programs.py``). Otherwise there is an :class:`Obstruction`: two states p and q that look the
same, such that any weights give them equal potentials. Equivalently, the label counts of a path from p
to q are a rational combination of the label counts of cycles.

Let z be a cycle at p through every transition. A program compares linear functions of label counts. For
almost every choice of how often z takes each transition, there are two cases. If a linear function
changes along z, its sign is constant after sufficiently many repetitions. Otherwise, the function
vanishes on all cycles and therefore on the path. By induction on the nesting of counts, no program
separates the end of the path from its start.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

from flint import fmpz_mat

from locum.languages.automata import DFA, components

#: A label; at higher levels, the potential of the state before the label, and the label.
Label = tuple[int, ...]
Edge = tuple[int, int, int]


@dataclass(frozen=True)
class Graph:
    """States with labelled transitions, and the visible facts of each state.

    Two states look the same if their visible facts are equal. Two states that have transitions with the
    same label must look the same.
    """

    #: For each state, the next state by label; each label occurs at most once.
    targets: tuple[Mapping[int, int], ...]
    #: For each state, the facts visible without counting.
    seen: tuple[Hashable, ...]

    @classmethod
    def of(cls, automaton: DFA) -> Graph:
        """Return the graph of an automaton.

        The labels are the indices of letters, and all states have equal visible facts.
        """
        return cls(
            tuple(dict(enumerate(row)) for row in automaton.transitions), (None,) * len(automaton)
        )

    @cached_property
    def components(self) -> list[list[int]]:
        """The strongly connected components in topological order."""
        return components([list(row.values()) for row in self.targets])[::-1]

    def path(self, start: int, end: int, inside: frozenset[int]) -> tuple[int, ...]:
        """Return the labels of a shortest path between two states, within the states ``inside``."""
        came: dict[int, tuple[int, int]] = {}
        queue = deque([start])
        while queue and end not in came:
            state = queue.popleft()
            for label, target in self.targets[state].items():
                if target in inside and target not in came:
                    came[target] = state, label
                    queue.append(target)
        if start == end:
            return ()
        labels = []
        while end != start:
            end, label = came[end]
            labels.append(label)
        return tuple(reversed(labels))


@dataclass(frozen=True)
class Level:
    """One potential of a component, with the weights of labels that define it."""

    #: The weight of each label: (label,) at level 0, (potential of the level below, label) at others.
    weights: Mapping[Label, int]
    #: The potential of each state.
    of_state: Mapping[int, int]


@dataclass(frozen=True)
class Component:
    """A strongly connected component with potentials that separate all states with equal
    visible facts.
    """

    states: tuple[int, ...]
    levels: tuple[Level, ...]


@dataclass(frozen=True)
class Obstruction:
    """Two states with equal visible facts that no counts separate, and a path between them."""

    states: tuple[int, int]
    #: The labels of a path within a component from the first state to the second.
    path: tuple[int, ...]


def separate(graph: Graph) -> list[Component] | Obstruction:
    """Return the potentials of every component in topological order, or an obstruction."""
    parts = []
    for states in graph.components:
        part = _separate(graph, states)
        if isinstance(part, Obstruction):
            return part
        parts.append(part)
    return parts


def _separate(graph: Graph, states: Sequence[int]) -> Component | Obstruction:
    inside = frozenset(states)
    edges = [
        (state, label, target)
        for state in states
        for label, target in graph.targets[state].items()
        if target in inside
    ]
    levels: list[Level] = []
    labels: list[Label] = [(label,) for _, label, _ in edges]
    kinds = len(set(labels))
    while len({graph.seen[state] for state in states}) < len(states):
        level = _level(graph, states, edges, labels)
        levels.append(level)
        if len({(graph.seen[state], level.of_state[state]) for state in states}) == len(states):
            break
        labels = [(level.of_state[state], label) for state, label, _ in edges]
        if len(set(labels)) == kinds:
            return _obstruct(graph, inside, level)
        kinds = len(set(labels))
    return Component(tuple(states), tuple(levels))


def _level(
    graph: Graph, states: Sequence[int], edges: Sequence[Edge], labels: Sequence[Label]
) -> Level:
    """Return a level whose potential separates as many states with equal visible facts as possible."""
    by_label: dict[Label, list[Edge]] = {}
    for edge, label in zip(edges, labels, strict=True):
        by_label.setdefault(label, []).append(edge)
    shared = [group for group in by_label.values() if len(group) > 1]
    # A potential is needed only for states that look the same as another state, and for the ends of
    # transitions with a shared label.
    alike = Counter(graph.seen[state] for state in states)
    ends = {end for group in shared for edge in group for end in (edge[0], edge[2])}
    involved = sorted(ends.union(state for state in states if alike[graph.seen[state]] > 1))
    place = {state: i - 1 for i, state in enumerate(involved)}
    rows = set()
    for group in shared:
        source, _, target = group[0]
        for other_source, _, other_target in group[1:]:
            row = [0] * len(involved)  # the last entry is for the first state, of potential 0
            for state, sign in ((target, 1), (source, -1), (other_target, -1), (other_source, 1)):
                row[place[state]] += sign
            rows.add(tuple(row[:-1]))
    best = dict.fromkeys(states, 0)
    for vector in _kernel(rows - {(0,) * (len(involved) - 1)}, max(len(involved) - 1, 0)):
        values = {state: vector[place[state]] for state in involved[1:]}
        best = _refine(best, values, graph.seen)
    offset = best[states[0]]
    potential = {state: value - offset for state, value in best.items()}
    weights = {
        label: potential[group[0][2]] - potential[group[0][0]] for label, group in by_label.items()
    }
    return Level(dict(sorted(weights.items())), potential)


def _kernel(rows: set[tuple[int, ...]], size: int) -> Iterator[list[int]]:
    """Yield integer vectors that are a basis of the space orthogonal to all rows, small vectors
    first.
    """
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


def _refine(best: dict[int, int], own: Mapping[int, int], seen: Sequence[Hashable]) -> dict[int, int]:
    """Add a multiple of the potential ``own`` to ``best``, if this separates more states.

    The sum separates all pairs of states with equal visible facts that one of the two potentials
    separates. The multiple is as small as possible.
    """
    kinds = len({(seen[state], value, own.get(state, 0)) for state, value in best.items()})
    if kinds == len({(seen[state], value) for state, value in best.items()}):
        return best
    factor = 1
    while True:
        for sign in (factor, -factor):
            together = {state: value + sign * own.get(state, 0) for state, value in best.items()}
            if len({(seen[state], value) for state, value in together.items()}) == kinds:
                return together
        factor += 1


def _obstruct(graph: Graph, inside: frozenset[int], level: Level) -> Obstruction:
    """Return two states with equal visible facts and equal potentials, and a path between them."""
    alike: dict[Hashable, list[int]] = {}
    for state in sorted(inside):
        alike.setdefault((graph.seen[state], level.of_state[state]), []).append(state)
    found = [
        Obstruction((start, end), graph.path(start, end, inside))
        for start, *others in alike.values()
        for end in others
    ]
    return min(found, key=lambda each: len(each.path))
