"""What the documents show is what the programs print."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from typing import Any

import click
import pytest

import locum
from locum.execution import heads
from locum.interface.cli.main import COMMANDS, cli
from locum.paper.errata import ERRATA
from locum.simulators import UniversalSimulator
from locum.simulators.universal_weights import RECIPES
from tests.cli.commands import command_line
from tests.documents import PAGES, ROOT, blocks


def test_the_first_example_of_the_readme_runs_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    run = []
    evaluate = heads.evaluate

    def counted(*arguments: Any, **options: Any) -> Any:
        report = heads.Report()
        result = evaluate(*arguments, **options, report=report)
        run.append(report.heads)
        return result

    monkeypatch.setattr(heads, "evaluate", counted)
    first = next(block for block in blocks(ROOT / "README.md") if block.kind == "python")
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(first.text, "README.md", "exec"), {})
    assert run
    assert min(run) > 10


@pytest.mark.parametrize("name", ["bench_captured_models"])
def test_benchmarks_of_models_time_documented_calls(name: str) -> None:
    """Benchmarks import only packages that the documents name."""
    tree = ast.parse((ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {module for module in modules if module is not None and module.startswith("locum.")}


def test_the_weights_of_u_on_the_page_on_the_compiler() -> None:
    text = (ROOT / "docs" / "compiler.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| ([\w-]+) \| (\d+) \| ([\d, ]+) \| (\d+) \| ([\d,]+) \|$", text, re.MULTILINE
    )
    assert sorted(row[0] for row in rows) == sorted(RECIPES)
    for recipe, *shown in rows:
        size = UniversalSimulator(3, 3, 3).compile(recipe, feed_forward="exact").architecture
        heads = ", ".join(map(str, size.heads))
        assert shown == [str(size.layers), heads, str(size.d_model), f"{size.parameters:,}"], recipe
    reverse = locum.aggregate(
        locum.select(locum.indices, locum.length - 1 - locum.indices, "=="), locum.tokens
    )
    size = locum.compile(reverse, length=8, vocabulary="abcd").architecture
    heads = ", ".join(map(str, size.heads))
    assert f"# {size.layers} layers (heads: {heads}; …), d_model {size.d_model}, …" in text


def test_commands_in_the_documents_run() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    commands = set(re.findall(r"`locum (simulate(?: --[a-z]+ [\w.,]+)*)`", text))
    assert len(commands) >= 8
    for command in commands:
        assert command_line(*command.split()).returncode == 0


def test_commands_in_the_documents_exist() -> None:
    for page in PAGES:
        used = set(re.findall(r"`locum ([a-z]\w*)(?: ([a-z]\w*))?", page.read_text(encoding="utf-8")))
        assert {name for name, _ in used} <= set(COMMANDS), page.name
        for name, second in used:
            command = cli.get_command(click.Context(cli), name)
            if isinstance(command, click.Group) and second:
                assert second in command.commands, f"{page.name}: locum {name} {second}"


def test_every_erratum_has_a_row_and_a_section() -> None:
    page = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| E.*$", page, flags=re.MULTILINE)
    assert rows == [erratum.row for erratum in ERRATA.values()]
    sections = page.partition("## Errata\n\n")[2].partition("\n\n## ")[0]
    assert sections == "\n\n".join(erratum.section for erratum in ERRATA.values())
