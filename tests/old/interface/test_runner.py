"""The runner: reports as text and JSON, files, exit codes, and errors as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from locum.interface.cli import repl
from locum.interface.cli.main import cli
from locum.interface.cli.options import PATH, output_option
from locum.interface.cli.runner import Report
from locum.interface.cli.runner import command as make_command
from tests.cli.commands import command_line
from tests.old.interface.conftest import Run


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A command of the test: it saves and prints its word, and holds if the word is not "wrong"."""
    calls: list[Any] = []

    @make_command("repl", "Echo.")
    @click.argument("word")
    @click.option("--read", type=PATH)
    @output_option(".txt", ".html", text="File.", multiple=True)
    def command(word: str, read: Path | None, output: tuple[Path, ...]) -> Report | None:
        calls.append(word)
        if word == "silent":
            return None
        files: dict[Path, Any] = {
            path: word if path.suffix == ".txt" else lambda target: target.write_text(word)
            for path in output
        }
        return Report({"word": word}, lambda: [word], holds=word != "wrong", files=files)

    monkeypatch.setattr(repl, "command", command)
    return calls


def test_a_report_is_text_or_json(command: Run, echo: list[Any]) -> None:
    assert command("repl", "right") == (0, "right\n", "")
    assert command("repl", "right", "--json") == (0, '{"word": "right"}\n', "")
    assert command("repl", "silent") == (0, "", "")


def test_a_claim_that_does_not_hold_is_exit_code_1(command: Run, echo: list[Any]) -> None:
    assert command("repl", "wrong") == (1, "wrong\n", "")
    assert command("repl", "wrong", "--json") == (1, '{"word": "wrong"}\n', "")


@pytest.mark.parametrize("name", ["a.txt", "a.html"])
def test_files_are_written_and_named(command: Run, echo: list[Any], tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert command("repl", "right", "-o", path) == (0, f"right\nSaved in {path}.\n", "")
    assert path.read_text() == "right"
    code, out, _ = command("repl", "right", "-o", path, "--json")
    assert code == 0
    assert json.loads(out) == {"word": "right", "files": [str(path)]}


def test_files_are_checked_before_the_work(command: Run, echo: list[Any], tmp_path: Path) -> None:
    read = tmp_path / "read.txt"
    read.write_text("old")
    for arguments, words in [
        (("-o", tmp_path / "a.pdf"), "--output: expected a .txt or .html file"),
        (("-o", tmp_path / "no" / "a.txt"), "there is no folder"),
        (("-o", read, "--read", read), "the file is also an input"),
    ]:
        code, out, err = command("repl", "right", *arguments)
        assert (code, out) == (2, "")
        assert words in err
    assert echo == []
    assert read.read_text() == "old"


def error_of(*arguments: object) -> tuple[int, dict[str, Any]]:
    """Run a command with --json that fails, and return its exit code and error."""
    done = command_line(*arguments, "--json")
    assert done.stderr == ""
    (data,) = map(json.loads, done.stdout.splitlines())
    assert list(data) == ["error"]
    return done.returncode, data["error"]


def test_errors_are_json(tmp_path: Path) -> None:
    path = tmp_path / "bad.rasp"
    path.write_text("x = 1;\nx = (1;\n")
    code, error = error_of("run", path)
    assert (code, error["kind"], error["line"], error["column"]) == (2, "RaspError", 2, 7)
    assert "a closing ) is missing" in error["message"]
    (tmp_path / "bad.crasp").write_text('x = #"a" >\n')
    code, error = error_of("run", tmp_path / "bad.crasp", "--input", "a")
    assert (code, error["kind"], error["line"]) == (2, "DialectError", 1)
    _, error = error_of("language", "classify", "ab(a")
    assert (error["line"], error["column"]) == (1, 5)
    for arguments, kind, words in [
        (("run", "nothere"), "InputError", "cannot read nothere"),
        (("run",), "MissingParameter", "Missing argument 'PROGRAM'"),
        (("run", "sort", "--executor", "magic"), "BadParameter", "'magic' is not one of 'dense'"),
        (("run", "sort", "--nope"), "NoSuchOption", "--nope"),
        (("prove", "claim", "nope"), "InputError", "expected the name of a claim"),
        (("language", "classify", "(a"), "DialectError", "expected )"),
    ]:
        code, error = error_of(*arguments)
        assert (code, error["kind"]) == (2, kind), error
        assert words in error["message"]


def test_a_crash_is_json_with_a_traceback(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(repl.command, "callback", crash)
    code, out, err = command("repl", "--json")
    assert code == 70
    assert json.loads(out) == {"error": {"kind": "Bug", "message": "ZeroDivisionError: oh"}}
    assert err.startswith("Traceback")


def test_an_interrupt_is_json(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(repl.command, "callback", interrupted)
    code, out, err = command("repl", "--json")
    assert (code, err) == (130, "")
    assert json.loads(out)["error"]["kind"] == "Interrupted"


def test_the_groups_have_the_commands_of_the_documentation() -> None:
    found = {}
    with click.Context(cli) as context:
        for name in cli.list_commands(context):
            made = cli.get_command(context, name)
            if isinstance(made, click.Group):
                found[name] = list(made.commands)
    assert found == {
        "prove": ["claim"],
        "language": ["classify", "equivalent"],
        "paper": ["report", "errata"],
        "dataset": ["make", "score"],
    }
