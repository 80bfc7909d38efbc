"""Run notebooks in the percent format and write each as a page with what its cells print and draw.

A cell begins with ``# %%``; one of text with ``# %% [markdown]``, its lines behind ``# ``. Pictures are the SVG files that
a cell writes. ``python -m docs.site.notebooks NAME FOLDER`` runs one in a folder, which keeps what it writes.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

from docs.site.contents import DOCS

FOLDER = DOCS / "notebooks"
#: What a notebook needs beside the core; without it the page has no outputs, and says so.
NEEDS = {"ablation": ("torch", "transformer_lens")}


def names() -> list[str]:
    """List the notebooks."""
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def cells(text: str) -> Iterator[tuple[str, str]]:
    """Yield the cells of a notebook: markdown or code, and its text.

    >>> list(cells("# %% [markdown]\\n# # One\\n\\n# %%\\nx = 1\\n"))
    [('markdown', '# One'), ('code', 'x = 1')]
    """
    pieces = re.split(r"^# %%(.*)\n", text, flags=re.MULTILINE)[1:]
    for head, body in zip(pieces[::2], pieces[1::2], strict=True):
        if "[markdown]" in head:
            yield "markdown", re.sub(r"^# ?", "", body, flags=re.MULTILINE).strip()
        else:
            yield "code", body.strip()


def missing(name: str) -> list[str]:
    """List what a notebook needs and is not installed."""
    return [module for module in NEEDS.get(name, ()) if importlib.util.find_spec(module) is None]


def run(name: str, folder: Path) -> Iterator[tuple[str, str, str, list[Path]]]:
    """Run a notebook in a folder; yield each cell with what it prints and the pictures it writes."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for kind, text in cells((FOLDER / f"{name}.py").read_text(encoding="utf-8")):
        before, printed = set(folder.glob("*.svg")), io.StringIO()
        if kind == "code":
            with (
                contextlib.chdir(folder),
                contextlib.redirect_stdout(printed),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore")  # of the packages that it shows
                exec(compile(text, f"{name}.py", "exec"), namespace)
        yield kind, text, printed.getvalue(), sorted(set(folder.glob("*.svg")) - before)


def pages() -> dict[str, str]:
    """Return the pages of all notebooks and their pictures, by their path in docs/."""
    written = {}
    for name in names():
        if lacking := missing(name):
            parts = [
                _cell(kind, text)
                for kind, text in cells((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
            ]
            parts.insert(
                1,
                f"*Shown without its outputs: {', '.join(lacking)} was not installed where this was built.*",
            )
            written[f"notebooks/{name}.md"] = "\n\n".join(parts) + "\n"
            continue
        parts = []
        with tempfile.TemporaryDirectory() as folder:
            for kind, text, printed, pictures in run(name, Path(folder)):
                parts.append(_cell(kind, text))
                if printed:
                    parts.append(f"```output\n{printed.rstrip()}\n```")
                for picture in pictures:
                    written[f"notebooks/{name}-{picture.name}"] = picture.read_text(encoding="utf-8")
                    parts.append(f"![{picture.stem}]({name}-{picture.name})")
        written[f"notebooks/{name}.md"] = "\n\n".join(parts) + "\n"
    return written


def _cell(kind: str, text: str) -> str:
    return text if kind == "markdown" else f"```python\n{text}\n```"


def main() -> int:
    """Run one notebook in a folder, and say what it prints and where its pictures are."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    if name not in names():
        print(f"expected one of {', '.join(names())}, got {name}", file=sys.stderr)
        return 2
    if lacking := missing(name):
        print(f"{name} needs {', '.join(lacking)}: try make tutorial", file=sys.stderr)
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    for kind, text, printed, pictures in run(name, folder.resolve()):
        heading = re.match(r"#+ (.+)", text) if kind == "markdown" else None
        print(
            f"\n{heading[1]}" if heading else printed.rstrip(), end="\n" if heading or printed else ""
        )
        for picture in pictures:
            print(f"The plot: {os.path.relpath(picture)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
