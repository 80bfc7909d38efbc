"""Run programs and networks on inputs, and compare their outputs.

A pair consists of a clean input and another input of the same length. Both inputs have the same
position embeddings, so ``positions`` permutes the position embeddings of the other input.
``elsewhere`` is an input of another length, for signals that depend only on the length, or None if all
inputs have the same length.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from locum.errors import InputError
from locum.execution import run
from locum.experiments.circuits.patching import CompiledNetwork
from locum.experiments.dataset.program_families import MOST_INPUTS, count_inputs
from locum.graph import Atom, Node
from locum.networks.transformer import CompiledTransformer

#: Maximum number of inputs in a sample, if there are too many inputs to run all of them.
SAMPLE = 300


class RejectedProgramError(InputError):
    """An error that rejects a program as an item of a dataset, with the reason."""


@dataclass(frozen=True)
class Inputs:
    """Inputs and expected outputs by length, and whether all possible inputs are included."""

    rows: dict[int, list[list[Atom]]]
    expected: dict[int, list[list[Any]]]
    complete: bool
    space: int

    @property
    def count(self) -> int:
        """Number of inputs of all lengths."""
        return sum(map(len, self.rows.values()))

    def listed(self) -> list[tuple[list[Atom], list[Any]]]:
        """Return all inputs with the expected outputs, shortest first."""
        return [
            pair
            for length in self.rows
            for pair in zip(self.rows[length], self.expected[length], strict=True)
        ]


def inputs_for(tokens: Sequence[Atom], lengths: tuple[int, int], draw: random.Random) -> Inputs:
    """Return all inputs of these lengths, or a sample of up to four lengths if there are too many.

    The expected outputs are not computed.
    """
    shortest, longest = lengths
    space = count_inputs(len(tokens), longest, shortest == longest)
    complete = space <= MOST_INPUTS
    rows: dict[int, list[list[Atom]]] = {}
    if complete:
        for length in range(shortest, longest + 1):
            rows[length] = [list(row) for row in itertools.product(tokens, repeat=length)]
    else:
        chosen = sorted({shortest, max(shortest, longest // 2), max(shortest, longest - 1), longest})
        for length in chosen:
            drawn = {tuple(draw.choices(tokens, k=length)) for _ in range(SAMPLE // len(chosen))}
            rows[length] = [list(row) for row in sorted(drawn)]
    return Inputs(rows, {}, complete, space)


def with_answers(inputs: Inputs, program: Node) -> Inputs:
    """Return ``inputs`` with expected outputs, computed by dense execution of ``program``."""
    expected = {
        length: [run(program, row, executor="dense") for row in part]
        for length, part in inputs.rows.items()
    }
    return replace(inputs, expected=expected)


def depends_on_tokens(inputs: Inputs) -> bool:
    """Return whether some inputs of equal length have different expected outputs."""
    return any(any(row != rows[0] for row in rows) for rows in inputs.expected.values())


def worst_error(model: CompiledTransformer, inputs: Inputs) -> float:
    """Return the largest error of the outputs of a network.

    The error of a number is relative if the magnitude of the expected number is above 1. For
    categorical outputs, the error is 0 or, if any output is wrong, infinite.
    """
    worst, network, outputs = 0.0, CompiledNetwork(model), model.config.outputs
    numbers = {value: number for number, value in reversed(list(enumerate(outputs or ())))}
    for length, rows in inputs.rows.items():
        answers, expected = network.run(rows), inputs.expected[length]
        if outputs is not None:
            right = [[numbers.get(value, -1) for value in row] for row in expected]
            if not np.array_equal(answers, right):
                return float("inf")
            continue
        wanted = np.array(expected, dtype=float)
        difference = np.abs(answers - wanted) / np.maximum(1.0, np.abs(wanted))
        worst = max(worst, float(difference.max()) if np.isfinite(difference).all() else float("inf"))
    return worst


def idle_heads(model: CompiledTransformer, inputs: Inputs, most: int, tolerance: float) -> list[str]:
    """Return the names of heads whose zero ablation changes no output noticeably.

    A change is noticeable if it exceeds ``tolerance``·(1 + abs(y)), where y is the output after the
    ablation. The outputs for the first ``most`` inputs of each length are compared.
    """
    batches = [rows[:most] for rows in inputs.rows.values()][::-1]  # long inputs differ most
    before = [CompiledNetwork(model).run(rows) for rows in batches]
    idle = []
    for number, layer in enumerate(model.weights.layers):
        for head in range(layer.attention.heads if layer.attention else 0):
            other = CompiledNetwork(_without_head(model, number, head))
            if all(
                np.allclose(answers, other.run(rows), rtol=tolerance, atol=tolerance)
                for answers, rows in zip(before, batches, strict=True)
            ):
                idle.append(f"blocks.{number}.attn.head.{head}")
    return idle


def _without_head(model: CompiledTransformer, layer: int, head: int) -> CompiledTransformer:
    """Return a network in which the output of one head is 0."""
    layers = list(model.weights.layers)
    heads = layers[layer].attention
    assert heads is not None
    W_O = heads.W_O.copy()
    W_O[head] = 0
    layers[layer] = replace(layers[layer], attention=replace(heads, W_O=W_O))
    return CompiledTransformer(model.config, replace(model.weights, layers=tuple(layers)))


#: Maximum number of inputs, and number of pairs, that are written to ``examples.json``.
_INPUTS, _PAIRS = 128, 32


def examples_for(inputs: Inputs, draw: random.Random) -> dict[str, Any]:
    """Return inputs with expected outputs, and pairs of inputs, for ``examples.json``."""
    listed = inputs.listed()
    chosen = listed
    if len(listed) > _INPUTS:
        chosen = [listed[i] for i in sorted(draw.sample(range(len(listed)), _INPUTS))]
    return {
        "inputs": [tokens for tokens, _ in chosen],
        "outputs": [answer for _, answer in chosen],
        "pairs": pairs_for(inputs, draw, _PAIRS),
    }


def pairs_for(inputs: Inputs, draw: random.Random, most: int) -> list[dict[str, Any]]:
    """Return ``most`` random pairs of inputs, preferably with different expected outputs."""
    # Longer inputs distinguish more programs, so of three consecutive pairs, at least two have the
    # largest length.
    lengths = [length for length, rows in inputs.rows.items() if len(rows) > 1]
    pairs = []
    for number in range(most):
        length = max(lengths) if number % 3 else draw.choice(lengths)
        clean, other = (draw.randrange(len(inputs.rows[length])) for _ in range(2))
        for _ in range(20):
            if inputs.expected[length][clean] != inputs.expected[length][other]:
                break
            other = draw.randrange(len(inputs.rows[length]))
        elsewhere = draw.choice([size for size in inputs.rows if size != length] or [None])
        pairs.append(
            {
                "clean": inputs.rows[length][clean],
                "other": inputs.rows[length][other],
                "positions": draw.sample(range(length), length),
                "elsewhere": None if elsewhere is None else draw.choice(inputs.rows[elsewhere]),
                "answer": inputs.expected[length][clean],
                "other_answer": inputs.expected[length][other],
            }
        )
    return pairs
