"""What the documents show is what the programs print, and links of documents lead to files."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tests.documents import PAGES, ROOT, run_page

#: Packages that the blocks of a page require.
NEEDS = {
    "equivalence.md": ("z3",),
    "huggingface.md": ("tokenizers", "torch", "transformers"),
    "hypotheses.md": ("torch",),
    "languages.md": ("z3",),
    "torch.md": ("torch",),
}


#: Pages that take more than ten seconds.
SLOW = {"huggingface.md"}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page.name in SLOW else ()) for page in PAGES],
    ids=[page.relative_to(ROOT).as_posix() for page in PAGES],
)
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in NEEDS.get(page.name, ()):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path)


#: Pages that show something else than what is printed, and words of the error.
WRONG = {
    "```python\nprint(1)\n```\n```output\n2\n```\n": "but this is printed",
    "```console\n$ locum --version\nlocum 7\n```\n": "prints",
    "```text\n1\n```\n": "without a reason",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_pages(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    with pytest.raises(AssertionError, match=WRONG[text]):
        run_page(page, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links(page: Path) -> None:
    for link in re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), link
