"""Every public name and every command occurs in the core tests.

Names are found in the source: ``con.relu`` after ``from locum import constructions as con`` is a use of
``locum.constructions.relu``. Operations are in test_tables.py, overloads of PyTorch in
test_torch_rows.py and claims in test_proofs.py.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TESTS = [path for path in HERE.glob("*.py") if path.stem != "test_complete"]
TESTS += [HERE.parent / "cases.py"]
PACKAGES = (
    "locum", "locum.constructions", "locum.graph", "locum.languages", "locum.networks.looped",
    "locum.proofs", "locum.rasp", "locum.simulators", "locum.torch",
)  # fmt: skip


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
    """Return the object with a qualified name, or None. A function precedes a module of its name."""
    package, _, last = name.rpartition(".")
    try:
        return getattr(importlib.import_module(package), last)
    except (ImportError, AttributeError, ValueError):
        return None


@functools.cache
def find_tested() -> set[int]:
    """Return the identities of all objects of ``locum`` that the core tests use by name."""
    return {id(resolve(name)) for path in TESTS for name in find_uses(path)} - {id(None)}


@pytest.mark.parametrize("package", PACKAGES)
def test_names(package: str) -> None:
    pytest.importorskip("torch")  # some names are used in tests of PyTorch only
    module = importlib.import_module(package)
    names = {name: getattr(module, name) for name in module.__all__}
    assert [
        name
        for name, value in names.items()
        if not isinstance(value, types.ModuleType) and id(value) not in find_tested()
    ] == []


def test_commands() -> None:
    """Each command that the help lists has a transcript."""
    text = (HERE / "transcripts.txt").read_text("utf-8")
    shown = text[text.index("$ locum --help\n") :].split("\n$ ")[0]
    commands = re.findall(r"^  ([a-z]+)  +[A-Z]", shown, re.MULTILINE)
    assert commands
    assert [
        name for name in commands if not re.search(rf"^\$ locum {name}\b", text, re.MULTILINE)
    ] == []
