"""Configure Sphinx; ``docs/site/__main__.py`` runs it on the staged pages."""

from __future__ import annotations

from typing import Any

from docs.site.lexers import PlainLexer, RaspLexer

import locum

project = "Locum"
author = copyright = "The Locum authors"
release = version = locum.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
nitpicky = False

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
# Summaries in the search are fetched, which browsers refuse at file://; the search works without.
html_show_search_summary = False
pygments_style = "friendly"
pygments_dark_style = "monokai"


def setup(app: Any) -> None:
    """Add the lexers of our own blocks."""
    app.add_lexer("rasp", RaspLexer)
    app.add_lexer("output", PlainLexer)
    app.add_lexer("coq", PlainLexer)
