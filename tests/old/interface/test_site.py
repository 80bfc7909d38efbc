"""The site: every page in its table of contents, generated pages that run, links that are checked."""

from __future__ import annotations

import functools
import importlib.util
import json
import shlex
from pathlib import Path

import click
import pytest
from docs.site import command_pages, contents, links, notebooks, reference

import locum
from locum.rasp.text.describing import library_texts, reserved
from tests.documents import PAGES, counted, run_page

TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not TORCH, reason="torch is not installed")


@functools.cache
def generated() -> dict[str, str]:
    """All generated pages."""
    # Some public names are modules of torch, and their docstrings come with them.
    return reference.pages() if TORCH else {}


def test_every_page_is_in_the_table_of_contents_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert contents.complaints() == []
    monkeypatch.setattr(
        contents, "written", lambda: ["stray", *(p.stem for p in contents.DOCS.glob("*.md"))]
    )
    assert contents.complaints() == ["docs/stray.md is in no section of docs/site/contents.py"]


@needs_torch
def test_every_public_name_has_an_example_that_runs() -> None:
    # Examples in docstrings are run as doctests, those of values by the test of generated pages.
    assert reference.without_example() == []
    page = generated()["reference/api.md"]
    assert {"compile", "map", "sum"} < set(reference.public())
    assert set(locum.__all__) < set(reference.public())
    assert all(f"locum.{name}\n" in page for name in reference.public())
    assert all(f":: locum.{name}\n" in page for name in ("proofs.prove", "torch.simulate"))


@needs_torch
def test_the_reference_has_every_name() -> None:
    page = generated()["reference/library.md"]
    assert all(f"### {name}\n" in page for name in library_texts())
    assert all(f"`{name}" in page for name in reserved() - library_texts().keys())


def test_the_reference_has_every_command_with_a_valid_example() -> None:
    commands = dict(command_pages.commands())
    page = command_pages.page()
    assert commands.keys() == command_pages.EXAMPLES.keys()
    for name, command in commands.items():
        assert f"### locum {name}\n" in page
        program, *words = shlex.split(command_pages.EXAMPLES[name])
        assert (program, " ".join(words[: len(name.split())])) == ("locum", name)
        # Options that the command lacks, and missing arguments, are errors.
        command.make_context(name, words[len(name.split()) :])
        for parameter in command.params:
            assert parameter.opts[0] in page or isinstance(parameter, click.Argument), parameter


def test_the_page_of_the_graph_is_current() -> None:
    from docs.site import operations

    written = operations.PAGE.read_text(encoding="utf-8")
    assert operations.page() == written, "try python -m docs.site.operations"


def test_generated_pages_show_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in generated().items():
        if name.endswith(".md"):
            page = tmp_path / name.replace("/", "-")
            page.write_text(text, encoding="utf-8")
            run_page(page, tmp_path)


def test_many_blocks_are_run(tmp_path: Path) -> None:
    pages = []
    for name, text in generated().items():
        if name.endswith(".md"):
            pages.append(tmp_path / name.replace("/", "-"))
            pages[-1].write_text(text, encoding="utf-8")
    numbers = counted([*PAGES, *pages])
    assert sum(numbers.values()) >= 150, numbers


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.html").write_text('<h2 id="here">x</h2>', encoding="utf-8")
    page = tmp_path / "index.html"
    right = '<a href="other.html#here">x</a><a href="https://arxiv.org/abs/2506.18739">x</a>'
    page.write_text(right, encoding="utf-8")
    assert links.check(tmp_path) == ([], 2, {"https://arxiv.org/abs/2506.18739"})
    wrong = ["other.html#there", "gone.html", "ftp://x", "https:///x"]
    page.write_text(
        "".join(f'<a href="{link}">x</a>' for link in wrong)
        + '<script src="https://cdn/x.js"></script>',
        encoding="utf-8",
    )
    problems, _, _ = links.check(tmp_path)
    assert len(problems) == 5


def test_notebooks_are_read_cell_by_cell() -> None:
    assert notebooks.names() == ["ablation", "pytorch", "rasp"]
    assert {f"notebooks/{name}" for name in notebooks.names()} <= set(contents.listed())
    result = list(notebooks.cells("# %% [markdown]\n# # One\n#\n# two\n\n# %%\nx = 1\n"))
    assert result == [("markdown", "# One\n\ntwo"), ("code", "x = 1")]


@pytest.mark.parametrize("name", notebooks.names())
def test_an_executed_notebook_is_current(name: str) -> None:
    if lacking := notebooks.missing(name):
        pytest.skip(f"{lacking[0]} is not installed")
    file = notebooks.FOLDER / f"{name}.ipynb"
    new, old = (
        json.loads(text)["cells"] for text in (notebooks.executed(name), file.read_text("utf-8"))
    )
    hint = "try python -m docs.site.notebooks --write"
    assert [cell["source"] for cell in new] == [cell["source"] for cell in old], hint
    for one, other in zip(new, old, strict=True):
        printed = [[out.get("text") for out in cell.get("outputs", [])] for cell in (one, other)]
        assert printed[0] == printed[1], hint
    drawn = sum("data" in out for cell in new for out in cell.get("outputs", []))
    assert drawn == 1
