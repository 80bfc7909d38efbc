"""Commands print what transcripts.txt shows. LOCUM_UPDATE=1 rewrites the file: read the change before you commit it.

`$ locum …` is followed by what it prints on stdout and stderr, and by `(exit N)` if the code is not 0.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from locum.__main__ import main

FILE = Path(__file__).with_name("transcripts.txt")
CASES = re.findall(r"^\$ locum (.*)\n((?:(?!\$ ).*\n?)*)", FILE.read_text("utf-8"), re.MULTILINE)


def answer(command: str, capsys: Any, monkeypatch: Any) -> str:
    monkeypatch.setattr("sys.argv", ["locum", *shlex.split(command)])
    monkeypatch.chdir(FILE.parents[1])
    code: Any = 0
    try:
        code = main()
    except SystemExit as end:
        code = end.code
    shown = capsys.readouterr()
    text = re.sub(r"\d+\.\d+ s\b", "… s", shown.out + shown.err)  # times
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
