"""Write docs/operations.md from the table of operations: ``python -m docs.site.operations``."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from docs.site.contents import DOCS

from locum.graph import OPERATIONS

PAGE = DOCS / "operations.md"


def page() -> str:
    """Return the Markdown text of docs/operations.md."""
    sections = "\n\n".join(
        f"## {group.capitalize()}\n\n| operation | inputs → output | meaning |\n|---|---|---|\n"
        + "\n".join(
            f"| `{row.name}`{attributes(row.attributes)} | "
            f"{', '.join(sort.value for sort in row.takes)} → {row.gives.value} | {escape(row.meaning)} |"
            for row in rows
        )
        for group, rows in groupby(OPERATIONS.values(), lambda row: row.group)
    )
    return f"""# Operations of the graph

Use this page to look up the operations that a program consists of. Locum converts [RASP text](language.md),
Python programs, and programs in [B-RASP](b_rasp.md), [C-RASP](c_rasp.md) and [RASP-L](rasp_l.md) to graphs of these operations.

`locum.graph.OPERATIONS` defines all {len(OPERATIONS)} operations. The command `python -m docs.site.operations` writes this page
from `OPERATIONS`. Parentheses after an operation contain its attributes. In the column *meaning*, a, b and c are the inputs in
their order, and k is a key.

{sections}
"""


def attributes(names: Iterable[str]) -> str:
    """Format the names of attributes in parentheses, or return an empty string if there are none."""
    listed = ", ".join(f"`{name}`" for name in names)
    return f" ({listed})" if listed else ""


def escape(text: str) -> str:
    """Escape characters that have a meaning in a Markdown table."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
