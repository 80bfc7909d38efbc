"""``locum generate``: a decoder writes text, compared with what the transformers library writes."""

from __future__ import annotations

import base64
import json
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locum
from locum.simulators.models.tokenising import read_folder_tokenizer
from tests.cli.conftest import Run
from tests.simulators.checkpoints import save_tokenizer
from tests.simulators.families import CASES, Case, built, gpt2

torch: Any = pytest.importorskip("torch")

GPT2 = Case("GPT2LMHeadModel", gpt2(n_layer=1, n_positions=40))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decoder with a tokenizer of letters."""
    tokenizers: Any = pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("decoder")
    built(GPT2, torch.float32).save_pretrained(folder)
    letters = {letter: number for number, letter in enumerate("abcdefghijklmnopqrstuvw")}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=letters, merges=[]))
    tokenizer.decoder = tokenizers.decoders.Fuse()
    save_tokenizer(tokenizer, folder)
    return folder


def test_the_command(command: Run, folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    arguments = ("--model", str(folder), "--text", "hello", "--max-new-tokens", "4")
    code, out, err = command("generate", *arguments, "--json", "--html", str(page))
    assert code == 0, err
    result = json.loads(out)
    assert result["same_as_transformers"] is True
    assert len(result["ids"]) == 4
    assert result["text"] == "".join(result["tokens"])
    assert page.is_file()
    code, out, _ = command("generate", *arguments, "--no-compare")
    assert code == 0
    assert "hello" + result["text"] in out
    assert command("generate", *arguments[:4], "--max-new-tokens", "0")[0] == 2
    assert command("generate", *arguments[:4], "--do-sample", "--seed", "-1")[0] == 2


def test_a_text_that_cannot_be_tokenised(command: Run, tmp_path: Path) -> None:
    """A tokenizer that raises is bad input; it was a traceback."""
    tokenizers: Any = pytest.importorskip("tokenizers")
    built(GPT2, torch.float32).save_pretrained(tmp_path)
    words = tokenizers.models.WordPiece(vocab={"a": 0, "b": 1})  # and no [UNK]
    save_tokenizer(tokenizers.Tokenizer(words), tmp_path)
    code, _, err = command("generate", "--model", str(tmp_path), "--text", "xyz")
    assert code == 2
    assert "the text 'xyz' cannot be tokenised" in err


def test_the_tokenizer_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    def counted(path: Path) -> Any:
        read.append(path)
        return read_folder_tokenizer(path)

    monkeypatch.setattr("locum.simulators.models.families.running.read_folder_tokenizer", counted)
    assert len(locum.generate(folder, ["hello", "hut", "cab"], 1)) == 3
    assert read == [folder]


def test_several_texts(command: Run, folder: Path, tmp_path: Path) -> None:
    arguments = ("generate", "--model", str(folder), "--text", "hello", "--text", "hut")
    code, out, err = command(*arguments, "--max-new-tokens", "2", "--json")
    assert code == 0, err
    result = json.loads(out)["texts"]
    assert [one["same_as_transformers"] for one in result] == [True, True]
    assert [len(one["prompt"]) for one in result] == [5, 3]
    code, out, _ = command(*arguments, "--max-new-tokens", "2", "--no-compare")
    assert code == 0
    assert "hello" + result[0]["text"] in out
    assert "hut" + result[1]["text"] in out
    assert command(*arguments, "--html", str(tmp_path / "page.html"))[0] == 2


def test_lengths_and_beams_of_the_generation_config(command: Run, folder: Path, tmp_path: Path) -> None:
    for file in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / file).write_bytes((folder / file).read_bytes())
    settings = {"max_length": 9, "num_beams": 3}
    (tmp_path / "generation_config.json").write_text(json.dumps(settings))
    arguments = ("generate", "--model", str(tmp_path), "--text", "hello")
    code, _, err = command(*arguments)
    assert (code, "num_beams = 3" in err) == (2, True)
    code, out, err = command(*arguments, "--num-beams", "1", "--json")
    assert code == 0, err
    result = json.loads(out)
    assert (len(result["ids"]), result["same_as_transformers"]) == (4, True)
    code, out, err = command(*arguments, "--text", "greetin", "--num-beams", "1", "--json")
    assert code == 0, err
    both = json.loads(out)["texts"]
    assert [(len(one["ids"]), one["same_as_transformers"]) for one in both] == [(2, True)] * 2
    code, _, err = command(*arguments, "--num-beams", "2")
    assert (code, "num_beams: expected 1" in err) == (2, True)


def test_a_space_between_words_is_part_of_the_text(command: Run, folder: Path, tmp_path: Path) -> None:
    """Some tokenizers leave it out where a text begins."""
    tokenizers: Any = pytest.importorskip("tokenizers")
    for file in ("config.json", "generation_config.json", "model.safetensors"):
        (tmp_path / file).write_bytes((folder / file).read_bytes())
    words = {f"w{number}": number for number in range(23)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocab=words, unk_token="w0"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    save_tokenizer(tokenizer, tmp_path)
    page = tmp_path / "page.html"
    options = ("--model", str(tmp_path), "--text", "w3 w5", "--max-new-tokens", "2")
    code, out, err = command("generate", *options, "--json", "--html", str(page), "--no-compare")
    assert code == 0, err
    result = json.loads(out)
    assert result["text"] == "".join(f" {token}" for token in result["tokens"])
    assert f'"written": {json.dumps(result["text"])}' in page.read_text()


def test_an_encoder_and_a_decoder(command: Run, folder: Path, tmp_path: Path) -> None:
    built(CASES["t5"][0], torch.float32).save_pretrained(tmp_path)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / file).write_bytes((folder / file).read_bytes())
    arguments = ("--model", str(tmp_path), "--text", "hello", "--max-new-tokens", "3")
    code, out, err = command("generate", *arguments, "--json")
    assert code == 0, err
    assert json.loads(out)["same_as_transformers"] is True
    code, _, err = command("simulate", *arguments[:4])
    assert (code, "try locum generate" in " ".join(err.split())) == (2, True)


def test_simulate_on_a_decoder(
    command: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("locum.cli.simulate_family.LONGEST", 100)
    arguments = ("simulate", "--model", str(folder), "--text", "hello", "--text", "you")
    code, out, err = command(*arguments, "--json", "--save", str(tmp_path / "states.npz"))
    assert code == 0, err
    result = json.loads(out)
    assert result["outputs"] == {"last_hidden_state": [2, 5, 8], "logits": [2, 5, 23]}
    assert max(result["errors"].values()) < 1e-5
    assert (tmp_path / "states.npz").is_file()
    assert command(*arguments)[0] == 0
    for option, problem in (
        (("--layers", "2"), "1 layers: expected 1 to 1, got 2"),
        (("--head", "0,7", "--html", str(tmp_path / "no.html")), "expected LAYER < 1 and HEAD < 2"),
        (("--head", "0,0"), "expected --html beside it"),
        (("--executor", "heads"), "too long to be run head by head: expected --executor fast"),
    ):
        code, _, err = command(*arguments, *option)
        assert code == 2
        assert problem in err
    assert not (tmp_path / "no.html").exists()


LETTERS = {letter: number for number, letter in enumerate("abcdefghijklmnopqrstuvw")}


@pytest.mark.parametrize("family", ["roberta", "electra", "albert", "mpnet", "gpt_neox", "llama"])
def test_every_text_family_has_layers_heads_and_a_page(
    command: Run, tmp_path: Path, family: str
) -> None:
    tokenizers: Any = pytest.importorskip("tokenizers")
    case = CASES[family][0]
    model = built(case, torch.float64)
    model.save_pretrained(tmp_path)
    save_tokenizer(tokenizers.Tokenizer(tokenizers.models.BPE(vocab=LETTERS, merges=[])), tmp_path)
    page = tmp_path / "page.html"
    arguments = ("simulate", "--model", str(tmp_path), "--text", "hello", "--text", "dog", "--json")
    code, out, err = command(*arguments, "--html", str(page), "--head", "1,1")
    assert code == 0, err
    result = json.loads(out)
    assert len(result["state_errors"]) == result["layers"] + 1
    assert max(result["state_errors"]) < 1e-5
    data = page_data(page)
    assert data["first"] == {"layer": 1, "head": 1}
    assert [text["tokens"] for text in data["texts"]] == [list("hello"), list("dog")]
    for one in data["maps"]:
        ours, theirs = (numbers(one[side]) for side in ("ours", "theirs"))
        assert np.abs(ours - theirs).max() < 1e-5
        assert np.abs(ours.sum(axis=1) - 1).max() < 1e-5
    if family in ("gpt_neox", "llama"):  # the library rounds some of a Llama to float32
        code, out, err = command(*arguments, "--dtype", "float64", "--html", str(page))
        assert code == 0, err
        double = json.loads(out)
        assert max(double["state_errors"]) < 1e-12
        own = "transformers' own forward pass"
        norms = " (its norms in float64, too)" if family == "llama" else ""
        assert double["compared_with"] == own + norms
    code, out, err = command(*arguments, "--layers", "1")
    assert code == 0, err
    cut = json.loads(out)
    assert (cut["layers"], list(cut["outputs"])) == (1, ["last_hidden_state"])
    assert cut["state_errors"] == pytest.approx(result["state_errors"][:2], abs=1e-6)


def page_data(page: Path) -> Any:
    text = page.read_text(encoding="utf-8")
    return json.loads(text.split('type="application/json">')[1].split("</script>")[0])


def numbers(packed: Any) -> Any:
    return np.frombuffer(base64.b64decode(packed["data"])).reshape(packed["shape"])


def test_a_bar_is_shown_while_a_model_is_run(
    command: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the bar is told: each layer that is done, of how many; and of the loading."""
    told: list[tuple[int, str, list[str]]] = []

    @contextmanager
    def bar(total: int, noun: str, what: str = "", quiet: bool = False) -> Any:
        told.append((total, noun, []))
        yield told[-1][2].append

    for module in ("progress", "simulate_family", "generate"):
        monkeypatch.setattr(f"locum.cli.{module}.progress", bar)
    assert command("simulate", "--model", str(folder), "--text", "you", "--no-compare")[0] == 0
    loading = (1, "models loaded", ["the model"])
    assert told == [loading, (1, "layers", ["layer 0"])]
    told.clear()
    arguments = ("--model", str(folder), "--text", "you", "--max-new-tokens", "2", "--no-compare")
    assert command("generate", *arguments)[0] == 0
    assert told == [loading, (2, "tokens", ["token 1", "token 2"])]
