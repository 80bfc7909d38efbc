"""Programs as Coq terms; what Coq itself decides is checked by ``make coq``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import locum
from locum.errors import InputError
from locum.graph import postorder
from locum.paper.errata import ERRATA
from locum.proofs.coq.coq_text import coq_term
from locum.proofs.coq.equations import (
    FILES,
    HEADER,
    draw_cases,
    hash_equations,
    hash_files,
    read_accepted,
    same_equations,
)
from locum.proofs.coq.tie_table import BY_NAME, MUTANTS, TIES
from locum.proofs.coq.ties import Tie, write_result

PROOFS = Path(__file__).parents[3] / "proofs"


@pytest.mark.parametrize("tie", TIES, ids=lambda tie: tie.name)
def test_a_term_has_one_let_per_node_and_does_not_grow_with_the_shape(tie: Tie) -> None:
    assert len(tie.shapes) >= 12
    sizes = set()
    for shape in tie.shapes:
        program = tie.program(*shape)
        lines = coq_term(program).splitlines()
        assert len(lines) == sum(1 for _ in postorder(program)) + 1
        if min(shape) > 1:
            sizes.add(len(lines))
    # Equal constants are one node, incomplete tiles need a minimum; places of k-PARITY are written out.
    assert max(sizes) < 2 * min(sizes) or tie.name == "k_parity"


def test_shapes_cover_sizes_up_to_40() -> None:
    tie = BY_NAME["matmul_fetch"]
    for argument in range(3):
        assert {shape[argument] for shape in (*tie.shapes, *tie.sweep())} >= set(range(9, 41))
    for tie in TIES:
        shapes = tie.draw(7, 3)
        assert shapes == tie.draw(7, 3) != tie.draw(8, 3)
        assert len(set(shapes)) == 3
        assert all(tie.fits(*shape) and max(shape) <= 40 for shape in (*shapes, *tie.sweep()))


_ADVICE = "differs from what Coq accepted; run `make coq` and commit proofs/accepted.txt"


@pytest.mark.always
@pytest.mark.parametrize("subject", same_equations())
def test_equations_are_those_that_coq_accepted(subject: str) -> None:
    found = hash_equations(subject, same_equations()[subject]())
    assert found == read_accepted(PROOFS).get(subject), f"{subject}: {_ADVICE}"


@pytest.mark.always
def test_proofs_are_those_that_coq_accepted() -> None:
    accepted, files = read_accepted(PROOFS), hash_files(PROOFS)
    for name, found in files.items():
        assert found == accepted.get(name), f"{name}: {_ADVICE}"
    assert accepted.keys() == files.keys() | same_equations().keys()


def test_floats_are_the_fractions_that_they_are() -> None:
    assert "Constant (Fraction 1 10)" not in coq_term((locum.tokens + 0.1).node)
    assert "Constant (Fraction (-3) 4)" in coq_term((locum.tokens + -0.75).node)
    assert "Unary (Member [Integer 1; Integer 4])" in coq_term(locum.member(locum.tokens, [4, 1]).node)


def test_dense_execution_of_random_programs_has_values_and_errors() -> None:
    cases = draw_cases(seed=1, count=40)
    assert {case.values is None for case in cases} == {True, False}
    operations = {node.op for case in cases for node in postorder(case.program)}
    assert operations >= {"aggregate", "best", "sum_over", "selector_width", "divide", "if_else"}
    assert all("runQ" in case.stated("case") for case in cases)


def test_mutants_are_other_programs() -> None:
    for name, shape, mutant in MUTANTS:
        assert write_result(mutant()) != write_result(BY_NAME[name].build(*shape))


@pytest.mark.always
def test_theorems_stand_in_the_files_that_are_named() -> None:
    for tie in TIES:
        text = (PROOFS / tie.file).read_text(encoding="utf-8")
        assert re.search(rf"Theorem {tie.theorem}\b", text), tie.theorem
    assert {tie.file.removesuffix(".v") for tie in TIES} <= set(FILES)
    assert {path.stem for path in PROOFS.glob("*.v")} == set(FILES)
    assert all(name in HEADER for name in FILES)
    index = (PROOFS / "Constructions.v").read_text(encoding="utf-8")
    assert all(re.search(rf"\b{tie.theorem}\.", index) for tie in TIES)


def test_wrong_results_are_refuted() -> None:
    text = (PROOFS / "Errata.v").read_text(encoding="utf-8")
    refuted = set(re.findall(r"Theorem (E\d+)_refuted :\s*~", text))
    assert {number for number, erratum in ERRATA.items() if erratum.severity == "A"} <= refuted
    assert refuted <= set(ERRATA)


def test_a_reader_finds_the_meaning_and_the_theorem_early() -> None:
    def line(file: str, words: str) -> int:
        text = (PROOFS / file).read_text(encoding="utf-8").splitlines()
        return next(number for number, line in enumerate(text, start=1) if words in line)

    assert line("Rasp.v", "Definition aggregate") < 100
    assert line("Universal.v", "Definition U n d dv") < 100
    for path in PROOFS.glob("*.v"):
        head = path.read_text(encoding="utf-8").partition("\nFrom ")[0]
        if path.stem not in ("Rasp", "Reasoning", "Constructions"):
            assert "heorem" in head or "[" in head, path.name


@pytest.mark.always
def test_nothing_is_admitted() -> None:
    for path in PROOFS.glob("*.v"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\b(Admitted|Axiom|Parameter|Conjecture|admit)\b", text), path.name
        assert len(text.splitlines()) < 400, path.name


def test_what_the_embedding_lacks_is_refused() -> None:
    for program, words in [
        (locum.tokens + "a", "the constant 'a'"),
        (locum.tokens_str, "no operation 'tokens'"),
        (locum.lookup(locum.tokens, {1: 2}), "no operation 'lookup'"),
        (locum.tokens * locum.family(3), "free family"),
    ]:
        with pytest.raises(InputError, match=words):
            coq_term(program.node)


def test_without_coq_it_says_how_to_install_it(tmp_path: Path) -> None:
    for skip, code in (("", 1), ("skip", 0)):
        done = subprocess.run(
            [sys.executable, "-m", "locum.proofs.coq", str(PROOFS)],
            env={**os.environ, "PATH": str(tmp_path), "COQ": skip},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code
        assert "install Coq" in done.stderr
