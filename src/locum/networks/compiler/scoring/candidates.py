"""Copy candidate keys to a query, and split a width into a sum of widths.

- :class:`EveryKey` copies all keys to every position. For small integers, including ranks of finite
  values, **one** uniform head is enough: each position writes its value to a separate slot, and the
  head computes the means. The mean times the number of keys, rounded, is the value. For other values,
  one head per position fetches the value unchanged. If a separation is declared and feed-forwards are
  symbolic, the uniform head also moves real numbers. Functions of the position become constants.
- :class:`FewKeys` copies the few keys to which its position restricts each query. Head t copies the
  t-th key.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from locum.errors import CompileError
from locum.graph import Atom, Node, abbreviate, build
from locum.graph.definitions import everywhere, up_to_here
from locum.graph.operations import constant
from locum.networks.compiler.program.sources import conditions, distinct, each, meaning
from locum.networks.compiler.program.values import Values
from locum.networks.compiler.scoring.scores import at_positions, looked_up, whole_numbers
from locum.networks.compiler.target import Target

#: Maximum number of keys per query for :class:`FewKeys`.
MAX_FEW = 16


@dataclass(frozen=True)
class Brought:
    """S-ops that copy values to every position, one s-op for each candidate key.

    ``values`` contains the possible values of some new s-ops.
    """

    nodes: list[Node]
    values: Mapping[Node, tuple[Atom, ...]] = field(default_factory=dict)


class Candidates(ABC):
    """The keys that a query may select, in a fixed order."""

    def __init__(self, target: Target) -> None:
        self.target = target

    @abstractmethod
    def brought(self, node: Node, values: Values) -> Brought:
        """Return s-ops that copy the value of ``node`` at each candidate to every position."""

    @abstractmethod
    def only_present(self, row: list[Node]) -> list[Node]:
        """Return the conditions of ``row``, restricted to candidates that exist in the input."""


class EveryKey(Candidates):
    """All positions as candidates; one instance per selector, since it caches copied values."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        #: For each position, an s-op that is positive if the input has this position and otherwise 0.
        #: Empty if there are no such s-ops, for example before the keys are copied.
        self._there: list[Node] = []

    def brought(self, node: Node, values: Values) -> Brought:
        """Return s-ops that copy the value of ``node`` at each position to every position."""
        places = range(self.target.longest)
        at = build("indices")
        if values.depends_on(node, "indices"):
            return Brought([constant(value) for value in values.at_positions(node)])
        finite = values.finite(node)
        if finite is not None and not finite:
            raise CompileError("the s-op is undefined for every input", abbreviate(node))
        whole = finite is not None and whole_numbers(finite)
        if whole or (self.target.separation is not None and self.target.feed_forward == "exact"):
            # A causal mean includes the position of the query and all earlier positions.
            selector = up_to_here() if self.target.causal else everywhere()
            count = build("add", at, constant(1)) if self.target.causal else build("length")
            # Values are shifted to at least 1, so that 0 means a position after the end.
            more = 0
            if finite is not None and whole and not self.target.fixed and not self.target.causal:
                more = 1 - min(v for v in finite if isinstance(v, int))
            moved = build("add", node, constant(more)) if more else node
            shares = [
                build(
                    "aggregate",
                    selector,
                    build("if_else", build("equal", at, constant(place)), moved, constant(0)),
                    default=0,
                )
                for place in places
            ]
            sums = [build("multiply", count, share) for share in shares]
            if finite is None or not whole:
                return Brought(sums)
            rounded = [build("round", total) for total in sums]
            numbers = distinct((0, *(v + more for v in finite if isinstance(v, int))))
            if not self.target.fixed and not self.target.causal:
                self._there = self._there or rounded
            back = [build("subtract", here, constant(more)) for here in rounded] if more else rounded
            return Brought(back, dict.fromkeys(rounded, numbers))
        selectors = [build("select", at, constant(place), predicate="==") for place in places]
        if self.target.causal:
            selectors = [build("selector_and", each, up_to_here()) for each in selectors]
        return Brought([build("aggregate", each, node, default=0) for each in selectors])

    def only_present(self, row: list[Node]) -> list[Node]:
        """Return the conditions of ``row``, each false for a key after the end of the input.

        In a decoder, the conditions are false for keys after the position of the query. In other
        networks for inputs of one length, they are unchanged.
        """
        if self.target.causal:
            at = build("indices")
            return [
                build("and", here, build("less_equal", constant(key), at))
                for key, here in enumerate(row)
            ]
        if self.target.fixed:
            return row
        if self._there:
            there = [build("greater", number, constant(0)) for number in self._there]
            return [build("and", here, key) for here, key in zip(row, there, strict=True)]
        length = build("length")
        return [
            build("and", here, build("less", constant(key), length)) for key, here in enumerate(row)
        ]


class FewKeys(Candidates):
    """For each query, the few keys that are true in ``pattern``."""

    def __init__(self, pattern: NDArray[np.bool_], target: Target) -> None:
        super().__init__(target)
        allowed = [np.flatnonzero(row).tolist() for row in pattern]
        #: For each candidate, its position for each query; −1 if a query has fewer candidates.
        self.places = [
            [keys[t] if t < len(keys) else -1 for keys in allowed]
            for t in range(max(map(len, allowed)))
        ]

    def brought(self, node: Node, values: Values) -> Brought:
        """Return s-ops that copy, to each position, the values of ``node`` at its candidates."""
        if values.depends_on(node, "indices"):
            at = values.at_positions(node)
            return Brought(
                [at_positions([at[max(place, 0)] for place in places]) for places in self.places]
            )
        keys = build("indices")
        return Brought(
            [
                build(
                    "aggregate",
                    build("select", keys, at_positions(places), predicate="=="),
                    node,
                    default=0,
                )
                for places in self.places
            ]
        )

    def only_present(self, row: list[Node]) -> list[Node]:
        """Return the conditions of ``row``, false for candidates that do not exist in the input."""
        present = []
        for here, places in zip(row, self.places, strict=True):
            if min(places) < 0:
                here = build("and", here, at_positions([place >= 0 for place in places]))
            if not self.target.fixed and not self.target.causal:
                here = build("and", here, build("less", at_positions(places), build("length")))
            present.append(here)
        return present


def few_keys(pattern: NDArray[np.bool_], target: Target) -> FewKeys | None:
    """Return the candidates that a pattern of positions allows; None if there are none or too many."""
    most = int(pattern.sum(axis=1).max(initial=0))
    if not 0 < most <= MAX_FEW or 2 * most > target.longest:
        return None
    return FewKeys(pattern, target)


#: Maximum number of pairs of values for which the order of their sums is examined.
MAX_PAIRS = 2**16
#: Minimum number of values for which comparisons are split into two digits.
MIN_DIGITS = 16
#: The relations (smaller, equal, greater) for which each predicate is true.
_HOLDS = {"<": "<", "<=": "<=", "==": "=", "!=": "<>", ">=": ">=", ">": ">"}
#: The predicate that compares the first parts of values, if these parts differ.
_STRICT = {"<": "<", "<=": "<", ">": ">", ">=": ">"}


def split(selector: Node, values: Values, *, by_digits: bool = True) -> list[tuple[Node, int]] | None:
    """Return pairs of a selector and a sign; the signed widths add up to the width of ``selector``.

    Return None if no way to split the selector is found. With ``by_digits``, order comparisons of many
    values are also split by the digits of their ranks.

    >>> from locum import indices, select, tokens
    >>> less, same = select(tokens, tokens, "<"), select(tokens, tokens, "==")
    >>> from locum.networks.compiler.scoring.scored_selectors import Selectors
    >>> from locum.networks.compiler.target import Target
    >>> values = Selectors(Target(length=3, vocabulary=[1, 2, 3])).values
    >>> parts = split((less | (same & select(indices, indices, "<"))).node, values)
    >>> [(part is less.node, sign) for part, sign in parts]
    [(True, 1), (False, 1)]
    >>> keys = (tokens + indices / 4).node
    >>> split(build("select", keys, keys, predicate="<"), values)[0]
    (<select: select(tokens, tokens, <)>, 1)
    """
    conjuncts = conditions(selector)
    for place, condition in enumerate(conjuncts):
        rest = conjuncts[:place] + conjuncts[place + 1 :]
        if condition.op == "select" and condition.predicate == "!=":
            equal = build("select", *condition.inputs, predicate="==")
            return [(_conjunction(rest or [everywhere()]), 1), (_conjunction([equal, *rest]), -1)]
        parts = _alternatives(condition)
        disjoint = False
        if parts is None:
            parts = _by_parts(condition, values)
            if parts is None and by_digits:
                parts = _by_digits(condition, values)
            disjoint = True
        if parts is None:
            continue
        known = next((part for part in parts if _of_positions(part, values)), None)
        if known is not None and not disjoint and not _exclude(*parts):
            other = parts[parts[0] is known]
            parts = known, _conjunction([other, _negation(known)])
            disjoint = True
        first, second = (_conjunction([part, *rest]) for part in parts)
        if disjoint or _exclude(*parts):
            return [(first, 1), (second, 1)]
        return [(first, 1), (second, 1), (_conjunction([*parts, *rest]), -1)]
    return None


def _conjunction(parts: Sequence[Node]) -> Node:
    return reduce(lambda a, b: build("selector_and", a, b), parts)


def _negation(selector: Node) -> Node:
    return _conjunction(conditions(build("selector_not", selector)))


def _alternatives(condition: Node) -> tuple[Node, Node] | None:
    """Return the two selectors of a disjunction or negated conjunction; None for other selectors."""
    if condition.op == "selector_or":
        return condition.inputs[0], condition.inputs[1]
    if condition.op == "selector_not" and condition.inputs[0].op == "selector_and":
        a, b = condition.inputs[0].inputs
        return _negation(a), _negation(b)
    return None


def _of_positions(condition: Node, values: Values) -> bool:
    """Return whether a condition is a comparison of two functions of the position."""
    return condition.op == "select" and all(
        values.depends_on(side, "indices") for side in condition.inputs
    )


def _exclude(one: Node, other: Node) -> bool:
    """Return whether two conditions contain comparisons of the same s-ops that cannot both be true."""
    ways: dict[tuple[Node, ...], list[set[str]]] = {}
    for condition in conditions(one):
        if condition.op == "select":
            ways.setdefault(condition.inputs, []).append(set(_ways(condition)))
    return any(
        not way & set(_ways(condition))
        for condition in conditions(other)
        if condition.op == "select"
        for way in ways.get(condition.inputs, ())
    )


def _ways(condition: Node) -> str:
    return _HOLDS[condition.predicate]


def _by_parts(condition: Node, values: Values) -> tuple[Node, Node] | None:
    """Split a comparison of a sum of two s-ops with itself into two disjoint selectors, or return None.

    One part of the sum, or of a difference, must decide the order unless it is equal at both positions.
    The first selector compares this part. The second selects keys with an equal value of this part, by
    the other part.
    """
    if condition.op != "select" or condition.inputs[0] is not condition.inputs[1]:
        return None
    predicate, summed = condition.predicate, condition.inputs[0]
    if predicate not in _STRICT or summed.op not in ("add", "subtract"):
        return None
    for first, second in (summed.inputs, summed.inputs[::-1]):
        turned = _order(summed, first, second, values)
        if turned is None:
            continue
        decides, breaks = (
            turned_predicate(way, sign)
            for way, sign in zip((_STRICT[predicate], predicate), turned, strict=True)
        )
        same = build("select", first, first, predicate="==")
        less = build("select", first, first, predicate=decides)
        return less, build("selector_and", same, build("select", second, second, predicate=breaks))
    return None


def _by_digits(condition: Node, values: Values) -> tuple[Node, Node] | None:
    """Split an order comparison into two disjoint selectors by the digits of ranks, or return None.

    The first selector compares the first digit. The second selects keys with an equal first digit, by
    the second digit. The base is the square root of the number of values, rounded up.
    """
    if condition.op != "select" or condition.predicate not in _STRICT:
        return None
    domains = [values.finite(side) for side in condition.inputs]
    listed = distinct(value for domain in domains for value in domain or ())
    strings = {isinstance(value, str) for value in listed}
    if None in domains or len(listed) < MIN_DIGITS or len(strings) > 1:
        return None
    base = math.isqrt(len(listed) - 1) + 1
    first, second = (
        [
            looked_up(side, {value: divmod(place, base)[digit] for place, value in enumerate(listed)})
            for side in condition.inputs
        ]
        for digit in (0, 1)
    )
    less = build("select", *first, predicate=_STRICT[condition.predicate])
    same = build("select", *first, predicate="==")
    return less, build("selector_and", same, build("select", *second, predicate=condition.predicate))


def turned_predicate(predicate: str, sign: int) -> str:
    """Return the predicate that is equivalent after both sides are multiplied by ``sign``."""
    if sign > 0:
        return predicate
    return predicate.translate(str.maketrans("<>", "><"))


def _order(summed: Node, first: Node, second: Node, values: Values) -> tuple[int, int] | None:
    """Return the directions in which a sum depends on its two parts: increasing (1) or decreasing (−1).

    The first part must dominate, so that sums are ordered lexicographically. Otherwise, return None.
    The result is also None for strings or too many values.
    """
    domains = [values.finite(part) for part in (first, second)]
    listed = [distinct(domain) for domain in domains if domain]
    if len(listed) < 2 or len(listed[0]) * len(listed[1]) > MAX_PAIRS:
        return None
    if any(isinstance(value, str) for domain in listed for value in domain):
        return None
    for turned in product((1, -1), repeat=2):
        ordered = [domain[::sign] for domain, sign in zip(listed, turned, strict=True)]
        pairs = list(product(*ordered))
        columns = [list(column) for column in zip(*pairs, strict=True)]
        if first is not summed.inputs[0]:
            columns.reverse()
        sums = each(meaning(summed), columns)
        if None not in sums and all(a < b for a, b in pairwise(sums)):  # type: ignore[operator]
            return turned[0], turned[1]
    return None
