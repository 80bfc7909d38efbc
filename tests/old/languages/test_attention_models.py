"""Verdicts on models of attention: examples, witnesses, programs, and second decision procedures.

The second procedures share no code with the first: they compute with tuples of their own.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import settings

from locum.languages import regular
from locum.languages.attention_models import (
    AVERAGE,
    ENCODER,
    FIXED,
    IDEAL,
    LEFTMOST,
    LOGARITHMIC,
    NONSTRICT,
    RIGHTMOST,
    ROUNDED,
    ROUNDED_LAST,
    STRICT,
    UNMASKED,
)
from locum.languages.automata import DFA, components
from locum.languages.classification import IMPORTS, classify
from locum.languages.counting import depth
from locum.languages.recogniser import END, LAST
from locum.languages.witnesses import Witness
from tests.old.languages.corpus import CORPUS, agrees, random_dfa

MANY = settings().max_examples > settings.get_profile("default").max_examples

#: For each language, the models that recognise it, of those that are decided.
EXAMPLES = {
    "((a+b)(a+b))*": {ENCODER, IDEAL, AVERAGE},
    "(b*ab*ab*)*b*": {AVERAGE},
    "(a+b)*aa(a+b)*": {STRICT, RIGHTMOST, ENCODER, IDEAL, AVERAGE},
    "(ab+ba)*": {STRICT, RIGHTMOST, ENCODER, ROUNDED, ROUNDED_LAST, IDEAL, AVERAGE},
    "a*b*": {
        STRICT,
        RIGHTMOST,
        LEFTMOST,
        NONSTRICT,
        ENCODER,
        FIXED,
        ROUNDED,
        ROUNDED_LAST,
        IDEAL,
        AVERAGE,
    },
    "(a+b)*b": {STRICT, RIGHTMOST, NONSTRICT, UNMASKED, ENCODER, ROUNDED_LAST, IDEAL, AVERAGE},
    "a(a+b+c)*b": {STRICT, RIGHTMOST, NONSTRICT, UNMASKED, ENCODER, ROUNDED_LAST, IDEAL, AVERAGE},
    "b*(ab*ab*)*c": set(),
    "(a+b+c)*bc*": {STRICT, RIGHTMOST, NONSTRICT, UNMASKED, ENCODER, AVERAGE},
    "(aa)*": {ENCODER, IDEAL, AVERAGE},
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_models_of_examples(text: str) -> None:
    models = classify(text).models
    assert {row.model for row in models if row.holds} == EXAMPLES[text]
    undecided = {row.model for row in models if row.holds is None}
    assert undecided <= {AVERAGE, LOGARITHMIC}
    assert (AVERAGE in undecided) == (text == "b*(ab*ab*)*c")


def test_even_length_and_parity_differ() -> None:
    even, parity = classify("((a+b)(a+b))*"), classify("(b*ab*ab*)*b*")
    assert (even.ac0, parity.ac0) == (True, False)
    assert even.positions["C-RASP[periodic]"].holds
    assert parity.positions["C-RASP[periodic, local]"].holds is False


def test_length_generalisation_names_its_class_and_positions() -> None:
    for text in EXAMPLES:
        for row in classify(text).models:
            if "Huang" in row.theorem:
                assert row.languages == "C-RASP[periodic, local]"
                assert row.positions


#: Regular expression, dot-depth (2: two or more), whether the until-rank is 0.
LEVELS = [
    ("ab+ba", 0, True),
    ("~(ab)", 0, True),
    ("(ab)*", 1, True),
    ("(a(ab)*b)*", 2, False),  # Dyck words of depth 2
    ("(a+b+c)*ac*b(a+b+c)*", 1, True),  # an a before a b
    ("(a+b+c)*ac*a(a+b+c)*", 2, False),
    ("a*b*", 1, True),
    ("(a+b+c)*bc*", 2, True),
]


@pytest.mark.parametrize(("text", "level", "without_until"), LEVELS)
def test_dot_depth_and_until_rank(text: str, level: int, without_until: bool) -> None:
    verdicts = classify(text)
    assert verdicts.dot_depth == level
    assert verdicts.until_rank_0 == without_until


def test_depth_of_programs() -> None:
    once, twice = classify("(a+b)*a(a+b)*").program(), classify("a*b*").program()
    assert once is not None
    assert twice is not None
    assert depth(once.sop.node) < depth(twice.sop.node)


# Evidence -------------------------------------------------------------------------------------------


def _languages(corpus: int, automata: int) -> Iterator[DFA]:
    for row in CORPUS[:: len(CORPUS) // corpus]:
        yield regular.language(row["regex"])
    rng = random.Random(17)
    for _ in range(automata):
        yield random_dfa(rng, 5).minimal()


def test_random_languages_have_witnesses_and_programs() -> None:
    """Every "no" has a witness that checks; every "yes" with programs has one that agrees."""
    checked = programs = 0
    for automaton in _languages(100, 100) if MANY else _languages(6, 6):
        verdicts = classify(automaton)
        for line in verdicts.lines():
            if line.holds is False:
                checked += verdicts.witnesses[line.key].check(automaton)
                assert verdicts.witnesses[line.key].check(automaton), (line, automaton)
        for row in verdicts.models:
            assert row.holds is not False or (row.witness and row.witness.check(automaton)), row
        for decision in verdicts.positions.values():
            emitted = decision.program(automaton)
            assert (emitted is not None) == bool(decision.holds)
            assert emitted is None or agrees(automaton, emitted, 8), automaton
            programs += emitted is not None
        for accept, holds in ((END, verdicts.c_rasp), (LAST, verdicts.c_rasp_last)):
            emitted = verdicts.program(accept)
            assert (emitted is not None) == holds
            assert emitted is None or agrees(automaton, emitted, 8), automaton
    assert checked > 20
    assert programs > 20


def test_witnesses_that_were_changed_do_not_check() -> None:
    verdicts = classify("(b*ab*ab*)*b*")
    automaton = verdicts.automaton
    for key, witness in verdicts.witnesses.items():
        assert witness.check(automaton), key
        assert not witness.check(regular.language("∅", "ab")), key
    counts = verdicts.witnesses["C-RASP"]
    assert not dataclasses.replace(counts, words=dict(counts.words) | {"detour": ("b",)}).check(
        automaton
    )
    assert not Witness("group", {"prefix": (), "loop": ("b",)}).check(automaton)
    even = classify("((a+b)(a+b))*")
    modular = Witness("modular", {"prefix": (), "loop": ("a",), "stay": ("a", "a")})
    assert not modular.check(even.automaton)


def test_unsolvable_groups_have_generators() -> None:
    rows = tuple((1 - q if q < 2 else q, (q + 1) % 5) for q in range(5))
    verdicts = classify(DFA(("a", "b"), rows, frozenset({0})))
    assert verdicts.witnesses["solvable"].check(verdicts.automaton)
    assert {row.theorem.split(",")[0] for row in verdicts.models if row.holds is None} == {
        "only if TC⁰ = NC¹"
    }
    solvable = tuple((1 - q if q < 2 else q, (q + 1) % 4) for q in range(4))
    four = classify(DFA(("a", "b"), solvable, frozenset({0})))
    generators = {"prefix": (), "generator_1": ("a",), "generator_2": ("b",)}
    assert not Witness("unsolvable", generators).check(four.automaton)


# Second decision procedures -------------------------------------------------------------------------

Map = tuple[int, ...]


def _then(one: Map, other: Map) -> Map:
    return tuple(other[q] for q in one)


def _omega(x: Map) -> Map:
    power = x
    while _then(power, power) != power:
        power = _then(power, x)
    return power


def _reaches(start: Hashable, goal: Hashable, steps: Callable[[Any], Iterable[Hashable]]) -> bool:
    """Whether one step or more lead from start to goal."""
    seen: set[Hashable] = set()
    waiting = [start]
    while waiting:
        for found in steps(waiting.pop()):
            if found == goal:
                return True
            if found not in seen:
                seen.add(found)
                waiting.append(found)
    return False


def _cycles(dfa: DFA) -> Iterator[tuple[Map, Map]]:
    """Yield tuples of different states, and the same moved on by one."""
    for size in range(2, len(dfa) + 1):
        for states in itertools.permutations(range(len(dfa)), size):
            if states[0] == min(states):
                yield states, states[1:] + states[:1]


def _follow(dfa: DFA, states: Map) -> list[Map]:
    return [tuple(dfa.transitions[q][i] for q in states) for i in range(len(dfa.alphabet))]


def _is_counter_free(dfa: DFA) -> bool:
    """No word leads through a cycle of states (a forbidden pattern of the automaton)."""
    return not any(_reaches(q, moved, lambda at: _follow(dfa, at)) for q, moved in _cycles(dfa))


def _has_no_modular_counter(dfa: DFA) -> bool:
    """No word leads through a cycle of states that a word of equal length leaves in place."""

    def steps(pair: tuple[Map, Map]) -> Iterator[tuple[Map, Map]]:
        yield from itertools.product(*(_follow(dfa, states) for states in pair))

    return not any(_reaches((q, q), (moved, q), steps) for q, moved in _cycles(dfa))


def _long_words(dfa: DFA) -> list[bool]:
    """The answers to all words of n to 2n - 1 letters; n is the number of states."""
    sizes = range(len(dfa), 2 * len(dfa))
    return [dfa.accepts(w) for size in sizes for w in itertools.product(dfa.alphabet, repeat=size)]


def _changes_by_words(dfa: DFA, change: Callable[[Sequence[str], int], Sequence[str]]) -> bool:
    """Whether a change at some place of a short word changes the answer."""
    for size in range(1, 2 * len(dfa)):
        for word in itertools.product(dfa.alphabet, repeat=size):
            if any(dfa.accepts(word) != dfa.accepts(change(word, i)) for i in range(size)):
                return True
    return False


class _Plain:
    """The transformations of words, by sets of tuples."""

    def __init__(self, dfa: DFA) -> None:
        size = len(dfa.alphabet)
        self.letters = [tuple(row[i] for row in dfa.transitions) for i in range(size)]
        self.identity = tuple(range(len(dfa)))
        self.semigroup: set[Map] = set()
        frontier = set(self.letters)
        while frontier:
            self.semigroup |= frontier
            frontier = {_then(x, a) for x in frontier for a in self.letters} - self.semigroup
        self.monoid = self.semigroup | {self.identity}
        self.idempotents = {x for x in self.semigroup if _then(x, x) == x}

    def is_r_trivial(self) -> bool:
        ideals = {frozenset(_then(x, y) for y in self.monoid) for x in self.monoid}
        return len(ideals) == len(self.monoid)

    def is_quasi_aperiodic(self) -> bool:
        """No set of transformations of words of equal length has a group of two elements or more."""
        made, seen = frozenset(self.letters), set()
        while made not in seen:
            seen.add(made)
            for x in made:
                power = _omega(x)
                if power in made and power != x and _then(power, x) == x:
                    return False
            made = frozenset(_then(x, a) for x in made for a in self.letters)
        return True

    def is_regular_band(self) -> bool:
        """Every x satisfies xx = x, and all x, y, z satisfy xyxzx = xyzx."""
        if self.monoid != self.idempotents | {self.identity}:
            return False
        for x, y, z in itertools.product(self.monoid, repeat=3):
            right = _then(z, x)
            if _then(_then(_then(x, y), x), right) != _then(_then(x, y), right):
                return False
        return True

    def has_r_equivalent_idempotents(self) -> bool:
        """Different idempotents e and f with ef = f and fe = e."""
        pairs = itertools.permutations(self.idempotents | {self.identity}, 2)
        return any(_then(e, f) == f and _then(f, e) == e for e, f in pairs)

    def is_locally_l_trivial(self) -> bool:
        for e in self.idempotents:
            local = {_then(_then(e, x), e) for x in self.semigroup}
            for x, y in itertools.product(local, repeat=2):
                power = _omega(_then(x, y))
                if _then(y, power) != power:
                    return False
        return True

    def satisfies_knast(self) -> bool:
        for e, f in itertools.product(self.idempotents, repeat=2):
            there = {_then(_then(e, x), f) for x in self.semigroup}
            back = {_then(_then(f, x), e) for x in self.semigroup}
            for x, u in itertools.product(there, repeat=2):
                for y, v in itertools.product(back, repeat=2):
                    first, last = _omega(_then(x, y)), _omega(_then(u, v))
                    if _then(_then(first, _then(x, v)), last) != _then(first, last):
                        return False
        return True


_PRIME = 2**61 - 1


def _separated(edges: Sequence[tuple[int, int, int]], seen: Sequence[Hashable]) -> bool:
    """Whether label counts separate the states of each component that look the same.

    Two states are not separated if the label counts of a path between them are a rational combination
    of label counts of cycles. Then transitions from both with the same letter have the same label. The
    first procedure computes potentials of states instead.
    """
    rows: list[list[int]] = [[] for _ in seen]
    for state, _, target in edges:
        rows[state].append(target)
    for part in components(rows):
        inside = set(part)
        inner = [edge for edge in edges if edge[0] in inside and edge[2] in inside]
        groups: dict[int, Hashable] = {state: seen[state] for state in part}
        while len(set(groups.values())) < len(part):
            finer = _split(part, inner, groups)
            if len(set(finer.values())) == len(set(groups.values())):
                return False
            groups = finer
    return True


def _sum(*terms: tuple[Mapping[Hashable, int], int]) -> dict[Hashable, int]:
    total: dict[Hashable, int] = {}
    for vector, factor in terms:
        for place, value in vector.items():
            total[place] = (total.get(place, 0) + factor * value) % _PRIME
    return {place: value for place, value in total.items() if value}


def _split(
    part: Sequence[int], edges: Sequence[tuple[int, int, int]], groups: Mapping[int, Hashable]
) -> dict[int, Hashable]:
    counts: dict[int, dict[Hashable, int]] = {part[0]: {}}
    order = [part[0]]
    for state in order:  # label counts of a path of the tree; backwards, they are subtracted
        for source, letter, target in edges:
            label: dict[Hashable, int] = {(groups[source], letter): 1}
            if source == state and target not in counts:
                counts[target] = _sum((counts[state], 1), (label, 1))
                order.append(target)
            elif target == state and source not in counts:
                counts[source] = _sum((counts[state], 1), (label, -1))
                order.append(source)
    pivots: dict[Hashable, dict[Hashable, int]] = {}

    def reduce(vector: dict[Hashable, int]) -> dict[Hashable, int]:
        for place, pivot in pivots.items():
            if place in vector:
                vector = _sum((vector, 1), (pivot, -vector[place]))
        return vector

    for source, letter, target in edges:
        edge: dict[Hashable, int] = {(groups[source], letter): 1}
        left = reduce(_sum((counts[source], 1), (edge, 1), (counts[target], -1)))
        if left:
            lead, value = next(iter(left.items()))
            pivots[lead] = _sum((left, pow(value, -1, _PRIME)))
    return {state: (groups[state], frozenset(reduce(counts[state]).items())) for state in part}


def _with_positions(dfa: DFA, window: int, period: int) -> bool:
    """Whether counts separate the states, with earlier letters and positions modulo a period."""
    start = (0, "", 0)
    number, order, edges = {start: 0}, [start], []
    labels: dict[Hashable, int] = {}
    for state, seen, remainder in order:
        for i, letter in enumerate(dfa.alphabet):
            recent = (seen + letter)[-window:] if window else ""
            target = (dfa.transitions[state][i], recent, (remainder + 1) % period)
            if target not in number:
                number[target] = len(order)
                order.append(target)
            label = labels.setdefault((seen, remainder, letter), len(labels))
            edges.append((number[state, seen, remainder], label, number[target]))
    return _separated(edges, [each[1:] for each in order])


def _before(dfa: DFA, letter: int) -> frozenset[int]:
    """The states from which a letter leads to acceptance."""
    return frozenset(q for q, row in enumerate(dfa.transitions) if row[letter] in dfa.accepting)


def test_random_groups_are_solvable_unless_they_have_60_or_120_permutations() -> None:
    """Of the subgroups of the permutations of five points, only two are not solvable: A5 and S5."""
    rng = random.Random(37)
    answers = set()
    for _ in range(1000 if MANY else 12):
        letters = [rng.sample(range(5), 5), rng.sample(range(5), 5)]
        if MANY and rng.random() < 0.1:
            letters.append(rng.choices(range(5), k=5))
        rows = tuple(tuple(letter[q] for letter in letters) for q in range(5))
        dfa = DFA(tuple("abc"[: len(letters)]), rows, frozenset(rng.sample(range(5), 2))).minimal()
        permutations = {x for x in _Plain(dfa).semigroup if len(set(x)) == 5}
        assert classify(dfa).solvable == (len(permutations) not in (60, 120)), dfa
        answers.add(classify(dfa).solvable)
    assert answers == {True, False}


def test_random_languages_agree_with_second_decision_procedures() -> None:
    rng = random.Random(23)
    keys = ("finite", "star_free", "R", "R_infinity", "AC0", "C-RASP", "C-RASP_last")
    answers: dict[str, set[bool | None]] = {
        key: set() for key in (*keys, *IMPORTS, "regular_band", "stutter_invariant", "commutative")
    }
    levels = 0
    for _ in range(1000):
        dfa = random_dfa(rng, 4).minimal()
        verdicts, plain = classify(dfa), _Plain(dfa)
        assert len(verdicts.monoid) == len(plain.monoid)
        holds = {line.key: line.holds for line in verdicts.lines()}
        last = [DFA(dfa.alphabet, dfa.transitions, _before(dfa, i)).minimal() for i in (0, 1)]
        long_words = _long_words(dfa)
        second = {
            "finite": not any(long_words),
            "star_free": _is_counter_free(dfa),
            "R": plain.is_r_trivial(),
            "R_infinity": not plain.has_r_equivalent_idempotents(),
            "AC0": _has_no_modular_counter(dfa),
            "C-RASP": _with_positions(dfa, 0, 1),
            "C-RASP_last": all(_with_positions(each, 0, 1) for each in last),
        }
        assert {key: holds[key] for key in keys} == second, dfa
        assert plain.is_quasi_aperiodic() == second["AC0"]
        repeated = _changes_by_words(dfa, lambda w, i: [*w[: i + 1], *w[i:]])
        assert verdicts.stutter_invariant != repeated, dfa
        swapped = _changes_by_words(dfa, lambda w, i: [*w[:i], *w[i : i + 2][::-1], *w[i + 2 :]])
        assert verdicts.commutative != swapped, dfa
        assert verdicts.regular_band == plain.is_regular_band(), dfa
        for key in ("regular_band", "stutter_invariant", "commutative"):
            answers[key].add(getattr(verdicts, key))
        for name, (local, periodic) in IMPORTS.items():
            decision = verdicts.positions[name]
            # A "no" is for every window and period; a "yes" is for those of the program.
            window = decision.window if decision.holds else (2 if periodic else 3) * local
            period = decision.period if decision.holds else ((6 if local else 12) if periodic else 1)
            assert _with_positions(dfa, window, period) == decision.holds, (dfa, name)
            answers[name].add(decision.holds)
        for key in keys:
            answers[key].add(second[key])
        if verdicts.star_free:
            assert (verdicts.dot_depth == 0) == (len(set(long_words)) == 1), dfa
        if verdicts.star_free and len(plain.semigroup) <= 12:
            assert verdicts.until_rank_0 == plain.is_locally_l_trivial(), dfa
            assert (verdicts.dot_depth in (0, 1)) == plain.satisfies_knast(), dfa
            levels += 1
    assert set(map(frozenset, answers.values())) == {frozenset({True, False})}, answers
    assert levels


def test_large_monoids_have_verdicts_on_positions() -> None:
    """A part of the labels suffices for an obstruction, and a program is found without one."""
    for rows, accepting in (
        (((1, 2), (3, 1), (2, 4), (0, 1), (4, 3)), {0}),
        (((1, 2), (3, 3), (0, 1), (2, 4), (4, 2)), {1, 2}),
    ):
        automaton = DFA(("a", "b"), rows, frozenset(accepting)).minimal()
        verdicts = classify(automaton)
        for name, (local, periodic) in IMPORTS.items():
            assert verdicts.positions[name].holds is False
            assert verdicts.witnesses[name].check(automaton)
            assert not _with_positions(automaton, 2 * local, 6 if periodic else 1)
    longer = ((1, 2), (3, 4), (5, 6), (0, 6), (6, 3), (7, 6), (6, 6), (6, 8), (5, 2))
    automaton = DFA(("a", "b"), longer, frozenset({0, 7, 8}))
    decision = classify(automaton).positions["C-RASP[periodic, local]"]
    emitted = decision.program(automaton)
    assert emitted is not None
    assert agrees(automaton, emitted, 8)


def test_the_group_a5_is_classified_in_seconds() -> None:
    start = time.process_time()
    verdicts = classify("a5")
    assert {verdicts.positions[name].holds for name in IMPORTS} == {False}
    assert all(witness.check(verdicts.automaton) for witness in verdicts.witnesses.values())
    assert time.process_time() - start < 10
