"""Every erratum quotes the paper to the letter, up to whitespace."""

from __future__ import annotations

import pytest

from locum.paper.errata import ERRATA
from tests.old.paper.source import normalised, paper

QUOTES = [(number, quote) for number, erratum in ERRATA.items() for quote in erratum.quotes]


def test_every_erratum_has_short_quotes() -> None:
    for number, erratum in ERRATA.items():
        assert erratum.quotes, number
        for quote in erratum.quotes:
            assert quote == normalised(quote), number
            assert 5 < len(quote) < 180, number
            assert "`" not in quote, number  # docs/errata.md sets quotes as code


@pytest.mark.parametrize(("number", "quote"), QUOTES, ids=lambda value: value[:20])
def test_the_paper_contains_the_quote(number: str, quote: str) -> None:
    assert quote in paper()
