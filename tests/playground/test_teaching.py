"""Exercises of teachers, completion codes, tables, comparisons, interventions, files and dialects."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from docs.site.playground_glossary import script

from locum.interface.playground.exercises import EXERCISES
from locum.interface.playground.share import PAGE, fragment
from locum.interface.playground.solutions import SOLUTIONS
from locum.networks.transformer import load
from tests.cli.commands import command_line
from tests.playground.test_answer import REVERSE, ask, refused

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


def test_a_description_has_samples_and_no_reference() -> None:
    described = ask("describe", exercise=DOUBLE)["exercise"]
    assert described["samples"][0] == {"input": list("banana"), "expected": list("132323")}
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


# Completion codes ----------------------------------------------------------------------------------


def wrong_code() -> str:
    from locum.interface.playground.completion_codes import _checksum

    packed = fragment({"by": "Eve", "exercise": "new", "source": "x = tokens;"})[4:]
    return f"locum1.{packed}.{_checksum(packed)}"


def code_of(name: str, source: str = SOLUTIONS["new"], exercise: object = "new") -> str:
    return str(ask("hand_in", exercise=exercise, source=source, by=name)["code"])


def test_a_code_is_verified_by_running_its_program_again() -> None:
    code = code_of("Ada")
    verdict = ask("verify", code=f"  {code[:30]}\n{code[30:]} ")
    assert (verdict["by"], verdict["solved"], verdict["size"]) == (
        "Ada",
        True,
        {"layers": 1, "heads": 1},
    )
    assert "expected a program that solves" in refused(
        "hand_in", exercise="new", source="x = tokens;", by="Ada"
    )


@pytest.mark.parametrize("place", [0, 10, 30, -1])
def test_a_code_with_a_changed_character_is_rejected(place: int) -> None:
    code = code_of("Ada")
    other = "b" if code[place] != "b" else "c"
    characters = list(code)
    characters[place] = other
    assert "complete and unchanged" in refused("verify", code="".join(characters))


def test_a_code_with_a_wrong_program_is_not_solved() -> None:
    from locum.interface.playground.completion_codes import _checksum

    assert not ask("verify", code=wrong_code())["solved"]
    packed = fragment({"by": "E" * 101, "exercise": "new", "source": "x = tokens;"})[4:]
    problem = refused("verify", code=f"locum1.{packed}.{_checksum(packed)}")
    assert problem == "code: expected a name of at most 100 characters, got 101"


@pytest.mark.parametrize("packed", ["W10", "i64FAA", "AAAA"])
def test_a_code_without_an_object_is_rejected_as_a_code(packed: str) -> None:
    from locum.interface.playground.completion_codes import _checksum

    problem = refused("verify", code=f"locum1.{packed}.{_checksum(packed)}")
    assert problem.startswith("code: expected a completion code with an object in it, got 'locum1.")


def test_a_code_belongs_to_one_exercise() -> None:
    code = code_of("Ada", BY_HAND, DOUBLE)
    assert ask("verify", code=code, exercise=DOUBLE)["solved"]
    assert "got a code of a custom exercise" in refused("verify", code=code)
    easier = DOUBLE | {"longest": 1}
    assert "got a code of another exercise" in refused("verify", code=code, exercise=easier)
    assert "got a code of First occurrence?" in refused("verify", code=code_of("Ada"), exercise="sort")


def test_the_command_verifies_codes_and_finds_equal_programs(tmp_path: Path) -> None:
    codes = tmp_path / "codes.txt"
    renamed = SOLUTIONS["new"].replace("earlier", "before")
    codes.write_text(f"{code_of('Ada')}\n\n{code_of('Bob', renamed)}\nnonsense\n", encoding="utf-8")
    done = command_line("playground", "--verify", codes, "--json")
    rows = json.loads(done.stdout)["codes"]
    assert done.returncode == 1
    assert [row["solved"] for row in rows] == [True, True, False]
    assert [row["line"] for row in rows] == [1, 3, 4]
    assert rows[1]["same_as"] == "Ada"
    codes.write_text(code_of("Eve\n✓ line 9: Bob"), encoding="utf-8")
    assert len(command_line("playground", "--verify", codes).stdout.splitlines()) == 1
    codes.write_text(code_of("Cy", BY_HAND, DOUBLE), encoding="utf-8")
    link = "http://127.0.0.1:8000/" + fragment({"exercise": DOUBLE})
    done = command_line("playground", "--verify", codes, "--exercise", link)
    assert done.returncode == 0
    assert "Cy, Occurrences: solved; layers 1, heads 2 (reference: 1 and 2)" in done.stdout
    assert command_line("playground", "--exercise", "new").returncode == 2


@pytest.mark.parametrize(
    ("exercise", "words"),
    [
        ("shfit", "--exercise: expected reverse, shift, count"),
        ({"exercise": DOUBLE | {"reference": "x = ;"}}, "--exercise: reference: line 1, column 5"),
    ],
)
def test_the_command_rejects_an_invalid_exercise_once(
    tmp_path: Path, exercise: object, words: str
) -> None:
    codes = tmp_path / "codes.txt"
    codes.write_text("nonsense\nnonsense\n", encoding="utf-8")
    given = exercise if isinstance(exercise, str) else fragment(exercise)  # type: ignore[arg-type]
    done = command_line("playground", "--verify", codes, "--exercise", given)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count(words) == 1


# Tables and comparisons ----------------------------------------------------------------------------


def test_a_table_has_a_verdict_for_each_row_with_an_expected_output() -> None:
    inputs, expected = ["ab", "ab", "ab", "", "ab"], ["ba", "ab", "", "", "b"]
    rows = ask("table", source=REVERSE, inputs=inputs, expected=expected)["rows"]
    assert [row["holds"] for row in rows] == [True, False, None, False, False]
    assert rows[1]["places"] == [False, False]
    assert "one output for each of 2 tokens" in rows[4]["problem"]


@pytest.mark.parametrize(
    ("source", "expected", "holds"),
    [
        ("x = indices;", "01", True),
        ("x = indices;", "[0, 1]", True),
        ("x = indices / 3;", "[0.0, 0.333]", True),
        ("x = indices / 3;", "[0.0, 0.33]", False),
        ("x = indices == 0;", "TF", True),
        ("x = indices == 0;", "[true, false]", True),
        ("x = indices == 0;", "[1, 0]", False),
        ("x = tokens;", "[1, 2]", False),
    ],
)
def test_expected_outputs_are_characters_or_a_list(source: str, expected: str, holds: bool) -> None:
    (row,) = ask("table", source=source, inputs=["12"], expected=[expected])["rows"]
    assert row["holds"] is holds


def test_a_comparison_finds_the_first_input_that_differs() -> None:
    other = REVERSE + "\nlate = reverse if length < 5 else tokens;"
    reply = ask("compare", source=REVERSE, other=other, input="ab")
    assert reply["difference"]["input"] != reply["difference"]["values"][0]
    assert len(reply["difference"]["input"]) == 5
    assert ask("compare", source=REVERSE, other=REVERSE, input="ab")["difference"] is None
    infinite = "w = indices * 1e308 * 10;"
    assert ask("compare", source=infinite, other=infinite, input="abc")["difference"] is None
    assert "program B: line 1" in refused("compare", source=REVERSE, other="x = ;", input="ab")


# Interventions and files ---------------------------------------------------------------------------


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


def test_files_of_the_network_work(tmp_path: Path) -> None:
    network = {"source": REVERSE, "input": "hello"}
    reply = ask("export", **network, kind="safetensors")
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(reply["base64"]))) as archive:
        archive.extractall(tmp_path)
    assert load(tmp_path / "network")("hello") == list("olleh")
    onnx = pytest.importorskip("onnx")
    model = onnx.load_from_string(base64.b64decode(ask("export", **network, kind="onnx")["base64"]))
    onnx.checker.check_model(model)
    notebook = json.loads(base64.b64decode(ask("export", **network, kind="notebook")["base64"]))
    cells = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, object] = {}
    exec(cells[0], names)
    assert names["model"]("hello") == list("olleh")  # type: ignore[operator]
    for cell in cells:
        compile(cell, "cell", "exec")


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
    ends, more = '// C-RASP\n#accept end\nx = #"a" == #"b"\n', '// C-RASP\nx = #"a" > #"b"\n'
    rows = ask("table", source=ends, inputs=["ab$", "ab"], expected=["FTT", "FT"])["rows"]
    assert [row["holds"] for row in rows] == [True, False]
    assert "try ab$" in rows[1]["problem"]
    rows = ask("table", source=more, inputs=["ab", "[1, 2]"], expected=["TF", "FF"])["rows"]
    assert [row["holds"] for row in rows] == [True, False]
    assert "symbols for C-RASP" in rows[1]["problem"]
    exercise = {"title": "x", "task": "x", "reference": ends, "example": "ab$"}
    assert "got none for a: expected an input that ends" in refused("describe", exercise=exercise)
    # A comparison uses only inputs of both programs.
    as_rasp = 'x = count(tokens, "a") == count(tokens, "b");'
    difference = ask("compare", source=ends, other=as_rasp, input="ab$")["difference"]
    assert difference["input"][-1] == "$"
    assert None not in difference["values"]


def test_exercises_have_a_solution_of_a_known_size() -> None:
    sizes = {key: ask("exercise", exercise=key, source=SOLUTIONS[key])["size"] for key in EXERCISES}
    assert sizes["new"] == {"layers": 1, "heads": 1}
    assert sizes["balanced"] == {"layers": 2, "heads": 3}


def test_the_glossary_of_the_page_is_that_of_the_documents() -> None:
    written = (PAGE / "glossary.js").read_text(encoding="utf-8")
    assert written == script(), "run python -m docs.site.playground_glossary"
