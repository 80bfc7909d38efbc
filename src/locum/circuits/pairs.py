"""Pairs of inputs for interchange interventions: as many as were asked for, or all inputs there are.

Both inputs of a pair have one length. What differs between them is what an intervention carries over.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from locum.errors import InputError
from locum.graph import Atom
from locum.transformer import CompiledTransformer


@dataclass(frozen=True)
class Pairs:
    """Inputs of one length, each with another; and whether all inputs of that length are among them."""

    clean: list[list[Atom]]
    other: list[list[Atom]]
    complete: bool


def pairs_of(model: CompiledTransformer, most: int, seed: int = 0) -> Iterator[Pairs]:
    """Yield about ``most`` pairs: each input with a random other one, and with one token changed.

    Where there are at most ``most`` inputs, all of them are taken, of every length; else a sample.
    """
    vocabulary = model.config.vocabulary
    if vocabulary is None:
        raise InputError("expected a network with a vocabulary, got one of real-valued tokens")
    undefined = [token for token, _ in model.config.undefined]
    tokens = [token for token in vocabulary if token not in undefined]
    shortest, longest = model.config.lengths
    lengths = range(shortest, longest + 1)
    draw = random.Random(seed)
    complete = sum(len(tokens) ** length for length in lengths) <= most
    # A sample is of a few lengths, so that it has many pairs of each.
    chosen = lengths if complete else sorted({longest, max(shortest, longest - 1), max(shortest, 2)})
    for length in chosen:
        if complete:
            inputs = [list(row) for row in product(tokens, repeat=length)]
        else:
            share = max(1, most // len(chosen))
            inputs = [[draw.choice(tokens) for _ in range(length)] for _ in range(share)]
        clean, other = [], []
        for row in inputs:
            changed = list(row)
            changed[draw.randrange(length)] = draw.choice(tokens)
            for partner in (draw.choice(inputs), changed):
                clean.append(row)
                other.append(partner)
        yield Pairs(clean, other, complete)
