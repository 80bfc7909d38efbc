"""The checker uses the program graph, and nothing else that the prover uses."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import locum.proofs.checker
from locum.proofs import Proof, Refutation, about, prove

FOLDER = Path(locum.proofs.checker.__file__).parent
#: All that the checker may import of Locum beside itself: the reader of graphs, and errors.
ALLOWED = ("locum.graph", "locum.errors", "locum.proofs.checker")
#: What the reader of graphs stands on: the lock of its pool, limits, the parsing of JSON.
LOADED = (*ALLOWED, "locum.shared_state", "locum.budget", "locum.files", "locum.public_names")
#: Arithmetic and executors that are the prover's.
FOREIGN = ("flint", "numpy", "sympy", "mpmath", "gmpy2")


def test_the_checker_imports_the_reader_of_graphs_and_nothing_else() -> None:
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [str(node.module)]
            for name in names:
                top = name.split(".")[0]
                assert top not in FOREIGN, f"{path.name} imports {name}"
                assert top != "locum" or name.startswith(ALLOWED), f"{path.name} imports {name}"
                assert top == "locum" or top in sys.stdlib_module_names, f"{path.name} imports {name}"


def test_checking_loads_nothing_of_the_prover(tmp_path: Path) -> None:
    """A certificate and a refutation are checked in a process that has loaded no other arithmetic."""
    proof = prove("attention", 2, 1, 1)
    refutation = prove(about("x", (1,), locum.tokens + 1, [("s", 1, 1)], lambda s: s))
    assert isinstance(proof, Proof)
    assert isinstance(refutation, Refutation)
    files = []
    for name, verdict in (("proof", proof), ("refutation", refutation)):
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(json.dumps(verdict.certificate), encoding="utf-8")
    script = """
import json, sys
from locum.proofs.checker.check import check, check_refutation
for path, function in zip(sys.argv[1:], (check, check_refutation)):
    print(function(json.load(open(path))))
print(*sorted(name for name in sys.modules if name.split(".")[0] in ("locum", "flint", "numpy")))
"""
    command = [sys.executable, "-c", script, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    first, second, loaded = done.stdout.splitlines()
    assert first == "1"
    assert second.startswith("Refuted(")
    for name in loaded.split():
        assert name in ("locum", "locum.proofs") or name.startswith(LOADED), name
