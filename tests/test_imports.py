"""The house: imports run one way, and the core stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import understudy

ROOT = Path(understudy.__file__).parent

#: Each part of the house with what it may use. What is not listed may not be imported.
#: Data flows from the front ends into the graph and on to executors and compiler; a front end that
#: can *run* what it builds stands on execution, so it comes after it here.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "graph": {"errors"},
    "analysis": {"errors", "graph"},
    "execution": {"errors", "graph", "analysis"},
    "language": {"errors", "graph", "analysis", "execution"},
    "constructions": {"errors", "graph", "analysis", "execution", "language"},
    "transformer": {"errors", "graph", "analysis", "execution"},
    "compiler": {"errors", "graph", "analysis", "execution", "transformer"},
    "simulators": {
        "errors",
        "graph",
        "analysis",
        "execution",
        "language",
        "constructions",
        "compiler",
        "transformer",
    },
    "verification": {
        "errors",
        "graph",
        "analysis",
        "execution",
        "language",
        "constructions",
        "compiler",
        "transformer",
        "simulators",
    },
    "display": {
        "errors",
        "graph",
        "analysis",
        "execution",
        "language",
        "constructions",
        "compiler",
        "transformer",
        "simulators",
        "verification",
    },
}
#: The faces may use everything.
FACES = {"cli", "__init__", "__main__"}
#: Too heavy to be loaded by ``import understudy`` or ``understudy --help``.
HEAVY = (
    "numpy",
    "torch",
    "flint",
    "rich",
    "prompt_toolkit",
    "lark",
    "matplotlib",
    "safetensors",
    "starlette",
)


def part_of(module: str) -> str:
    """``understudy.graph.node`` → ``graph``."""
    pieces = module.split(".")
    return pieces[1] if len(pieces) > 1 else "__init__"


def imported(path: Path) -> set[str]:
    """Parts of the house that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} uses a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {part_of(name) for name in names if name.split(".")[0] == "understudy"}
    return found


def test_imports_run_one_way() -> None:
    for path in sorted(ROOT.rglob("*.py")):
        part = path.relative_to(ROOT).with_suffix("").parts[0]
        if part in FACES:
            continue
        assert part in MAY_IMPORT, f"{path}: give the new part {part!r} a place in the house"
        wrong = imported(path) - MAY_IMPORT[part] - {part}
        assert not wrong, f"{path} imports {sorted(wrong)}, which {part} must not use"


def test_the_house_has_no_cycle() -> None:
    placed: set[str] = set()
    for part, below in MAY_IMPORT.items():
        assert below <= placed, f"{part} is listed before something it may use"
        placed.add(part)


def loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*(m for m in {HEAVY!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_loads_nothing_heavy() -> None:
    assert loaded_by("import understudy") == set()


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import click.testing, understudy.cli.main as m\n"
        "assert click.testing.CliRunner().invoke(m.cli, ['--help']).exit_code == 0"
    )
    assert loaded_by(code) == set()
