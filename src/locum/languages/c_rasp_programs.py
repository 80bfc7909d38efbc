"""Build the C-RASP program of a regular language, from the potentials of its automaton.

For each component of the automaton the program counts the letters since it was entered, weighted, and
so knows the potential; with the letter here, that tells the state before it. The first letter that
leads out of the component is where the next one is entered.

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
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from math import gcd

from flint import fmpz_mat

from locum.errors import InputError
from locum.graph import Node, build
from locum.graph.operations import constant as constant_node
from locum.languages.automata import DFA, components
from locum.languages.c_rasp import show
from locum.languages.counting import as_sop, count_node, symbol
from locum.languages.recogniser import END, Recogniser

TRUE, FALSE = constant_node(True), constant_node(False)


def program(automaton: DFA, accept: str = END) -> Recogniser | None:
    """Return a C-RASP program for the language of a minimal automaton, or None if there is none.

    >>> from locum.languages.regular import language
    >>> parity_free = program(language("(ab+ba)*"))
    >>> [parity_free.accepts(word) for word in ("", "abba", "ab", "aabb")]
    [True, True, True, False]
    """
    unwritten = [letter for letter in automaton.alphabet if '"' in letter or "\n" in letter]
    if unwritten:
        raise InputError(f"C-RASP: expected symbols without quotes and newlines, got {unwritten[0]!r}")
    writer = _Writer(automaton, accept)
    accepted = writer.accepted()
    if accepted is None:
        return None
    written = Recogniser("C-RASP", as_sop(accepted), automaton.alphabet, accept, writer.names)
    return replace(written, text=show(written))


def in_c_rasp(automaton: DFA, accept: str = END) -> bool:
    """Return whether a C-RASP program recognises the language of a minimal automaton."""
    if accept == END:
        return potentials(automaton) is not None
    return all(potentials(before) is not None for before in before_last(automaton))


def before_last(automaton: DFA) -> list[DFA]:
    """Return for each letter a the minimal automaton of the words w with wa in the language.

    What is read at the last symbol, a, is what is read at an end marker behind the rest.
    """
    automata = []
    for place in range(len(automaton.alphabet)):
        accepting = _before(automaton, place)
        automata.append(DFA(automaton.alphabet, automaton.transitions, accepting).minimal())
    return automata


def _before(automaton: DFA, place: int) -> frozenset[int]:
    """Return the states from which one letter leads to acceptance."""
    rows = enumerate(automaton.transitions)
    return frozenset(state for state, row in rows if row[place] in automaton.accepting)


@dataclass
class _Writer:
    """Builds the program, and names its parts."""

    automaton: DFA
    accept: str
    names: dict[Node, str] = field(default_factory=dict)

    def accepted(self) -> Node | None:
        """Return what accepts, or None if there is no program."""
        whole = potentials(self.automaton)
        accepted: list[Node] = []
        if whole is not None:
            run = _Run(self, self.automaton, whole, "")
            if self.accept == END:
                accepted.append(run.ends_in(self.automaton.accepting))
            else:
                for place in range(len(self.automaton.alphabet)):
                    accepted.append(run.reads(_before(self.automaton, place), place))
        elif self.accept == END:
            return None
        else:
            for place, before in enumerate(before_last(self.automaton)):
                parts = potentials(before)
                if parts is None:
                    return None
                run = _Run(self, before, parts, f"_{place}")
                accepted.append(run.reads(before.accepting, place))
        return _any(accepted)

    def define(self, name: str, value: Node) -> Node:
        """Name a part, unless it is a constant or has a name."""
        if value not in (TRUE, FALSE):
            self.names.setdefault(value, name)
        return value


class _Run:
    """Follows an automaton through its components."""

    def __init__(
        self, writer: _Writer, automaton: DFA, parts: Sequence[Component], suffix: str
    ) -> None:
        self.writer, self.automaton, self.suffix = writer, automaton, suffix
        self.parts = parts
        self._number = {state: i for i, part in enumerate(parts) for state in part.states}
        #: For each state, how often it was entered from another component: 0 or 1.
        self._entries: dict[int, list[Node]] = {}
        self._since: list[Node] = []
        self._potentials: list[list[Node]] = []
        self._left: list[Node] = []
        self._entered: list[Node] = []
        useful = automaton.useful()
        for number, part in enumerate(parts):
            if useful.isdisjoint(part.states):  # nothing is accepted from there on
                for filled in (self._since, self._left, self._entered):
                    filled.append(FALSE)
                self._potentials.append([])
            else:
                self._component(number, part)

    def _letter(self, place: int) -> Node:
        return symbol(self.automaton.alphabet[place]).node

    def _component(self, number: int, part: Component) -> None:
        define, name = self.writer.define, f"{number}{self.suffix}"
        counts: dict[int, Node] = {}
        if number == 0:
            since = entered = TRUE
        else:
            events = {
                state: define(f"enter{name}_{state}", _any(self._entries[state]))
                for state in part.states
                if state in self._entries
            }
            event = define(f"enter{name}", _any(list(events.values())))
            seen = build("greater_equal", count_node(event), constant_node(1))
            entered = define(f"entered{name}", seen if event is not FALSE else FALSE)
            since = define(f"since{name}", _all([entered, build("not", event)]))
            counts = {state: count_node(event) for state, event in events.items()}
        self._since.append(since)
        self._entered.append(entered)
        self._potentials.append([])
        for depth, level in enumerate(part.levels):
            terms = []
            for label, weight in level.weights.items():
                if weight:
                    *below, place = label
                    where = [since, self._letter(place)]
                    if below:
                        lower = self._potentials[number][depth - 1]
                        after = below[0] + self._weight(part, depth - 1, below[0], place)
                        where.append(_equal(lower, after))
                    terms.append((weight, count_node(_all(where))))
            offset = level.of_state[0] if number == 0 else 0
            if number:
                terms += [(level.of_state[state], count) for state, count in counts.items()]
            self._potentials[number].append(define(f"potential{name}_{depth}", _sum(terms, offset)))
        leaving = [
            (state, place, target)
            for state in part.states
            for place, target in enumerate(self.automaton.transitions[state])
            if self._number[target] != number
        ]
        leaves = define(
            f"leaves{name}", _any([self._read(number, state, place) for state, place, _ in leaving])
        )
        self._left.append(leaves)
        useful = self.automaton.useful()
        leaving = [edge for edge in leaving if edge[2] in useful]
        if not leaving:
            return
        first = define(f"exit{name}", _all([leaves, _equal(count_node(leaves), 1)]))
        for state, place, target in leaving:
            event = _all([first, self._read(number, state, place)])
            self._entries.setdefault(target, []).append(event)

    def _weight(self, part: Component, depth: int, value: int, place: int) -> int:
        """Return the weight at a level of a letter that is read at a state of that potential."""
        level = part.levels[depth]
        if depth == 0:
            return level.weights.get((place,), 0)
        state = next(s for s in part.states if level.of_state[s] == value)
        return level.weights.get((part.levels[depth - 1].of_state[state], place), 0)

    def _read(self, number: int, state: int, place: int) -> Node:
        """Say that a letter was read in a state, if the component was not left before."""
        part = self.parts[number]
        where = [self._since[number], self._letter(place)]
        for depth, level in enumerate(part.levels):
            label = (place,) if depth == 0 else (part.levels[depth - 1].of_state[state], place)
            after = level.of_state[state] + level.weights.get(label, 0)
            where.append(_equal(self._potentials[number][depth], after))
        return _all(where)

    def ends_in(self, states: frozenset[int]) -> Node:
        """Say that the word before an end marker leads to one of these states."""
        cases = []
        for number, part in enumerate(self.parts):
            inside = [state for state in part.states if state in states]
            if inside:
                where = [self._entered[number]]
                if self._left[number] is not FALSE:
                    where.append(_equal(count_node(self._left[number]), 0))
                if len(inside) < len(part.states):
                    level, top = part.levels[-1], self._potentials[number][-1]
                    where.append(_any([_equal(top, level.of_state[state]) for state in inside]))
                cases.append(_all(where))
        return _any(cases)

    def reads(self, states: frozenset[int], place: int) -> Node:
        """Say that a certain letter stands here and was read in one of these states."""
        cases = []
        for number, part in enumerate(self.parts):
            inside = [state for state in part.states if state in states]
            if inside:
                left = self._left[number]
                where = []
                if left is not FALSE:
                    times = count_node(left)
                    where.append(_any([_equal(times, 0), _all([left, _equal(times, 1)])]))
                if len(inside) == len(part.states):
                    where += [self._since[number], self._letter(place)]
                else:
                    where.append(_any([self._read(number, state, place) for state in inside]))
                cases.append(_all(where))
        return _any(cases)


def _equal(count: Node, value: int) -> Node:
    return build("equal", count, constant_node(value))


def _any(parts: Sequence[Node]) -> Node:
    return _joined("or", FALSE, TRUE, parts)


def _all(parts: Sequence[Node]) -> Node:
    return _joined("and", TRUE, FALSE, parts)


def _joined(op: str, neutral: Node, decided: Node, parts: Sequence[Node]) -> Node:
    """Join booleans, each once."""
    opposite = build("not", decided)
    kept = list(dict.fromkeys(part for part in parts if part not in (neutral, opposite)))
    return decided if decided in kept else reduce(partial(build, op), kept) if kept else neutral


def _sum(terms: Sequence[tuple[int, Node]], constant: int) -> Node:
    """Add counts times integers, and a constant."""
    total: Node | None = None
    for weight, count in terms:
        size = abs(weight)
        times = count if size == 1 else build("multiply", constant_node(size), count)
        if not weight:
            continue
        if total is not None:
            total = build("add" if weight > 0 else "subtract", total, times)
        elif weight >= -1:
            total = times if weight > 0 else build("negate", count)
        else:
            total = build("multiply", constant_node(weight), count)
    if total is None or not constant:
        return total or constant_node(constant)
    return build("add" if constant > 0 else "subtract", total, constant_node(abs(constant)))


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
