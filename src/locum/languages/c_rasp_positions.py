"""Decide whether C-RASP with local predicates, periodic predicates or both recognises a language.

A local predicate is a count at one distance, and a periodic predicate is a position modulo a constant.

A **positive** result is a program: for some number of visible earlier letters, and for some period, the
potentials (``potentials.py``) separate all states that look the same. Two states look the same if their
visible letters and their positions modulo the period are equal. If neither a positive nor a negative
result is found within the limits of the search, the question is undecided.

A **negative** result is an obstruction that holds for every window and every period. With local
predicates, its graph consists of the states q with qe = q, for idempotents e of the syntactic
semigroup. For idempotents e and f, elements x = exf are the labels of the graph. A word for the label
consists of a word of x and then arbitrarily many copies of a word of f. A window of any size in this
word depends only on the label. A program with local predicates that separates two states of the graph
would therefore yield a program without local predicates over the labels.

With periodic predicates, the states also contain a position modulo d. For each k, consider the set of
elements that words of k letters induce. From the stability index s on, these sets repeat with period d.
For a remainder r modulo d, a label x is induced by words of s + r letters. Because of the repetition, x
is also induced by words whose length is r modulo any given multiple of d.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from locum.errors import LimitError
from locum.languages.automata import DFA, Letter
from locum.languages.c_rasp_programs import PositionGraph, program
from locum.languages.monoid import Monoid
from locum.languages.potentials import Graph, Obstruction, separate
from locum.languages.recogniser import Recogniser

#: Limits on the number of labels in the graph of an obstruction: in the first attempt, and in the
#: second. An obstruction in a graph with fewer labels is also an obstruction in the graph with all
#: labels.
FEW_LABELS, MAX_LABELS = 200, 4_000
#: Maximum number of visible earlier letters, and maximum period.
MAX_WINDOW, MAX_PERIOD = 8, 24


@dataclass(frozen=True)
class Arrow:
    """A label of the graph: an element, with an idempotent and a position modulo the period at each
    end.

    If only positions are visible, the idempotents are None.
    """

    source: tuple[int | None, int]
    element: int
    target: tuple[int | None, int]


@dataclass(frozen=True)
class PositionObstruction:
    """Two states that no program separates, for any window and any period."""

    #: The states of the automaton.
    states: tuple[int, int]
    #: A word that leads from the first state to the second.
    detour: tuple[Letter, ...]
    #: The period of the positions, or 1 if the position is not visible, and the position modulo this
    #: period at which the two states occur.
    period: int
    remainder: int


@dataclass(frozen=True)
class Decision:
    """A decision on whether a program with position predicates recognises a language."""

    #: Whether there is a program, or None if this is undecided.
    holds: bool | None
    #: The number of earlier letters that the program reads, and its period.
    window: int = 0
    period: int = 1
    obstruction: PositionObstruction | None = None
    #: The reason why the question is undecided.
    reason: str = ""

    def program(self, automaton: DFA) -> Recogniser | None:
        """Return a program for the language of ``automaton``, or None if the decision is not
        positive.
        """
        return program(automaton, window=self.window, period=self.period) if self.holds else None


def decide(automaton: DFA, monoid: Monoid, *, local: bool, periodic: bool) -> Decision:
    """Decide whether a C-RASP program with these predicates recognises a language.

    The answer of the program is read at an end marker.
    """
    reason = ""
    try:
        period = monoid.lengths[2] if periodic else 1
        if period > MAX_PERIOD:
            return Decision(None, reason=f"the period {period} is above {MAX_PERIOD}")
        for window in range(MAX_WINDOW + 1 if local else 1):
            for each in sorted({1, period}):
                if not isinstance(PositionGraph(automaton, window, each).parts, Obstruction):
                    return Decision(True, window, each)
            if window == int(local):  # most programs need few letters
                try:
                    obstruction = obstruct(automaton, monoid, local=local, periodic=periodic)
                except LimitError as error:
                    reason = str(error)
                    continue
                if obstruction is not None:
                    return Decision(False, obstruction=obstruction)
    except LimitError as error:
        return Decision(None, reason=reason or str(error))
    found = f"a program with {window} earlier letters" if local else "a program"
    return Decision(None, reason=reason or f"found neither {found} nor a proof that none exists")


def obstruct(
    automaton: DFA, monoid: Monoid, *, local: bool, periodic: bool
) -> PositionObstruction | None:
    """Return two states that no window and no period separate, or None if the potentials separate all
    states.

    If a graph of about ``MAX_LABELS`` labels is not sufficient for either, LimitError is raised.
    """
    bases: list[int | None] = [part[0] for part in monoid.regular_classes] if local else [None]
    # One idempotent and few labels often suffice, and result in a smaller graph.
    for most in (FEW_LABELS, MAX_LABELS):
        complete = True
        for chosen in (*([base] for base in bases if len(bases) > 1), bases):
            found, all_labels = _obstruct(automaton, monoid, chosen, periodic, most)
            if found is not None:
                return found
            complete = complete and all_labels
        if complete:
            return None
    raise LimitError(f"more than {MAX_LABELS} labels")


def _obstruct(
    automaton: DFA, monoid: Monoid, bases: Sequence[int | None], periodic: bool, most: int
) -> tuple[PositionObstruction | None, bool]:
    """Return an obstruction or None, and whether the graph in which it was searched has all labels.

    The graph has at most ``most`` labels, but at least one label for each pair of objects that has
    labels. An object is an idempotent, or None, with a remainder.
    """
    sets, index, period = monoid.lengths if periodic else ([], 0, 1)
    made = [sets[index + i] for i in range(period)] if periodic else [frozenset(monoid.semigroup)]
    objects = [(base, i) for base in bases for i in range(period)]
    images = {
        (base, i): sorted({monoid.elements[_between(monoid, 0, x, base)][0] for x in made[i]})
        for base, i in objects
    }
    vertices = [(each, state) for each in objects for state in images[each]]
    number = {vertex: i for i, vertex in enumerate(vertices)}
    targets: list[dict[int, int]] = [{} for _ in vertices]
    arrows: list[Arrow] = []
    pairs = [
        (source, target, shift)
        for source in objects
        for target in objects
        # words whose length is 1 modulo the period generate all other elements
        if (shift := (target[1] - source[1]) % period) == 1 % period or bases != [None]
    ]
    share, all_labels = max(1, most // len(pairs)), True
    for source, target, shift in pairs:
        elements = sorted({_between(monoid, source[0], x, target[0]) for x in made[shift]})
        all_labels = all_labels and len(elements) <= share
        for element in elements[:share]:
            for state in images[source]:
                reached = number[target, monoid.elements[element][state]]
                targets[number[source, state]][len(arrows)] = reached
            arrows.append(Arrow(source, element, target))
    found = separate(Graph(tuple(targets), tuple(each for each, _ in vertices)))
    if not isinstance(found, Obstruction):
        return None, all_labels

    def word(arrow: Arrow) -> tuple[Letter, ...]:
        if not periodic:
            return monoid.word_of_semigroup(arrow.element)
        shift = (arrow.target[1] - arrow.source[1]) % period
        return monoid.word_of_length(arrow.element, index + shift)

    (_, remainder), one = vertices[found.states[0]]
    other = vertices[found.states[1]][1]
    detour = tuple(letter for label in found.path for letter in word(arrows[label]))
    return PositionObstruction((one, other), detour, period, remainder), all_labels


def _between(monoid: Monoid, first: int | None, element: int, last: int | None) -> int:
    return element if first is None or last is None else monoid.multiply(first, element, last)
