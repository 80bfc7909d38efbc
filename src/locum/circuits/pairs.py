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
    """Inputs of one length, each with another one of that length."""

    clean: list[list[Atom]]
    other: list[list[Atom]]
    #: The order in which the positions of the other input are embedded.
    positions: list[list[int]]
    #: An input of another length for each pair, for what depends on the length alone.
    elsewhere: list[list[Atom]] | None = None
    #: Whether all inputs of that length are among them.
    complete: bool = False


def pairs_of(model: CompiledTransformer, most: int, seed: int = 0) -> Iterator[Pairs]:
    """Yield about ``most`` pairs: each input with a random other one, and with one token changed.

    Where there are at most ``most`` inputs, all of them are taken, of every length; else a sample.
    """
    draw = random.Random(seed)
    for inputs, complete in _inputs(model, most, draw):
        clean, other = [], []
        for row in inputs:
            changed = list(row)
            changed[draw.randrange(len(row))] = draw.choice(_tokens(model))
            for partner in (draw.choice(inputs), changed):
                clean.append(row)
                other.append(partner)
        orders = orders_of(len(clean[0]), len(clean), seed)
        yield Pairs(clean, other, orders, complete=complete)


def more_pairs_of(model: CompiledTransformer, most: int, seed: int = 0) -> Iterator[Pairs]:
    """Yield more pairs of the same inputs: each with every other one, or 2·``most`` of a length."""
    draw = random.Random(f"more {seed}")
    for inputs, complete in _inputs(model, most, draw):
        if len(inputs) ** 2 <= 2 * most:
            both = [(clean, other) for clean in inputs for other in inputs]
        else:
            both = [(draw.choice(inputs), draw.choice(inputs)) for _ in range(2 * most)]
        cleans, others = [clean for clean, _ in both], [other for _, other in both]
        orders = orders_of(len(cleans[0]), len(cleans), seed + 1)
        yield Pairs(cleans, others, orders, complete=complete)


def orders_of(positions: int, count: int, seed: int = 0) -> list[list[int]]:
    """List ``count`` orders of positions, one for each pair: shifts, backwards, and random ones.

    One order may leave where it is just what a part of the network looks for.

    >>> orders_of(3, 4)[:3]
    [[1, 2, 0], [2, 0, 1], [2, 1, 0]]
    """
    draw = random.Random(seed)
    straight = list(range(positions))
    orders = [straight[shift:] + straight[:shift] for shift in range(1, positions)] + [straight[::-1]]
    orders += [draw.sample(straight, positions) for _ in straight]
    return [orders[place % len(orders)] for place in range(count)]


def _tokens(model: CompiledTransformer) -> list[Atom]:
    """List the tokens on which the program has a value."""
    vocabulary = model.config.vocabulary
    if vocabulary is None:
        raise InputError("expected a network with a vocabulary, got one of real-valued tokens")
    undefined = [token for token, _ in model.config.undefined]
    return [token for token in vocabulary if token not in undefined]


def _inputs(
    model: CompiledTransformer, most: int, draw: random.Random
) -> Iterator[tuple[list[list[Atom]], bool]]:
    """Yield the inputs of each length, and whether they are all there are."""
    tokens = _tokens(model)
    shortest, longest = model.config.lengths
    lengths = range(shortest, longest + 1)
    complete = sum(len(tokens) ** length for length in lengths) <= most
    # A sample is of a few lengths, so that it has many pairs of each.
    chosen = lengths if complete else sorted({longest, max(shortest, longest - 1), max(shortest, 2)})
    for length in chosen:
        if complete:
            yield [list(row) for row in product(tokens, repeat=length)], True
        else:
            share = max(1, most // len(chosen))
            yield [[draw.choice(tokens) for _ in range(length)] for _ in range(share)], False
