"""Run the command line inside the test's process; ``test_output.py`` tests processes of its own."""

from __future__ import annotations

import io
import json
import os
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, NamedTuple
from unittest import mock

from locum.__main__ import main


class Done(NamedTuple):
    """What a finished command leaves."""

    returncode: int
    stdout: str
    stderr: str


def command_line(*arguments: object, typed: str | None = None, columns: int = 80) -> Done:
    """Run ``locum`` with these arguments and this standard input."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with (
        mock.patch.object(sys, "argv", ["locum", *map(str, arguments)]),
        mock.patch.object(sys, "stdin", io.StringIO(typed or "")),
        mock.patch.dict(os.environ, {"COLUMNS": str(columns)}),
        warnings.catch_warnings(),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        warnings.simplefilter("default")  # as a process has it: pytest makes errors of them
        code = _leaving()
    texts = [stream.detach().getvalue().decode() for stream in (out, err)]
    return Done(code, *texts)


def _leaving() -> int:
    """Return the exit code with which the command line leaves; without pytest, which users lack."""
    try:
        main()
    except SystemExit as leaving:
        return int(leaving.code or 0)
    raise AssertionError("the command line came back")


def json_of(*arguments: object, typed: str | None = None) -> Any:
    """Run a command with ``--json`` and return the one object that it prints."""
    done = command_line(*arguments, "--json", typed=typed)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("\n") == 1
    return json.loads(done.stdout)


def refused(*arguments: object) -> str:
    """Run a command that must not accept its input, and return what it says."""
    done = command_line(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(("locum: ", "Usage: "))
    assert "Traceback" not in done.stderr
    return done.stderr
