"""Check the links of the built pages.

Linked files, and linked anchors of HTML pages, must exist. A page may load only files of the site and
``data:`` addresses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

#: Pairs of a tag and an attribute that load a file when a page is opened.
LOADING = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}


@dataclass
class Page(HTMLParser):
    """A parser that collects the links and anchors of one HTML page."""

    links: list[tuple[str, str, str]] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the links and the anchor of an element."""
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.links.append((tag, name, value))
            elif name == "id" and value:
                self.anchors.add(value)


def read(path: Path) -> Page:
    """Parse an HTML file and return its links and anchors."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def check(folder: Path) -> tuple[list[str], int, set[str]]:
    """Check the links of all HTML files in a folder.

    Return messages about broken links, the number of links, and the external addresses, which are not
    opened.
    """
    pages = {path.resolve(): read(path) for path in folder.rglob("*.html")}
    wrong: list[str] = []
    elsewhere: set[str] = set()
    count = 0
    for path, page in pages.items():
        where = path.relative_to(folder.resolve())
        for tag, name, value in page.links:
            count += 1
            parts = urlsplit(value)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                if (tag, name) in LOADING:
                    wrong.append(f"{where}: loads {value}, which is not a file of the site")
                elif parts.scheme not in ("http", "https") or not parts.netloc:
                    wrong.append(f"{where}: expected a web address, got {value}")
                else:
                    elsewhere.add(urldefrag(value).url)
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                wrong.append(f"{where}: links to {value}, but this file does not exist")
            elif (
                parts.fragment
                and target in pages
                and unquote(parts.fragment) not in pages[target].anchors
            ):
                wrong.append(f"{where}: links to {value}, but the page has no such anchor")
    return wrong, count, elsewhere
