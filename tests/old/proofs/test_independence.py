"""The checker shares no evaluator and no arithmetic with the prover."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import locum.proofs.checker

FOLDER = Path(locum.proofs.checker.__file__).parent
#: All that the checker may import of Locum beside itself: claims, the graph, and errors.
ALLOWED = ("locum.graph", "locum.errors", "locum.proofs.checker", "locum.proofs.claims")


def test_the_checker_does_not_import_the_prover() -> None:
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [str(node.module)]
            for name in names:
                is_standard = name.split(".")[0] in sys.stdlib_module_names
                assert is_standard or name.startswith(ALLOWED), f"{path.name} imports {name}"
