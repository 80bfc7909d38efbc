"""Whole models on U, against the transformers library itself; what is not simulated is refused."""

from __future__ import annotations

import copy
import functools
import json
from pathlib import Path
from typing import Any

import pytest

import locum
from locum.errors import InputError
from locum.simulators.models.families.fields import ACTIVATIONS
from locum.simulators.models.families.running import Model
from locum.simulators.models.families.source import Source
from locum.simulators.models.families.table import FAMILIES
from tests.simulators.families import (
    CASES,
    Case,
    bert,
    built,
    errors,
    gpt2,
    in_full_precision,
    inputs_of,
    llama,
    t5,
)

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

ALL = [(family, number) for family, cases in CASES.items() for number in range(len(cases))]


@pytest.mark.parametrize(("family", "number"), ALL)
def test_double_precision(family: str, number: int) -> None:
    assert max(errors(CASES[family][number], torch.float64).values()) <= 1e-10


@pytest.mark.parametrize("family", CASES)
def test_single_precision(family: str) -> None:
    assert max(errors(CASES[family][0], torch.float32).values()) <= 1e-4


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_listed_activation_of_live_models(name: str) -> None:
    for case in (
        Case("BertModel", bert(hidden_act=name)),
        Case("GPT2LMHeadModel", gpt2(activation_function=name)),
        Case("LlamaForCausalLM", llama(hidden_act=name)),
    ):
        assert max(errors(case, torch.float64).values()) <= 1e-10


def test_a_replaced_partial_is_rejected() -> None:
    model = built(Case("BertModel", bert(hidden_act="gelu_pytorch_tanh")), torch.float64)
    activation = model.encoder.layer[1].intermediate.intermediate_act_fn
    if not isinstance(activation.act, functools.partial):
        pytest.skip("this release of transformers has no partial here")
    activation.act = functools.partial(activation.act.func, approximate="none")
    with pytest.raises(InputError, match="the two may compute different things"):
        locum.simulate(model, torch.tensor([[3, 4, 5]]))


def test_every_family_has_its_cases_and_its_row_in_the_docs() -> None:
    assert set(CASES) == set(FAMILIES)
    assert all(len(cases) >= 4 for cases in CASES.values())
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    for name, family in FAMILIES.items():
        assert f"| {family.title} | {name} | {', '.join(family.classes)} |" in page


@pytest.mark.parametrize("kind", ["BertModel", "BertForMaskedLM", "MPNetModel"])
def test_a_folder_on_lists_of_ids(kind: str, tmp_path: Path) -> None:
    """Folders of the BERT family give more (embeddings, errors), and these outputs, too."""
    case = next(c for cases in CASES.values() for c in cases if c.kind == kind)
    model, texts = built(case, torch.float64), [[3, 4, 5], [6, 7]]
    model.save_pretrained(tmp_path)
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(
        '{"word_embedding_dimension": 8, "pooling_mode_mean_tokens": true}'
    )
    names = ("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")
    modules = [
        {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{module}"}
        for n, (path, module) in enumerate(names)
    ]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    run = locum.simulate(tmp_path, texts, dtype="float64")
    ids = torch.tensor([[3, 4, 5], [6, 7, case.config["pad_token_id"]]])
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    with torch.no_grad():
        expected = model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
    states = expected.hidden_states[-1] * mask[:, :, None]
    result = torch.as_tensor(run.last_hidden_state) * mask[:, :, None]
    assert float((result - states).abs().max()) <= 1e-10
    means = torch.nn.functional.normalize(states.sum(1) / mask.sum(1, keepdim=True))
    assert float((torch.as_tensor(run.embeddings) - means).abs().max()) <= 1e-10
    for name in ("logits", "pooler_output"):
        ours, theirs = getattr(run, name), getattr(expected, name, None)
        assert (ours is None) == (theirs is None)
        if theirs is not None:
            keep = mask.bool() if name == "logits" else slice(None)
            assert float((torch.as_tensor(ours)[keep] - theirs[keep]).abs().max()) <= 1e-10


@pytest.mark.parametrize("family", CASES)
def test_every_state_is_the_one_that_the_library_lists(family: str) -> None:
    case = CASES[family][0]
    model, inputs = built(case, torch.float64), inputs_of(case)
    tokens = {name: x.double() if x.is_floating_point() else x for name, x in inputs.items()}
    with torch.no_grad():
        expected = in_full_precision(model)(**tokens, output_hidden_states=True)
    result = locum.simulate(model, inputs)
    counts = inputs.get("attention_mask", torch.ones(2, 1)).bool()
    for name in ("hidden_states", "encoder_hidden_states", "decoder_hidden_states"):
        ours, theirs = getattr(result, name), getattr(expected, name, None) or ()
        assert len(ours) == len(theirs), name
        for one, other in zip(ours, theirs, strict=True):
            difference = (one - other).abs()
            same = counts.shape == difference.shape[:2]
            assert float((difference[counts] if same else difference).max()) <= 1e-10


#: Fields whose default the library makes of others.
DERIVED = {
    *("rope_parameters", "layer_types", "num_key_value_heads", "head_dim", "sliding_window"),
    *("pooler_output_size", "is_gated_act", "dense_act_fn", "scale_decoder_outputs"),
    *("num_decoder_layers",),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_defaults_are_those_of_the_library(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A field that a config.json leaves out has the default that the library gives it."""
    tables: list[dict[str, Any]] = []
    monkeypatch.setattr(Source, "fields", lambda self, table: tables.append(table))
    with pytest.raises(TypeError):  # there are no values
        FAMILIES[family].read(Source(family, {"model_type": family}, {}, ""))
    defaults = transformers.CONFIG_MAPPING[family]().to_dict()
    known = {name: field.default for name, field in tables[0].items() if name in defaults}
    assert {n: v for n, v in known.items() if v != defaults[n]}.keys() <= DERIVED


@pytest.mark.parametrize("family", CASES)
def test_a_folder_gives_the_same(family: str, tmp_path: Path) -> None:
    case = CASES[family][0]
    model = built(case, torch.float64)
    model.save_pretrained(tmp_path)
    inputs = inputs_of(case)
    result = locum.simulate(tmp_path, inputs, dtype="float64")
    expected = locum.simulate(model, inputs)
    assert float((result.last_hidden_state - expected.last_hidden_state).abs().max()) <= 1e-12
    assert (result.logits is None) == (expected.logits is None)


@pytest.mark.parametrize("family", CASES)
def test_the_program_depends_on_the_order_alone(family: str) -> None:
    case = CASES[family][0]
    hashes = []
    for seed in (1, 2):
        model = Model(built(case, torch.float64, seed))
        model.run(inputs_of(case))
        hashes.append({ready.simulator.hash for ready in model._prepared.values()})
    assert hashes[0] == hashes[1]


OLDER: dict[str, dict[str, Any]] = {
    "llama": {"rope_theta": 50.0, "rope_scaling": None, "pretraining_tp": 1},
    "gpt_neox": {"rotary_pct": 0.5, "rotary_emb_base": 50},
    "gpt2": {"n_ctx": 12, "task_specific_params": {"text-generation": {"max_length": 50}}},
    "bert": {"pooler_type": "first_token_transform", "directionality": "bidi"},
}


@pytest.mark.parametrize("family", OLDER)
def test_fields_of_older_folders(family: str, tmp_path: Path) -> None:
    case = CASES[family][0]
    built(case, torch.float64).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text()) | OLDER[family]
    config.pop("rope_parameters", None)
    path.write_text(json.dumps(config))
    model = getattr(transformers, case.kind).from_pretrained(tmp_path, dtype=torch.float64)
    inputs = inputs_of(case)
    result = locum.simulate(tmp_path, inputs, dtype="float64").last_hidden_state
    with torch.no_grad():
        states = in_full_precision(model)(**inputs, output_hidden_states=True).hidden_states[-1]
    counts = inputs.get("attention_mask", torch.ones(states.shape[:2])).bool()
    assert float((result - states)[counts].abs().max()) <= 1e-10


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_a_file_with_another_table_than_the_tied_one(family: str, tmp_path: Path) -> None:
    """Versions of the library differ in which of the two they take."""
    stored: Any = pytest.importorskip("safetensors.torch")
    case = CASES[family][0]
    built(case, torch.float64).save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    tensors = stored.load_file(file)
    tensors["lm_head.weight"] = torch.randn(23, 8, dtype=torch.float64)
    stored.save_file(tensors, file)
    with pytest.raises(InputError, match=r"lm_head\.weight to be the table of words"):
        locum.simulate(tmp_path, inputs_of(case), dtype="float64")


GPT2 = CASES["gpt2"][0]


class Derived(torch.nn.Linear):  # type: ignore[misc]
    """Computes something else."""


def hooked(model: Any) -> None:
    model.transformer.h[0].mlp.register_forward_hook(lambda module, inputs, output: output * 2)


def replaced(model: Any) -> None:
    model.transformer.h[1].mlp.act = torch.nn.ReLU()


def changed(model: Any) -> None:
    model.transformer.ln_f.eps = 0.1


def added(model: Any) -> None:
    model.transformer.h[0].adapter = torch.nn.Linear(8, 8)


def derived(model: Any) -> None:
    model.lm_head = Derived(8, 23, bias=False, dtype=torch.float64)


def half(model: Any) -> None:
    model.transformer.h[0].half()


def not_finite(model: Any) -> None:
    model.transformer.ln_f.weight.data[0] = torch.inf


def another_config(model: Any) -> None:
    model.config.activation_function = "relu"


def own_forward(model: Any) -> None:
    model.transformer.forward = lambda *args, **options: None


def training(model: Any) -> None:
    model.train()


def training_in_part(model: Any) -> None:
    model.transformer.h[1].attn.train()


def own_attention(model: Any) -> None:
    def nothing(module: Any, query: Any, key: Any, value: Any, mask: Any, **options: Any) -> Any:
        return value.transpose(1, 2) * 0, None

    transformers.AttentionInterface.register("nothing", nothing)
    model.set_attn_implementation("nothing")


def own_config(model: Any) -> None:
    config = copy.deepcopy(model.config)
    config.scale_attn_weights = False
    model.transformer.h[1].attn.config = config


def without_numbers(model: Any) -> None:
    model.to("meta")


CHANGES = {
    own_attention: r"attn_implementation='nothing', a function of .*test_families",
    own_config: r"h\.1\.attn has a config of its own, in which scale_attn_weights is False",
    without_numbers: "meta device",
    training: r"training mode, and \w+_pdrop is 0\.1: expected model\.eval\(\)",
    training_in_part: "training mode",
    hooked: r"h\.0\.mlp has a forward hook",
    replaced: r"h\.1\.mlp\.act to be transformers.*got torch.nn.*ReLU",
    changed: r"ln_f\.eps is 0\.1, but the config makes it 1e-05",
    added: r"h\.0\.adapter is not a part",
    derived: "lm_head to be torch.nn.*Linear.*Derived",
    half: "one dtype on one device",
    not_finite: "ln_f.weight has numbers that are not finite",
    another_config: "act",
    own_forward: "method forward of its own",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_model_is_refused(change: Any) -> None:
    model = built(GPT2, torch.float64)
    change(model)
    with pytest.raises(InputError, match=CHANGES[change]):
        locum.simulate(model, inputs_of(GPT2))


def test_another_function_in_an_activation_is_refused() -> None:
    """Built-in for built-in: the activation is a part that calls a function."""
    case = Case("GPT2LMHeadModel", gpt2(activation_function="gelu", n_layer=1))
    model = built(case, torch.float64)
    assert model.transformer.h[0].mlp.act.act is torch.nn.functional.gelu
    model.transformer.h[0].mlp.act.act = torch.tanh
    with pytest.raises(InputError, match=r"act\.act is <built-in .*tanh.*makes it <built-in .*gelu"):
        locum.simulate(model, inputs_of(case))


def test_a_window_that_is_none_is_refused(tmp_path: Path) -> None:
    """The library does not run such a model."""
    layers = {"use_sliding_window": True, "layer_types": ["full_attention", "sliding_attention"]}
    case = Case("Qwen2Model", llama(sliding_window=None, **layers))
    model, inputs = built(case, torch.float64), inputs_of(case)
    with pytest.raises((TypeError, ValueError)):
        model(**inputs)
    model.save_pretrained(tmp_path)
    for tokens in (model, tmp_path):
        with pytest.raises(InputError, match="expected a sliding_window"):
            locum.simulate(tokens, inputs)


def test_a_t5_that_is_called_no_encoder_and_decoder_is_refused() -> None:
    """The library then puts all keys of its decoder into one cache."""
    case = Case("T5ForConditionalGeneration", t5(is_encoder_decoder=False))
    with pytest.raises(InputError, match=r"expected True .* as is_encoder_decoder .* got False"):
        locum.simulate(built(case, torch.float64), inputs_of(case))
    encoder = Case("T5EncoderModel", t5(is_encoder_decoder=False, num_layers=1))
    assert errors(encoder, torch.float64)["last_hidden_state"] < 1e-10


def test_what_a_model_saves_is_not_what_it_computes_by() -> None:
    model, inputs = built(GPT2, torch.float64), inputs_of(GPT2)
    expected = locum.simulate(model, inputs).logits

    def doubled(module: Any, state: Any, prefix: str, metadata: Any) -> None:
        state.update({name: 2 * tensor for name, tensor in state.items()})

    model.register_state_dict_post_hook(doubled)
    assert torch.equal(locum.simulate(model, inputs).logits, expected)


def test_a_model_that_gave_its_states_before() -> None:
    """The library leaves hooks on it, which record and change nothing."""
    model, inputs = built(GPT2, torch.float64), inputs_of(GPT2)
    with torch.no_grad():
        expected = model(**inputs, output_hidden_states=True, output_attentions=True).logits
    assert float((locum.simulate(model, inputs).logits - expected).abs().max()) <= 1e-10


def test_an_albert_without_its_pooler_and_by_another_attention() -> None:
    case = CASES["albert"][0]
    config, inputs = built(case, torch.float64).config, inputs_of(case)
    model = transformers.AlbertModel(config, add_pooling_layer=False).double().eval()
    model.set_attn_implementation("eager")
    expected = model(**inputs).last_hidden_state.detach()
    kept = inputs["attention_mask"] != 0
    off = (locum.simulate(model, inputs).last_hidden_state - expected)[kept]
    assert float(off.abs().max()) <= 1e-10


@pytest.mark.parametrize("family", ["bart", "gpt2"])
def test_a_folder_of_untied_tables(family: str, tmp_path: Path) -> None:
    case = next(c for c in CASES[family] if c.config.get("tie_word_embeddings") is False)
    model, inputs = built(case, torch.float64), inputs_of(case)
    model.save_pretrained(tmp_path)
    result = locum.simulate(tmp_path, inputs, dtype="float64").logits
    assert float((result - locum.simulate(model, inputs).logits).abs().max()) <= 1e-10


def test_a_subclass_is_refused() -> None:
    Mine = type("GPT2LMHeadModel", (transformers.GPT2LMHeadModel,), {})
    with pytest.raises(InputError, match="expected a class of the transformers library itself"):
        locum.simulate(Mine(transformers.GPT2Config(**GPT2.config)), [[3]])


FIELDS: list[tuple[str, dict[str, Any], str]] = [
    ("gpt2", {"reorder_and_upcast_attn": True}, "reorder_and_upcast_attn"),
    ("gpt2", {"activation_function": "mish"}, "activation_function in config.json, got 'mish'"),
    ("gpt2", {"attention_sinks": 4}, "the field attention_sinks of config.json"),
]


@pytest.mark.parametrize(("family", "fields", "problem"), FIELDS)
def test_fields_outside_the_table_are_refused(
    family: str, fields: dict[str, Any], problem: str
) -> None:
    case = CASES[family][0]
    with pytest.raises(InputError, match=problem):
        locum.simulate(built(Case(case.kind, case.config | fields), torch.float64), [[3]])


BAD_INPUTS: list[tuple[Any, str]] = [
    ([[3.5]], "integers"),
    ([[3.0, 4.0]], "integers in input_ids, got float64"),
    (torch.tensor([[True, False]]), "integers in input_ids, got bool"),
    (torch.tensor([[3, 4]], dtype=torch.bfloat16), "got bfloat16"),
    ([[23]], ", got 23"),
    ([[3] * 13], "expected at most 12 tokens, got 13"),
    ([], "empty list"),
    (["text"], "no tokenizer"),
    ({"input_ids": [[3]], "position_ids": [[1]]}, "position_ids is not simulated"),
    ({"attention_mask": [[1]]}, "expected input_ids"),
    ({"input_ids": [[3, 4]], "attention_mask": [[1]]}, r"expected the shape \(1, 2\)"),
    ({"input_ids": [[3, 4]], "attention_mask": [[0, 0]]}, "no key"),
    ({"input_ids": [[3, 4]], "token_type_ids": [[0, 0]]}, "does not take token_type_ids"),
]


@pytest.mark.parametrize(("inputs", "problem"), BAD_INPUTS)
def test_bad_inputs_are_refused(inputs: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        locum.simulate(built(GPT2, torch.float64), inputs)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"partial_rotary_factor": 0.5}, "turns all columns of a head"),
        ({"rope_parameters": {"rope_theta": 9.0, "partial_rotary_factor": 0.5}}, "turns all columns"),
        ({"vocab_size": 20}, "expected a table of 20 words"),
        ({"rope_parameters": {"rope_theta": "9"}}, "expected a positive number as rope_theta.*'9'"),
        ({"rope_parameters": {"rope_theta": 9.0, "rope_type": "linear", "factor": 0}}, "as factor"),
        ({"rope_parameters": {"rope_type": ["default"]}}, "expected rope_type default"),
        ({"rope_parameters": "default"}, "expected an object as rope_parameters"),
    ],
)
def test_a_folder_whose_config_says_something_else(
    fields: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    """The library passes over a partial_rotary_factor of a Llama, and does not load other sizes."""
    case = CASES["llama"][0]
    built(case, torch.float32).save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))
    with pytest.raises(InputError, match=problem):
        locum.simulate(tmp_path, inputs_of(case))


def test_other_architectures_are_refused_as_such() -> None:
    config = transformers.GemmaConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    with pytest.raises(InputError, match="the architecture 'gemma'"):
        locum.simulate(transformers.GemmaModel(config).eval(), [[3]])
