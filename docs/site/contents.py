"""Define the contents of the site: the sections of the sidebar, and the cards of the home page.

A page is referred to by the name of a file in docs/ without its suffix, or by the name of a generated
page (``reference/…``, ``notebooks/…``). The build fails if a page of docs/ is in no
section, or if another rule of :func:`complaints` is broken.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@dataclass(frozen=True)
class Section:
    """A section of the sidebar: a title and its pages in order."""

    title: str
    pages: tuple[str, ...]


@dataclass(frozen=True)
class Card:
    """A card of the home page for one group of readers: a title, a description and pages."""

    title: str
    text: str
    pages: tuple[str, ...]


SECTIONS = (
    Section("Get started", ("installing", "tutorial", "notebooks/rasp", "how_u_works")),
    Section(
        "How-to guides",
        (
            "huggingface",
            "torch",
            "notebooks/pytorch",
            "compiler",
            "transformer",
            "notebooks/ablation",
            "circuits",
            "hypotheses",
            "dataset",
            "languages",
            "equivalence",
            "verification",
            "new_claims",
            "playground",
            "teaching",
            "from_tracr",
        ),
    ),
    Section(
        "Concepts and results",
        (
            "execution",
            "heads",
            "compiler_internals",
            "classification",
            "feed_forwards",
            "head_counts",
            "looped_transformers",
            "learning",
            "benchmarks",
        ),
    ),
    Section("The paper", ("paper", "verdicts", "errata", "proofs")),
    Section(
        "Reference",
        (
            "README",
            "language",
            "reference/library",
            "c_rasp",
            "b_rasp",
            "rasp_l",
            "simulators",
            "constructions",
            "compiler_options",
            "trained_networks",
            "operations",
            "reference/commands",
            "reference/api",
            "glossary",
        ),
    ),
)

CARDS = (
    Card(
        "I am new to RASP",
        "Learn RASP step by step, from the first s-op to sorting and brackets, with exercises.",
        ("tutorial", "notebooks/rasp", "playground", "language", "glossary"),
    ),
    Card(
        "I have read the paper",
        "Run each item of the paper as a program, and read its errata and proofs.",
        ("how_u_works", "paper", "errata", "simulators", "looped_transformers"),
    ),
    Card(
        "I use trained models",
        "Run PyTorch and Hugging Face models on U, compare the results with eager execution, and record attention patterns.",
        ("huggingface", "torch", "notebooks/pytorch", "hypotheses"),
    ),
    Card(
        "I interpret transformers",
        "Compile programs to transformers whose circuits are known, and ablate and patch these transformers.",
        ("notebooks/ablation", "compiler", "circuits", "dataset", "transformer", "hypotheses"),
    ),
    Card(
        "I prove theorems",
        "Prove statements for all inputs, check theorems for all shapes in Coq, and certify errors.",
        ("verification", "new_claims", "proofs"),
    ),
    Card(
        "I study formal languages",
        "Write programs in C-RASP, B-RASP and temporal logic, and find the kinds of attention that recognise a language.",
        ("languages", "classification", "c_rasp", "b_rasp", "rasp_l"),
    ),
)


def listed() -> list[str]:
    """Return the names of the pages of all sections, in order."""
    return [page for section in SECTIONS for page in section.pages]


def written() -> list[str]:
    """Return the names of the Markdown files in docs/, without their suffix."""
    return sorted(path.stem for path in DOCS.glob("*.md"))


def complaints() -> list[str]:
    """Return messages about wrong contents of the site.

    A page of docs/ must be in exactly one section, and a page of a card must be in a section. A page of
    a section must exist if it is not a generated page.
    """
    pages = listed()
    by_hand = {page for page in pages if "/" not in page}
    return [
        *(
            f"docs/{page}.md is in no section of docs/site/contents.py"
            for page in written()
            if page not in pages
        ),
        *(
            f"docs/site/contents.py names {page}, which is not in docs/"
            for page in sorted(by_hand - {*written()})
        ),
        *(
            f"docs/site/contents.py names {page} twice"
            for page in sorted({p for p in pages if pages.count(p) > 1})
        ),
        *(
            f"the card {card.title!r} names {page}, which is in no section"
            for card in CARDS
            for page in card.pages
            if page not in pages
        ),
    ]
