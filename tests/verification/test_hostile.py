"""Malformed files are rejected with a message; files that need too much are rejected by limits."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from locum.errors import InputError
from locum.interface.cli.prove import run_check
from locum.proofs import Proof, RejectedError, check, claim, prove
from locum.proofs.claims.named import FAMILIES, Family
from locum.proofs.prover import booleans
from tests.cli.commands import command_line
from tests.verification.hostile import LABORIOUS, MALFORMED, certificate


@pytest.mark.parametrize("name", sorted(MALFORMED))
def test_malformed_certificates_are_rejected_with_a_message(name: str) -> None:
    with pytest.raises(RejectedError) as problem:
        check(MALFORMED[name](certificate()))
    assert 10 < len(str(problem.value)) < 300


@pytest.mark.skipif(os.name != "posix", reason="limits of resources are POSIX")
@pytest.mark.parametrize(
    ("name", "seconds", "megabytes"),
    [("a sum of 2,000 entries, squared", 1, 1_000), ("a shape of 10^7", 20, 100)],
)
def test_limits_of_time_and_memory_reject(
    name: str, seconds: int, megabytes: int, tmp_path: Path
) -> None:
    """``benchmarks/bench_checker.py`` takes all files."""
    file = tmp_path / "hostile.json"
    file.write_text(json.dumps(LABORIOUS[name](certificate())), encoding="utf-8")
    result = run_check(file, seconds, megabytes)
    assert result["verdict"] == "rejected"
    assert "it takes more than" in result["problem"] or "MemoryError" in result["problem"]


@pytest.mark.skipif(os.name != "posix", reason="limits of resources are POSIX")
@pytest.mark.parametrize(
    ("text", "seconds", "megabytes", "message"),
    [
        ("[" + "[]," * 2**22 + "[]]", 20, 100, "it takes more than 20 s of CPU time or 100 MB"),
        ("[" + "[]," * (2**23 + 2**21) + "[]]", 1, 4_000, "it takes more than 1 s of CPU time"),
    ],
    ids=["memory", "time"],
)
def test_the_limits_are_for_reading_as_well(
    text: str, seconds: int, megabytes: int, message: str, tmp_path: Path
) -> None:
    """The command read and parsed the file before the process with limits started."""
    file = tmp_path / "large.json"
    file.write_text(text, encoding="ascii")
    done = command_line("prove", "check", file, "--limit", seconds, "--megabytes", megabytes)
    assert done.returncode == 1, done.stderr
    assert message in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="/dev/fd")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "ascii"])
def test_a_certificate_from_a_file_descriptor_in_any_encoding(encoding: str, tmp_path: Path) -> None:
    """The process with limits did not have the descriptor, and its output had the encoding."""
    file = tmp_path / "honest.json"
    file.write_text(json.dumps(certificate()), encoding="utf-8")
    with file.open("rb") as opened:
        number = opened.fileno()
        done = subprocess.run(
            [sys.executable, "-m", "locum", "prove", "check", f"/dev/fd/{number}"],
            env=os.environ | {"PYTHONIOENCODING": encoding},
            pass_fds=[number],
            capture_output=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "Accepted: for all " in done.stdout.decode(encoding)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff", "byte 0 is not UTF-8 text"),
        (b'"', "not JSON"),
        (b"[" * 501, "the JSON is nested too deeply"),
    ],
)
def test_a_file_that_is_not_json_is_an_input_error(
    content: bytes, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(content)
    with pytest.raises(InputError, match=f"cannot read .*a.json: {message}"):
        run_check(file, 20, 500)


def test_an_honest_certificate_is_accepted_within_limits(tmp_path: Path) -> None:
    file = tmp_path / "honest.json"
    file.write_text(json.dumps(certificate()), encoding="utf-8")
    result = run_check(file, 60, 500)
    assert result["verdict"] == "accepted"
    assert result["name"] == "groupsort 2 2"


def test_proof_search_is_limited_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    # In a new process: this one may have freed memory, which it then uses again.
    measure = (
        "from locum.proofs.prover.booleans import memory_in_use; before = memory_in_use(); "
        "held = b'x' * 10**8; print(memory_in_use() > before + 50 or before == 0.0)"
    )
    assert subprocess.check_output([sys.executable, "-c", measure], text=True).strip() == "True"
    # A search may fit into memory that earlier tests have freed; count up instead.
    megabytes = itertools.count()
    monkeypatch.setattr(booleans, "memory_in_use", lambda: float(next(megabytes)))
    verdict = prove("attention", 3, 2, 2, megabytes=1)
    assert verdict.holds is None
    assert "is not proven within 1 MB of memory" in str(verdict)


def test_a_name_takes_no_work_that_the_file_does_not_show() -> None:
    """``cofactor 9`` writes out minors for minutes: a file of a few lines could ask for it."""
    with pytest.raises(InputError, match="expected an order up to 7, got 9"):
        claim("cofactor", 9)
    for name in ("cofactor", "determinant", "inverse"):
        label = {"name": name, "shape": [12], "recipe": "", "tolerance": None}
        with pytest.raises(RejectedError, match="cannot be built"):
            check(certificate() | {"claim": label})


def test_an_error_in_building_a_named_claim_rejects_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: int) -> None:
        raise ZeroDivisionError("a mistake")

    monkeypatch.setitem(FAMILIES, "relu", Family("relu", ("n",), fail))  # type: ignore[arg-type]
    label = {"name": "relu", "shape": [1], "recipe": "", "tolerance": None}
    with pytest.raises(RejectedError, match="cannot be built: a mistake"):
        check(certificate() | {"claim": label})


def test_an_encoder_with_one_head_has_an_output_projection() -> None:
    """The claim with H = 1 was a traceback: U had no W_O."""
    proof = prove("multihead_encoder", 1, 2, 1, 1, 1, 1)
    assert isinstance(proof, Proof)
    assert "V·W_O)W1, 0)W2" in check(proof.certificate).statement
    label = {"name": "multihead_encoder", "shape": [1, 2, 1, 1, 1, 1], "recipe": "", "tolerance": None}
    with pytest.raises(
        RejectedError, match="expected a file about the claim multihead_encoder 1 2 1 1 1 1"
    ):
        check(certificate() | {"claim": label})


def test_a_proof_says_how_to_check_it() -> None:
    proof = prove("transpose", 2, 2)
    assert isinstance(proof, Proof)
    assert proof.check_command("a.json") == "locum prove check a.json"
