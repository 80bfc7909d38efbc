"""What is declared is what is used: no extra that nothing imports."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from locum import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Extras for our own work, which the package itself does not import.
OURS = {"dev", "docs"}
#: Distributions that are imported under another name.
MODULES = {"python_flint": "flint", "z3_solver": "z3"}


def module_of(requirement: str) -> str:
    name = re.split(r"[<>=!~\[; ]", requirement)[0].replace("-", "_").lower()
    return MODULES.get(name, name)


def not_imported(folder: Path, modules: set[str]) -> set[str]:
    """Those of some top-level modules that no file of a folder imports, wherever in it."""
    missing = set(modules)
    for path in folder.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        # Only files that may import one of those that are left are parsed.
        names = rf"\b(?:{'|'.join(missing)})\b"
        if missing and re.search(rf"\bimport.*{names}|\bfrom {names}", text):
            missing -= _imported(text)
    return missing


def _imported(text: str) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module).split(".")[0])
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            names |= {str(a.value) for a in node.args if isinstance(a, ast.Constant)}
    return names


def test_every_dependency_and_extra_is_imported() -> None:
    extras = PROJECT["optional-dependencies"]
    users = {name: requirements for name, requirements in extras.items() if name not in OURS}
    declared = {*PROJECT["dependencies"], *(r for requirements in users.values() for r in requirements)}
    assert not_imported(ROOT / "src", {module_of(requirement) for requirement in declared}) == set()


def test_the_site_needs_what_its_extra_has() -> None:
    # furo and the parser are named, not imported.
    named = (ROOT / "docs" / "site" / "conf.py").read_text(encoding="utf-8")
    for requirement in PROJECT["optional-dependencies"]["docs"]:
        module = module_of(requirement)
        assert not not_imported(ROOT / "docs", {module}) or f'"{module}"' in named


def test_the_makefile_installs_extras_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for extras in re.findall(r"'\.\[([\w,]+)\]'", makefile):
        assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()


def test_the_floors_are_those_that_are_declared() -> None:
    lines = (ROOT / "constraints" / "floors.txt").read_text(encoding="utf-8").splitlines()
    floors = dict(line.split("==") for line in lines if not line.startswith("#"))
    declared = dict(requirement.split(">=") for requirement in PROJECT["dependencies"])
    assert floors.keys() == declared.keys()
    for name, version in floors.items():
        # 1.26 allows 1.26.0, and 8.1 allows 8.1.0.
        assert version == declared[name] or re.fullmatch(
            rf"{re.escape(declared[name])}(\.\d+)+", version
        ), name


def test_the_version_is_the_same_everywhere() -> None:
    for name in ("CITATION.cff", "CHANGELOG.md", "README.md"):
        assert __version__ in (ROOT / name).read_text(encoding="utf-8"), name


def test_the_page_on_installing_has_every_extra() -> None:
    page = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert rows == PROJECT["optional-dependencies"].keys() - {"dev"}


def test_the_extra_of_everything_has_all_extras_for_users() -> None:
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    named = re.fullmatch(r"locum\[([\w,]+)\]", everything)
    assert named is not None
    assert set(named[1].split(",")) == extras.keys() - OURS - {"all"}


def test_the_long_description_has_no_relative_links() -> None:
    pytest.importorskip("hatchling")
    hook = importlib.util.spec_from_file_location("hook", ROOT / "packaging" / "long_description.py")
    assert hook is not None
    assert hook.loader is not None
    module = importlib.util.module_from_spec(hook)
    hook.loader.exec_module(module)
    text = "![a picture](docs/p.svg) and [a `page`](docs/a.md#b), [RASP](https://example.org/rasp)"
    assert module.long_description(text, None) == " and a `page`, [RASP](https://example.org/rasp)"
    linked = module.long_description(text, "https://example.org/locum")
    assert re.findall(r"\]\(([^)]+)\)", linked) == [
        "https://example.org/locum/raw/HEAD/docs/p.svg",
        "https://example.org/locum/blob/HEAD/docs/a.md#b",
        "https://example.org/rasp",
    ]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)]+)\)", module.long_description(readme, None))
    assert all(target.startswith(("https://", "#")) for target in targets), targets


def test_make_packages_needs_no_pytest() -> None:
    """It reads the blocks of the README in an environment that has the package and what builds it."""
    hidden = (
        "import sys; sys.modules['pytest'] = sys.modules['hypothesis'] = None; import tests.documents"
    )
    subprocess.run([sys.executable, "-c", hidden], cwd=ROOT, check=True)


def test_the_workflow_runs_what_there_is() -> None:
    workflow = ROOT / ".github" / "workflows" / "ci.yml"
    if not workflow.exists():
        pytest.skip("a source distribution has no workflow")
    text = workflow.read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    steps = re.findall(r"^ +- run: (.+)$", text, re.MULTILINE)
    assert ".ci/run" in steps
    for step in steps:
        program, *arguments = step.split()
        assert (ROOT / program).exists() if program != "make" else arguments[0] in targets, step
    versions = re.search(r'VERSIONS = \(("[^)]+)\)', (ROOT / ".ci" / "packages.py").read_text("utf-8"))
    assert versions is not None
    assert f"python: [{versions[1]}]" in text
