"""Stage the sources of the site: the pages as they are, the home page, and what generators write.

The stage has the form of the repository, so that a link that works there works here.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from docs.site.contents import DOCS, ENTRIES, ROOT, Entry

#: Links to files of the repository that are not pages; these files are offered as downloads.
LINK = re.compile(r"\]\(((?:\.\./)*[\w./-]+\.(?!md\b)\w+)\)")
#: Pages beside docs/, with their titles in the sidebar.
ROOT_PAGES = {"README": "Read me", "CONTRIBUTING": "Contributing", "CHANGELOG": "Changelog"}


def stage(folder: Path, generated: dict[str, str]) -> None:
    """Fill ``folder`` with the sources: ``generated`` has pages (and pictures) by their path in docs/."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copytree(DOCS / "pictures", folder / "docs" / "pictures")
    for page in (*(ROOT / f"{name}.md" for name in ROOT_PAGES), *DOCS.glob("*.md")):
        # A notebook is a file of the repository, and a page of the site.
        text = re.sub(r"\]\(([\w/]*notebooks/\w+)\.py\)", r"](\1.md)", page.read_text(encoding="utf-8"))
        (folder / page.relative_to(ROOT)).write_text(text, encoding="utf-8")
    for path, text in generated.items():
        target = folder / "docs" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    (folder / "index.md").write_text(home(folder), encoding="utf-8")
    for page in folder.rglob("*.md"):
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            # A copy, not a symbolic link to the folder: builders of packages follow those.
            target = Path(os.path.normpath(page.parent / link))
            file = ROOT / target.relative_to(folder)
            if file.is_file() and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, target)


def home(folder: Path) -> str:
    """Write the home page: the sentence and picture of the README, the entries, the tables of contents."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    sentence = readme.partition("\n\n")[2].partition("\n\n")[0]
    cards = "\n".join(_card(entry, folder) for entry in ENTRIES if entry.key != "reference")
    trees = "\n".join(_tree(entry.title, [f"docs/{page}" for page in entry.pages]) for entry in ENTRIES)
    project = _tree("The project", [f"{title} <{name}>" for name, title in ROOT_PAGES.items()])
    return f"""# Locum

{sentence}

![The matrices of T and the rows of X become tokens; U answers T(X)](docs/pictures/universal.svg)

::::{{container}} entries
{cards}
::::

New here: [at a glance](README.md), [what one can do](docs/README.md), [the words](docs/glossary.md).

{trees}
{project}"""


def title(path: Path) -> str:
    """Return the title of a page: its first heading."""
    found = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise ValueError(f"{path.name} has no heading of the first level")
    return found[1]


def _card(entry: Entry, folder: Path) -> str:
    links = "\n".join(
        f"- [{title(folder / 'docs' / f'{page}.md')}](docs/{page}.md)" for page in entry.pages[:5]
    )
    return f":::{{container}} entry\n{entry.title}\n\n{entry.text}\n\n{links}\n:::"


def _tree(caption: str, pages: list[str]) -> str:
    lines = "\n".join(pages)
    return f":::{{toctree}}\n:hidden:\n:caption: {caption}\n\n{lines}\n:::\n"
