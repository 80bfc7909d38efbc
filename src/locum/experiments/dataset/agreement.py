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
from locum.experiments.dataset.program_families import MOST_INPUTS, count_inputs
from locum.experiments.dataset.verify import Network
from locum.graph import Atom, Node
from locum.networks.transformer.weights import Array

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


def batches_of(network: Network, inputs: Inputs, most: int | None = None) -> list[Array]:
    """Return the inputs as token ids, one batch [input, position] for each length.

    If ``most`` is given, each batch contains only the first ``most`` inputs.
    """
    ids = {token: network.ids([token])[0] for token in network.config["vocabulary"]}
    return [
        np.array([[ids[token] for token in row] for row in rows[:most]])
        for rows in inputs.rows.values()
    ]


def expected_answers(network: Network, inputs: Inputs) -> list[Any]:
    """Return the expected outputs as a network returns them: indices of outputs, or numbers."""
    outputs = network.config.get("outputs")
    if outputs is None:
        return [np.array(rows, dtype=float) for rows in inputs.expected.values()]
    place = {value: number for number, value in reversed(list(enumerate(outputs)))}
    return [
        np.array([[place.get(value, -1) for value in row] for row in rows])
        for rows in inputs.expected.values()
    ]


def worst_error(network: Network, batches: Sequence[Array], expected: Sequence[Any]) -> float:
    """Return the largest error of the network's outputs.

    The error of a number is relative if the magnitude of the expected number is above 1. For
    categorical outputs, the error is 0 or, if any output is wrong, infinite.
    """
    worst = 0.0
    for ids, right in zip(batches, expected, strict=True):
        with np.errstate(all="ignore"):
            answers = network.answers(network.logits(ids))
        if network.config.get("outputs") is not None:
            if not np.array_equal(answers, right):
                return float("inf")
            continue
        difference = np.abs(answers - right) / np.maximum(1.0, np.abs(right))
        worst = max(worst, float(difference.max()) if np.isfinite(difference).all() else float("inf"))
    return worst


def idle_heads(network: Network, batches: Sequence[Array], tolerance: float) -> list[str]:
    """Return the names of heads whose zero ablation changes no output noticeably.

    A change is noticeable if it exceeds ``tolerance``·(1 + abs(y)), where y is the output after the
    ablation.
    """
    longest_first = batches[::-1]  # long inputs show most differences
    before = [network.answers(network.logits(ids)) for ids in longest_first]
    idle = []
    for layer in range(len(network.layers)):
        for head in range(network.heads(layer)):
            name = f"blocks.{layer}.attn.W_O"
            without = network.tensors[name].copy()
            without[head] = 0
            other = Network(network.config, network.tensors | {name: without})
            after = (other.answers(other.logits(ids)) for ids in longest_first)
            if all(
                np.allclose(one, two, rtol=tolerance, atol=tolerance)
                for one, two in zip(before, after, strict=True)
            ):
                idle.append(f"blocks.{layer}.attn.head.{head}")
    return idle


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
