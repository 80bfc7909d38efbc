"""Determine which attention models recognise a regular language, as one verdict per model.

Each :class:`Row` names a model by properties such as its attention, masks, positions and precision.
``derived`` marks a statement that does not follow from the cited papers alone
(docs/classification.md). The other statements are theorems of the cited papers, or explain why a
question is undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from locum.errors import LimitError
from locum.languages import b_rasp
from locum.languages.automata import DFA
from locum.languages.c_rasp_positions import Decision
from locum.languages.occurrences import unmasked_program
from locum.languages.recogniser import END, LAST, Recogniser
from locum.languages.star_free import ltl_of, past_ltl_of, past_program, without_next
from locum.languages.witnesses import Witness

STRICT = "unique hard attention, strict masks"
RIGHTMOST = "unique hard attention, strict future mask, rightmost ties"
LEFTMOST = "unique hard attention, strict future mask, leftmost ties, end marker"
NONSTRICT = "unique hard attention, non-strict masks"
UNMASKED = "unique hard attention, no masks"
ENCODER = "unique hard attention, position encodings"
FIXED = "softmax, strict future mask, fixed precision, end marker"
ROUNDED = "softmax, future mask, fixed precision outside of attention, end marker"
ROUNDED_LAST = "softmax, future mask, fixed precision outside of attention, last symbol"
IDEAL = "length generalisation, absolute positions"
AVERAGE = "average hard attention, position encodings"
LOGARITHMIC = "logarithmic precision"


@dataclass(frozen=True)
class Row:
    """A verdict on whether one attention model recognises a language."""

    model: str
    #: Whether the model has position encodings.
    positions: bool
    #: The class of regular languages that the model recognises, or bounds on this class.
    languages: str
    #: Whether the model recognises the language, or None if this is undecided. For length
    #: generalisation: whether a C-RASP program guarantees it.
    holds: bool | None
    #: The source of the theorem, the known partial results, or the reason why this is undecided.
    theorem: str
    witness: Witness | None = None
    #: A function that builds a program for the model, or None if Locum builds no such program.
    make: Callable[[], Recogniser | None] | None = None

    def program(self) -> Recogniser | None:
        """Return a program for the model, or None if Locum builds none or it would be too large.

        A symbol that the program does not support raises :class:`~locum.errors.InputError`, such as a
        quote, or the end marker "$" if the answer is read at an end marker.
        """
        try:
            return self.make() if self.holds and self.make is not None else None
        except LimitError:
            return None

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as a JSON-compatible dictionary."""
        return {
            "model": self.model,
            "positions": self.positions,
            "class": self.languages,
            "verdict": self.holds,
            "theorem": self.theorem,
            "witness": None if self.witness is None else self.witness.to_dict(),
        }


class Verdicts(Protocol):
    """The properties of a language from which :func:`rows` derives the verdicts.

    :class:`~locum.languages.classification.Classification` provides these properties.
    """

    @property
    def automaton(self) -> DFA:
        """The minimal automaton of the language."""

    @property
    def witnesses(self) -> Mapping[str, Witness]:
        """Maps the keys of negative verdicts to the witnesses that were found."""

    @property
    def positions(self) -> Mapping[str, Decision]:
        """The decision on each class of C-RASP programs with position predicates."""

    @property
    def star_free(self) -> bool:
        """Whether the language is star-free."""

    @property
    def stutter_invariant(self) -> bool:
        """Whether repeating a letter does not change membership."""

    @property
    def regular_band(self) -> bool | None:
        """Whether membership depends only on the orders in which letters first and last occur.

        The value is None if this is undecided.
        """

    @property
    def r(self) -> bool:
        """Whether the monoid of the language is R-trivial."""

    @property
    def ac0(self) -> bool:
        """Whether the language is in AC⁰."""

    @property
    def commutative(self) -> bool:
        """Whether membership does not depend on the order of the letters."""

    @property
    def c_rasp(self) -> bool:
        """Whether a C-RASP program without ``#import`` recognises the language.

        The answer of the program is read at an end marker.
        """

    @property
    def c_rasp_last(self) -> bool:
        """Whether a C-RASP program without ``#import`` recognises the non-empty words of the language.

        The answer of the program is read at the last symbol.
        """

    @property
    def solvable(self) -> bool:
        """Whether all groups in the monoid of the language are solvable."""

    def program(self, accept: str = END) -> Recogniser | None:
        """Return a C-RASP program without ``#import`` for the language, or None if there is none for
        this ``accept``.
        """


_TC0 = (
    "only if TC⁰ = NC¹, because the language is NC¹-complete (Barrington 1989) and the model is in TC⁰"
)


def rows(verdicts: Verdicts) -> Iterator[Row]:
    """Yield the verdict on a language for each attention model."""
    automaton, witnesses = verdicts.automaton, verdicts.witnesses

    def hard() -> Recogniser:
        return b_rasp.from_ltl(ltl_of(automaton), strict=True).recogniser()

    def rightmost() -> Recogniser:
        return b_rasp.from_ltl(past_ltl_of(automaton), strict=True).recogniser()

    def past() -> Recogniser:
        return past_program(automaton).recogniser(END)

    def nonstrict() -> Recogniser:
        return b_rasp.from_ltl(without_next(ltl_of(automaton))).recogniser()

    yield Row(
        STRICT,
        False,
        "star-free",
        verdicts.star_free,
        "Yang, Chiang & Angluin 2024",
        witnesses.get("star_free"),
        hard,
    )
    yield Row(
        RIGHTMOST,
        False,
        "star-free",
        verdicts.star_free,
        "Yang, Chiang & Angluin 2024; Jerad et al. 2025",
        witnesses.get("star_free"),
        rightmost,
    )
    yield Row(LEFTMOST, False, "R", verdicts.r, "Jerad et al. 2025", witnesses.get("R"), past)
    invariant = verdicts.star_free and verdicts.stutter_invariant
    yield Row(
        NONSTRICT,
        False,
        "star-free and stutter-invariant",
        invariant,
        "derived (docs/classification.md)",
        witnesses.get("star_free") or witnesses.get("stutter_invariant"),
        nonstrict,
    )
    orders = verdicts.regular_band
    yield Row(
        UNMASKED,
        False,
        "regular band",
        orders,
        "the alphabet is too large" if orders is None else "derived (docs/classification.md)",
        witnesses.get("regular_band"),
        lambda: unmasked_program(automaton).recogniser(),
    )
    yield Row(
        ENCODER,
        True,
        "AC⁰",
        verdicts.ac0,
        "Hao et al. 2022 and Barceló et al. 2024; decided by Barrington et al. 1992",
        witnesses.get("AC0"),
    )
    yield Row(FIXED, False, "R", verdicts.r, "Li & Cotterell 2025", witnesses.get("R"), past)
    yield Row(
        ROUNDED,
        False,
        "C-RASP",
        verdicts.c_rasp,
        "Yang, Cadilhac & Chiang 2025; decided by Yang, Veseli et al. 2026",
        witnesses.get("C-RASP"),
        verdicts.program,
    )
    yield Row(
        ROUNDED_LAST,
        False,
        "C-RASP, last symbol",
        verdicts.c_rasp_last,
        "Yang, Cadilhac & Chiang 2025; membership derived",
        witnesses.get("C-RASP_last"),
        lambda: verdicts.program(LAST),
    )
    name = "C-RASP[periodic, local]"
    decision = verdicts.positions[name]
    known = {
        True: "guaranteed for an idealised learner (Huang et al. 2025); membership derived",
        False: "no C-RASP program, for which Huang et al. 2025 give a guarantee; membership derived",
        None: decision.reason,
    }
    yield Row(
        IDEAL,
        True,
        name,
        decision.holds,
        known[decision.holds],
        witnesses.get(name),
        lambda: decision.program(automaton),
    )
    if verdicts.ac0:
        theorem = "every regular language in AC⁰ (Barceló et al. 2024)"
    elif verdicts.commutative:
        theorem = "LTL with counting defines it (derived); Barceló et al. 2024 for this logic"
    elif verdicts.solvable:
        theorem = "the known lower bound, LTL with counting, does not decide it (Barceló et al. 2024)"
    else:
        theorem = f"{_TC0} (Barceló et al. 2024)"
    known_average = True if verdicts.ac0 or verdicts.commutative else None
    yield Row(AVERAGE, True, "contains AC⁰ and commutative, in TC⁰", known_average, theorem)
    bound = (
        "in TC⁰ (Merrill & Sabharwal 2023), which does not exclude the language"
        if verdicts.solvable
        else f"{_TC0} (Merrill & Sabharwal 2023)"
    )
    yield Row(LOGARITHMIC, True, "in TC⁰", None, bound)
