"""The conversation at a terminal: help, interrupts, ways out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from locum.interface.cli import terminal
from locum.rasp import Session


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PipeInput]:
    monkeypatch.setenv("HOME", str(tmp_path))
    with create_pipe_input() as typed, create_app_session(input=typed, output=DummyOutput()):
        yield typed


@pytest.mark.parametrize("way_out", ["exit\r", "quit\r", "exit;\r", "quit ;\r", "exit();\r", "\x04"])
def test_ways_out(keys: PipeInput, way_out: str, capsys: pytest.CaptureFixture[str]) -> None:
    keys.send_text("x = indices + 1;\r" + way_out)
    terminal.converse(Session("abc"), ">> ", ".. ")
    assert capsys.readouterr().out == '     s-op: x\n \t Example: x("abc") = [1, 2, 3] (ints)\n'


def test_an_interrupt_drops_what_is_typed_and_what_runs(
    keys: PipeInput, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session("abc")
    execute = session.execute

    def interrupted(text: str) -> object:
        if "slow" in text:
            raise KeyboardInterrupt
        return execute(text)

    monkeypatch.setattr(session, "execute", interrupted)
    keys.send_text("x = ind\x03slow = 1;\rlength;\r\x04")
    terminal.converse(session, ">> ", ".. ")
    assert capsys.readouterr().out == (
        'interrupted\n     s-op: length\n \t Example: length("abc") = [3]*3 (ints)\n'
    )


def test_questions_need_no_semicolon(keys: PipeInput, capsys: pytest.CaptureFixture[str]) -> None:
    keys.send_text("?indices\r\x04")
    terminal.converse(Session("abc"), ">> ", ".. ")
    assert "indices" in capsys.readouterr().out
