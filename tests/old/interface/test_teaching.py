"""Exercises of teachers, interventions and dialects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from locum.interface.playground.exercises import EXERCISES
from locum.interface.playground.solutions import SOLUTIONS
from tests.old.interface.test_answer import REVERSE, ask, refused

DOUBLE: dict[str, Any] = {
    "title": "Occurrences",
    "task": "Count the occurrences of each token.",
    "reference": "times = selector_width(select(tokens, tokens, ==));",
    "example": "banana",
    "without": ["selector_width"],
}
#: Counts without selector_width: the share of position 0 among equal keys and itself, inverted.
BY_HAND = (
    "same = select(tokens, tokens, ==);\n"
    "both = same or select(indices, 0, ==);\n"
    "is_first = aggregate(select(indices, 0, ==), tokens) == tokens;\n"
    "n = round(1 / aggregate(both, indicator(indices == 0)));\n"
    "times = n if is_first else n - 1;\n"
)


# Exercises of teachers -----------------------------------------------------------------------------


def test_a_custom_exercise_is_checked_against_its_reference() -> None:
    wrong = ask("exercise", exercise=DOUBLE, source="c = indices;")
    assert not wrong["solved"]
    assert wrong["counterexample"]["expected"] == ["1"]
    reply = ask("exercise", exercise=DOUBLE, source=BY_HAND)
    assert reply["solved"]
    assert reply["possible"] == {"layers": 1, "heads": 2}
    words = refused("exercise", exercise=DOUBLE, source=DOUBLE["reference"])
    assert "does not use the library function selector_width" in words


def test_a_description_has_no_reference() -> None:
    described = ask("describe", exercise=DOUBLE)["exercise"]
    assert described["inputs"] == 121
    assert DOUBLE["reference"] not in json.dumps(described)


def test_a_solution_is_shown_on_request_or_after_solving() -> None:
    assert ask("solution", exercise="shift", source="x = ;")["source"] == SOLUTIONS["shift"]
    assert "after you have solved it" in refused("solution", exercise=DOUBLE, source="c = indices;")
    assert ask("solution", exercise=DOUBLE, source=BY_HAND)["source"] == DOUBLE["reference"]
    shown = ask("solution", exercise={**DOUBLE, "on_request": True}, source="c = indices;")
    assert shown["source"] == DOUBLE["reference"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"reference": "x = ;"}, "reference: line 1, column 5"),
        ({"reference": "x = 3;"}, "reference: there is no s-op yet"),
        ({"without": ["indices"]}, "expected names of library functions, got 'indices'"),
        ({"longest": 10}, "expected at most 2,000 inputs, got 88,572"),
        ({"title": "t" * 101}, "at most 100 characters"),
        ({"title": ""}, "title: expected a text that is not blank, got ''"),
        ({"task": " \n"}, "task: expected a text that is not blank"),
        ({"secret": 1}, "fields of an exercise: expected title"),
        ({"inputs": ["a"] * 21}, "a list of at most 20 texts"),
    ],
)
def test_a_wrong_exercise_is_rejected(change: dict[str, object], words: str) -> None:
    assert words in refused("describe", exercise=DOUBLE | change)


def test_a_reference_without_a_value_is_named_with_the_input() -> None:
    words = refused("describe", exercise=DOUBLE | {"reference": "x = 1 / (length - 3);"})
    assert "reference: expected a value for each input, got none for b b b" in words


def test_forbidden_functions_need_a_program_in_rasp() -> None:
    source = '// C-RASP\nx = #"a" > #"b"\n'
    assert "expected a program in RASP" in refused("exercise", exercise=DOUBLE, source=source)


# Interventions -------------------------------------------------------------------------------------


def test_an_ablated_head_changes_the_answer() -> None:
    network = {"source": REVERSE, "input": "hello"}
    assert ask("intervene", **network)["wrong"] == 0
    reply = ask("intervene", **network, ablated=["1.0"])
    assert reply["output"] != reply["expected"]
    assert reply["wrong"] > reply["tried"] / 2
    assert reply["places"].count(False) > 0
    assert "(0.0, 1.0), got '2.0'" in refused("intervene", **network, ablated=["2.0"])


def test_temperature_changes_softmax_heads_only() -> None:
    network = {"source": REVERSE, "input": "hello"}
    assert "hard attention" in refused("intervene", **network, temperature=2.0)
    soft = ask("intervene", **network, attention="softmax", temperature=1e5)
    assert soft["wrong"] > 0
    flat = soft["patterns"][1][0][0]
    assert max(flat) < 0.5


# Dialects ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "typed", "lines", "values"),
    [
        ('// C-RASP\nmore = #"a" > #"b"\n', "aba", [2], "TFT"),
        ('// B-RASP\nodd = "a"\nnone =\n!odd\n', "ab", None, None),
        (
            '// B-RASP\nwas = rightmost[j < i,\n "a"(j)] true : false\nboth = was & "b"',
            "abb", [3, 4], "FTT",
        ),
        ("// LTL\nO a", "bab", [2], "FTT"),
    ],
)  # fmt: skip
def test_dialects_are_read_by_their_first_line(
    source: str, typed: str, lines: list[int] | None, values: str | None
) -> None:
    reply = ask("run", source=source, input=typed)
    if lines is None:
        assert reply["errors"][0]["line"] == 3
        return
    assert [statement["line"] for statement in reply["statements"]] == lines
    assert reply["statements"][-1]["values"] == list(values or "")
    assert ask("compile", source=source, input=typed)["run"]["agrees"]
    heads = [head for layer in ask("draw", source=source, input=typed)["layers"] for head in layer]
    assert heads
    assert all(head["statements"] for head in heads)


def test_an_end_marker_is_part_of_the_input() -> None:
    source = '// C-RASP\n#accept end\nx = #"a" == #"b"\n'
    assert "try ab$" in refused("run", source=source, input="ab")
    assert ask("run", source=source, input="ab$")["statements"][0]["values"] == list("FTT")
    assert "symbols for C-RASP" in refused("run", source=source, input="[1, 2]")
    # If a program contains no symbol, the end marker of the input is not in its alphabet.
    no_symbol = "// C-RASP\n#accept end\nx = #true > 2\n"
    assert ask("run", source=no_symbol, input="ab$")["statements"][0]["values"] == list("FFT")


def test_every_input_of_a_dialect_is_checked() -> None:
    ends = '// C-RASP\n#accept end\nx = #"a" == #"b"\n'
    exercise = {"title": "x", "task": "x", "reference": ends, "example": "ab$"}
    assert "got none for a: expected an input that ends" in refused("describe", exercise=exercise)


def test_exercises_have_a_solution_of_a_known_size() -> None:
    sizes = {key: ask("exercise", exercise=key, source=SOLUTIONS[key])["size"] for key in EXERCISES}
    assert sizes["new"] == {"layers": 1, "heads": 1}
    assert sizes["balanced"] == {"layers": 2, "heads": 3}
