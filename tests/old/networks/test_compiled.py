"""The object around the weights: answers, cache, architecture, residual stream, hash, report."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import locum
from locum.errors import ExecutionError, GraphError, InputError
from locum.graph import build
from locum.networks.transformer import (
    AttentionWeights,
    CompiledTransformer,
    Config,
    FeedForwardWeights,
    LayerWeights,
    Weights,
)
from locum.networks.transformer.functions import Functions, Instruction
from tests.old.networks.random_models import logits, random_inputs, random_model


def previous(attention: str = "hard") -> CompiledTransformer:
    """By hand: x + (x + 1)², where x is the token before (0 before the first)."""
    size = 4
    zero = np.zeros
    places = zero((size + 1, 2 + size + 1))
    places[:, 2:] = np.eye(size + 1)
    d = places.shape[1]
    query, key = zero((1, d, size + 1)), zero((1, d, size + 1))
    key[0, 2:] = 50 * np.eye(size + 1)
    query[0, 2:] = np.eye(size + 1, k=-1)  # position i asks for i - 1
    query[0, 2, 0] = 1  # the sink asks for itself
    value, out = zero((1, d, size + 1)), zero((1, size + 1, d))
    value[0, 0, 0] = out[0, 0, 1] = 1
    bias = zero((1, size + 1))
    heads = AttentionWeights(query, bias, key, bias, value, bias, out, zero(d), (attention,))
    read, write = zero((d, 1)), zero((1, d))
    read[1, 0] = write[0, 1] = 1
    square = Functions(1, (Instruction("multiply", (0, 0), label="x·x"),), (1,))
    feed = FeedForwardWeights("exact", read, np.ones(1), write, zero(d), functions=square)
    first = zero((1, d))
    first[0, 0] = 1
    config = Config(
        None, (1, size), True, None, attention, "exact", "float64",
        ("token", "answer", "sink", *(f"place {i}" for i in range(size))), (("previous",),),
        name="previous",
    )  # fmt: skip
    return CompiledTransformer(
        config, Weights(first, places, (LayerWeights(heads, feed),), read, zero(1))
    )


def answer_of(tokens: list[float]) -> list[float]:
    before = [0.0, *tokens[:-1]]
    return [value + (value + 1) ** 2 for value in before]


@pytest.mark.parametrize("attention", ["hard", "softmax"])
def test_a_transformer_by_hand(attention: str) -> None:
    model = previous(attention)
    for tokens in ([3.0], [3.0, 1.0], [2.0, 7.0, 1.5, 8.0]):
        np.testing.assert_allclose(model(tokens), answer_of(tokens), atol=1e-12)
    batch = np.array([[1, 2], [3, 4]])
    result = model(batch)
    assert isinstance(result, np.ndarray)
    np.testing.assert_allclose(result, [answer_of([1, 2]), answer_of([3, 4])], atol=1e-12)


def test_the_cache_has_the_names_and_shapes_of_transformer_lens() -> None:
    answer, cache = previous().run_with_cache([[3, 1], [2, 7]])
    assert answer == previous()([[3, 1], [2, 7]])
    batch, n, d, d_head = 2, 3, 7, 5
    assert {name: value.shape for name, value in cache.items()} == {
        "hook_embed": (batch, n, d),
        "hook_pos_embed": (batch, n, d),
        "blocks.0.hook_resid_pre": (batch, n, d),
        "blocks.0.attn.hook_q": (batch, n, 1, d_head),
        "blocks.0.attn.hook_k": (batch, n, 1, d_head),
        "blocks.0.attn.hook_v": (batch, n, 1, d_head),
        "blocks.0.attn.hook_z": (batch, n, 1, d_head),
        "blocks.0.attn.hook_attn_scores": (batch, 1, n, n),
        "blocks.0.attn.hook_pattern": (batch, 1, n, n),
        "blocks.0.hook_attn_out": (batch, n, d),
        "blocks.0.hook_resid_mid": (batch, n, d),
        "blocks.0.mlp.hook_pre": (batch, n, 1),
        "blocks.0.mlp.hook_post": (batch, n, 1),
        "blocks.0.hook_mlp_out": (batch, n, d),
        "blocks.0.hook_resid_post": (batch, n, d),
        "unembed.hook_in": (batch, n, d),
    }
    assert cache["pattern", 0] is cache["blocks.0.attn.hook_pattern"]
    assert cache["resid_post", -1] is cache["blocks.0.hook_resid_post"]
    assert cache["embed"] is cache["hook_embed"]
    assert cache["query", 0] is cache["q", 0]
    assert cache["pattern", 0][0, 0].tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert ("post", 0) in cache
    assert ("post", 1) not in cache
    with pytest.raises(KeyError, match="expected the name of an activation"):
        cache["pattern", 3]


@pytest.mark.parametrize("seed", range(30))
def test_a_cache_adds_up(seed: int) -> None:
    model = random_model(seed)
    inputs = random_inputs(model, seed)
    answer, cache = model.run_with_cache(inputs)
    assert answer == model(inputs)
    stream = cache["embed"] + cache["pos_embed"]
    for number, layer in enumerate(model.weights.layers):
        np.testing.assert_array_equal(stream, cache["resid_pre", number])
        if layer.attention is not None:
            np.testing.assert_allclose(cache["pattern", number].sum(-1), 1, rtol=1e-5)
            joined = np.einsum("bqhe,hed->bqd", cache["z", number], layer.attention.W_O)
            out = cache["attn_out", number]
            np.testing.assert_allclose(joined + layer.attention.b_O, out, rtol=1e-4, atol=1e-4)
            stream = stream + out
        if layer.feed_forward is not None:
            stream = stream + cache["mlp_out", number]
        np.testing.assert_array_equal(stream, cache["resid_post", number])
    assert model.decode(logits(model, inputs), inputs) == answer


def test_large_integers_among_the_outputs_are_not_rounded() -> None:
    """NumPy stores 2**63 and -1 together as floats."""
    outputs = (2**63 + 1, -1, 0)
    model = locum.compile(locum.tokens, length=3, vocabulary=[1, 2, 3])
    large = CompiledTransformer(replace(model.config, outputs=outputs, program=""), model.weights)
    (decoded,) = large.decode(np.eye(3)[None], [[1, 2, 3]])
    assert decoded == list(outputs)
    assert all(type(value) is int for value in decoded)


@pytest.mark.parametrize(
    "shape", [(1, 5, 3), (1, 0, 3), (3, 3), (3,), (1, 3, 4), (1, 3, 2), (1, 3, 3, 1)]
)
def test_logits_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    """Rows behind the longest input, and columns that no output has, were read all the same."""
    moved = locum.aggregate(
        locum.select(locum.indices, locum.length - 1 - locum.indices, "=="), locum.tokens
    )
    model = locum.compile(moved, length=4, vocabulary="abc")
    assert model.config.outputs == ("a", "b", "c")
    for inputs in ((), ("abc",)):
        with pytest.raises(InputError, match="expected logits of shape"):
            model.decode(np.zeros(shape), *inputs)


def test_the_architecture() -> None:
    result = previous().architecture
    assert (result.layers, result.heads, result.d_model, result.d_head, result.d_mlp) == (
        1,
        (1,),
        7,
        5,
        1,
    )
    assert result.n_ctx == 5
    assert result.parameters == 7 + 35 + 3 * (35 + 5) + 35 + 7 + 7 + 1 + 7 + 7 + 7 + 1
    assert result.nonzeros == 1 + 5 + 5 + 5 + 2 + 1 + 1 + 1 + 1
    assert json.loads(json.dumps(result.as_json()))["heads"] == [1]
    assert "1 layer (heads: 1; hard attention, symbolic feed-forward), d_model 7" in str(result)
    assert repr(previous()).startswith("<CompiledTransformer of previous: 1 layer")


def test_the_residual_stream() -> None:
    stream = previous().residual([3, 1])
    assert stream.moments == ("embedding", "layer 0, attention", "layer 0, feed-forward")
    assert stream.positions == ("sink", "3", "1")
    assert stream.slot("token").tolist() == [[0, 3, 1]] * 3
    assert stream.moment("layer 0, attention")[:, 1].tolist() == [0, 0, 3]
    assert stream.slot("answer")[-1].tolist() == [0, 1, 19]
    assert "layer 0, feed-forward\n         sink  3   1\ntoken       0  3   1\n" in str(stream)
    for half, hook in (("attention", "mid"), ("feed-forward", "post")):
        by_hook = stream.moment(f"blocks.0.hook_resid_{hook}")
        assert (by_hook == stream.moment(f"layer 0, {half}")).all()
    with pytest.raises(InputError, match="expected the label of a slot, got 'nothing'"):
        stream.slot("nothing")
    with pytest.raises(InputError, match="a batch of 2"):
        previous().residual([[1], [2]])


def test_the_hash_is_of_the_numbers_alone() -> None:
    model = random_model(3, numeric=True)
    before = model.hash
    model([0.5])
    assert model.hash == before == random_model(3, numeric=True).hash
    renamed = CompiledTransformer(previous().config, model.weights)
    assert renamed.hash == before
    assert random_model(4, numeric=True).hash != before
    other = random_model(3, numeric=True)
    other.weights.b_U[0] += 1e-6
    assert other.hash != before


def test_the_program_comes_back() -> None:
    assert random_model(0).program is build("tanh", build("indices"))
    with pytest.raises(InputError, match="without a program"):
        previous().program


def test_the_report_is_readable() -> None:
    lines = random_model(0).report().splitlines()
    assert lines[0] == "name: random 0"
    assert lines[1].startswith("architecture: ")
    assert lines[2:] == ["bound: 0.001", "worst: inf", "layers:", "  - heads: 2", "note: drawn"]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([1, 2, 3, 4, 5], "expected 1 to 4 tokens, got 5"),
        (["a"], "expected numbers as tokens, got 'a'"),
        ([2**53 + 1], "a finite number that float64 represents exactly"),
        ([10**5000], "a finite number that float64 represents exactly"),
        ([float("nan")], "a finite number that float64 represents exactly"),
        ([], "empty"),
    ],
)
def test_inputs_that_are_refused(inputs: list[object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        previous()(inputs)


def test_a_token_that_is_not_in_the_vocabulary() -> None:
    with pytest.raises(InputError, match=r"of the vocabulary \('a'"):
        random_model(1, numeric=False)(["z"])


def test_numbers_beyond_the_floats_are_refused() -> None:
    with pytest.raises(ExecutionError, match="is undefined"):
        previous()([1e200, 0])
    with pytest.raises(InputError, match="a finite number that float32 represents exactly"):
        random_model(9, numeric=True, dtype="float32", layers=0)([1e300])
    large = random_model(9, numeric=True, dtype="float32", layers=0, scale=1e30)
    with pytest.raises(ExecutionError, match="range of floats"):
        large([1e30])


def test_a_graph_in_the_configuration_is_checked_when_it_is_asked_for() -> None:
    import dataclasses

    model = random_model(0)
    wrong = dataclasses.replace(model.config, program="{}")
    with pytest.raises(GraphError):
        CompiledTransformer(wrong, model.weights).program


@pytest.mark.parametrize(("said", "bound"), [({}, math.inf), ({"error_bound": 0.5}, 0.5)])
def test_the_bound_of_a_report(said: dict[str, float], bound: float) -> None:
    model = previous()
    assert CompiledTransformer(replace(model.config, report=said), model.weights).error_bound == bound


def test_answers_have_the_type_of_the_program() -> None:
    """Integers come back as integers even where they are too many for a logit each."""
    place = locum.compile(locum.indices, length=1100, vocabulary="a")
    assert place.config.outputs is None
    assert [(value, type(value)) for value in place("aaa")] == [(0, int), (1, int), (2, int)]
    mean = locum.compile(locum.aggregate(locum.full, locum.indices), length=3, vocabulary="a")
    assert [(value, type(value)) for value in mean("aa")] == [(0.5, float)] * 2


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_batch_of_different_lengths(dtype: str, causal: bool) -> None:
    before = locum.select(locum.indices, locum.indices, "<")
    program = locum.aggregate(best_before(before), locum.tokens, "-")
    model = locum.compile(program, length=5, vocabulary="abc", dtype=dtype, causal=causal)
    batch = [list("ab"), list("c"), tuple("abcab"), list("ca"), list("b")]
    answers = model(batch)
    assert answers == [model(list(one)) for one in batch] == program(batch)
    assert model(batch, check=False) == answers
    with pytest.raises(InputError, match="expected 1 to 5 tokens, got 6"):
        model([["a"], ["a"] * 6])
    with pytest.raises(InputError, match="got lengths 2, 1, 5, 2, 1; try a batch for each length"):
        model.run_with_cache(batch)


def best_before(before: locum.Selector) -> locum.Selector:
    """The last of the selected keys."""
    return locum.best(before, locum.indices)


def test_numbers_and_checks_in_batches_of_different_lengths() -> None:
    program = 1 / (locum.tokens - locum.indices)
    model = locum.compile(program, length=3, vocabulary=[-1, 1, 2], feed_forward="exact")
    assert model([[-1], [1, 2, -1], [2, 2]]) == [[-1.0], [1.0, 1.0, -1 / 3], [0.5, 1.0]]
    with pytest.raises(ExecutionError, match="zero"):
        model([[-1], [1, 1]])
    assert len(model([[-1], [1, -1]], check=False)) == 2
    rows = np.array([[1, -1], [2, 2]])
    assert model(rows).shape == rows.shape


def test_a_large_batch_of_different_lengths() -> None:
    model = locum.compile(locum.tokens * 2, length=8, vocabulary=range(5))
    batch = [[n % 5] * (1 + n % 8) for n in range(4000)]
    assert model(batch) == [[2 * token for token in one] for one in batch]


def test_one_long_input_runs_as_one_part() -> None:
    """A long sequence cannot be split between threads."""
    count = locum.aggregate(locum.select(locum.tokens, "b", "=="), locum.indices)
    model = locum.compile(count, length=4, vocabulary="ab")
    places = np.repeat(model.weights.W_pos[:2], [1, 9000], axis=0)  # the sink, and equal positions
    config = replace(model.config, lengths=(1, 9000))
    longer = CompiledTransformer(config, replace(model.weights, W_pos=places))
    assert longer(["a"] * 8999 + ["b"]) == [0.0] * 9000
