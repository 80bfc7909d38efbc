"""What is declared is what is used: no extra that nothing imports."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Distributions that are imported under another name.
MODULES = {"python_flint": "flint", "z3_solver": "z3"}


def module_of(requirement: str) -> str:
    name = re.split(r"[<>=!~\[; ]", requirement)[0].replace("-", "_").lower()
    return MODULES.get(name, name)


def imported() -> set[str]:
    """Top-level modules that the package imports, wherever in it."""
    names: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(str(node.module).split(".")[0])
            elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
                names |= {str(a.value) for a in node.args if isinstance(a, ast.Constant)}
    return names


def test_every_dependency_and_extra_is_imported() -> None:
    extras = PROJECT["optional-dependencies"]
    users = {name: requirements for name, requirements in extras.items() if name != "dev"}
    declared = {*PROJECT["dependencies"], *(r for requirements in users.values() for r in requirements)}
    assert {module_of(requirement) for requirement in declared} <= imported()


def test_the_makefile_installs_extras_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for extras in re.findall(r"'\.\[([\w,]+)\]'", makefile):
        assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
