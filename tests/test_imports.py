"""The house: imports run one way, and the core stays light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import locum

ROOT = Path(locum.__file__).parent

#: The parts of the house, from the ground up: each may use those before it, but not those named.
#: Data flows from the front ends into the graph and on to executors and compiler; a front end that
#: can *run* what it builds stands on execution, so it comes after it here.
ORDER: dict[str, set[str]] = {
    "errors": set(),
    "graph": set(),
    "analysis": set(),
    "execution": set(),
    "language": set(),
    "constructions": set(),
    "transformer": {"language", "constructions"},
    "compiler": {"language", "constructions"},
    "simulators": set(),
    "verification": set(),
    "display": set(),
}
MAY_IMPORT = {
    part: set(list(ORDER)[:place]) - barred for place, (part, barred) in enumerate(ORDER.items())
}
#: The faces may use everything.
FACES = {"cli", "__init__", "__main__"}
#: Too heavy to be loaded by ``import locum`` or ``locum --help``.
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
    """``locum.graph.node`` → ``graph``."""
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
        found |= {part_of(name) for name in names if name.split(".")[0] == "locum"}
    return found


def test_imports_run_one_way() -> None:
    for path in sorted(ROOT.rglob("*.py")):
        part = path.relative_to(ROOT).with_suffix("").parts[0]
        if part in FACES:
            continue
        assert part in MAY_IMPORT, f"{path}: give the new part {part!r} a place in the house"
        wrong = imported(path) - MAY_IMPORT[part] - {part}
        assert not wrong, f"{path} imports {sorted(wrong)}, which {part} must not use"


def test_modules_of_the_compiler_import_from_the_ground_up() -> None:
    """The order that its docstring draws: all of its modules, each after those that it imports."""
    folder = ROOT / "compiler"
    drawn = re.findall(
        r"``(\w+)``", ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    )
    assert sorted(drawn) == sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    for place, module in enumerate(drawn):
        text = (folder / f"{module}.py").read_text(encoding="utf-8")
        used = set(re.findall(r"from locum\.compiler\.(\w+) import", text))
        late = used - set(drawn[:place])
        assert not late, f"compiler/{module}.py imports {sorted(late)}, which come after it"


def loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*(m for m in {HEAVY!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_loads_nothing_heavy() -> None:
    assert loaded_by("import locum") == set()


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import click.testing, locum.cli.main as m\n"
        "assert click.testing.CliRunner().invoke(m.cli, ['--help']).exit_code == 0"
    )
    assert loaded_by(code) == set()
