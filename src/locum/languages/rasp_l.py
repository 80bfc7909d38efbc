"""Provide RASP-L as functions of s-ops.

RASP-L is a part of RASP whose short programs transformers are conjectured to learn.

The selectors of :func:`select` and of the functions that build on it are causal: a position can read
itself and earlier positions. Positions may be compared, and constants may be added to them or
subtracted from them. :func:`require` rejects other arithmetic on positions, except minima, maxima and
the outermost operation of the scores of ``best``. A program in *next-token form* returns the next token
at every position. :class:`NextToken` uses such a program to generate tokens one by one.

>>> kqv(tokens, tokens, indices, equals, reduction="max")("abcab")
[0, 1, 2, 3, 4]
>>> sel_width(select(tokens, tokens, equals))("abcab")
[1, 1, 1, 2, 2]
>>> induct(tokens, tokens, shift_right(tokens, 1, default="-"))("abcab")
['-', 'a', 'b', '-', 'a']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from locum.errors import InputError
from locum.graph import Atom, Node, abbreviate, build, postorder
from locum.graph.node import node_of
from locum.graph.operations import OPERATIONS
from locum.rasp.handles import Selector, SOp
from locum.rasp.python import (
    aggregate,
    best,
    constant,
    floor,
    indices,
    selector_width,
    tokens,
    where,
)
from locum.rasp.python import select as select_any

#: Predicates of select, key first.
equals, leq, lt, geq, gt = "==", "<=", "<", ">=", ">"
#: The ways in which the values at selected keys are combined.
REDUCTIONS = ("mean", "max", "min")


def full(value: Atom) -> SOp:
    """Return an s-op that is ``value`` at every position."""
    return constant(value)


def select(k: SOp, q: SOp, pred: str) -> Selector:
    """Select the keys k, up to the position of the query q, for which k ``pred`` q holds."""
    return select_any(k, q, pred) & select_any(indices, indices, "<=")


def sel_width(selector: Selector) -> SOp:
    """Return the number of keys that each query selects."""
    return selector_width(selector)


def kqv(k: SOp, q: SOp, v: SOp, pred: str, default: Atom = 0, reduction: str = "mean") -> SOp:
    """Return the mean (truncated to an integer), maximum or minimum of the values at selected keys.

    A query that selects no key receives ``default``, which is also truncated for the mean.
    """
    selector = select(k, q, pred)
    if reduction == "mean":
        mean = aggregate(selector, v, default=default)
        return where(mean < 0, -floor(-mean), floor(mean))
    if reduction not in REDUCTIONS:
        raise InputError(f"expected one of {', '.join(REDUCTIONS)} as reduction, got {reduction!r}")
    return aggregate(best(selector, v if reduction == "max" else -v), v, default=default)


def shift_right(x: SOp, n: int, default: Atom = 0) -> SOp:
    """Return the value ``n`` positions before the current one, or ``default`` if there is none."""
    if type(n) is not int or n < 0:
        raise InputError(f"expected a distance of 0 or more, got {n!r}; RASP-L does not look ahead")
    return aggregate(select(indices, indices - n, equals), x, default=default)


def cumsum(condition: SOp) -> SOp:
    """Count the positions up to the current one where a condition holds."""
    return sel_width(select(condition, full(True), equals))


def has_seen(x: SOp, q: SOp) -> SOp:
    """Return whether ``x`` is equal to ``q`` at some position up to the current one."""
    return sel_width(select(x, q, equals)) > 0


def firsts(x: SOp, q: SOp, default: int = -1) -> SOp:
    """Return the first position, up to the current one, at which ``x`` equals ``q``, or ``default``."""
    return aggregate(best(select(x, q, equals), -indices), indices, default=default)


def lasts(x: SOp, q: SOp, default: int = -1) -> SOp:
    """Return the last position, up to the current one, at which ``x`` equals ``q``, or ``default``."""
    return aggregate(best(select(x, q, equals), indices), indices, default=default)


def index_select(x: SOp, index: SOp, default: Atom = 0) -> SOp:
    """Return the value of ``x`` at position ``index``, or ``default`` if this position is not visible.

    Only the positions up to the current one are visible.
    """
    return aggregate(select(indices, index, equals), x, default=default)


def induct(k: SOp, q: SOp, v: SOp, default: Atom = 0) -> SOp:
    """Return ``v`` at the first position up to the current one where ``k`` equals ``q``, or
    ``default``.

    This is an induction head that uses the first match.
    """
    return aggregate(best(select(k, q, equals), -indices), v, default=default)


def induct_last(k: SOp, q: SOp, v: SOp, default: Atom = 0) -> SOp:
    """Return ``v`` at the last position up to the current one where ``k`` equals ``q``, or
    ``default``.
    """
    return aggregate(best(select(k, q, equals), indices), v, default=default)


def argmax(x: SOp) -> SOp:
    """Return the first position, up to the current one, at which ``x`` is largest."""
    greatest = aggregate(best(select(indices, indices, leq), x), x, default=0)
    return firsts(x, greatest)


# Validation ------------------------------------------------------------------------------------


class Problem(NamedTuple):
    """A part of a program that RASP-L does not support, with a description and an alternative."""

    what: str
    part: str
    instead: str


def find_problems(program: SOp | Selector) -> list[Problem]:
    """Return the parts of a program that RASP-L does not support.

    >>> [problem.part for problem in find_problems(indices % 2 + indices * 3)]
    ['indices % 2', 'indices * 3']
    """
    root = node_of(program)
    scores = {node.inputs[1] for node in postorder(root) if node.op == "best"}
    positions: set[Node] = set()
    found: dict[Problem, None] = {}

    def note(what: str, node: Node, instead: str) -> None:
        found[Problem(what, abbreviate(node), instead)] = None

    for node in postorder(root):
        if node.op == "length":
            note("the length of the input, which prefixes do not determine", node, "indices + 1")
        if node.op in ("family", "sum_over"):
            note("a family of heads", node, "separate heads")
        if node.op in ("aggregate", "selector_width", "best") and not _is_causal(node.inputs[0]):
            note("a selector that may look ahead", node.inputs[0], "rasp_l.select")
        if _is_position(node, positions):
            positions.add(node)
        elif node not in scores and _computes(node) and any(i in positions for i in node.inputs):
            note(f"arithmetic on positions ({node.op})", node, "comparisons, or indices ± a constant")
    return list(found)


def require(program: SOp | Selector) -> None:
    """Raise :class:`InputError` if a program is not RASP-L.

    The error quotes the first unsupported part of the program, and states the reason.

    >>> require(indices % 2)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    locum.errors.InputError: not RASP-L: arithmetic on positions (modulo), in indices % 2; try ...
    """
    for what, part, instead in find_problems(program):
        raise InputError(f"not RASP-L: {what}, in {part}; try {instead}")


def _is_position(node: Node, positions: set[Node]) -> bool:
    """Return whether a value may be a position.

    The position may be shifted by a constant, moved by attention, or chosen by a condition, a minimum
    or a maximum.
    """
    if node.op == "indices":
        return True
    known = [part in positions for part in node.inputs]
    match node.op:
        case "add" | "subtract":
            other = node.inputs[1 if known[0] else 0]
            return any(known) and other.op == "constant" and not (node.op == "subtract" and known[1])
        case "aggregate":
            return known[1]
        case "if_else":
            return known[1] or known[2]
        case "minimum" | "maximum":
            return any(known)
        case _:
            return False


def _computes(node: Node) -> bool:
    return OPERATIONS[node.op].group in ("arithmetic", "function")


def _is_causal(selector: Node) -> bool:
    """Return whether a necessary condition of a selector excludes positions after the query."""
    at = build("indices")
    stack = [selector]
    while stack:
        node = stack.pop()
        if node.op == "selector_and":
            stack.extend(node.inputs)
        elif node.op == "best":
            stack.append(node.inputs[0])
        elif node.op == "select" and node.inputs[0] is at:
            query, predicate = node.inputs[1], node.attributes["predicate"]
            if query is at and predicate in ("<", "<=", "=="):
                return True
            earlier = query.op == "subtract" and query.inputs[0] is at
            if earlier and predicate in ("==", "<", "<="):
                shift = query.inputs[1].attributes.get("value")
                if isinstance(shift, int) and shift >= 0:
                    return True
    return False


# Next-token programs --------------------------------------------------------------------------------


@dataclass(frozen=True)
class NextToken:
    """A program that returns the next token at every position, and the token that ends its output."""

    name: str
    sop: SOp
    end: Atom

    def __post_init__(self) -> None:
        require(self.sop)

    def next(self, sequence: Sequence[Any]) -> Any:
        """Return the next token after ``sequence``."""
        return self.sop(list(sequence))[-1]

    def generate(self, prompt: Sequence[Any], most: int = 256) -> list[Any]:
        """Return the tokens generated after a prompt, without the end token.

        :class:`InputError` is raised if the end token does not occur within ``most`` tokens.
        """
        sequence = list(prompt)
        for _ in range(most):
            token = self.next(sequence)
            if token == self.end:
                return sequence[len(prompt) :]
            sequence.append(token)
        raise InputError(f"{self.name}: no end within {most} tokens")


#: Tokens of the published programs: begin, separator and end; even and odd; plus and equals.
SOS, SEP, EOS = -1, -2, -3
EVEN, ODD = -4, -5
PLUS, EQ = -6, -7
#: Index hints are the tokens from this number on, in order.
HINTS = 100


def copy() -> NextToken:
    """Return a program that copies distinct tokens: SOS x₁ … xₙ SEP → x₁ … xₙ.

    At each step, the program finds the first occurrence of the last token, and returns the token after
    it. If the last token is SEP, the program returns the token after SOS. After xₙ, it returns EOS.
    """
    before = shift_right(tokens, 1, default=EOS)
    last = where(tokens == SEP, SOS, tokens)
    following = induct(before, last, tokens, default=EOS)
    return NextToken("copy", where(following == SEP, EOS, following), EOS)


def reverse() -> NextToken:
    """Return a program that reverses distinct tokens: SOS x₁ … xₙ SEP → xₙ … x₁.

    At each step, the program finds the first occurrence of the last token and returns the token before
    it. After x₁, it returns EOS.
    """
    before = shift_right(tokens, 1, default=EOS)
    preceding = induct(tokens, tokens, before, default=EOS)
    return NextToken("reverse", where(preceding == SOS, EOS, preceding), EOS)


def count_up() -> NextToken:
    """Return a program that counts from a to b: SOS a b → a, a + 1, …, b."""
    start, end = (index_select(tokens, full(place)) for place in (1, 2))
    more = where(tokens == end, EOS, tokens + 1)
    return NextToken("count", where(indices == 2, start, more), EOS)


def mode() -> SOp:
    """Return an s-op that computes the most frequent token up to each position.

    If several tokens are most frequent, the result is the first that reached this frequency.
    """
    seen = sel_width(select(tokens, tokens, equals))
    return index_select(tokens, argmax(seen))


def parity() -> NextToken:
    """Return a program that maps ``hint bit hint bit … SEP`` to the hint of each 1 and the parity so
    far.

    The output is a scratchpad with index hints: the hint of the next 1 is the smallest hint of a 1
    above the last hint.
    """
    prompt = ~has_seen(tokens, full(SEP))
    one = prompt & (tokens == 1)
    hint = shift_right(tokens, 1)
    marked = where(one, hint, -1)
    last_hint = where(tokens == SEP, 0, shift_right(tokens, 1))
    following = kqv(marked, last_hint, marked, gt, default=EOS, reduction="min")
    is_sign = (tokens == EVEN) | (tokens == ODD)
    written = select(is_sign, full(True), equals)
    previous = aggregate(best(written, indices), tokens, default=EVEN)
    sign = where(previous == ODD, EVEN, ODD)
    is_hint = (tokens >= HINTS) & ~prompt
    return NextToken("parity", where(is_hint, sign, following), EOS)


def addition() -> NextToken:
    """Return a program that adds two numbers with index hints, the units first.

    The program maps hint digit … PLUS hint digit … EQ to hint digit … of the sum. Both numbers have the
    same hints and end in a 0. The carry into a digit is the carry of the nearest lower digit whose sum
    is not 9.
    """
    hint = shift_right(tokens, 1)
    first = ~has_seen(tokens, full(PLUS))
    second = has_seen(tokens, full(PLUS)) & ~has_seen(tokens, full(EQ))
    is_digit = (tokens >= 0) & (tokens < HINTS)
    of_first = where(first & is_digit, hint, -1)
    of_second = where(second & is_digit, hint, -1)
    sums = tokens + induct(of_first, hint, tokens)  # correct at the digits of the second number
    deciding = where(second & is_digit & (sums != 9), hint, -1)
    below = kqv(where(deciding < 0, 10**6, deciding), tokens, deciding, lt, -1, reduction="max")
    carry = where(below < 0, 0, where(induct(of_second, below, sums) > 9, 1, 0))
    total = induct(of_second, tokens, sums) + carry
    digit = where(total > 9, total - 10, total)
    last_hint = where(tokens == EQ, 0, hint)
    following = kqv(of_first, last_hint, of_first, gt, default=EOS, reduction="min")
    return NextToken("addition", where(tokens >= HINTS, digit, following), EOS)
