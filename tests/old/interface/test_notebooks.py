"""What notebooks show of results: tables and pictures, never a raw repr; names as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locum
from locum.constructions import concatenate, matmul
from locum.proofs import certify, prove
from locum.rasp import Session
from locum.text import MOST, matrix
from tests.cases import histogram


def _simulation() -> tuple[Any, Any, Any]:
    U = locum.UniversalSimulator(2, 2, 1)
    generator = np.random.default_rng(0)
    T = locum.Attention(generator.normal(size=(2, 2)), generator.normal(size=(2, 1)))
    return U, T, generator.normal(size=(2, 2))


def test_results_show_themselves() -> None:
    U, T, X = _simulation()
    model = locum.compile(histogram, length=4, vocabulary="ab")
    X2, Y2 = concatenate(locum.tokens, (2, 2), (2, 2))
    for result, words in [
        (histogram.architecture, "layer 0"),
        (model.architecture, "d_model"),
        (model.residual("ab"), "embedding"),
        (U.explain(T, X), "error"),
        (certify(U, T, X), "certified"),
        (prove("transpose", 2, 2), "Proven for all real inputs"),
        (Session("ab").execute("x = indices;")[0], "Example: x"),
        (matmul(X2, Y2), "2×2"),
    ]:
        html = result._repr_html_()
        assert words in html, (type(result).__name__, html)
        assert html.count("<table") == html.count("</table>") >= 1


def test_names_are_text() -> None:
    (result,) = Session("ab").execute('"<script>alert(1)</script>";')
    assert "<script>" not in result._repr_html_()


def test_large_matrices_are_cut_on_screen() -> None:
    html = matrix("large", np.zeros((MOST + 5, MOST + 9)))
    assert f"({MOST + 5}×{MOST + 9})" in html
    assert html.count("<tr>") == MOST + 1


def test_a_program_draws_itself(tmp_path: Path) -> None:
    picture = histogram.draw("aab")
    assert picture._repr_svg_().startswith("<svg")
    picture.save(tmp_path / "histogram.svg")
    assert (tmp_path / "histogram.svg").read_text() == picture.svg
    with pytest.raises(locum.InputError, match="at most 64 tokens"):
        histogram.draw("a" * 65)
