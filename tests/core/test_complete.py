"""Every public name, command and claim occurs in the core tests.

Names are found in the source: ``con.relu`` after ``from locum import constructions as con`` is a use of
``locum.constructions.relu``. Operations are in test_tables.py, overloads of PyTorch in test_torch_rows.py
and claims in test_proofs.py.
"""

from __future__ import annotations

import ast
import importlib
import re
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
#: Errors alone do not test a function.
FILES = [*HERE.glob("*.py"), HERE.parent / "cases.py", HERE.parent / "tracr_programs.py"]
TESTS = [path for path in FILES if path.stem not in ("test_complete", "test_errors")]
PACKAGES = (
    "locum", "locum.constructions", "locum.graph", "locum.languages", "locum.networks.compiler",
    "locum.networks.looped", "locum.networks.transformer", "locum.proofs", "locum.rasp",
    "locum.simulators", "locum.torch",
)  # fmt: skip
#: Names that other packages use, or that tests of their packages use. The list can only shrink.
ELSEWHERE: dict[str, set[str]] = {}


def find_uses(path: Path) -> Iterator[str]:
    """Iterate over the qualified names of ``locum`` that a file uses."""
    names: dict[str, str] = {"locum": "locum"}
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("locum"):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
            yield names[node.id]
        if isinstance(node, ast.Attribute):
            words = ast.unparse(node).split(".")
            if words[0] in names:
                yield ".".join([names[words[0]], *words[1:]])


def resolve(name: str) -> object:
    """Return the object with a qualified name."""
    module, _, last = name.rpartition(".")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return getattr(importlib.import_module(module), last)


@pytest.mark.parametrize("package", PACKAGES)
def test_names(package: str) -> None:
    used = {name for path in TESTS for name in find_uses(path)}
    module = importlib.import_module(package)
    public = {name for name in module.__all__ if not isinstance(getattr(module, name), types.ModuleType)}
    missing = {name for name in public if f"{package}.{name}" not in used}
    assert missing == ELSEWHERE.get(package, set())


def test_commands() -> None:
    """Each command that the help lists has a transcript."""
    text = (HERE / "transcripts.txt").read_text("utf-8")
    listed = re.findall(r"^  ([a-z]+)  +[A-Z]", text[text.index("$ locum --help") :], re.MULTILINE)
    assert listed
    for command in listed:
        assert f"$ locum {command} " in text, command
