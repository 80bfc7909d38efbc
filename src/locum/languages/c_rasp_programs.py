"""Build a C-RASP program for a regular language from the potentials of its automaton.

For each component from which an accepting state can be reached, the program computes weighted counts of
the letters since the component was entered. These counts are the potentials of the state
(``potentials.py``). Together with the current letter, the potentials determine the state before this
letter. The first letter that leaves the component enters the next one.

A C-RASP program without position predicates recognises the language if and only if the potentials of
every component separate all states. This statement is about programs whose answer is read at an end
marker. With local predicates a program can read the letters before a position, and with periodic
predicates the position modulo a period. These letters and this position are *visible facts*. Only
states with equal visible facts have to be separated.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce

from locum.errors import InputError, LimitError
from locum.graph import Node, build
from locum.graph.operations import constant as constant_node
from locum.languages.automata import DFA
from locum.languages.c_rasp import show
from locum.languages.counting import as_sop, count_node, symbol
from locum.languages.potentials import Component, Graph, Obstruction, separate
from locum.languages.recogniser import END, Recogniser

TRUE, FALSE = constant_node(True), constant_node(False)

#: Maximum number of states of an automaton combined with the visible facts about positions.
MAX_SEEN = 600


@dataclass(frozen=True)
class Seen:
    """A state of an automaton, the letters before the position, and the position modulo the period."""

    state: int
    #: Indices of the letters, the nearest last. Positions before the word have index 0.
    window: tuple[int, ...]
    remainder: int


@dataclass(frozen=True)
class PositionGraph:
    """An automaton whose states and letters are combined with visible facts about positions."""

    automaton: DFA
    #: The number of visible letters before a position.
    window: int = 0
    period: int = 1

    @cached_property
    def states(self) -> list[Seen]:
        """The states that can be reached, beginning with the initial state."""
        start = Seen(0, (0,) * self.window, 0)
        order, known = [start], {start}
        for seen in order:
            for place in range(len(self.automaton.alphabet)):
                target = self._step(seen, place)
                if target not in known:
                    if len(order) >= MAX_SEEN and (self.window or self.period > 1):
                        raise LimitError(
                            f"more than {MAX_SEEN} combinations of states and visible facts"
                        )
                    known.add(target)
                    order.append(target)
        return order

    def _step(self, seen: Seen, place: int) -> Seen:
        window = (*seen.window, place)[len(seen.window) + 1 - self.window :]
        state = self.automaton.transitions[seen.state][place]
        return Seen(state, window, (seen.remainder + 1) % self.period)

    @cached_property
    def labels(self) -> list[tuple[tuple[int, ...], int, int]]:
        """For each label, the letters before it, the position modulo the period, and the
        letter itself.
        """
        looks = sorted({(seen.window, seen.remainder) for seen in self.states})
        places = range(len(self.automaton.alphabet))
        return [(*look, place) for look, place in itertools.product(looks, places)]

    @cached_property
    def graph(self) -> Graph:
        """The graph of the states; its labels are letters with the visible facts before them."""
        number = {seen: i for i, seen in enumerate(self.states)}
        label = {name: i for i, name in enumerate(self.labels)}
        targets = tuple(
            {
                label[seen.window, seen.remainder, place]: number[self._step(seen, place)]
                for place in range(len(self.automaton.alphabet))
            }
            for seen in self.states
        )
        return Graph(targets, tuple((seen.window, seen.remainder) for seen in self.states))

    @cached_property
    def parts(self) -> list[Component] | Obstruction:
        """The potentials of the components, or an obstruction if they do not separate the states."""
        return separate(self.graph)

    def letter(self, label: int) -> Node:
        """Return a node that is true where a label is read."""
        window, remainder, place = self.labels[label]
        return _all([symbol(self.automaton.alphabet[place]).node, self._look(window, remainder)])

    def look(self, state: int) -> Node:
        """Return a node that is true at positions with the visible facts of ``state``."""
        seen = self.states[state]
        return self._look(seen.window, seen.remainder)

    def _look(self, window: Sequence[int], remainder: int) -> Node:
        where = []
        if self.period > 1:
            at = build("modulo", build("indices"), constant_node(self.period))
            where.append(_equal(at, remainder))
        for distance, place in enumerate(reversed(window), 1):
            others = range(1, len(self.automaton.alphabet))
            there = {
                other: build("greater_equal", self._at(other, distance), constant_node(1))
                for other in others
                if place in (0, other)
            }
            where += [build("not", each) for each in there.values()] if place == 0 else there.values()
        return _all(where)

    def _at(self, place: int, distance: int) -> Node:
        return count_node(symbol(self.automaton.alphabet[place]).node, distance)


def program(
    automaton: DFA, accept: str = END, *, window: int = 0, period: int = 1
) -> Recogniser | None:
    """Return a C-RASP program for the language of a minimal automaton, or None if there is none.

    The program can read the ``window`` letters before a position, and the position modulo ``period``.
    With a window or a period, ``accept`` must be "end".

    >>> from locum.languages.regular import language
    >>> parity_free = program(language("(ab+ba)*"))
    >>> [parity_free.accepts(word) for word in ("", "abba", "ab", "aabb")]
    [True, True, True, False]
    """
    unwritten = [letter for letter in automaton.alphabet if '"' in letter or "\n" in letter]
    if unwritten:
        raise InputError(f"C-RASP: expected symbols without quotes and newlines, got {unwritten[0]!r}")
    writer = _Writer(PositionGraph(automaton, window, period), accept)
    accepted = writer.accepted()
    if accepted is None:
        return None
    written = Recogniser("C-RASP", as_sop(accepted), automaton.alphabet, accept, writer.names)
    return replace(written, text=show(written))


def obstruct(automaton: DFA, accept: str = END) -> tuple[int, Obstruction] | None:
    """Return two states that no C-RASP program without position predicates separates, or None.

    The result is None if there is a program. If ``accept`` is "last", the obstruction refers to the
    automaton of all words w with wa in the language, for a letter a. The index of this letter in the
    alphabet is returned with the obstruction.
    """
    for place, each in enumerate([automaton] if accept == END else before_last(automaton)):
        found = PositionGraph(each).parts
        if isinstance(found, Obstruction):
            return place, found
    return None


def before_last(automaton: DFA) -> list[DFA]:
    """Return, for each letter a, the minimal automaton of the words w with wa in the language.

    Reading the word wa at its last symbol is equivalent to reading w at an end marker.
    """
    automata = []
    for place in range(len(automaton.alphabet)):
        accepting = _before(automaton, place)
        automata.append(DFA(automaton.alphabet, automaton.transitions, accepting).minimal())
    return automata


def _before(automaton: DFA, place: int) -> frozenset[int]:
    """Return the states from which the letter with index ``place`` leads to an accepting state."""
    rows = enumerate(automaton.transitions)
    return frozenset(state for state, row in rows if row[place] in automaton.accepting)


@dataclass
class _Writer:
    """A builder of a C-RASP program that also names the s-ops of the program."""

    seen: PositionGraph
    accept: str
    names: dict[Node, str] = field(default_factory=dict)

    def accepted(self) -> Node | None:
        """Return the node of the accepting condition, or None if there is no program."""
        automaton = self.seen.automaton
        accepted: list[Node] = []
        if not isinstance(self.seen.parts, Obstruction):
            run = _Run(self, self.seen, self.seen.parts, "")
            if self.accept == END:
                accepted.append(run.ends_in(automaton.accepting))
            else:
                for place in range(len(automaton.alphabet)):
                    accepted.append(run.reads(_before(automaton, place), place))
        elif self.accept == END:
            return None
        else:
            for place, before in enumerate(before_last(automaton)):
                seen = PositionGraph(before)
                if isinstance(seen.parts, Obstruction):
                    return None
                run = _Run(self, seen, seen.parts, f"_{place}")
                accepted.append(run.reads(before.accepting, place))
        return _any(accepted)

    def define(self, name: str, value: Node) -> Node:
        """Assign a name to a part, unless the part is ``true``, ``false`` or already named."""
        if value not in (TRUE, FALSE):
            self.names.setdefault(value, name)
        return value


class _Run:
    """Nodes that compute the run of an automaton through its components."""

    def __init__(
        self, writer: _Writer, seen: PositionGraph, parts: Sequence[Component], suffix: str
    ) -> None:
        self.writer, self.seen, self.suffix = writer, seen, suffix
        self.parts = parts
        self._letter = seen.letter
        self._number = {state: i for i, part in enumerate(parts) for state in part.states}
        #: For each state, nodes that are true where the state is entered from another component.
        self._entries: dict[int, list[Node]] = {}
        self._since: list[Node] = []
        self._potentials: list[list[Node]] = []
        self._left: list[Node] = []
        self._entered: list[Node] = []
        useful = seen.automaton.useful()
        self._useful = {i for i, each in enumerate(seen.states) if each.state in useful}
        for number, part in enumerate(parts):
            if self._useful.isdisjoint(part.states):  # no word is accepted after entering the part
                for filled in (self._since, self._left, self._entered):
                    filled.append(FALSE)
                self._potentials.append([])
            else:
                self._component(number, part)

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
                    *below, read = label
                    where = [since, self._letter(read)]
                    if below:
                        lower = self._potentials[number][depth - 1]
                        after = below[0] + self._weight(part, depth - 1, below[0], read)
                        where.append(_equal(lower, after))
                    terms.append((weight, count_node(_all(where))))
            offset = level.of_state[0] if number == 0 else 0
            if number:
                terms += [(level.of_state[state], count) for state, count in counts.items()]
            self._potentials[number].append(define(f"potential{name}_{depth}", _sum(terms, offset)))
        leaving = [
            (state, label, target)
            for state in part.states
            for label, target in self.seen.graph.targets[state].items()
            if self._number[target] != number
        ]
        leaves = define(
            f"leaves{name}", _any([self._read(number, state, label) for state, label, _ in leaving])
        )
        self._left.append(leaves)
        leaving = [edge for edge in leaving if edge[2] in self._useful]
        if not leaving:
            return
        first = define(f"exit{name}", _all([leaves, _equal(count_node(leaves), 1)]))
        for state, read_label, target in leaving:
            event = _all([first, self._read(number, state, read_label)])
            self._entries.setdefault(target, []).append(event)

    def _weight(self, part: Component, depth: int, value: int, label: int) -> int:
        """Return the weight, at level ``depth``, of a label that is read in a state with potential
        ``value``.
        """
        level = part.levels[depth]
        if depth == 0:
            return level.weights.get((label,), 0)
        targets = self.seen.graph.targets
        state = next(s for s in part.states if level.of_state[s] == value and label in targets[s])
        return level.weights.get((part.levels[depth - 1].of_state[state], label), 0)

    def _read(self, number: int, state: int, label: int) -> Node:
        """Return a node that is true where ``label`` is read in ``state``, before the component is
        left.
        """
        part = self.parts[number]
        where = [self._since[number], self._letter(label)]
        for depth, level in enumerate(part.levels):
            own = (label,) if depth == 0 else (part.levels[depth - 1].of_state[state], label)
            after = level.of_state[state] + level.weights.get(own, 0)
            where.append(_equal(self._potentials[number][depth], after))
        return _all(where)

    def ends_in(self, accepting: frozenset[int]) -> Node:
        """Return a node that is true at an end marker if the word leads to one of the ``accepting``
        states.
        """
        cases = []
        for number, part in enumerate(self.parts):
            inside = [state for state in part.states if self.seen.states[state].state in accepting]
            if inside:
                where = [self._entered[number]]
                if self._left[number] is not FALSE:
                    where.append(_equal(count_node(self._left[number]), 0))
                if len(inside) < len(part.states):
                    where.append(_any([self._ends_in(number, state) for state in inside]))
                cases.append(_all(where))
        return _any(cases)

    def _ends_in(self, number: int, state: int) -> Node:
        levels = self.parts[number].levels[-1:]
        top = self._potentials[number][-1:]
        known = [_equal(p, level.of_state[state]) for p, level in zip(top, levels, strict=True)]
        return _all([self.seen.look(state), *known])

    def reads(self, states: frozenset[int], place: int) -> Node:
        """Return a node that is true where the letter with index ``place`` is read in one of the
        ``states``.
        """
        cases = []
        for number, part in enumerate(self.parts):
            inside = [state for state in part.states if self.seen.states[state].state in states]
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
    """Join distinct booleans by ``op`` ("and" or "or"), and simplify constants."""
    opposite = build("not", decided)
    kept = list(dict.fromkeys(part for part in parts if part not in (neutral, opposite)))
    return decided if decided in kept else reduce(partial(build, op), kept) if kept else neutral


def _sum(terms: Sequence[tuple[int, Node]], constant: int) -> Node:
    """Return the node of a sum of counts times integers, plus a constant."""
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
