"""``locum simulate --model``: a checkpoint from the command line, its files, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from locum.cli import simulate_family
from tests.cli.conftest import Run
from tests.cli.test_output import EVIL, controls
from tests.simulators.checkpoints import Formula, unit_mean, write, write_tokenizer

pytest.importorskip("tokenizers", reason="the extra models is not installed")

TEXTS = ("--text", "the cat sat", "--text", "a dog", "--dtype", "float64")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = write(tmp_path / "small")
    write_tokenizer(folder)
    return folder


def json_of(run: Run, *arguments: object) -> Any:
    code, out, err = run(*arguments, "--json")
    assert code == 0, err
    assert out.count("\n") == 1
    return json.loads(out)


@pytest.mark.parametrize("form", ["factored", "paper"])
def test_json_has_what_the_formula_gives(simulate: Run, model: Path, form: str) -> None:
    data = json_of(simulate, "--model", model, *TEXTS, "--form", form)
    assert data["form"] == form
    assert data["model"] == "small"
    assert [text["numbers"] for text in data["texts"]] == [[2, 9, 5, 6, 3], [2, 4, 10, 3]]
    assert data["padded_to"] == 5
    assert len(data["errors"]) == 3
    assert max(data["errors"]) <= 1e-12
    plain = Formula(model)
    expected = np.array([unit_mean(plain(text["numbers"])[-1]) for text in data["texts"]])
    np.testing.assert_allclose(data["embeddings"], expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(data["similarities"], expected @ expected.T, rtol=0, atol=1e-12)
    np.testing.assert_allclose(data["direct_similarities"], expected @ expected.T, rtol=0, atol=1e-12)
    assert [where for where, _ in data["where"]] == ["host", "U", "U", "U", "U"]


def test_what_is_printed(simulate: Run, model: Path) -> None:
    code, out, err = simulate("--model", model, *TEXTS)
    assert (code, err) == (0, "")
    for part in (
        "2 layers of 2 heads",
        "layer 1",
        "by our formula",
        "by U",
        "the cat sat",
        "Time: U",
        "host:",
    ):
        assert part in out, part
    code, out, _ = simulate("--model", model, *TEXTS, "--no-compare", "--layers", "1")
    assert code == 0
    assert "1 layers of 2 heads" in out
    assert "by our formula" not in out


@pytest.mark.parametrize("executor", ["dense", "heads"])
def test_small_models_run_head_by_head(simulate: Run, model: Path, executor: str) -> None:
    data = json_of(
        simulate, "--model", model, "--text", "dog", "--dtype", "float64", "--executor", executor
    )
    assert data["executor"] == executor
    assert max(data["errors"]) <= 1e-12


def test_one_head_of_a_larger_model(
    simulate: Run, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("locum.cli.simulate_model.LONGEST", 100)
    data = json_of(
        simulate, "--model", model, *TEXTS, "--executor", "heads", "--head", "1,0", "--form", "factored"
    )
    assert (data["head"]["layer"], data["head"]["head"]) == (1, 0)
    assert data["head"]["error"] <= 1e-12
    assert data["head"]["pairs"] > 0
    code, out, _ = simulate("--model", model, *TEXTS, "--executor", "heads", "--head", "1,0")
    assert code == 0
    assert "Head 1.0 on the first text, by the heads of U themselves" in out
    for arguments in (("heads",), ("dense", "--head", "1,1")):
        code, _, err = simulate("--model", model, *TEXTS, "--executor", *arguments)
        assert code == 2
        assert "too long to be run head by head" in err
    code, _, err = simulate(
        "--model", model, *TEXTS, "--executor", "heads", "--head", "1,1", "--form", "paper"
    )
    assert code == 2
    assert "factored form" in err


def test_files(simulate: Run, model: Path, tmp_path: Path) -> None:
    page, arrays = tmp_path / "page.html", tmp_path / "run.npz"
    code, out, _ = simulate("--model", model, *TEXTS, "--html", page, "--save", arrays, "--head", "1,1")
    assert code == 0
    assert f"Saved in {page}" in out.replace("\n", "")
    with np.load(arrays, allow_pickle=False) as saved:
        np.testing.assert_allclose(
            saved["text 1, layer 1"], Formula(model)([2, 9, 5, 6, 3])[-1], rtol=0, atol=1e-12
        )
        assert saved["embeddings"].shape == (2, 6)
    assert "__DATA__" not in page.read_text(encoding="utf-8")


def test_a_disagreement_is_exit_code_1(
    simulate: Run, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(simulate_family.TOLERANCES, "float64", 1e-30)
    code, out, _ = simulate("--model", model, *TEXTS)
    assert code == 1
    assert "layer 1" in out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "Missing option '--text'"),
        (("--text", "a", "--order", "2,2,2"), "No such option '--order'"),
        (("--text", "a", "--heads", "2"), "No such option '--heads'"),
        (("--text", "a", "--layers", "9"), "2 layers: expected 1 to 2, got 9"),
        (("--text", "a", "--head", "2,1"), "expected LAYER < 2 and HEAD < 2, got 2,1"),
        (("--text", "a", "--form", "cubic"), "form: expected one of factored, paper, got 'cubic'"),
        (("--text", "a", "--dtype", "int8"), "float64, got 'int8'"),
        (("--text", "the cat sat on the mat"), "only 7 positions"),
        (("--text", "a", "--html", "/nowhere/at/all.html"), "there is no folder"),
    ],
)
def test_bad_input(simulate: Run, model: Path, arguments: tuple[str, ...], problem: str) -> None:
    code, out, err = simulate("--model", model, *arguments)
    assert (code, out) == (2, "")
    assert problem in err
    assert "Traceback" not in err


def test_folders_that_cannot_be_run(simulate: Run, model: Path, tmp_path: Path) -> None:
    weights = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(weights[:1000])
    empty = tmp_path / "empty"
    empty.mkdir()
    strange = write(tmp_path / "strange", model_type="mamba")
    for folder, problem in (
        (model, "truncated"),
        (empty, "no config.json"),
        (tmp_path / "none", "there is no folder"),
        (strange, "architecture 'mamba'"),
    ):
        code, out, err = simulate("--model", folder, "--text", "a")
        assert (code, out) == (2, "")
        assert problem in err


def test_options_of_a_model_without_one(simulate: Run) -> None:
    code, _, err = simulate("--text", "a", "--no-compare")
    assert code == 2
    assert "No such option '--text'" in err


@pytest.mark.parametrize("field", ["hidden_act", "position_embedding_type", "model_type"])
def test_configurations_do_not_reach_the_terminal(simulate: Run, tmp_path: Path, field: str) -> None:
    settings: dict[str, Any] = {field: EVIL}
    folder = write(tmp_path / "evil", **settings)
    code, out, err = simulate("--model", folder, "--text", "a")
    assert (code, out) == (2, "")
    assert "PWNED" in err
    assert controls(err) == set()
