"""Looped transformers agree with NumPy and with a SUBLEQ machine in Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import locum
from locum import InputError
from locum.networks.looped import FACTORIAL, LoopedBlock, Product, SubleqMachine, Transposition


@pytest.mark.parametrize("order", [1, 2, 3, 8])
def test_transposition(order: int) -> None:
    block, A = Transposition(order), np.random.default_rng(order).normal(size=(order, order))
    assert isinstance(block, LoopedBlock)
    np.testing.assert_allclose(block(A), A.T, atol=1e-12)
    assert (block.architecture.layers, max(block.architecture.heads)) == (4, 1)


@pytest.mark.parametrize(("heads", "error"), [(1, 2e-6), (2, 5e-8)])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 2, 4), (8, 8, 8)])
def test_products(shape: tuple[int, int, int], heads: int, error: float) -> None:
    """The product is computed by a softmax that is nearly linear."""
    k, r, c = shape
    rng = np.random.default_rng(k)
    A, B = rng.normal(size=(k, r)), rng.normal(size=(k, c))
    block = Product(k, r, c, heads=heads)
    assert np.abs(block(A, B) - A.T @ B).max() < error
    assert (block.architecture.layers, max(block.architecture.heads)) == (2, heads)


def advance(memory: list[int], counter: int, commands: Sequence[Sequence[int]], bits: int) -> int:
    """Run one command: subtract memory[a] from memory[b], and jump to c if the result is at most 0."""
    a, b, c = commands[counter]
    half = 2 ** (bits - 1)
    memory[b] = (memory[b] - memory[a] + half) % (2 * half) - half
    return c if memory[b] <= 0 else counter + 1


def test_random_machines() -> None:
    rng = random.Random(0)
    for _ in range(15):
        bits, words, length = rng.randint(2, 16), rng.randint(1, 5), rng.randint(1, 6)
        half = 2 ** (bits - 1)
        memory = [rng.randrange(-half, half) for _ in range(words)]
        commands = [
            (rng.randrange(words), rng.randrange(words), rng.randrange(length)) for _ in range(length)
        ]
        commands[-1] = (0, 0, length - 1)
        states = SubleqMachine(words, length, bits=bits).run(memory, commands, 12)
        counter = 0
        for state in states:
            counter = advance(memory, counter, commands, bits)
            assert (list(state.memory), state.counter) == (memory, counter)


def test_factorial() -> None:
    machine = SubleqMachine(len(FACTORIAL.memory), len(FACTORIAL.commands), bits=16)
    assert machine.run(*FACTORIAL, steps=251)[-1].memory[2] == 5040


def test_one_step_is_a_transformer_on_tokens(tmp_path: Path) -> None:
    SubleqMachine(3, 2, bits=4).model().save(tmp_path / "subleq")
    model = locum.load(tmp_path / "subleq")
    assert isinstance(model, locum.CompiledTransformer)
    assert model(["3", "-5", "7", "0 1 1", "2 2 0"]) == ["3", "-8", "7", "0 1 1", "2 2 0"]


def test_errors() -> None:
    for call, words in [
        (lambda: Transposition(2)(np.full((2, 2), 1e4)), "below 1000"),
        (lambda: Product(1, 1, 1)([[1e3]], [[1e3]]), "products up to"),
        (lambda: Product(2, 2, 2, delta=1.0), "delta"),
        (lambda: Transposition(3, bound=1e20), "bound"),
        (lambda: SubleqMachine(2, 1, bits=4).run([1, 5], [(0, 1, 0)], 3), "past its last command"),
        (lambda: SubleqMachine(2, 1).run([1, 200], [(0, 0, 0)], 1), "-128 to 127"),
    ]:
        with pytest.raises(InputError, match=words):
            call()
