"""Hostile files end in a described rejection, within five seconds of CPU and a gigabyte."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from locum.cli.check import STEPS as STEPS_OF_THE_COMMAND
from locum.errors import InputError
from locum.verification import Proof, RejectedError, check, claim, prove
from locum.verification.checker.check import check as check_certificate
from locum.verification.checker.content import sealed
from locum.verification.checker.work import STEPS
from locum.verification.prover import limits
from tests.verification.hostile import LABORIOUS, MALFORMED, certificate

SCRIPT = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
from locum.verification.checker.check import check
from locum.verification.checker.content import RejectedError
try:
    check(json.load(open(sys.argv[1])))
except RejectedError as problem:
    print("rejected:", problem)
"""


HOSTILE = MALFORMED | LABORIOUS
#: Large files, which take their time to be written: the benchmark has them.
SLOW = {
    "a table of 5,000 entries",
    "2,000 functions of one another",
    "100,000 trees",
    "a sum of a hundred entries, squared again and again",
    "patterns of 2,000 positions",
}
#: Those that are checked with all limits as they are; the benchmark does so with every one.
SAMPLE = ("10^6 tokens", "a sum of 2,000 entries, squared")


@pytest.mark.parametrize("name", sorted(HOSTILE.keys() - SLOW))
def test_hostile_certificates_are_rejected_in_words(name: str) -> None:
    """With few steps, so that it is quick: ``benchmarks/bench_checker.py`` takes them all."""
    with pytest.raises(RejectedError) as problem:
        check(sealed(HOSTILE[name](certificate())), steps=STEPS // 25)
    assert len(str(problem.value)) < 300


@pytest.mark.skipif(os.name != "posix", reason="limits of resources are POSIX")
@pytest.mark.parametrize("name", SAMPLE)
def test_a_rejection_takes_five_seconds_and_a_gigabyte_at_most(name: str, tmp_path: Path) -> None:
    file = tmp_path / "hostile.json"
    file.write_text(json.dumps(sealed(HOSTILE[name](certificate()))), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.startswith("rejected: ")
    assert len(done.stdout) < 400


def test_proof_search_is_limited_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    # In a new process: this one may have freed memory, which it then uses again.
    measure = (
        "from locum.verification.prover.limits import memory_in_use; before = memory_in_use(); "
        "held = b'x' * 10**8; print(memory_in_use() > before + 50 or before == 0.0)"
    )
    assert subprocess.check_output([sys.executable, "-c", measure], text=True).strip() == "True"
    # A search may fit into memory that earlier tests have freed; count up instead.
    megabytes = itertools.count()
    monkeypatch.setattr(limits, "memory_in_use", lambda: float(next(megabytes)))
    verdict = prove("attention", 3, 2, 2, megabytes=1)
    assert verdict.holds is None
    assert "is not proven within 1 MB of memory" in str(verdict)


def test_a_name_takes_no_work_that_the_file_does_not_show() -> None:
    """``cofactor 9`` writes out minors for minutes: a file of a few lines could ask for it."""
    with pytest.raises(InputError, match="expected an order up to 7, got 9"):
        claim("cofactor", 9)
    for name in ("cofactor", "determinant", "inverse"):
        label = {"name": name, "shape": [12], "recipe": "", "tolerance": None}
        with pytest.raises(RejectedError, match="does not make sense"):
            check(sealed(certificate() | {"claim": label}))


def test_work_is_counted_not_timed() -> None:
    """The same file takes the same steps every time, and is rejected below them, not above."""
    content = certificate()
    steps = check_certificate(content).steps
    assert check_certificate(content, steps).steps == steps == check_certificate(content).steps
    with pytest.raises(RejectedError, match=r"it takes more than [0-9,]+ steps: try --steps N"):
        check(content, steps=steps - 1)
    assert STEPS_OF_THE_COMMAND == STEPS


def test_a_proof_says_how_to_check_it() -> None:
    proof = prove("transpose", 2, 2)
    assert isinstance(proof, Proof)
    assert proof.check_command("a.json") == "locum check a.json"
    assert (
        replace(proof, steps=STEPS + 7).check_command("a.json") == "locum check a.json --steps 25000007"
    )
