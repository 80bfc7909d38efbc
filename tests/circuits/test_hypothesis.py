"""Hypotheses about trained models: right ones are confirmed, wrong ones have a counterexample."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

import locum
from locum import aggregate, indices, length, select, tokens
from locum.errors import InputError
from locum.experiments.circuits import check_hypothesis
from locum.experiments.circuits.program_interchange import interchange
from locum.interface.display.hypothesis_page import hypothesis_page
from tests.cli.commands import command_line

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
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a GPT-2 that was trained to return the previous token."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

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
    folder = tmp_path_factory.mktemp("trained") / "previous"
    model.save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", special_tokens=[("<bos>", 0)]
    )
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<bos>", unk_token="<unk>"
    )
    fast.save_pretrained(folder)
    return folder


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "previous.rasp").write_text(
        'prev = aggregate(select(indices, indices - 1, ==), tokens, "x");\n'
    )
    (tmp_path / "first.rasp").write_text("first = aggregate(select(indices, 0, ==), tokens);\n")
    (tmp_path / "inputs.txt").write_text("".join("".join(row) + "\n" for row in ROWS))
    return tmp_path


def test_a_right_hypothesis_holds_with_its_head_and_interventions(trained: Path, files: Path) -> None:
    page = files / "page.html"
    done = command_line(
        "circuit", "check", trained, files / "previous.rasp", "--inputs", files / "inputs.txt",
        "--interventions", "0.9", "-o", page, "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["holds"]
    assert report["agreement"] == 1.0
    assert report["inputs"] == len(ROWS)
    (head,) = report["heads"]
    assert head["distance"] < 0.2 < 0.5 < head["uniform"]
    (probe,) = report["probes"]
    assert probe["accuracy"] > 0.98 > probe["embeddings"]
    (intervention,) = report["interventions"]
    assert intervention["agreement"] > 0.9 > 0.5 > intervention["random"]
    assert "The hypothesis holds" in page.read_text()


def test_a_wrong_hypothesis_is_rejected_with_the_shortest_counterexample(
    trained: Path, files: Path
) -> None:
    done = command_line(
        "circuit", "check", trained, files / "first.rasp", "--inputs", files / "inputs.txt"
    )
    assert done.returncode == 1, done.stderr
    assert "does not hold" in done.stdout
    report = check_hypothesis(
        transformers.GPT2LMHeadModel.from_pretrained(trained),
        FIRST,
        ROWS,
        vocabulary=VOCABULARY,
        prefix=[0],
    )
    assert not report.holds
    first = report.counterexamples[0]
    assert (len(first.tokens), first.position, first.model) == (2, 0, "x")


def test_texts_are_read_by_the_tokenizer_without_its_special_tokens(trained: Path, files: Path) -> None:
    done = command_line(
        "circuit", "check", trained, files / "previous.rasp", "--text", "--input", "a b c", "--json"
    )
    report = json.loads(done.stdout)
    assert (done.returncode, report["inputs"], report["answers"]) == (0, 1, 3)


def test_a_token_outside_of_the_vocabulary_is_bad_input(trained: Path, files: Path) -> None:
    done = command_line("circuit", "check", trained, files / "previous.rasp", "--input", "abd")
    assert done.returncode == 2
    assert "expected a token of the tokenizer, got 'd'" in done.stderr


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
    assert len(report.probes[0].by_layer) == 3


def test_a_compiled_network_computes_its_program_by_its_head() -> None:
    model = locum.compile(
        PREVIOUS, length=4, vocabulary="abc", attention="softmax", feed_forward="relu"
    )
    report = check_hypothesis(model, PREVIOUS, ROWS)
    assert report.holds
    assert report.heads[0].distance < 1e-3
    assert report.interventions[0].agreement == 1.0


def test_repeated_inputs_and_the_difference_of_u_are_noted() -> None:
    model = locum.compile(
        PREVIOUS, length=4, vocabulary="abc", attention="softmax", feed_forward="relu"
    )
    report = check_hypothesis(model, PREVIOUS, [*ROWS[:9], ROWS[0]], on_u=True)
    assert report.inputs == 9
    assert "repeated inputs: 1 of 10 are not counted" in report.notes
    assert any(note.startswith("U and eager execution agree; the largest") for note in report.notes)
    plain = check_hypothesis(model, PREVIOUS, ROWS[:9])
    assert not [note for note in plain.notes if "repeated" in note or "eager" in note]


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


def test_the_page_numbers_residual_streams_as_the_report() -> None:
    model = locum.compile(
        PREVIOUS, length=4, vocabulary="abc", attention="softmax", feed_forward="relu"
    )
    report = check_hypothesis(model, PREVIOUS, ROWS)
    assert report.probes[0].layer == 1
    assert "after 1 layer<" in hypothesis_page(report, "title")


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
        check_hypothesis(one, PREVIOUS, ROWS[:2], vocabulary=VOCABULARY)
    with pytest.raises(InputError, match="expected an answer among LABEL_0, LABEL_1, got 'a'"):
        check_hypothesis(one, FIRST, ROWS[:2], vocabulary=VOCABULARY, answers="last")
    with pytest.raises(InputError, match="expected token ids, since there is no tokenizer"):
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


def test_generated_answers_follow_the_input() -> None:
    """A stub that repeats the input is compared from the last position of the input on."""

    class Echo(torch.nn.Module):  # type: ignore[misc]  # torch is imported by name
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList()
            self.scale = torch.nn.Parameter(torch.ones(()))

        def forward(self, ids: Any) -> Any:
            size = (ids.shape[1] - 1) // 2  # <bos> x … <unk> y … without the last y
            places = (torch.arange(ids.shape[1]) - size).clamp(min=0)
            source = ids[:, places]
            return torch.nn.functional.one_hot(source, 6).double() * self.scale

    options: dict[str, Any] = {"vocabulary": VOCABULARY, "prefix": [0], "suffix": [5]}
    rows = [["a", "b", "c"], ["b", "b", "a"]]
    model = Echo()
    ids = torch.tensor([[0, 1, 2, 3, 5, 1, 2]])
    assert model(ids).argmax(-1)[0, 4:].tolist() == [1, 2, 3]
    report = check_hypothesis(model, tokens, rows, answers="generated", **options)
    assert report.holds
    assert not check_hypothesis(model, REVERSE, rows, answers="generated", **options).holds


def test_interchange_replaces_the_values_of_an_sop() -> None:
    same = (PREVIOUS == tokens).node
    for clean, other in (("aab", "cbb"), ("abc", "aaa")):
        shifted = PREVIOUS(other)
        assert interchange(same, [PREVIOUS.node], [(clean, other)]) == [
            [one == two for one, two in zip(shifted, clean, strict=True)]
        ]
