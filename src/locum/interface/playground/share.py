"""Make links that contain the state of the page, and list the files of the page.

The fragment of a link is ``#v1=`` followed by the state as JSON, compressed with raw deflate and
encoded in base64url. The state is not stored on a server, because browsers do not send fragments.

>>> link = fragment({"source": "x = indices;", "input": "abc"})
>>> link[:4], state(link)
('#v1=', {'source': 'x = indices;', 'input': 'abc'})
"""

from __future__ import annotations

import base64
import json
import math
import re
import zlib
from pathlib import Path
from typing import Any, NoReturn

from locum.errors import InputError
from locum.interface.playground.requests import decimal

PREFIX = "#v1="
#: Maximum size of an unpacked link in bytes, and maximum nesting of lists and objects.
LARGEST, DEEPEST = 200_000, 8
_PACKED = re.compile(r"[A-Za-z0-9_-]*")


def fragment(content: dict[str, Any]) -> str:
    """Return the fragment of a link that opens the page in the state ``content``.

    States that a link cannot contain raise an error.

    >>> fragment({"source": "x" * 300_000})
    Traceback (most recent call last):
    locum.errors.InputError: expected a state of the page that a link can hold: texts, ...
    """
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    try:
        data = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
        packed = base64.urlsafe_b64encode(packer.compress(data) + packer.flush())
        link = PREFIX + packed.decode().rstrip("=")
        if state(link) == content:
            return link
    except (TypeError, ValueError, RecursionError, InputError):
        pass  # JSON or UTF-8 does not support the content, or the page rejects it
    raise InputError(
        "expected a state of the page that a link can hold: texts, finite numbers, lists and objects, "
        f"at most {DEEPEST} inside one another, {LARGEST:,} bytes in all; try a shorter program"
    )


def state(link: str) -> dict[str, Any]:
    """Return the state in a fragment; the script of the page rejects the same invalid fragments."""
    try:
        if not link.startswith(PREFIX):
            raise ValueError
        text = _unpacked(link.removeprefix(PREFIX))
        content = json.loads(text, parse_constant=_refuse, parse_float=_finite, parse_int=_held)
        _require_shallow(content)
    except (ValueError, OverflowError, zlib.error, RecursionError):
        raise InputError(f"expected a link of the playground ({PREFIX}…), got {link[:40]!r}") from None
    if not isinstance(content, dict):
        raise InputError("expected a link of the playground that holds an object")
    return content


def _unpacked(text: str) -> str:
    """Return the decompressed text of a fragment, a complete deflate stream within the size limit."""
    if not _PACKED.fullmatch(text) or len(text) % 4 == 1:
        raise ValueError
    packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    data = unpacker.decompress(packed, LARGEST + 1)
    if len(data) > LARGEST or not unpacker.eof or unpacker.unused_data:
        raise ValueError
    return data.decode("utf-8")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)  # NaN and Infinity are not JSON


def _finite(text: str) -> float:
    number = decimal(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _held(text: str) -> int:
    _finite(text)  # browsers represent all numbers as floats
    return int(text)


def _require_shallow(content: Any) -> None:
    """Raise ``ValueError`` if more than ``DEEPEST`` lists and objects are nested."""
    level = [content]
    for _ in range(DEEPEST):
        level = [part for parts in level for part in _parts(parts)]
    if any(isinstance(part, (dict, list)) for part in level):
        raise ValueError


def _parts(content: Any) -> list[Any]:
    if isinstance(content, dict):
        return list(content.values())
    return content if isinstance(content, list) else []


PAGE = Path(__file__).with_name("page")
#: Only scripts and styles of the page itself are allowed: no other addresses, and no inline scripts.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
_FILE = re.compile(r'<(?:script src|link rel="stylesheet" href)="([a-z.]+)"')


def page_files() -> list[str]:
    """List the files of the page: the HTML file, and its scripts and style sheets.

    >>> page_files()[:3]
    ['index.html', 'style.css', 'teaching.css']
    """
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    return ["index.html", *_FILE.findall(page)]
