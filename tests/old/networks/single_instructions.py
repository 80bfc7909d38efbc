"""Transformers of one instruction, and the numbers that tell operations apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from locum.graph import OPERATIONS
from locum.networks.transformer import (
    CompiledTransformer,
    Config,
    FeedForwardWeights,
    LayerWeights,
    Weights,
)
from locum.networks.transformer.functions import Functions, Instruction

#: Two inputs, with zeros, halves, negative numbers and one beyond all exact integers.
TOKENS = np.array([[-3.0, -1.0, 0.0, 1.25, 2.0, 2.5, 7.0, 1e30], [-6.5, 0.5, 0.75, 1, -4, 5, 1.5, 3]])


def elementwise(instruction: Instruction, arguments: int) -> CompiledTransformer:
    """Without attention: the instruction on the token, its place less 3, and that place's parity."""
    size, d = 8, 5
    first, places = np.zeros((1, d)), np.zeros((size, d))
    first[0, 0] = 1
    places[:, 1] = np.arange(size) - 3
    places[:, 2] = np.arange(size) % 2
    read = np.zeros((d, arguments))
    read[range(arguments), range(arguments)] = 1
    write, answer = np.zeros((1, d)), np.zeros((d, 1))
    write[0, 3] = answer[3, 0] = 1
    functions = Functions(arguments, (instruction,), (arguments,))
    feed = FeedForwardWeights(
        "exact", read, np.zeros(arguments), write, np.zeros(d), functions=functions
    )
    config = Config(None, (1, size), False, None, "hard", "exact", "float64", tuple("abcde"), ((),))
    return CompiledTransformer(
        config, Weights(first, places, (LayerWeights(None, feed),), answer, np.zeros(1))
    )


ATTRIBUTES: dict[str, dict[str, Any]] = {
    "constant": {"value": 2.5},
    "member": {"values": (-3, 1.25)},
    "table": {"keys": ((-1.0, 0.0, 2.5), (0.0, 1.0)), "values": (1.0, 2.0, 3.0, 4.0, None, 6.0)},
}


def single(op: str) -> CompiledTransformer:
    """A transformer whose answer is one operation."""
    arity = 2 if op == "table" else len(OPERATIONS[op].takes)
    return elementwise(Instruction(op, tuple(range(arity)), ATTRIBUTES.get(op, {})), max(arity, 1))


def expected(model: CompiledTransformer) -> Any:
    """What NumPy makes of the tokens, before it is asked whether it has a value."""
    feed = model.weights.layers[0].feed_forward
    assert feed is not None
    assert feed.functions is not None
    stream = model.embed(TOKENS.tolist())
    return feed.functions([stream[..., i] for i in range(feed.functions.arguments)])[0]


def assert_same(logits: Any, reference: Any, tolerance: float) -> None:
    """Equal where there is a value; elsewhere not finite (W_out's zeros may make nan of inf)."""
    actual, there = logits[..., 0], np.isfinite(reference)
    assert (np.isfinite(actual) == there).all()
    np.testing.assert_allclose(actual[there], reference[there], rtol=tolerance)
