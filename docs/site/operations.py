"""Write docs/operations.md from the table of operations: ``python -m docs.site.operations``."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from docs.site.contents import DOCS

from locum.graph import OPERATIONS

PAGE = DOCS / "operations.md"


def page() -> str:
    """Return the text of the page."""
    sections = "\n\n".join(
        f"## {group.capitalize()}\n\n| operation | takes → gives | meaning |\n|---|---|---|\n"
        + "\n".join(
            f"| `{row.name}`{attributes(row.attributes)} | "
            f"{', '.join(sort.value for sort in row.takes)} → {row.gives.value} | {escape(row.meaning)} |"
            for row in rows
        )
        for group, rows in groupby(OPERATIONS.values(), lambda row: row.group)
    )
    return f"""# Operations of the graph

Use this page to look up the operations that a program consists of. RASP text, Python and the dialects become graphs of
these operations. [language.md](language.md) describes the language.

`python -m docs.site.operations` writes this page from `locum.graph.OPERATIONS`, which has {len(OPERATIONS)} operations. The
attributes of an operation are in parentheses. q is a query, k is a key.

{sections}
"""


def attributes(names: Iterable[str]) -> str:
    """Return the attributes in parentheses, if there are any."""
    listed = ", ".join(f"`{name}`" for name in names)
    return f" ({listed})" if listed else ""


def escape(text: str) -> str:
    """Return text for a cell of a table."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
