"""Random programs that compute with positions: what lowering has rules for, and what it must notice.

Index arithmetic (+, −, ·, %, //), selectors of positions and of data, their unions and negations,
families, maxima; the matrix constructions with their numbers disturbed; families written out head by
head. Drawn from a seed: a failure names it. (``tests/strategies.py`` draws from the whole table.)
"""

from __future__ import annotations

import random
from typing import NamedTuple

from locum import tokens
from locum.constructions import (
    Matrix,
    concatenate,
    layer_norm,
    matmul,
    multihead,
    softmax,
    transpose,
)
from locum.constructions.sums import multiply, row_sums, total
from locum.graph import Node, build, family, postorder, sum_over
from locum.graph.families import substitute

INDICES = build("indices")
TOKENS = build("tokens", cast="asis")
_PREDICATES = ("==", "==", "==", "!=", "<", "<=", ">", ">=")
_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


class Trial(NamedTuple):
    """A program, an input, and the positions that are asked for."""

    program: Node
    given: list[float]
    positions: range


def trial(seed: int) -> Trial:
    """The program and input of a seed."""
    draw = random.Random(seed)
    kind = draw.random()
    if kind < 0.2:
        program, length = _construction(draw)
        for _ in range(draw.choice((0, 1, 1, 2))):
            program = _disturbed(program, draw)
    elif kind < 0.25:
        program, length = _written_out(draw)
    else:
        length = draw.randrange(1, 13)
        program = _Programs(draw).value(draw.randrange(1, 5))
    # Quarters: sums and products of them are exact, so that equal means are equal however computed.
    inputs = [draw.randrange(-8, 9) / draw.choice((1, 4)) for _ in range(length)]
    positions = range(length)
    if draw.random() < 0.3:
        start = draw.randrange(length)
        positions = range(start, draw.randrange(start + 1, length + 1))
    return Trial(program, inputs, positions)


def number(value: float) -> Node:
    return build("constant", value=value)


class _Programs:
    """Programs built from the top down, with the families in scope."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.families: list[Node] = []

    def index(self, depth: int = 2) -> Node:
        """An expression of positions."""
        draw = self.draw
        match draw.randrange(9 if depth else 3):
            case 0:
                return INDICES
            case 1:
                return number(draw.randrange(6))
            case 2:
                return draw.choice(self.families) if self.families else INDICES
            case 3:
                return build("add", self.index(depth - 1), self.index(depth - 1))
            case 4:
                return build("multiply", self.index(depth - 1), number(draw.randrange(1, 5)))
            case 5:
                return build("modulo", self.index(depth - 1), number(draw.randrange(1, 6)))
            case 6:
                return build("floor_divide", self.index(depth - 1), number(draw.randrange(1, 6)))
            case 7:
                return build("subtract", self.index(depth - 1), self.index(depth - 1))
        return build(draw.choice(("minimum", "maximum")), self.index(depth - 1), self.index(depth - 1))

    def condition(self, depth: int = 1) -> Node:
        match self.draw.randrange(7 if depth else 3):
            case 6:
                op = self.draw.choice(("equal", "not_equal"))
                return build(
                    op, self.condition(depth - 1), number(self.draw.choice((True, False, 1, 0, 2)))
                )
            case 3:
                return build("less", self.value(1), self.value(1))
            case 4:
                return build("not", self.condition(depth - 1))
            case 5:
                op = self.draw.choice(("and", "or"))
                return build(op, self.condition(depth - 1), self.condition(depth - 1))
        return build(self.draw.choice(_COMPARISONS), self.index(1), self.index(1))

    def selector(self, depth: int = 1) -> Node:
        match self.draw.randrange(10 if depth else 4):
            case 9:
                truth = number(self.draw.random() < 0.5)
                return build(
                    "select", self.condition(), truth, predicate=self.draw.choice(("==", "!="))
                )
            case 4 | 5:
                return build("selector_and", self.selector(depth - 1), self.selector(depth - 1))
            case 6:
                return build("selector_or", self.selector(depth - 1), self.selector(depth - 1))
            case 7:
                return build("selector_not", self.selector(depth - 1))
            case 8:  # by data
                predicate = self.draw.choice(_PREDICATES)
                return build("select", self.value(1), self.value(1), predicate=predicate)
        predicate = self.draw.choice(_PREDICATES)
        if self.draw.random() < 0.3:  # the same keys for all: unions and negations stay lowerable
            return build("select", INDICES, number(self.draw.randrange(8)), predicate=predicate)
        return build("select", self.index(), self.index(), predicate=predicate)

    def value(self, depth: int) -> Node:
        """An s-op."""
        draw = self.draw
        match draw.randrange(15 if depth else 3):
            case 14:
                return self.three_factors()
            case 0 | 1:
                return TOKENS
            case 2:
                return self.index(1)
            case 3 | 4 | 5 | 6:
                default = draw.choice((0, 0, 0, 1, 2.5))
                selector = self.selector(self.draw.choice((1, 1, 2)))
                return build("aggregate", selector, self.value(depth - 1), default=default)
            case 7 | 8:
                bound = [family(draw.randrange(1, 5)) for _ in range(draw.randrange(1, 3))]
                self.families += bound
                body = self.value(depth - 1)
                del self.families[-len(bound) :]
                return sum_over(bound, body)
            case 9:
                op = draw.choice(("add", "subtract", "multiply"))
                return build(op, self.value(depth - 1), self.value(depth - 1))
            case 10:
                other = draw.choice((number(0), self.value(depth - 1)))
                return build("if_else", self.condition(), self.value(depth - 1), other)
            case 11:
                return self.greatest(self.value(depth - 1))
            case 12:
                return self.function(depth - 1)
        return build("multiply", number(draw.randrange(1, 5)), self.value(depth - 1))

    def three_factors(self) -> Node:
        """A mean over a range of keys of three products of loads."""
        value = build("multiply", build("multiply", self.fetched(), self.fetched()), self.fetched())
        size = number(self.draw.randrange(1, 5))
        return build("aggregate", build("select", INDICES, size, predicate="<"), value, default=0)

    def fetched(self) -> Node:
        return build(
            "aggregate", build("select", INDICES, self.index(), predicate="=="), TOKENS, default=0
        )

    def greatest(self, value: Node) -> Node:
        score = self.draw.choice((value, value, build("negate", value), self.index(1)))
        chosen = build("best", self.selector(), score)
        if self.draw.random() < 0.5:
            chosen = build("best", chosen, build("negate", INDICES))
        return build("aggregate", chosen, value, default=0)

    def function(self, depth: int) -> Node:
        value = self.value(depth)
        return self.draw.choice(
            (
                build("exp", build("minimum", value, number(1))),
                build("absolute", value),
                build("divide", value, number(3)),
                build("maximum", value, number(0)),
                build("indicator", self.condition()),
                build("selector_width", self.selector()),
                build(
                    "lookup",
                    build("modulo", self.index(1), number(3)),
                    table=((0, 1), (1, -2), (2, 0.5)),
                ),
            )
        )


def _construction(draw: random.Random) -> tuple[Node, int]:
    """A matrix construction of a small random shape."""
    r, k, c = (draw.randrange(1, 5) for _ in range(3))
    a, b = concatenate(tokens, (r, k), (k, c))
    match draw.randrange(11):
        case 8:
            m = matmul(multiply(a, softmax(a)), b)
        case 9:
            m = matmul(transpose(softmax(a)), a)
        case 10:
            m = multihead(_tripled, 2, Matrix(tokens, r, k), Matrix(tokens, k, c, offset=2 * r * k))
        case 0:
            m = matmul(a, b, recipe=draw.choice(("paper", "fetch", "tiled")))
        case 1:
            mask = draw.choice((None, "causal", 1, b if (r, k) == (k, c) else None))
            recipe = draw.choice(("paper", "frugal"))
            m = softmax(a, stable=draw.random() < 0.5, recipe=recipe, mask=mask)
        case 2:
            m = transpose(a, recipe="paper")
        case 3:
            m = layer_norm(a)
        case 4:
            m = matmul(transpose(b), transpose(a))
        case 5:
            m = matmul(softmax(matmul(a, transpose(a))), a)
        case 6:
            h = draw.randrange(1, 4)
            m = multihead(matmul, h, Matrix(tokens, r, k), Matrix(tokens, k, c, offset=h * r * k))
        case _:
            m = draw.choice((row_sums(a), total(a)))
    return m.sop.node, max(m.needs, m.reads) + draw.randrange(3)


def _tripled(a: Matrix, b: Matrix) -> Matrix:
    """A product with three factors under one sum."""
    return matmul(multiply(a, a), b)


def _disturbed(program: Node, draw: random.Random) -> Node:
    """The same with one integer changed: no longer a product of matrices, but still a program."""
    numbers = [
        node
        for node in postorder(program)
        if node.op == "constant" and type(node.attributes["value"]) is int
    ]
    if not numbers:
        return program
    chosen = draw.choice(numbers)
    value = chosen.attributes["value"]
    assert isinstance(value, int)
    return substitute(program, {chosen: number(max(1, value + draw.choice((-1, 1, 2))))})


def _written_out(draw: random.Random) -> tuple[Node, int]:
    """A family of heads written one by one, as RASP text has it; sometimes with one head too many."""
    r, k, c = (draw.randrange(1, 5) for _ in range(3))
    slip = draw.choice((None, None, draw.randrange(r * c)))
    addends = []
    for t in range(r * c):
        l, m = divmod(t, c)
        row = _fetched(build("add", build("modulo", INDICES, number(k)), number(l * k)))
        place = build("multiply", build("modulo", INDICES, number(k)), number(c))
        column = _fetched(build("add", place, number(r * k + m + (t == slip))))
        here = build("select", number(t), INDICES, predicate="==")
        first = build("select", INDICES, number(k), predicate="<")
        product = build("multiply", row, column)
        addends.append(build("aggregate", build("selector_and", first, here), product, default=0))
    program = addends[0]
    for addend in addends[1:]:
        program = build("add", program, addend)
    return program, max(r * k + k * c, r * c)


def _fetched(position: Node) -> Node:
    return build("aggregate", build("select", INDICES, position, predicate="=="), TOKENS, default=0)
