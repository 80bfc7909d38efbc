"""A second generator of random programs: where rounding could make a network jump elsewhere.

Values of position and length by every function, sums of multiples that share a slot, tokens as large as
10⁷ beside small ones, thirds and tenths, float32; compared, looked up, divided with remainder. Drawn
from a seed: a failure names it.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from locum import (
    SOp,
    aggregate,
    best,
    erf,
    exp,
    full,
    indices,
    length,
    log,
    lookup,
    select,
    selector_width,
    sqrt,
    tanh,
    tokens,
    where,
)

PREDICATES = ("==", "==", "!=", "<", "<=", ">", ">=")
VOCABULARIES: tuple[tuple[Any, ...], ...] = (
    (0, 1, 2),
    (0, 1, 2, 1_000_000),
    (-3, 5, 10_000_000),
    (0.1, 0.2, 0.3, 1 / 3),
    (1, 2.5, -0.7),
    (True, False, 3),
    (999, 1000, 1001, 7),
)


class EdgeTrial(NamedTuple):
    """A program, its tokens, and how it is to be compiled."""

    program: SOp
    vocabulary: tuple[Any, ...]
    options: dict[str, Any]


def edge_trial(seed: int) -> EdgeTrial:
    """The program and the options of a seed."""
    draw = random.Random(seed)
    vocabulary = draw.choice(VOCABULARIES)
    longest = draw.choice((1, 2, 3, 4, 5, 6, 8, 9, 12))
    drawn = _Drawn(draw)
    program = drawn.number(draw.choice((2, 3, 3, 4)))
    if draw.random() < 0.3:
        program = selector_width(drawn.selector(2))
    options: dict[str, Any] = {
        "length": longest,
        "fixed": draw.random() < 0.3,
        "dtype": draw.choice(("float64", "float32")),
        "attention": draw.choice(("hard", "hard", "softmax")),
        "feed_forward": draw.choice(("exact", "exact", "exact", "relu", "gelu", "glu")),
    }
    return EdgeTrial(program, vocabulary, options)


class _Drawn:
    """S-ops from the top down."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.made: list[SOp] = []

    def leaf(self) -> SOp:
        draw = self.draw
        near = draw.choice((length - indices, length + indices, (length + indices) / 3, indices / 7))
        choices = (
            lambda: indices,
            lambda: length,
            lambda: tokens,
            lambda: tokens * 1,
            lambda: near,
            lambda: exp(near / 4),
            lambda: log(near + 1),
            lambda: sqrt(near),
            lambda: tanh(near),
            lambda: erf(near / 5),
            lambda: draw.choice((1.1, 0.9)) ** near,
            lambda: 1 / (near + 1),
            lambda: aggregate(full, near),
        )
        return draw.choice(choices)()

    def number(self, depth: int) -> SOp:
        draw = self.draw
        if self.made and draw.random() < 0.2:
            return draw.choice(self.made)
        result = self.leaf() if depth == 0 else self._number(depth)
        self.made.append(result)
        return result

    def count(self, depth: int) -> SOp:
        return selector_width(self.selector(depth))

    def _number(self, depth: int) -> SOp:
        draw = self.draw
        factor = draw.choice((2, 3, 25, 0.1, 7, 1004, 1 / 3))
        match draw.randrange(12):
            case 0:
                return self.leaf()
            case 1:
                return self.number(depth - 1) + factor * self.number(depth - 1)
            case 2:
                return factor * self.count(depth - 1) + self.number(depth - 1)
            case 3:
                return self.count(depth - 1) * self.count(depth - 1)
            case 4:
                return (self.count(depth - 1) + indices) % length
            case 5:
                return self.number(depth - 1) % draw.choice((3, 5, 0.5))
            case 6:
                return self.number(depth - 1) // draw.choice((2, 3))
            case 7:
                return where(self.truth(depth - 1), self.number(depth - 1), self.number(depth - 1))
            case 8:
                return aggregate(self.selector(depth - 1), self.number(depth - 1), draw.choice((0, -1)))
            case 9:
                chosen = best(self.selector(depth - 1), self.number(depth - 1))
                return aggregate(chosen, indices, -1)
            case 10:
                keys = {0: 4, 1: -2, 2: 0.1}
                return lookup(abs(round(self.number(depth - 1))) % 3, keys)
            case _:
                return self.count(depth - 1)

    def truth(self, depth: int) -> SOp:
        a, b = self.number(depth), self.number(0)
        return self.draw.choice((a == b, a < b, a >= b, a != b))

    def selector(self, depth: int) -> Any:
        draw = self.draw
        keys = self.number(max(depth - 1, 0))
        queries = keys if draw.random() < 0.4 else self.number(max(depth - 1, 0))
        result = select(keys, queries, draw.choice(PREDICATES))
        if draw.random() < 0.2:
            result = result & select(indices, indices, draw.choice(("<=", "<")))
        return result
