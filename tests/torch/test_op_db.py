"""PyTorch's own sample inputs: an operation on U gives eager's results or raises an error.

``op_db.txt`` has a line for each entry of PyTorch's ``op_db``: the numbers of right, rejected and
unlisted samples in each of ``opinfo.RUNS``. ``make test`` runs a sample of some entries, ``make fuzz``
reproduces the whole file. ``python -m tests.torch.opinfo --table tests/torch/op_db.txt`` writes it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import settings

pytest.importorskip("expecttest")
from tests.documents import ROOT
from tests.torch.opinfo import OPS, RUNS, add_up, run_samples

LINES = Path(__file__).with_name("op_db.txt").read_text(encoding="utf-8").splitlines()
COUNTS = {
    name: [[int(n) for n in word.split("/")] for word in words]
    for name, *words in map(str.split, LINES)
}
#: Entries of which U computes a sample.
COMPUTED = [name for name, runs in COUNTS.items() if runs[0][0]]
EVERYTHING = settings().max_examples >= 20_000


def test_the_file_has_every_entry_and_run() -> None:
    assert COUNTS.keys() == OPS.keys()
    assert {len(runs) for runs in COUNTS.values()} == {len(RUNS)}


def test_the_documentation_has_the_counts() -> None:
    right, rejected, _ = (sum(run[n] for runs in COUNTS.values() for run in runs) for n in range(3))
    share = right / (right + rejected)
    assert share >= 0.95
    page = " ".join((ROOT / "docs" / "torch.md").read_text(encoding="utf-8").split())
    assert f"{right + rejected:,} runs of samples" in page
    assert f"{100 * share:.1f} %" in page


@pytest.mark.parametrize("name", COMPUTED[::12])
def test_samples(name: str) -> None:
    for summary in run_samples(name, "float32", {"fast": 1, "dense": 1, "heads": 1}).values():
        assert summary.wrong == []


@pytest.mark.parametrize("name", COMPUTED[::72])
def test_gradients_of_samples(name: str) -> None:
    assert run_samples(name, "float64", {"fast": 2}, gradients=True)["fast"].wrong == []


@pytest.mark.skipif(not EVERYTHING, reason="make fuzz runs it")
@pytest.mark.parametrize("name", OPS if EVERYTHING else ["abs"])
def test_corpus_of_samples(name: str) -> None:
    for kind, counts in zip(RUNS, COUNTS[name], strict=True):
        summary = add_up(RUNS[kind](name).values())
        assert summary.wrong == []
        if torch.__version__.startswith("2.13."):  # other releases have other samples
            assert summary.word == "/".join(map(str, counts)), kind
