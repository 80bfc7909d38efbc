"""Attention patterns of models that run on U, compared with ``output_attentions`` of the library."""

from __future__ import annotations

from typing import Any

import pytest

import locum

torch: Any = pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch import nn  # noqa: E402

from tests.torch.comparing import compile_on_u  # noqa: E402
from tests.torch.tiny_models import KINDS, make_inputs, make_model  # noqa: E402

CASES = [(kind, "fast") for kind in ("bert", "gpt2", "llama", "vit")]
CASES += [(kind, executor) for kind in ("bert", "gpt2", "llama") for executor in ("dense", "heads")]


def expected_patterns(model: Any, inputs: dict[str, Any]) -> list[Any]:
    """Return the patterns that the library computes, one for each layer."""
    model.set_attn_implementation("eager")
    patterns = model(**inputs, output_attentions=True).attentions
    model.set_attn_implementation("sdpa")
    return [pattern.detach() for pattern in patterns]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "executor"), CASES)
def test_patterns_equal_those_of_the_library(kind: str, executor: str) -> None:
    is_fast = executor == "fast"
    layers = {"n_layer" if kind == "gpt2" else "num_hidden_layers": 2 if is_fast else 1}
    model, inputs = make_model(kind, **layers), make_inputs(kind, batch=2 if is_fast else 1)
    expected = expected_patterns(model, inputs)
    compiled = compile_on_u(model, executor=executor)
    with torch.no_grad(), locum.torch.record(KINDS[kind].attention) as recorded:
        compiled(**inputs)
    torch.testing.assert_close(list(recorded.patterns.values()), expected)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_training_records_the_patterns_of_each_call(implementation: str) -> None:
    """With dropout, PyTorch computes attention as products and a softmax."""
    model = make_model("llama")
    inputs = [{"input_ids": torch.tensor([ids]), "use_cache": False} for ids in ([3, 4, 5], [7, 3, 8])]
    expected = [expected_patterns(model, given) for given in inputs]
    model.set_attn_implementation(implementation)
    compiled = compile_on_u(model.train())
    with locum.torch.record("*.self_attn") as recorded:
        for given in inputs:
            compiled(**given).last_hidden_state.sum().backward()
    assert locum.torch.report(compiled).runs_by_kind["backward"] == 2
    found = []
    for run in recorded.runs:
        ((name, pattern),) = ((n, t) for n, t in run["layers.0.self_attn"].items() if "softmax" in n)
        assert not pattern.requires_grad
        found.append([pattern])
    torch.testing.assert_close(found, expected)
    assert recorded.patterns["layers.0.self_attn"] is recorded["layers.0.self_attn"][name]


def test_patterns_of_a_module_that_is_called_twice() -> None:
    attention = nn.MultiheadAttention(4, 2, batch_first=True)

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = attention

        def forward(self, x: Any) -> Any:
            first, _ = self.attention(x, x, x, need_weights=False)
            return self.attention(first, first, first, need_weights=False)[0]

    x = torch.randn(2, 3, 4)
    with torch.no_grad():
        between, first = attention(x, x, x, average_attn_weights=False)
        _, second = attention(between, between, between, average_attn_weights=False)
        with locum.torch.record("attention") as recorded:
            compile_on_u(Twice().train())(x)
    steps = recorded["attention"]
    torch.testing.assert_close([steps["pattern"], steps["pattern_1"]], [first, second])
    assert recorded.patterns["attention"] is steps["pattern_1"]
