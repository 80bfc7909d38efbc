"""Links: the state of the page in a fragment."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locum.errors import InputError
from locum.interface.playground.share import LARGEST, PREFIX, fragment, state

#: What a browser's numbers hold.
INTEGERS = st.integers(-(2**53), 2**53)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(TEXT, TEXT | INTEGERS | st.booleans(), max_size=5))
def test_round_trip(content: dict[str, object]) -> None:
    link = fragment(content)
    assert set(link[4:]) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert state(link) == content


@pytest.mark.parametrize("link", ["", "#v1=", "#v1=%%", "#v2=AAAA", "#v1=AAAA", "#v1=" + "é", "#v1=A"])
def test_what_is_no_link_is_refused(link: str) -> None:
    with pytest.raises(InputError, match="expected a link"):
        state(link)


def packed(data: bytes, more: bytes = b"") -> str:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return PREFIX + base64.urlsafe_b64encode(
        packer.compress(data) + packer.flush() + more
    ).decode().rstrip("=")


#: What is no link, and why; the page's script refuses the same ones (``test_browser.py``).
NO_LINKS = {
    "an array": packed(b"[1]"),
    "a number": packed(b"1"),
    "nothing": packed(b"null"),
    "trailing bytes": packed(b'{"source":"x"}', b"\0"),
    "two streams": packed(b"{}", packed(b"{}").encode()),
    "cut short": packed(b'{"source":"xyz"}')[:-3],
    "an odd length": packed(b"{}") + "A",
    "padding": packed(b'{"a":1}') + "=",
    "a space": packed(b"{}").replace("=", "= "),
    "another alphabet": PREFIX + "+/+/",
    "too large": packed(b'{"source":"' + b"x" * LARGEST + b'"}'),
    "far too large": packed(b'{"source":"' + b"x" * (40 * LARGEST) + b'"}'),
    "one level too deep": packed(b'{"a":' + b"[" * 8 + b"]" * 8 + b"}"),
    "too deep": packed(b'{"a":' + b"[" * 9 + b"]" * 9 + b"}"),
    "far too deep": packed(b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}"),
    "no number": packed(b'{"a":NaN}'),
    "infinite": packed(b'{"a":1e999}'),
    "digits that floats drop": packed(b'{"a":[0.99999999999999999]}'),
    "an integer that floats round": packed(b'{"a":9007199254740993}'),
    "too small a number": packed(b'{"a":"\\"","b":1e-400}'),
    "an integer beyond floats": packed(b'{"a":1' + b"0" * 400 + b"}"),
    "not UTF-8": packed(b'{"a":"\xff"}'),
    "UTF-16": packed('{"a":1}'.encode("utf-16")),
    "a mark": packed(b'\xef\xbb\xbf{"a":1}'),
}
LINKS = {
    "the largest": packed(b'{"source":"' + b"x" * (LARGEST - 13) + b'"}'),
    "the deepest": packed(b'{"a":' + b"[" * 7 + b"]" * 7 + b"}"),
    "empty": packed(b"{}"),
    "numbers with zeros, digits in texts": packed(
        b'{"a":[0.10,1e0,-2.50E-3,0e9],"b\\\\":"0.99999999999999999","\\"1e-400":1}'
    ),
}


@pytest.mark.parametrize("why", NO_LINKS)
def test_links_are_read_to_the_last_byte_and_bounded(why: str) -> None:
    with pytest.raises(InputError, match="expected a link of the playground"):
        state(NO_LINKS[why])


@pytest.mark.parametrize(
    "content",
    [
        {"source": "x" * LARGEST},
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": 10**400},
        {"a": 2**53 + 1},
        {"a": [[[[[[[[[]]]]]]]]]},
        {"a": "\ud800"},
        {"a": b"bytes"},
        {1: "no name"},
        {"a": (1, 2)},
    ],
)
def test_no_link_is_made_that_would_be_refused(content: Any) -> None:
    with pytest.raises(InputError, match="expected a state of the page that a link can hold"):
        fragment(content)


@pytest.mark.parametrize("why", LINKS)
def test_links_at_the_limits_are_read(why: str) -> None:
    assert isinstance(state(LINKS[why]), dict)
