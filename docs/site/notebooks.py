"""Run notebooks in the percent format, and write them as pages and as executed ``.ipynb`` files.

A cell begins with ``# %%``. A text cell begins with ``# %% [markdown]``, and each of its lines begins
with ``#``. The outputs of a cell are its printed text, the SVG files that it writes, and the figure
that is its last expression.

``python -m docs.site.notebooks NAME FOLDER`` runs a notebook in a folder. ``python -m
docs.site.notebooks --write`` runs all notebooks and writes the ``.ipynb`` files.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from html import unescape
from pathlib import Path

from docs.site.contents import DOCS

FOLDER = DOCS / "notebooks"
#: Modules that a notebook requires in addition to Locum's core dependencies, by notebook. If a module
#: is not installed, the page shows no outputs.
NEEDS = {
    "ablation": ("torch", "transformer_lens", "matplotlib"),
    "pytorch": ("torch", "matplotlib"),
}


def names() -> list[str]:
    """Return the names of all notebooks in docs/notebooks, in alphabetical order."""
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def cells(text: str) -> Iterator[tuple[str, str]]:
    r"""Yield the kind ("markdown" or "code") and the text of each cell of a notebook.

    >>> list(cells("# %% [markdown]\n# # One\n\n# %%\nx = 1\n"))
    [('markdown', '# One'), ('code', 'x = 1')]
    """
    pieces = re.split(r"^# %%(.*)\n", text, flags=re.MULTILINE)[1:]
    for head, body in zip(pieces[::2], pieces[1::2], strict=True):
        if "[markdown]" in head:
            yield "markdown", re.sub(r"^# ?", "", body, flags=re.MULTILINE).strip()
        else:
            yield "code", body.strip()


def missing(name: str) -> list[str]:
    """Return the modules that a notebook requires and that are not installed."""
    return [module for module in NEEDS.get(name, ()) if importlib.util.find_spec(module) is None]


def run(name: str, folder: Path) -> Iterator[tuple[str, str, str, list[Path]]]:
    """Run a notebook in a folder; yield the kind, text, printed output and figures of each cell."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for number, (kind, text) in enumerate(cells(read(name))):
        before, printed = set(folder.glob("*.svg")), io.StringIO()
        if kind == "code":
            with (
                contextlib.chdir(folder),
                contextlib.redirect_stdout(printed),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore")  # Ignore warnings of imported packages.
                shown = _execute(text, name, namespace)
                if hasattr(shown, "_repr_svg_"):
                    Path(f"{name}-{number}.svg").write_text(shown._repr_svg_(), encoding="utf-8")
        yield kind, text, printed.getvalue(), sorted(set(folder.glob("*.svg")) - before)


def read(name: str) -> str:
    """Return the source text of the notebook ``name``, in the percent format."""
    return (FOLDER / f"{name}.py").read_text(encoding="utf-8")


def _execute(text: str, name: str, namespace: dict[str, object]) -> object:
    """Run a code cell and return the value of its last expression, or None."""
    tree = ast.parse(text)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(tree, f"{name}.py", "exec"), namespace)
        return None
    tree.body.pop()
    exec(compile(tree, f"{name}.py", "exec"), namespace)
    return eval(compile(ast.Expression(last.value), f"{name}.py", "eval"), namespace)  # noqa: S307


def executed(name: str) -> str:
    """Run a notebook and return the content of its ``.ipynb`` file with outputs."""
    written = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (kind, text, printed, pictures) in enumerate(run(name, Path(folder))):
            cell: dict[str, object] = {
                "cell_type": kind,
                "id": f"{name}-{number}",
                "metadata": {},
                "source": _lines(text),
            }
            if kind == "code":
                outputs: list[dict[str, object]] = []
                if printed:
                    outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(printed)})
                outputs += [
                    {
                        "data": {"image/svg+xml": _lines(picture.read_text(encoding="utf-8"))},
                        "metadata": {},
                        "output_type": "display_data",
                    }
                    for picture in pictures
                ]
                cell |= {"execution_count": None, "outputs": outputs}
            written.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {
        "cells": written,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def pages() -> dict[str, str]:
    """Return the pages and figures of all notebooks, by their paths in docs/."""
    written = {}
    for name in names():
        if lacking := missing(name):
            parts = [_cell(kind, text) for kind, text in cells(read(name))]
            parts.insert(
                1,
                f"*This page shows no outputs, because the site was built without {', '.join(lacking)}.*",
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
                    svg = picture.read_text(encoding="utf-8")
                    written[f"notebooks/{picture.name}"] = svg
                    title = re.search(r"<title>([^<]+)", svg)
                    alt = re.sub(r"[\[\]]", "", unescape(title[1])) if title else picture.stem
                    parts.append(f":::{{container}} picture\n![{alt}]({picture.name})\n:::")
        written[f"notebooks/{name}.md"] = "\n\n".join(parts) + "\n"
    return written


def _cell(kind: str, text: str) -> str:
    if kind == "markdown":
        return re.sub(r"\]\((\w+)\.ipynb\)", r"](\1.md)", text)
    return f"```python\n{text}\n```"


def main() -> int:
    """Run one notebook in a folder and print its output, or write all ``.ipynb`` files."""
    if sys.argv[1:] == ["--write"]:
        for name in names():
            (FOLDER / f"{name}.ipynb").write_text(executed(name), encoding="utf-8")
            print(f"docs/notebooks/{name}.ipynb")
        return 0
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
