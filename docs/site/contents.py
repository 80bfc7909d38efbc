"""Say which page stands where: the one table of contents of the site.

A page is the name of a file in docs/ without its ending, or of one that a generator writes
(``recipes/…``, ``reference/…``, ``notebooks/…``). A page of docs/ that is in no entry fails the build.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@dataclass(frozen=True)
class Entry:
    """One way into the site: for whom it is, what it says first, and its pages in their order."""

    key: str
    title: str
    text: str
    pages: tuple[str, ...]


ENTRIES = (
    Entry(
        "reader",
        "I read the paper",
        "Every item of the paper as a recipe that runs; where it is wrong, a counterexample and what is right.",
        (
            "paper",
            "recipes/index",
            "errata",
            "errata-note",
            "constructions",
            "simulators",
            "torch",
            "torch_operations",
            "huggingface",
            "rivals",
            "frugality",
        ),
    ),
    Entry(
        "writer",
        "I write RASP",
        "From `indices` to sorting and brackets, with exercises; the language, its library and its dialects.",
        (
            "tutorial",
            "language",
            "reference/library",
            "playground",
            "execution",
            "heads",
            "languages",
            "c_rasp",
            "b_rasp",
            "rasp_l",
        ),
    ),
    Entry(
        "interpreter",
        "I interpret transformers",
        "From a program to weights whose every head is known, and on to an ablation in TransformerLens.",
        (
            "notebooks/ablation",
            "compiler",
            "circuits",
            "dataset",
            "transformer",
            "feed_forwards",
            "learning",
            "from_tracr",
        ),
    ),
    Entry(
        "prover",
        "I prove",
        "For all inputs by symbols, for all shapes by Coq, and floats with certified bounds.",
        ("verification", "proofs", "sweeps"),
    ),
    Entry(
        "reference",
        "Reference",
        "What there is, in one place each.",
        ("installing", "README", "reference/api", "operations", "glossary", "reference/limits"),
    ),
)


def listed() -> list[str]:
    """List every page of every entry."""
    return [page for entry in ENTRIES for page in entry.pages]


def written() -> list[str]:
    """List the pages that are written by hand: every Markdown file of docs/, by its name."""
    return sorted(path.stem for path in DOCS.glob("*.md"))


def complaints() -> list[str]:
    """Say what is wrong with the table: pages in no entry, in two, or in none of the folders."""
    pages = listed()
    by_hand = {page for page in pages if "/" not in page}
    return [
        *(
            f"docs/{page}.md is in no entry of docs/site/contents.py"
            for page in written()
            if page not in pages
        ),
        *(
            f"docs/site/contents.py names {page}, which docs/ has not"
            for page in sorted(by_hand - {*written()})
        ),
        *(
            f"docs/site/contents.py names {page} twice"
            for page in sorted({p for p in pages if pages.count(p) > 1})
        ),
    ]
