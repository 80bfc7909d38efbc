"""``locum prove`` and ``locum simulate --certify``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import locum
from locum.paper.errata import claims_of_the_paper
from locum.proofs import Proof, Refutation, RejectedError, check, prove
from tests.cli.commands import command_line
from tests.paper.proven import prove_all


def test_prove_and_check(tmp_path: Path) -> None:
    file = tmp_path / "proof.json"
    done = command_line("prove", "claim", "softmax", "2", "2", "-o", str(file))
    assert done.returncode == 0, done.stderr
    assert "Proven, softmax 2 2 (stable): for all X ∈ ℝ^{2×2}: P⟨X⟩ = σ(X), where" in done.stdout
    assert command_line("prove", "check", str(file)).returncode == 0
    content = json.loads(file.read_text())
    content["claim"]["shape"][0] = 3
    file.write_text(json.dumps(content))
    rejected = command_line("prove", "check", str(file), "--json")
    assert rejected.returncode == 1
    assert json.loads(rejected.stdout)["verdict"] == "rejected"


def test_a_refutation_leaves_with_1(tmp_path: Path) -> None:
    file = tmp_path / "refutation.json"
    done = command_line("prove", "claim", "E2", "--json", "-o", str(file))
    checked = command_line("prove", "check", str(file))
    assert checked.returncode == 0
    assert "Accepted: it is not true that for all s" in checked.stdout
    printed = json.loads(command_line("prove", "check", str(file), "--json").stdout)
    assert printed["shows"] == "refutation"
    assert printed["statement"].startswith("it is not true that for all s")
    assert printed["name"] == "E2 2"
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert result["verdict"] == "refuted"
    assert result["counterexample"]["s"] == [[-1.0, -2.0]]
    assert result["found"] != result["expected"]


def test_the_claims_of_errata_and_listings_are_built_again() -> None:
    """A file named E2 was accepted, although its program was the identity."""
    refutable = claims_of_the_paper()
    listing = prove(refutable["listing-4"](3))
    erratum = prove(refutable["E2"]())
    other = prove(locum.proofs.about("other", (2,), locum.tokens, [("s", 1, 2)], lambda s: s.sort(2)))
    assert isinstance(listing, Proof)
    assert isinstance(erratum, Refutation)
    assert isinstance(other, Refutation)
    assert check(listing.certificate, more=refutable).title == "listing-4 3"
    assert check(erratum.certificate, more=refutable).title == "E2 2"
    forged = other.certificate | {"claim": erratum.certificate["claim"]}
    for content in (
        forged,
        erratum.certificate | {"claim": erratum.certificate["claim"] | {"shape": [3]}},
        erratum.certificate | {"claim": erratum.certificate["claim"] | {"name": "E3"}},
        listing.certificate | {"claim": listing.certificate["claim"] | {"shape": [4]}},
        listing.certificate | {"claim": listing.certificate["claim"] | {"shape": [1, 1, 1]}},
    ):
        with pytest.raises(RejectedError):
            check(content, more=refutable)


def test_a_wrong_hash_is_rejected_with_the_page_of_the_format() -> None:
    proof = prove("transpose", 2, 2)
    assert isinstance(proof, Proof)
    content = proof.certificate | {"program": proof.certificate["program"] | {"hash": "0" * 64}}
    message = "hash: expected the hash of the graph, got another; see docs/certificates.md"
    with pytest.raises(RejectedError, match=message):
        check(content)


def test_a_limit_leaves_with_1() -> None:
    done = command_line("prove", "claim", "attention", "4", "4", "4", "--limit", "0.05")
    assert done.returncode == 1
    assert "not proven within 0.05 seconds" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prove", "claim", "nope"], "expected the name of a claim, got 'nope'"),
        (["prove", "claim", "nope"], "hierarchy, E2, E3, E6, E7, E11, E15, E16"),
        (["prove", "claim", "matmul", "1"], "matmul takes r k c"),
        (["prove", "claim", "relu", "1", "-o", "/no/folder/x.json"], "there is no folder"),
        (["prove", "check", "/no/such/file"], "cannot read"),
        (["simulate", "--certify", "--order", "2,2"], "--order: expected 3 integers ≥ 1"),
        (["prove", "all", "-o", "/no/folder/x.html"], "there is no folder"),
    ],
)
def test_bad_input_leaves_with_2(arguments: list[str], message: str) -> None:
    done = command_line(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_certify() -> None:
    done = command_line("simulate", "--certify", "--order", "8,8,8", "--seed", "0", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["width"] < 1e-30
    assert 0 < result["error"] <= result["certified_error"] < 1e-11
    assert "certified" in command_line("simulate", "--certify", "--order", "2,2,2").stdout


def test_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locum.paper.findings.prove_all", prove_all)
    page = tmp_path / "claims.html"
    done = command_line("prove", "all", "--json", "-o", str(page))
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["claims"]
    assert all(row["holds"] for row in rows)
    assert {number for row in rows for number in row["refuted"]} == {
        "E2", "E3", "E6", "E7", "E11", "E15", "E16",
    }  # fmt: skip
    text = page.read_text(encoding="utf-8")
    assert "<math>" in text
    assert "http" not in text.replace("http-equiv", "")
    items = re.findall(r"<li>(.*?)<br>", text)
    assert len(set(items)) == len(items)  # no sentence twice
    linked = re.findall(r'href="(claims-certificates/[^"]+)"', text)
    commands = re.findall(r"<code>locum prove check ([^<]+)</code>", text)
    assert linked == commands
    assert len(linked) == len(items)
    assert all((tmp_path / name).is_file() for name in linked)
    for name in (linked[0], next(name for name in linked if "/refuted-" in name)):
        assert command_line("prove", "check", str(tmp_path / name)).returncode == 0
    assert f"Locum {locum.__version__}" in text
