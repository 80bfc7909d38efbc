"""PyTorch's own sample inputs: an operation on U gives eager's results or raises an error.

``op_db.txt`` lists the entries of PyTorch's ``op_db`` of which U computes samples. ``make test`` runs a
sample of every twelfth entry, ``make fuzz`` all samples of all entries.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

pytest.importorskip("torch")
pytest.importorskip("expecttest")
from tests.old.torch.opinfo import DTYPES, EXECUTORS, OPS, run_samples

NAMES = Path(__file__).with_name("op_db.txt").read_text(encoding="utf-8").split()
EVERYTHING = settings().max_examples >= 20_000
SAMPLED = NAMES if EVERYTHING else NAMES[::12]


def test_the_list_names_entries_of_op_db() -> None:
    assert set(NAMES) <= OPS.keys()
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("name", SAMPLED)
def test_corpus_of_samples_is_right_or_rejected(name: str) -> None:
    limit = None if EVERYTHING else 1
    for dtype in DTYPES if EVERYTHING else ("float32",):
        for summary in run_samples(name, dtype, executors=EXECUTORS, limit=limit).values():
            assert summary.wrong == []


@pytest.mark.parametrize("name", SAMPLED[:: 1 if EVERYTHING else 6])
def test_corpus_of_gradients(name: str) -> None:
    summary = run_samples(name, "float64", gradients=True, limit=None if EVERYTHING else 2)["fast"]
    assert summary.wrong == []
