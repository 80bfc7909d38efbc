"""Write the sources of the site to a folder: home page, README, pages of docs/, and generated pages.

The folder has the structure of the repository, so relative links between pages remain valid.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from docs.site.contents import CARDS, DOCS, ROOT, SECTIONS, Card

#: Links to files of the repository that are not pages. The site contains copies of these files.
LINK = re.compile(r"\]\(((?:\.\./)*[\w./-]+\.(?!md\b)\w+)\)")
#: Titles in the sidebar for files in the root of the repository, by the name of the file.
ROOT_PAGES = {"README": "README", "CONTRIBUTING": "Contributing", "CHANGELOG": "Changelog"}


def stage(folder: Path, generated: dict[str, str]) -> None:
    """Write the sources of the site to ``folder``.

    ``generated`` contains the texts of generated pages, by their paths in docs/.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copytree(DOCS / "pictures", folder / "docs" / "pictures")
    for page in (*(ROOT / f"{name}.md" for name in ROOT_PAGES), *DOCS.glob("*.md")):
        # On the site, a notebook is a Markdown page.
        text = re.sub(
            r"\]\(([\w/]*notebooks/\w+)\.(?:py|ipynb)\)", r"](\1.md)", page.read_text(encoding="utf-8")
        )
        (folder / page.relative_to(ROOT)).write_text(text, encoding="utf-8")
    for path, text in generated.items():
        target = folder / "docs" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    (folder / "index.md").write_text(home(folder), encoding="utf-8")
    for page in folder.rglob("*.md"):
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            # Copy the file, because tools that build packages would follow a symbolic link.
            target = Path(os.path.normpath(page.parent / link))
            file = ROOT / target.relative_to(folder)
            if file.is_file() and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, target)


def home(folder: Path) -> str:
    """Return the home page: the first part of the README, the cards, and the tables of contents."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    top = readme.partition("\n\n")[2].partition("\n## From RASP to weights")[0]
    what, heading, install = top.partition("## Install")
    cards = "\n".join(_card(card, folder) for card in CARDS)
    trees = "\n".join(_tree(part.title, [f"docs/{page}" for page in part.pages]) for part in SECTIONS)
    project = _tree("Project", [f"{title} <{name}>" for name, title in ROOT_PAGES.items()])
    return f"""# Locum

{what}
::::{{container}} entries
{cards}
::::

{heading}{install}

{trees}
{project}"""


def title(path: Path) -> str:
    """Return the first heading of the page at ``path``."""
    found = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise ValueError(f"{path.name}: expected a heading of the first level, got none")
    return found[1]


def _card(card: Card, folder: Path) -> str:
    links = "\n".join(
        f"- [{title(folder / 'docs' / f'{page}.md')}](docs/{page}.md)" for page in card.pages
    )
    return f":::{{container}} entry\n{card.title}\n\n{card.text}\n\n{links}\n:::"


def _tree(caption: str, pages: list[str]) -> str:
    lines = "\n".join(pages)
    return f":::{{toctree}}\n:hidden:\n:caption: {caption}\n\n{lines}\n:::\n"
