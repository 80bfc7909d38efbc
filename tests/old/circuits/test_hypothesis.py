"""Hypotheses about trained models: right ones are confirmed, wrong ones have a counterexample."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

import locum
from locum import aggregate, indices, length, select, tokens
from locum.errors import InputError
from locum.experiments.circuits import check_hypothesis
from locum.experiments.circuits.program_interchange import interchange
from locum.experiments.dataset.program_families import SOURCES

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

VOCABULARY = {"<bos>": 0, "a": 1, "b": 2, "c": 3, "x": 4, "<unk>": 5}
ROWS = [list(row) for size in (2, 3, 4) for row in itertools.product("abc", repeat=size)]
PREVIOUS = aggregate(select(indices, indices - 1, "=="), tokens, "x")
FIRST = aggregate(select(indices, 0, "=="), tokens)
REVERSE = aggregate(select(indices, length - 1 - indices, "=="), tokens)


def small_gpt2(**changes: Any) -> Any:
    settings = {"n_positions": 16, "n_embd": 32, "n_layer": 1, "n_head": 2, "vocab_size": 6}
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**settings | ends | changes))


@pytest.fixture(scope="module")
def trained() -> Any:
    """Return a GPT-2 that was trained to return the previous token."""
    torch.manual_seed(0)
    draw = random.Random(0)
    model = small_gpt2()
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(150):
        size = draw.choice((2, 3, 4))
        rows = [draw.choices("abc", k=size) for _ in range(32)]
        ids = torch.tensor([[0, *map(VOCABULARY.get, row)] for row in rows])
        right = torch.tensor([[4, *map(VOCABULARY.get, row[:-1])] for row in rows])
        logits = model(ids).logits[:, 1:]
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, 6), right.reshape(-1))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model


def test_a_right_hypothesis_holds_with_its_head_and_interventions(trained: Any) -> None:
    options: dict[str, Any] = {"vocabulary": VOCABULARY, "prefix": [0]}
    report = check_hypothesis(trained, PREVIOUS, ROWS, interventions=0.9, **options)
    assert report.holds
    assert report.agreement == 1.0
    assert report.inputs == len(ROWS)
    (head,) = report.heads
    assert head.distance < 0.2 < 0.5 < head.uniform
    (intervention,) = report.interventions
    assert intervention.layer == 1
    assert intervention.agreement > 0.9 > 0.5 > intervention.random


def test_a_wrong_hypothesis_is_rejected_with_the_shortest_counterexample(trained: Any) -> None:
    report = check_hypothesis(trained, FIRST, ROWS, vocabulary=VOCABULARY, prefix=[0])
    assert not report.holds
    first = report.counterexamples[0]
    assert (len(first.tokens), first.position, first.model) == (2, 0, "x")


@pytest.mark.always
@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="the subspace of an s-op contains directions of other s-ops",
)
def test_interventions_agree_on_a_network_that_was_compiled_from_the_hypothesis() -> None:
    program = SOURCES["cookbook/induction"].make(4)
    model = locum.compile(program, length=4, vocabulary="abc", attention="softmax", feed_forward="relu")
    report = check_hypothesis(model, program, ROWS, interventions=0.9)
    if report.agreement != 1 or not report.interventions:
        raise RuntimeError(f"expected equal answers and interventions, got {report.reasons}")
    assert report.holds


def test_the_model_is_left_as_it_was() -> None:
    model = small_gpt2().train()
    before = model.config._attn_implementation
    check_hypothesis(model, PREVIOUS, ROWS[:12], vocabulary=VOCABULARY)
    assert model.training
    assert model.config._attn_implementation == before != "eager"
    hooks = [
        hook
        for part in model.modules()
        for hook in (*part._forward_hooks.values(), *part._forward_pre_hooks.values())
    ]
    assert not [hook for hook in hooks if hook.__module__.startswith("locum")]


SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 32,
    "vocab_size": 8,
    "max_position_embeddings": 32,
}


@pytest.mark.parametrize(
    "name", ["LlamaForCausalLM", "GPTNeoXForCausalLM", "BertForTokenClassification"]
)
def test_other_architectures_are_observed(name: str) -> None:
    kind = getattr(transformers, name)
    labels = {"num_labels": 6} if "Classification" in name else {}
    model = kind(kind.config_class(**SMALL, **labels))
    numbers = VOCABULARY if labels else None
    report = check_hypothesis(
        model, REVERSE, ROWS[:40], vocabulary=VOCABULARY, labels=numbers, prefix=[0]
    )
    ids = torch.tensor([[0, *map(VOCABULARY.get, row)] for row in ROWS[:9]])
    found = model.eval()(ids).logits[:, 1:].argmax(-1).tolist()
    right = [[VOCABULARY[str(token)] for token in REVERSE(row)] for row in ROWS[:9]]
    shown = [one.tokens for one in report.counterexamples if len(one.tokens) == 2]
    wrong = [tuple(row) for row, a, b in zip(ROWS, found, right, strict=False) if a != b]
    assert shown == wrong[: len(shown)]
    assert len(report.heads) == 1


def test_a_compiled_network_computes_its_program_by_its_head() -> None:
    model = locum.compile(
        PREVIOUS, length=4, vocabulary="abc", attention="softmax", feed_forward="relu"
    )
    report = check_hypothesis(model, PREVIOUS, ROWS)
    assert report.holds
    assert report.heads[0].distance < 1e-3
    assert report.interventions[0].agreement == 1.0


def test_repeated_inputs_are_noted() -> None:
    model = locum.compile(
        PREVIOUS, length=4, vocabulary="abc", attention="softmax", feed_forward="relu"
    )
    report = check_hypothesis(model, PREVIOUS, [*ROWS[:9], ROWS[0]])
    assert report.inputs == 9
    assert "repeated inputs: 1 of 10 are not counted" in report.notes
    plain = check_hypothesis(model, PREVIOUS, ROWS[:9])
    assert not [note for note in plain.notes if "repeated" in note]


def test_patterns_of_another_shape_are_noted() -> None:
    torch = pytest.importorskip("torch")
    from locum.torch.observed_model import observe

    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(3, 4)
            self.layers = torch.nn.ModuleList([torch.nn.MultiheadAttention(4, 2, batch_first=True)])

        def forward(self, ids: Any) -> Any:
            x = self.embed(ids)
            return self.layers[0](x, x, x)[0]  # its weights are [input · head, query, key]

    model = observe(Model())
    assert not model.observe(torch.tensor([[0, 1, 2]])).patterns
    assert any("they are not [input, head, query, key]" in note for note in model.notes)


def test_an_answer_that_a_compiled_network_cannot_give_is_a_counterexample() -> None:
    model = locum.compile(
        PREVIOUS, length=4, vocabulary="abc", attention="softmax", feed_forward="relu"
    )
    report = check_hypothesis(model, indices, ROWS)
    assert report.agreement == 0
    assert report.counterexamples[0].program == 0
    assert report.counterexamples[0].model == "x"


def test_tokens_that_the_model_cannot_tell_apart_are_both_compared() -> None:
    """Inputs with the same token ids were taken for one input: the wrong one was not compared."""
    model = small_gpt2()
    identity = tokens
    same = VOCABULARY | {"b": 1}
    report = check_hypothesis(
        model, identity, [["a"], ["b"]], vocabulary=same, labels={"a": 1, "b": 2}, prefix=[0]
    )
    assert (report.inputs, report.holds) == (2, False)
    entries = [{"tokens": [token], "ids": [0, 1], "places": [1]} for token in "ab"]
    report = check_hypothesis(model, identity, entries, vocabulary=VOCABULARY)
    assert report.inputs == 2
    assert report.counterexamples


def test_logits_that_are_not_numbers_are_rejected() -> None:
    model = small_gpt2()
    with torch.no_grad():
        model.transformer.h[0].mlp.c_fc.weight[0, 0] = float("nan")
    with pytest.raises(InputError, match="expected logits, got nan"):
        check_hypothesis(model, PREVIOUS, ROWS[:2], vocabulary=VOCABULARY)


def test_models_and_answers_that_cannot_be_compared_are_rejected() -> None:
    both = transformers.T5ForConditionalGeneration(
        transformers.T5Config(vocab_size=8, d_model=8, d_ff=8, num_layers=1, num_heads=1, d_kv=8)
    )
    with pytest.raises(InputError, match="expected an encoder or a decoder"):
        check_hypothesis(both, PREVIOUS, ROWS[:2], vocabulary=VOCABULARY)
    one = transformers.BertForSequenceClassification(transformers.BertConfig(**SMALL))
    with pytest.raises(InputError, match="expected first or last"):
        check_hypothesis(one, PREVIOUS, ROWS[:2], vocabulary=VOCABULARY, labels={"a": 0, "b": 1})
    with pytest.raises(InputError, match="expected a class of each answer of BertForSequence"):
        check_hypothesis(one, FIRST, ROWS[:2], vocabulary=VOCABULARY, answers="last")
    with pytest.raises(InputError, match="expected token ids without a vocabulary"):
        check_hypothesis(small_gpt2(), PREVIOUS, ROWS[:2])
    with pytest.raises(InputError, match="expected one class for each answer"):
        check_hypothesis(
            small_gpt2(), FIRST, ROWS[:9], vocabulary=VOCABULARY, labels={"a": 1, "b": 1, "c": 2}
        )


def test_ids_that_a_module_lacks_and_options_of_compiled_networks_are_rejected() -> None:
    module = torch.nn.Sequential(torch.nn.Embedding(3, 4), torch.nn.Linear(4, 3))
    identity, known = tokens, {"a": 0, "b": 1, "c": 2}
    with pytest.raises(InputError, match="ids up to 9 at 3 positions"):
        check_hypothesis(module, identity, ["ab"], vocabulary=known, prefix=[9])
    for prefix in ([-1], "0", [True]):
        with pytest.raises(InputError, match="prefix: expected token ids"):
            check_hypothesis(module, identity, ["ab"], vocabulary=known, prefix=prefix)  # type: ignore[arg-type]
    for wrong in (2.5, "2", True, -1):
        table: Any = {"a": wrong, "b": 1, "c": 2}
        with pytest.raises(InputError, match=r"vocabulary: expected a token id .* for 'a'; try"):
            check_hypothesis(module, identity, ["ab"], vocabulary=table)
        with pytest.raises(InputError, match=r"labels: expected a class .* for 'a'; try"):
            check_hypothesis(module, identity, ["ab"], vocabulary=known, labels=table)
    with pytest.raises(InputError, match=r"vocabulary: expected a dict"):
        check_hypothesis(module, identity, ["ab"], vocabulary=["a", "b"])  # type: ignore[arg-type]
    compiled = locum.compile(PREVIOUS, length=3, vocabulary="abc")
    with pytest.raises(InputError, match="labels: expected none for a compiled network"):
        check_hypothesis(compiled, PREVIOUS, ["ab"], labels={"a": 1, "b": 0, "c": 2})


def test_interchange_replaces_the_values_of_an_sop() -> None:
    same = (PREVIOUS == tokens).node
    for clean, other in (("aab", "cbb"), ("abc", "aaa")):
        shifted = PREVIOUS(other)
        assert interchange(same, [PREVIOUS.node], [(clean, other)]) == [
            [one == two for one, two in zip(shifted, clean, strict=True)]
        ]
