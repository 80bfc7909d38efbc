"""Run what a document shows and compare what it prints.

The fenced blocks of a page say by their language what they are:

- ``python`` is run, all blocks of a page in one namespace, in their order;
- ``output``, right after a ``python`` block, is what that block prints;
- ``console`` has commands behind ``$ `` and, below each, what it prints;
- ``rasp`` is a program that a session runs, all blocks of a page in one session; an ``output``
  right after it is what the REPL prints, and a statement may fail only where that is shown;
- ``coq`` is a statement of a theorem, which stands in proofs/ in these words;
- ``text`` is none of these and has its reason.

``…`` in an output stands for any text of that line, and a line that is only ``…`` for any lines.
``<!-- not run: reason -->`` right above a block (or an empty line between) leaves it out and says why.
``python -m tests.documents`` lists how many blocks are run, page by page.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from locum.rasp import Session
from tests.cli.commands import command_line

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
KINDS = {"python", "output", "console", "rasp", "coq", "text"}
FENCE = re.compile(
    r"(?:<!-- not run: (?P<reason>[^>]+) -->\n\n?)?"
    r"^```(?P<kind>[\w-]*|\{[\w:-]+\}[^\n]*)\n(?P<text>.*?)^```$",
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
        if not match["kind"].startswith("{")  # a directive of the site
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
    shown = blocks(page)
    for block, following in itertools.zip_longest(shown, shown[1:]):
        where = f"{page.name}:{block.line}"
        assert block.kind in KINDS, f"{where}: a block of {block.kind!r}; expected one of {KINDS}"
        if block.reason is not None:
            printed = None
            continue
        assert block.kind != "text", (
            f"{where}: not run, without a reason above it (<!-- not run: … -->)"
        )
        run += 1
        if block.kind == "python":
            printed = _python(block.text, namespace, where)
        elif block.kind == "console":
            printed = None
            _console(block.text, folder, where)
        elif block.kind == "rasp":
            may_fail = following is not None and following.kind == "output"
            printed = _rasp(block.text, session, where, may_fail)
        elif block.kind == "coq":
            printed = None
            assert " ".join(block.text.split()) in statements(), f"{where}: not in proofs/"
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


def _rasp(code: str, session: Session, where: str, may_fail: bool) -> str:
    """Run a block of RASP and return what the REPL prints; an error that is not shown fails it."""
    results = session.execute(code)
    wrong = [result.message for result in results if result.kind == "error"]
    assert may_fail or not wrong, f"{where}: {wrong[0]}"
    return "".join(result.printed for result in results)


@functools.cache
def statements() -> str:
    """Return all of proofs/, its spaces made one."""
    files = sorted((ROOT / "proofs").glob("*.v"))
    return " ".join(" ".join(file.read_text(encoding="utf-8").split()) for file in files)


def _console(text: str, folder: Path, where: str) -> None:
    """Run the commands of a block and compare what each prints."""
    for piece in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = re.sub(r"\\\n\s*", " ", piece).partition("\n")
        program, *words = shlex.split(command, comments=True)
        assert program == "locum", f"{where}: {program} is not run here"
        words = [
            str(ROOT / word) if word.startswith(("examples/", "sweeps/")) else word for word in words
        ]
        with contextlib.chdir(folder):
            done = command_line(*words, columns=100)
        assert done.returncode == 0, f"{where}: {command} exits {done.returncode}: {done.stderr}"
        if shown.strip():
            assert matches(shown, done.stdout), f"{where}: {command} prints\n{done.stdout}"


def counted(pages: Iterable[Path]) -> dict[str, int]:
    """Count the blocks of each page that are run."""
    return {
        page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name: sum(
            block.reason is None for block in blocks(page)
        )
        for page in pages
    }


if __name__ == "__main__":
    numbers = counted(PAGES)
    for name, number in numbers.items():
        print(f"{number:4} {name}")  # noqa: T201
    print(f"{sum(numbers.values()):4} in all, and those of the generated pages")  # noqa: T201
