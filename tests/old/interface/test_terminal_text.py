"""Control characters are shown, not obeyed."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from locum.text import printable, printable_json

BIDIRECTIONAL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def is_unsafe(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in BIDIRECTIONAL


def test_every_control_character_is_escaped() -> None:
    for number in range(0x110000):
        character = chr(number)
        if is_unsafe(character):
            assert printable(character).isascii()
            assert printable(character).startswith("\\")


@given(st.text(st.characters()))
def test_no_random_text_keeps_a_control_character(text: str) -> None:
    assert not any(map(is_unsafe, printable(text)))
    assert not any(
        is_unsafe(character) and character not in "\n\t" for character in printable(text, "\n\t")
    )
    quoted = json.dumps(text, ensure_ascii=False)
    assert json.loads(printable_json(quoted)) == text
    assert not any(map(is_unsafe, printable_json(quoted)))


def test_what_is_harmless_stays() -> None:
    text = "σ(XAXᵀ)XV · é · 👩‍👩‍👧 · नि‍न · [31m"
    assert printable(text) == text
