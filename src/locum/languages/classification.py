"""Classify a regular language: finite, star-free, in C-RASP, in R, in R∞, solvable.

Every verdict is computed from the minimal automaton and its syntactic monoid. C-RASP means programs
without position predicates: programs with ``#import periodic`` or ``#import local`` recognise more.

>>> verdicts = classify("(ab+ba)*")
>>> verdicts.star_free, verdicts.c_rasp, verdicts.r
(True, True, False)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from locum.errors import LimitError
from locum.languages.automata import DFA, components, show_word
from locum.languages.c_rasp_programs import in_c_rasp, program
from locum.languages.equivalence import regular_automaton
from locum.languages.monoid import Group, Monoid
from locum.languages.named_languages import Source, as_language
from locum.languages.recogniser import END, LAST, Recogniser


@dataclass(frozen=True)
class Line:
    """One verdict in words: its key, whether it holds, why, and what follows by which theorem."""

    key: str
    holds: bool
    reason: str
    consequence: str


@dataclass(frozen=True)
class Classification:
    """The verdicts on a regular language; each is computed when it is asked for."""

    #: The minimal automaton.
    automaton: DFA

    @cached_property
    def monoid(self) -> Monoid:
        """The syntactic monoid, or a :class:`~locum.errors.LimitError`."""
        return Monoid(self.automaton)

    @cached_property
    def finite(self) -> bool:
        """Whether the language has finitely many words."""
        return self.automaton.is_finite

    @cached_property
    def star_free(self) -> bool:
        """Whether it is star-free: whether B-RASP and LTL define it."""
        return self.monoid.is_aperiodic

    @cached_property
    def c_rasp(self) -> bool:
        """Whether a C-RASP program without ``#import`` recognises it, read at an end marker."""
        return in_c_rasp(self.automaton, END)

    @cached_property
    def c_rasp_last(self) -> bool:
        """Whether a C-RASP program without ``#import`` recognises it, read at the last symbol.

        The empty word has no last symbol and is not compared.
        """
        return self.c_rasp or in_c_rasp(self.automaton, LAST)

    @cached_property
    def r(self) -> bool:
        """Whether its monoid is R-trivial: no cycle of the automaton passes two states."""
        return all(len(part) == 1 for part in components(self.automaton.transitions))

    @cached_property
    def r_infinity(self) -> bool:
        """Whether no two idempotents of its monoid are R-equivalent."""
        return self.monoid.r_equivalent_idempotents is None

    @cached_property
    def groups(self) -> list[Group]:
        """The groups in its monoid, the largest first."""
        groups = [] if self.star_free else self.monoid.groups()
        return sorted(groups, key=lambda group: -group.order)

    @cached_property
    def solvable(self) -> bool:
        """Whether all groups in its monoid are solvable."""
        return all(group.is_solvable for group in self.groups)

    def program(self, accept: str = END) -> Recogniser | None:
        """Return a C-RASP program for it, or None if there is none with that convention."""
        return program(self.automaton, accept)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdicts by their published names, and what they rest on."""
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
            "alphabet": list(self.automaton.alphabet),
            "states": len(self.automaton),
            "monoid": len(self.monoid),
            "group": group,
        }

    def lines(self) -> list[Line]:
        """Return every verdict with its reason and its consequence."""
        return [
            self._finite(),
            self._star_free(),
            self._c_rasp(),
            self._c_rasp_last(),
            Line(
                "R",
                self.r,
                f"the syntactic monoid is {'' if self.r else 'not '}R-trivial",
                "the automaton never returns to a state that it has left; so in C-RASP"
                if self.r
                else "the automaton returns to states that it has left",
            ),
            self._r_infinity(),
            self._solvable(),
        ]

    def _finite(self) -> Line:
        reason = "no cycle leads to acceptance" if self.finite else "a cycle leads to acceptance"
        return Line("finite", self.finite, reason, "in all classes below" if self.finite else "")

    def _star_free(self) -> Line:
        if self.star_free:
            return Line(
                "star_free",
                True,
                "the syntactic monoid is aperiodic (Schützenberger 1965)",
                "LTL and B-RASP define it: masked unique hard attention (Yang, Chiang & Angluin 2024)",
            )
        group = self.groups[0]
        return Line(
            "star_free",
            False,
            f"a group of order {group.order}: {show_word(group.word)} permutes the states "
            f"{', '.join(map(str, group.states))}",
            "no B-RASP program: no masked unique hard attention without position encodings "
            "(Yang, Chiang & Angluin 2024)",
        )

    def _c_rasp(self) -> Line:
        if self.c_rasp:
            return Line(
                "C-RASP",
                True,
                "counts tell the states of each component apart",
                "softmax decoders recognise it (Yang & Chiang 2024)",
            )
        return Line(
            "C-RASP",
            False,
            "no counts tell all states of a component apart",
            "no C-RASP program read at an end marker; programs with #import are not considered",
        )

    def _c_rasp_last(self) -> Line:
        same = "as at an end marker" if self.c_rasp_last == self.c_rasp else "the last symbol is seen"
        consequence = (
            "a C-RASP program read at the last symbol"
            if self.c_rasp_last
            else "no C-RASP program read at the last symbol; programs with #import are not considered"
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
            where = "in ACC⁰ (Barrington & Thérien 1988); membership in AC⁰ is not decided"
        else:
            group = next(group for group in self.groups if not group.is_solvable)
            reason = f"a group of order {group.order} is not"
            where = (
                "NC¹-complete (Barrington 1989): transformers of fixed depth and logarithmic "
                "precision, which are in TC⁰ (Merrill & Sabharwal 2023), recognise it only if TC⁰ = NC¹"
            )
        return Line("solvable", self.solvable, reason, where)


def classify(language: Source) -> Classification:
    """Return the verdicts on a language: text, a file, an automaton, a formula or a program.

    A C-RASP program has to define a regular language, and that has to be proven in a few seconds.

    >>> verdict = classify("(ab)*")
    >>> verdict.star_free, verdict.finite
    (True, False)
    """
    read = as_language(language)
    automaton = read.automaton
    if automaton is None:
        assert read.program is not None
        automaton = regular_automaton(read.program)
    if automaton is None:
        raise LimitError(
            "this C-RASP program could not be shown to define a regular language, which the verdicts "
            "are about; whether it does is not decided"
        )
    return Classification(automaton)
