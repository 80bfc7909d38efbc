"""Verdicts on regular languages: as published, right on edges, and equal to plain computations."""

from __future__ import annotations

import itertools
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from locum.errors import InputError, LimitError
from locum.interface.cli.main import run
from locum.languages import c_rasp, regular
from locum.languages.automata import DFA, words
from locum.languages.c_rasp_programs import program
from locum.languages.classification import classify
from locum.languages.equivalence import EQUIVALENT, equivalent
from locum.languages.recogniser import END, LAST
from tests.cli.commands import command_line, json_of, refused
from tests.old.languages.corpus import CORPUS, agrees, random_dfa

#: Published verdicts on R and R∞ that contradict the theorems: the star of x*w was taken to be
#: (x*w)*x*, which accepts x, and the verdicts are right for that other language.
_MISREAD = re.compile(r"^\(([abc])\*([abc]+)\)\*")


def _often(usual: int) -> int:
    return usual * settings().max_examples // settings.get_profile("default").max_examples


def test_the_verdicts_of_the_corpus() -> None:
    """All verdicts on C-RASP; R and R∞ but for those that were made of another language."""
    misread = 0
    for row in CORPUS:
        verdicts = classify(regular.language(row["regex"]))
        assert verdicts.c_rasp == row["C-RASP"], row
        assert verdicts.c_rasp_last or not verdicts.c_rasp
        # R ⊆ C-RASP ⊆ R∞.
        assert verdicts.c_rasp or not verdicts.r, row
        assert verdicts.r_infinity or not verdicts.c_rasp, row
        published = (row["R"], row["R_infinity"])
        if (verdicts.r, verdicts.r_infinity) != published:
            misread += 1
            other = _MISREAD.sub(r"((\1*\2)*\1*)", row["regex"])
            assert other != row["regex"], row
            assert _language_differs(row["regex"], other)
            read = classify(regular.language(other))
            assert (read.r, read.r_infinity) == published, row
    assert misread <= len(CORPUS) // 50


def _language_differs(one: str, other: str) -> bool:
    return regular.language(one, "abc").separate(regular.language(other, "abc")) is not None


def _in_c_rasp() -> list[dict[str, Any]]:
    return [row for row in CORPUS if row["C-RASP"]]


def test_programs_of_the_corpus_agree_with_the_automaton() -> None:
    step = max(1, 40 // _often(1))
    for row in _in_c_rasp()[::step]:
        automaton = regular.language(row["regex"])
        emitted = program(automaton)
        assert emitted is not None
        assert emitted.accept == END
        assert agrees(automaton, emitted, 8), row
        at_last = program(automaton, LAST)
        assert at_last is not None
        assert agrees(automaton, at_last, 6), row


def test_programs_that_only_the_last_symbol_allows() -> None:
    result = 0
    for row in CORPUS:
        if row["C-RASP"]:
            continue
        automaton = regular.language(row["regex"])
        emitted = program(automaton, LAST)
        assert (emitted is not None) == classify(automaton).c_rasp_last
        if emitted is not None:
            result += 1
            assert agrees(automaton, emitted, 5), row
    assert result


def test_weights_of_the_corpus_agree_with_the_automaton() -> None:
    """Compiled causal weights, on all words of up to four symbols (more in ``make fuzz``)."""
    many = _often(1) > 1
    chosen = _in_c_rasp()[:: 4 if many else 70]
    for row in chosen:
        automaton = regular.language(row["regex"])
        emitted = program(automaton)
        assert emitted is not None
        longest = 8 if many else 4
        model = emitted.compile(longest, limit=None)
        assert model.config.causal
        for size in range(longest + 1):
            batch = list(itertools.product(automaton.alphabet, repeat=size))
            for start in range(0, len(batch), 500):
                part = batch[start : start + 500]
                assert emitted.accepts_by(model, part) == [automaton.accepts(w) for w in part], row


def test_emitted_programs_agree_by_dense_execution() -> None:
    for text in ("(ab+ba)*", "a*b*", "(ab)*+c", "aab+b*a"):
        automaton = regular.language(text)
        emitted = program(automaton)
        assert emitted is not None
        for word in words(automaton.alphabet, 4):
            assert emitted.accepts(word) == automaton.accepts(word), (text, word)


def test_last_symbol_and_end_marker_differ() -> None:
    verdicts = classify(regular.language("(a+b)*b"))
    assert not verdicts.c_rasp
    assert verdicts.c_rasp_last
    assert verdicts.program(END) is None
    emitted = verdicts.program(LAST)
    assert emitted is not None
    assert [emitted.accepts(w) for w in ("b", "ab", "ba")] == [True, True, False]
    with pytest.raises(InputError, match="the empty word has no last symbol"):
        emitted.accepts("")


EDGES = [
    # regex, alphabet, finite, star-free, C-RASP, R
    ("∅", "ab", True, True, True, True),
    ("ε", "ab", True, True, True, True),
    ("()", "a", True, True, True, True),
    ("∅*", "a", True, True, True, True),
    ("a*", "a", False, True, True, True),
    ("(aa)*", "a", False, False, False, False),
    ("(aa)*", "ab", False, False, False, False),
    ("a", "a", True, True, True, True),
    ("(a+b)*", "ab", False, True, True, True),
    ("(a+b)*", "abc", False, True, True, True),
    (".*", "x", False, True, True, True),
    ("(ab)*", "ab", False, True, True, False),
    ("~∅", "ab", False, True, True, True),
    ("a?b?", "abc", True, True, True, True),
]


@pytest.mark.parametrize(("text", "alphabet", "finite", "star_free", "c_rasp", "r"), EDGES)
def test_edges(text: str, alphabet: str, finite: bool, star_free: bool, c_rasp: bool, r: bool) -> None:
    automaton = regular.language(text, alphabet)
    verdicts = classify(automaton)
    result = (verdicts.finite, verdicts.star_free, verdicts.c_rasp, verdicts.r)
    assert result == (finite, star_free, c_rasp, r)
    for accept in (END, LAST):
        emitted = verdicts.program(accept)
        if emitted is not None:
            assert agrees(automaton, emitted, 5)


def test_groups_are_shown_and_solvable_or_not() -> None:
    parity = classify(regular.language("(aa)*"))
    assert parity.groups[0].order == 2
    assert parity.solvable
    # The symmetric group of five states: a swaps two, b moves all on by one.
    rows = tuple((1 - q if q < 2 else q, (q + 1) % 5) for q in range(5))
    symmetric = classify(DFA(("a", "b"), rows, frozenset({0})))
    assert symmetric.groups[0].order == 120
    assert not symmetric.solvable
    four = tuple((1 - q if q < 2 else q, (q + 1) % 4) for q in range(4))
    assert classify(DFA(("a", "b"), four, frozenset({0}))).solvable
    # The alternating group of five, by two cycles of three; it is its own commutators.
    alternating = tuple(((1, 2, 0, 3, 4)[q], (0, 1, 3, 4, 2)[q]) for q in range(5))
    assert not classify(DFA(("a", "b"), alternating, frozenset({0}))).solvable
    # A group of 5,040 permutations is decided in no time, by its generators.
    seven = tuple((1 - q if q < 2 else q, (q + 1) % 7) for q in range(7))
    large = classify(DFA(("a", "b"), seven, frozenset({0})))
    assert (large.groups[0].order, large.solvable, large.groups[0].is_abelian) == (5040, False, False)


#: Regular languages outside plain C-RASP, C-RASP programs with position predicates, and the class.
PROGRAMS = [
    (
        "(a+b)*aa(a+b)*",
        'z = #("a" && #[j == i - 1] "a" > 0) > 0',
        "C-RASP[local]",
    ),
    ("((a+b)(a+b))*", "#accept end\nz = i % 2 == 0", "C-RASP[periodic]"),
]


@pytest.mark.parametrize(("text", "source", "key"), PROGRAMS)
def test_programs_with_position_predicates_have_their_own_verdict(
    text: str, source: str, key: str
) -> None:
    """``classify`` and ``equivalent`` must not contradict each other."""
    pytest.importorskip("z3")
    with_positions = c_rasp.parse(source, alphabet="ab")
    assert equivalent(with_positions, text).verdict == EQUIVALENT
    for verdicts in (classify(text), classify(with_positions)):
        lines = {line.key: line.holds for line in verdicts.lines()}
        assert not lines["C-RASP"]
        assert not lines["C-RASP_last"]
        assert lines[key]
        assert lines["C-RASP[periodic, local]"]


# A plain computation, which shares no code with the product ----------------------------------------


def _plain_minimal(dfa: DFA) -> list[list[int]]:
    """Table filling: states that some word tells apart are told apart."""
    reached = {0}
    while True:
        more = reached | {t for s in reached for t in dfa.transitions[s]}
        if more == reached:
            break
        reached = more
    states = sorted(reached)
    apart = {(p, q) for p in states for q in states if (p in dfa.accepting) != (q in dfa.accepting)}
    while True:
        more_pairs = {
            (p, q)
            for p in states
            for q in states
            if (p, q) not in apart
            and any((dfa.transitions[p][i], dfa.transitions[q][i]) in apart for i in (0, 1))
        }
        if not more_pairs:
            break
        apart |= more_pairs
    first = {s: min(t for t in states if (s, t) not in apart) for s in states}
    kept = sorted(set(first.values()))
    return [[kept.index(first[t]) for t in dfa.transitions[s]] for s in kept]


def test_minimal_automata_have_the_states_of_a_plain_minimisation() -> None:
    rng = random.Random(7)
    for _ in range(500):
        dfa = random_dfa(rng)
        assert len(dfa.minimal()) == len(_plain_minimal(dfa)), dfa


def test_random_automata_and_their_programs() -> None:
    """Whatever is said to be in C-RASP has a program that agrees, with either convention."""
    rng = random.Random(11)
    for _ in range(_often(40)):
        dfa = random_dfa(rng).minimal()
        for accept in (END, LAST):
            emitted = program(dfa, accept)
            if emitted is not None:
                assert agrees(dfa, emitted, 7), dfa


# Regular expressions -------------------------------------------------------------------------------


def _as_python(text: str) -> str:
    return text.replace("+", "|")


def test_expressions_mean_what_python_says() -> None:
    for row in CORPUS[::25]:
        automaton = regular.language(row["regex"], "abc")
        pattern = re.compile(_as_python(row["regex"]))
        for word in words("abc", 5):
            assert automaton.accepts(word) == bool(pattern.fullmatch("".join(word))), (row, word)


def test_plus_is_union_or_once_or_more() -> None:
    assert regular.language("(ab)+b", plus="repeat").accepts("ababb")
    assert regular.language("a+b").accepts("b")
    with pytest.raises(InputError, match="\\+ is union here"):
        regular.language("(ab)+")
    with pytest.raises(InputError, match="\\+ is union here"):
        regular.language("(a+)b")


@pytest.mark.parametrize(
    ("text", "words_of_error"),
    [
        ("(ab", "column 1"),
        ("ab)", "column 3"),
        ("*a", "column 1: expected an expression before *"),
        ("(", "column 2: expected an expression before the end"),
        ("a||b", "column 3"),
        ("", "before the end"),
        ("∅", "no letters"),
        ("a&", "before the end"),
        ("~", "column 2: expected an expression before the end"),
        ("~+a", "before +"),
        ("a\\", "backslash"),
        ("[ab]", "column 1: expected a letter, a digit or an operator, got '['"),
        ("a{2}", "try \\{ for the letter"),
    ],
)
def test_mistakes_in_expressions(text: str, words_of_error: str) -> None:
    with pytest.raises(InputError) as caught:
        regular.language(text)
    assert words_of_error in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "(a+b)*a" + "(a+b)" * 40,
        "(" * 100_000 + "a" + ")" * 100_000,
        "~(" * 50_000 + "a",
        "a" * 90_000,
        "(a*b*)*" * 2_000,
        "(.*a" + "." * 14 + ")&(.*b" + "." * 15 + ")",
    ],
)
def test_hostile_expressions_are_refused(text: str) -> None:
    with pytest.raises((InputError, LimitError)):
        classify(regular.language(text, "ab")).to_dict()


def test_deeply_nested_operators() -> None:
    text = "a"
    for _ in range(99):
        text = f"~({text})* b & c + d b"
    assert regular.language(text, "abcd").accepts("db")


def test_many_operators_in_a_row() -> None:
    assert regular.language("a" + "*" * 90_000).accepts("aa")
    assert not regular.language("~" * 90_001 + "a").accepts("a")


# The command ---------------------------------------------------------------------------------------


def test_the_command_prints_verdicts(tmp_path: Path) -> None:
    data = json_of("language", "classify", "(ab+ba)*")
    keys = {"finite": False, "star_free": True, "C-RASP": True, "C-RASP_last": True, "R": False}
    assert {key: data[key] for key in keys} == keys
    assert data["R_infinity"] is True
    picture = tmp_path / "automaton.dot"
    done = command_line("language", "classify", "(ab+ba)*", "--program", "-o", str(picture))
    assert done.returncode == 0, done
    assert "#accept end" in done.stdout
    assert picture.read_text(encoding="utf-8").startswith("digraph {")


def test_verdicts_are_printed_without_a_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def too_large(automaton: DFA) -> None:
        raise LimitError("the formula is too large")

    monkeypatch.setattr("locum.languages.star_free.ltl_of", too_large)
    assert run(["language", "classify", "(a+b+c)*bc*", "--program"]) == 0
    printed = capsys.readouterr().out
    assert "unique hard attention, strict masks (star-free)" in printed
    assert "No program: the formula is too large." in printed
    assert run(["language", "classify", "(b*ab*ab*)*b*", "--program"]) == 0
    assert "neither star-free nor in C-RASP[periodic, local]." in capsys.readouterr().out


def test_automata_formulas_and_programs_from_files(tmp_path: Path) -> None:
    dfa = {
        "alphabet": ["a", "b"],
        "start": "even",
        "accepting": ["even"],
        "transitions": {"even": {"a": "odd", "b": "even"}, "odd": {"a": "even", "b": "odd"}},
    }
    (tmp_path / "parity.json").write_text(json.dumps(dfa), encoding="utf-8")
    data = json_of("language", "classify", str(tmp_path / "parity.json"))
    assert data["star_free"] is False
    assert data["group"]["order"] == 2
    (tmp_path / "f.ltl").write_text("G (a -> F b)", encoding="utf-8")
    assert json_of("language", "classify", str(tmp_path / "f.ltl"))["star_free"] is True
    data = json_of("language", "classify", "F a & F b", "--from", "ltl")
    assert data["C-RASP"] is True
    (tmp_path / "p.crasp").write_text('x = #"a" >= 2 && #"b" == 0', encoding="utf-8")
    data = json_of("language", "classify", str(tmp_path / "p.crasp"))
    assert (data["R"], data["states"]) == (True, 4)
    (tmp_path / "q.crasp").write_text('x = #"a" == #"b"', encoding="utf-8")
    data = json_of("language", "classify", str(tmp_path / "q.crasp"))
    assert (data["C-RASP_last"], data["star_free"]) == (True, None)
    assert "alphabet" in refused("language", "classify", "∅")
    typo = json.dumps(dfa | {"start": "evn"})
    (tmp_path / "typo.json").write_text(typo, encoding="utf-8")
    assert "expected a state of transitions, got 'evn'" in refused(
        "language", "classify", str(tmp_path / "typo.json")
    )
    twice = json.dumps(dfa).replace('"start"', '"start": "0", "start"')
    (tmp_path / "twice.json").write_text(twice, encoding="utf-8")
    assert "the same name twice" in refused("language", "classify", str(tmp_path / "twice.json"))
    (tmp_path / "bad.json").write_text('{"alphabet": ["a"]}', encoding="utf-8")
    assert "expected a JSON object with" in refused("language", "classify", str(tmp_path / "bad.json"))
