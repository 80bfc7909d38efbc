"""RASP-L: the part of RASP that learning is conjectured to find, as functions of s-ops.

Everything is causal: a position sees itself and what stands before it. Positions may be compared, and
moved on by a constant, but not computed with: :func:`require` refuses the rest, by the part that does
it. A program in *next-token form* says at every position which token comes next; :class:`NextToken`
generates with it, token by token.

>>> kqv(tokens, tokens, indices, equals, reduction="max")("abcab")
[0, 1, 2, 3, 4]
>>> sel_width(select(tokens, tokens, equals))("abcab")
[1, 1, 1, 2, 2]
>>> induct(tokens, tokens, shift_right(tokens, 1, default="-"))("abcab")
['-', 'a', 'b', '-', 'a']
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

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
#: How the selected values become one.
REDUCTIONS = ("mean", "max", "min")


def full(value: Atom) -> SOp:
    """Return ``value`` at every position."""
    return constant(value)


def select(k: SOp, q: SOp, pred: str) -> Selector:
    """Select the keys k, not behind the query, with k ``pred`` q."""
    return select_any(k, q, pred) & select_any(indices, indices, "<=")


def sel_width(selector: Selector) -> SOp:
    """Count the selected keys."""
    return selector_width(selector)


def kqv(k: SOp, q: SOp, v: SOp, pred: str, default: Atom = 0, reduction: str = "mean") -> SOp:
    """Attend: the mean (cut to an integer), the maximum or the minimum of the selected values."""
    selector = select(k, q, pred)
    if reduction == "mean":
        mean = aggregate(selector, v, default=default)
        return where(mean < 0, -floor(-mean), floor(mean))
    if reduction not in REDUCTIONS:
        raise InputError(f"expected one of {', '.join(REDUCTIONS)} as reduction, got {reduction!r}")
    return aggregate(best(selector, v if reduction == "max" else -v), v, default=default)


def shift_right(x: SOp, n: int, default: Atom = 0) -> SOp:
    """Return what stood n positions before."""
    if type(n) is not int or n < 0:
        raise InputError(f"expected a distance of 0 or more, got {n!r}; RASP-L does not look ahead")
    return aggregate(select(indices, indices - n, equals), x, default=default)


def cumsum(condition: SOp) -> SOp:
    """Count the positions up to here where a condition holds."""
    return sel_width(select(condition, full(True), equals))


def has_seen(x: SOp, q: SOp) -> SOp:
    """Return whether the value q has occurred in x up to here."""
    return sel_width(select(x, q, equals)) > 0


def firsts(x: SOp, q: SOp, default: int = -1) -> SOp:
    """Return the first position at which x has the value q; ``default`` where there is none."""
    return aggregate(best(select(x, q, equals), -indices), indices, default=default)


def lasts(x: SOp, q: SOp, default: int = -1) -> SOp:
    """Return the last position up to here at which x has the value q."""
    return aggregate(best(select(x, q, equals), indices), indices, default=default)


def index_select(x: SOp, index: SOp, default: Atom = 0) -> SOp:
    """Return x at a position that stands not behind this one."""
    return aggregate(select(indices, index, equals), x, default=default)


def induct(k: SOp, q: SOp, v: SOp, default: Atom = 0) -> SOp:
    """Return v where k has the value q, the first time: an induction head by its first match."""
    return aggregate(best(select(k, q, equals), -indices), v, default=default)


def induct_last(k: SOp, q: SOp, v: SOp, default: Atom = 0) -> SOp:
    """Return v where k has the value q, the last time up to here."""
    return aggregate(best(select(k, q, equals), indices), v, default=default)


def argmax(x: SOp) -> SOp:
    """Return the first position up to here at which x is greatest."""
    greatest = aggregate(best(select(indices, indices, leq), x), x, default=0)
    return firsts(x, greatest)


# What is allowed ------------------------------------------------------------------------------------


def require(program: SOp | Selector) -> None:
    """Refuse a program that is not RASP-L, by the part that is not and why.

    >>> require(indices % 2)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    locum.errors.InputError: not RASP-L: arithmetic on positions (modulo), in indices % 2; try ...
    """
    root = node_of(program)
    scores = {node.inputs[1] for node in postorder(root) if node.op == "best"}
    positions: set[Node] = set()
    for node in postorder(root):
        if node.op == "length":
            _refuse("the length of the input, which no prefix knows", node, "indices + 1")
        if node.op in ("family", "sum_over"):
            _refuse("a family of heads", node, "heads of their own")
        if node.op in ("aggregate", "selector_width", "best") and not _is_causal(node.inputs[0]):
            _refuse("a selector that may look ahead", node.inputs[0], "rasp_l.select")
        if _is_position(node, positions):
            positions.add(node)
        elif node not in scores and _computes(node) and any(i in positions for i in node.inputs):
            _refuse(
                f"arithmetic on positions ({node.op})", node, "comparisons, or indices ± a constant"
            )


def _refuse(what: str, node: Node, instead: str) -> None:
    raise InputError(f"not RASP-L: {what}, in {abbreviate(node)}; try {instead}")


def _is_position(node: Node, positions: set[Node]) -> bool:
    """Return whether the value is a position, moved on by a constant or moved by attention."""
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
    """Return whether some condition that must hold leaves out what is behind the query."""
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
    """A program that says at every position which token comes next."""

    name: str
    sop: SOp
    end: Atom

    def __post_init__(self) -> None:
        require(self.sop)

    def next(self, sequence: Sequence[Any]) -> Any:
        """Return the token that comes next."""
        return self.sop(list(sequence))[-1]

    def generate(self, prompt: Sequence[Any], most: int = 256) -> list[Any]:
        """Return what is generated behind a prompt, up to the end token and without it."""
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
#: Index hints are tokens from here on, in order.
HINTS = 100


def copy() -> NextToken:
    """Copy different tokens, SOS x₁ … xₙ SEP → x₁ … xₙ: what followed the last token in the prompt."""
    before = shift_right(tokens, 1, default=EOS)
    last = where(tokens == SEP, SOS, tokens)
    following = induct(before, last, tokens, default=EOS)
    return NextToken("copy", where(following == SEP, EOS, following), EOS)


def reverse() -> NextToken:
    """Reverse different tokens, SOS x₁ … xₙ SEP → xₙ … x₁: what stood before the last token."""
    before = shift_right(tokens, 1, default=EOS)
    preceding = induct(tokens, tokens, before, default=EOS)
    return NextToken("reverse", where(preceding == SOS, EOS, preceding), EOS)


def count_up() -> NextToken:
    """Count from a to b: SOS a b → a, a + 1, …, b."""
    start, end = (index_select(tokens, full(place)) for place in (1, 2))
    more = where(tokens == end, EOS, tokens + 1)
    return NextToken("count", where(indices == 2, start, more), EOS)


def mode() -> SOp:
    """Return at each position the most frequent token up to here; of several, the first to be so."""
    seen = sel_width(select(tokens, tokens, equals))
    return index_select(tokens, argmax(seen))


def parity() -> NextToken:
    """Hint bit hint bit … SEP → the hint of each 1, with the parity so far behind it.

    A scratchpad with index hints: the hint of the next 1 is the least one greater than the last hint.
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
    """Hint digit … PLUS hint digit … EQ → hint digit … of the sum, the units first.

    Both numbers have the same hints and end in a 0. The carry into a digit is that of the nearest digit
    below whose sum is not 9.
    """
    hint = shift_right(tokens, 1)
    first = ~has_seen(tokens, full(PLUS))
    second = has_seen(tokens, full(PLUS)) & ~has_seen(tokens, full(EQ))
    is_digit = (tokens >= 0) & (tokens < HINTS)
    of_first = where(first & is_digit, hint, -1)
    of_second = where(second & is_digit, hint, -1)
    sums = tokens + induct(of_first, hint, tokens)  # right at the digits of the second number
    deciding = where(second & is_digit & (sums != 9), hint, -1)
    below = kqv(where(deciding < 0, 10**6, deciding), tokens, deciding, lt, -1, reduction="max")
    carry = where(below < 0, 0, where(induct(of_second, below, sums) > 9, 1, 0))
    total = induct(of_second, tokens, sums) + carry
    digit = where(total > 9, total - 10, total)
    last_hint = where(tokens == EQ, 0, hint)
    following = kqv(of_first, last_hint, of_first, gt, default=EOS, reduction="min")
    return NextToken("addition", where(tokens >= HINTS, digit, following), EOS)


#: The published programs by name.
PROGRAMS: dict[str, Callable[[], NextToken | SOp]] = {
    "copy": copy,
    "reverse": reverse,
    "count": count_up,
    "mode": mode,
    "parity": parity,
    "addition": addition,
}
