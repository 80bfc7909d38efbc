"""Have Coq check every theorem of ``proofs/`` and tie it to the programs that run: ``make coq``.

The files are copied to a scratch folder and compiled in their order. Then Coq checks generated files: the
ties, the random programs that compare dense execution with the executable semantics, and the axioms of
each theorem. ``coqchk`` checks the compiled files with its own kernel. The exit code is 1 if a check
fails, or if a theorem uses an axiom that ``proofs/axioms.txt`` does not list.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from locum.verification.coq.programs import Case, draw_cases
from locum.verification.coq.ties import LAYOUTS, MUTANTS, TIES, positions, refused

#: In the order in which they build on each other; the last imports all of them.
FILES = (
    "Rasp", "Reasoning", "Matrices", "Softmax", "Sums", "Products", "Masks", "Lines", "Scatter",
    "Universal", "Paper", "Heads", "Tiled", "Norm", "Activations",
    "Encoder", "Sequences", "Sorting", "GroupSort", "Maxout", "Inversion", "Hierarchy", "Kinds",
    "Encoding", "Rationals", "Agreement", "Errata", "Constructions",
)  # fmt: skip
#: Random programs in every run: the same ones, and others for each seed.
SAME_PROGRAMS, OTHER_PROGRAMS = 200, 100
INSTALL = "install Coq 8.16 or newer (Debian and Ubuntu: apt-get install coq), or set COQ=skip"
HEADER = (
    "From Coq Require Import List ZArith QArith.\nImport ListNotations.\nOpen Scope nat_scope.\n"
    f"From Locum Require Import {' '.join(FILES)}.\n\n"
)


def ties() -> str:
    """Write the generated file: programs are their general definitions, and mutants are not."""
    equal = (tie.stated(shape) for tie in TIES for shape in tie.shapes)
    unequal = (refused(name, shape, mutant()) for name, shape, mutant in MUTANTS)
    return HEADER + "\n".join([*equal, *map(positions, LAYOUTS), *unequal])


def programs(seed: int) -> str:
    """Write the generated file of random programs: their values in dense execution and in Coq."""
    cases: dict[str, list[Case]] = {
        "same": draw_cases(0, SAME_PROGRAMS),
        "other": draw_cases(seed, OTHER_PROGRAMS),
    }
    stated = [
        case.stated(f"{name}_program_{number}")
        for name, drawn in cases.items()
        for number, case in enumerate(drawn)
    ]
    return HEADER + "\n".join(stated)


def compiled(folder: Path, name: str) -> tuple[str, float]:
    """Compile one file and return what Coq prints and the seconds it took."""
    began = time.perf_counter()
    done = subprocess.run(
        ["coqc", "-Q", ".", "Locum", f"{name}.v"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{name}.v is rejected:\n{done.stdout}{done.stderr}")
    return done.stdout, time.perf_counter() - began


def theorems_in(folder: Path) -> dict[str, str]:
    """Find every theorem, and the file that it stands in."""
    return {
        name: f"{file}.v"
        for file in FILES
        for name in re.findall(
            r"^ *Theorem ([A-Za-z]\w*)",
            (folder / f"{file}.v").read_text(encoding="utf-8"),
            flags=re.MULTILINE,
        )
    }


def axioms_of(folder: Path, theorems: Iterable[str]) -> dict[str, list[str]]:
    """Ask Coq what each theorem rests on."""
    lines = [
        f'Goal True. idtac "theorem {name}". Abort.\nPrint Assumptions {name}.' for name in theorems
    ]
    (folder / "Axioms.v").write_text(HEADER + "\n".join(lines), encoding="utf-8")
    printed, _ = compiled(folder, "Axioms")
    axioms: dict[str, list[str]] = {}
    for piece in printed.split("theorem ")[1:]:
        name, _, rest = piece.partition("\n")
        axioms[name.strip()] = sorted(re.findall(r"^([\w]+\.[\w.]+)\s*:", rest, flags=re.MULTILINE))
    assert axioms.keys() == set(theorems)
    return axioms


def main() -> None:
    """Check everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("proofs", type=Path, help="the folder with Rasp.v and the other files")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--seed", type=int, help="seed of the random programs")
    options = parser.parse_args()
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    if shutil.which("coqc") is None or shutil.which("coqchk") is None:
        sys.stderr.write(f"Coq is not installed: {INSTALL}\n")
        sys.exit(0 if os.environ.get("COQ") == "skip" else 1)
    allowed = {line for line in (options.proofs / "axioms.txt").read_text().split("\n") if line}
    console = Console(stderr=options.json)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in FILES:
            shutil.copy(options.proofs / f"{name}.v", folder)
            _, seconds = compiled(folder, name)
            console.print(f"{name}.v checked in {seconds:.1f} s")
        console.print("coqchk checks the compiled files once more, beside the ties …")
        checker = subprocess.Popen(
            ["coqchk", "-silent", "-Q", ".", "Locum", f"Locum.{FILES[-1]}"],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        try:
            (folder / "Ties.v").write_text(ties(), encoding="utf-8")
            _, seconds = compiled(folder, "Ties")
            count = sum(len(tie.shapes) for tie in TIES)
            console.print(
                f"{count} programs are the definitions of the theorems, {len(MUTANTS)} mutants are not "
                f"({seconds:.1f} s)"
            )
            (folder / "Programs.v").write_text(programs(seed), encoding="utf-8")
            _, seconds = compiled(folder, "Programs")
            console.print(
                f"{SAME_PROGRAMS + OTHER_PROGRAMS} random programs have the same values in dense "
                f"execution and in Coq (--seed {seed}; {seconds:.1f} s)"
            )
            theorems = theorems_in(folder)
            axioms = axioms_of(folder, theorems)
            printed, _ = checker.communicate()
        finally:
            checker.kill()
        if checker.returncode:
            sys.exit(f"coqchk rejects the files:\n{printed}")
    used = sorted(set().union(*axioms.values()))
    tied = [(tie.name, tie.theorem, tie.file, len(tie.shapes)) for tie in TIES]
    spoken_of = {tie.theorem for tie in TIES}
    others = [("–", name, file, 0) for name, file in theorems.items() if name not in spoken_of]
    if options.json:
        rows = [
            {
                "item": item,
                "theorem": name,
                "file": f"proofs/{file}",
                "shapes": shapes,
                "axioms": axioms[name],
            }
            for item, name, file, shapes in (*tied, *others)
        ]
        sys.stdout.write(json.dumps({"theorems": rows, "axioms": used}, indent=2) + "\n")
    else:
        table = Table("construction", "theorem, for all shapes", "tied at", "axioms")
        for item, name, file, shapes in (*tied, *others):
            where = f"{shapes} shapes" if shapes else "–"
            table.add_row(item, f"{file[:-2]}.{name}", where, str(len(axioms[name])))
        console.print(table)
        for axiom in used:
            console.print(f"axiom of Coq's library: {axiom}")
    unlisted = [axiom for axiom in used if axiom not in allowed]
    if unlisted:
        sys.exit(f"axioms that proofs/axioms.txt does not list: {', '.join(unlisted)}")


if __name__ == "__main__":
    main()
