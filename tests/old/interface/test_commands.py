"""Commands as a user types them: output, JSON, exit codes, errors without a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import locum
from tests.cases import histogram, matmul
from tests.cli.commands import command_line, json_of


@pytest.fixture
def graph(tmp_path: Path) -> str:
    path = tmp_path / "histogram.json"
    locum.save_program(histogram, path)
    return str(path)


@pytest.fixture
def rasp(tmp_path: Path) -> str:
    path = tmp_path / "program.rasp"
    path.write_text(
        "same = select(tokens, tokens, ==);\nhist = selector_width(same);\n"
        "def total() { return aggregate(full_s, hist); }\nhist;\n"
    )
    return str(path)


def test_run_with_each_executor(tmp_path: Path) -> None:
    path = tmp_path / "mean.rasp"
    path.write_text("aggregate(select(indices, indices, <=), tokens_float);\n")
    for executor in ("dense", "fast", "auto", "heads"):
        data = json_of("run", str(path), "--input", "[1, 2, 6]", "--executor", executor)
        assert data["results"][0]["values"] == [1.0, 1.5, 3.0]
    done = command_line("run", str(path), "--executor", "magic")
    assert done.returncode == 2
    assert "'magic' is not one of 'dense', 'fast', 'auto', 'heads'" in done.stderr


def test_run_rasp(rasp: str) -> None:
    assert command_line("run", rasp).stdout == 'input = "hello"\nhist = [1, 1, 2, 2, 1] (ints)\n'
    assert command_line(
        "run", rasp, "--input", '"aab"', "--name", "total", "--name", "same"
    ).stdout == (
        'input = "aab"\ntotal = [1.667]*3 (floats)\n'
        "same =\n     a a b\n a | 1 1  \n a | 1 1  \n b |     1\n"
    )
    assert json_of("run", rasp, "--input", '"aab"') == {
        "input": "aab",
        "results": [{"name": "hist", "kind": "s-op", "type": "int", "values": [2, 2, 1]}],
    }


def test_run_shows_plain_values_and_applications(tmp_path: Path) -> None:
    path = tmp_path / "values.rasp"
    path.write_text('1 + 1;\n[1, "a"];\nindices("abc");\ndef f(x) { return x; }\nf;\n')
    assert command_line("run", str(path)).stdout == (
        'input = "hello"\n'
        "    value: out =  2\n     list: out = [1, 'a']\n\t =  [0, 1, 2] (ints)\n"
        "     console function: f(x)\n"
    )
    kinds = [result["kind"] for result in json_of("run", str(path))["results"]]
    assert kinds == ["atom", "list", "s-op", "function"]


def test_run_graphs_and_batches(graph: str) -> None:
    assert command_line("run", graph).stdout == 'input = "hello"\nhistogram = [1, 1, 2, 2, 1] (ints)\n'
    assert command_line("run", graph, "--input", "[3, 3.0]").stdout == (
        "input = [3, 3.0]\nhistogram = [2]*2 (ints)\n"
    )
    assert json_of("run", graph, "--input", "[[1, 1], [1, 2]]")["results"] == [
        {"name": "histogram", "kind": "s-op", "type": ["int", "int"], "values": [[2, 2], [1, 1]]}
    ]


def test_run_in_exact_numbers(tmp_path: Path) -> None:
    path = tmp_path / "mean.rasp"
    path.write_text("aggregate(full_s, tokens_asis);")
    arguments = ("run", str(path), "--input", "[1, 2, 4]", "--domain", "exact")
    assert json_of(*arguments)["results"][0]["values"] == ["7/3", "7/3", "7/3"]


def test_a_file_may_set_its_own_example(tmp_path: Path) -> None:
    path = tmp_path / "own.rasp"
    path.write_text('set example "xyz"\nindices;')
    assert json_of("run", str(path))["input"] == "xyz"
    assert json_of("run", str(path), "--input", '"ab"')["results"][0]["values"] == [0, 1]


def test_files_load_their_neighbours(tmp_path: Path) -> None:
    (tmp_path / "neighbour.rasp").write_text("def inc(x) { return x + 1; }")
    path = tmp_path / "main.rasp"
    path.write_text('load "neighbour";\ninc(indices);')
    assert (
        command_line("run", str(path), "--input", "ab").stdout == 'input = "ab"\nout = [1, 2] (ints)\n'
    )


def test_count(rasp: str, tmp_path: Path) -> None:
    data = json_of("run", rasp, "--count", "--name", "total")
    assert {key: data[key] for key in ("name", "layers", "heads", "width")} == {
        "name": "total", "layers": 2, "heads": [2, 1], "width": 2,
    }  # fmt: skip
    assert [row["name"] for row in json_of("run", rasp, "--count")["programs"]] == ["same", "hist"]
    path = tmp_path / "matmul.json"
    locum.save_program(matmul(4, 4, 4), path)
    assert json_of("run", str(path), "--count")["heads"] == [8, 16]
    table = command_line("run", str(path), "--count").stdout
    assert "[8, 16]" in table
    assert "select(" in table


def test_draw(rasp: str, tmp_path: Path) -> None:
    picture = tmp_path / "flow.svg"
    data = json_of("run", rasp, "--draw", "--name", "hist", "--input", '"aba"', "-o", str(picture))
    assert data == {"name": "hist", "input": "aba", "heads": [2], "files": [str(picture)]}
    text = picture.read_text()
    assert text.startswith("<svg ")
    assert "<script" not in text
    assert text.count('class="on line"') == 6 + 2  # keys selected: aba with position 0, and of it
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


TRANSCRIPT = """\
>>      s-op: x
 \t Example: x("hello") = [0, 1, 2, 3, 4] (ints)
>>      selector: out
 \t Example:
 \t\t\t     h e l l o
 \t\t\t h |{blank}
 \t\t\t e | 1       {blank}
 \t\t\t l | 1 1     {blank}
 \t\t\t l | 1 1 1   {blank}
 \t\t\t o | 1 1 1 1 {blank}
>> {blank}
"""


def test_repl_transcript() -> None:
    done = command_line("repl", typed="x = indices;\nselect(indices,indices,<);\n")
    banner, _, rest = done.stdout.partition("\n")
    assert banner.startswith("Locum ")
    expected = TRANSCRIPT.replace(" |{blank}", " |          ").replace("{blank}", " ")
    assert rest == expected.replace(">>  \n", ">> \n")


def test_repl_reads_over_several_lines_and_reports_what_is_left() -> None:
    typed = "def f(x) {\n  # a comment\n  return x + 1;\n}\nf(1);\n\nx +;\nlast = 3"
    done = command_line("repl", typed=typed)
    assert done.stdout.split("\n", 1)[1] == (
        ">> ..   ..   ..        console function: f(x)\n"
        ">>     value: out =  2\n"
        ">> .. \t!! line 1, column 4: expected an expression, but found ';'\n"
        "\t   x +;\n\t      ^\n"
        ">> .. \n"
        "\t!! line 1, column 9: a ; is missing after '3'\n"
        "\t   last = 3\n\t           ^\n"
    )


def test_repl_leaves_and_takes_an_example() -> None:
    done = command_line("repl", "--example", "[1, 2]", typed="tokens;\nexit\nindices;\n")
    assert done.stdout.split("\n", 1)[1] == (
        ">>      s-op: tokens\n \t Example: tokens([1, 2]) = [1, 2] (strings)\n>> "
    )
    assert [r["kind"] for r in json_of("repl", typed="1;\nfull_s;")["results"]] == ["atom", "selector"]


def test_a_program_of_definitions_has_the_last_one(tmp_path: Path) -> None:
    path = tmp_path / "program.rasp"
    path.write_text("x = tokens;\ny = x + 1;\nx = indices * 2;\n")
    done = command_line("run", str(path), "--input", "[5, 7]", "--json")
    (result,) = json.loads(done.stdout)["results"]
    assert (result["name"], result["values"]) == ("x", [0, 2])


BAD: list[tuple[str, list[str], str]] = [
    ("indices;", ["--input", "hello,"], "--input: expected JSON, got 'hello,'"),
    ("indices;", ["--input", "[]"], "expected at least one token, got an empty input"),
    ("indices;", ["--input", "[[1, 2], []]"], "expected at least one token in each sequence"),
    ("indices;", ["--input", "[null]"], "None at position 0"),
    ("indices;", ["--name", "nope"], "Undefined variable: nope"),
    ("x = 1;", [], "expected a program that shows or defines an s-op"),
    ("select(tokens, tokens, =<);", [], "line 1, column 24: '=<' is not a comparison"),
    ("aggregate(tokens, tokens);", [], "aggregate: expected a selector first, got the s-op"),
    ("sum l in range(1.5) { l };", [], "expected an integer as the size of a family, got 1.5"),
    ("sum l in range(0) { l };", [], "family: expected a size from 1 to"),
    ("x = 1;\n1 / indices;", [], "out is undefined for this input: division by zero at position 0"),
    ("x = (1;", [], "a closing ) is missing before ';'"),
]


@pytest.mark.parametrize(("source", "arguments", "words"), BAD)
def test_bad_input(source: str, arguments: list[str], words: str, tmp_path: Path) -> None:
    path = tmp_path / "program.rasp"
    path.write_text(source)
    done = command_line("run", str(path), *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("locum: ")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_bad_graphs(graph: str, tmp_path: Path) -> None:
    good = json.loads(Path(graph).read_text())
    path = tmp_path / "bad.json"
    indices: list[Any] = ["indices", [], {}]
    for nodes, words in [
        ([indices, ["select", [0, 0], {"predicate": "=<"}]], "got '=<'"),
        ([indices, ["aggregate", [0, 0], {"default": 0}]], "expected a selector as input 1"),
        ([["family", [], {"name": "l", "size": {"float": "inf"}}]], "expected an integer from 1 to"),
        ([["family", [], {"name": "l", "size": 3}]], "is bound by no sum"),
    ]:
        path.write_text(json.dumps({**good, "nodes": nodes}))
        done = command_line("run", str(path))
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1


def test_files_that_are_no_programs(tmp_path: Path) -> None:
    binary = tmp_path / "binary.rasp"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, words in [
        ("missing.rasp", "No such file"),
        (str(tmp_path), "Is a directory"),
        (str(binary), "not UTF-8 text"),
    ]:
        for mode in ((), ("--count",), ("--draw",)):
            done = command_line("run", path, *mode)
            assert (done.returncode, done.stdout) == (2, "")
            assert words in done.stderr
            assert "Traceback" not in done.stderr


def test_pictures_that_cannot_be_drawn(rasp: str, tmp_path: Path) -> None:
    for arguments, words in [
        (("--name", "same"), "expected an s-op, got a selector"),
        (("--name", "nope"), "Undefined variable: nope"),
        (("--input", json.dumps("x" * 65)), "at most 64 tokens"),
        (("--input", "[1, [2]]"), "got tokens and sequences in one list"),
        (("-o", str(tmp_path / "no" / "such" / "folder.svg")), "cannot write"),
    ]:
        done = command_line("run", rasp, "--draw", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr
        assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program.rasp"]


def test_blank_lines_and_comments_continue_a_transcript() -> None:
    done = command_line("repl", typed="\n\n# c\nx = 1;\n\n")
    assert done.stdout.split("\n", 1)[1] == ">> .. .. ..     value: x =  1\n>> .. \n"


def test_odd_inputs(rasp: str, tmp_path: Path) -> None:
    for arguments, words in [
        (("run", rasp, "--input", '"\\ud800"'), "unpaired surrogate"),
        (("run", rasp, "--input", "null"), "expected a string or a list, got null"),
        (
            ("run", rasp, "--draw", "--input", "[[1, 2], [3, 4]]"),
            "expected one sequence to draw, got a batch",
        ),
        (("run", rasp, "--count", "--name", "max"), "got the function max(a, b)"),
        (("repl", "--example", "3"), "--example: expected a non-empty string or list, got 3"),
        (("repl", "--example", "{"), "--example: expected JSON, got '{'"),
        (("run", rasp, "--draw", "-o", "/dev/null"), "not a regular file"),
    ]:
        done = command_line(*arguments, typed="")
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert words in done.stderr
        assert "Traceback" not in done.stderr


def test_files_with_a_byte_order_mark_and_other_line_endings(tmp_path: Path) -> None:
    path = tmp_path / "windows.rasp"
    path.write_bytes("\ufeffx = indices;\r\n\tx;\r\n".encode())
    assert (
        command_line("run", str(path), "--input", '"ab"').stdout == 'input = "ab"\nx = [0, 1] (ints)\n'
    )
    assert "value: out =  1" in command_line("repl", typed="\ufeff1;\n").stdout


def test_pictures_hold_only_what_xml_may(rasp: str, tmp_path: Path) -> None:
    import xml.etree.ElementTree as ET

    done = command_line("run", rasp, "--draw", "--input", '["<b>", "&", "\\u0001"]', "-o", "-")
    assert done.returncode == 0
    ET.fromstring(done.stdout)


def test_links_stay_links(rasp: str, tmp_path: Path) -> None:
    (tmp_path / "real.svg").write_text("old")
    (tmp_path / "link.svg").symlink_to(tmp_path / "real.svg")
    assert command_line("run", rasp, "--draw", "-o", str(tmp_path / "link.svg")).returncode == 0
    assert (tmp_path / "link.svg").is_symlink()
    assert (tmp_path / "real.svg").read_text().startswith("<svg")


def test_output_that_nobody_takes(tmp_path: Path) -> None:
    path = tmp_path / "many.rasp"
    path.write_text("indices;\n" * 3_000)  # more than a pipe holds
    command = f"{sys.executable} -m locum run {path} | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    if Path("/dev/full").is_char_device():
        full = f"{sys.executable} -m locum paper errata > /dev/full"
        done = subprocess.run(["bash", "-c", full], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "cannot write the output" in done.stderr


def test_a_missing_standard_input_is_an_empty_one() -> None:
    command = f"{sys.executable} -m locum repl <&-"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0


def test_unknown_command_and_version() -> None:
    done = command_line("juggle")
    assert done.returncode == 2
    assert "No such command 'juggle'." in done.stderr
    assert command_line("--version").stdout.startswith("locum ")


def test_inputs_are_plain_text_or_json(rasp: str) -> None:
    """A text that could be a number, a list or a boolean must say what it is."""
    for text, tokens in [
        ("aab", "aab"),
        ("a b", "a b"),
        ('"1,2"', "1,2"),
        ("[1, 2]", [1, 2]),
        ("(()", "(()"),
    ]:
        assert json_of("run", rasp, "--input", text)["input"] == tokens
    for text in ("1,2", "a,b", "007", "1e5x,", "True", "'abc'", "[a]", "nan ", "{", '"a'):
        done = command_line("run", rasp, "--input", text)
        assert done.returncode == 2
        assert "--input: expected JSON, got" in done.stderr


def test_help_in_the_repl() -> None:
    typed = (
        "help\n?contains\nhelp names;\ny = indices;\n?y\nhelp nothing\nsort = 1;\nhelp = 3;\nhelp;\n"
    )
    text = command_line("repl", typed=typed).stdout
    assert "help NAME or ?NAME describes a name" in text
    assert ">> def contains(seq, atom) {\n    return count(seq, atom) > 0;\n}" in text
    assert "Reserved, so that programs cannot set them:" in text
    assert "y\n  a name of this session" in text
    assert "nothing is not a name of the language" in text
    assert "sort (it belongs to the language or its library; try another name, such as my_sort)" in text
    assert text.count("value: help =  3") == 2  # a name of the program's own


def test_every_name_of_the_language_is_described() -> None:
    from locum.rasp import Session
    from locum.rasp.text.describing import describe, reserved

    session = Session()
    for name in session.names():
        assert "is not a name" not in describe(name), name
    for name in sorted(reserved()):
        (result,) = session.execute(f"{name} = 1;")
        assert result.kind == "error", name
    assert reserved() == session.scope.reserved
