"""Find and check witnesses of negative verdicts: words that can be run on the automaton.

A :class:`Witness` contains named words, and the property that they satisfy. :meth:`Witness.check` runs
the words on an automaton without computing the monoid.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from locum.languages.automata import DFA, Letter, show_word
from locum.languages.c_rasp_positions import PositionObstruction
from locum.languages.c_rasp_programs import before_last
from locum.languages.monoid import Group, Monoid
from locum.languages.occurrences import Conflict, orders_of, read_orders
from locum.languages.potentials import Obstruction

Words = Mapping[str, tuple[Letter, ...]]


@dataclass(frozen=True)
class Witness:
    """Words that prove that a language is not in a class."""

    #: The property, a key of :data:`PROPERTIES`.
    kind: str
    words: Words

    def check(self, automaton: DFA) -> bool:
        """Run the words on a minimal automaton, and return whether they have the property.

        For the kind "counts", this returns whether the detour changes membership. The decision that no
        counts detect the detour is not repeated.
        """
        return PROPERTIES[self.kind][1](_Run(automaton), self.words)

    def to_dict(self) -> dict[str, Any]:
        """Return the witness as a JSON-compatible dictionary."""
        words = {name: list(word) for name, word in self.words.items()}
        return {"kind": self.kind, "property": str(self), "words": words}

    def __str__(self) -> str:
        words = {name: show_word(word) for name, word in self.words.items()}
        generators = [word for name, word in words.items() if name.startswith("generator")]
        return PROPERTIES[self.kind][0].format(generators=" and ".join(generators), **words)


class _Run:
    """An automaton with methods that run words on it."""

    def __init__(self, automaton: DFA) -> None:
        self.automaton = automaton
        self._place = {letter: i for i, letter in enumerate(automaton.alphabet)}
        self.states = range(len(automaton))

    def __call__(self, state: int, *words: Sequence[Letter]) -> int:
        for word in words:
            for letter in word:
                state = self.automaton.transitions[state][self._place[letter]]
        return state

    def map(self, *words: Sequence[Letter]) -> tuple[int, ...]:
        """Return, for each state, the state to which the words lead."""
        return tuple(self(state, *words) for state in self.states)

    def omega(self, *words: Sequence[Letter]) -> tuple[Letter, ...]:
        """Return a power of the concatenated words that acts on states as an idempotent."""
        once = tuple(letter for word in words for letter in word)
        power = once
        while self.map(power) != self.map(power, power):
            power += once
        return power

    def cycle(self, state: int, word: Sequence[Letter]) -> list[int]:
        """Return the states that repetitions of a word visit from ``state`` back to ``state``.

        The result is [] if the repetitions never return to ``state``.
        """
        states = [state]
        while (state := self(state, word)) not in states:
            states.append(state)
        return states if state == states[0] else []

    def accepts(self, state: int, *words: Sequence[Letter]) -> bool:
        """Return whether the words lead from ``state`` to an accepting state."""
        return self(state, *words) in self.automaton.accepting


def _check_loop(run: _Run, words: Words) -> bool:
    state = run(0, words["prefix"])
    return (
        bool(words["loop"])
        and run(state, words["loop"]) == state
        and run.accepts(state, words["suffix"])
    )


def _check_both_loops(run: _Run, words: Words) -> bool:
    first = {name: words[name] for name in ("prefix", "loop", "suffix")}
    state = run(0, words["prefix_2"])
    return (
        _check_loop(run, first)
        and bool(words["loop_2"])
        and run(state, words["loop_2"]) == state
        and not run.accepts(state, words["suffix_2"])
    )


def _check_group(run: _Run, words: Words) -> bool:
    return len(run.cycle(run(0, words["prefix"]), words["loop"])) > 1


def _check_modular(run: _Run, words: Words) -> bool:
    states = run.cycle(run(0, words["prefix"]), words["loop"])
    fixed = all(run(state, words["stay"]) == state for state in states)
    return len(states) > 1 and len(words["loop"]) == len(words["stay"]) and fixed


def _check_return(run: _Run, words: Words) -> bool:
    state = run(0, words["prefix"])
    there = run(state, words["there"])
    return there != state and run(there, words["back"]) == state


def _check_stutter(run: _Run, words: Words) -> bool:
    state = run(0, words["prefix"])
    return len(words["letter"]) == 1 and run(state, words["letter"]) != run(state, 2 * words["letter"])


def _check_orders(run: _Run, words: Words) -> bool:
    accepted, rejected = words["accepted"], words["rejected"]
    same = orders_of(accepted) == orders_of(rejected)
    return same and run.accepts(0, accepted) and not run.accepts(0, rejected)


def _check_idempotents(run: _Run, words: Words) -> bool:
    e, f = words["e"], words["f"]
    one, other = run.map(e), run.map(f)
    return (
        one != other
        and run.map(e, e) == one
        and run.map(f, f) == other
        and (run.map(e, f), run.map(f, e)) == (other, one)
    )


def _check_locals(run: _Run, words: Words) -> bool:
    e, x, y, s, t = (words[name] for name in "exyst")
    if not e or run.map(e, e) != run.map(e):
        return False
    one, other = run.map(e, x, e), run.map(e, y, e)
    return one != other and run.map(e, s, e, x, e) == other and run.map(e, t, e, y, e) == one


def _check_knast(run: _Run, words: Words) -> bool:
    e, f, x, y, u, v = (words[name] for name in "efxyuv")
    if any(not word or run.map(word, word) != run.map(word) for word in (e, f)):
        return False
    before, after = run.omega(e, x, f, y), run.omega(e, u, f, v)
    return run.map(before, e, x, f, v, after) != run.map(before, after)


def _check_unsolvable(run: _Run, words: Words) -> bool:
    """Return whether the generators permute the states that they reach, and generate a
    perfect group.
    """
    images = [run.map(word) for name, word in words.items() if name != "prefix"]
    orbit = [run(0, words["prefix"])]
    for state in orbit:
        orbit += dict.fromkeys(each[state] for each in images if each[state] not in orbit)
    place = {state: i for i, state in enumerate(orbit)}
    rows = frozenset(tuple(place[each[state]] for state in orbit) for each in images)
    if any(len(set(row)) < len(orbit) for row in rows):
        return False
    return Group(tuple(range(len(orbit))), rows, ()).generates_its_commutators()


def _check_counts(run: _Run, words: Words) -> bool:
    prefix, detour, end = words["prefix"], words["detour"], (*words["suffix"], *words.get("last", ()))
    return run.accepts(0, prefix, end) != run.accepts(0, prefix, detour, end)


_MODULAR = (
    "after {prefix}, {loop} leads through a cycle of states, and {stay} of the same length leaves each"
    " in place"
)
_ORDERS = (
    "{accepted} is accepted and {rejected} is rejected, but letters first occur and last occur in the"
    " same orders"
)
_LOCALS = (
    "e = {e} is idempotent, and x = {x}, y = {y}, s = {s}, t = {t} have"
    " exe ≠ eye, esexe = eye and eteye = exe"
)
_KNAST = (
    "e = {e}, f = {f}, x = {x}, y = {y}, u = {u}, v = {v} violate"
    " (exfy)^ω exfv (eufv)^ω = (exfy)^ω (eufv)^ω"
)
PROPERTIES: Mapping[str, tuple[str, Callable[[_Run, Words], bool]]] = {
    "loop": ("{prefix}({loop})*{suffix} is accepted", _check_loop),
    "loops": (
        "{prefix}({loop})*{suffix} is accepted and {prefix_2}({loop_2})*{suffix_2} is rejected",
        _check_both_loops,
    ),
    "group": ("after {prefix}, {loop} leads through a cycle of states", _check_group),
    "modular": (_MODULAR, _check_modular),
    "return": ("after {prefix}, {there} leads to another state and {back} back", _check_return),
    "stutter": (
        "after {prefix}, {letter} and {letter}{letter} lead to different states",
        _check_stutter,
    ),
    "orders": (_ORDERS, _check_orders),
    "idempotents": ("{e} and {f} are R-equivalent idempotents", _check_idempotents),
    "locals": (_LOCALS, _check_locals),
    "knast": (_KNAST, _check_knast),
    "unsolvable": ("after {prefix}, {generators} generate a perfect group", _check_unsolvable),
    "counts": ("after {prefix} and suitable cycles, no counts detect {detour}", _check_counts),
}


class Finder:
    """A search for witnesses on a minimal automaton and its syntactic monoid."""

    def __init__(self, automaton: DFA, monoid: Monoid) -> None:
        self.automaton, self.monoid = automaton, monoid
        self._run = _Run(automaton)

    def _word(
        self, wanted: Callable[[int], bool], start: int = 0, *, least: int = 0
    ) -> tuple[Letter, ...]:
        """Return a shortest word of at least ``least`` letters from ``start`` to a ``wanted`` state.

        ``least`` is 0 or 1.
        """
        queue: deque[tuple[int, tuple[Letter, ...]]] = deque([(start, ())])
        seen = set()
        while queue:
            state, word = queue.popleft()
            if len(word) >= least and wanted(state):
                return word
            for letter in self.automaton.alphabet:
                target = self._run(state, (letter,))
                if (target, len(word) + 1 >= least) not in seen:
                    seen.add((target, len(word) + 1 >= least))
                    queue.append((target, (*word, letter)))
        raise AssertionError("no such word")

    def prefix(self, state: int, remainder: int = 0, period: int = 1) -> tuple[Letter, ...]:
        """Return a shortest word to ``state`` whose length is ``remainder`` modulo ``period``."""
        queue: deque[tuple[int, tuple[Letter, ...]]] = deque([(0, ())])
        seen = {(0, 0)}
        while True:
            reached, word = queue.popleft()
            if reached == state and len(word) % period == remainder:
                return word
            for letter in self.automaton.alphabet:
                key = self._run(reached, (letter,)), (len(word) + 1) % period
                if key not in seen:
                    seen.add(key)
                    queue.append((key[0], (*word, letter)))

    def _loop(self, accepted: bool, suffix: str = "") -> dict[str, tuple[Letter, ...]] | None:
        accepting = self.automaton.accepting

        def reaches(
            start: int, wanted: Callable[[int], bool], least: int = 0
        ) -> tuple[Letter, ...] | None:
            try:
                return self._word(wanted, start, least=least)
            except AssertionError:
                return None

        for state in self._run.states:
            loop = reaches(state, state.__eq__, 1)
            end = reaches(state, lambda each: (each in accepting) == accepted)
            if loop is not None and end is not None:
                names = (f"prefix{suffix}", f"loop{suffix}", f"suffix{suffix}")
                return dict(zip(names, (self.prefix(state), loop, end), strict=True))
        return None

    def infinite(self) -> Witness | None:
        """Return a loop on a path to acceptance, or None if there is none."""
        loop = self._loop(True)
        return None if loop is None else Witness("loop", loop)

    def both_infinite(self) -> Witness | None:
        """Return a loop on a path to acceptance and a loop on a path to rejection, or None."""
        one, other = self._loop(True), self._loop(False, "_2")
        return None if one is None or other is None else Witness("loops", one | other)

    def group(self) -> Witness | None:
        """Return a word that leads through a cycle of at least two states, or None."""
        for number in range(len(self.monoid)):
            for state in self._run.states:
                word = self.monoid.word(number)
                if len(self._run.cycle(state, word)) > 1:
                    return Witness("group", {"prefix": self.prefix(state), "loop": word})
        return None

    def modular(self) -> Witness | None:
        """Return two words of equal length, or None.

        One word leads through a cycle of states, and the other word fixes these states.
        """
        number = self.monoid.modular_element
        if number is None:
            return None
        index = self.monoid.lengths[1]
        word = self.monoid.word_of_length(number, index)
        power = self.monoid.idempotent_power(number)
        stay = self.monoid.word_of_length(power, index)
        state = next(q for q in self._run.states if len(self._run.cycle(q, word)) > 1)
        return Witness("modular", {"prefix": self.prefix(state), "loop": word, "stay": stay})

    def returns(self, part: Sequence[int]) -> Witness:
        """Return words that lead from one state of a component to another state and back."""
        one, other = part[:2]
        there = self._word(lambda each: each == other, one)
        back = self._word(lambda each: each == one, other)
        return Witness("return", {"prefix": self.prefix(one), "there": there, "back": back})

    def stutter(self) -> Witness | None:
        """Return a prefix and a letter a such that a and aa lead to different states after the prefix.

        Return None if no such letter exists.
        """
        for state in self._run.states:
            for letter in self.automaton.alphabet:
                words = {"prefix": self.prefix(state), "letter": (letter,)}
                if _check_stutter(self._run, words):
                    return Witness("stutter", words)
        return None

    def orders(self) -> Witness | None:
        """Return an accepted and a rejected word with equal orders of first and of last occurrences.

        The result is None if membership depends only on these orders.
        """
        found = read_orders(self.automaton)
        if not isinstance(found, Conflict):
            return None
        states = self._run(0, found.one), self._run(0, found.other)
        suffix = self.distinguish(*states)
        accepted, rejected = (*found.one, *suffix), (*found.other, *suffix)
        if not self._run.accepts(0, accepted):
            accepted, rejected = rejected, accepted
        return Witness("orders", {"accepted": accepted, "rejected": rejected})

    def idempotents(self) -> Witness | None:
        """Return words that induce two R-equivalent idempotents, or None."""
        pair = self.monoid.r_equivalent_idempotents
        return None if pair is None else Witness("idempotents", self._named("ef", pair))

    def locals(self) -> Witness | None:
        """Return words that induce two L-equivalent elements of some eSe, or None."""
        found = self.monoid.left_equivalent_locals
        if found is None:
            return None
        idempotent, one, other = found
        local = self.monoid.local_elements(idempotent)
        there = next(s for s in local if self.monoid.multiply(s, one) == other)
        back = next(s for s in local if self.monoid.multiply(s, other) == one)
        return Witness("locals", self._named("exyst", (idempotent, one, other, there, back)))

    def knast(self) -> Witness | None:
        """Return words that violate Knast's equation of dot-depth one, or None."""
        found = self.monoid.knast_failure
        return None if found is None else Witness("knast", self._named("efxyuv", found))

    def unsolvable(self, group: Group) -> Witness:
        """Return words that generate a perfect group."""
        generators = group.perfect_generators()
        elements = self.monoid.elements
        state = next(q for q in group.states if any(elements[n][q] != q for n in generators))
        words = {f"generator_{i}": self.monoid.word(n) for i, n in enumerate(generators, 1)}
        return Witness("unsolvable", {"prefix": self.prefix(state)} | words)

    def counts(self, found: Obstruction, last: Letter | None = None) -> Witness:
        """Return words that lead to two states that no counts separate, and a word that distinguishes
        them.

        With a ``last`` letter, the states belong to the automaton of the words to which this letter is
        appended.
        """
        finder = self
        if last is not None:
            before = before_last(self.automaton)[self.automaton.alphabet.index(last)]
            finder = Finder(before, self.monoid)
        words = {
            "prefix": finder.prefix(found.states[0]),
            "detour": tuple(finder.automaton.alphabet[label] for label in found.path),
            "suffix": finder.distinguish(*found.states),
        }
        return Witness("counts", words | ({} if last is None else {"last": (last,)}))

    def counts_with_positions(self, found: PositionObstruction) -> Witness:
        """Return words that lead to two states that no counts separate, for any position predicates,
        and a word that distinguishes them.
        """
        words = {
            "prefix": self.prefix(found.states[0], found.remainder, found.period),
            "detour": found.detour,
            "suffix": self.distinguish(*found.states),
        }
        return Witness("counts", words)

    def distinguish(self, one: int, other: int) -> tuple[Letter, ...]:
        """Return a shortest word that leads to acceptance from exactly one of two states."""
        queue: deque[tuple[int, int, tuple[Letter, ...]]] = deque([(one, other, ())])
        seen = set()
        accepting = self.automaton.accepting
        while True:
            p, q, word = queue.popleft()
            if (p in accepting) != (q in accepting):
                return word
            for letter in self.automaton.alphabet:
                pair = self._run(p, (letter,)), self._run(q, (letter,))
                if pair not in seen:
                    seen.add(pair)
                    queue.append((*pair, (*word, letter)))

    def _named(self, names: str, numbers: Sequence[int]) -> dict[str, tuple[Letter, ...]]:
        words = map(self.monoid.word_of_semigroup_or_empty, numbers)
        return dict(zip(names, words, strict=True))
