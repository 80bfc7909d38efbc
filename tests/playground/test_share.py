"""Links: the state of the page in a fragment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locum.errors import InputError
from locum.playground.share import fragment, state

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(TEXT, TEXT | st.integers() | st.booleans(), max_size=5))
def test_round_trip(content: dict[str, object]) -> None:
    link = fragment(content)
    assert set(link[4:]) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert state(link) == content


@pytest.mark.parametrize(
    "link", ["", "#v1=", "#v1=%%", "#v2=AAAA", "#v1=AAAA", "#v1=" + "é", fragment({"a": "b" * 300_000})]
)
def test_what_is_no_link_is_refused(link: str) -> None:
    with pytest.raises(InputError, match="expected a link"):
        state(link)
