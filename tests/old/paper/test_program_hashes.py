"""The programs of the paper's lemmas do not change unnoticed."""

from __future__ import annotations

from tests.old.paper.program_hashes import FILE, compute_hashes


def test_every_lemma_keeps_its_program() -> None:
    assert compute_hashes() == FILE.read_text(encoding="utf-8").splitlines()
