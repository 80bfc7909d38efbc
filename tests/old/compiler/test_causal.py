"""Decoders: causal masks in every head, a begin marker as sink, and no program that looks ahead."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest
from hypothesis import settings

import locum
from locum import SOp, aggregate, best, indices, length, select, selector_width, tokens, where
from locum.errors import CompileError, LocumError
from locum.graph import Node, build, postorder
from locum.graph.definitions import up_to_here
from locum.graph.traversal import with_inputs
from locum.networks.compiler import compile as compiled
from locum.rasp.handles import wrap
from tests.cases import CASES
from tests.compiler.agreement import is_close
from tests.old.compiler import random_programs
from tests.old.compiler.tally import REASONS, Tally
from tests.old.execution import positional

past = select(indices, indices, "<=")


def causal_form(root: Node) -> Node:
    """The program in which each selector leaves out what is behind the query."""
    new: dict[Node, Node] = {}
    for node in postorder(root):
        parts = [new[i] for i in node.inputs]
        if node.op in ("aggregate", "selector_width", "best"):
            parts[0] = build("selector_and", parts[0], up_to_here())
        if node.op == "length":
            new[node] = build("add", build("indices"), build("constant", value=1))
        else:
            new[node] = with_inputs(node, tuple(parts))
    return new[root]


def _examples(usual: int) -> int:
    return usual * settings().max_examples // settings.get_profile("default").max_examples


@pytest.mark.parametrize("part", range(2 if _examples(1) == 1 else 3))
def test_random_causal_programs_are_what_dense_execution_says(part: int) -> None:
    tally = Tally(inputs=2, causal=True)
    count = min(20_000, _examples(6))
    for seed in range(part * 100_000, part * 100_000 + count):
        trial = random_programs.trial(seed)
        tally.check(causal_form(trial.program), trial.given, trial.vocabulary, seed)
        other = positional.trial(seed)
        tally.check(causal_form(other.program), other.given, other.given, seed)
    tally.require(refused=0.05, runs_refused=0.05, programs=2 * count)


def test_the_cases_that_are_causal_and_what_all_are_on_prefixes() -> None:
    """Each case as it is, where it does not look ahead, and with its selectors cut to the past."""
    refusals = ("causal: expected a selector", "causal: expected values", *REASONS)
    as_it_is = cut = 0
    for case in CASES:
        if not isinstance(case.program, SOp):
            continue
        inputs = list(case.given)
        for program in (case.program, wrap(causal_form(case.program.node))):
            assert isinstance(program, SOp)
            try:
                expected = program(inputs)
                model = compiled(
                    program, length=len(inputs), vocabulary=inputs, causal=True, feed_forward="exact"
                )
            except CompileError as error:
                assert any(reason in str(error) for reason in refusals), (case.name, str(error))
                continue
            except LocumError:  # its prefixes have no value
                continue
            as_it_is += program is case.program
            cut += program is not case.program
            assert model.config.causal
            assert model.config.sink
            for size in range(1, len(inputs) + 1):
                assert is_close(model(inputs[:size]), expected[:size], 1e-9), case.name
    assert as_it_is >= 60
    assert cut >= 30


@pytest.mark.parametrize("feed_forward", ["exact", "relu", "gelu", "glu"])
@pytest.mark.parametrize("attention", ["hard", "softmax"])
def test_a_prefix_keeps_its_outputs(attention: str, feed_forward: str) -> None:
    """Appending tokens changes nothing before them, in whatever network."""
    opened = selector_width(select(tokens, "(", "==") & past)
    depth = 2 * opened - indices - 1
    unseen = selector_width(select(depth, 0, "<") & past)
    program = where(unseen > 0, "no", where(depth == 0, "yes", "open"))
    options: dict[str, Any] = {"attention": attention, "feed_forward": feed_forward, "length": 8}
    try:
        model = compiled(program, vocabulary="()", causal=True, **options)
    except CompileError as error:
        assert "expected exact scores for hard attention" in str(error)
        return
    rng = random.Random(1)
    for _ in range(20):
        word = rng.choices("()", k=8)
        whole = model(word)
        assert whole == program(word)
        for size in range(1, 8):
            assert model(word[:size]) == whole[:size]


def test_the_causal_mask_is_free() -> None:
    """What every head has anyway needs no scores: keys of size 1, for the sink."""
    model = compiled(
        aggregate(past, where(tokens == "a", 1, 0)),
        length=64,
        vocabulary="ab",
        causal=True,
        feed_forward="exact",
    )
    assert model.architecture.d_head == 1
    assert (
        compiled(
            selector_width(past), length=64, vocabulary="ab", causal=True, feed_forward="exact"
        ).weights.layers
        == ()
    )


REFUSED = [
    (aggregate(select(indices, indices + 1, "=="), tokens), "select(indices, indices + 1, ==)"),
    (
        aggregate(select(indices, length - 1 - indices, "=="), tokens),
        "(length - 1) - indices, ==)",
    ),
    (selector_width(select(tokens, tokens, "==")), "select(tokens, tokens, ==)"),
    (selector_width(best(select(indices, 0, ">="), indices) & past), "select(indices, 0, >=)"),
    (indices + length, "indices + length"),
]


@pytest.mark.parametrize(("program", "selector"), REFUSED)
def test_what_looks_ahead_is_refused_by_its_selector(program: SOp, selector: str) -> None:
    with pytest.raises(CompileError) as caught:
        compiled(program, length=4, vocabulary="ab", causal=True, feed_forward="exact")
    assert selector in str(caught.value)
    assert "try" in str(caught.value)


def test_the_length_is_known_where_all_inputs_have_it() -> None:
    model = compiled(
        indices + length, length=4, vocabulary="ab", causal=True, fixed=True, feed_forward="exact"
    )
    assert model("abab") == [4, 5, 6, 7]


def test_keys_that_have_to_be_brought_come_from_the_past() -> None:
    """Comparisons of real numbers: every key that is not behind the query is brought to it."""
    smaller = selector_width(select(tokens, tokens, "<") & past)
    model = compiled(smaller, length=6, numeric=True, causal=True, feed_forward="exact")
    rng = random.Random(2)
    for size in range(1, 7):
        numbers = [rng.uniform(-1, 1) for _ in range(size)]
        assert model(numbers) == smaller(numbers)


@pytest.fixture(scope="module")
def decoder() -> Any:
    pytest.importorskip("torch")
    counts = selector_width(select(tokens, "a", "==") & past)
    program = where(2 * counts > indices + 1, "a", "b")
    return program, compiled(
        program, length=6, vocabulary="abc", causal=True, attention="softmax", feed_forward="relu"
    )


def test_exports_run_with_the_causal_mask(decoder: Any) -> None:
    import torch

    program, model = decoder
    rng = random.Random(3)
    hosts = {
        "torch": model.to_torch(),
        "lens": _lens_shaped(model),
    }
    for _ in range(12):
        word = rng.choices("abc", k=rng.randrange(1, 7))
        expected = program(word)
        for name, host in hosts.items():
            ids = model.transformer_lens_inputs(word) if name == "lens" else model.encode(word)
            logits = host(torch.as_tensor(ids)).detach().numpy()
            assert model.decode(logits, word) == [expected], name


def _lens_shaped(model: Any) -> Any:
    """The forward pass that TransformerLens has, from its tensors and configuration alone."""
    import torch

    state, sizes = model.state_dict_for_transformer_lens(), model.transformer_lens_config()
    assert sizes["attention_dir"] == "causal"

    def forward(ids: Any) -> Any:
        stream = state["embed.W_E"][ids] + state["pos_embed.W_pos"][: ids.shape[1]]
        ahead = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)
        for number in range(sizes["n_layers"]):
            own = {
                name.rsplit(".", 1)[1]: tensor
                for name, tensor in state.items()
                if name.startswith(f"blocks.{number}.")
            }
            q, k, v = (
                torch.einsum("bpd,hde->bhpe", stream, own[f"W_{n}"]) + own[f"b_{n}"][:, None]
                for n in "QKV"
            )
            scores = (q @ k.transpose(-1, -2)) / math.sqrt(sizes["d_head"])
            scores = scores.masked_fill(ahead, -torch.inf)
            z = scores.softmax(-1) @ v
            stream = stream + torch.einsum("bhpe,hed->bpd", z, own["W_O"]) + own["b_O"]
            if "W_in" in own:
                hidden = torch.relu(stream @ own["W_in"] + own["b_in"])
                stream = stream + hidden @ own["W_out"] + own["b_out"]
        return stream @ state["unembed.W_U"] + state["unembed.b_U"]

    return forward


def test_decoders_are_saved_and_read(tmp_path: Any) -> None:
    from locum.networks.transformer import load

    model = compiled(
        aggregate(past, indices), length=4, vocabulary="ab", causal=True, feed_forward="exact"
    )
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.config.causal
    assert again("abab") == model("abab") == [0.0, 0.5, 1.0, 1.5]


def test_predicates_on_pairs_of_token_and_position_are_causal() -> None:
    """Each class of keys contains one position, so no query selects a later key."""
    pairs = [(token, position) for token in "ab" for position in range(6)]
    pair = locum.map(lambda token, i: f"{token}{i}", tokens, indices, over=("ab", range(6)))
    names = [f"{token}{i}" for token, i in pairs]

    def earlier(key: str, query: str) -> bool:
        return key[0] == query[0] and int(key[1:]) <= int(query[1:])

    program = selector_width(select(pair, pair, earlier, over=(names, names)))
    model = locum.compile(program, length=6, vocabulary="ab", causal=True)
    for word in map("".join, itertools.product("ab", repeat=6)):
        assert model(word) == program(word)
    later = selector_width(select(pair, pair, lambda k, q: k[0] == q[0], over=(names, names)))
    with pytest.raises(CompileError, match="with which position 0 may select position"):
        locum.compile(later, length=6, vocabulary="ab", causal=True)
