"""Every row of the table has a sample, and a change of its construction changes all executors alike.

This shows that executors compute the construction, and that no name of an operation reaches them.
``make test`` checks every twelfth row, ``make fuzz`` all rows.
"""

from __future__ import annotations

import pytest
from hypothesis import settings

pytest.importorskip("torch")
pytest.importorskip("expecttest")
pytest.importorskip("transformers.integrations.moe")
from tests.torch.row_samples import FUNCTIONS, ROWS, check_sensitivity, find_row_sample, read_file

NAMES = list(ROWS)
SAMPLED = NAMES if settings().max_examples >= 20_000 else NAMES[::12]


def test_every_row_has_a_sample() -> None:
    assert ROWS.keys() == read_file().keys() | FUNCTIONS.keys()
    assert not read_file().keys() & FUNCTIONS.keys()


@pytest.mark.parametrize("overload", SAMPLED)
def test_corpus_of_changed_constructions(overload: str) -> None:
    assert not check_sensitivity(overload, find_row_sample(overload))
