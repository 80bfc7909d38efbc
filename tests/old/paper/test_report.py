"""The reproduction: every statement has an entry, and the page says what was run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from locum.interface.display.report_page import FILTERS, report_markdown, report_page
from locum.paper.errata import ERRATA
from locum.paper.evidence import STATUSES
from locum.paper.paper_report import Report, reproduce
from locum.paper.statements import STATEMENTS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report() -> Report:
    return reproduce()


@pytest.fixture(scope="module")
def page(report: Report) -> str:
    return report_page(report)


def test_everything_holds_as_stated(report: Report) -> None:
    assert [row.key for row in report.rows] == list(STATEMENTS)
    assert [row.key for row in report.rows if not row.holds] == []
    assert report.holds
    statuses = {row.key: row.status for row in report.rows}
    assert "fails" not in statuses.values()
    assert (
        statuses["lem:MaxMin"] == statuses["algo:trans"] == statuses["fig:completeinverse"] == "right"
    )
    assert statuses["lst:MaxMin"] == statuses["algo:matmul"] == "wrong"


def test_the_page_of_verdicts_lists_the_verdicts_of_the_report(report: Report) -> None:
    page = (Path(__file__).parents[3] / "docs" / "verdicts.md").read_text(encoding="utf-8")
    assert page.splitlines()[page.splitlines().index("|---|---|---|---|") + 1 :] == [
        f"| `{row.key}` | {row.title} | {row.verdict} | {', '.join(row.errata)} |"
        for row in report.rows
    ]


def test_every_erratum_but_the_remark_lowers_a_verdict(report: Report) -> None:
    assert report.unshown == ()
    assert {number for row in report.rows for number in row.errata} == {*ERRATA} - {"E25"}
    assert sum(report.errata.values()) == len(ERRATA) - 1


def test_an_erratum_that_no_run_shows_is_a_problem(report: Report) -> None:
    without = [row for row in report.rows if "E11" not in row.errata]
    partial = Report(**(vars(report) | {"rows": tuple(without)}))
    assert partial.unshown == ("E11",)
    assert not partial.holds


def test_every_verdict_shows_what_was_run(report: Report) -> None:
    for row in report.rows:
        assert bool(row.evidence or row.unchecked) == (row.status != "nothing"), row.key
    theorem = next(row for row in report.rows if row.key == "Th:1")
    assert "Universal.U_simulates" in theorem.theorems
    assert any(each.what.startswith("for all inputs: attention") for each in theorem.evidence)


def test_the_page_is_one_file_without_addresses_or_scripts(report: Report, page: str) -> None:
    assert "http" not in page.replace("http-equiv", "")
    assert "<script" not in page
    assert " style=" not in page  # the policy of the page forbids style attributes
    assert "3.376358e-06" in page
    assert "3.040329e-07" in page
    json.dumps(report.to_dict())


def test_every_link_of_the_contents_has_its_target(page: str) -> None:
    targets = set(re.findall(r'id="([^"]+)"', page))
    links = re.findall(r'href="#([^"]+)"', page)
    assert set(links) <= targets
    assert set(STATEMENTS) <= set(links)


def test_each_filter_hides_exactly_the_other_statuses(report: Report, page: str) -> None:
    for number, (name, shown) in enumerate(FILTERS.items()):
        hidden = set(re.findall(rf"#filter-{number}:checked ~ article\.(\w+) ", page))
        assert hidden == set(STATUSES) - set(shown)
        count = sum(row.status in shown for row in report.rows)
        assert f'<label for="filter-{number}">{name} ({count})</label>' in page
    assert {"right", "unchecked"} <= set(STATUSES) - set(FILTERS["only what is wrong"])
    # A link shows its statement even if the filter hides it, and below the buttons of the filter.
    assert "article { scroll-margin-top: 6rem; } article:target { display: block !important; }" in page


def test_quotes_are_set_with_scripts_and_escaped(page: str) -> None:
    assert "S ∈ ℝ<sup>r</sup> produces" in page
    assert "if S[i]&lt;S[i+1] to α ∈ {0}<sup>|S|</sup>" in page
    assert "(0 if tokens&lt;0 else tokens);" in page
    assert "R″_{(l−1)k + (l′−1) + 1}" in page  # the transcription


def test_the_markdown_has_every_statement(report: Report) -> None:
    text = report_markdown(report)
    assert all(f'<a id="{key}"></a>' in text for key in STATEMENTS)
    assert "| ✗ | Algorithm 2 as printed, r, c = 1 … 6 | right at 6 of 36 shapes" in text
