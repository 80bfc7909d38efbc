"""Equivalence of programs: proven, refuted by a shortest word, or not decided in time."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

import pytest

from locum.errors import InputError
from locum.languages.equivalence import EQUIVALENT, SEPARATED, UNDECIDED, equivalent
from locum.languages.named_languages import Language, read
from tests.cli.commands import command_line, json_of, refused

pytest.importorskip("z3")


def _program(accepted: str, *definitions: str, accept: str = "end") -> str:
    return "\n".join([f"#accept {accept}", *definitions, f"accepted = {accepted}"])


_OC = ('o = #"("', 'c = #")"')
DYCK = _program("#[o < c] == 0 && o == c", *_OC)
DYCK_2 = _program('#[")" && c - o >= 1] == 0 && o <= c', *_OC)
DYCK_3 = _program("#[!(o >= c)] < 1 && !(o != c)", *_OC)
DYCK_ANY = _program("o == c", *_OC)
DYCK_OPEN = _program("#[o < c] == 0", *_OC)
DYCK_TWO = _program("#[o < c] == 0 && o == c && #[o - c > 2] == 0", *_OC)
DYCK_OFF = _program("#[o + 1 < c] == 0 && o == c", *_OC)
COUNT3 = _program(
    'b_ok && a_ok && #"a" == #"b" && #"b" == #"c"',
    'b_ok = #("b" && #"c" == 0) == #"b"',
    'a_ok = #("a" && #("b" || "c") == 0) == #"a"',
)
COUNT3_2 = _program(
    '#bad == 0 && #"a" == #"b" && #"c" == #"b"',
    'bad = "a" && #("b" || "c") > 0 || "b" && #"c" > 0',
)
COUNT3_ORDER = _program('#"a" == #"b" && #"b" == #"c"')
COUNT3_LATE = _program(
    '#bad == 0 && #"a" == #"b" && #"c" == #"b"', 'bad = "a" && #"b" > 0 || "b" && #"c" > 1'
)
COUNT3_MORE = _program(
    '#bad == 0 && #"a" == #"b" && #"c" <= #"b"', 'bad = "a" && #("b" || "c") > 0 || "b" && #"c" > 0'
)
MAJORITY = _program('#"a" > #"b"')
MAJORITY_2 = _program('2 * #"a" > #"a" + #"b"')
MAJORITY_3 = _program('max(#"a", #"b") != #"b"')
MAJORITY_TIE = _program('#"a" >= #"b"')
MAJORITY_FAR = _program('#"a" > #"b" || #"a" == 9 && #"b" == 9')
TOMITA_1 = _program('#"0" == 0', accept="end")
#: P, Q, alphabet, whether they are equivalent.
PAIRS: list[tuple[str, str, str, bool]] = [
    (DYCK, DYCK, "()", True),
    (DYCK, DYCK_2, "()", True),
    (DYCK_2, DYCK_3, "()", True),
    (DYCK, DYCK_ANY, "()", False),
    (DYCK, DYCK_OPEN, "()", False),
    (DYCK, DYCK_TWO, "()", False),
    (DYCK, DYCK_OFF, "()", False),
    (DYCK_TWO, "(\\((\\(\\))*\\))*", "()", True),
    (DYCK_TWO, "(\\(\\(*\\)\\)*)*", "()", False),
    (COUNT3, COUNT3_2, "abc", True),
    (COUNT3, COUNT3_ORDER, "abc", False),
    (COUNT3, COUNT3_LATE, "abc", False),
    (COUNT3, COUNT3_MORE, "abc", False),
    (COUNT3_2, COUNT3_MORE, "abc", False),
    (MAJORITY, MAJORITY_2, "ab", True),
    (MAJORITY, MAJORITY_3, "ab", True),
    (MAJORITY, MAJORITY_TIE, "ab", False),
    (MAJORITY, MAJORITY_FAR, "ab", False),
    (MAJORITY, "(a+b)*a", "ab", False),
    (_program('#"b" == 0'), "a*", "ab", True),
    (_program('#"b" <= 1'), "a*b?a*", "ab", True),
    (_program('#"b" <= 1'), "a*ba*", "ab", False),
    (TOMITA_1, "1*", "01", True),
    (TOMITA_1, "1*+0", "01", False),
    (
        _program('#"1" - #"0" == 0 && #[x > 1] == 0 && #[x < 0] == 0', 'x = #"1" - #"0"'),
        "(10)*",
        "01",
        True,
    ),
    (_program('#"1" - #"0" == 0 && #[x > 1] == 0', 'x = #"1" - #"0"'), "(10)*", "01", False),
    (_program('#("a" && #"b" >= 1) == 0'), "a*b*", "ab", True),
    (_program('#("a" && #"b" >= 2) == 0'), "a*b*", "ab", False),
    (_program('#("b" && #"a" == 0) == #"b"'), "b*a*", "ab", True),
    ("(ab)*", "ε+a(ba)*b", "ab", True),
    ("(ab)*", "(ab)*+(ba)*", "ab", False),
    ("~(.*000.*)", "(ε+0+00)(1(ε+0+00))*", "01", True),
    ("~(.*000.*)", "(ε+0+00)(1(ε+0+00))*+1*", "01", True),
    ("((00+11)*(01+10)(00+11)*(01+10)(00+11)*)*", "(00+11)*", "01", False),
    ("0*1*0*1*", "0*(1*0*1*)", "01", True),
    ("0*1*0*1*", "(0*1*)*", "01", False),
]


def _language(text: str, alphabet: str) -> Language:
    return read(text, "c-rasp" if text.startswith("#") else "regex", alphabet=alphabet)


def _plain(language: Language, word: tuple[str, ...]) -> bool:
    if language.automaton is not None:
        return language.automaton.accepts(word)
    assert language.program is not None
    return language.program.accepts(word)


@pytest.mark.parametrize(("p", "q", "alphabet", "same"), PAIRS)
def test_pairs(p: str, q: str, alphabet: str, same: bool) -> None:
    one, other = _language(p, alphabet), _language(q, alphabet)
    result = equivalent(one, other, seconds=60)
    assert result.verdict == (EQUIVALENT if same else SEPARATED), result
    if result.word is None:
        return
    # Only one has the word, and no shorter one separates them.
    assert _plain(one, result.word) != _plain(other, result.word)
    for size_of_word in range(min(len(result.word), 4)):
        for word in itertools.product(alphabet, repeat=size_of_word):
            assert _plain(one, word) == _plain(other, word), word
    assert result.answers == (_plain(one, result.word), _plain(other, result.word))


def test_formulas_and_programs_of_b_rasp() -> None:
    formula = read("G (a -> WX b) & G (b -> WX a)", "ltl")
    program = read(
        'follows = rightmost[j < i, true] "a"(j) & "a"(i) | "b"(j) & "b"(i) : false\n'
        "accepted = rightmost[j <= i, follows(j)] false : true",
        "b-rasp",
    )
    assert equivalent(formula, program).verdict == EQUIVALENT
    assert not equivalent(formula, program).empty_word
    # The empty word is not compared where one of them has no answer for it.
    assert equivalent(formula, read("(ab)*a?+(ba)*b?")).verdict == EQUIVALENT
    result = equivalent(formula, read("(ab)*a?"))
    assert result.word == ("b",)
    assert result.answers == (True, False)


def test_conventions_that_differ_are_compared_on_words_that_both_answer() -> None:
    last, end = (read('accepted = "b"', "c-rasp", alphabet="ab", accept=a) for a in ("last", "end"))
    result = equivalent(last, read("(a+b)*b"))
    assert (result.verdict, result.empty_word) == (EQUIVALENT, False)
    # At an end marker no symbol is seen: nothing is accepted.
    assert equivalent(end, read("∅", alphabet="ab")).verdict == EQUIVALENT
    assert equivalent(last, end).word == ("b",)
    assert equivalent(end, read("(a+b)*b")).word == ("b",)


#: Pairs of languages that name different symbols, each with its form.
DIFFERENT_ALPHABETS = [
    (('d = #"a" > #"b"', "c-rasp"), ("d = #[o < c] == 0 && o == c", "c-rasp")),
    (("!b", "ltl"), ("a", "ltl")),
    (("~(ab)", "regex"), ("~(abc)", "regex")),
    (('x = #"a" == 0', "c-rasp"), ("b*", "regex")),
    (('x = #"," == 0', "c-rasp"), ("b*", "regex")),
]


@pytest.mark.parametrize(("p", "q"), DIFFERENT_ALPHABETS)
def test_different_alphabets_are_rejected(p: tuple[str, str], q: tuple[str, str]) -> None:
    """No program is said to accept a word that it rejects because of its symbols."""
    texts = ["\n".join([*_OC, text]) if "o < c" in text else text for text, _ in (p, q)]
    forms = [form for _, form in (p, q)]
    with pytest.raises(InputError, match="expected the same for both languages") as error:
        equivalent(*(read(text, form) for text, form in zip(texts, forms, strict=True)))
    advice = re.search(r"try read\(…, alphabet=(\[.*?\])\) for both", str(error.value))
    assert advice is not None
    alphabet = ast.literal_eval(advice[1])
    languages = [read(text, form, alphabet=alphabet) for text, form in zip(texts, forms, strict=True)]
    result = equivalent(*languages)
    assert list(result.alphabet) == alphabet == result.to_dict()["alphabet"]
    if result.word is not None:
        assert result.answers == tuple(_plain(each, result.word) for each in languages)


def test_the_command_states_the_alphabet() -> None:
    message = refused("language", "equivalent", "a*", "a*b?")
    assert "got {a} and {a, b}; try read(…, alphabet=['a', 'b']) for both (--alphabet a,b)" in message
    done = command_line("language", "equivalent", "a*", "a*b?", "--alphabet", "a,b")
    assert done.returncode == 1
    assert "different over {a, b}: b separates them" in done.stdout
    assert json_of("language", "equivalent", "a*", "a*a*")["alphabet"] == ["a"]


def test_a_limit_is_kept() -> None:
    """What is not decided within the limit says so."""
    hard = _program(
        "3 * x + 7 * y == 5 * z",
        'x = #("a" && #"b" > 2 * #"a")',
        'y = #("b" && 3 * #"a" > 2 * #"b")',
        'z = #("a" && #("b" && #"a" > #"b") > 0)',
    )
    other = hard.replace("5 * z", '5 * z + 1000000 * #("b" && x + y == 40 * z + 7)')
    result = equivalent(_language(hard, "ab"), _language(other, "ab"), seconds=0.3)
    assert result.verdict == UNDECIDED
    assert "they agree on all words of up to" in result.method
    with pytest.raises(InputError, match="more than 0 seconds"):
        equivalent(_language(hard, "ab"), _language(other, "ab"), seconds=0)


def test_the_command(tmp_path: Path) -> None:
    for name, text in (("p", DYCK), ("q", DYCK_ANY), ("r", DYCK_2)):
        (tmp_path / f"{name}.crasp").write_text(text, encoding="utf-8")
    p, q, r = (str(tmp_path / f"{name}.crasp") for name in "pqr")
    done = command_line("language", "equivalent", p, q)
    assert done.returncode == 1
    assert ")( separates them" in done.stdout
    assert "Q accepts it" in done.stdout
    assert json_of("language", "equivalent", p, r)["verdict"] == "equivalent"
    assert "proven by automata" in command_line("language", "equivalent", "a*", "a*a*").stdout
