"""Everyday programs as weights: hidden units and softmax heads, as written."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest

import locum
from locum import aggregate, full, indices, length, select, selector_width, tokens, where
from locum.rasp.programs import EVERYDAY, Task, load_everyday
from tests.cases import shuffle_dyck
from tests.old.networks.test_lens import lens_forward

LENGTH = 12
KINDS: dict[str, dict[str, Any]] = {
    "relu": {},
    "relu32": {"dtype": "float32"},
    "gelu": {"feed_forward": "gelu"},
    "glu": {"feed_forward": "glu"},
}
#: All that compares tokens with tokens is one of these; the other kinds of units add only time.
SLOW = ("sort", "sort_freq", "second_largest")
#: Maximum number of additional layers compared with symbolic feed-forwards, if it is more than 1.
DEEPER = {"dyck2": 3, "sort_freq": 2}
CASES = [
    (name, kind)
    for name in EVERYDAY
    for kind in KINDS
    if not (name in SLOW and kind in ("gelu", "glu"))
]


def compiled(recipe: Task, **options: Any) -> Any:
    options = {"attention": "softmax", "feed_forward": "relu", **options}
    return locum.compile(recipe.program, length=LENGTH, vocabulary=recipe.vocabulary, **options)


@cache
def reference(name: str) -> Any:
    return compiled(load_everyday(name), attention="hard", feed_forward="exact")


def inputs(name: str, recipe: Task, count: int) -> list[list[Any]]:
    """Random inputs, every other one made so that the program does not just say no."""
    draw, result = random.Random(name), []
    for case in range(count):
        size = draw.randint(1, LENGTH)
        tokens = [draw.choice(recipe.vocabulary) for _ in range(size)]
        if case % 2 and name == "palindrome":
            tokens = [*tokens[: (size + 1) // 2], *reversed(tokens[: size // 2])]
        if case % 2 and name == "dyck2":
            tokens = brackets(draw, max(size // 2, 1))
        result.append(tokens)
    return result


def brackets(draw: random.Random, pairs: int) -> list[Any]:
    """A balanced sequence of brackets."""
    if not pairs:
        return []
    inside = draw.randrange(pairs)
    opening, closing = draw.choice([("(", ")"), ("[", "]")])
    return [opening, *brackets(draw, inside), closing, *brackets(draw, pairs - 1 - inside)]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_everyday_programs_as_hidden_units(name: str, kind: str) -> None:
    recipe = load_everyday(name)
    model = compiled(recipe, **KINDS[kind])
    exact = reference(name)
    assert len(model.weights.layers) <= len(exact.weights.layers) + DEEPER.get(name, 1)
    config, state = model.transformer_lens_config(), model.state_dict_for_transformer_lens()
    arrays = {hook: tensor.numpy() for hook, tensor in state.items()}
    for case, sequence in enumerate(inputs(name, recipe, 20)):
        answer = recipe.program(sequence)
        assert model(sequence) == answer == exact(sequence), sequence
        if case < 4 and kind == "relu":  # tensors of the shapes that TransformerLens has
            logits = lens_forward(config, arrays, model.transformer_lens_inputs(sequence).numpy())
            assert model.decode(logits, [sequence]) == [answer], sequence


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_everyday_programs_inside_transformer_lens(dtype: str) -> None:
    """A sample of benchmarks/bench_lens.py, by TransformerLens itself."""
    pytest.importorskip("transformer_lens")
    for name in ("most_frequent", "sort_freq"):
        recipe = load_everyday(name)
        model = compiled(recipe, dtype=dtype)
        lens = model.to_transformer_lens()
        for sequence in inputs(name, recipe, 5):
            logits = lens(model.transformer_lens_inputs([sequence])).detach().numpy()
            assert model.decode(logits, [sequence]) == [recipe.program(sequence)]


@pytest.mark.parametrize("attention", ["hard", "softmax"])
def test_noise_that_is_smaller_than_the_gap_takes_no_layer(attention: str) -> None:
    """Reverse attends to one key by a length that is off by rounding; it is moved as it is."""
    reverse = aggregate(select(indices, length - 1 - indices, "=="), tokens)
    model = locum.compile(reverse, length=40, vocabulary=[3, 0.1, -7], attention=attention)
    assert len(model.weights.layers) == 2
    assert model.error_bound == 0
    draw = random.Random(1)
    for size in range(1, 41):
        sequence = [draw.choice([3, 0.1, -7]) for _ in range(size)]
        assert model(sequence) == sequence[::-1]


def test_ties_of_hard_heads_are_exact() -> None:
    """A mean over all keys of one count: if that were not whole, one of them would be selected."""
    count = selector_width(select(tokens, tokens, "=="))
    program = aggregate(select(count, count, "=="), indices)
    model = locum.compile(program, length=9, vocabulary="abc")
    assert any(unit["gate"] == "snap" for unit in model.config.report["realised"])
    draw = random.Random(2)
    for _ in range(40):
        sequence = [draw.choice("abc") for _ in range(draw.randint(1, 9))]
        assert model(sequence) == pytest.approx(program(sequence), abs=1e-12)


def test_only_what_is_compared_has_to_be_apart() -> None:
    """Prefix means of twenty tokens: two of them nearly coincide, but none is nearly 0 and is not 0."""
    program = shuffle_dyck(("()", "{}"))
    model = locum.compile(
        program, length=20, vocabulary="(){}", attention="softmax", feed_forward="relu"
    )
    draw = random.Random(5)
    for _ in range(20):
        sequence = [draw.choice("(){}") for _ in range(draw.randint(1, 20))]
        assert model(sequence) == program(sequence), sequence
    assert model("({)}") == program("({)}") == [True] * 4


def test_an_inferred_separation_tells_means_apart() -> None:
    """Means of ten values compared with means of others: too many pairs for a table."""
    low = select(tokens, 5, "<")
    program = aggregate(full, tokens) < aggregate(low, where(tokens < 3, tokens * 3, tokens), -1)
    model = locum.compile(
        program, length=10, vocabulary=range(10), attention="softmax", feed_forward="relu"
    )
    draw = random.Random(3)
    for _ in range(40):
        sequence = [draw.randrange(10) for _ in range(draw.randint(1, 10))]
        assert model(sequence) == program(sequence), sequence


def test_a_choice_by_a_mean_of_many_values_is_looked_up_by_its_boolean() -> None:
    """Of 50 brackets, the mean has 775 values, and the other choice depends on 101."""
    task = load_everyday("dyck2")
    model = locum.compile(task.program, length=50, vocabulary=task.vocabulary, attention="softmax")
    for word in ("([])", "(]", "([" * 12 + "])" * 12, "()[]" * 12 + "([", ")" * 50):
        assert model(word) == task.program(word)
