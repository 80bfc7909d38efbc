"""Looped transformers: the weights compute what is claimed, and the machines agree with Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import locum
from locum.errors import InputError
from locum.networks.looped import (
    FleqMachine,
    Instruction,
    Product,
    SubleqMachine,
    Transposition,
    inversion_program,
    invert,
)
from locum.networks.looped.machine_programs import PROGRAMS
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


def test_newton_inverts_the_matrix_of_the_paper() -> None:
    A = np.array([[7.0, 8.0, 12.0], [10.0, 11.0, 9.0], [2.0, 4.0, 21.0]])
    assert np.abs(invert(A) - np.linalg.inv(A)).max() < 1e-8


def test_each_instruction_of_fleq_is_its_function() -> None:
    rng = np.random.default_rng(0)
    registers, program = inversion_program(rng.normal(size=(2, 2)), 3)
    machine = FleqMachine(2, len(registers), len(program))
    functions = {"T": lambda a, b: a.T, "MUL": lambda a, b: a.T @ b, "SUB": lambda a, b: b - a}
    stream = machine.state(registers, program)
    for _ in range(18):
        before, counter = machine.read(stream)
        step = program[counter]
        stream = machine.run(stream)
        after, following = machine.read(stream)
        for number, register in enumerate(after):
            same = before[number]
            if number == step.c:
                same = functions[step.function](before[step.a], before[step.b])
            assert np.abs(register - same).max() < 1e-8
        goes = after[step.flag][0, 0] <= 0.25
        assert following == (step.target if goes else counter + 1)


def test_numbers_beyond_the_gates_are_refused() -> None:
    registers, program = inversion_program(np.array([[1.0, 0.0], [0.0, 1e-4]]), 30)
    with pytest.raises(InputError, match="larger bound"):
        FleqMachine(2, len(registers), len(program)).execute(registers, program, 152)
    with pytest.raises(InputError, match="below 1000"):
        Transposition(2)(np.full((2, 2), 1e4))
    with pytest.raises(InputError, match="products up to"):
        Product(1, 1, 1)([[1e3]], [[1e3]])
    with pytest.raises(InputError, match="non-singular"):
        invert(np.zeros((2, 2)))
    with pytest.raises(InputError, match="singular or nearly"):
        invert([[1.0, 2.0], [2.0, 4.0]])
    with pytest.raises(InputError, match="columns of B"):
        Product(2, 2, 2)(np.eye(2) * 1e-5, np.eye(2) * 1e5)
    with pytest.raises(InputError, match="delta"):
        Product(2, 2, 2, delta=1.0)
    with pytest.raises(InputError, match="bound"):
        Transposition(3, bound=1e20)
    with pytest.raises(InputError, match="rows of different lengths"):
        invert([[1], [1, 2]])
    with pytest.raises(InputError, match="real numbers"):
        Transposition(1)([[1j]])


def test_programs_end_where_they_say() -> None:
    with pytest.raises(InputError, match="past its last command"):
        SubleqMachine(2, 1, bits=4).run([1, 5], [(0, 1, 0)], 3)
    step = Instruction(0, 0, 1, "T", 0, 0)
    with pytest.raises(InputError, match="past its last instruction"):
        FleqMachine(1, 2, 1).execute([[[2.0]], [[0.0]]], [step], 2)
    with pytest.raises(InputError, match="an integer as the flag"):
        FleqMachine(1, 2, 1).execute([[[0.5]], [[0.0]]], [step], 1)


@pytest.mark.parametrize("scale", [1e-3, 0.03, 1.0, 900.0, 1e6])
def test_matrices_of_any_size_are_inverted(scale: float) -> None:
    A = scale * np.array([[2.0, 1.0], [0.0, 1.0]])
    assert np.abs(invert(A) @ A - np.eye(2)).max() < 1e-7


#: What the words that each program shows must hold.
ANSWERS = {
    "add": (42,),
    "maximum": (29,),
    "multiply": (63,),
    "factorial": (5040,),
    "fibonacci": (6765,),
    "divide": (14, 2),
    "greatest common divisor": (12,),
    "power of two": (4096,),
    "sum of a list": (-11,),
    "reverse a list": (5, 4, 3, 2, 1),
    "bubble sort": (-40, -4, 15, 31),
    "steps of 3n + 1": (32,),
}


def test_every_program_has_its_answer() -> None:
    assert {n: p.answer(p.interpreted(p.steps)[-1]) for n, p in PROGRAMS.items()} == ANSWERS


@pytest.mark.parametrize("name", [name for name in PROGRAMS if PROGRAMS[name].steps < 300])
def test_programs_agree_with_python_at_every_step(name: str) -> None:
    program = PROGRAMS[name]
    states = program.looped()
    assert states == program.interpreted()
    assert program.answer(states[-1]) == ANSWERS[name]


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
