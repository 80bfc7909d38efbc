"""Links with the state of the page, and files that the page saves.

The state is JSON, compressed by raw deflate, in the alphabet of base64url, behind ``#v1=``: nothing is
stored anywhere, and a server never sees it, since browsers do not send fragments.

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
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from locum.errors import InputError, LocumError
from locum.interface.display.html import inside, policy
from locum.interface.playground import panes, universal_pane, weights_pane
from locum.interface.playground.requests import decimal

PREFIX = "#v1="
#: The most bytes that a link may unpack to, and the most lists and objects inside one another.
LARGEST, DEEPEST = 200_000, 8
_PACKED = re.compile(r"[A-Za-z0-9_-]*")


def fragment(content: dict[str, Any]) -> str:
    """Return the fragment of a link that opens the page in this state; no link that it would refuse.

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
        pass  # what JSON or UTF-8 has no form for, or the page does not take
    raise InputError(
        "expected a state of the page that a link can hold: texts, finite numbers, lists and objects, "
        f"at most {DEEPEST} inside one another, {LARGEST:,} bytes in all; try a shorter program"
    )


def state(link: str) -> dict[str, Any]:
    """Return the state that a fragment holds; the page's script refuses the same ones."""
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
    """Return the text that was packed: one stream to the last byte, and no longer than allowed."""
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
    _finite(text)  # in a browser every number is a float
    return int(text)


def _require_shallow(content: Any) -> None:
    level = [content]
    for _ in range(DEEPEST + 1):
        level = [part for parts in level for part in _parts(parts)]
    if level:
        raise ValueError


def _parts(content: Any) -> list[Any]:
    if isinstance(content, dict):
        return list(content.values())
    return content if isinstance(content, list) else []


#: Characters of a message that are shown.
MAX_ERROR = 2_000
PAGE = Path(__file__).with_name("page")
_SCRIPT = re.compile(r'<script src="([a-z.]+)" defer></script>')
_STYLE = re.compile(r'<link rel="stylesheet" href="([a-z.]+)">')
#: Where the answers stand in the page; the page of the server has none.
_ANSWERS = '<script id="answers" type="application/json">null</script>'
_POLICY = '<meta name="policy">'
#: What the forms of a saved page offer, so that they show what was chosen.
CHOICES = {
    "attentions": weights_pane.SETTINGS["attention"].choices,
    "feedForwards": weights_pane.SETTINGS["feed_forward"].choices,
    "recipes": list(universal_pane.RECIPES),
    "presets": {},
    "defaults": {"network": weights_pane.DEFAULTS, "universal": universal_pane.DEFAULTS},
}
#: The policy of a saved page loads no icon, and a file needs none.
_ICON = '<link rel="icon" href="data:,">'


def save(source: str, typed: str, pane: str, **options: Any) -> dict[str, Any]:
    """Return the page of a program with everything it shows computed beforehand.

    What the page refuses, the saved page refuses in the same words.
    """
    name = options.pop("name")
    state = {"source": source, "input": typed, "pane": pane, "name": name, "options": dict(options)}
    answers = {
        "run": _answer(lambda: panes.run(source, typed)),
        "analyse": _answer(lambda: panes.analyse(source, typed)),
        "draw": _answer(lambda: panes.draw(source, typed, name, svg=True)),
        "compile": _answer(lambda: weights_pane.compile(source, typed, name, **options)),
    }
    return {"html": one_file({"state": state, "answers": answers, "catalogue": CHOICES})}


def save_universal(**settings: Any) -> dict[str, Any]:
    """Return the page of U on this T and X, with its steps computed beforehand."""
    answers = {"explain": _answer(lambda: universal_pane.explain(**settings))}
    state = {"mode": "universal", "u": settings}
    return {"html": one_file({"state": state, "answers": answers, "catalogue": CHOICES})}


def _answer(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return an answer, or why there is none."""
    try:
        return {"ok": True, **work()}
    except LocumError as error:
        return {"ok": False, "error": str(error)[:MAX_ERROR]}


def one_file(data: dict[str, Any]) -> str:
    """Return the page with scripts and styles inside, allowed by their hashes alone, and its data."""
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    scripts = _SCRIPT.findall(page)
    page = _SCRIPT.sub("", page).replace(_ICON, "")
    page = _STYLE.sub(lambda link: f"<style>{_text(link[1])}</style>", page)
    inline = "".join(f"<script>{_text(script)}</script>" for script in scripts)
    page = page.replace("</body>", f"{inline}</body>")
    rules = policy(page)
    page = page.replace(_POLICY, f'<meta http-equiv="Content-Security-Policy" content="{rules}">')
    return page.replace(_ANSWERS, _ANSWERS.replace("null", inside(data)))


def _text(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")
