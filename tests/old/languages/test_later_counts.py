"""Counts of later positions and first-order formulas: their meaning, and which are decided."""

from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from locum.errors import InputError
from locum.languages import c_rasp, first_order
from locum.languages.automata import DFA
from locum.languages.classification import classify
from locum.languages.counting import counts_ahead
from locum.languages.equivalence import equivalent
from locum.languages.later_counts import without_later_counts
from locum.languages.named_languages import as_language, read
from tests.cli.commands import json_of, refused

MANY = settings().max_examples > settings.get_profile("default").max_examples
#: An even number of a's: an odd number of a's has one in the middle.
PARITY = 'middle = "a" && #"a" == #[j >= i] "a"\naccepted = #middle == 0'
RELATIONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
COMPARISONS = RELATIONS | {"==": operator.eq, "!=": operator.ne}

#: Whether a formula holds in a word at a position.
Meaning = Callable[[str, int], bool]


def words(longest: int, least: int = 0) -> Iterator[str]:
    for size in range(least, longest + 1):
        yield from map("".join, itertools.product("ab", repeat=size))


def random_formula(rng: random.Random, size: int, variable: str, depth: int) -> tuple[str, Meaning]:
    """Write a random first-order formula, with its meaning by definition."""
    kind = rng.random()
    if variable and (size == 0 or kind < 0.2):
        letter = rng.choice("ab")
        return f"{letter}({variable})", lambda word, at: word[at] == letter
    if size == 0:
        return "true", lambda word, at: True
    if kind < 0.3:
        text, holds = random_formula(rng, size - 1, variable, depth)
        return f"!({text})", lambda word, at: not holds(word, at)
    if kind < 0.5:
        one, first = random_formula(rng, size - 1, variable, depth)
        other, second = random_formula(rng, size - 1, variable, depth)
        if rng.random() < 0.5:
            return f"({one} & {other})", lambda word, at: first(word, at) and second(word, at)
        return f"({one} -> {other})", lambda word, at: not first(word, at) or second(word, at)
    inner = f"y{depth}"
    text, holds = random_formula(rng, size - 1, inner, depth + 1)
    quantifier = rng.choice(("exists", "forall", "maj"))
    guard = rng.choice(list(RELATIONS)) if variable and rng.random() < 0.7 else ""

    def quantified(word: str, at: int) -> bool:
        places = [j for j in range(len(word)) if not guard or RELATIONS[guard](j, at)]
        answers = [holds(word, place) for place in places]
        if quantifier == "maj":
            return 2 * sum(answers) >= len(answers)
        return any(answers) if quantifier == "exists" else all(answers)

    bound = f" {guard} {variable}" if guard else ""
    return f"{quantifier} {inner}{bound} ({text})", quantified


def test_random_formulas_mean_what_their_quantifiers_say() -> None:
    rng = random.Random(11)
    reduced = 0
    for _ in range(1000 if MANY else 25):
        text, holds = random_formula(rng, 4, "", 0)
        program = first_order.parse(text, alphabet="ab")
        language = as_language(program)
        decided = language.automaton is not None or language.reduced is not None
        for word in words(5 if MANY else 2):
            expected = holds(word, 0)
            assert program.accepts(word) == expected, (text, word)
            if decided:
                assert language.definition.accepts(word) == expected, (text, word)
        reduced += decided
    assert reduced > 5


def random_program(rng: random.Random, size: int) -> tuple[str, Meaning]:
    """Write a random program that compares single counts, with its meaning by definition."""
    kind = rng.random()
    if size == 0 or kind < 0.25:
        letter = rng.choice("ab")
        return f'"{letter}"', lambda word, at: word[at] == letter
    text, holds = random_program(rng, size - 1)
    if kind < 0.35:
        return f"!({text})", lambda word, at: not holds(word, at)
    factor, plus, limit = rng.choice((1, 2, -1)), rng.randrange(-1, 3), rng.randrange(3)
    symbol = rng.choice(list(COMPARISONS))
    ahead = rng.random() < 0.5

    def counted(word: str, at: int) -> bool:
        places = range(at, len(word)) if ahead else range(at + 1)
        number = sum(holds(word, place) for place in places)
        return bool(COMPARISONS[symbol](factor * number + plus, limit))

    where = "[j >= i] " if ahead else ""
    return f"({factor} * #{where}({text}) + {plus} {symbol} {limit})", counted


def test_random_programs_that_compare_single_counts_are_automata() -> None:
    rng = random.Random(3)
    made = 0
    for _ in range(1000 if MANY else 40):
        text, holds = random_program(rng, 3)
        accept = rng.choice(("last", "end"))
        program = c_rasp.parse(f"z = {text}", alphabet="ab", accept=accept)
        marker = "$" if accept == "end" else ""
        reduced = without_later_counts(program)
        for word in words(5 if MANY else 3, least=not marker):
            expected = holds(word + marker, len(word + marker) - 1)
            assert program.accepts(word) == expected, (text, word)
            assert reduced is None or reduced.accepts(word) == expected, (text, word)
        made += isinstance(reduced, DFA)
    assert made > 5


def test_later_counts_are_written_and_compiled() -> None:
    program = c_rasp.parse(PARITY, alphabet="ab")
    assert counts_ahead(program.sop.node)
    assert not program.causal
    again = c_rasp.parse(c_rasp.show(program), alphabet="ab")
    assert again.sop.node is program.sop.node
    model = program.compile(5)
    for size in range(1, 6):
        batch = list(words(size, least=size))
        expected = [word.count("a") % 2 == 0 for word in batch]
        assert program.accepts_by(model, batch) == expected
        assert [program.accepts(word) for word in batch] == expected
    with pytest.raises(InputError, match=r"expected == .* or >="):
        c_rasp.parse('z = #[j < i] "a" > 0')


def test_what_reduces_is_decided() -> None:
    at_answer = c_rasp.parse('z = #"a" + #[j >= i] "b" > #"b"', alphabet="ab")
    plain = c_rasp.parse('z = #"a" + (1 if "b" else 0) > #"b"', alphabet="ab")
    assert equivalent(at_answer, plain).verdict == "equivalent"
    formula = first_order.parse("forall x (b(x) -> forall y > x b(y))", alphabet="ab")
    assert equivalent(formula, "a*b*").verdict == "equivalent"
    assert classify(formula).r


def test_programs_that_do_not_reduce_are_compared_on_short_words() -> None:
    parity = c_rasp.parse(PARITY, alphabet="ab")
    different = equivalent(parity, "a*b*")
    assert different.word == ("a",)
    assert different.answers == (False, True)
    undecided = equivalent(parity, "b*(ab*ab*)*", seconds=0.5)
    assert (undecided.verdict, undecided.word) == ("undecided", None)


def test_the_command_line_reads_formulas_and_later_counts() -> None:
    data = json_of("language", "classify", "--from", "fo", "exists x (a(x) & forall y > x b(y))")
    assert (data["star_free"], data["R"]) == (True, True)
    found = json_of("language", "classify", "--from", "c-rasp", "--alphabet", "ab", PARITY)
    assert (found["AHAT"], found["regular"], found["star_free"]) == (True, None, None)
    free = refused("language", "classify", "--from", "fo", "a(x)")
    assert "expected a formula without free variables, got x" in free
    wrong = "exists x (exists y < x (a(x) & b(y)))"
    assert "expected a formula about y alone" in refused("language", "classify", "--from", "fo", wrong)


def test_a_reduced_program_is_run_and_compiled_as_it_is_written(tmp_path: Path) -> None:
    """The reduced program has the same value only where the answer is read."""
    path = tmp_path / "later.crasp"
    path.write_text('later = #[j >= i] "a"\nz = later > 1\n', encoding="utf-8")
    shown = json_of("run", str(path), "--input", "aab", "--alphabet", "ab")
    values = {each["name"]: each["values"] for each in shown["results"]}
    assert values == {"later": [2, 1, 0], "z": [True, False, False]}
    language = read(path, alphabet="ab")
    assert language.program is not None
    assert language.program.compile(3)("aab") == [True, False, False]
    assert equivalent(language, read("∅", alphabet="ab")).verdict == "equivalent"
