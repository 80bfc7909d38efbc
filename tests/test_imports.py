"""The structure of the package: imports run one way, names are unique, the core stays light."""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.util
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import locum

ROOT = Path(locum.__file__).parent

#: The parts of each package, lowest first: a part may import the parts before it and itself. Data flows
#: from the front ends into the graph and on to executors and compiler. A front end can run what it
#: builds, so it comes after execution.
ORDER: dict[str, list[str]] = {
    "": [
        "errors",
        "public_names",
        "budget",
        "text",
        "files",
        "shared_state",
        "settings",
        "graph",
        "execution",
        "rasp",
        "constructions",
        "networks",
        "simulators",
        "torch",
        "languages",
        "proofs",
        "experiments",
        "paper",
        "interface",
    ],
    "networks": ["transformer", "looped", "compiler"],
    "proofs": ["coq", "claims", "checker", "certified", "prover"],
    "experiments": ["sweeps", "circuits", "dataset"],
    "interface": ["display", "playground", "cli"],
}
#: What a package must not import although it comes first: networks are made from the graph.
FORBIDDEN = {"networks": {"rasp", "constructions"}}
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
)


def module_of(path: Path) -> str:
    """``src/locum/graph/node.py`` → ``graph.node``; a package is its folder."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sorted(ROOT.rglob("*.py"))}


#: Imports that are function calls: they count, too.
IMPORTED_BY_NAME = re.compile(r'import_module\(\s*"(locum\.[\w.]+)"')


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Every statement of a file: imports are statements, and most of a file is expressions."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            below = getattr(node, block, [])
            waiting += below if isinstance(below, list) else []


def imported(path: Path) -> set[str]:
    """Modules of the package that a file imports, wherever in it."""
    text = path.read_text(encoding="utf-8")
    names = set(IMPORTED_BY_NAME.findall(text))
    for node in statements(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} uses a relative import"
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                is_module = submodule.removeprefix("locum.") in MODULES
                names.add(submodule if is_module else str(node.module))
    return {name.removeprefix("locum.") for name in names if name.startswith("locum.")}


@functools.cache
def all_imports() -> dict[str, set[str]]:
    return {module: imported(path) for module, path in MODULES.items()}


def test_imports_are_found_wherever_they_stand(tmp_path: Path) -> None:
    file = tmp_path / "file.py"
    file.write_text(
        "import locum.graph\n"
        "class A:\n def f(self):\n  try:\n   import locum.files\n  except OSError:\n"
        "   from locum import budget\n  else:\n   import locum.errors\n"
        "  finally:\n   import locum.shared_state\n"
        "if 0: pass\nelif 1:\n with open('a'):\n  import locum.experiments.sweeps\n"
        "match 1:\n case 1:\n  from locum.graph.architecture import Head\n"
        'x = importlib.import_module("locum.interface.display.report_page")\n'
    )
    names = {"graph", "files", "budget", "errors", "shared_state", "experiments.sweeps"}
    names |= {"graph.architecture", "interface.display.report_page"}
    assert imported(file) == names


@pytest.mark.parametrize("package", ORDER)
def test_imports_run_one_way(package: str) -> None:
    parts, prefix = ORDER[package], f"{package}." if package else ""
    for module, targets in all_imports().items():
        part = module.removeprefix(prefix).split(".")[0]
        if not module.startswith(prefix) or part in ("", "__init__", "__main__"):
            continue
        assert part in parts, f"{MODULES[module]}: add {part!r} to the order of {package or 'locum'!r}"
        lower = {*parts[: parts.index(part) + 1]} - FORBIDDEN.get(module.split(".")[0], set())
        for target in targets:
            used = target.removeprefix(prefix).split(".")[0]
            if target.startswith(prefix):
                assert used in lower, f"{MODULES[module]} imports {target}, which comes after {part}"


def test_there_are_at_most_twelve_packages() -> None:
    assert len([folder for folder in ROOT.iterdir() if (folder / "__init__.py").exists()]) <= 12


def test_file_names_are_unique() -> None:
    """A command may have the name of the module that it calls."""
    names = Counter(
        path.name
        for path in MODULES.values()
        if path.name not in ("__init__.py", "__main__.py") and path.parent.name != "cli"
    )
    assert [name for name, count in names.items() if count > 1] == []


def cycles(imports: dict[str, set[str]]) -> list[set[str]]:
    """Find the groups of modules that import each other, wherever in a file the imports stand."""
    reached: dict[str, set[str]] = {}
    for module in imports:
        known, waiting = set[str](), [module]
        while waiting:
            for target in imports.get(waiting.pop(), set()) - known:
                known.add(target)
                waiting.append(target)
        reached[module] = known
    groups = {
        frozenset(other for other in known if module in reached.get(other, set()))
        for module, known in reached.items()
        if module in known
    }
    return [set(group) for group in groups]


def test_a_cycle_is_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]


def test_no_import_cycles() -> None:
    result = [sorted(group) for group in cycles(all_imports())]
    assert not result, f"these modules import each other: {result}"


def test_each_public_name_is_listed_once_and_exists() -> None:
    stub = (ROOT / "__init__.pyi").read_text(encoding="utf-8")
    listed = [line.split()[3] for line in stub.splitlines() if line.startswith("from locum.")]
    assert len(listed) == len(set(listed))
    assert sorted(name for name in listed if not hasattr(builtins, name)) == locum.__all__
    assert set(listed) <= set(dir(locum))
    for name in listed:
        assert getattr(locum, name) is not None


def loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*(m for m in {HEAVY!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_loads_nothing_heavy() -> None:
    assert loaded_by("import locum") == set()


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import click.testing, locum.interface.cli.main as m\n"
        "assert click.testing.CliRunner().invoke(m.cli, ['--help']).exit_code == 0"
    )
    assert loaded_by(code) == set()


def test_names_that_never_existed_raise_the_usual_errors() -> None:
    with pytest.raises(AttributeError, match="module 'locum' has no attribute 'stand_on'"):
        locum.stand_on  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="cannot import name 'stand_on' from 'locum'"):
        from locum import stand_on  # type: ignore[attr-defined]  # noqa: F401


@pytest.mark.slow
def test_the_torch_package_is_imported_on_first_use() -> None:
    if importlib.util.find_spec("torch"):
        assert loaded_by("import locum; locum.torch.report") >= {"torch"}
    script = "import sys; sys.modules['torch'] = None; import locum; locum.torch"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "locum.torch needs torch, which is not installed" in done.stderr
