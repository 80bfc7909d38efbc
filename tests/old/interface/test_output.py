"""Whatever standard output is, the exit code is the verdict, and nothing is obeyed by the terminal."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import unicodedata
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import locum
import locum.interface.cli.main
from locum.interface.cli import repl
from tests.cli.commands import command_line
from tests.old.interface.conftest import Run

LOCUM = f"{sys.executable} -m locum"
#: A command that prints a table, one that prints text and whose verdict is 1, and one that prints JSON.
VERDICTS = [
    ("run sort --count", 0),
    ("prove claim attention 2 2 2 --limit 0.001", 1),
    ("prove claim attention 2 2 2 --limit 0.001 --json", 1),
    ("paper errata --json", 0),
]


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, check=False, env=os.environ | environment
    )


@pytest.mark.parametrize(("command", "verdict"), VERDICTS)
def test_a_reader_that_has_gone_does_not_change_the_verdict(command: str, verdict: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "locum", *command.split()],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (verdict, b"")


def test_the_first_line_of_a_simulation() -> None:
    done = shell(f"{LOCUM} simulate | head -1; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("command", "verdict"), VERDICTS)
def test_a_closed_output_does_not_change_the_verdict(command: str, verdict: int) -> None:
    done = shell(f"{LOCUM} {command} >&-")
    assert (done.returncode, done.stdout, done.stderr) == (verdict, b"", b"")


def test_closed_errors() -> None:
    assert shell(f"{LOCUM} run nowhere.rasp 2>&-").returncode == 2


@pytest.mark.parametrize(
    ("command", "verdict", "encoding"),
    [(*VERDICTS[0], "ascii"), ("prove claim transpose 1 2", 0, "cp1252"), (*VERDICTS[3], "cp1252")],
)
def test_an_output_that_lacks_characters(command: str, verdict: int, encoding: str) -> None:
    done = shell(f"{LOCUM} {command}", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (verdict, b"")
    text = done.stdout.decode(encoding)
    if "--json" in command:
        assert json.loads(text) == json.loads(command_line(*command.split()).stdout)
    elif command == "prove claim transpose 1 2":
        assert r"= X\u1d40" in text


def test_a_conversation_ends_when_its_reader_has_gone() -> None:
    """Nothing else would end it."""
    done = shell(f"yes 'indices;' | {LOCUM} repl | head -1; exit ${{PIPESTATUS[1]}}")
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_crash_has_an_exit_code_of_its_own(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError("an \x1b[2J inside")

    monkeypatch.setattr(repl.command, "callback", crash)
    code, out, err = command("repl")
    assert (code, out) == (70, "")
    assert err.startswith("Traceback")
    assert err.endswith("locum: this is a bug in Locum; please report it with the lines above\n")
    assert "\\x1b[2J" in err
    assert controls(err) == set()


def test_exit_codes_are_documented(command: Run) -> None:
    _, text, _ = command("--help")
    assert "0 done, 1 a claim did not hold, 2 bad input, 70 a bug in Locum" in " ".join(text.split())


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (MemoryError(), "does not fit into memory"),
        (FileNotFoundError(2, "No such file or directory", "here"), "No such file or directory: here"),
        (UserWarning("beware"), "beware"),
    ],
)
def test_trouble_is_one_line(
    command: Run, monkeypatch: pytest.MonkeyPatch, problem: Exception, words: str
) -> None:
    def trouble(*arguments: object, **options: object) -> None:
        raise problem

    monkeypatch.setattr(repl.command, "callback", trouble)
    code, out, err = command("repl")
    assert (code, out) == (2, "")
    assert err.startswith("locum: ")
    assert words in err
    assert err.count("\n") == 1


def test_warnings_are_lines(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(*arguments: object, **options: object) -> None:
        warnings.warn("slow, in \x1b[2J", UserWarning, stacklevel=1)

    monkeypatch.setattr(repl.command, "callback", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert command("repl") == (0, "", "locum: slow, in \\x1b[2J\n")


def controls(text: str) -> set[str]:
    """Characters of a text that a terminal would obey, but for the layout."""
    return {
        c
        for c in text
        if (
            unicodedata.category(c) in ("Cc", "Zl", "Zp", "Cs") or c in "\u202a\u202d\u202e\u2066\u200f"
        )
        and c not in "\n\t"
    }


#: Set the window's title, clear the screen, C1's way to do so, a bell, and writing from right to left.
EVIL = "\x1b]0;PWNED\x07\x1b[2J\x9b2J\u202e\u2028"
PROGRAMS = {
    "value.rasp": f'x = tokens + "{EVIL}";\nx;\nlist = ["{EVIL}"];\nlist;\n',
    "error.rasp": f'x = "{EVIL}" + 1;\n',
    "syntax.rasp": f'x = "{EVIL}" ();\n',
    "load.rasp": f'load "{EVIL}";\n',
    "comment.rasp": f"# {EVIL}\n1 / indices;\n",
    "select.rasp": f'selector_width(select(tokens, "{EVIL}", ==));\n',
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "{}"),
        ("run", "{}", "--json"),
        ("run", "{}", "--input", json.dumps(EVIL)),
        ("run", "{}", "--name", EVIL),
        ("run", "{}", "--count"),
        ("run", "{}", "--draw", "-o", "-", "--json"),
        ("compile", "{}", "--length", "3", "--vocab", "ab"),
        ("compile", "{}", "--length", "3", "--vocab", EVIL, "--json"),
    ],
    ids=" ".join,
)
def test_programs_do_not_reach_the_terminal(
    command: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: str,
    arguments: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(program).write_text(PROGRAMS[program])
    code, out, err = command(*(argument.format(program) for argument in arguments))
    assert code in (0, 2)
    assert controls(out) | controls(err) == set()
    if "--json" in arguments and code == 0:
        json.loads(out)


def test_model_folders_do_not_reach_the_terminal(command: Run, tmp_path: Path) -> None:
    from dataclasses import replace

    model = locum.compile(locum.tokens + "!", length=3, vocabulary="ab", name="x")
    config = replace(
        model.config,
        name=EVIL,
        slots=tuple(f"{EVIL}{number}" for number in range(len(model.config.slots))),
        outputs=tuple(f"{EVIL}{number}" for number in range(len(model.config.outputs or ()))),
    )
    locum.CompiledTransformer(config, model.weights).save(tmp_path / "model")
    for options in ((), ("--json",)):
        code, out, err = command("run", tmp_path / "model", "--input", "ab", *options)
        assert code == 0
        assert "PWNED" in out
        assert controls(out) | controls(err) == set()


def test_names_of_files_and_options_do_not_reach_the_terminal(command: Run) -> None:
    for arguments in (
        ("run", EVIL), ("prove", "claim", EVIL), ("prove", EVIL), (EVIL,),
        ("run", f"--{EVIL}"), ("simulate", EVIL), ("simulate", "--order", EVIL),
        ("simulate", "--recipe", EVIL),
        ("simulate", "--order", "2,2,2", "--kind", EVIL),
    ):  # fmt: skip
        code, out, err = command(*arguments)
        assert (code, out) == (2, "")
        assert controls(err) == set()


def test_a_transcript_does_not_reach_the_terminal() -> None:
    typed = "\n".join(PROGRAMS.values())
    for options in ((), ("--json",)):
        done = command_line("repl", *options, typed=typed)
        assert "PWNED" in done.stdout
        assert controls(done.stdout) | controls(done.stderr) == set()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(st.characters(exclude_characters='"\r\n\ufeff', exclude_categories=["Cs"])),
    st.sampled_from([(), ("--json",)]),
)
def test_random_strings_of_a_program_are_printable(
    command: Run, tmp_path_factory: pytest.TempPathFactory, text: str, options: tuple[str, ...]
) -> None:
    path = tmp_path_factory.getbasetemp() / "random.rasp"
    path.write_text(f'x = "{text}";\nx;\ntokens + x;\n', encoding="utf-8")
    code, out, err = command("run", path, *options)
    assert code in (0, 2)
    assert controls(out) | controls(err) == set()


def test_only_one_module_prints() -> None:
    """Text printed elsewhere would not be escaped (but for the prompt, and bars of our own words)."""
    folder = Path(locum.interface.cli.main.__file__).parent
    for path in folder.glob("*.py"):
        if path.name in ("output.py", "terminal.py", "progress.py"):
            continue
        calls = [
            ast.unparse(node.func)
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call)
        ]
        bad = ("print", "click.echo", "click.secho", "Console", "table.add_row", "sys.stdout.write")
        assert not [call for call in calls if call in bad], path.name
