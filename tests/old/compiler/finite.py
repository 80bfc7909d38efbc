"""Random programs over a small vocabulary, and over real numbers.

What units and soft heads have to stand.
"""

from __future__ import annotations

import random

from locum.graph import PREDICATES, Node, build
from locum.graph.operations import constant

INDICES, LENGTH, TOKENS = build("indices"), build("length"), build("tokens", cast="asis")
_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


class Programs:
    """Programs from the top down; ``real``: tokens are real numbers, so nothing may jump."""

    def __init__(self, seed: int, *, real: bool = False) -> None:
        self.draw = random.Random(seed)
        self.real = real

    def value(self, depth: int) -> Node:
        """Numbers."""
        draw = self.draw
        kind = draw.randrange(11) if depth else draw.randrange(3)
        match kind:
            case 0:
                return TOKENS
            case 1:
                return draw.choice((INDICES, TOKENS, LENGTH))
            case 2:
                return constant(draw.randrange(-2, 4))
            case 3 | 4:
                return build(
                    "aggregate",
                    self.selector(depth - 1),
                    self.value(depth - 1),
                    default=draw.randrange(3),
                )
            case 5:
                return build("selector_width", self.selector(depth - 1))
            case 6:
                return build(
                    "if_else", self.truth(depth - 1), self.value(depth - 1), self.value(depth - 1)
                )
            case 7:
                op = draw.choice(("minimum", "maximum", "add", "subtract", "multiply"))
                return build(op, self.value(depth - 1), self.value(depth - 1))
            case 8:
                return build("absolute", self.value(depth - 1))
            case 9:
                return build("indicator", self.truth(depth - 1))
            case _:
                return build(
                    draw.choice(("add", "subtract")), self.value(depth - 1), self.value(depth - 1)
                )

    def position(self) -> Node:
        """A number that depends on the position alone."""
        draw = self.draw
        shift = constant(draw.randrange(-1, 3))
        return draw.choice((INDICES, build(draw.choice(("add", "subtract")), INDICES, shift)))

    def truth(self, depth: int) -> Node:
        """Truths: of anything where tokens are finite, else of positions."""
        draw = self.draw
        if self.real:
            return build(draw.choice(_COMPARISONS), self.position(), constant(draw.randrange(4)))
        if depth and draw.random() < 0.3:
            return build(draw.choice(("and", "or")), self.truth(depth - 1), self.truth(depth - 1))
        return build(draw.choice(_COMPARISONS), self.simple(), self.simple())

    def simple(self) -> Node:
        """Few values."""
        draw = self.draw
        if draw.random() < 0.15:
            return build("selector_width", self.selector(0))
        return draw.choice((TOKENS, TOKENS, INDICES, constant(draw.randrange(3)), self.position()))

    def selector(self, depth: int) -> Node:
        """Selectors of positions, and of tokens where these are finite."""
        draw = self.draw
        if depth and draw.random() < 0.3:
            op = draw.choice(("selector_and", "selector_or"))
            return build(op, self.selector(depth - 1), self.selector(depth - 1))
        if draw.random() < 0.15:
            return build("selector_not", self.selector(0))
        side = self.position if self.real else self.simple
        return build("select", side(), side(), predicate=draw.choice(PREDICATES))
