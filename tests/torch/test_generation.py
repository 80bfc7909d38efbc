"""``generate`` of the transformers library on U gives eager's tokens, and every pass runs on U.

``make test`` runs a few settings with short texts, ``make fuzz`` all of them with 64 tokens.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import locum.torch  # noqa: E402

pytestmark = pytest.mark.slow

EVERYTHING = settings().max_examples >= 20_000
NEW_TOKENS = 64 if EVERYTHING else 4
SIZES = {"vocab_size": 60, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
#: Settings of ``generate``; ``padded`` gives a batch whose first text is padded on the left.
SETTINGS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "beams": {"num_beams": 3},
    "sampling": {"do_sample": True, "top_k": 20, "top_p": 0.9, "temperature": 1.5},
    "padded": {},
    "static cache": {"cache_implementation": "static"},
    "penalties": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "min_new_tokens": 3},
}


def decoder(config: type, **sizes: Any) -> Any:
    return transformers.AutoModelForCausalLM.from_config(config(**SIZES, **sizes))


def gpt2() -> Any:
    return decoder(transformers.GPT2Config, n_embd=16, n_layer=2, n_head=2, n_positions=96)


def llama() -> Any:
    return decoder(
        transformers.LlamaConfig,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=96,
    )


def t5() -> Any:
    config = transformers.T5Config(
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=2,
        num_heads=2,
        decoder_start_token_id=0,
        **SIZES,
    )
    return transformers.T5ForConditionalGeneration(config)


def _layers(**others: Any) -> dict[str, Any]:
    sides = {
        f"{side}_{name}": size
        for side in ("encoder", "decoder")
        for name, size in (("layers", 2), ("attention_heads", 2), ("ffn_dim", 32))
    }
    return {"d_model": 16, "decoder_start_token_id": 2, **SIZES, **sides, **others}


def bart() -> Any:
    config = transformers.BartConfig(
        **_layers(max_position_embeddings=96), forced_eos_token_id=None, forced_bos_token_id=None
    )
    return transformers.BartForConditionalGeneration(config)


def whisper() -> Any:
    config = transformers.WhisperConfig(
        **_layers(num_mel_bins=4, max_source_positions=8, max_target_positions=96),
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    return transformers.WhisperForConditionalGeneration(config)


MODELS = {"gpt2": gpt2, "llama": llama, "t5": t5, "bart": bart, "whisper": whisper}
SAMPLED = [("gpt2", "greedy"), ("llama", "static cache"), ("t5", "beams"), ("whisper", "sampling")]
ALL = [(model, setting) for model in MODELS for setting in SETTINGS]


def give(name: str, setting: str) -> dict[str, Any]:
    if name == "whisper":
        return {"input_features": torch.randn(2, 4, 16)}
    ids = torch.randint(5, 60, (2, 6))
    mask = torch.ones_like(ids)
    if setting == "padded":
        ids[0, :3], mask[0, :3] = 0, 0
    return {"input_ids": ids, "attention_mask": mask}


@pytest.mark.parametrize(("name", "setting"), ALL if EVERYTHING else SAMPLED)
def test_corpus_of_generated_texts(name: str, setting: str) -> None:
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    for parameter in model.parameters():  # tokens that differ from text to text
        torch.nn.init.normal_(parameter, std=0.3)
    given = give(name, setting)
    chosen = {"max_new_tokens": NEW_TOKENS, "disable_compile": True, **SETTINGS[setting]}
    passes = 0

    def count(*_: Any) -> None:
        nonlocal passes
        passes += 1

    # generate calls the encoder of a model with two stacks directly, once for a text.
    compiled = [model, model.get_encoder()] if model.config.is_encoder_decoder else [model]
    hooks = [module.register_forward_hook(count) for module in compiled]
    torch.manual_seed(1)
    expected = model.generate(**given, **chosen)
    for hook in hooks:
        hook.remove()
    assert passes > 1
    for module in compiled:
        module.compile(backend="locum", fullgraph=True, recompile_limit=64)
    torch.manual_seed(1)
    found = model.generate(**given, **chosen)
    assert torch.equal(found, expected)
    report = locum.torch.report(model)
    assert report.runs == report.calls == passes
    assert report.share == 1.0
    stacks = len(compiled)
    # A dynamic cache has programs for its first lengths, and one family for the others.
    assert report.plans <= (1 + stacks if setting == "static cache" else 6 + stacks)
