"""A fit that no tolerance mends is given up early, and with the same words."""

from __future__ import annotations

from typing import Any

import pytest

from locum.errors import CompileError
from locum.networks.compiler import compile as compile_program
from locum.networks.compiler import compiling
from locum.networks.compiler.bounds import fitting
from locum.networks.compiler.bounds.fitting import _is_hopeless, _Unfit
from locum.paper import listings
from locum.rasp import Session


def refusals(*needed: float, where: str = "x") -> list[_Unfit]:
    return [_Unfit(f"{number} segments", where, number) for number in needed]


def test_what_takes_ever_more_segments_is_hopeless() -> None:
    assert not _is_hopeless(refusals(60_000))
    assert not _is_hopeless(refusals(70_000, 60_000))
    assert _is_hopeless(refusals(70_000, 60_000, 90_000))
    assert not _is_hopeless([*refusals(60_000), *refusals(90_000, where="y")])


def test_what_changes_nothing_is_hopeless() -> None:
    assert not _is_hopeless(refusals(0, 0))
    assert _is_hopeless(refusals(1, 0, 0, 0))
    other = _Unfit("another range", "x", 0)
    assert not _is_hopeless([*refusals(0, 0), other])


@pytest.mark.parametrize(
    ("listing", "words"),
    [
        ("inverse_corrected", r"domain of reciprocal, got the range \[-1.111e\+05, 1.111e\+05\]"),
        ("softmax", r"domain of reciprocal, got the range \[-0.003, 4968\]"),
    ],
)
def test_listings_that_units_cannot_do_are_refused_soon(
    listing: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tolerances: list[float] = []
    attempt = fitting._Fitting._attempt

    def counted(self: Any, tolerance: float) -> Any:
        tolerances.append(tolerance)
        return attempt(self, tolerance)

    monkeypatch.setattr(fitting._Fitting, "_attempt", counted)
    monkeypatch.setattr(compiling, "find_alternative", lambda *_: None)
    session = Session()
    *_, (_, value) = session.script(listings.text(listing))
    tokens = session.examples.tokens["s-op"]
    with pytest.raises(CompileError, match=words):
        compile_program(value, length=12, vocabulary=list(tokens))
    assert len(tolerances) <= 20  # of two networks: with tables, and with smaller forms
