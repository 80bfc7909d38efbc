"""Fill the templates of pages, each with a Content-Security-Policy that allows its own script alone.

A page is one file without any address in it. Its data stand in it as JSON, which its script draws; text
goes into the page as text, never as HTML. The policy is a second wall: a browser runs no script and
applies no style sheet but those whose hashes it names, and loads nothing from anywhere.
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
    """Return a page: a template whose script finds ``data`` in the element with the id ``data``."""
    text = template.read_text(encoding="utf-8")
    return text.replace("__POLICY__", policy(text)).replace("__DATA__", inside(data))


def inside(data: Any) -> str:
    """Return data as JSON for an element of a page, which no text in it may end or comment out."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")


def document(title: str, style: str, body: str) -> str:
    """Return a page without a script."""
    sheet = f"<style>{style}</style>"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(sheet)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title>{sheet}{body}</html>\n"
    )


def today() -> str:
    """Return the date that a page is made on."""
    return datetime.datetime.now(tz=datetime.UTC).date().isoformat()


def packed(matrix: Any) -> dict[str, Any]:
    """Return a matrix as base64 of float64, row by row: differences of 1e-16 must survive."""
    import numpy as np

    array = np.ascontiguousarray(matrix, dtype="<f8")
    return {"shape": list(array.shape), "data": base64.b64encode(array.tobytes()).decode("ascii")}


def policy(page: str) -> str:
    """Return the policy for the scripts and style sheets of a page that has no text of users in it.

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
#: What default-src does not cover.
_ENDS = ("base-uri", "form-action")
