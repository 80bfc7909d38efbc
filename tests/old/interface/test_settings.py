"""Settings: each is used, or refused in words; what a request leaves out is what the page has."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from locum.interface.playground.answer import ACTIONS
from locum.interface.playground.example_programs import FIRST_STEPS
from tests.old.interface.test_answer import ask, refused

U: dict[str, Any] = {"X": [[1, 0.5], [0, 1]], "A": [[1, 0], [0.5, 1]], "V": [[1], [2]]}
REVERSE = FIRST_STEPS["reverse"][1]


@pytest.mark.parametrize(
    ("X", "A"),
    [
        ([[0.1, 0.2], [0.3, 0.0]], [[1, 1], [1, 1]]),
        ([[0.1], [0.7]], [[0.0]]),
        ([[1, 1], [0.3, 0.6], [0.7, 0.2]], [[0.1, 0], [0, 0.1]]),
        ([[1, 3], [1, 0], [0, 1 / 3]], [[0.1, 0], [0, 0.1]]),
    ],
)
@pytest.mark.parametrize("recipe", ["paper", "fetch"])
def test_hard_attention_keeps_the_ties_of_decimals_or_refuses(X: Any, A: Any, recipe: str) -> None:
    """Zeros tie in floats, too; sums such as 0.1 + 0.2 and 0.3 do not."""
    from locum.interface.playground import answer

    V = [[1.0]] * len(A)
    reply = answer({"action": "explain", "X": X, "A": A, "V": V, "recipe": recipe, "temperature": 0})
    if not reply["ok"]:
        assert "scores that floats can distinguish" in reply["error"]
        return
    exact = [[Fraction(repr(x)) for x in row] for row in X]
    a = [[Fraction(repr(x)) for x in row] for row in A]
    size = range(len(a))
    (weights,) = (step["matrix"] for step in reply["steps"] if step["name"] == "softmax")
    for q, query in enumerate(exact):
        row = [sum(query[i] * a[i][j] * key[j] for i in size for j in size) for key in exact]
        greatest = [score == max(row) for score in row]
        assert weights[q] == [is_one / sum(greatest) for is_one in greatest]


@pytest.mark.parametrize("recipe", ["fetch", "tiled"])
def test_large_scores_that_rounding_moves_are_refused_at_any_temperature(recipe: str) -> None:
    """Both keys tie, and U and the direct formula agreed that one wins: their error was 0."""
    inputs = {"X": [[100000.1, 200000.2], [300000.3, 0]], "A": [[999999.9] * 2] * 2, "V": [[1], [0]]}
    for temperature in (0, 0.001, 1):
        words = refused("explain", **inputs, recipe=recipe, temperature=temperature)
        assert "scores that floats can distinguish" in words
    small = inputs | {"A": [[1e-6] * 2] * 2}
    (weights,) = (
        step["matrix"]
        for step in ask("explain", **small, recipe=recipe, temperature=1)["steps"]
        if step["name"] == "softmax"
    )
    assert weights == [[pytest.approx(0.5, abs=1e-6)] * 2] * 2


def test_a_base_below_1_turns_the_order_of_scores_around() -> None:
    """The least scores win there, and rounding of these was not looked at: 0.2 was shown for 1/3."""
    inputs = {
        "X": [[1e6, 0], [999999.9999999999, 1], [0, 2]],
        "A": [[-1e4, 0], [0, 0]],
        "V": [[0], [1]],
    }
    words = refused("explain", **inputs, recipe="fetch", base=0.5, temperature=1)
    assert "scores that floats can distinguish" in words
    assert ask("explain", **U, recipe="fetch", base=0.5)["steps"]
    assert ask("explain", **U, recipe="fetch", base=2.718)["steps"]


@pytest.mark.parametrize(
    "again", ["x = 5;", 'x = "s";', "x = [1];", "x = [tokens];", "def x(a) { return a; }"]
)
def test_a_name_that_is_set_again_is_no_s_op_any_more(again: str) -> None:
    source = f"y = tokens;\nx = indices;\n{again}\n"
    assert ask("run", source=source, input="xyz")["sops"] == ["y"]
    assert "expected the name of an s-op of the program (y), got 'x'" in refused(
        "draw", source=source, input="xyz", name="x"
    )
    assert ask("run", source=source + "x = tokens;\n", input="xyz")["sops"] == ["y", "x"]


@pytest.mark.parametrize("after", ["5;", "x = length * 2;", "x = [1];"])
def test_out_is_the_last_value(after: str) -> None:
    reply = ask("run", source=f"y = tokens;\nindices + 1;\n{after}\n", input="abc")
    assert reply["sops"] == (["y", "x"] if "length" in after else ["y"])
    assert ask("run", source="y = tokens;\nindices + 1;\n", input="abc")["sops"] == ["y", "out"]


def test_ties_that_rounding_breaks_are_refused() -> None:
    inputs = {"X": [[0.1, 0.2], [0.3, 0.0]], "A": [[1, 1], [1, 1]], "V": [[1], [2]], "temperature": 0}
    assert "temperature: expected scores that floats can distinguish" in refused("explain", **inputs)
    assert ask("explain", **inputs | {"X": [[0.25, 0.5], [0.75, 0.0]]})["error"] == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"low": -1, "high": 1},
            "low and high: expected none, since the tokens are those of the vocabulary",
        ),
        ({"feed_forward": "exact", "tolerance": 0.1}, "tolerance: expected none"),
        ({"numeric": True, "vocabulary": "ab"}, "vocabulary: expected none for real-valued tokens"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(options: dict[str, Any], words: str) -> None:
    program = {"source": REVERSE, "input": "abc"}
    assert words in refused("compile", **program, **options)
    assert words in refused("apply", **program, **options)


def test_a_fixed_length_is_that_of_the_input() -> None:
    network = ask("compile", source=REVERSE, input="abc", fixed=True)["network"]
    assert dict(network["facts"])["takes"] == "3 tokens: a, b, c"


@pytest.mark.parametrize("typed", ["['a', 'b']", "[1, 2", '"hello', "[a, b]", ' ["a" 1]', "[1,]"])
def test_half_a_list_is_not_read_as_characters(typed: str) -> None:
    assert "expected a list of texts" in refused("run", source="x = tokens;", input=typed)
    assert "expected a list of texts" in refused(
        "compile", source=REVERSE, input="ab", vocabulary=typed
    )


def test_a_list_may_have_spaces_around_it() -> None:
    assert ask("run", source="x = tokens_int;", input=" [1, 2] ")["input"] == ["1", "2"]
    assert ask("run", source="x = tokens;", input=" a[1]")["input"] == list(" a[1]")


def test_what_is_left_out_has_the_defaults_that_the_page_is_told() -> None:
    defaults = ask("catalogue")["defaults"]
    assert defaults["universal"] == {"recipe": "paper", "base": None, "temperature": 1.0}
    assert (defaults["network"]["attention"], defaults["network"]["feed_forward"]) == ("hard", "relu")
    fields = ACTIONS["explain"].settings
    assert {n: f.default for n, f in fields.items() if n in defaults["universal"]} == defaults[
        "universal"
    ]
    for action in ("compile", "apply"):
        fields = ACTIONS[action].settings
        assert {n: f.default for n, f in fields.items() if n in defaults["network"]} == defaults[
            "network"
        ]
    assert ask("explain", **U) == ask("explain", **U, **defaults["universal"])
    program = {"source": REVERSE, "input": "abc"}
    assert ask("compile", **program) == ask("compile", **program, **defaults["network"])


def test_inputs_on_which_the_program_has_no_value_are_told() -> None:
    options = {"source": "x = 6 / (tokens_int - 1);", "input": "[2, 3]", "vocabulary": "[1, 2, 3]"}
    runs = ask("apply", **options, others=30, seed=1)["runs"]
    without = [run for run in runs if "1" in run["input"]]
    assert 0 < len(without) < len(runs)
    for run in runs:
        assert run["agrees"]
        assert (run["expected"] is None) == (run["output"] is None) == (run in without)
        assert ("division by zero" in run.get("problem", "")) == (run in without)
    assert "of the vocabulary (1, 2, 3), got 7" in refused("apply", **options, inputs=["[7]"])


@pytest.mark.parametrize("base", [None, 2])
def test_rows_whose_exponentials_are_all_0_name_the_recipe_that_helps(base: float | None) -> None:
    inputs: dict[str, Any] = {"X": [[100], [50]], "A": [[-1]], "V": [[1]], "base": base}
    assert "below −745 (for base e) they are 0" in refused("explain", **inputs, recipe="paper")
    assert ask("explain", **inputs, recipe="fetch")["error"] < 1e-10
