"""Determine the classes of a regular language, and the attention models that recognise it.

Most negative verdicts have a witness. The verdicts are computed from the minimal automaton and its
syntactic monoid. C-RASP means programs without position predicates; C-RASP[local] and C-RASP[periodic]
mean programs with such predicates.

>>> verdicts = classify("(ab+ba)*")
>>> verdicts.star_free, verdicts.c_rasp, verdicts.r
(True, True, False)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from locum.errors import InputError, LimitError
from locum.languages.attention_models import Row, rows
from locum.languages.automata import DFA, components, show_word
from locum.languages.c_rasp_positions import Decision, decide
from locum.languages.c_rasp_programs import obstruct, program
from locum.languages.equivalence import regular_automaton
from locum.languages.language_catalogue import NAMED
from locum.languages.monoid import Group, Monoid
from locum.languages.named_languages import Source, as_language
from locum.languages.occurrences import Conflict, read_orders
from locum.languages.recogniser import END, LAST, Recogniser
from locum.languages.witnesses import Finder, Witness

#: Classes of C-RASP programs with position predicates: whether they use local and periodic ones.
IMPORTS = {
    "C-RASP[local]": (True, False),
    "C-RASP[periodic]": (False, True),
    "C-RASP[periodic, local]": (True, True),
}


@dataclass(frozen=True)
class Line:
    """A verdict with its key, its reason and its consequence as text."""

    key: str
    #: Whether the language is in the class, or None if this is undecided.
    holds: bool | None
    reason: str
    consequence: str


@dataclass(frozen=True)
class Classification:
    """The verdicts on a regular language, computed on demand."""

    #: The minimal automaton.
    automaton: DFA

    @cached_property
    def monoid(self) -> Monoid:
        """The syntactic monoid; :class:`~locum.errors.LimitError` is raised if it is too large."""
        return Monoid(self.automaton)

    @cached_property
    def finite(self) -> bool:
        """Whether the language contains only finitely many words."""
        return self.automaton.is_finite

    @cached_property
    def star_free(self) -> bool:
        """Whether the language is star-free, that is, whether B-RASP and LTL define it."""
        return self.monoid.is_aperiodic

    @cached_property
    def c_rasp(self) -> bool:
        """Whether a C-RASP program without position predicates recognises the language.

        The answer of the program is read at an end marker.
        """
        return obstruct(self.automaton, END) is None

    @cached_property
    def c_rasp_last(self) -> bool:
        """Whether a C-RASP program without position predicates recognises the language.

        The answer of the program is read at the last symbol. The empty word contains no last symbol, so
        its membership is ignored.
        """
        return self.c_rasp or obstruct(self.automaton, LAST) is None

    @cached_property
    def positions(self) -> dict[str, Decision]:
        """For each class with position predicates, the decision on whether it contains the language.

        The answers of the programs are read at an end marker.
        """
        decisions = {}
        for name, (local, periodic) in IMPORTS.items():
            decisions[name] = decide(self.automaton, self.monoid, local=local, periodic=periodic)
        return decisions

    @cached_property
    def ac0(self) -> bool:
        """Whether the language is in AC⁰ (quasi-aperiodic).

        For each length, the elements that words of this length induce contain no non-trivial group.
        """
        return self.star_free or self.monoid.modular_element is None

    @cached_property
    def stutter_invariant(self) -> bool:
        """Whether reading a letter once or twice always leads to the same state."""
        return self._finder.stutter() is None

    @cached_property
    def commutative(self) -> bool:
        """Whether membership does not depend on the order of the letters."""
        rows = self.automaton.transitions
        letters = range(len(self.automaton.alphabet))
        return all(rows[row[a]][b] == rows[row[b]][a] for row in rows for a in letters for b in letters)

    @cached_property
    def regular_band(self) -> bool | None:
        """Whether membership depends only on the orders in which letters first and last occur.

        The syntactic monoid is then a regular band. The value is None if the search is too large.
        """
        try:
            return not isinstance(read_orders(self.automaton), Conflict)
        except LimitError:
            return None

    @cached_property
    def dot_depth(self) -> int | None:
        """The level in the dot-depth hierarchy: 0, 1, or 2 for level 2 and higher.

        Level 0 contains the finite languages and their complements. The value is None if the language
        is not star-free or if the search is too large.
        """
        if not self.star_free:
            return None
        if self._finder.both_infinite() is None:
            return 0
        try:
            return 1 if self.monoid.knast_failure is None else 2
        except LimitError:
            return None

    @cached_property
    def until_rank_0(self) -> bool | None:
        """Whether a formula of future operators without "until" defines the language; X and F are
        allowed.

        This holds if and only if eSe is L-trivial for every idempotent e of the syntactic semigroup S.
        The value is None if the language is not star-free or if the search is too large.
        """
        if not self.star_free:
            return None
        try:
            return self.monoid.left_equivalent_locals is None
        except LimitError:
            return None

    @cached_property
    def _finder(self) -> Finder:
        return Finder(self.automaton, self.monoid)

    @cached_property
    def witnesses(self) -> dict[str, Witness]:
        """Maps the keys of negative verdicts to their witnesses.

        Some negative verdicts have no witness, for example if the search for the witness is too large.
        """
        finder, found = self._finder, {}
        candidates = {
            "finite": finder.infinite,
            "star_free": finder.group,
            "AC0": finder.modular,
            "stutter_invariant": finder.stutter,
            "regular_band": finder.orders,
            "R_infinity": finder.idempotents,
            "dot_depth_0": finder.both_infinite,
        }
        if self.star_free:
            candidates |= {"dot_depth_1": finder.knast, "until_rank_0": finder.locals}
        for key, find in candidates.items():
            try:
                witness = find()
            except LimitError:
                continue
            if witness is not None:
                found[key] = witness
        for part in components(self.automaton.transitions):
            if len(part) > 1:
                found["R"] = finder.returns(part)
        if not self.solvable:
            found["solvable"] = finder.unsolvable(next(g for g in self.groups if not g.is_solvable))
        for key, accept in (("C-RASP", END), ("C-RASP_last", LAST)):
            obstruction = obstruct(self.automaton, accept)
            if obstruction is not None and (accept == END or not self.c_rasp):
                place, states = obstruction
                found[key] = finder.counts(
                    states, None if accept == END else self.automaton.alphabet[place]
                )
        for key, decision in self.positions.items():
            if decision.obstruction is not None:
                found[key] = finder.counts_with_positions(decision.obstruction)
        return found

    @cached_property
    def models(self) -> list[Row]:
        """The verdict on each attention model."""
        holds = {
            "star_free": self.star_free,
            "R": self.r,
            "stutter_invariant": self.stutter_invariant,
            "regular_band": self.regular_band,
            "AC0": self.ac0,
            "C-RASP": self.c_rasp,
            "C-RASP_last": self.c_rasp_last,
            "commutative": self.commutative,
            "solvable": self.solvable,
        }
        return list(rows(holds, self.witnesses, self.positions["C-RASP[periodic, local]"]))

    @cached_property
    def r(self) -> bool:
        """Whether the monoid is R-trivial: no cycle of the automaton contains two states."""
        return all(len(part) == 1 for part in components(self.automaton.transitions))

    @cached_property
    def r_infinity(self) -> bool:
        """Whether no two idempotents of the monoid are R-equivalent."""
        return self.monoid.r_equivalent_idempotents is None

    @cached_property
    def groups(self) -> list[Group]:
        """Maximal non-trivial groups, one for each set of permuted states, the largest first."""
        groups = [] if self.star_free else self.monoid.groups()
        return sorted(groups, key=lambda group: -group.order)

    @cached_property
    def solvable(self) -> bool:
        """Whether all groups in the monoid are solvable."""
        return all(group.is_solvable for group in self.groups)

    def program(self, accept: str = END) -> Recogniser | None:
        """Return a C-RASP program without position predicates for the language, or None if there is
        none for this ``accept``.
        """
        return program(self.automaton, accept)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdicts and their evidence as a JSON-compatible dictionary."""
        verdicts: dict[str, Any] = {line.key: line.holds for line in self.lines()}
        group = None
        if self.groups:
            largest = self.groups[0]
            group = {
                "order": largest.order,
                "states": list(largest.states),
                "word": list(largest.word),
                "abelian": largest.is_abelian,
                "solvable": largest.is_solvable,
            }
        return verdicts | {
            "stutter_invariant": self.stutter_invariant,
            "commutative": self.commutative,
            "regular_band": self.regular_band,
            "dot_depth": self.dot_depth,
            "until_rank_0": self.until_rank_0,
            "witnesses": {key: witness.to_dict() for key, witness in self.witnesses.items()},
            "models": [row.to_dict() for row in self.models],
            "alphabet": list(self.automaton.alphabet),
            "states": len(self.automaton),
            "monoid": len(self.monoid),
            "group": group,
        }

    def lines(self) -> list[Line]:
        """Return the verdicts on the main classes, with their reasons and consequences as text."""
        return [
            self._finite(),
            self._star_free(),
            self._c_rasp(),
            self._c_rasp_last(),
            *(self._position_line(name) for name in IMPORTS),
            Line(
                "R",
                self.r,
                f"the syntactic monoid is {'' if self.r else 'not '}R-trivial",
                "the automaton never returns to a state that it has left; so in C-RASP"
                if self.r
                else "the automaton returns to states that it has left",
            ),
            self._r_infinity(),
            self._ac0(),
            self._solvable(),
        ]

    def _position_line(self, name: str) -> Line:
        decision = self.positions[name]
        if decision.holds is None:
            return Line(name, None, decision.reason, "")
        if decision.holds:
            facts = []
            if decision.window:
                plural = "s" if decision.window > 1 else ""
                facts.append(f"{decision.window} earlier letter{plural}")
            if decision.period > 1:
                facts.append(f"positions modulo {decision.period}")
            reason = f"a program that reads {' and '.join(facts) or 'no positions'}"
            return Line(name, True, reason, "read at an end marker")
        every = {
            (True, False): "for every number of earlier letters",
            (False, True): "for every period",
            (True, True): "for every number of earlier letters and every period",
        }
        return Line(name, False, str(self.witnesses[name]), every[IMPORTS[name]])

    def _ac0(self) -> Line:
        if self.ac0:
            reason = "no words of equal length generate a group (Barrington et al. 1992)"
            return Line(
                "AC0",
                True,
                reason,
                "unique hard attention with positions recognises it (Barceló et al. 2024)",
            )
        theorem = "no unique hard attention recognises it, with any positions (Hao et al. 2022)"
        return Line("AC0", False, str(self.witnesses["AC0"]), theorem)

    def _finite(self) -> Line:
        reason = "no cycle leads to acceptance" if self.finite else "a cycle leads to acceptance"
        return Line("finite", self.finite, reason, "in all classes below" if self.finite else "")

    def _star_free(self) -> Line:
        if self.star_free:
            return Line(
                "star_free",
                True,
                "the syntactic monoid is aperiodic (Schützenberger 1965)",
                "LTL and B-RASP define it: unique hard attention with strict masks "
                "(Yang, Chiang & Angluin 2024)",
            )
        group = self.groups[0]
        return Line(
            "star_free",
            False,
            f"a group of order {group.order}: {show_word(group.word)} permutes {_listed(group.states)}",
            "no B-RASP program: no masked unique hard attention without position encodings "
            "(Yang, Chiang & Angluin 2024)",
        )

    def _c_rasp(self) -> Line:
        if self.c_rasp:
            return Line(
                "C-RASP",
                True,
                "counts separate the states of each component",
                "softmax decoders recognise it (Yang & Chiang 2024)",
            )
        return Line(
            "C-RASP",
            False,
            str(self.witnesses["C-RASP"]),
            "no C-RASP program without position predicates, read at an end marker",
        )

    def _c_rasp_last(self) -> Line:
        same = (
            "as at an end marker" if self.c_rasp_last == self.c_rasp else "the last symbol is visible"
        )
        consequence = (
            "a C-RASP program read at the last symbol"
            if self.c_rasp_last
            else "no C-RASP program without position predicates, read at the last symbol"
        )
        return Line("C-RASP_last", self.c_rasp_last, same, consequence)

    def _r_infinity(self) -> Line:
        pair = self.monoid.r_equivalent_idempotents
        if pair is None:
            reason = "no two idempotents are R-equivalent"
        else:
            words = " and ".join(show_word(self.monoid.word(number)) for number in pair)
            reason = f"{words} are R-equivalent idempotents"
        inside = "C-RASP is a subclass" if pair is None else "so not in C-RASP, which is a subclass"
        return Line("R_infinity", pair is None, reason, inside)

    def _solvable(self) -> Line:
        if self.star_free:
            reason, where = "there are no groups", "in AC⁰"
        elif self.solvable:
            reason = "all groups are solvable"
            where = "in ACC⁰ (Barrington & Thérien 1988)"
        else:
            group = next(group for group in self.groups if not group.is_solvable)
            reason = f"a group of order {group.order} is not"
            where = (
                "NC¹-complete (Barrington 1989): transformers of fixed depth and logarithmic "
                "precision, which are in TC⁰ (Merrill & Sabharwal 2023), recognise it only if TC⁰ = NC¹"
            )
        return Line("solvable", self.solvable, reason, where)


def _listed(states: Sequence[int]) -> str:
    """Format a list of states; more than twelve states are replaced by their number."""
    if len(states) > 12:
        return f"{len(states)} states"
    return f"the states {', '.join(map(str, states))}"


def classify(language: Source) -> Classification:
    """Classify a language, which is given as text, a file, an automaton, a formula or a program.

    A C-RASP program must define a regular language, and Locum must find a proof of this within a few
    seconds. Otherwise :class:`~locum.errors.LimitError` is raised. For the proof, the solver z3 may be
    required, which the extra ``solve`` installs.

    >>> verdict = classify("(ab)*")
    >>> verdict.star_free, verdict.finite
    (True, False)
    """
    read = as_language(language)
    if read.name and NAMED[read.name].witness:
        raise InputError(f"expected a regular language, got {read.name}, which is not regular")
    definition = read.definition
    automaton = definition if isinstance(definition, DFA) else regular_automaton(definition)
    if automaton is None:
        raise LimitError(
            "expected a regular language, got a C-RASP program; it is undecided whether this program "
            "defines a regular language"
        )
    return Classification(automaton)
