"""``locum generate``: a decoder writes text, compared with what the transformers library writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.simulators.families import Case, built, gpt2

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
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_the_command(command: Run, folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    arguments = ("--model", str(folder), "--text", "hello", "--max-new-tokens", "4")
    code, out, err = command("generate", *arguments, "--json", "--html", str(page))
    assert code == 0, err
    found = json.loads(out)
    assert found["same_as_transformers"] is True
    assert len(found["ids"]) == 4
    assert found["text"] == "".join(found["tokens"])
    assert page.is_file()
    code, out, _ = command("generate", *arguments, "--no-compare")
    assert code == 0
    assert "hello" + found["text"] in out
    assert command("generate", *arguments[:4], "--max-new-tokens", "0")[0] == 2


def test_simulate_on_a_decoder(command: Run, folder: Path, tmp_path: Path) -> None:
    arguments = ("simulate", "--model", str(folder), "--text", "hello", "--text", "you")
    code, out, err = command(*arguments, "--json", "--save", str(tmp_path / "states.npz"))
    assert code == 0, err
    found = json.loads(out)
    assert found["outputs"] == {"last_hidden_state": [2, 5, 8], "logits": [2, 5, 23]}
    assert max(found["errors"].values()) < 1e-5
    assert (tmp_path / "states.npz").is_file()
    assert command(*arguments)[0] == 0
    code, _, err = command(*arguments, "--layers", "1")
    assert code == 2
    assert "--layers is for the BERT family" in err
