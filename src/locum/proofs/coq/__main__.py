"""Check the theorems of ``proofs/``, and equations with executed programs, with Coq (``make coq``).

The files are copied to a temporary folder and compiled in order. Then Coq checks generated files:

- equations (*ties*) between programs and Coq definitions, at small shapes, a sweep of shapes with sizes
  from 9 to 40, and three random shapes;
- wrong equations, which Coq must reject, and equations for the positions of array entries;
- random programs, for which the executable semantics in Coq must return the values of dense execution;
- commands that print the axioms that each theorem uses.

``coqchk`` checks the compiled files with a separate kernel. The exit code is 1 if Coq is not installed,
if a check fails, or if a theorem uses an axiom that ``proofs/axioms.txt`` does not list. Otherwise the
hashes of the accepted files and equations are written to ``proofs/accepted.txt``. The tests compare
these hashes with the current files and equations. If Coq is not installed and the environment variable
``COQ`` is ``skip``, nothing is checked and the exit code is 0.
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

from locum.proofs.coq.equations import (
    ACCEPTED,
    FILES,
    HEADER,
    RANDOM_SHAPES,
    hash_equations,
    hash_files,
    random_equations,
    same_equations,
    write_accepted,
)
from locum.proofs.coq.tie_table import TIES

INSTALL = "install Coq 8.16 or newer (Debian and Ubuntu: apt-get install coq), or set COQ=skip"


def compile_file(folder: Path, name: str) -> tuple[str, float]:
    """Compile one Coq file of a folder; return the output of Coq and the wall time in seconds.

    If Coq rejects the file, exit with the message of Coq.
    """
    began = time.perf_counter()
    done = subprocess.run(
        ["coqc", "-w", "-abstract-large-number", "-Q", ".", "Locum", f"{name}.v"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{name}.v is rejected:\n{done.stdout}{done.stderr}")
    return done.stdout, time.perf_counter() - began


def find_theorems(folder: Path) -> dict[str, str]:
    """Return a mapping from the name of each theorem to its file."""
    return {
        name: f"{file}.v"
        for file in FILES
        for name in re.findall(
            r"^ *Theorem ([A-Za-z]\w*)",
            (folder / f"{file}.v").read_text(encoding="utf-8"),
            flags=re.MULTILINE,
        )
    }


def find_axioms(folder: Path, theorems: Iterable[str]) -> dict[str, list[str]]:
    """Return a mapping from each theorem to the axioms that it uses."""
    lines = [
        f'Goal True. idtac "theorem {name}". Abort.\nPrint Assumptions {name}.' for name in theorems
    ]
    (folder / "Axioms.v").write_text(HEADER + "\n".join(lines), encoding="utf-8")
    printed, _ = compile_file(folder, "Axioms")
    axioms: dict[str, list[str]] = {}
    for piece in printed.split("theorem ")[1:]:
        name, _, rest = piece.partition("\n")
        axioms[name.strip()] = sorted(re.findall(r"^([\w]+\.[\w.]+)\s*:", rest, flags=re.MULTILINE))
    assert axioms.keys() == set(theorems)
    return axioms


def main() -> None:
    """Check all theorems and equations, and print a table, or a JSON object, of the theorems."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("proofs", type=Path, help="the folder with Rasp.v and the other files")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--seed", type=int, help="seed of the random shapes and programs")
    options = parser.parse_args()
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    if shutil.which("coqc") is None or shutil.which("coqchk") is None:
        sys.stderr.write(f"Coq is not installed: {INSTALL}\n")
        sys.exit(0 if os.environ.get("COQ") == "skip" else 1)
    allowed = {line for line in (options.proofs / "axioms.txt").read_text().split("\n") if line}
    console = Console(stderr=options.json)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for path in (*(options.proofs / f"{name}.v" for name in FILES), options.proofs / "axioms.txt"):
            shutil.copy(path, folder)
        hashes = hash_files(folder)
        for name in FILES:
            _, seconds = compile_file(folder, name)
            console.print(f"{name}.v checked in {seconds:.1f} s")
        console.print(f"coqchk checks the compiled files; seed {seed} (repeat with --seed {seed})")
        checker = subprocess.Popen(
            ["coqchk", "-silent", "-Q", ".", "Locum", f"Locum.{FILES[-1]}"],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        try:
            texts = {subject: write() for subject, write in same_equations().items()}
            for name, contents in (
                ("Same", "\n".join(texts.values())),
                ("Random", "\n".join(random_equations(seed))),
            ):
                (folder / f"{name}.v").write_text(HEADER + contents, encoding="utf-8")
                _, seconds = compile_file(folder, name)
                rejected = contents.count("Fail Qed.")
                accepted = contents.count(" Qed.") - rejected
                console.print(
                    f"{name} equations: {accepted} accepted, {rejected} rejected as expected "
                    f"({seconds:.1f} s)"
                )
            theorems = find_theorems(folder)
            axioms = find_axioms(folder, theorems)
            printed, _ = checker.communicate()
        finally:
            checker.kill()
        if checker.returncode:
            sys.exit(f"coqchk rejects the files:\n{printed}")
    used = sorted(set().union(*axioms.values()))
    tied = [
        (tie.name, tie.theorem, tie.file, len({*tie.shapes, *tie.sweep()}) + RANDOM_SHAPES)
        for tie in TIES
    ]
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
        table = Table("construction", "theorem", "tied at", "axioms")
        for item, name, file, shapes in (*tied, *others):
            where = f"{shapes} shapes" if shapes else "–"
            table.add_row(item, f"{file[:-2]}.{name}", where, str(len(axioms[name])))
        console.print(table)
        for axiom in used:
            console.print(f"axiom of Coq's library: {axiom}")
    unlisted = [axiom for axiom in used if axiom not in allowed]
    if unlisted:
        sys.exit(f"axioms that proofs/axioms.txt does not list: {', '.join(unlisted)}")
    hashes |= {subject: hash_equations(subject, text) for subject, text in texts.items()}
    if write_accepted(options.proofs, hashes):
        console.print(f"{options.proofs / ACCEPTED} changed: commit it with the proofs and programs")


if __name__ == "__main__":
    main()
