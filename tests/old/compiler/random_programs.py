"""Random programs in which numbers, strings and booleans are kept apart: nearly all have a value.

Attention up to five deep, widths and maxima inside selectors, ties, empty selections, tables,
remainders, strings that are chosen, moved and defaulted; vocabularies of up to thirty tokens. Drawn
from a seed: a failure names it. (``tests/strategies.py`` draws from the whole table of operations,
``positional.py`` index arithmetic.)
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from locum.graph import Atom, Node, build, postorder
from locum.graph.atoms import canonical_set, canonical_table

INDICES, LENGTH, TOKENS = build("indices"), build("length"), build("tokens", cast="asis")
_WORDS = ("", "a", "b", "ba", "é", "1", "z")
_LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")
_PREDICATES = ("==", "==", "!=", "<", "<=", ">", ">=")
_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


class Trial(NamedTuple):
    """A program, an input as long as the network is made for, and the tokens there are."""

    program: Node
    given: list[Atom]
    vocabulary: list[Atom]


def trial(seed: int) -> Trial:
    """The program and input of a seed."""
    draw = random.Random(seed)
    vocabulary: list[Atom]
    match draw.randrange(5):
        case 0:
            vocabulary = [*draw.sample(_LETTERS, draw.randrange(1, 5))]
        case 1:
            vocabulary = [*_LETTERS, *_WORDS[3:]]
        case 2:
            vocabulary = [*range(draw.randrange(-4, 1), draw.randrange(2, 26))]
        case 3:
            vocabulary = [draw.randrange(-6, 7) / 2 for _ in range(draw.randrange(1, 6))]
        case _:
            vocabulary = [*range(draw.randrange(2, 5))]
    vocabulary = list(dict.fromkeys(vocabulary))
    length = draw.choice((1, 2, 3, 4, 4, 5, 6, 7, 8))
    depth = draw.choice((3, 3, 4, 4, 5, 5))
    while True:
        programs = _Programs(draw, vocabulary)
        program = draw.choice((programs.number, programs.number, programs.text, programs.truth))(depth)
        if any(node.op in ("aggregate", "selector_width") for node in postorder(program)):
            return Trial(program, draw.choices(vocabulary, k=length), vocabulary)


def about_tokens(seed: int, vocabulary: list[Atom]) -> Node:
    """A program with a selector of some tokens."""
    draw = random.Random(seed)
    programs = _Programs(draw, vocabulary)

    def of_token(*predicates: str) -> Node:
        token = _constant(draw.choice(vocabulary))
        return build("select", TOKENS, token, predicate=draw.choice(predicates))

    chosen = of_token("==", "!=")
    if draw.random() < 0.3:
        chosen = build(draw.choice(("selector_or", "selector_and")), chosen, of_token("=="))
    if draw.random() < 0.3:
        chosen = build("selector_and", chosen, programs.selector(1, 1))
    if draw.random() < 0.3:
        query = programs.text(1) if programs.strings else programs.number(1)
        chosen = build("select", TOKENS, query, predicate="==")
    if draw.random() < 0.2:
        node = build("selector_width", chosen)
    else:
        node = build("aggregate", chosen, programs.number(1), default=programs._default())
    programs.made["number"] += [node] * 8
    while True:
        program = draw.choice((programs.number, programs.number, programs.text, programs.truth))(3)
        if node in set(postorder(program)):
            return program


class Coarse(NamedTuple):
    """A program, options of ``compile`` with a coarse tolerance, and inputs, the longest first."""

    program: Node
    options: dict[str, Any]
    inputs: list[list[Atom]]


def coarse(seed: int) -> Coarse:
    """A product with means of means, which hidden units approximate as coarsely as they may."""
    draw = random.Random(seed)
    tokens: list[Atom] = [*draw.choice(((0, 1, -1, 2), (0, 1), (0, 1, 2, 3, 4, 5), (-3, 5)))]
    programs = _Programs(draw, tokens)

    def mean(node: Node) -> Node:
        return build("aggregate", programs.selector(0, 1), node, default=draw.choice((0, 1)))

    factor = draw.choice((LENGTH, LENGTH, INDICES, TOKENS))
    shifted = build("subtract", factor, _constant(draw.choice((1, 2, -1, 3))))
    program = build("multiply", shifted, mean(mean(programs.number(1))))
    kind = draw.choice(("relu", "gelu", "glu", "relu"))
    options: dict[str, Any] = {
        "tolerance": draw.choice((0.3, 0.5, 0.6, 0.75, 1, 1.5, 2)),
        "feed_forward": kind,
        "attention": draw.choice(("softmax", "hard")),
        "separation": 0.5,
    }
    if draw.random() < 0.7:
        options["vocabulary"] = tokens
    else:
        options |= {
            "numeric": True,
            "ranges": None if kind == "glu" and draw.random() < 0.5 else (-3, 5),
        }
    longest = draw.choice((2, 3, 4))
    lengths = [longest, *(draw.randrange(1, longest + 1) for _ in range(7))]
    return Coarse(program, options, [draw.choices(tokens, k=count) for count in lengths])


def _constant(value: Atom) -> Node:
    return build("constant", value=value)


class _Programs:
    """Programs from the top down; ``depth`` bounds how deep attention is nested."""

    def __init__(self, draw: random.Random, vocabulary: list[Atom]) -> None:
        self.draw = draw
        self.strings = isinstance(vocabulary[0], str)
        #: Every string that there may be: tables are defined on all of them.
        words = [word for word in vocabulary if isinstance(word, str)]
        self.words = list(dict.fromkeys([*_WORDS, *words]))
        #: Shared parts: programs are graphs.
        self.made: dict[str, list[Node]] = {"number": [], "text": [], "truth": []}

    def _again(self, kind: str) -> Node | None:
        known = self.made[kind]
        return self.draw.choice(known) if known and self.draw.random() < 0.15 else None

    def _keep(self, kind: str, node: Node) -> Node:
        self.made[kind].append(node)
        return node

    def number(self, depth: int) -> Node:
        return self._again("number") or self._keep("number", self._number(depth))

    def text(self, depth: int) -> Node:
        return self._again("text") or self._keep("text", self._text(depth))

    def truth(self, depth: int) -> Node:
        return self._again("truth") or self._keep("truth", self._truth(depth))

    # Numbers ------------------------------------------------------------------------------------

    def _leaf(self) -> Node:
        match self.draw.randrange(4):
            case 0:
                return INDICES
            case 1:
                return _constant(self.draw.choice((0, 1, 2, 3, -1, 5, 0.5)))
            case 2 if not self.strings:
                return TOKENS
            case 2:
                return self._table(TOKENS, self.words, (0, 1, 2, 5, -1))
            case _:
                return self.draw.choice((LENGTH, INDICES))

    def _number(self, depth: int) -> Node:
        draw = self.draw
        if depth == 0:
            return self._leaf()
        small = _constant(draw.randrange(1, 5))
        match draw.randrange(17):
            case 0:
                return self._leaf()
            case 1 | 2:
                op = draw.choice(("add", "subtract", "minimum", "maximum"))
                return build(op, self.number(depth - 1), self.number(depth - 1))
            case 3:
                return build(
                    "multiply", self.number(depth - 1), _constant(draw.choice((2, 3, -1, 7, 0.5)))
                )
            case 4:
                op = draw.choice(("modulo", "floor_divide", "modulo", "divide"))
                return build(op, self.number(depth - 1), small)
            case 5:
                op = draw.choice(("absolute", "negate", "round", "floor"))
                return build(op, self.number(depth - 1))
            case 6:
                return build(
                    "if_else", self.truth(depth - 1), self.number(depth - 1), self.number(depth - 1)
                )
            case 7:
                return build("indicator", self.truth(depth - 1))
            case 8:
                remainder = build("modulo", build("round", self.number(depth - 1)), _constant(3))
                return self._table(remainder, (0, 1, 2), (4, 0, -2, 0.5))
            case 9 if depth > 1:
                return self._table(self.text(depth - 1), self.words, (0, 1, 2, 3))
            case 10 | 11 | 12:
                return build("selector_width", self.selector(depth - 1))
            case 13:
                return build(
                    "aggregate", self.unique(depth - 1), self.number(depth - 1), default=self._default()
                )
            case 14:
                chosen = build("best", self.selector(depth - 1), self.number(depth - 1))
                return build("aggregate", chosen, self.number(depth - 1), default=self._default())
            case _:
                return build(
                    "aggregate",
                    self.selector(depth - 1),
                    self.number(depth - 1),
                    default=self._default(),
                )

    def _default(self) -> Atom:
        return self.draw.choice((0, 0, 1, -2, 2.5))

    def _table(self, node: Node, keys: object, values: tuple[Atom, ...]) -> Node:
        assert isinstance(keys, (list, tuple))
        table = {key: self.draw.choice(values) for key in keys}
        return build("lookup", node, table=canonical_table(table))

    # Strings ------------------------------------------------------------------------------------

    def _text(self, depth: int) -> Node:
        draw = self.draw
        match draw.randrange(8 if depth else 2):
            case 0:
                return _constant(draw.choice(self.words))
            case 1 | 2 if self.strings:
                return TOKENS
            case 3 if depth > 1:
                return self._table(self.text(depth - 1), self.words, tuple(self.words))
            case 1 | 2 | 3 | 4:
                remainder = build(
                    "modulo", build("round", self.number(max(depth - 1, 0))), _constant(3)
                )
                return self._table(remainder, (0, 1, 2), tuple(self.words))
            case 5:
                return build(
                    "if_else", self.truth(depth - 1), self.text(depth - 1), self.text(depth - 1)
                )
            case _:
                default = draw.choice(self.words)
                return build("aggregate", self.unique(depth - 1), self.text(depth - 1), default=default)

    # Truths -------------------------------------------------------------------------------------

    def _truth(self, depth: int) -> Node:
        draw = self.draw
        below = max(depth - 1, 0)
        match draw.randrange(9 if depth else 3):
            case 0 | 1:
                return build(draw.choice(_COMPARISONS), self.number(below), self.number(0))
            case 2:
                values = canonical_set(draw.sample((0, 1, 2, 3, 0.5), 2))
                return build("member", self.number(below), values=values)
            case 3:
                return build(draw.choice(_COMPARISONS), self.text(below), self.text(below))
            case 4:
                return build(
                    "member", self.text(below), values=canonical_set(draw.sample(self.words, 3))
                )
            case 5:
                return build(draw.choice(("and", "or")), self.truth(below), self.truth(below))
            case 6:
                return build("not", self.truth(below))
            case 7:
                return build("aggregate", self.unique(below), self.truth(below), default=False)
            case _:
                return build(draw.choice(_COMPARISONS), self.number(below), self.number(below))

    # Selectors ----------------------------------------------------------------------------------

    def selector(self, depth: int, formulas: int = 2) -> Node:
        draw = self.draw
        match draw.randrange(10 if formulas else 5):
            case 0 | 1:
                return self._compared(INDICES, self.number(depth))
            case 2 if depth or self.strings:
                return self._compared(self.text(depth), self.text(depth))
            case 2 | 3 | 4:
                return self._compared(self.number(depth), self.number(depth))
            case 5 | 6:
                parts = self.selector(depth, formulas - 1), self.selector(0, formulas - 1)
                return build("selector_and", *parts)
            case 7:
                parts = self.selector(depth, formulas - 1), self.selector(0, formulas - 1)
                return build("selector_or", *parts)
            case 8:
                return build("selector_not", self.selector(depth, formulas - 1))
            case _:
                return build("best", self.selector(depth, formulas - 1), self.number(depth))

    def unique(self, depth: int) -> Node:
        """At most one key for each query: by its position, or the first or last of the best."""
        if self.draw.random() < 0.5:
            return build("select", INDICES, self.number(depth), predicate="==")
        last = self.draw.choice((INDICES, build("negate", INDICES)))
        return build("best", self.selector(depth), last)

    def _compared(self, keys: Node, queries: Node) -> Node:
        return build("select", keys, queries, predicate=self.draw.choice(_PREDICATES))
