"""Determine which attention models recognise a regular language, as one verdict per model.

Each :class:`Row` names a model by properties such as its attention, masks, positions and precision.
``derived`` marks a statement that does not follow from the cited papers alone
(docs/classification.md). The other statements are theorems of the cited papers, or explain why a
question is undecided.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from locum.languages.witnesses import Witness

if TYPE_CHECKING:
    from locum.languages.classification import Classification

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


_TC0 = (
    "only if TC⁰ = NC¹, because the language is NC¹-complete (Barrington 1989) and the model is in TC⁰"
)


def rows(verdicts: Classification) -> Iterator[Row]:
    """Yield the verdict on a language for each attention model."""
    witnesses = verdicts.witnesses
    yield Row(
        STRICT,
        False,
        "star-free",
        verdicts.star_free,
        "Yang, Chiang & Angluin 2024",
        witnesses.get("star_free"),
    )
    yield Row(
        RIGHTMOST,
        False,
        "star-free",
        verdicts.star_free,
        "Yang, Chiang & Angluin 2024; Jerad et al. 2025",
        witnesses.get("star_free"),
    )
    yield Row(LEFTMOST, False, "R", verdicts.r, "Jerad et al. 2025", witnesses.get("R"))
    yield Row(
        NONSTRICT,
        False,
        "star-free and stutter-invariant",
        verdicts.star_free and verdicts.stutter_invariant,
        "derived (docs/classification.md)",
        witnesses.get("star_free") or witnesses.get("stutter_invariant"),
    )
    orders = verdicts.regular_band
    yield Row(
        UNMASKED,
        False,
        "regular band",
        orders,
        "the alphabet is too large" if orders is None else "derived (docs/classification.md)",
        witnesses.get("regular_band"),
    )
    yield Row(
        ENCODER,
        True,
        "AC⁰",
        verdicts.ac0,
        "Hao et al. 2022 and Barceló et al. 2024; decided by Barrington et al. 1992",
        witnesses.get("AC0"),
    )
    yield Row(FIXED, False, "R", verdicts.r, "Li & Cotterell 2025", witnesses.get("R"))
    yield Row(
        ROUNDED,
        False,
        "C-RASP",
        verdicts.c_rasp,
        "Yang, Cadilhac & Chiang 2025; decided by Yang, Veseli et al. 2026",
        witnesses.get("C-RASP"),
    )
    yield Row(
        ROUNDED_LAST,
        False,
        "C-RASP, last symbol",
        verdicts.c_rasp_last,
        "Yang, Cadilhac & Chiang 2025; membership derived",
        witnesses.get("C-RASP_last"),
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
