"""Which numbers of a network depend on real tokens, and so may be of any size, also very near to 0.

All others are made of positions and constants: there are few of them, and none is tiny.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from locum.transformer.functions import Functions
from locum.transformer.weights import Array, AttentionWeights, FeedForwardWeights, Weights

Marks = NDArray[np.bool_]

#: Instructions whose results are 0, 1 or one of a list, whatever goes in.
_OF_A_LIST = frozenset(
    {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "and", "or", "not"}
    | {"table", "constant"}
)


def real_slots(weights: Weights) -> Iterator[Marks]:
    """Mark slots that may depend on tokens: as each attention finds them, each feed-forward, the end.

    Two for each layer, and one more.
    """
    real: Marks = (weights.W_E != 0).any(axis=0)
    for layer in weights.layers:
        yield real
        if (heads := layer.attention) is not None:
            real = real | ((heads.W_O != 0) & real_values(heads, real)[:, :, None]).any(axis=(0, 1))
        yield real
        if (feed := layer.feed_forward) is not None:
            real = real | ((feed.W_out != 0) & real_units(feed, real)[:, None]).any(axis=0)
    yield real


def read(matrix: Array, real: Marks) -> Marks:
    """Mark the columns of a matrix [.., slot, number] that read a marked slot."""
    reached: Marks = ((matrix != 0) & real[:, None]).any(axis=-2)
    return reached


def halvings(matrix: Array, real: Marks) -> NDArray[np.float64]:
    """Count how often a column [.., number] can be halved and still multiply what it reads by integers.

    An integer multiple of a float is a multiple of the least float, and loses nothing however near to
    0 it is; a fraction of one may. Columns that read no marked slot can be halved for ever.

    >>> halvings(np.array([[4.0, 3.0, 0.5], [8.0, 0.0, 2.0]]), np.array([True, True])).tolist()
    [2.0, 0.0, 0.0]
    >>> halvings(np.array([[4.0], [0.1]]), np.array([True, False])).tolist()
    [2.0]
    """
    fractions, exponents = np.frexp(matrix.astype(np.float64))
    whole = np.abs(np.ldexp(fractions, 53)).astype(np.int64)
    lowest = exponents - 53 + np.log2(np.maximum(whole & -whole, 1))
    counted = np.where((matrix != 0) & real[:, None], np.maximum(lowest, 0.0), np.inf)
    reached: NDArray[np.float64] = counted.min(axis=-2)
    return reached


def real_values(heads: AttentionWeights, real: Marks) -> Marks:
    """Mark the values [head, number] that depend on tokens: by what they hold, or by the pattern."""
    scores = read(heads.W_Q, real) | read(heads.W_K, real)
    return read(heads.W_V, real) | scores.any(axis=-1, keepdims=True)


def real_units(feed: FeedForwardWeights, real: Marks) -> Marks:
    """Mark the units, or outputs of exact functions, that depend on tokens."""
    met = read(feed.W_in, real)
    if feed.W_gate is not None:
        met = met | read(feed.W_gate, real)
    return met if feed.functions is None else _results(feed.functions, met)


def _results(functions: Functions, arguments: Marks) -> Marks:
    """Mark the outputs that depend on marked arguments by other than a comparison.

    >>> from locum.transformer.functions import Instruction
    >>> steps = (Instruction("add", (0, 1)), Instruction("less", (0, 1)), Instruction("add", (1, 1)))
    >>> _results(Functions(2, steps, (2, 3, 4)), np.array([True, False])).tolist()
    [True, False, False]
    """
    marks = arguments.tolist()
    for instruction in functions.instructions:
        reached = any(marks[place] for place in instruction.inputs)
        marks.append(reached and instruction.op not in _OF_A_LIST)
    return np.array([marks[place] for place in functions.outputs], np.bool_)
