"""Commands print what transcripts.txt shows.

``$ locum …`` is followed by what the command prints, and by ``(exit N)`` if the code is not 0. Commands
run in the root of the repository. LOCUM_UPDATE=1 rewrites the file: read the change before you commit.
"""

from __future__ import annotations

import io
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from locum import __version__
from locum.__main__ import main

FILE = Path(__file__).with_name("transcripts.txt")
CASES = re.findall(r"^\$ locum (.*)\n((?:(?!\$ ).*\n?)*)", FILE.read_text("utf-8"), re.MULTILINE)
#: What `locum repl` reads.
TYPED = 'set example "aba"\nselector_width(select(tokens, tokens, ==));\nindices + "a";\n'


def answer(command: str, capsys: Any, monkeypatch: Any) -> str:
    """Return what a command prints, without times and rounding errors, and its exit code."""
    monkeypatch.setattr("sys.argv", ["locum", *shlex.split(command)])
    monkeypatch.setattr("sys.stdin", io.StringIO(TYPED))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(FILE.parents[2])
    code: Any = 0
    try:
        code = main()
    except SystemExit as end:
        code = end.code
    shown = capsys.readouterr()
    text = re.sub(r"\d+(\.\d+)? m?s\b", "… s", shown.out + shown.err)
    text = re.sub(r"\d\.\d{6}e-1[4-9]", "0.000000e+00", text).replace(__version__, "VERSION")
    return text + (f"(exit {code})\n" if code else "")


@pytest.mark.parametrize(("command", "wanted"), CASES, ids=[c for c, _ in CASES])
def test_transcript(command: str, wanted: str, capsys: Any, monkeypatch: Any) -> None:
    found = answer(command, capsys, monkeypatch)
    if os.environ.get("LOCUM_UPDATE"):
        FILE.write_text(
            FILE.read_text("utf-8").replace(
                f"$ locum {command}\n{wanted}", f"$ locum {command}\n{found}\n"
            ),
            "utf-8",
        )
    else:
        assert found.strip() == wanted.strip()
