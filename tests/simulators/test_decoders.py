"""Decoder layers: causal self-attention, cross-attention, feed-forward. (torch's are in test_torch.)"""

from __future__ import annotations

import numpy as np
import pytest

from locum.errors import InputError
from locum.simulators import Attention, DecoderLayer, Encoder, UniversalSimulator
from tests.simulators.random_modules import Chance, distance


@pytest.mark.parametrize("norm", ["none", "post", "pre"])
@pytest.mark.parametrize("feed_forward", [True, False])
def test_decoder_layers(norm: str, feed_forward: bool) -> None:
    chance = Chance(1)
    attentions = (chance.heads(4, 2, 2, mask="causal"), chance.heads(4, 2, 2))
    if feed_forward:
        T = DecoderLayer(*attentions, chance(4, 3), chance(3, 4), chance(3), chance(4), norm=norm)
    else:
        T = DecoderLayer(*attentions, norm=norm)
    U = UniversalSimulator.of(T, 3, memory=2)
    before = U.hash
    for _ in range(2):
        X, M = chance(3, 4), chance(2, 4)
        assert distance(U(T, X, M), T(X, M)) <= 1e-12
    assert U.hash == before
    assert all(step.error <= 1e-12 for step in U.explain(T, X, M))


def test_the_future_is_not_seen() -> None:
    chance = Chance(2)
    T = DecoderLayer(chance.attention(3, 3, mask="causal"), chance.attention(3, 3), norm="post")
    U, X, M = UniversalSimulator.of(T, 3, memory=2), chance(3, 3), chance(2, 3)
    later = X + np.array([[0.0], [0.0], [9.0]])
    assert distance(U(T, X, M)[:2], U(T, later, M)[:2]) <= 1e-13
    assert distance(U(T, X, M)[2], U(T, later, M)[2]) > 0.1
    assert distance(U(T, X, M), U(T, X, M + 1)) > 1e-3


def test_a_memory_that_is_missing_or_too_much() -> None:
    chance = Chance(3)
    decoder = DecoderLayer(chance.attention(2, 2), chance.attention(2, 2), norm="post")
    encoder = Encoder(chance.attention(2, 2))
    X = np.eye(2)
    with pytest.raises(InputError, match="requires a memory"):
        decoder(X)
    with pytest.raises(InputError, match="takes a memory of 3 rows"):
        UniversalSimulator.of(decoder, 2, memory=3)(decoder, X)
    with pytest.raises(InputError, match="takes no memory"):
        UniversalSimulator.of(encoder, 2)(encoder, X, X)
    with pytest.raises(InputError, match="give its number of rows"):
        UniversalSimulator.of(decoder, 2)
    with pytest.raises(InputError, match="the memory: expected 3×2"):
        UniversalSimulator.of(decoder, 2, memory=3)(decoder, X, X)
    with pytest.raises(InputError, match="have the 2 columns"):
        DecoderLayer(chance.attention(2, 2), Attention(np.eye(3), np.eye(3)), norm="post")
