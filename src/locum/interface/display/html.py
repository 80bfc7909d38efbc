"""Write pages as single HTML files, with a policy that allows only their own scripts and styles.

A page has no external resources. Its script, if any, draws data that are embedded as JSON, and inserts
text as text, never as HTML. As a second protection, the Content-Security-Policy allows only scripts and
style sheets with given hashes, and forbids the loading of resources.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import re
from html import escape
from pathlib import Path
from typing import Any

_INLINE = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)


def filled(template: Path, data: Any) -> str:
    """Return the page of a template; its script reads ``data`` from the element with id ``data``."""
    text = template.read_text(encoding="utf-8")
    return text.replace("__POLICY__", policy(text)).replace("__DATA__", inside(data))


def inside(data: Any) -> str:
    """Return ``data`` as JSON in which no text can end or comment out the surrounding element."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")


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


def packed(matrix: Any) -> dict[str, Any]:
    """Return the shape of a matrix, and its entries as base64 of float64, row by row."""
    import numpy as np

    array = np.ascontiguousarray(matrix, dtype="<f8")
    return {"shape": list(array.shape), "data": base64.b64encode(array.tobytes()).decode("ascii")}


def policy(page: str) -> str:
    """Return the Content-Security-Policy that allows only the inline scripts and styles in ``page``.

    ``page`` must not contain text of users.

    >>> policy("<style>p { margin: 0 }</style>").partition(";")[0]
    "default-src 'none'"
    """
    hashes: dict[str, list[str]] = {"script": [], "style": []}
    for kind, content in _INLINE.findall(page):
        digest = hashlib.sha256(content.encode()).digest()
        hashes[kind].append(f"'sha256-{base64.b64encode(digest).decode()}'")
    rules = [f"{kind}-src {' '.join(sources) or _NOTHING}" for kind, sources in hashes.items()]
    return "; ".join([f"default-src {_NOTHING}", *rules, *(f"{name} {_NOTHING}" for name in _ENDS)])


_NOTHING = "'none'"
#: Directives of the policy to which default-src does not apply.
_ENDS = ("base-uri", "form-action")
