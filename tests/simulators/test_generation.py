"""Greedy generation by a causal U of fixed size: the tokens that torch gives, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from locum.errors import InputError
from locum.simulators import Attention, Encoder, LanguageModel, from_torch
from tests.simulators.random_modules import Chance, distance

VOCABULARY, SIZE, D = 6, 5, 4


def model(seed: int, **options: Any) -> LanguageModel:
    chance = Chance(seed)
    layers = [
        Encoder(
            chance.heads(D, 2, 2, mask="causal"),
            chance(D, 3), chance(3, D), chance(3), chance(D), "gelu", "pre",
            norm1=chance.norm(D), norm2=chance.norm(D),
        )
        for _ in range(2)
    ]  # fmt: skip
    parts = chance(VOCABULARY, D), chance(SIZE, D), layers, chance(D, VOCABULARY), chance(VOCABULARY)
    return LanguageModel(*parts, **options)


def test_logits_at_every_length_by_one_program() -> None:
    T = model(0, norm=Chance(1).norm(D))
    before = T.simulator.hash
    for ids in ([3], [3, 1, 5], [0, 1, 2, 3, 4]):
        assert distance(T.simulator.run_logits(T, ids), T.logits(ids)) <= 1e-12
    assert T.simulator.hash == before == model(7, norm=Chance(2).norm(D)).simulator.hash


def test_greedy_generation() -> None:
    result = set()
    for seed in range(2):
        T = model(seed)
        tokens = T.generate([seed + 1], SIZE)
        assert tokens == T.generate_directly([seed + 1], SIZE)
        assert len(tokens) == SIZE
        result.add(tuple(tokens))
    assert len(result) == 2


def test_ties_go_to_the_first_token() -> None:
    layer = Encoder(Attention(np.eye(2), np.eye(2), mask="causal"))
    T = LanguageModel(np.ones((3, 2)), np.zeros((4, 2)), [layer], [[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    assert T.generate([2], 4) == T.generate_directly([2], 4) == [2, 1, 1, 1]


def test_against_torch() -> None:
    torch: Any = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(3)
    double = {"dtype": torch.float64}
    layers = [
        torch.nn.TransformerEncoderLayer(D, 2, 3, dropout=0.0, norm_first=True, **double)
        for _ in range(2)
    ]
    last = torch.nn.LayerNorm(D, **double)
    out = torch.nn.Linear(D, VOCABULARY, **double)
    embedding, positions = (
        torch.nn.Embedding(VOCABULARY, D, **double),
        torch.nn.Embedding(SIZE, D, **double),
    )
    for module in (*layers, last, out, embedding, positions):
        for parameter in module.parameters():
            with torch.no_grad():
                parameter.copy_(torch.randn(parameter.shape, generator=generator, **double))

    def greedy(ids: list[int]) -> list[int]:
        while len(ids) < SIZE:
            x = embedding(torch.tensor(ids)) + positions(torch.arange(len(ids)))
            hidden = torch.triu(torch.ones(len(ids), len(ids), dtype=torch.bool), 1)
            for layer in layers:
                x = layer(x, src_mask=hidden)
            ids = [*ids, int(out(last(x))[-1].argmax())]
        return ids

    T = LanguageModel(
        embedding.weight,
        positions.weight,
        [from_torch(layer, mask="causal") for layer in layers],  # type: ignore[misc]
        out.weight.T,
        out.bias,
        norm=(last.weight, last.bias),
    )
    for start in (0, 4):
        assert T.generate([start], SIZE) == greedy([start])


def test_models_that_are_none() -> None:
    layer = Encoder(Attention(np.eye(2), np.eye(2)))
    with pytest.raises(InputError, match="expected a causal attention in layer 1"):
        LanguageModel(np.ones((3, 2)), np.ones((4, 2)), [layer], np.ones((2, 3)))
    with pytest.raises(InputError, match="unembedding: expected 2×3"):
        LanguageModel(np.ones((3, 2)), np.ones((4, 2)), [layer], np.ones((3, 2)))
    T = model(0)
    with pytest.raises(InputError, match="from 0 to 5"):
        T.generate([6], 3)
    with pytest.raises(InputError, match="1 to 5 tokens, got 0"):
        T.generate([], 3)
    with pytest.raises(InputError, match="expected at most 5 positions, got 6"):
        T.generate([1], 6)
