"""Every statement of the paper is quoted as printed, and each verdict follows from what was run."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from locum.errors import InputError
from locum.interface.cli.main import run
from locum.paper import listings
from locum.paper.evidence import (
    CONTEXT,
    CORRECTED,
    OURS,
    PRINTED,
    Evidence,
    decide,
    measure_error,
    summarise,
    try_shapes,
)
from locum.paper.paper_report import examine, reproduce_one
from locum.paper.proven_claims import prove_instance
from locum.paper.statements import STATEMENTS
from locum.proofs import Unproven, about
from locum.rasp.python import tokens
from tests.old.paper.printed import normalise, normalise_tex, source

#: The labels of the paper's source in their order, with their lines.
LABELS = Path(__file__).parent / "labels.txt"
YES, NO = Evidence("run", "right", True), Evidence("run", "wrong", False, erratum="E1")


def test_every_label_of_the_paper_has_a_statement() -> None:
    printed = [line.split() for line in LABELS.read_text(encoding="utf-8").splitlines()]
    labelled = [(str(s.line), s.key) for s in STATEMENTS.values() if s.labelled]
    assert labelled == [tuple(line) for line in printed]
    lines = [statement.line for statement in STATEMENTS.values()]
    assert lines == sorted(lines)


def test_the_documentation_counts_the_statements() -> None:
    text = (Path(__file__).parents[3] / "docs" / "paper.md").read_text(encoding="utf-8")
    labels, passages = re.findall(r"(\d+) labels in the paper, and for (\d+)\s+passages", text)[0]
    labelled = sum(statement.labelled for statement in STATEMENTS.values())
    assert (int(labels), int(passages)) == (labelled, len(STATEMENTS) - labelled)


def test_every_printed_statement_is_checked() -> None:
    for statement in STATEMENTS.values():
        run_at_all = statement.checks or statement.claims or not statement.is_claimed
        assert bool(statement.quote) == bool(run_at_all), statement.key


def test_listings_and_algorithms_show_their_text() -> None:
    for statement in STATEMENTS.values():
        if statement.kind == "listing":
            assert statement.text.startswith("def "), statement.key
            assert statement.text.endswith("}"), statement.key
        if statement.kind == "algorithm":
            assert len(statement.quote.splitlines()) >= 3
            assert all(text.startswith("def ") for text in statement.sources)
    assert STATEMENTS["lst:det"].text.startswith("def Det(Cofactor){")


def test_the_paper_has_the_text_of_every_listing() -> None:
    lines = source()
    if lines is None:
        pytest.skip("the TeX source of the paper is not here; set LOCUM_PAPER to its path")
    whole = " ".join(" ".join(lines).split())
    for statement in STATEMENTS.values():
        assert " ".join(statement.text.split()) in whole, statement.key


@pytest.mark.parametrize("key", [key for key, s in STATEMENTS.items() if s.quote])
def test_the_paper_has_every_quote_near_its_line(key: str) -> None:
    lines = source()
    if lines is None:
        pytest.skip("the TeX source of the paper is not here; set LOCUM_PAPER to its path")
    statement = STATEMENTS[key]
    near = normalise_tex("\n".join(lines[max(0, statement.line - 40) : statement.line + 75]))
    end = 0
    for fragment in statement.quote.replace("\n", "…").split("…"):
        quoted = normalise(fragment)
        start = near.find(quoted, end)  # the fragments are in the order of the paper
        assert start >= 0, fragment
        end = start + len(quoted)


def test_a_changed_quote_is_not_found() -> None:
    text = r"for any $k \ge \frac{rc}{r+c}$, $T_{\sigma}^{(r)}(\prop(A)) = \prop(\sigma(A))$"
    assert normalise("for any k ≥ rc/(r+c), T_σ^{(r)}(prop(A))") in normalise_tex(text)
    for changed in (
        "for any k ≥ rc/(r−c)",
        "for any k ≥ rc/r+c",
        "for any k ≥ rc/(r+c).",
        "for any k ≤ rc/(r+c)",
        "T_σ^{(c)}(prop(A))",
        "T_σ^{(r)}(prop A)",
    ):
        assert normalise(changed) not in normalise_tex(text)


# Verdicts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evidence", "status"),
    [
        ([], "nothing"),
        ([YES], "right"),
        ([YES, NO], "partly"),
        ([NO], "wrong"),
        ([NO, YES._replace(about=CORRECTED)], "wrong"),
        ([YES, NO._replace(about=CORRECTED)], "fails"),
        ([YES, NO._replace(about=OURS)], "fails"),
        ([YES._replace(about=OURS)], "unclaimed"),
        ([YES, NO._replace(about=CONTEXT)], "right"),
        ([NO._replace(about=CONTEXT)], "nothing"),
    ],
)
def test_the_verdict_follows_from_the_evidence(evidence: list[Evidence], status: str) -> None:
    assert decide(evidence).status == status


def test_wording_alone_leaves_a_statement_right() -> None:
    assert decide([YES, NO], {"E1": "C"}).status == "wording"
    assert decide([YES, NO], {"E1": "B"}).status == "partly"
    assert decide([NO], {"E1": "C"}).status == "wrong"
    assert decide([NO, YES._replace(about=CORRECTED)], {"E1": "C"}).status == "wording"
    assert decide([NO, YES._replace(about=CORRECTED)], {"E1": "A"}).status == "wrong"


def test_what_cannot_be_checked_is_not_right() -> None:
    assert decide([YES._replace(about=CONTEXT)], unchecked=True).status == "unchecked"
    assert decide([YES], unchecked=True).status == "right"
    assert decide([], unchecked=True, claimed=False).status == "unclaimed"


def test_shapes_that_cannot_be_run_are_undefined() -> None:
    def undefined(shape: tuple[int, ...]) -> tuple[object, object]:
        return np.zeros(2)[shape[0]], 0.0

    outcomes = try_shapes([(0,), (5,)], undefined)
    assert outcomes == {(0,): "right", (5,): "undefined"}
    assert "undefined at 1. First: n = 5" in summarise("", outcomes, "n").result


def test_errors_are_relative_and_never_hidden() -> None:
    assert measure_error([1e20], [1e20 * (1 + 1e-13)]) < 1e-12
    assert measure_error([np.nan], [1.0]) == np.inf
    assert measure_error([1.0, 2.0], [1.0]) == np.inf


# Single statements ----------------------------------------------------------------------------


def results(key: str) -> str:
    return "; ".join(each.result for each in examine(STATEMENTS[key]).evidence)


def test_figure_3_has_five_layers_of_width_four() -> None:
    row = examine(STATEMENTS["fig:completeinverse"])
    assert row.status == "right"
    assert "5 layers, heads [1, 4, 1, 1, 1], width 4" in results("fig:completeinverse")
    assert "4.333333 -2.666667 -1.333333" in results("fig:completeinverse")


def test_another_number_of_layers_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    inverse = listings.program("cofactor", [1.0] * 9)
    monkeypatch.setattr(listings, "program", lambda name, example: inverse)
    row = examine(STATEMENTS["fig:completeinverse"])
    assert row.status == "wrong"
    assert not row.holds


def test_parity_is_run_on_all_words_up_to_length_7() -> None:
    row = examine(STATEMENTS["rem:multihead"])
    assert row.status == "right"
    assert row.evidence[0].result == "255 cases, all right"


def test_a_wrong_recogniser_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locum.paper.simulator_evidence.Parity.STRENGTH", 0.0)
    row = examine(STATEMENTS["rem:multihead"])
    assert row.status == "partly"
    assert "of 255 cases right" in row.evidence[0].result


def test_a_changed_listing_changes_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    right = listings.text("transpose")
    uncached = "locum.paper.paper_report.prove_instance"
    monkeypatch.setattr(uncached, prove_instance.__wrapped__)
    assert examine(STATEMENTS["lst:transpose"]).status == "right"
    monkeypatch.setattr(listings, "text", lambda name: right.replace("(indices%r)*c", "(indices%r)*r"))
    assert examine(STATEMENTS["lst:transpose"]).status == "wrong"


def test_future_work_is_not_claimed_and_related_work_not_checked() -> None:
    assert reproduce_one("future:weights").status == "unclaimed"
    assert reproduce_one("related:duplicates").status == "unchecked"
    assert reproduce_one("related:temperature").status == "right"


def test_the_verdict_on_the_hierarchy_names_its_u() -> None:
    row = reproduce_one("col:expressive_hierarchy")
    assert row.verdict == (
        "partly wrong as printed, right as corrected; "
        "U is plain if m divides n or d ≥ e + 2, and masked otherwise"
    )
    plain = [each for each in row.evidence if "for plain U" in each.what]
    assert [(each.about, each.holds) for each in plain] == [(PRINTED, True)] * 2


def test_theorem_1_is_about_arbitrary_position_wise_functions() -> None:
    row = reproduce_one("Th:1")
    assert row.verdict == (
        "right up to notation or wording, proven for all inputs at these shapes; for arbitrary "
        "position-wise functions, and with ReLU feed-forwards only up to an error ε and on bounded "
        "inputs"
    )
    assert row.errata == ("E44",)
    assert "830 hidden units" in row.evidence[-1].result
    assert "4,158 hidden units" in row.evidence[-1].result
    assert reproduce_one("sec:relworks").errata == ("E43",)


@pytest.mark.parametrize(
    ("key", "errata"),
    [
        ("multihead:maxmin", ("E42",)),
        ("col:U_multihead", ("E19", "E40")),
        ("rem:linformer", ("E40",)),
        ("eq:linatt", ("E45",)),
        ("lipschitz:gelu", ("E22", "E46")),
    ],
)
def test_statements_with_a_condition_that_is_not_printed(key: str, errata: tuple[str, ...]) -> None:
    row = reproduce_one(key)
    assert row.status == "partly"
    assert row.errata == errata


def test_claims_are_proven_and_failing_proofs_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reproduce_one("lem:MaxMin").verdict == "right, proven for all inputs at these shapes"
    unproven = Unproven(about("a", (1,), tokens, [("s", 1, 1)], lambda s: s), "too hard", "", 0.0)
    monkeypatch.setattr("locum.paper.paper_report.prove_instance", lambda instance: unproven)
    row = reproduce_one("lem:MaxMin")
    assert row.status == "wrong"
    assert not row.holds


def test_theorems_of_the_statements_are_in_proofs() -> None:
    folder = Path(__file__).parents[3] / "proofs"
    for statement in STATEMENTS.values():
        for theorem in statement.theorems:
            file, name = theorem.split(".")
            text = (folder / f"{file}.v").read_text(encoding="utf-8")
            assert re.search(rf"^ *(Theorem|Lemma|Corollary) {name}\b", text, re.MULTILINE), theorem


def test_an_unknown_statement_is_rejected() -> None:
    with pytest.raises(InputError, match="expected the name of a statement, got 'algo:6'; try one of"):
        reproduce_one("algo:6")
    with pytest.raises(InputError, match="got 'E7'; try locum paper errata E7"):
        reproduce_one("E7")


def test_the_case_of_a_label_is_ignored() -> None:
    assert reproduce_one("ALGO:trans").key == "algo:trans"


def test_the_command_line_lists_one_erratum(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["paper", "errata", "e7"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("E7 (")
    assert "E8 (" not in shown
    assert run(["paper", "errata", "E0"]) == 2


def test_the_command_line_runs_one_statement(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["paper", "report", "algo:matmul"]) == 0
    shown = capsys.readouterr().out
    assert "Verdict: wrong as printed, right as corrected." in shown
    assert run(["paper", "report", "algo:matmul", "-o", "page.html"]) == 2
