"""The command line, run inside the test's process."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from locum.cli.main import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command as a user would: exit code, output, errors."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["locum", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "140")
        with pytest.raises(SystemExit) as leaving:
            main()
        out, err = capsys.readouterr()
        return int(leaving.value.code or 0), out, err

    return run
