"""``answer``: what the page asks for, and what is refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from locum.execution import run as run_program
from locum.interface.playground import answer
from locum.interface.playground.answer import ACTIONS
from locum.interface.playground.example_programs import FIRST_STEPS, examples
from locum.interface.playground.exercises import EXERCISES
from locum.interface.playground.program_pane import Program
from locum.interface.playground.requests import tokens
from locum.interface.playground.solutions import SOLUTIONS
from locum.interface.playground.universal_pane import PRESETS
from locum.interface.playground.weights_pane import MAX_UNITS, agrees
from locum.rasp import Session
from locum.simulators import Attention, UniversalSimulator

REVERSE = FIRST_STEPS["reverse"][1]


def ask(action: str, **fields: Any) -> dict[str, Any]:
    reply = answer({"action": action, **fields})
    assert reply["ok"], reply
    json.dumps(reply, allow_nan=False)
    return reply


def refused(action: str, **fields: Any) -> str:
    reply = answer({"action": action, **fields})
    assert not reply["ok"]
    return str(reply["error"])


# Programs -----------------------------------------------------------------------------------------


def test_run_gives_each_statement_its_line_and_its_values() -> None:
    source = (
        "# two\nx = indices\n  + 1;\nfor i in range(2) {\n  x = x * 2;\n}\ny = x + 0.5; z = y > 2;\n"
    )
    reply = ask("run", source=source, input="abc")
    assert [(s["first"], s["line"], s["kind"]) for s in reply["statements"]] == [
        (2, 3, "s-op"),
        (4, 6, "none"),
        (7, 7, "s-op"),
        (7, 7, "s-op"),
    ]
    assert reply["statements"][2]["values"] == ["4.5", "8.5", "12.5"]
    assert reply["statements"][3]["type"] == "bool"
    assert reply["sops"] == ["x", "y", "z"]


def test_mistakes_have_lines_and_columns_of_the_whole_text() -> None:
    source = "a = 1;\nb = indices +\n  ;\nc = unknown;\nd = a +"
    reply = ask("run", source=source, input="abc")
    assert [(e["line"], e["column"]) for e in reply["errors"]] == [(3, 3), (4, 5), (5, 8)]


def test_values_are_those_of_dense_execution_on_every_example() -> None:
    for example in examples():
        program = Program(example["source"], tokens(example["input"]))
        reply = ask("run", source=example["source"], input=example["input"])
        for number, statement in enumerate(program.statements):
            if statement.result.node is not None and statement.result.kind == "s-op":
                direct = run_program(statement.result.node, program.tokens)
                shown = [str(value) for value in reply["statements"][number]["values"]]
                assert len(shown) == len(direct)
                assert statement.result.values == direct


def test_draw_shows_every_head_and_the_statements_it_comes_from() -> None:
    reply = ask("draw", source=REVERSE, input="hello")
    assert reply["output"] == list("olleh")
    assert [len(layer) for layer in reply["layers"]] == [1, 1]
    (flip,) = reply["layers"][1]
    assert flip["label"] == "flip"
    assert flip["statements"] == [0, 1]
    assert flip["pattern"] == np.eye(5, dtype=int)[::-1].tolist()
    assert flip["values"][0]["gives"] == list("olleh")


def test_compile_links_slots_and_heads_to_statements() -> None:
    reply = ask("compile", source=REVERSE, input="hello")
    network = reply["network"]
    assert reply["run"]["agrees"]
    assert reply["run"]["difference"] == 0
    slots = {stay["label"]: stay["statements"] for stays in network["slots"] for stay in stays}
    assert slots["reverse"] == [1]
    assert slots["length"] == [0]
    assert [head["statements"] for head in network["heads"][-1]] == [[0, 1]]
    assert network["inputs"][0]["answer"] == list("olleh")


@pytest.mark.parametrize("name", FIRST_STEPS)
def test_first_steps_run_and_compile(name: str) -> None:
    typed, source = FIRST_STEPS[name]
    assert not ask("run", source=source, input=typed)["errors"]
    causal = name.startswith("causal")
    assert ask("compile", source=source, input=typed[:5], causal=causal)["run"]["agrees"]


@pytest.mark.parametrize("attention", ["hard", "softmax"])
@pytest.mark.parametrize("feed_forward", ["exact", "relu", "gelu"])
def test_scores_are_those_that_make_the_pattern(attention: str, feed_forward: str) -> None:
    network = ask(
        "compile", source=REVERSE, input="hello", attention=attention, feed_forward=feed_forward
    )["network"]
    shown = network["inputs"][0]
    for patterns, scores in zip(shown["patterns"], shown["scores"], strict=True):
        for sparse, rows in zip(patterns, scores, strict=True):
            pattern = np.zeros(np.prod(sparse["shape"]))
            pattern[sparse["at"]] = sparse["values"]
            raw = np.array(rows)
            if attention == "hard":
                chosen = (raw == raw.max(axis=1, keepdims=True)).astype(float)
            else:
                chosen = np.exp(raw - raw.max(axis=1, keepdims=True))
            chosen /= chosen.sum(axis=1, keepdims=True)
            assert np.abs(chosen - pattern.reshape(chosen.shape)).max() < 1e-5


def test_masked_scores_are_nothing() -> None:
    source = FIRST_STEPS["causal: seen so far"][1]
    shown = ask("compile", source=source, input="ab", causal=True)["network"]["inputs"][0]
    (rows,) = next(layer for layer in shown["scores"] if layer)
    assert [[score is None for score in row] for row in rows] == [
        [k > q for k in range(len(rows))] for q in range(len(rows))
    ]


def test_units_add_up_to_what_a_slot_gets() -> None:
    network = ask("compile", source=REVERSE, input="hello")["network"]
    written = [
        (slot, layer, text) for layer, feed in enumerate(network["feeds"]) for slot, text in feed
    ]
    assert written
    for slot, layer, formula in written:
        units = network["units"][layer][slot]
        result = re.fullmatch(rf"s{slot} \+?= (\d+) relu units? on s.*", formula)
        assert result
        assert len([unit for unit in units if "relu(" in unit]) == min(int(result[1]), MAX_UNITS)
    exact = ask("compile", source=REVERSE, input="hello", feed_forward="exact")["network"]
    assert not any(exact["units"])


def test_equal_numbers_of_other_types_are_other_tokens() -> None:
    reply = ask("compile", source="x = tokens_str;", input="[1, 1.0, 2]")
    assert reply["run"]["output"] == reply["run"]["expected"] == ["1", "1.0", "2"]
    reply = ask("compile", source="x = tokens_asis;", input="[1, 1.0, 2]")
    assert reply["run"]["output"] == ["1.0", "1.0", "2.0"]
    assert reply["run"]["agrees"]


def test_a_network_is_held_to_its_own_bound() -> None:
    source = "x = exp(tokens_float);"
    options = {"numeric": True, "low": -1, "high": 1, "tolerance": 0.01, "length": 3}
    reply = ask("compile", source=source, input="[0.5, 0.25]", **options)
    assert 1e-6 < reply["run"]["difference"] <= 0.01
    assert reply["run"]["agrees"]
    assert not agrees(1.02, 1.0, 0.01)
    assert agrees(1, True, 0.01)  # the answers of a network have one type
    assert not agrees("1", 1, 0.01)
    assert not agrees(1.001, 1.0, float("inf"))


def test_apply_compares_the_network_with_the_program() -> None:
    reply = ask("apply", source=REVERSE, input="hello", inputs=["heo", '["l", "o"]'], length=5)
    assert [run["output"] for run in reply["runs"]] == [list("oeh"), ["o", "l"]]
    assert all(run["agrees"] for run in reply["runs"])


def test_other_inputs_are_drawn_from_what_the_network_is_for() -> None:
    reply = ask("apply", source="x = tokens_asis;", input="[1, 2.5]", others=9, seed=4, length=3)
    assert {token for run in reply["runs"] for token in run["input"]} == {"1", "2.5"}
    assert {len(run["input"]) for run in reply["runs"]} == {1, 2, 3}
    assert all(run["agrees"] for run in reply["runs"])
    brackets = ask("apply", source="x = tokens;", input="[()]", others=2, fixed=True, length=4)
    assert [len(run["input"]) for run in brackets["runs"]] == [4, 4]
    numbers = ask(
        "apply", source="x = tokens_float * 2;", input="[7]", others=3, numeric=True, low=5, high=8
    )
    assert all(5 <= float(token) <= 8 for run in numbers["runs"] for token in run["input"])


def test_a_program_with_its_own_example_says_so() -> None:
    assert ask("run", source='set example "xy"\nx = tokens;', input="abc")["own"] is True
    assert ask("run", source="x = tokens;", input="abc")["own"] is False


def test_numbers_keep_their_type() -> None:
    kinds = [s["type"] for s in ask("run", source="tokens_asis + 0;", input="[1.0, 2.0]")["statements"]]
    assert kinds == ["float"]


def test_analyse_counts_layers_and_heads() -> None:
    rows = ask("analyse", source=REVERSE, input="hello")["programs"]
    assert rows[-1] == {"name": "reverse", "statements": [1], "layers": 2, "heads": [1, 1], "width": 1}


# U ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", ["paper", "fetch", "width-1"])
def test_explain_is_that_of_u(recipe: str) -> None:
    generator = np.random.default_rng(3)
    X, A, V = (generator.normal(size=shape) for shape in ((2, 3), (3, 3), (3, 1)))
    reply = ask("explain", X=X.tolist(), A=A.tolist(), V=V.tolist(), recipe=recipe, base=2.718)
    T = Attention(A, V)
    U = UniversalSimulator.of(T, 2, recipe=recipe, base=2.718)
    steps = list(U.explain(T, X))
    assert [s["name"] for s in reply["steps"]] == [s.name for s in steps]
    for shown, step in zip(reply["steps"], steps, strict=True):
        assert shown["matrix"] == step.matrix.tolist()
        assert shown["error"] == step.error
    assert [token["value"] for token in reply["tokens"]] == U.encode(T, X).tolist()


def test_temperature_divides_the_scores_and_zero_is_hard() -> None:
    X, A, V = [[1.0], [3.0]], [[1.0]], [[1.0]]
    warm = ask("explain", X=X, A=A, V=V, temperature=2.0)["steps"][-1]["matrix"]
    assert np.allclose(warm, Attention([[0.5]], V)(np.array(X)))
    hard = ask("explain", X=X, A=A, V=V, temperature=0)["steps"][-1]["matrix"]
    assert hard == [[3.0], [3.0]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"temperature": 1e-320}, "temperature: expected 0, or a number"),
        ({"temperature": float("nan")}, "temperature: expected 0, or a number"),
        ({"temperature": -0.5}, "temperature: expected 0, or a number"),
        ({"base": 0}, "base: expected a number"),
        ({"base": "e"}, "base: expected a number"),
        ({"X": []}, "X: expected a matrix"),
        ({"X": [[]]}, "X: expected a matrix"),
        ({"X": [[1e7]]}, "X: expected a matrix"),
        ({"X": [[None]]}, "X: expected a matrix"),
        ({"X": [[1e6]], "recipe": "paper"}, "exp"),
    ],
)
def test_u_refuses_numbers_that_it_would_get_wrong(change: dict[str, Any], words: str) -> None:
    inputs = {"X": [[1.0]], "A": [[1.0]], "V": [[1.0]], **change}
    assert words in refused("explain", **inputs)


@pytest.mark.parametrize("recipe", ["fetch", "tiled"])
def test_u_is_right_at_the_largest_numbers(recipe: str) -> None:
    X, A, V = [[1e6, -1e6], [1e6, 1e6]], [[1e6, 0.0], [0.0, 1e6]], [[1e6, 0.0], [1.0, 1e6]]
    for temperature in (0, 1e-3, 1.0, 1e3):
        reply = ask("explain", X=X, A=A, V=V, recipe=recipe, temperature=temperature)
        assert reply["error"] <= 1e-9 * 1e12


def test_the_trained_head_does_what_it_was_trained_for() -> None:
    reply = ask("explain", **PRESETS["A trained head"])
    assert np.abs(np.array(reply["steps"][-1]["matrix"]) - [0.9, 0.4]).max() < 0.1
    assert reply["error"] < 1e-14


# Exercises ----------------------------------------------------------------------------------------


def test_there_are_ten_exercises_from_reverse_to_brackets_of_two_kinds() -> None:
    assert len(EXERCISES) == 10
    assert [*EXERCISES][:: len(EXERCISES) - 1] == ["reverse", "two_kinds"]
    assert EXERCISES.keys() == SOLUTIONS.keys()


@pytest.mark.parametrize("key", EXERCISES)
def test_an_exercise_is_solved_and_its_starter_is_not(key: str) -> None:
    assert ask("exercise", exercise=key, source=SOLUTIONS[key])["solved"]
    reply = ask("exercise", exercise=key, source=EXERCISES[key].starter)
    wrong = reply["counterexample"]
    assert not reply["solved"]
    assert wrong["values"] != wrong["expected"]


@pytest.mark.parametrize(
    ("key", "source"),
    [
        ("palindrome", SOLUTIONS["palindrome"] + "\nn = 1 if palindrome else 0;"),
        ("count", SOLUTIONS["count"] + "\nbig = {} * 10 ^ 300 * 10 ^ 300;"),
        ("reverse", SOLUTIONS["reverse"] + "\nr = reverse if length < 5 else tokens;"),
    ],
)
def test_a_wrong_solution_is_not_accepted(key: str, source: str) -> None:
    name = re.findall(r"^(\w+) =", SOLUTIONS[key], re.MULTILINE)[-1]
    reply = answer({"action": "exercise", "exercise": key, "source": source.replace("{}", name)})
    assert not (reply["ok"] and reply["solved"])
    assert "bug" not in str(reply.get("error"))


def test_brackets_are_checked_at_the_depth_where_shortcuts_fail() -> None:
    """Right on all words of up to four brackets: it looks at the bracket before, and at the first."""
    source = SOLUTIONS["two_kinds"] + (
        "\nfirst = aggregate(select(indices, 0, ==), tokens);\n"
        "last = aggregate(select(indices, length - 1, ==), tokens);\n"
        'pair = (first == "(" and last == ")") or (first == "[" and last == "]");\n'
        "shortcut = balanced if length < 6 else pair;"
    )
    name = re.findall(r"^(\w+) =", SOLUTIONS["two_kinds"], re.MULTILINE)[-1]
    reply = ask("exercise", exercise="two_kinds", source=source.replace("balanced if", f"{name} if"))
    assert not reply["solved"]
    assert len(reply["counterexample"]["input"]) == 6
    assert reply["checked"] > 340


@pytest.mark.parametrize("typed", ["[1e400]", "[null, 1]", "[[1]]", "[NaN]"])
def test_a_list_of_other_things_is_not_read_as_characters(typed: str) -> None:
    assert "expected a list of texts, finite numbers" in refused("run", source="x = 1;", input=typed)


def test_an_input_too_long_to_compile_is_refused() -> None:
    words = refused("compile", source="x = indices;", input="ab" * 20)
    assert "at most 32 tokens to compile, got 40" in words


def test_the_library_does_not_solve_an_exercise() -> None:
    source = "sorted = sort(tokens, tokens);"
    assert "does not use the library function sort" in refused(
        "exercise", exercise="sort", source=source
    )
    assert ask("exercise", exercise="sort", source=f"# sort(x)\n{SOLUTIONS['sort']}")["solved"]


def test_the_counterexample_is_the_shortest() -> None:
    source = (
        'right = aggregate(select(indices + 1, indices, ==), tokens, "_") if length < 3 else tokens;'
    )
    wrong = ask("exercise", exercise="shift", source=source)["counterexample"]
    assert len(wrong["input"]) == 3


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({}, "action: expected one of"),
        ({"action": "eval"}, "action: expected one of"),
        ({"action": ["run"]}, "action: expected one of"),
        ({"action": "run", "source": "x;"}, "input: expected a text"),
        ({"action": "run", "source": 3, "input": "a"}, "source: expected a text"),
        ({"action": "run", "source": "x" * 20_001, "input": "a"}, "at most 20,000 characters"),
        ({"action": "run", "source": "x;", "input": "a", "folders": ["/"]}, "got 'folders'"),
        ({"action": "run", "source": "x;", "input": ""}, "at least one token"),
        ({"action": "run", "source": "x;", "input": "a" * 65}, "at most 64 tokens"),
        ({"action": "run", "source": "x;", "input": "\ud800"}, "input: expected a text"),
        ({"action": "run", "source": "x;", "input": '["\\ud800"]'}, "expected a list of texts"),
        ({"action": "compile", "source": "x;", "input": "a", "length": 1000}, "integer from 1 to 32"),
        ({"action": "compile", "source": "x;", "input": "a", "length": True}, "integer from 1 to 32"),
        ({"action": "compile", "source": "x;", "input": "a", "names": "x"}, "; try name"),
        ({"action": "compile", "source": REVERSE, "input": "ab", "low": 1}, "expected both"),
        ({"action": "explain", "X": [[1]], "A": [[1]], "V": [[float("nan")]]}, "V: expected a matrix"),
        ({"action": "explain", "X": [[1, 2]], "A": [[1]], "V": [[1]]}, "X: expected 1×1, got 1×2"),
        ({"action": "explain", "X": [[1]] * 7, "A": [[1]], "V": [[1]]}, "X: expected a matrix"),
        ({"action": "exercise", "exercise": "none", "source": ""}, "exercise: expected reverse"),
    ],
)
def test_bad_requests_are_refused_by_name(request_: dict[str, Any], words: str) -> None:
    reply = answer(request_)
    assert not reply["ok"]
    assert words in reply["error"]


def test_every_action_refuses_unknown_fields() -> None:
    for action in ACTIONS:
        assert "got 'surprise'" in refused(action, surprise=1)


def test_no_file_can_be_loaded_and_no_path_is_told() -> None:
    for name in ("/etc/passwd", "../README", "tests/conftest", "library"):
        reply = ask("run", source=f'load "{name}";', input="a")
        (error,) = reply["errors"]
        assert "/src/" not in error["message"]
    assert "cannot draw" in ask("run", source="draw(tokens);", input="a")["errors"][0]["message"]


def test_the_session_has_no_folders() -> None:
    assert Program("x = 1;", "a").session.folders == []
    assert Session(folders=()).folders == []


def test_nothing_for_terminals_is_loaded() -> None:
    code = (
        "import sys, locum.interface.playground.answer\n"
        "heavy = ('click', 'rich', 'prompt_toolkit', 'torch', 'flint')\n"
        "print(*(module for module in heavy if module in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("typed", ["[0.99999999999999999, 1]", "[1e-400]", "[\n0.30000000000000001]"])
def test_tokens_keep_all_their_digits(typed: str) -> None:
    words = refused("run", source="x = tokens;", input=typed)
    assert words.startswith(
        "expected a number that floats hold to its last digit (15 digits always are), got "
    )
    assert "; try " in words
    assert "to its last digit" in refused(
        "compile", source="x = tokens;", input="[1]", vocabulary=typed.replace("]", ", 1]")
    )
    assert ask("run", source="x = tokens;", input="[0.10, 1e0]")["input"] == ["0.1", "1.0"]
