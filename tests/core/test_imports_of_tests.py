"""Tests import public names only, so that everything behind these names can be rewritten.

Public are the names of a package that are not modules, ``locum.errors``, ``locum.__main__``, and what
the documentation imports. ``python -m tests.core.test_imports_of_tests`` prints other uses.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/notebooks").glob("*")]
PACKAGES = {
    "locum", "locum.constructions", "locum.errors", "locum.execution", "locum.experiments",
    "locum.experiments.circuits", "locum.experiments.dataset", "locum.experiments.sweeps",
    "locum.graph", "locum.interface.playground", "locum.languages", "locum.__main__",
    "locum.networks", "locum.networks.compiler", "locum.networks.looped",
    "locum.networks.transformer", "locum.paper", "locum.paper.listings", "locum.proofs",
    "locum.rasp", "locum.rasp.programs", "locum.simulators", "locum.torch",
}  # fmt: skip
#: Modules that a package exports.
MODULES = {"locum.languages.b_rasp", "locum.languages.c_rasp", "locum.languages.rasp_l"}
#: Files that test an algorithm which cannot be seen from outside. The list can only shrink.
ALLOWED: set[str] = set()


def find_names(source: str) -> Iterator[str]:
    """Iterate over the modules and names of ``locum`` that a source imports or mentions as text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"^locum(?:\.\w+)+$", node.value)


def find_documented() -> set[str]:
    """Return the names that pages and examples import from modules."""
    texts = [path.read_text("utf-8") for path in (*PAGES, *(ROOT / "examples").glob("*.py"))]
    found = re.findall(
        r"from (locum[\w.]*) import \(?([\w,\s]+)", "\n".join(texts).replace("\\n", "\n")
    )
    return {f"{module}.{name}" for module, names in found for name in re.findall(r"\w+", names)}


DOCUMENTED = find_documented()


def is_public(name: str) -> bool:
    """Return whether a test outside of ``tests/old`` may import a name or a module."""
    if name.startswith("tests.old"):
        return False
    if name.split(".")[0] != "locum" or name in PACKAGES | MODULES | DOCUMENTED:
        return True
    package, _, last = name.rpartition(".")
    path = SOURCE.joinpath(*name.split("."))
    is_module = path.is_dir() or path.with_suffix(".py").exists()
    return package in PACKAGES and not is_module and (last[0] != "_" or last[:2] == "__")


def find_violations() -> dict[str, list[str]]:
    """Return the private names that each test file outside of ``tests/old`` uses."""
    found = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        private = sorted({n for n in find_names(path.read_text("utf-8")) if not is_public(n)})
        if private and not name.startswith("tests/old/"):
            found[name] = private
    return found


def test_tests_use_public_names() -> None:
    assert find_violations().keys() == ALLOWED


if __name__ == "__main__":
    for file, names in find_violations().items():
        sys.stdout.write(" ".join([file, *names]) + "\n")
