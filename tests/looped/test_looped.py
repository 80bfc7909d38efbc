"""Looped transformers: the weights compute what is claimed, and the machines agree with Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import locum
from locum.errors import InputError
from locum.networks.looped import FACTORIAL, Product, SubleqMachine, Transposition
from locum.networks.looped.subleq import Command, State, advance


@pytest.mark.parametrize("order", [1, 2, 3, 8])
def test_transposition_in_four_layers_of_one_head(order: int) -> None:
    block = Transposition(order)
    A = np.random.default_rng(order).normal(size=(order, order))
    assert np.abs(block(A) - A.T).max() < 1e-12
    assert block.architecture.layers == 4
    assert max(block.architecture.heads) == 1


@pytest.mark.parametrize(("heads", "error"), [(1, 2e-6), (2, 5e-8)])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 2, 4), (8, 8, 8)])
def test_products_by_a_softmax_that_is_nearly_linear(
    shape: tuple[int, int, int], heads: int, error: float
) -> None:
    k, r, c = shape
    rng = np.random.default_rng(k)
    A, B = rng.normal(size=(k, r)), rng.normal(size=(k, c))
    block = Product(k, r, c, heads=heads)
    assert np.abs(block(A, B) - A.T @ B).max() < error
    assert (block.architecture.layers, max(block.architecture.heads)) == (2, heads)


def test_numbers_beyond_the_gates_are_refused() -> None:
    with pytest.raises(InputError, match="below 1000"):
        Transposition(2)(np.full((2, 2), 1e4))
    with pytest.raises(InputError, match="products up to"):
        Product(1, 1, 1)([[1e3]], [[1e3]])
    with pytest.raises(InputError, match="columns of B"):
        Product(2, 2, 2)(np.eye(2) * 1e-5, np.eye(2) * 1e5)
    with pytest.raises(InputError, match="delta"):
        Product(2, 2, 2, delta=1.0)
    with pytest.raises(InputError, match="bound"):
        Transposition(3, bound=1e20)
    with pytest.raises(InputError, match="rows of different lengths"):
        Transposition(2)([[1], [1, 2]])
    with pytest.raises(InputError, match="real numbers"):
        Transposition(1)([[1j]])


def test_programs_end_where_they_say() -> None:
    with pytest.raises(InputError, match="past its last command"):
        SubleqMachine(2, 1, bits=4).run([1, 5], [(0, 1, 0)], 3)


def test_the_factorial_agrees_with_python_at_every_step() -> None:
    machine = SubleqMachine(len(FACTORIAL.memory), len(FACTORIAL.commands), bits=16)
    state, states = State(FACTORIAL.memory, 0), []
    for _ in range(251):
        state = advance(state, FACTORIAL.commands, 16)
        states.append(state)
    assert machine.run(*FACTORIAL, steps=251) == states
    assert (state.memory[2], state.counter) == (5040, 17)


@st.composite
def machines(draw: st.DrawFn) -> tuple[int, list[int], list[Command]]:
    bits, words, commands = draw(st.integers(2, 16)), draw(st.integers(1, 5)), draw(st.integers(1, 6))
    half = 2 ** (bits - 1)
    memory = draw(st.lists(st.integers(-half, half - 1), min_size=words, max_size=words))
    word, place = st.integers(0, words - 1), st.integers(0, commands - 1)
    program = draw(st.lists(st.tuples(word, word, place), min_size=commands, max_size=commands))
    program[-1] = (0, 0, commands - 1)
    return bits, memory, program


@settings(max_examples=25)
@given(machines())
def test_random_machines_agree_with_python(case: tuple[int, list[int], list[Command]]) -> None:
    bits, memory, commands = case
    machine = SubleqMachine(len(memory), len(commands), bits=bits)
    state, states = State(tuple(memory), 0), []
    for _ in range(12):
        state = advance(state, commands, bits)
        states.append(state)
    assert machine.run(memory, commands, 12) == states


def test_one_step_is_a_transformer_on_tokens(tmp_path: Path) -> None:
    machine = SubleqMachine(3, 2, bits=4)
    tokens = ["3", "-5", "7", "0 1 1", "2 2 0"]
    machine.model().save(tmp_path / "subleq")
    model = locum.load(tmp_path / "subleq")
    assert model(tokens) == ["3", "-8", "7", "0 1 1", "2 2 0"]
    torch = pytest.importorskip("torch")
    logits = model.to_torch()(torch.tensor(model.encode(tokens))).detach()
    assert model.decode(logits, tokens) == [model(tokens)]


@pytest.mark.parametrize(
    ("memory", "commands", "match"),
    [
        ([1], [(0, 0, 0)], "2 words"),
        ([1, 200], [(0, 0, 0)], "-128 to 127"),
        ([1, 2], [(0, 5, 0)], "0 5 0 in command 0"),
    ],
)
def test_bad_programs_are_refused(memory: list[int], commands: list[Command], match: str) -> None:
    with pytest.raises(InputError, match=match):
        SubleqMachine(2, 1).run(memory, commands, 1)
