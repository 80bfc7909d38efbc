"""Widths as sums of widths: what no head scores at once, several may, and a sum is free.

- |a or b| = |a| + |b| − |a and b|; nothing is in both if they compare the same two s-ops otherwise.
- Keys u + v whose order is that of u first and then of v, such as tokens + indices/n, are counted by
  two heads: those of smaller u, and those of the same u and smaller v. u and v take few values each,
  their sum as many as both together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise, product

from locum.compiler.program.conditions import conditions
from locum.compiler.program.value_tables import distinct, each, meaning
from locum.compiler.program.values import Values
from locum.graph import Node, build

#: Pairs of values whose order is looked at.
MAX_PAIRS = 2**16
#: How two s-ops may compare, by predicate.
_HOLDS = {"<": "<", "<=": "<=", "==": "=", "!=": "<>", ">=": ">=", ">": ">"}
#: What decides where the first parts are different.
_STRICT = {"<": "<", "<=": "<", ">": ">", ">=": ">"}


def split(selector: Node, values: Values) -> list[tuple[Node, int]] | None:
    """Return selectors with signs whose widths add up to that of this one, or None.

    >>> from locum import indices, select, tokens
    >>> less, same = select(tokens, tokens, "<"), select(tokens, tokens, "==")
    >>> from locum.compiler.scoring.selectors import Selectors
    >>> from locum.compiler.target import Target
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
        parts = _alternatives(condition)
        disjoint = False
        if parts is None:
            parts = _by_parts(condition, values)
            disjoint = True
        if parts is None:
            continue
        first, second = (_conjunction([part, *rest]) for part in parts)
        if disjoint or _exclude(*parts):
            return [(first, 1), (second, 1)]
        return [(first, 1), (second, 1), (_conjunction([*parts, *rest]), -1)]
    return None


def _conjunction(parts: Sequence[Node]) -> Node:
    return reduce(lambda a, b: build("selector_and", a, b), parts)


def _alternatives(condition: Node) -> tuple[Node, Node] | None:
    """Return the two selectors of which one has to hold."""
    if condition.op == "selector_or":
        return condition.inputs[0], condition.inputs[1]
    if condition.op == "selector_not" and condition.inputs[0].op == "selector_and":
        a, b = condition.inputs[0].inputs
        return build("selector_not", a), build("selector_not", b)
    return None


def _exclude(one: Node, other: Node) -> bool:
    """Return whether two conditions compare the same s-ops in mutually exclusive ways."""
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
    """Return keys of smaller first part, and those of the same one and smaller second part."""
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


def turned_predicate(predicate: str, sign: int) -> str:
    """Return the predicate of numbers whose order is turned around, if the sign is −1."""
    if sign > 0:
        return predicate
    return predicate.translate(str.maketrans("<>", "><"))


def _order(summed: Node, first: Node, second: Node, values: Values) -> tuple[int, int] | None:
    """Return whether the sum rises (1) or falls (−1) with its first part, then with its second."""
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
