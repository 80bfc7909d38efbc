"""Run what a document shows and compare what it prints.

The fenced blocks of a page say by their language what they are:

- ``python`` is run, all blocks of a page in one namespace, in their order;
- ``output`` (or no language), right after a ``python`` block, is what that block prints;
- ``console`` has commands behind ``$ `` and, below each, what it prints;
- ``rasp`` is a program that a session runs;
- ``text`` is shown and not run.

``…`` in an output stands for any text of that line, and a line that is only ``…`` for any lines.
``<!-- not run: reason -->`` right above a block leaves it out and says why.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from locum.language import Session

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
KINDS = {"python", "output", "", "console", "rasp", "text"}
FENCE = re.compile(
    r"(?:<!-- not run: (?P<reason>[^>]+) -->\n)?^```(?P<kind>[\w-]*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, where it begins and why it is not run, if it is not."""

    kind: str
    text: str
    line: int
    reason: str | None


def blocks(page: Path) -> list[Block]:
    """List the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            match["kind"], match["text"], text[: match.start("kind")].count("\n") + 1, match["reason"]
        )
        for match in FENCE.finditer(text)
    ]


def matches(shown: str, printed: str) -> bool:
    """Compare an output with what a page shows of it."""
    pattern = []
    for line in shown.rstrip("\n").split("\n"):
        if line.strip() == "…":
            pattern.append(r"(?:[^\n]*\n)*?")
        else:
            pattern.append(".*?".join(map(re.escape, line.rstrip().split("…"))) + r"[ \t]*\n")
    return re.fullmatch("".join(pattern), printed.rstrip("\n") + "\n") is not None


def run_page(page: Path, folder: Path) -> int:
    """Run every block of a page in ``folder`` and return how many were run."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    session = Session()
    run = 0
    printed: str | None = None
    for block in blocks(page):
        where = f"{page.name}:{block.line}"
        assert block.kind in KINDS, f"{where}: a block of {block.kind!r}; expected one of {KINDS}"
        if block.reason is not None or block.kind == "text":
            printed = None
            continue
        run += 1
        if block.kind == "python":
            printed = _python(block.text, namespace, where)
        elif block.kind == "console":
            printed = None
            _console(block.text, folder, where)
        elif block.kind == "rasp":
            printed = None
            session.execute(block.text)
        else:
            assert printed is not None, f"{where}: an output without a program right above it"
            assert matches(block.text, printed), (
                f"{where} shows\n{block.text}\nbut this is printed\n{printed}"
            )
            printed = None
    return run


def _python(code: str, namespace: dict[str, Any], where: str) -> str:
    """Run a block of Python in the page's namespace and return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, where, "exec"), namespace)
    return printed.getvalue()


def _console(text: str, folder: Path, where: str) -> None:
    """Run the commands of a block and compare what each prints."""
    for piece in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = re.sub(r"\\\n\s*", " ", piece).partition("\n")
        words = shlex.split(command, comments=True)
        if words[0] == "locum":
            words = [sys.executable, "-m", *words]
        elif words[0] == "python":
            words[0] = sys.executable
        words = [str(ROOT / word) if word.startswith("examples/") else word for word in words]
        done = subprocess.run(
            words,
            cwd=folder,
            capture_output=True,
            text=True,
            env=os.environ | {"COLUMNS": "100"},
            check=False,
        )
        assert done.returncode == 0, f"{where}: {command} exits {done.returncode}: {done.stderr}"
        if shown.strip():
            assert matches(shown, done.stdout), f"{where}: {command} prints\n{done.stdout}"
