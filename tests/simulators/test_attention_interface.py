"""``attn_implementation="locum"``: models of the transformers library run their attention on U."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import locum
from locum.errors import InputError
from locum.simulators.simulator import Simulator

torch = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

ids = torch.randint(3, 50, (3, 9), generator=torch.Generator().manual_seed(0))
padded = torch.ones(3, 9, dtype=torch.long)
padded[0, 6:] = padded[1, 8:] = 0
SIZES = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "intermediate_size": 32}
SIZES |= {"num_attention_heads": 4}
SHARED = SIZES | {"num_key_value_heads": 2}
CASES: dict[str, dict[str, Any]] = {
    "Bert": SIZES,
    "GPT2": {"vocab_size": 50, "n_embd": 16, "n_layer": 2, "n_head": 4},
    "Llama": SHARED,
    "Mistral": SHARED | {"sliding_window": 3},
    "ViT": SIZES | {"image_size": 6, "patch_size": 2},
    "T5": {"vocab_size": 50, "d_model": 16, "d_kv": 4, "d_ff": 32, "num_layers": 2, "num_heads": 4},
}


def model(name: str, **options: Any) -> Any:
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**CASES[name] | options)
    return getattr(transformers, f"{name}Model")(config).eval()


def states(of: Any, name: str, mask: Any) -> Any:
    if name == "ViT":
        return of(torch.linspace(-1, 1, 2 * 3 * 36).reshape(2, 3, 6, 6))[0]
    more = {"decoder_input_ids": ids} if name == "T5" else {}
    return of(input_ids=ids, attention_mask=mask, **more)[0][slice(None) if mask is None else mask != 0]


@pytest.mark.parametrize("name", CASES)
def test_a_model_computes_the_same_on_u(name: str) -> None:
    locum.register_attention()
    T = model(name)
    masks = [None] if name == "ViT" else [None, padded, padded.flip(1)]
    for mask in masks:
        T.set_attn_implementation("eager")
        expected = states(T, name, mask)
        T.set_attn_implementation("locum")
        with locum.record("*hook_pattern") as cache:
            assert (states(T, name, mask) - expected).abs().max() < 1e-5
        assert len(cache) == (6 if name == "T5" else 2)
    if name == "Bert":  # a model that hands the option on
        inputs = {"input_ids": ids, "attention_mask": padded.flip(1), "output_attentions": True}
        assert (T(**inputs).attentions[0] - cache[FIRST]).abs().max() == 0


FIRST = "blocks.0.attn.hook_pattern"


def test_the_attention_modules_of_a_model_have_stand_ins() -> None:
    for name, where in (("Llama", "layers.*.self_attn"), ("Bert", "encoder.layer.*.attention.self")):
        T = model(name)
        by_U = locum.stand_in(T, where=where)
        with locum.record() as cache:
            assert (states(by_U, name, padded) - states(T, name, padded)).abs().max() < 1e-5
        assert {key.split(".", 2)[2] for key in cache} == {
            *("attn.hook_attn_scores", "attn.hook_pattern", "attn.hook_z"),
        }
        assert cache[FIRST].shape == (3, 4, 9, 9)
        assert T.config._attn_implementation != "locum"
    with pytest.raises(InputError, match=r"attention, a transformers.*try where=.*attention.self"):
        locum.stand_in(model("Bert"), where="encoder.layer.*.attention")


def test_generation_with_a_cache() -> None:
    locum.register_attention()
    torch.manual_seed(0)
    T = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SHARED)).eval()
    texts = []
    for name in ("eager", "locum"):
        T.set_attn_implementation(name)
        options = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
        texts.append(T.generate(ids, attention_mask=padded.flip(1), **options).tolist())
    assert texts[0] == texts[1]


def test_gradients_reach_the_model() -> None:
    locum.register_attention()
    gradients = []
    for name in ("eager", "locum"):
        T = model("Llama")
        T.set_attn_implementation(name)
        states(T, "Llama", padded).square().sum().backward()
        gradients.append([part.grad for part in T.parameters()])
    assert all((a - b).abs().max() < 1e-4 for a, b in zip(*gradients, strict=True))


def test_what_it_cannot_honour_is_refused_by_name() -> None:
    from locum.simulators.stand_ins.interface import attention

    q = torch.ones(2, 4, 3, 5)
    module = torch.nn.Module()
    for options, message in (
        ({"softcap": 30.0}, "softcap"),
        ({"s_aux": q}, "s_aux"),
        ({"head_mask": q}, "head_mask"),
        ({"cu_seq_lens_q": q}, "cu_seq_lens_q"),
        ({"something": 1}, "something"),
        ({"dropout": 0.1}, "dropout of 0.1"),
        ({"attention_mask": torch.ones(2, 3)}, r"attention_mask of shape"),
        ({"attention_mask": torch.ones(2, 1, 3, 2)}, r"attention_mask of shape"),
        ({"attention_mask": torch.ones(2, 1, 3, 3, dtype=torch.int64)}, "booleans or floating"),
        ({"attention_mask": "causal"}, "got str"),
        ({"sliding_window": 2}, "sliding window of 2"),
    ):
        with pytest.raises(InputError, match=message):
            attention(module, q, q, q, **{"attention_mask": None} | options)
    with pytest.raises(InputError, match="expected keys"):
        attention(module, q, q[:, :3], q[:, :3], None)
    # A query that may attend to nothing stays finite: models have such rows of padding.
    nothing = torch.zeros(2, 1, 3, 3, dtype=torch.bool)
    assert attention(module, q, q, q, nothing)[0].isfinite().all()
    training = model("Llama", attention_dropout=0.1).train()
    training.set_attn_implementation("locum")
    with pytest.raises(InputError, match=r"attention dropout of 0\.1"):
        training(input_ids=ids)


def test_recorded_are_the_keys_that_there_are() -> None:
    """While one token at a time is generated, keys are padded; what is recorded is not."""
    config = transformers.GPT2Config(
        vocab_size=20, n_embd=8, n_layer=1, n_head=2, n_positions=16, bos_token_id=0, eos_token_id=0
    )
    locum.register_attention()
    model = transformers.GPT2LMHeadModel(config).eval()
    model.set_attn_implementation("locum")
    options = {"max_new_tokens": 3, "min_new_tokens": 3, "do_sample": False, "pad_token_id": 0}
    with locum.record() as cache:
        model.generate(torch.tensor([[3, 1, 4]]), **options)
    pattern = cache["blocks.0.attn.hook_pattern"]
    assert pattern.shape == (1, 2, 1, 5)
    assert torch.allclose(pattern.sum(-1), torch.ones(1, 2, 1), atol=1e-5)
    assert cache["blocks.0.attn.hook_attn_scores"].shape == (1, 2, 1, 5)


@pytest.mark.parametrize("name", CASES)
def test_it_is_u_that_computes_the_attention(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a CPU the result may equal that of "sdpa" to the last bit, so U itself is asked."""
    locum.register_attention()
    runs: list[str] = []
    original = Simulator.run_parts

    def counted(U: Simulator, *arguments: Any, **options: Any) -> Any:
        runs.append(type(U).__name__)
        return original(U, *arguments, **options)

    monkeypatch.setattr(Simulator, "run_parts", counted)
    T = model(name)
    T.set_attn_implementation("sdpa")
    expected = states(T, name, None)
    assert runs == []
    T.save_pretrained(tmp_path)
    kind = type(T)
    T.set_attn_implementation("locum")
    attentions = ["ProjectedAttention"] * (6 if name == "T5" else 2)
    for made in (
        T,
        kind._from_config(T.config, attn_implementation="locum"),
        kind.from_pretrained(tmp_path, attn_implementation="locum"),
    ):
        made.load_state_dict(T.state_dict())
        runs.clear()
        assert (states(made.eval(), name, None) - expected).abs().max() < 1e-5
        assert runs == attentions
    monkeypatch.setattr(Simulator, "run_parts", lambda U, *inputs, **options: original(U, *inputs) * 0)
    assert (states(T, name, None) - expected).abs().max() > 1e-3
