"""Write pages as single HTML files, with a policy that allows only their own style sheet.

A page has no scripts and no external resources. As a second protection, the Content-Security-Policy
allows only the style sheet with its hash, and forbids scripts and the loading of resources.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
from html import escape


def document(title: str, style: str, body: str) -> str:
    """Return an HTML page without scripts."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    # default-src does not apply to base-uri and form-action.
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style>{body}</html>\n"
    )


def today() -> str:
    """Return the current date (UTC) in ISO format."""
    return datetime.datetime.now(tz=datetime.UTC).date().isoformat()
