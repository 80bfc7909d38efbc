"""Languages beyond the regular ones: counter automata, witnesses, and what papers state of them."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locum.errors import InputError, LimitError
from locum.languages import c_rasp
from locum.languages.automata import DFA
from locum.languages.classification import classify
from locum.languages.counters import CounterAutomaton
from locum.languages.equivalence import equivalent
from locum.languages.language_catalogue import NAMED, NamedLanguage, describe
from locum.languages.non_regular import PumpingWitness, check, find_witness, verdicts
from locum.languages.regular import language
from tests.cli.commands import command_line, json_of, refused

EXAMPLES = Path(__file__).parents[2] / "examples"
FUZZ = settings().max_examples >= 20_000
DYCK = """
accept run if depth == 0
run "(" -> run, depth + 1
run ")" if depth > 0 -> run, depth - 1
"""


def words(named: NamedLanguage) -> list[str]:
    most = 8 if FUZZ else {1: 8, 2: 7, 3: 5, 4: 4}.get(len(named.alphabet), 3)
    sizes = range(most + 1)
    return ["".join(w) for n in sizes for w in itertools.product(named.alphabet, repeat=n)]


# Named languages ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, named in NAMED.items() if named.form])
def test_the_definition_is_the_language(name: str) -> None:
    named = NAMED[name]
    definition = named.language().definition
    assert [w for w in words(named) if definition.accepts(w) != named.plain(w)] == []


@pytest.mark.parametrize("name", NAMED)
def test_verdicts_match_the_literature(name: str) -> None:
    named = NAMED[name]
    found = {verdict.key: verdict for verdict in describe(named)}
    for claim in named.claims:
        assert found[claim.key].holds is claim.holds, claim
    # Classes are contained in each other.
    holds = {key: verdict.holds for key, verdict in found.items()}
    assert not (holds["star_free"] and not holds["regular"])
    assert not (holds["star_free"] and holds["UHAT"] is False)
    assert not (holds["C-RASP"] and holds["softmax"] is False)
    assert holds["regular"] is (named.witness is None)


def test_locum_decides_most_of_what_papers_state() -> None:
    cited = [named for named in NAMED.values() if named.claims]
    assert len(cited) >= 20
    decided = [
        (named.name, claim.key)
        for named in cited
        for claim in named.claims
        if {v.key: v.reason for v in describe(named)}[claim.key] != "stated in the paper"
    ]
    assert len({name for name, _ in decided}) >= 18
    assert ("parity", "UHAT") in decided


@pytest.mark.parametrize("name", [name for name, named in NAMED.items() if named.witness])
def test_the_witness_of_a_named_language_checks(name: str) -> None:
    named = NAMED[name]
    assert named.witness is not None
    for m, n in itertools.product(range(6), repeat=2):
        word = "".join(named.witness.word(m, n))
        assert named.plain(word) == named.witness.expected(m, n), word


# Witnesses ------------------------------------------------------------------------------------

NOT_REGULAR = {
    "majority": ('d = #"a" > #"b"', "ab", "last", "aaᵐbⁿ is accepted if and only if m ≥ n"),
    "dyck": (
        'x = #"(" - #")"\nd = #[x < 0] == 0 && x == 0', "()", "end",
        '"("ᵐ")"ⁿ is accepted if and only if m = n',
    ),
    "twice": ('d = #"a" == 2 * #"b"', "ab", "end", "aᵐ(ab)ⁿ is accepted if and only if m = n"),
}  # fmt: skip
REGULAR = {
    "at most four": ('d = #"a" > 4', "ab", "end"),
    "contains": ('d = #("b" && #"a" > 0) > 0', "ab", "end"),
}


@pytest.mark.parametrize("name", NOT_REGULAR)
def test_programs_that_are_not_regular_have_a_proven_witness(name: str) -> None:
    pytest.importorskip("z3")
    text, alphabet, accept, shown = NOT_REGULAR[name]
    program = c_rasp.parse(text, alphabet=alphabet, accept=accept)
    witness = find_witness(program)
    assert witness is not None
    assert str(witness) == shown
    assert check(program, witness)
    found = {verdict.key: verdict.holds for verdict in verdicts(program, witness)}
    assert (found["regular"], found["masked_UHAT"], found["softmax"]) == (False, False, True)


@pytest.mark.skipif(not FUZZ, reason="takes half a minute; try make fuzz")
def test_three_powers_are_found() -> None:
    program = NAMED["anbncn"].language().program
    assert program is not None
    assert find_witness(program, seconds=120) == NAMED["anbncn"].witness


@pytest.mark.parametrize("name", REGULAR)
def test_regular_programs_have_no_witness(name: str) -> None:
    text, alphabet, accept = REGULAR[name]
    assert find_witness(c_rasp.parse(text, alphabet=alphabet, accept=accept), seconds=2) is None


def test_a_false_witness_is_not_proven() -> None:
    pytest.importorskip("z3")
    from locum.languages.non_regular import _prove
    from locum.languages.solver import machine_of

    machine = machine_of(CounterAutomaton.parse(DYCK))
    right = PumpingWitness((), ("(",), (), (")",), ())
    end = 1e9
    assert _prove(machine, right, end)
    for wrong in (
        PumpingWitness((), ("(",), (), (")",), (), ">=", 0),
        PumpingWitness(("(",), ("(",), (), (")",), ()),
        PumpingWitness((), ("(", ")"), (), (")",), ()),
        PumpingWitness((), ("(",), (), (")",), (), z=(")",)),
    ):
        assert not _prove(machine, wrong, end)


# Counter automata -----------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.text("()", max_size=10))
def test_a_counter_automaton_counts(word: str) -> None:
    assert CounterAutomaton.parse(DYCK).accepts(word) == NAMED["dyck-1"].plain(word)


def test_the_first_transition_that_holds_is_taken() -> None:
    text = 'start q\naccept r\nq "a" if n >= 2 -> r, n = 0\nq "a" "b" -> q, n + 1\nr "a" -> r, n - 1'
    automaton = CounterAutomaton.parse(text)
    assert [w for w in ("aa", "aab", "aba", "abaa", "bbab") if automaton.accepts(w)] == ["aba", "abaa"]
    assert automaton.trace("aba")[-1] == {"symbol": "a", "state": "r", "counters": {"n": 0}}


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ('q "a" => q', 1, 7, "expected a symbol in quotes, got '='"),
        ('q "a" -> q, n', 1, 14, "expected a change, such as depth + 1"),
        ('accept p\nq "a" -> q', 1, 8, "expected a state of a transition (q), got p"),
        ('start q\nstart q\nq "a" -> q', 2, 1, "expected one start state"),
        ('q "a" -> q, n + 1, n - 1', 1, 20, "expected one change of each counter, got a second"),
        ('q "a" -> q, n + 99999999', 1, 17, "expected an integer of at most 1,000,000"),
        ("// nothing", 1, 1, "expected a transition"),
        ('q "" -> q', 1, 3, "expected a symbol in quotes"),
    ],
)
def test_errors_have_line_and_column(text: str, line: int, column: int, problem: str) -> None:
    with pytest.raises(InputError) as raised:
        CounterAutomaton.parse(text)
    assert str(raised.value).startswith(f"counter automaton, line {line}, column {column}: {problem}")


_EQUAL = """accept q if n == 0
q "a" -> q, n + 1
q "b" -> q, n - 1
"""


def test_bounded_counters_define_a_regular_language() -> None:
    text = """
    accept q if n == 0
    q "a" if n < 3 -> q, n + 1
    q "a" -> q, n = 0
    q "b" -> q
    """
    found = classify(CounterAutomaton.parse(text))
    assert found.automaton == language("(b*ab*ab*ab*a)*b*")
    assert (found.star_free, found.commutative) == (False, True)
    # Rejecting states are one state, whatever their counters are.
    rejecting = CounterAutomaton.parse('accept q\nq "a" -> p, n + 5\np "b" -> p, n - 5', alphabet="ab")
    assert rejecting.finite_automaton() is None
    assert CounterAutomaton.parse('accept q\nq "a" -> q\nq "b" if n > 0 -> q').finite_automaton() == (
        language("a*", "ab")
    )
    with pytest.raises(LimitError, match="undecided whether this counter automaton"):
        classify(CounterAutomaton.parse(DYCK))


def test_unbounded_counters_can_define_a_regular_language() -> None:
    pytest.importorskip("z3")
    text = """
    accept p if n >= 0
    accept q
    p "a" -> p, n + 1
    p "b" if n > 0 -> q, n - 3
    q "a" "b" -> q
    """
    automaton = CounterAutomaton.parse(text)
    assert automaton.finite_automaton() is None
    assert classify(automaton).automaton == language("a*+aa*b(a+b)*")
    data = json_of("language", "classify", "--from", "counter", text, "--program")
    assert (data["R"], data["dialect"]) == (True, "C-RASP")


def test_the_program_of_a_user_is_not_attributed_to_a_paper() -> None:
    for text in ('accepted = #"a" > #"b"', '#import periodic\naccepted = i % 3 == 1 && #"a" > #"b"'):
        found = [each for each in verdicts(c_rasp.parse(text), None) if "this program" in each.reason]
        assert found
        assert not any(verdict.theorem for verdict in found)


def test_a_program_with_positions_is_evidence_for_average_hard_attention() -> None:
    program = c_rasp.parse('#import periodic\naccepted = i % 3 == 1 && #"a" > #"b"')
    found = {verdict.key: verdict.holds for verdict in verdicts(program, None)}
    assert (found["AHAT"], found["softmax"], found["C-RASP"]) == (True, None, None)


def test_counter_automata_are_compared_with_programs() -> None:
    pytest.importorskip("z3")
    program = NAMED["dyck-1"].language()
    assert equivalent(CounterAutomaton.parse(DYCK), program).verdict == "equivalent"
    other = CounterAutomaton.parse(DYCK.replace(" if depth > 0", ""))
    assert equivalent(other, program).word == (")", "(")


# The command line -----------------------------------------------------------------------------


def test_the_command_line_classifies_and_runs() -> None:
    pytest.importorskip("z3")
    data = json_of("language", "classify", EXAMPLES / "anbn.counter")
    assert data["witness"]["text"] == "aᵐbⁿ is accepted if and only if m = n"
    assert (data["regular"], data["star_free"], data["finite"], data["C-RASP"]) == (
        False, False, False, None,
    )  # fmt: skip
    named = json_of("language", "classify", "--from", "name", "dyck-2")
    assert named["theorems"]["UHAT"] == "Hao, Angluin & Frank 2022"
    assert json_of("language", "classify", "--from", "name", "parity")["star_free"] is False
    assert len(json_of("language", "names")["languages"]) == len(NAMED)
    assert json_of("run", EXAMPLES / "anbn.counter", "--input", "aabb")["verdict"] == "accepted"
    assert "Rejected." in command_line("run", EXAMPLES / "anbn.counter", "--input", "aab").stdout
    assert "try --input WORD" in refused("run", EXAMPLES / "anbn.counter")
    assert "expected the name of a language" in refused("language", "classify", "--from", "name", "x")
    compiling = ("compile", "--language", EXAMPLES / "anbn.counter", "--length", "4")
    assert "got a counter automaton" in refused(*compiling)


def test_options_that_do_not_apply_are_rejected(tmp_path: Path) -> None:
    drawing = str(tmp_path / "automaton.svg")
    for source in (("--from", "name", "dyck-2"), ("--from", "counter", _EQUAL)):
        refusal = refused("language", "classify", *source, "-o", drawing)
        assert "--output: expected a regular language" in refusal
    for name in ("parity", "dyck-2"):
        refusal = refused("language", "classify", "--from", "name", name, "--alphabet", "abc")
        assert f"--alphabet: expected no alphabet for {name}" in refusal
    refusal = refused("language", "equivalent", "--from", "name", "majority", "dyck-1")
    assert "--alphabet" not in refusal


def test_programs_of_languages_that_are_not_regular_are_shown() -> None:
    data = json_of("language", "classify", "--from", "name", "anbncn", "--program")
    assert c_rasp.parse(data["program"], accept="end").accepts("abc")
    assert (data["dialect"], data["depth"]) == ("C-RASP", 2)
    data = json_of("language", "classify", "--from", "name", "dyck-2", "--program")
    assert (data["program"], data["dialect"]) == (None, None)
    assert data["witness"]["text"].startswith('"("ᵐ")"ⁿ')


def test_a_language_without_a_definition_is_rejected() -> None:
    with pytest.raises(InputError, match="dyck-2: expected a language with an automaton"):
        NAMED["dyck-2"].language()
    assert isinstance(NAMED["a5"].language().definition, DFA)
