"""Write the glossary of the playground from docs/glossary.md: ``python -m docs.site.playground_glossary``."""

from __future__ import annotations

import json
import re

from docs.site.contents import DOCS

PAGE = DOCS.parent / "src/locum/interface/playground/page/glossary.js"
#: Terms that the page of the playground defines; each term is a row of docs/glossary.md.
TERMS = (
    "s-op", "selector", "query, key", "head", "default", "U", "T, X", "⟨T, X⟩", "order", "recipe", "compile",
    "slot", "sink", "MLP", "hard, softmax", "error bound", "claim", "proven",
)  # fmt: skip
_ROW = re.compile(r"^\| (.+?) \| (.+) \|$", re.MULTILINE)


def script() -> str:
    """Return the JavaScript file that maps each of ``TERMS`` to its definition without markup."""
    rows = dict(_ROW.findall((DOCS / "glossary.md").read_text(encoding="utf-8")))
    plain = {term: re.sub(r"\[([^]]+)\]\([^)]+\)|[`*]", r"\1", rows[term]) for term in TERMS}
    entries = json.dumps(plain, ensure_ascii=False, indent=2)
    return (
        "// Terms and their definitions, written by `python -m docs.site.playground_glossary` from "
        f'docs/glossary.md.\n"use strict";\nLocum.glossary = {entries};\n'
    )


if __name__ == "__main__":
    PAGE.write_text(script(), encoding="utf-8")
