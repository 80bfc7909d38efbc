"""``locum simulate --model``: forward passes, generation, files and errors."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import Run
from tests.cli.model_folders import save_model, save_tokenizer, transformers
from tests.cli.test_output import EVIL, controls

torch: Any = pytest.importorskip("torch")

TEXTS = ("--text", "the cat sat .", "--text", "a dog")
IDS = [[3, 4, 5, 11], [7, 9, 0, 0]]


@pytest.fixture(autouse=True)
def fresh_dynamo() -> None:
    torch._dynamo.reset()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    base = tmp_path_factory.mktemp("models")
    return {kind: save_model(base / kind, kind) for kind in ("bert", "gpt2", "t5", "vit")}


def json_of(run: Run, *arguments: object) -> Any:
    code, out, err = run(*arguments, "--json")
    assert code == 0, err
    assert out.count("\n") == 1
    return json.loads(out)


def eager(folder: Path, dtype: Any = None) -> Any:
    """The outputs of the library itself."""
    model = transformers.AutoModel.from_pretrained(folder, dtype=dtype).eval()
    inputs = {"input_ids": torch.tensor(IDS), "attention_mask": (torch.tensor(IDS) != 0).long()}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = torch.zeros(2, 1, dtype=torch.long)
    with torch.no_grad():
        return model(**inputs)


@pytest.mark.parametrize("kind", ["bert", "gpt2", "t5"])
def test_a_forward_pass_equals_the_librarys(
    simulate: Run, folders: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    file = tmp_path / "out.npz"
    data = json_of(simulate, "--model", folders[kind], *TEXTS, "-o", file)
    assert data["name"] == kind
    assert data["texts"] == [
        {"text": "the cat sat .", "tokens": 4},
        {"text": "a dog", "tokens": 2},
    ]
    assert data["holds"] is True
    assert max(data["differences"].values()) <= 1e-5
    assert data["report"]["multiply_adds"]["on_u"] > 0
    assert data["report"]["multiply_adds"]["on_host"] == 0
    expected = eager(folders[kind]).last_hidden_state
    with np.load(file, allow_pickle=False) as saved:
        np.testing.assert_allclose(saved["last_hidden_state"], expected, rtol=0, atol=1e-4)
        assert list(saved["last_hidden_state"].shape) == data["outputs"]["last_hidden_state"]


def test_the_printed_report(simulate: Run, folders: dict[str, Path]) -> None:
    code, out, err = simulate("--model", folders["bert"], *TEXTS)
    assert (code, err) == (0, "")
    for part in ("bert on U", "last_hidden_state", "2 × 4 × 4", "difference from eager", "(100.0%)"):
        assert part in out, part
    code, out, _ = simulate("--model", folders["bert"], *TEXTS, "--no-compare")
    assert code == 0
    assert "difference from eager" not in out


def test_without_a_comparison(simulate: Run, folders: dict[str, Path]) -> None:
    data = json_of(simulate, "--model", folders["bert"], *TEXTS, "--no-compare")
    assert (data["differences"], data["holds"]) == (None, None)


@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-12), ("bfloat16", 0.1)])
def test_types_of_numbers(
    simulate: Run, folders: dict[str, Path], tmp_path: Path, dtype: str, bound: float
) -> None:
    file = tmp_path / "out.npz"
    data = json_of(simulate, "--model", folders["bert"], *TEXTS, "--dtype", dtype, "-o", file)
    assert max(data["differences"].values()) <= bound
    expected = eager(folders["bert"], getattr(torch, dtype)).last_hidden_state.double()
    with np.load(file, allow_pickle=False) as saved:
        assert np.abs(saved["last_hidden_state"] - expected.numpy()).max() <= 10 * bound


@pytest.mark.parametrize("executor", ["dense", "heads"])
def test_a_small_model_runs_head_by_head(
    simulate: Run, folders: dict[str, Path], executor: str
) -> None:
    data = json_of(
        simulate, "--model", folders["gpt2"], "--text", "the", "--executor", executor,
        "--dtype", "float64", "--host", "forbidden",
    )  # fmt: skip
    assert data["holds"] is True
    assert list(data["report"]["executors"]) == [executor]


@pytest.mark.parametrize(
    ("kind", "options"),
    [("gpt2", ()), ("gpt2", ("--do-sample", "--seed", "3")), ("t5", ("--num-beams", "2"))],
)
def test_generation_gives_the_tokens_of_the_library(
    simulate: Run, folders: dict[str, Path], kind: str, options: tuple[str, ...]
) -> None:
    arguments = ("--generate", "--max-new-tokens", "4", *options)
    data = json_of(simulate, "--model", folders[kind], *TEXTS, *arguments)
    assert data["same_as_eager"] is True
    assert [text["text"] for text in data["texts"]] == ["the cat sat .", "a dog"]
    assert all(1 <= len(text["ids"]) <= 5 for text in data["texts"])
    assert data["report"]["multiply_adds"]["on_host"] == 0
    if options or kind == "t5":
        return
    model = transformers.AutoModelForCausalLM.from_pretrained(folders[kind]).eval()
    for text, ids in zip(data["texts"], ([3, 4, 5, 11], [7, 9]), strict=True):
        expected = model.generate(torch.tensor([ids]), max_new_tokens=4, do_sample=False)
        new = expected[0, len(ids) :].tolist()
        assert text["ids"][: len(new)] == new


def test_the_printed_text(simulate: Run, folders: dict[str, Path]) -> None:
    code, out, err = simulate(
        "--model", folders["gpt2"], "--text", "the cat", "--generate", "--max-new-tokens", "2"
    )
    assert (code, err) == (0, "")
    assert "gpt2 generates on U" in out
    assert "the cat" in out
    assert "Eager execution generates the same tokens." in out


def test_the_page(simulate: Run, folders: dict[str, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    code, out, err = simulate("--model", folders["bert"], *TEXTS, "-o", page)
    assert code == 0, err
    assert f"Saved in {page}" in out.replace("\n", "")
    (found,) = re.findall(
        r'<script id="data" type="application/json">(.*?)</script>',
        page.read_text(encoding="utf-8"),
        re.DOTALL,
    )
    data = json.loads(found)
    assert data["title"] == "bert on U"
    assert [text["tokens"] for text in data["texts"]] == [["the", "cat", "sat", "."], ["a", "dog"]]
    assert len(data["maps"]) == 2 * 2  # texts, heads of the only layer
    assert {tuple(one["ours"]["shape"]) for one in data["maps"]} == {(4, 4), (2, 2)}


def test_a_difference_is_exit_code_1(
    simulate: Run, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from locum.torch import simulation

    monkeypatch.setitem(simulation.TOLERANCES, torch.float32, -1.0)
    code, out, _ = simulate("--model", folders["bert"], *TEXTS)
    assert code == 1
    assert "last_hidden_state" in out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "Missing option '--text'"),
        (("--text", "a", "--order", "2,2,2"), "No such option '--order'"),
        (("--text", "a", "--dtype", "int8"), "'int8' is not one of 'float64'"),
        (("--text", "a", "--executor", "slow"), "'slow' is not one of 'fast'"),
        (("--text", "a", "--num-beams", "2"), "--num-beams: expected --generate"),
        (("--text", "a", "--generate", "-o", "page.html"), "--output: expected no --generate"),
        (("--text", "a", "--generate", "-o", "out.npz"), "--output: expected no --generate"),
        (("--text", "a", "-o", "out.txt"), "--output: expected a .npz or .html file"),
        (("--text", "a", "-o", "/nowhere/at/all.html"), "there is no folder"),
        (("--text", ""), "expected at least one token"),
    ],
)
def test_bad_options(
    simulate: Run, folders: dict[str, Path], arguments: tuple[str, ...], problem: str
) -> None:
    code, out, err = simulate("--model", folders["bert"], *arguments)
    assert (code, out) == (2, "")
    assert problem in " ".join(err.split())
    assert "Traceback" not in err


def truncated(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])


def pickled(folder: Path) -> None:
    """Leave only weights that can run code when they are loaded."""
    model = transformers.AutoModel.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")


def without_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def with_code(folder: Path) -> None:
    """Ask for a class of the folder itself."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "mine.C", "AutoModel": "mine.M"}}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "mine.py").write_text("raise SystemExit('the code of the folder ran')\n")


def with_evil_activation(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"hidden_act": EVIL}), encoding="utf-8")


def empty(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


@pytest.mark.parametrize(
    "change", [truncated, pickled, without_config, with_code, with_evil_activation, empty]
)
def test_folders_that_are_rejected(simulate: Run, tmp_path: Path, change: Any) -> None:
    folder = save_model(tmp_path / "model", "bert")
    change(folder)
    code, out, err = simulate("--model", folder, "--text", "a")
    assert (code, out) == (2, "")
    assert "expected a folder that transformers loads from safetensors" in " ".join(err.split())
    assert "Traceback" not in err
    assert controls(err) == set()


def test_a_folder_that_does_not_exist(simulate: Run, tmp_path: Path) -> None:
    code, _, err = simulate("--model", tmp_path / "none", "--text", "a")
    assert code == 2
    assert "expected the folder of a model" in " ".join(err.split())


def test_a_model_of_images_is_rejected(simulate: Run, folders: dict[str, Path], tmp_path: Path) -> None:
    code, _, err = simulate("--model", folders["vit"], "--text", "a")
    assert code == 2
    assert "expected a model that reads text, got one that reads pixel_values" in " ".join(err.split())
    bare = save_model(tmp_path / "vit", "vit")
    for file in bare.glob("token*"):
        file.unlink()
    assert simulate("--model", bare, "--text", "a").returncode == 2


def test_several_texts_need_a_padding_token(simulate: Run, tmp_path: Path) -> None:
    folder = save_model(tmp_path / "gpt2", "gpt2")
    for file in folder.glob("token*"):
        file.unlink()
    save_tokenizer(folder, padded=False)
    code, _, err = simulate("--model", folder, *TEXTS)
    assert code == 2
    assert "the tokenizer has no padding token; try one --text" in " ".join(err.split())
    assert json_of(simulate, "--model", folder, "--text", "the cat")["holds"] is True


def test_a_folder_without_a_tokenizer(simulate: Run, tmp_path: Path) -> None:
    folder = save_model(tmp_path / "gpt2", "gpt2")
    for file in folder.glob("token*"):
        file.unlink()
    code, _, err = simulate("--model", folder, "--text", "the cat")
    assert code == 2
    assert "got none; try tokenizer.save_pretrained(folder)" in " ".join(err.split())


def test_options_of_models_without_a_model(simulate: Run) -> None:
    code, _, err = simulate("--text", "a", "--no-compare")
    assert code == 2
    assert "No such option '--text'" in err


def test_without_transformers(simulate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(importlib.import_module("sys").modules, "transformers", None)
    code, _, err = simulate("--model", tmp_path, "--text", "a")
    assert code == 2
    assert "--model needs transformers: try pip install 'locum[models]'" in " ".join(err.split())
