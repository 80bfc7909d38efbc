"""Star-free languages as formulas: the same words, by plain evaluation, automata and B-RASP."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import settings

from locum.errors import InputError, LimitError
from locum.languages import b_rasp, regular
from locum.languages.automata import words
from locum.languages.classification import classify
from locum.languages.formulas import Formula, fold
from locum.languages.ltl import LTL
from locum.languages.star_free import ltl_of
from tests.old.languages.corpus import random_dfa


def _holds(ltl: LTL, word: Sequence[str]) -> bool:
    """Evaluate a formula about the future at all positions, from the end on."""
    size = len(word)

    def values(part: Formula, below: Sequence[list[bool]]) -> list[bool]:
        match part.op:
            case "true" | "false":
                return [part.op == "true"] * size
            case "atom":
                return [letter == part.name for letter in word]
            case "not":
                return [not value for value in below[0]]
            case "and" | "or":
                both = all if part.op == "and" else any
                return [both(pair) for pair in zip(*below, strict=True)]
            case "next":
                return [*below[0][1:], False]
            case _:
                result, later = [False] * size, False
                for i in reversed(range(size)):
                    later = below[1][i] or (below[0][i] and later)
                    result[i] = later
                return result

    return fold(ltl.formula, values)[0]


EXPRESSIONS = [
    "~∅ a ~∅",
    "~(~∅ a a ~∅)",
    "~(~∅ b) & ~(~∅ (aa+bb) ~∅)",
    "a ~∅ b",
    "~(~∅ ba ~∅)",
    "∅+aab",
    "(ab)*",
    "(a+b)*bb(a+b)*",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_become_formulas(text: str) -> None:
    read = regular.read(text, "ab")
    automaton = read.automaton()
    formula = ltl_of(automaton)
    for word in words("ab", 7):
        if word:
            assert _holds(formula, word) == automaton.accepts(word), word
    assert formula.automaton() == LTL.parse(str(formula), alphabet="ab").automaton()


def test_random_star_free_automata_become_formulas_and_programs() -> None:
    rng = random.Random(5)
    made = 0
    for _ in range(30 * settings().max_examples // settings.get_profile("default").max_examples):
        automaton = random_dfa(rng, 5).minimal()
        if not classify(automaton).star_free:
            with pytest.raises(InputError, match="expected a star-free language"):
                ltl_of(automaton)
            continue
        try:
            formula = ltl_of(automaton)
        except LimitError:
            continue
        made += 1
        assert all(_holds(formula, word) == automaton.accepts(word) for word in words("ab", 6) if word)
        if made % 8 == 0:
            program = b_rasp.from_ltl(formula).recogniser()
            for word in words("ab", 2):
                if word:
                    assert program.accepts(word) == automaton.accepts(word)
    assert made >= 10


def test_formulas_that_occur_several_times_are_written_once() -> None:
    """The text of this program was longer than the limit, and parts of it were replaced by "…"."""
    text = "(cca)*(aa+b+c)cb*a*ac+c*(b+b)+b*+(b)+a*b"
    program = b_rasp.from_ltl(ltl_of(regular.language(text)), strict=True)
    assert "…" not in str(program)
    assert len(str(program)) < 200_000
    short = b_rasp.from_ltl(LTL.parse("X (a & X b) | (a & X b)"))
    assert str(short).count('"a" & ') == 1
    assert b_rasp.parse(str(short)).definitions == short.definitions
