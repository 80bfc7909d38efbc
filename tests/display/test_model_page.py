"""The page of a model on U: one file with the attention patterns of the run."""

from __future__ import annotations

import base64
import json
import re
from html.parser import HTMLParser
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.cli.model_folders import save_model, transformers

torch: Any = pytest.importorskip("torch")
import locum.torch  # noqa: E402
from locum.interface.display import model_page as pages  # noqa: E402
from locum.torch.pretrained import load_pretrained  # noqa: E402

TEXTS = ["the cat sat", "a dog"]


class Run(NamedTuple):
    """The arguments of a page."""

    loaded: Any
    inputs: Any
    patterns: Any
    report: Any

    def page(self, texts: Any = TEXTS, differences: Any = None) -> str:
        return pages.model_page(
            self.loaded, texts, self.inputs, self.patterns, self.report, differences or {}
        )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = save_model(tmp_path_factory.mktemp("models") / "bert", "bert", num_hidden_layers=2)
    loaded = load_pretrained(folder)
    inputs = loaded.encode(TEXTS)
    torch._dynamo.reset()
    loaded.model.compile(backend="locum", fullgraph=True)
    with torch.no_grad(), locum.torch.record("*") as recorded:
        loaded.model(**inputs)
    return Run(loaded, inputs, recorded.patterns, locum.torch.report(loaded.model))


def data_of(page: str) -> Any:
    (result,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    return json.loads(result)


def unpacked(packed: Any) -> Any:
    return np.frombuffer(base64.b64decode(packed["data"])).reshape(packed["shape"])


def test_the_patterns_are_those_of_the_library(run: Run) -> None:
    data = data_of(run.page(differences={"last_hidden_state": 1e-7}))
    assert len(data["maps"]) == 2 * 2 * 2  # layers, heads, texts
    model = transformers.AutoModel.from_pretrained(run.loaded.folder, attn_implementation="eager")
    with torch.no_grad():
        expected = model.eval()(**run.inputs, output_attentions=True).attentions
    for entry in data["maps"]:
        pattern = expected[entry["layer"]][entry["text"], entry["head"]].numpy()
        length = data["texts"][entry["text"]]["length"]
        shown = unpacked(entry["ours"])
        np.testing.assert_allclose(shown, pattern[:length, :length], rtol=0, atol=1e-5)
        np.testing.assert_allclose(shown.sum(axis=1), 1, rtol=0, atol=1e-5)
    assert data["differences"] == [["last_hidden_state", 1e-7]]
    assert ["multiply-adds on U", "100.0%"] in data["facts"]
    assert [text["tokens"] for text in data["texts"]] == [["the", "cat", "sat"], ["a", "dog"]]


def test_large_patterns_are_left_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "NUMBERS", 25)
    chosen = [(one["layer"], one["head"], one["text"]) for one in data_of(run.page())["maps"]]
    assert chosen == [(0, 0, 0), (0, 0, 1), (0, 1, 0)]  # 9 + 4 + 9 numbers
    monkeypatch.setattr(pages, "NUMBERS", 1)
    assert len(data_of(run.page())["maps"]) == 1


def test_the_page_loads_nothing(run: Run) -> None:
    assert not re.search(r"https?://|src=|@import|url\(|fetch\(|<link", run.page())


def test_texts_do_not_end_the_script(run: Run) -> None:
    nasty = "</script><script>alert(1)</script><!--"
    page = run.page([nasty, "a dog"])
    scripts: list[Any] = []

    class Scripts(HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            if tag == "script":
                scripts.append(attrs)

    Scripts().feed(page)
    assert len(scripts) == 2
    assert data_of(page)["texts"][0]["text"] == nasty


def test_without_a_comparison(run: Run) -> None:
    data = data_of(run.page())
    assert data["differences"] == []
    assert not any("eager" in fact for fact, _ in data["facts"])
