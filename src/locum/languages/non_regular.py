"""Return verdicts on languages that need not be regular, from a program or from the literature.

>>> from locum.languages.language_catalogue import NAMED
>>> {verdict.key: verdict.holds for verdict in describe(NAMED["majority"])}["star_free"]
False
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from locum.errors import InputError
from locum.languages.counting import extensions_of
from locum.languages.language_catalogue import NamedLanguage
from locum.languages.named_languages import read
from locum.languages.recogniser import END, Recogniser

#: Classes with their descriptions, in the order of the table.
CLASSES = {
    "regular": "recognised by a finite automaton",
    "star_free": "star-free",
    "masked_UHAT": "unique hard attention with strict masks, without positions",
    "C-RASP": "C-RASP without position predicates, read at an end marker",
    "C-RASP_last": "C-RASP without position predicates, read at the last symbol",
    "C-RASP[periodic, local]": "C-RASP with position predicates",
    "softmax": "softmax transformers of fixed depth",
    "UHAT": "unique hard attention with positions",
    "AHAT": "average hard attention",
}


@dataclass(frozen=True)
class Verdict:
    """A verdict on whether a language is in a class; ``holds`` is None if this is undecided."""

    key: str
    holds: bool | None
    reason: str
    theorem: str = ""


def describe(named: NamedLanguage) -> list[Verdict]:
    """Return one verdict for each class on a named language that is not regular.

    A verdict that follows from the definition of the language replaces a published result on the same
    class.
    """
    if not named.witness:
        raise InputError(
            f"{named.name}: expected a language that is not regular, got a regular one; try classify"
        )
    published = (Verdict(key, holds, "stated in the paper", by) for key, holds, by in named.claims)
    program = read(named.name, "name").program if named.form else None
    decided = () if program is None else _of_program(program)
    return _complete((*published, *decided, *_of_witness(named.witness)))


def describe_program(program: Recogniser) -> list[Verdict]:
    """Return one verdict for each class on the language of a C-RASP program.

    The program proves membership in some of the classes, whether or not its language is regular. The
    other verdicts are undecided.
    """
    return _complete(_of_program(program))


def _complete(known: Iterable[Verdict]) -> list[Verdict]:
    """Return one verdict for each class; later verdicts replace earlier ones on the same class."""
    verdicts = {key: Verdict(key, None, "not decided") for key in CLASSES}
    verdicts |= {verdict.key: verdict for verdict in known}
    return list(verdicts.values())


def _of_witness(witness: str) -> Iterator[Verdict]:
    yield Verdict("regular", False, witness, "Myhill and Nerode")
    yield Verdict("star_free", False, "it is not regular", "Schützenberger 1965")
    yield Verdict("masked_UHAT", False, "it is not star-free", "Yang, Chiang & Angluin 2024")


def _of_program(program: Recogniser) -> Iterator[Verdict]:
    if not program.causal:
        yield Verdict("AHAT", True, "LTL with counting before and after", "Barceló et al. 2024")
        return
    if extensions_of(program.sop.node):
        yield Verdict("C-RASP[periodic, local]", True, "this program recognises the language")
        logic = "LTL with counting, predicates of one position, and earlier positions"
        yield Verdict("AHAT", True, logic, "Barceló et al. 2024")
        return
    source = "Yang & Chiang 2024"
    keys = ("C-RASP", "C-RASP_last") if program.accept == END else ("C-RASP_last",)
    for key in (*keys, "C-RASP[periodic, local]"):
        yield Verdict(key, True, "this program recognises the language")
    yield Verdict("softmax", True, "C-RASP programs become softmax decoders", source)
    yield Verdict(
        "AHAT", True, "counts and linear comparisons of counts are recognised", "Barceló et al. 2024"
    )
