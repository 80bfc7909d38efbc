"""Commands without the optional packages: they work, or ask for the extra before any work."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import locum

ROOT = Path(__file__).parents[2]
#: The packages of all extras, under the names by which they are imported.
PACKAGES = (
    *("torch", "transformers", "onnx", "transformer_lens", "z3", "pyarrow", "distributed"),
    *("starlette", "uvicorn", "matplotlib"),
)
WORKS = (
    "run sort",
    "run sort --count",
    "run sort --draw -o -",
    "repl",
    "compile reverse --length 3 --vocab ab -o compiled",
    "run network --input ab",
    "simulate",
    "simulate --order 2,2,2 --certify",
    "prove claim transpose 2 2",
    "language classify (ab)*",
    "language equivalent (ab)* (ab)*",
    "language equivalent more.crasp fewer.crasp",
    "paper errata",
    "paper report algo:softmax",
    "dataset score circuit.json circuit.json",
)
#: Commands that need a package, with its extra.
NEEDS = {
    "language equivalent more.crasp same.crasp": "solve",
    "dataset make -o dataset --size 1 --tier trained": "torch",
}
_SCRIPT = f"""
import json, sys
sys.modules.update(dict.fromkeys({PACKAGES!r}))
from tests.cli.commands import command_line
print(json.dumps([command_line(*command.split(), typed="") for command in json.load(sys.stdin)]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a network, its circuit and programs that count."""
    model = locum.compile(locum.tokens, length=2, vocabulary="ab")
    model.save(tmp_path / "network")
    model.circuit.save(tmp_path / "circuit.json")
    for name, text in (
        ("more.crasp", 'z = #"a" > #"b"\n'),
        ("same.crasp", 'z = #"b" < #"a"\n'),
        ("fewer.crasp", 'z = #"a" < #"b"\n'),
    ):
        (tmp_path / name).write_text(text)
    return tmp_path


def run_without_packages(commands: tuple[str, ...], folder: Path) -> dict[str, Any]:
    """Run commands in a process in which no package of an extra can be imported."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}){_SCRIPT}"],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        cwd=folder,
        check=True,
    )
    return dict(zip(commands, json.loads(done.stdout), strict=True))


def test_commands_work_without_extras(folder: Path) -> None:
    for command, (code, _, errors) in run_without_packages(WORKS, folder).items():
        assert code in (0, 1), command  # 1: the languages are different
        assert errors == "", command


def test_commands_ask_for_an_extra_before_any_work(folder: Path) -> None:
    before = sorted(folder.iterdir())
    for command, (code, shown, errors) in run_without_packages(tuple(NEEDS), folder).items():
        assert (code, shown) == (2, ""), command
        assert errors.startswith("locum: ")
        assert errors.endswith(f"pip install 'locum[{NEEDS[command]}]'\n")
        assert errors.count("\n") == 1
    assert sorted(folder.iterdir()) == before
