"""Hostile files end in a described rejection, within seconds of CPU and a gigabyte."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import locum
from locum.errors import InputError
from locum.verification import Proof, RejectedError, about, check, claim, prove
from locum.verification.checker.content import sealed, subject_json
from locum.verification.prover import limits

SCRIPT = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))  # five, on a machine that is not busy
from locum.verification.checker.check import check
from locum.verification.checker.content import RejectedError
try:
    check(json.load(open(sys.argv[1])))
except RejectedError as problem:
    print("rejected:", problem)
"""


def certificate() -> Any:
    proof = prove("groupsort", 2, 2)
    assert isinstance(proof, Proof)
    return json.loads(json.dumps(proof.certificate))


def function(**changes: Any) -> dict[str, Any]:
    one = [["1", []]]
    row = {"function": "exp", "base": None, "top": [["1", [[0, 1]]]], "bottom": one}
    return row | changes


def about_program(program: locum.SOp, count: int) -> Callable[[Any], Any]:
    """A certificate about another program, without cases."""
    subject = about("x", (count,), program, [("s", 1, count)], lambda s: s * 0).subject
    cases = {"functions": [], "polynomials": [], "cases": 1}
    tree = {"entries": list(range(count)), "cases": "shown"}
    return lambda c: c | subject_json(subject) | cases | {"trees": [tree]}


def squared(program: locum.SOp, times: int) -> locum.SOp:
    for _ in range(times):
        program = program * program
    return program


def chain(length: int) -> list[Any]:
    """x + x, doubled again and again: written out it has 2^length letters."""
    rows: list[Any] = [["input", [], ["X", 1, 2]]]
    return rows + [["add", [n, n], None] for n in range(length)]


HOSTILE: dict[str, Callable[[Any], Any]] = {
    "a coefficient 1/0": lambda c: c | {"polynomials": [[["1/0", [[0, 1]]]]]},
    "a base 1/0": lambda c: c | {"functions": [function(base="1/0")]},
    "a zero polynomial below": lambda c: c | {"functions": [function(bottom=[])]},
    "a power of 10^8": lambda c: c | {"functions": [function(top=[["1", [[0, 10**8]]]])]},
    "a shape of 10^7": lambda c: c | {"inputs": [["X", 1, 10**7]]},
    "10^6 tokens": lambda c: c | {"tokens": [0] * 10**6},
    "2,000 functions": lambda c: (
        c
        | {"functions": [function(top=[[str(n + 1), [[0, 1]]], ["1", [[1, 1]]]]) for n in range(2000)]}
    ),
    "20,000 functions": lambda c: c | {"functions": [function()] * 20_000},
    "a formula of 2^60 letters": lambda c: (
        c | {"formulas": {"table": chain(60), "roots": [60]}, "relations": []}
    ),
    "a tree of 200 levels": lambda c: c | {"trees": [{"entries": [0, 1], "cases": deep(200)}]},
    "a large determinant": lambda c: (
        c
        | {
            "inputs": [["X", 30, 30]],
            "formulas": {
                "table": [["input", [], ["X", 30, 30]], ["determinant", [0], None]],
                "roots": [1],
            },
        }
    ),
    "a root of degree 2^24": about_program(locum.constant(3) ** 2.0**-24 - locum.tokens, 1),
    "a root of degree 2^40": about_program(locum.constant(3) ** 2.0**-40 - locum.tokens, 1),
    "a power squared again and again": about_program(
        squared(locum.constant(3) ** 10_000 + 0 * locum.tokens, 30), 1
    ),
    "coefficients squared again and again": about_program(
        squared(locum.constant(3) ** 10_000 * locum.tokens, 10), 1
    ),
    "a hundred logarithms": about_program(
        sum((locum.log(locum.constant(1e300 / n)) for n in range(1, 100)), locum.tokens), 1
    ),
    "a number of a million digits": lambda c: c | {"polynomials": [[["9" * 10**6, [[0, 1]]]]]},
}


def deep(levels: int) -> Any:
    tree: Any = "shown"
    for _ in range(levels):
        tree = {"sign": ">", "of": 0, "answers": ["shown", tree]}
    return tree


@pytest.mark.skipif(os.name != "posix", reason="limits of resources are POSIX")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_certificates_are_rejected_in_words(name: str, tmp_path: Path) -> None:
    file = tmp_path / "hostile.json"
    file.write_text(json.dumps(sealed(HOSTILE[name](certificate()))), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.startswith("rejected: ")
    assert len(done.stdout) < 400


def test_proof_search_is_limited_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    before = limits.memory_in_use()
    held = b"x" * 10**8
    assert limits.memory_in_use() > before + 50 or before == 0.0  # 0: a system that does not tell
    del held
    # A search may fit into memory that earlier tests have freed; count up instead.
    megabytes = itertools.count()
    monkeypatch.setattr(limits, "memory_in_use", lambda: float(next(megabytes)))
    verdict = prove("attention", 5, 5, 5, megabytes=1)
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
