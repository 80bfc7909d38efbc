"""Determine which attention models recognise a regular language, as one verdict per model.

Each :class:`Row` names a model by properties such as its attention, masks, positions and precision.
``derived`` marks a statement that does not follow from the cited papers alone
(docs/classification.md). The other statements are theorems of the cited papers, or explain why a
question is undecided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from locum.languages.c_rasp_positions import Decision
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


#: Models whose class is known: whether they have position encodings, the class, the verdicts that must
#: all be positive, and the source of the theorem.
_KNOWN = (
    (STRICT, False, "star-free", ("star_free",), "Yang, Chiang & Angluin 2024"),
    (
        RIGHTMOST,
        False,
        "star-free",
        ("star_free",),
        "Yang, Chiang & Angluin 2024; Jerad et al. 2025",
    ),
    (LEFTMOST, False, "R", ("R",), "Jerad et al. 2025"),
    (
        NONSTRICT,
        False,
        "star-free and stutter-invariant",
        ("star_free", "stutter_invariant"),
        "derived (docs/classification.md)",
    ),
    (UNMASKED, False, "regular band", ("regular_band",), "derived (docs/classification.md)"),
    (
        ENCODER,
        True,
        "AC⁰",
        ("AC0",),
        "Hao et al. 2022 and Barceló et al. 2024; decided by Barrington et al. 1992",
    ),
    (FIXED, False, "R", ("R",), "Li & Cotterell 2025"),
    (
        ROUNDED,
        False,
        "C-RASP",
        ("C-RASP",),
        "Yang, Cadilhac & Chiang 2025; decided by Yang, Veseli et al. 2026",
    ),
    (
        ROUNDED_LAST,
        False,
        "C-RASP, last symbol",
        ("C-RASP_last",),
        "Yang, Cadilhac & Chiang 2025; membership derived",
    ),
)
_TC0 = (
    "only if TC⁰ = NC¹, because the language is NC¹-complete (Barrington 1989) and the model is in TC⁰"
)


def rows(
    holds: Mapping[str, bool | None], witnesses: Mapping[str, Witness], ideal: Decision
) -> Iterator[Row]:
    """Yield the verdict on a language for each attention model.

    ``holds`` and ``witnesses`` contain the verdicts and the witnesses of
    :class:`~locum.languages.classification.Classification`. ``ideal`` is the decision on C-RASP with
    local and periodic predicates.
    """
    for model, positions, languages, keys, theorem in _KNOWN:
        verdicts = [holds[key] for key in keys]
        decided = None if None in verdicts else all(verdicts)
        witness = next((witnesses[key] for key in keys if key in witnesses), None)
        source = "the alphabet is too large" if decided is None else theorem
        yield Row(model, positions, languages, decided, source, witness)
    name = "C-RASP[periodic, local]"
    known = {
        True: "guaranteed for an idealised learner (Huang et al. 2025); membership derived",
        False: "no C-RASP program, for which Huang et al. 2025 give a guarantee; membership derived",
        None: ideal.reason,
    }
    yield Row(IDEAL, True, name, ideal.holds, known[ideal.holds], witnesses.get(name))
    if holds["AC0"]:
        theorem = "every regular language in AC⁰ (Barceló et al. 2024)"
    elif holds["commutative"]:
        theorem = "LTL with counting defines it (derived); Barceló et al. 2024 for this logic"
    elif holds["solvable"]:
        theorem = "the known lower bound, LTL with counting, does not decide it (Barceló et al. 2024)"
    else:
        theorem = f"{_TC0} (Barceló et al. 2024)"
    average = True if holds["AC0"] or holds["commutative"] else None
    yield Row(AVERAGE, True, "contains AC⁰ and commutative, in TC⁰", average, theorem)
    bound = (
        "in TC⁰ (Merrill & Sabharwal 2023), which does not exclude the language"
        if holds["solvable"]
        else f"{_TC0} (Merrill & Sabharwal 2023)"
    )
    yield Row(LOGARITHMIC, True, "in TC⁰", None, bound)
