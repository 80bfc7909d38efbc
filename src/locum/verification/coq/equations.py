"""Write the equations that ``make coq`` generates, and compare them with those that Coq accepted.

Some equations are the same in every run. After Coq accepted them, ``make coq`` writes their hashes and
the hashes of the files in ``proofs/`` to ``proofs/accepted.txt``. The tests compare the hashes without
Coq.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from locum.verification.coq.dense_comparison import draw_cases
from locum.verification.coq.tie_table import BY_NAME, LAYOUTS, MUTANTS, TIES, state_positions
from locum.verification.coq.ties import PREAMBLE, Tie, state_inequality

#: In the order in which they build on each other; the last imports all of them.
FILES = (
    "Rasp", "Reasoning", "Matrices", "Softmax", "Sums", "Products", "Masks", "Lines", "Scatter",
    "Universal", "Paper", "Heads", "Tiled", "Norm", "Activations",
    "Encoder", "Sequences", "Sorting", "GroupSort", "Maxout", "Inversion", "Hierarchy", "Kinds",
    "Encoding", "Rationals", "Agreement", "Errata", "Constructions",
)  # fmt: skip
#: Random programs in every run: the same ones, and others for each seed.
SAME_PROGRAMS, OTHER_PROGRAMS = 200, 100
#: Random shapes of each tie in a run.
RANDOM_SHAPES = 3
#: The file of hashes, in the folder of the proofs.
ACCEPTED = "accepted.txt"
HEADER = (
    "From Coq Require Import List ZArith QArith.\nImport ListNotations.\nOpen Scope nat_scope.\n"
    f"From Locum Require Import {' '.join(FILES)}.\n{PREAMBLE}\n"
)


def same_equations() -> dict[str, Callable[[], str]]:
    """Return functions that write the equations of every run, by their subjects."""

    def write(tie: Tie) -> Callable[[], str]:
        return lambda: "\n".join(map(tie.stated, dict.fromkeys((*tie.shapes, *tie.sweep()))))

    return {
        "header": lambda: "",
        **{f"tie {tie.name}": write(tie) for tie in TIES},
        "positions": lambda: "\n".join(map(state_positions, LAYOUTS)),
        "mutants": lambda: "\n".join(
            state_inequality(BY_NAME[name], shape, mutant()) for name, shape, mutant in MUTANTS
        ),
        "programs": lambda: _write_programs(0, SAME_PROGRAMS),
    }


def random_equations(seed: int) -> Iterator[str]:
    """Write the equations that depend on a seed."""
    for tie in TIES:
        yield from map(tie.stated, tie.draw(seed, RANDOM_SHAPES))
    yield _write_programs(seed, OTHER_PROGRAMS)


def hash_files(proofs: Path) -> dict[str, str]:
    """Return the hash of each file of the proofs."""
    names = [*(f"{name}.v" for name in FILES), "axioms.txt"]
    return {name: _hash((proofs / name).read_text(encoding="utf-8")) for name in names}


def hash_equations(subject: str, text: str) -> str:
    """Return the hash of the equations on one subject."""
    return _hash(HEADER + text if subject == "header" else text)


def read_accepted(proofs: Path) -> dict[str, str]:
    """Read the hashes of the files and equations that Coq accepted."""
    lines = (proofs / ACCEPTED).read_text(encoding="utf-8").splitlines()
    return {subject: found for found, subject in (line.split("  ", 1) for line in lines)}


def write_accepted(proofs: Path, hashes: Mapping[str, str]) -> bool:
    """Write the hashes of accepted files and equations; return whether the file changed."""
    path = proofs / ACCEPTED
    text = "".join(f"{found}  {subject}\n" for subject, found in hashes.items())
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.write_text(text, encoding="utf-8")
    return True


def _write_programs(seed: int, count: int) -> str:
    cases = enumerate(draw_cases(seed, count))
    return "\n".join(case.stated(f"program_{number}") for number, case in cases)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
