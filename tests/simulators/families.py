"""Tiny random models of every family, and how far U is from what the transformers library computes."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import locum

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

#: Ids that a config of a tiny vocabulary must not leave to its defaults.
SMALL = {"vocab_size": 23, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}


class Case(NamedTuple):
    """One tiny model: its class, what differs in its config, and whether its inputs are padded."""

    kind: str
    config: dict[str, Any]
    padding: str = ""


def gpt2(**options: Any) -> dict[str, Any]:
    return SMALL | {"n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 12} | options


CASES: dict[str, list[Case]] = {
    "gpt2": [
        Case("GPT2LMHeadModel", gpt2()),
        Case("GPT2Model", gpt2(n_head=4, activation_function="relu", n_inner=5), "right"),
        Case("GPT2LMHeadModel", gpt2(tie_word_embeddings=False, scale_attn_weights=False), "left"),
        Case("GPT2LMHeadModel", gpt2(n_head=1, scale_attn_by_inverse_layer_idx=True)),
    ],
}


def built(case: Case, dtype: Any, seed: int = 0) -> Any:
    """Build the model, with parameters that are all random: norms and biases, too."""
    kind = getattr(transformers, case.kind)
    torch.manual_seed(seed)
    model = kind(kind.config_class(**case.config)).to(dtype).eval()
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, dtype=dtype) * 0.4
    model.tie_weights()
    return model


def inputs_of(case: Case, seed: int = 0, n: int = 6) -> dict[str, Any]:
    """Random ids of two texts, one of them padded if the case says so."""
    torch.manual_seed(seed)
    inputs = {"input_ids": torch.randint(3, case.config["vocab_size"], (2, n))}
    if case.padding:
        mask = torch.ones(2, n).long()
        mask[1, n - 2 :] = 0
        if case.padding == "left":
            mask = mask.flip(1)
        inputs["attention_mask"] = mask
        inputs["input_ids"] = inputs["input_ids"].where(mask != 0, case.config["pad_token_id"])
    return inputs


def errors(case: Case, dtype: Any) -> dict[str, float]:
    """The greatest difference of each output, over the tokens that count."""
    model, inputs = built(case, dtype), inputs_of(case)
    with torch.no_grad():
        expected = model(**inputs)
    outputs = locum.simulate(model, inputs)
    counts = inputs.get("attention_mask", torch.ones(2, 1)).bool()
    found = {}
    for name in ("last_hidden_state", "logits", "pooler_output", "encoder_last_hidden_state"):
        theirs, ours = getattr(expected, name, None), getattr(outputs, name)
        if theirs is None:
            assert ours is None or name == "last_hidden_state", f"{name}: {case}"
            continue
        assert ours is not None, f"{name}: {case}"
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        difference = (ours - theirs).abs()
        if name in ("last_hidden_state", "logits") and counts.shape == difference.shape[:2]:
            difference = difference[counts]
        found[name] = float(difference.max())
    assert found
    return found
