"""What an item has to run its network on: inputs with outputs, and counterfactual pairs.

A pair has a clean input and another one of the same length; ``positions`` says in which order the
positions of the other input are embedded, since the positions themselves are the same in both; and
``elsewhere`` is an input of another length, for what depends on the length alone.
"""

from __future__ import annotations

import random
from typing import Any

from locum.dataset.agreement import Inputs

#: Inputs, and pairs of them, that are written down.
_INPUTS, _PAIRS = 128, 32


def examples_for(inputs: Inputs, draw: random.Random) -> dict[str, Any]:
    """Return inputs with outputs, and pairs; most pairs have different outputs."""
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
    """Return so many pairs, drawn at random; most have different outputs."""
    # Longer inputs have more to tell apart: two of three pairs are of the longest.
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
