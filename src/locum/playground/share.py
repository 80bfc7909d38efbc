"""Put the state of the page into a link, and take it out again, as the page's own script does.

The state is JSON, compressed by raw deflate, in the alphabet of base64url, behind ``#v1=``: nothing is
stored anywhere, and a server never sees it, since browsers do not send fragments.

>>> link = fragment({"source": "x = indices;", "input": "abc"})
>>> link[:4], state(link)
('#v1=', {'source': 'x = indices;', 'input': 'abc'})
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any

from locum.errors import InputError

PREFIX = "#v1="
#: The most bytes that a link may unpack to.
LARGEST = 200_000


def fragment(content: dict[str, Any]) -> str:
    """Return the fragment of a link that opens the page in this state."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    packed = packer.compress(data) + packer.flush()
    return PREFIX + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def state(link: str) -> dict[str, Any]:
    """Return the state that a fragment holds."""
    try:
        if not link.startswith(PREFIX):
            raise ValueError
        text = link.removeprefix(PREFIX)
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars="-_", validate=True)
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
        data = unpacker.decompress(packed, LARGEST)
        if not unpacker.eof:
            raise ValueError
        content = json.loads(data)
    except (ValueError, binascii.Error, zlib.error, RecursionError):
        raise InputError(f"expected a link of the playground ({PREFIX}…), got {link[:40]!r}") from None
    if not isinstance(content, dict):
        raise InputError("expected a link that holds an object")
    return content
