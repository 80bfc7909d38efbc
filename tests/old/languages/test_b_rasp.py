"""B-RASP and temporal logic: into each other, into automata, into weights."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import settings

from locum.errors import InputError, LimitError
from locum.languages import b_rasp
from locum.languages.automata import words
from locum.languages.formulas import TRUE, Formula, atom, show
from locum.languages.ltl import LTL, binary, unary

AB_STAR = """
follows_a = rightmost[j < i, true] "a"(j) : false
follows_b = rightmost[j < i, true] "b"(j) : true
wrong = !("a" & follows_b | "b" & follows_a)
none_wrong = rightmost[j <= i, wrong(j)] false : true
accepted = "b" & none_wrong
"""
A_THEN_B = """
late = leftmost[j < i, "b"(j)] true : false
wrong = "a" & late
accepted = rightmost[j <= i, wrong(j)] false : true
"""
DEPTH_TWO = """
closes = leftmost[j > i, true] ")"(j) : false
opens = rightmost[j < i, true] "("(j) : false
inner = "(" & closes | ")" & opens
next_outer = leftmost[j > i, !inner(j)] ")"(j) : false
last_outer = rightmost[j < i, !inner(j)] "("(j) : false
wrong = !inner & ("(" & !next_outer | ")" & !last_outer)
accepted = leftmost[true, wrong(j)] false : true
"""
SAME_AS_FIRST = """
accepted = leftmost[true, true] "a"(j) & "a"(i) | "b"(j) & "b"(i) : false
"""
EARLIER_SAME = """
accepted = rightmost[j < i, "a"(j) & "a"(i) | "b"(j) & "b"(i)] true : false
"""


def _depth_two(word: str) -> bool:
    depth = 0
    for letter in word:
        depth += 1 if letter == "(" else -1
        if not 0 <= depth <= 2:
            return False
    return depth == 0


PROGRAMS: list[tuple[str, str, Callable[[str], bool]]] = [
    (AB_STAR, "ab", lambda w: w == "ab" * (len(w) // 2)),
    (A_THEN_B, "ab", lambda w: "ba" not in w),
    (DEPTH_TWO, "()", _depth_two),
    (SAME_AS_FIRST, "ab", lambda w: w[0] == w[-1]),
    (EARLIER_SAME, "ab", lambda w: w[-1] in w[:-1]),
]


@pytest.mark.parametrize(("text", "alphabet", "plain"), PROGRAMS)
def test_programs_accept_what_they_should(
    text: str, alphabet: str, plain: Callable[[str], bool]
) -> None:
    program = b_rasp.parse(text)
    assert b_rasp.parse(str(program)) == program
    automaton = program.automaton()
    recogniser = program.recogniser()
    model = recogniser.compile(6)
    assert model.config.causal == program.is_causal
    for word in map("".join, words(alphabet, 8)):
        if word:
            assert automaton.accepts(word) == plain(word), word
    for word in map("".join, words(alphabet, 4)):
        if word:
            assert recogniser.accepts(word) == plain(word), word
            assert recogniser.accepts_by(model, [word]) == [plain(word)], word


# Temporal logic ------------------------------------------------------------------------------------


def _random_formula(rng: random.Random, size: int) -> Formula:
    if size <= 1:
        return rng.choice([atom("a"), atom("b"), atom("a"), TRUE])
    if rng.random() < 0.5:
        operator = rng.choice(["!", "X", "WX", "F", "G", "Y", "WY", "O", "H"])
        return unary(operator, _random_formula(rng, size - 1))
    left = rng.randrange(1, max(2, size - 1))
    return binary(
        rng.choice(["&", "|", "U", "S", "R", "T", "->", "<->"]),
        _random_formula(rng, left),
        _random_formula(rng, size - 1 - left),
    )


def _plain(formula: Formula, word: Sequence[str]) -> Callable[[Formula, int], bool]:
    """Evaluate by the definitions, position by position."""
    known: dict[tuple[Formula, int], bool] = {}

    def holds(f: Formula, i: int) -> bool:
        if (f, i) not in known:
            known[f, i] = computed(f, i)
        return known[f, i]

    def computed(f: Formula, i: int) -> bool:
        p, n = f.parts, len(word)
        match f.op:
            case "true" | "false":
                return f.op == "true"
            case "atom":
                return word[i] == f.name
            case "not":
                return not holds(p[0], i)
            case "and":
                return holds(p[0], i) and holds(p[1], i)
            case "or":
                return holds(p[0], i) or holds(p[1], i)
            case "next":
                return i + 1 < n and holds(p[0], i + 1)
            case "yesterday":
                return i > 0 and holds(p[0], i - 1)
            case "until":
                return any(
                    holds(p[1], k) and all(holds(p[0], m) for m in range(i, k)) for k in range(i, n)
                )
            case _:
                return any(
                    holds(p[1], k) and all(holds(p[0], m) for m in range(k + 1, i + 1))
                    for k in range(i + 1)
                )

    return holds


def _examples(usual: int) -> int:
    return usual * settings().max_examples // settings.get_profile("default").max_examples


def test_random_formulas_round_trip_through_b_rasp() -> None:
    """LTL → B-RASP → text → LTL: the same language; and as defined, and as dense execution has it."""
    for seed in range(min(20_000, _examples(60))):
        rng = random.Random(seed)
        formula = _random_formula(rng, rng.randrange(2, 8))
        ltl = LTL(formula, ("a", "b"), rng.choice(["first", "last"]))
        assert LTL.parse(show(formula), alphabet="ab").formula is formula
        automaton = ltl.automaton()
        program = b_rasp.from_ltl(ltl, strict=seed % 2 == 1)
        again = b_rasp.parse(str(program), alphabet="ab")
        assert again == program
        back = again.to_ltl().automaton()
        assert back == automaton, (show(formula), automaton.separate(back))
        for word in words("ab", 8 if seed % 20 == 0 else 4):
            if word:
                place = 0 if ltl.at == "first" else len(word) - 1
                assert automaton.accepts(word) == _plain(formula, word)(formula, place)
        if seed % 12 == 0:
            recogniser = program.recogniser()
            for word in words("ab", 3):
                if word:
                    assert recogniser.accepts(word) == automaton.accepts(word), (str(program), word)


def _random_program(rng: random.Random) -> str:
    """Definitions with every mask, both directions, and names at i and at j."""
    names = ['"a"', '"b"']
    lines = []

    def literal(place: str) -> str:
        return rng.choice(["", "!"]) + rng.choice(names) + place

    def mixed() -> str:
        return f"{literal('(j)')} {rng.choice('&|')} {literal(rng.choice(['(i)', '(j)']))}"

    for number in range(rng.randrange(1, 4)):
        direction = rng.choice(["leftmost", "rightmost"])
        mask = rng.choice(b_rasp.MASKS)
        score = rng.choice(["true", mixed()])
        lines.append(f"p{number} = {direction}[{mask}, {score}] {mixed()} : {literal('')}")
        names.append(f"p{number}")
    return "\n".join(lines)


def test_random_programs_as_temporal_logic() -> None:
    for seed in range(min(2_000, _examples(12))):
        text = _random_program(random.Random(seed))
        program = b_rasp.parse(text, alphabet="ab")
        try:
            automaton = program.automaton()
        except LimitError:
            continue
        recogniser = program.recogniser()
        for word in words("ab", 4):
            if word:
                assert recogniser.accepts(word) == automaton.accepts(word), (text, word)


def test_weights_of_random_programs() -> None:
    for seed in range(100, 100 + min(500, _examples(4))):
        program = b_rasp.parse(_random_program(random.Random(seed)), alphabet="ab")
        recogniser = program.recogniser()
        model = recogniser.compile(4)
        for word in words("ab", 4):
            if word:
                assert recogniser.accepts_by(model, [word]) == [recogniser.accepts(word)], seed


MISTAKES: list[tuple[Callable[..., Any], str, str]] = [
    (b_rasp.parse, 'x = rightmost[j < i, true] "a" : false', "(i) or (j) after a name"),
    (b_rasp.parse, 'x = "a"(j)', "no position, or (i)"),
    (b_rasp.parse, 'x = rightmost[j != i, true] "a"(j) : false', "expected a mask"),
    (b_rasp.parse, 'x = rightmost[j < i, true] "a"(j)', "expected :"),
    (b_rasp.parse, "x = y", "y is not defined before this"),
    (b_rasp.parse, 'i = "a"', "expected a new name"),
    (b_rasp.parse, "", "expected a definition"),
    (b_rasp.parse, "x = true", "contains no symbol"),
    (b_rasp.parse, "x = rightmost[", "expected a mask"),
    (LTL.parse, "a U", "expected a symbol or an operator, got the end"),
    (LTL.parse, "Q a", "expected a symbol in lower case"),
    (LTL.parse, "true", "contains no symbol"),
    (LTL.parse, "(a", "expected )"),
    (LTL.parse, "a b", "expected an operator or the end"),
    (LTL.parse, "a &\n(b | (a)", "expected ), got the end of the text; ( is open at line 2, column 1"),
]


@pytest.mark.parametrize(("read", "text", "problem"), MISTAKES)
def test_mistakes(read: Callable[..., Any], text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        read(text)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "X " * 90_000 + "a",
        "(" * 100_000 + "a",
        "a U " * 40_000 + "b",
        " & ".join("F (" + "X " * n + "a)" for n in range(1, 60)),
        "Y " * 900 + "a",
        "!" * 100_000 + "a",
    ],
)
def test_hostile_formulas_are_refused(text: str) -> None:
    with pytest.raises((InputError, LimitError)):
        LTL.parse(text, alphabet="ab", at="last").automaton()


def test_formulas_have_several_lines() -> None:
    assert LTL.parse("// a comment\n G a\n &\n F b").formula is LTL.parse("G a & F b").formula


def test_the_empty_word_satisfies_nothing() -> None:
    assert not LTL.parse("G a", alphabet="ab").automaton().accepts("")
    assert LTL.parse("G a", alphabet="ab").automaton().accepts("a")
