"""The paper's listings through ``locum run``: what Weiss's RASP gives, their bugs included."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from locum.rasp import Session
from tests.cli.commands import command_line

FOLDER = Path(str(resources.files("locum.paper").joinpath("listings")))
CORPUS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "conformance" / "rasp.json").read_text(encoding="utf-8")
)
SQUARE = [7.0, 8.0, 12.0, 10.0, 11.0, 9.0, 2.0, 4.0, 21.0]


def run(name: str, tokens: list[Any]) -> list[Any]:
    session = Session(tokens)
    ((_, program),) = session.script((FOLDER / f"{name}.rasp").read_text(encoding="utf-8"))
    values: list[Any] = program(tokens)
    return values


def heads(name: str, tokens: list[Any]) -> list[int]:
    ((_, program),) = Session(tokens).script((FOLDER / f"{name}.rasp").read_text(encoding="utf-8"))
    actual: list[int] = program.architecture.heads
    return actual


@pytest.mark.parametrize(
    "case", [c for c in CORPUS if c["group"] == "seed-listing"], ids=lambda c: c["name"]
)
def test_files_hold_the_listings_of_the_corpus(case: dict[str, Any]) -> None:
    """Each definition that the corpus ran on Weiss's RASP stands in one of our files, to the letter."""
    texts = [" ".join(path.read_text(encoding="utf-8").split()) for path in FOLDER.glob("*.rasp")]
    source = " ".join(case["source"].split())
    definition = source[source.index("def ") : source.index("}") + 1]
    assert any(definition in text for text in texts)


@pytest.mark.parametrize(
    ("name", "tokens", "values"),
    [
        ("transpose", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]),
        ("relu", [1.92, -1.33, 2.31], [1.92, 0, 2.31]),
        ("maxmin", [1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 4.0, 3.0]),
        ("maxmin", [1.0, -2.0], [1.0, 1.0]),  # erratum E2
        ("maxmin", [3.0, -1.0, 2.0, 5.0], [3.0, 3.0, 8.0, 2.0]),
        ("maxmin_corrected", [1.0, -2.0], [1.0, -2.0]),
        ("maxmin_corrected", [3.0, -1.0, 2.0, 5.0], [3.0, -1.0, 5.0, 2.0]),
        ("match2", [1, 5, 4], [1, 0, 1]),  # erratum E3
        ("match2", [5, 5], [0, 0]),
        ("match2_corrected", [1, 5, 4], [1, 1, 1]),
        ("match2_corrected", [5, 5], [1, 1]),
        ("match2_corrected", [0, 1], [1, 0]),
        ("cofactor", SQUARE, [195.0, -192.0, 18.0, -120.0, 123.0, -12.0, -60.0, 57.0, -3.0]),
        ("determinant", SQUARE, [45.0] * 9),
        ("identify", [10, 20, 30, 40, 50], [0, 20.0, 30.0, 40.0, 0]),
        ("shift", [10, 20, 30, 40, 50], [30.0, 40.0, 50.0, 10.0, 20.0]),
    ],
)
def test_listings(name: str, tokens: list[Any], values: list[Any]) -> None:
    actual = run(name, tokens)
    assert actual == pytest.approx(values, abs=1e-12)
    assert [type(value) for value in actual] == [type(value) for value in values]


def test_matmul() -> None:
    random = np.random.default_rng(4)
    for inner in (2, 3, 5):
        a, b = random.normal(size=(3, inner)), random.normal(size=(inner, 4))
        actual = run("matmul", [*a.ravel().tolist(), *b.ravel().tolist()])
        np.testing.assert_allclose(actual[:12], (a @ b).ravel(), atol=1e-14)


def test_softmax_and_its_base() -> None:
    tokens = [0.83, -0.77, 0.29, -2.62, -2.64, -1.76, 1.08, -0.43, -1.12]
    rows = np.array(tokens).reshape(3, 3)
    for name, base in [("softmax", 2.73), ("softmax_corrected", np.e)]:
        powers = base**rows
        np.testing.assert_allclose(run(name, tokens), (powers / powers.sum(1, keepdims=True)).ravel())
    assert run("softmax_corrected", [3000.0, -3000.0, 0.0]) == [1.0, 1.0, 1.0]


def test_the_inverse() -> None:
    actual = run("inverse_corrected", SQUARE)
    np.testing.assert_allclose(actual, np.linalg.inv(np.reshape(SQUARE, (3, 3))).ravel(), atol=1e-13)
    with pytest.raises(Exception, match="applying a program to an input"):
        run("inverse", SQUARE)  # erratum E4: the expression as printed


@pytest.mark.parametrize(
    ("name", "count", "tokens"),
    [
        ("transpose", [1, 1], [1.0] * 6),
        ("softmax", [1, 3], [1.0] * 6),
        ("softmax_corrected", [1, 1, 1], [1.0] * 6),
        ("matmul", [1, 7, 12], [1.0] * 14),
        ("relu", [], [1.0]),
        ("maxmin_corrected", [1], [1.0] * 4),
        ("match2", [1], [1]),
        ("match2_corrected", [1], [1]),
        ("cofactor", [1, 4], SQUARE),
        ("determinant", [1, 4, 1, 1], SQUARE),
        ("inverse_corrected", [1, 4, 1, 1, 1], SQUARE),
        ("shift", [1, 1], [1.0] * 4),
    ],
)
def test_layers_and_heads(name: str, count: list[int], tokens: list[Any]) -> None:
    assert heads(name, tokens) == count


def test_every_file_runs_from_the_command_line() -> None:
    inputs = {"matmul": [1.0] * 14, "match2": [1, 5, 4], "match2_corrected": [1, 5, 4]}
    for path in sorted(FOLDER.glob("*.rasp")):
        tokens = inputs.get(path.stem, SQUARE)
        done = command_line("run", path, "--input", json.dumps(tokens))
        assert done.returncode == (2 if path.stem == "inverse" else 0), done.stderr
        assert "\nout = [" in done.stdout or path.stem == "inverse"
