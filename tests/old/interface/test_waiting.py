"""A command that is silent says so on the terminal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import click
import pytest

from locum.interface.cli import main, output
from locum.interface.cli.progress import PATIENCE, Status, counted, current, progress, waiting
from tests.old.interface.conftest import Run

pytestmark = pytest.mark.slow


class Clock:
    """Goes on when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as if it were a terminal


@pytest.mark.usefixtures("terminal")
def test_a_line_after_two_silent_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    watching = Status("compile", clock)
    clock.now = PATIENCE - 0.1
    watching.beat()
    assert capsys.readouterr().err == ""
    clock.now = 3.0
    watching.beat()
    watching.heard()
    assert "locum compile is running" in (shown := capsys.readouterr().err)
    assert "0:00:03" in shown
    watching.beat()  # it has just been heard
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("terminal")
def test_what_is_printed_takes_the_line_away(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with click.Context(main.cli, obj=Status("run", clock)):
        watching = current()
        assert watching is not None
        clock.now = 5.0
        watching.beat()
        output.say("hello")
        before = capsys.readouterr()
        assert before.out == "hello\n"
        assert before.err.endswith("\x1b[2K")  # the line is wiped, and nothing is drawn after it


@pytest.mark.usefixtures("terminal")
def test_steps_are_counted_on_the_same_line(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with click.Context(main.cli, obj=Status("prove", clock)):
        watching = current()
        assert watching is not None
        with counted("proving") as advance:
            advance(1, 2, "matmul")
            assert capsys.readouterr().err == ""
            clock.now = 10.0
            watching.beat()
            advance(2, 2, "softmax")
            watching.heard()
        shown = capsys.readouterr().err
        assert "proving, softmax" in shown
        assert "2/2" in shown
        clock.now = 20.0
        with progress(3) as step:
            step("layer 0")
            watching.beat()
            watching.heard()
        shown = capsys.readouterr().err
        assert "running U, layer 0 done" in shown
        assert "1/3" in shown
        clock.now = 30.0
        watching.beat()
        watching.heard()
        assert "locum prove is running" in capsys.readouterr().err


def test_no_steps_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(2) as step:
        step("layer 0")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("arguments", [["repl"], ["playground"], ["run", "sort", "--json"], ["run"]])
def test_nothing_where_nobody_looks(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: len(arguments) > 1 or arguments != ["run"])
    with click.Context(main.cli) as context, waiting(context, arguments):
        assert current() is None


def test_someone_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with click.Context(main.cli) as context, waiting(context, ["run", "sort"]):
        assert current() is not None


def test_an_interrupted_dataset_says_how_to_go_on(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("locum.experiments.dataset.generating.generate", interrupted)
    code, shown, said = command("dataset", "make", "-o", str(tmp_path / "d"), "--size", "3")
    assert (code, shown) == (130, "")
    assert said == (
        f"locum: finished results are in {tmp_path / 'd'}; the same command continues\n"
        "locum: interrupted\n"
    )


def test_ctrl_c_ends_the_playground_without_a_message() -> None:
    command = [sys.executable, "-m", "locum", "playground", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        address = json.loads(server.stdout.readline())["address"]
        with urllib.request.urlopen(address, timeout=60) as page:  # it is serving
            assert page.status == 200
        listed = Path(f"/proc/{server.pid}/task/{server.pid}/children")
        workers = listed.read_text().split() if listed.exists() else []
        server.send_signal(signal.SIGINT)
        assert (server.wait(60), server.stderr.read()) == (130, "")
    names = [Path(f"/proc/{worker}/cmdline") for worker in workers]
    alive = [name.read_bytes() for name in names if name.exists()]
    assert not [line for line in alive if b"local_server" in line]
