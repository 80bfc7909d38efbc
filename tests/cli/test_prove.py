"""``locum prove`` and ``locum simulate --certify``."""

from __future__ import annotations

import json

import pytest

from tests.cli.commands import command_line


def test_a_proof_leaves_with_0() -> None:
    done = command_line("prove", "claim", "softmax", "2", "2")
    assert done.returncode == 0, done.stderr
    assert "Proven for all real inputs: softmax 2 2 (stable) = σ(X)" in done.stdout
    printed = json.loads(command_line("prove", "claim", "softmax", "2", "2", "--json").stdout)
    assert printed["verdict"] == "proven"
    assert printed["formula"] == "σ(X)"


def test_a_limit_leaves_with_1() -> None:
    done = command_line("prove", "claim", "attention", "4", "4", "4", "--limit", "0.05")
    assert done.returncode == 1
    assert "not proven within 0.05 seconds" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prove", "claim", "nope"], "expected the name of a claim, got 'nope'"),
        (["prove", "claim", "matmul", "1"], "matmul takes r k c"),
        (["simulate", "--certify", "--order", "2,2"], "--order: expected 3 integers ≥ 1"),
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
