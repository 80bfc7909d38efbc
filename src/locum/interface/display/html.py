"""Write pages as single HTML files, with a policy that allows only their own styles.

A page has no scripts and no external resources. As a second protection, the Content-Security-Policy
allows only style sheets with given hashes, and forbids scripts and the loading of resources.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import re
from html import escape

_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)


def document(title: str, style: str, body: str) -> str:
    """Return an HTML page without scripts."""
    sheet = f"<style>{style}</style>"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(sheet)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title>{sheet}{body}</html>\n"
    )


def today() -> str:
    """Return the current date (UTC) in ISO format."""
    return datetime.datetime.now(tz=datetime.UTC).date().isoformat()


def policy(page: str) -> str:
    """Return the Content-Security-Policy that allows only the inline styles in ``page``.

    ``page`` must not contain text of users.

    >>> policy("<style>p { margin: 0 }</style>").partition(";")[0]
    "default-src 'none'"
    """
    digests = [hashlib.sha256(content.encode()).digest() for content in _STYLE.findall(page)]
    sources = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    # default-src does not apply to base-uri and form-action.
    return f"default-src 'none'; style-src {sources}; base-uri 'none'; form-action 'none'"
