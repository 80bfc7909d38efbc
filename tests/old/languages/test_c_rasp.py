"""C-RASP: text and Python, conventions, extensions, mistakes, and the same in weights."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from types import CodeType

import pytest
from hypothesis import settings

from locum import tokens
from locum.errors import InputError
from locum.graph import COMPARISONS
from locum.languages import c_rasp
from locum.languages.automata import words
from locum.languages.c_rasp import count, parse, recogniser, show, symbol
from locum.languages.counters import CounterMachine
from locum.languages.counting import as_count, fragment
from locum.languages.recogniser import Recogniser
from locum.languages.syntax import DialectError

DYCK = """
opened = #"("
closed = #")"
accepted = #[opened < closed] == 0 && opened == closed
"""
COUNT3 = """
b_before_c = #("b" && #"c" == 0) == #"b"
a_before_b = #("a" && #("b" || "c") == 0) == #"a"
accepted = b_before_c && a_before_b && #"a" == #"b" && #"b" == #"c"
"""
CONTAINS_AB = """
#import local  // declarations are accepted
accepted = #("b" && #[j == i - 1] "a" >= 1) >= 1
"""
EVEN_A = """
#import periodic
accepted = #!"a" == 0 && i % 2 == 1   // positions are counted from 0
"""
EXTREMES = """
least = min(#"a", #"b")
most = max(#"a", #"b")
gap = most - least if "a" else 2 * least - most
accepted = gap >= 1
"""


def _dyck(word: str) -> bool:
    depth = 0
    for letter in word:
        depth += 1 if letter == "(" else -1
        if depth < 0:
            return False
    return depth == 0


def _extremes(word: str) -> bool:
    a, b = word.count("a"), word.count("b")
    return (abs(a - b) if word[-1] == "a" else 2 * min(a, b) - max(a, b)) >= 1


PROGRAMS: list[tuple[str, str, str, Callable[[str], bool]]] = [
    ("Dyck-1", DYCK, "()", _dyck),
    ("aⁿbⁿcⁿ", COUNT3, "abc", lambda w: w == "".join(x * (len(w) // 3) for x in "abc")),
    ("contains ab", CONTAINS_AB, "ab", lambda w: "ab" in w),
    ("(aa)*", EVEN_A, "ab", lambda w: set(w) == {"a"} and len(w) % 2 == 0),
    ("extremes", EXTREMES, "ab", _extremes),
]


@pytest.mark.parametrize(("name", "text", "alphabet", "plain"), PROGRAMS)
def test_programs_accept_what_they_should(
    name: str, text: str, alphabet: str, plain: Callable[[str], bool]
) -> None:
    program = parse(text, alphabet=alphabet)
    machine = CounterMachine(program)
    model = program.compile(6)
    assert model.config.causal
    for size in range(1, 7):
        batch = ["".join(word) for word in itertools.product(alphabet, repeat=size)]
        expected = [plain(word) for word in batch]
        assert program.accepts_by(model, batch) == expected, name
        for word, reference in list(zip(batch, expected, strict=True))[:: 1 if size < 4 else 17]:
            assert program.accepts(word) == reference, (name, word)
            state, accepted = machine.start, None
            for letter in word:
                state, accepted = machine.step(state, letter)
            assert bool(machine.answer(state, accepted)) == reference


def test_the_same_from_python() -> None:
    opened, closed = count(symbol("(")), count(symbol(")"))
    program = recogniser((count(opened < closed) == 0) & (opened == closed), "()")
    assert program.sop.node is parse(DYCK).sop.node


def test_conventions_are_said_once() -> None:
    last = 'accepted = "b"'
    assert parse(last, alphabet="ab").accept == "last"
    assert parse("#accept end\n" + last, alphabet="ab").accept == "end"
    assert parse(last, alphabet="ab", accept="end").accept == "end"
    assert parse("#accept end\n" + last, alphabet="ab", accept="end").accept == "end"
    with pytest.raises(DialectError, match="recognise different languages"):
        parse("#accept end\n" + last, alphabet="ab", accept="last")
    with pytest.raises(InputError, match="expected 'last' or 'end', got 'begin'"):
        parse(last, accept="begin")
    # At the last symbol b is seen; at an end marker no symbol is.
    assert parse(last, alphabet="ab").accepts("ab")
    assert not parse(last, alphabet="ab", accept="end").accepts("ab")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('x = #"a" > 0', "C-RASP"),
        ('x = #[j == i - 1] "a" > 0', "C-RASP[local]"),
        ("x = i % 2 == 0", "C-RASP[periodic]"),
        ('x = #[j >= i] "a" > 0 && i % 2 == 0', "C-RASP[periodic, future]"),
    ],
)
def test_extensions_are_reported_and_need_no_import(text: str, name: str) -> None:
    program = parse(text, alphabet="ab")
    assert fragment(program.sop.node) == name
    declared = "#import local\n#import periodic\n#import future\n" + text
    assert parse(declared, alphabet="ab").sop.node is program.sop.node


def test_positions_from_0_or_1_differ() -> None:
    even = "accepted = i % 2 == 0"
    by_zero, by_one = (parse(even, alphabet="a", positions=first) for first in (0, 1))
    assert [by_zero.accepts("a" * n) for n in (1, 2, 3)] == [True, False, True]
    assert [by_one.accepts("a" * n) for n in (1, 2, 3)] == [False, True, False]
    with pytest.raises(DialectError, match="positions 1"):
        parse("#positions 1\n" + even, alphabet="a", positions=0)


def test_the_alphabet_contains_the_symbols_of_unused_definitions() -> None:
    text = 'unused = #"a" > 0\nmore = #"b" > 1'
    assert parse(text).alphabet == ("a", "b")
    assert parse(text).accepts("abb")
    with pytest.raises(InputError, match="every symbol of the program"):
        parse(text, alphabet="b")


def test_the_empty_word() -> None:
    balanced = 'accepted = #"a" == #"b"'
    assert parse(balanced, accept="end").accepts("")
    with pytest.raises(InputError, match="no last symbol"):
        parse(balanced).accepts("")


def test_unknown_symbols_are_refused_by_programs_and_weights() -> None:
    program = parse('accepted = #"a" > #"b"')
    with pytest.raises(InputError, match="got 'c'"):
        program.accepts("abc")
    with pytest.raises(InputError, match="got 'c'"):
        program.accepts_by(program.compile(3), ["abc"])
    with pytest.raises(InputError, match="end marker"):
        parse('accepted = #"$" > 0', accept="end")
    with pytest.raises(InputError, match="every symbol of the program"):
        parse('accepted = #"a" > #"b"', alphabet="a")


def test_counts_of_nothing_and_large_coefficients() -> None:
    for text, expected in (
        ("accepted = #false == 0", True),
        ("accepted = #true == 3", True),
        ('accepted = 1000000000 * #"a" > 999999999 + 999999999 * #"a"', False),
        ('accepted = 0 * #"a" == 0', True),
        ('accepted = -2 * #"a" + 3 < -1000000000 * #"b"', False),
        ("accepted = true", True),
        ("accepted = 1 < 0", False),
    ):
        program = parse(text, alphabet="ab")
        assert program.accepts("aab") is expected, text
        model = program.compile(3)
        for word in words("ab", 3):
            if word:
                assert program.accepts_by(model, [word]) == [program.accepts(word)], (text, word)


MISTAKES = [
    ('x = "a" + 1', "line 1, column 9: expected counts for +, got a boolean"),
    ('x = #"a"', "expected the last definition to be a boolean"),
    ("x = #[j == i + 1] true > 0", "expected ]"),
    ('x = (#"a"', "expected ), got the end of the text"),
    ('x = #"a" > y', "y is not defined before this"),
    ('x = "a"\nx = "b"', "line 2, column 1: x is defined twice"),
    ("x = 5 && true", "expected booleans for &&"),
    ('x = #"a" * #"b" > 1', "got a product of counts"),
    ('x = 99999999999 < #"a"', "at most 1,000,000,000"),
    ("#import oddity\nx = true", "got 'oddity'"),
    ("#accept begin\nx = true", "expected last or end"),
    ("", "expected a definition"),
    ('x = "a" "b"', "expected the end of the definition"),
    ('x = ""', "expected a symbol in quotes"),
    ("x = @", "got '@'"),
    ('x = 1 if "a" else "b"', "two counts or two booleans"),
]


@pytest.mark.parametrize(("text", "problem"), MISTAKES)
def test_mistakes_have_line_and_column(text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text, alphabet="ab")
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "(" * 100_000,
        "x = " + "#(" * 40_000 + '"a"',
        "x = " + "1 if true else " * 10_000 + "2",
        "x = " + "min(1, " * 20_000,
        '"' * 100_000,
        "x = " + "a" * 500_000,
    ],
)
def test_hostile_programs_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse(text)


def test_long_chains_are_read_and_run() -> None:
    program = parse("x = " + "!" * 90_001 + '"a"')
    assert program.accepts("a") is False
    many = parse("x = " + " && ".join(['#"a" >= 0'] * 2_000))
    assert many.accepts("a") is True


def test_programs_are_written_with_their_names() -> None:
    program = parse('v1 = #"a"\naccepted = v1 > 2 && #"b" == #"c"\nlast = accepted || #"b" == 0')
    assert show(program).splitlines()[1:] == [
        'v2 = #"b"',
        'v1 = #"a"',
        'accepted = ((v1 > 2) && (v2 == #"c"))',
        "last = (accepted || (v2 == 0))",
    ]
    assert parse(show(program)).sop.node is program.sop.node


def test_what_is_not_c_rasp_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="got tokens"):
        recogniser(tokens < "b", "ab")
    with pytest.raises(InputError, match="expected a boolean that accepts"):
        recogniser(count(symbol("a")), "ab")
    with pytest.raises(InputError, match="got multiply"):
        recogniser(count(symbol("a")) * count(symbol("b")) > 2, "ab")


def test_counts_are_recognised_in_the_graph() -> None:
    result = as_count(count(symbol("a"), distance=2).node)
    assert result is not None
    assert result.distance == 2
    assert as_count(symbol("a").node) is None


def test_programs_are_recognisers() -> None:
    assert isinstance(parse(DYCK), Recogniser)
    assert parse(DYCK).names[parse('x = #"("\ny = x == 0').sop.node.inputs[0]] == "opened"


# Random programs -----------------------------------------------------------------------------------


def _boolean(rng: random.Random, size: int) -> str:
    if size <= 0:
        return rng.choice(['"a"', '"b"', "true", "false"])
    one, other = _boolean(rng, size - 1), _boolean(rng, size - 1)
    return rng.choice(
        [
            f"({_number(rng, size - 1)} {rng.choice(list(COMPARISONS))} {_number(rng, size - 1)})",
            f"({one} {rng.choice(['&&', '||'])} {other})",
            f"!{one}",
            f"({one} if {other} else {_boolean(rng, size - 1)})",
            f"(i % {rng.randrange(1, 4)} == {rng.randrange(3)})",
        ]
    )


def _number(rng: random.Random, size: int) -> str:
    if size <= 0:
        return rng.choice(["0", "1", "2", '#"a"', '#"b"', "#true"])
    one, other = _number(rng, size - 1), _number(rng, size - 1)
    return rng.choice(
        [
            f"#{_boolean(rng, size - 1)}",
            f"#[j == i - {rng.randrange(4)}] {_boolean(rng, size - 1)}",
            f"({one} {rng.choice('+-')} {other})",
            f"({rng.randrange(4)} * {one})",
            f"{rng.choice(['min', 'max'])}({one}, {other})",
            f"({one} if {_boolean(rng, size - 1)} else {other})",
            f"-{one}",
        ]
    )


def test_random_programs_by_dense_execution_counters_and_weights() -> None:
    usual = settings.get_profile("default").max_examples
    for seed in range(min(5_000, 40 * settings().max_examples // usual)):
        rng = random.Random(seed)
        accept, first = rng.choice(["last", "end"]), rng.choice([0, 1])
        text = f"accepted = {_boolean(rng, 1)} || {_boolean(rng, 3)}"
        program = parse(text, alphabet="ab", accept=accept, positions=first)
        machine = CounterMachine(program)
        model = program.compile(4) if seed % 8 == 0 else None
        for word in words("ab", 4):
            if not word and accept == "last":
                continue
            expected = program.accepts(word)
            state, accepted = machine.start, None
            for letter in word:
                state, accepted = machine.step(state, letter)
            assert bool(machine.answer(state, accepted)) == expected, (text, word)
            if model is not None:
                assert program.accepts_by(model, [word]) == [expected], (text, word)
        if first == 0:
            again = parse(c_rasp.show(program), alphabet="ab")
            assert again.accept == accept
            assert all(again.accepts(w) == program.accepts(w) for w in words("ab", 2) if w), text


@pytest.mark.parametrize("letter", ["'", "\\", "known_0", "{0}", "1 or exit()", "é\t"])
def test_symbols_are_no_part_of_the_code_of_a_machine(letter: str) -> None:
    program = parse(f'x = #"{letter}" > #"b"')
    machine = CounterMachine(program)
    (step,) = (part for part in machine._code.co_consts if isinstance(part, CodeType))
    assert letter not in step.co_consts
    for word in words((letter, "b"), 3):
        state, accepted = machine.start, None
        for each in word:
            state, accepted = machine.step(state, each)
        assert not word or accepted == program.accepts(word)
