"""The reproduction: every label of the paper has a row, and the page says what was measured."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from locum.display.report import compare_page, report_markdown, report_page
from locum.paper import compare
from locum.paper.errata import ERRATA
from locum.paper.items import ITEMS
from locum.paper.labels import LABELS
from locum.paper.report import Report, reproduce
from tests.paper.proven import prove_all

#: The labels of the paper's source in their order, with their lines.
SOURCE = Path(__file__).parent / "labels.txt"


@pytest.fixture(scope="module")
def report() -> Report:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("locum.paper.report.prove_all", prove_all)
        return reproduce()


def test_every_label_of_the_paper_has_a_row(report: Report) -> None:
    printed = [line.split() for line in SOURCE.read_text(encoding="utf-8").splitlines()]
    assert [(row.label, row.line) for row in report.rows] == [
        (name, int(line)) for line, name in printed
    ]


def test_every_item_that_is_claimed_has_a_label() -> None:
    named = {label.item for label in LABELS.values()} - {""}
    unlabelled = {"encoder-parts", "lipschitz"}  # remarks without a label, and parts of a corollary
    assert named | unlabelled == set(ITEMS)


def test_everything_holds_as_stated(report: Report) -> None:
    assert report.holds
    verdicts = {row.label: row.verdict for row in report.rows}
    assert verdicts["fig:simulationexample"].startswith("same digits")
    assert verdicts["lst:MaxMin"].startswith("wrong as printed")
    assert not [label for label, verdict in verdicts.items() if verdict.startswith(("does", "other"))]
    assert {number for row in report.rows for number in row.errata} == set(ERRATA)
    theorem = next(row for row in report.rows if row.label == "Th:1")
    assert "for all shapes, by `make coq`: Universal." in theorem.regenerated
    assert verdicts["lem:softmax"].startswith("right, proven")  # its listing and algorithm are not


def test_the_page_is_one_file_without_addresses_or_scripts(report: Report) -> None:
    page = report_page(report)
    assert "http" not in page.replace("http-equiv", "")
    assert "<script" not in page
    assert all(f'id="{label}"' in page for label in LABELS)
    assert page.count("<svg") == len(report.curves) == 4
    assert "3.376358e-06" in page
    assert "3.040329e-07" in page
    json.dumps(report.to_dict())
    assert all(label in report_markdown(report) for label in LABELS)


def test_the_comparison_has_claimed_and_measured_columns(report: Report) -> None:
    rows = report.comparison
    assert len([row for row in rows if row.status == "measured"]) == compare.MEASURED
    assert all(row.claimed and row.enters_as and row.weights_depend_on for row in rows)
    exact = {
        row.order: row
        for row in rows
        if (row.operation, row.system) == ("transposition", "ours, paper")
    }
    assert {row.error for row in exact.values()} == {0.0}
    assert (exact["8 × 8"].layers, exact["8 × 8"].heads) == (1, 1)
    for row in rows:
        if row.system.startswith(compare.RECONSTRUCTED):
            assert 0 < row.error < 2e-3
    sentences = compare.winners(list(rows))
    assert (
        len(sentences)
        == len({(row.operation, row.order) for row in rows if row.status == "measured"}) - 1
    )
    assert re.search(r"inversion of 3 × 3: .* 1216 layers", " ".join(sentences))
    # What is compared is told: instructions with units, ours with reconstructions.
    (inversion,) = (sentence for sentence in sentences if sentence.startswith("inversion of 3 × 3"))
    assert "(ours, cofactor: hard attention, exact feed-forwards (instructions))" in inversion
    assert f"{compare.RECONSTRUCTED}, Newton by FLEQ: softmax attention, relu units" in inversion
    assert "<table>" in compare_page(rows)
