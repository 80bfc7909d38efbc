"""Configure Sphinx, which ``docs/site/__main__.py`` runs on the staged pages."""

from __future__ import annotations

from typing import Any

from docs.site.lexers import PlainLexer, RaspLexer
from docutils import nodes  # type: ignore[import-untyped]

import locum

project = "Locum"
author = copyright = "The Locum authors"
release = version = locum.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
nitpicky = False
# Options such as --json, and quotation marks in commands, are copied unchanged.
smartquotes = False

myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
add_module_names = False
python_use_unqualified_type_names = True
toc_object_entries = False

html_theme = "furo"
html_title = "Locum"
html_static_path = ["static"]
html_css_files = ["locum.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
# Browsers do not load search summaries from file://, and the search works without summaries.
html_show_search_summary = False
pygments_style = "friendly"
pygments_dark_style = "monokai"


#: Maximum length of code in a table that is never broken into lines.
SHORT = 22
#: Length of the text of a cell from which its column is wide, also on narrow screens.
LONG = 40


def mark_cells(app: Any, doctree: nodes.document) -> None:
    """Add the classes ``short`` to short code and ``long`` to cells with much text, in all tables."""
    for table in doctree.findall(nodes.table):
        for code in table.findall(nodes.literal):
            if len(code.astext()) <= SHORT:
                code["classes"].append("short")
        for cell in table.findall(nodes.entry):
            if len(cell.astext()) >= LONG:
                cell["classes"].append("long")


def setup(app: Any) -> None:
    """Add the lexers of RASP, outputs and Coq to Sphinx, and mark the cells of tables."""
    app.connect("doctree-read", mark_cells)
    app.add_lexer("rasp", RaspLexer)
    app.add_lexer("output", PlainLexer)
    app.add_lexer("coq", PlainLexer)
