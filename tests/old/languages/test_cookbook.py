"""The cookbook: every entry against its plain recogniser, on all words up to its length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from locum.languages.cookbook import COOKBOOK, Compiled
from locum.languages.recogniser import Recogniser

#: What the survey and the cookbook list.
REQUIRED = {
    "Dyck-1",
    "Dyck-2-3",
    "shuffle-Dyck-2",
    "aⁿbⁿcⁿ",
    "majority",
    "parity by counting",
    "PARITY",
    "PARITY with LayerNorm",
    "MOD without positions",
    "induction head",
    "n-grams",
    "predecessor",
    "layer-norm hash",
    "FIRST",
    "B-RASP of a star-free language",
    "C-RASP of a regular language",
}


def test_every_construction_has_an_entry() -> None:
    assert set(COOKBOOK) == REQUIRED


@pytest.mark.parametrize("name", COOKBOOK)
def test_entries_are_right_on_all_words(name: str) -> None:
    entry = COOKBOOK[name]
    result = entry.examine()
    assert result.wrong is None
    assert result.words >= 60
    assert result.layers == len(result.heads) >= 1
    if isinstance(entry, Compiled):
        assert result.status == "certified: error 0"
        for batch in entry.words():
            for word in batch[:: max(1, len(batch) // 4)]:
                assert _dense(entry, word) == entry.plain("".join(word))


def _dense(entry: Compiled, word: tuple[str, ...]) -> Any:
    """Return the answer of dense execution to one word."""
    if isinstance(entry.built, Recogniser):
        return entry.built.accepts(word)
    row = entry.built(list(word))
    return row if entry.everywhere else row[-1]


def test_sizes_are_the_published_ones() -> None:
    assert COOKBOOK["Dyck-2-3"].size() == (2, (1, 1))
    assert COOKBOOK["induction head"].size() == (2, (1, 1))
    assert COOKBOOK["predecessor"].size() == (1, (1,))
    assert COOKBOOK["PARITY"].size()[0] == 2


def test_mod_has_no_positional_encoding() -> None:
    entry = COOKBOOK["MOD without positions"]
    assert isinstance(entry, Compiled)
    # The first row is the begin marker's.
    rows = entry.model.weights.W_pos[1:]
    assert np.array_equal(rows, np.repeat(rows[:1], len(rows), axis=0))


def test_an_entry_that_is_wrong_is_noticed() -> None:
    from dataclasses import replace

    wrong = replace(COOKBOOK["majority"], plain=lambda word: word.count("a") >= word.count("b"))
    assert wrong.examine().wrong == ()


def test_an_entry_is_described_with_its_check() -> None:
    data = COOKBOOK["majority"].to_dict()
    assert (data["holds"], data["wrong"], data["layers"]) == (True, None, len(data["heads"]))
