"""``locum prove`` and ``locum simulate --certify``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import locum
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
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert result["verdict"] == "refuted"
    assert result["counterexample"]["s"] == [[-1.0, -2.0]]
    assert result["found"] != result["expected"]


def test_a_limit_leaves_with_1() -> None:
    done = command_line("prove", "claim", "attention", "4", "4", "4", "--limit", "0.05")
    assert done.returncode == 1
    assert "not proven within 0.05 seconds" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prove", "claim", "nope"], "expected the name of a claim, got 'nope'"),
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
