"""Determine which keys a selector may select, without running the program on an input.

A selector of positions has a *pattern*, a boolean array [query, key]. For other selectors, the module
determines which keys are excluded by their positions. It also determines whether at most one key is
selected, and whether a query may select nothing. Values depend on patterns, since attention to one key
moves a value unchanged, whereas attention to several keys computes a mean. Patterns also depend on
values. Both are therefore computed on demand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import NDArray

from locum.errors import CompileError
from locum.graph import OPERATIONS, Atom, Node, Sort, postorder, sort_of
from locum.graph.atoms import LARGEST_EXACT
from locum.networks.compiler.compile_limits import check_time
from locum.networks.compiler.program.assumed_inputs import AssumedInputs
from locum.networks.compiler.program.sources import (
    MAX_POSITIONS,
    Pattern,
    conditions,
    evaluated,
    reflexive,
    select,
    selectors_of,
)
from locum.networks.compiler.program.values import MAX_ROWS, Values
from locum.networks.compiler.target import DOMAIN, Target


class Patterns:
    """Facts about the keys that the selectors of a program can select."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._assumed = AssumedInputs(target)
        self.values = Values(target, self, self._assumed.possible)
        self._patterns: dict[Node, Pattern | None] = {}
        self._widths: dict[Node, tuple[int, int]] = {}
        self._same: dict[Node, bool] = {}
        self._empty: dict[Node, bool] = {}

    def knowing(self, values: Mapping[Node, Sequence[Atom]]) -> Self:
        """Return a copy that also contains the possible values of new s-ops."""
        new = copy(self)
        new.values = self.values.knowing(values, new)
        new._patterns, new._empty = dict(self._patterns), dict(self._empty)
        new._widths = dict(self._widths)
        return new

    def pattern(self, selector: Node) -> Pattern | None:
        """Return the pattern [query, key] of a selector of positions; None for other selectors.

        The result is also None for ``best`` unless all inputs have the same length.
        """
        if selector not in self._patterns:
            for node in postorder(selector, into=lambda n: n not in self._patterns):
                if node.op == "select" or node.op.startswith("selector_") or node.op == "best":
                    self._patterns[node] = self._static(node)
        return self._patterns[selector]

    def _static(self, node: Node) -> Pattern | None:
        check_time(node)
        inputs = [self._patterns.get(i) for i in node.inputs]
        match node.op:
            case "select":
                if not all(self.values.depends_on(i, "indices") for i in node.inputs):
                    return None
                keys, queries = (list(self.values.at_positions(i)) for i in node.inputs)
                return select(keys, queries, node.predicate, node)
            case "selector_not":
                return None if inputs[0] is None else ~inputs[0]
            case "best":
                # The best key depends on the number of keys.
                if self.target.shortest < self.target.longest or inputs[0] is None:
                    return None
                if not self.values.depends_on(node.inputs[1], "indices"):
                    return None
                return DOMAIN.best(inputs[0], list(self.values.at_positions(node.inputs[1])))
            case "selector_and" | "selector_or":
                one, other = inputs
                if one is None or other is None:
                    return None
                return one & other if node.op == "selector_and" else one | other
            case _:
                return None

    def possible(self, selector: Node) -> Pattern:
        """Return the pairs [query, key] that a selector may select on some input.

        Only conditions on positions are used, so the result may contain more pairs.
        """
        allowed = np.ones((self.target.longest, self.target.longest), dtype=bool)
        stack = [selector]
        while stack:
            for condition in conditions(stack.pop()):
                pattern = self.pattern(condition)
                if pattern is not None:
                    allowed &= pattern
                elif condition.op == "best":
                    stack.append(condition.inputs[0])
        return allowed

    def possible_pairs(self, selector: Node) -> Pattern:
        """Return the pairs [query, key] that a selector may select, given the values at each position.

        This method is slower than :meth:`possible`, but may exclude more pairs. Examples are
        disjunctions, and comparisons of values that depend on both the token and the position.
        """
        pairs: dict[Node, Pattern] = {}
        for node in selectors_of(selector):
            parts = [pairs[i] for i in node.inputs if i in pairs]
            pattern = self.pattern(node)
            if pattern is not None:
                pairs[node] = pattern
            elif node.op == "select":
                pairs[node] = self._comparable_pairs(node)
            elif node.op == "selector_not":
                pairs[node] = ~self.certain(node.inputs[0])
            elif node.op == "best":
                (pairs[node],) = parts
            else:
                pairs[node] = parts[0] & parts[1] if node.op == "selector_and" else parts[0] | parts[1]
        return pairs[selector] & self.possible(selector)

    def _comparable_pairs(self, node: Node) -> Pattern:
        """Return the pairs [query, key] at which a comparison is true for some possible values.

        If the values are unknown, too many or not comparable, return all pairs.
        """
        check_time(node)
        unknown = np.ones((self.target.longest, self.target.longest), dtype=bool)
        at = [self.values.at_each_position(i) for i in node.inputs]
        keys, queries = (list(dict.fromkeys(v for row in rows for v in row)) for rows in at)
        listed = all(row for rows in at for row in rows)
        if not listed or len(keys) * len(queries) > MAX_POSITIONS:
            return unknown
        try:
            holds = select(keys, queries, node.predicate, node)
        except CompileError:
            return unknown
        key_rows, query_rows = (
            np.array([[value in row for value in values] for row in map(set, rows)])
            for rows, values in zip(at, (keys, queries), strict=True)
        )
        return np.asarray(query_rows @ holds @ key_rows.T)

    def certain(self, selector: Node) -> Pattern:
        """Return the pairs [query, key] that a selector selects on every input with both positions.

        Only conditions on positions are used, so the result may contain fewer pairs.
        """
        patterns: dict[Node, Pattern] = {}
        for node in selectors_of(selector):
            known = self.pattern(node)
            parts = [patterns[i] for i in node.inputs if i in patterns]
            if known is not None:
                patterns[node] = known
            elif node.op == "selector_and":
                patterns[node] = parts[0] & parts[1]
            elif node.op == "selector_or":
                patterns[node] = parts[0] | parts[1]
            else:
                patterns[node] = np.zeros((self.target.longest,) * 2, dtype=bool)
        return patterns[selector]

    def is_mask(self, pattern: Pattern) -> bool:
        """Return whether every query selects exactly its own and all earlier positions."""
        return bool((pattern == np.tri(len(pattern), dtype=bool)).all())

    def unique(self, selector: Node) -> bool:
        """Return whether each query is known to select at most one key on every input."""
        pattern = self.pattern(selector)
        if pattern is not None:
            return bool((pattern.sum(axis=1) <= 1).all())
        for condition in conditions(selector):
            pattern = self.pattern(condition)
            if pattern is not None and bool((pattern.sum(axis=1) <= 1).all()):
                return True
            equality = condition.op == "select" and condition.predicate == "=="
            if equality and self._different_everywhere(condition.inputs[0]):
                return True
            if condition.op == "best":
                inner, score = condition.inputs
                if self._different_everywhere(score) or self.unique(inner):
                    return True
        return self.widths(selector)[1] <= 1

    def widths(self, selector: Node) -> tuple[int, int]:
        """Return a lower and an upper bound on the number of keys that a query selects.

        The bounds are derived from the option ``inputs``. Without this option, and for real-valued
        tokens, they are 0 and the maximum length of an input.
        """
        if not self._assumed:
            return 0, self.target.longest
        if selector not in self._widths:
            conjuncts = conditions(selector)
            bounds = [self._token_counts(condition) for condition in conjuncts]
            least = bounds[0][0] if len(bounds) == 1 else 0
            self._widths[selector] = least, min(high for _, high in bounds)
        return self._widths[selector]

    def _token_counts(self, condition: Node) -> tuple[int, int]:
        """Return bounds on the number of keys that satisfy a condition on the tokens of the keys.

        If no bounds are known, return 0 and the maximum length of an input.
        """
        parts = selectors_of(condition)
        unknown = 0, self.target.longest
        leaves = [node for node in parts if node.op == "select"]
        tables = {node.inputs[0]: self.values.table(node.inputs[0]) for node in leaves}
        columns: dict[Node, Sequence[Atom]] = {}
        for key, table in tables.items():
            if table is None or any(source != "tokens" for source in table.sources):
                return unknown
            listed = [value for value in table.values if value is not None]
            if len(listed) < len(table.values):
                return unknown
            columns[key] = listed * len(self.values.domain("tokens")) if table.constant else listed
        queries = list(dict.fromkeys(node.inputs[1] for node in leaves))
        domains = [self.values.finite(query) or () for query in queries]
        if any(node.op == "best" for node in parts) or not 0 < math.prod(map(len, domains)) <= MAX_ROWS:
            return unknown
        rows = list(product(*domains))

        def leaf(node: Node, _: Sequence[Pattern]) -> Pattern:
            place = queries.index(node.inputs[1])
            at = [row[place] for row in rows]
            return select(columns[node.inputs[0]], at, node.predicate, node)

        try:
            pattern = np.unique(evaluated(condition, leaf), axis=0)
        except CompileError:
            return unknown
        counts = [self._assumed.counts(frozenset(np.flatnonzero(row).tolist())) for row in pattern]
        return min(low for low, _ in counts), max(high for _, high in counts)

    def _different_everywhere(self, node: Node) -> bool:
        """Return whether an s-op is known to have a different value at every position of an input."""
        while True:
            slope = self.values.affine(node)
            if slope is not None:
                return slope.indices != 0
            if self.values.depends_on(node, "indices"):
                at = self.values.at_positions(node)
                return len(set(at)) == len(at)
            if self._is_rank(node) or self._tells_position(node):
                return True
            # Terms that are equal at all positions are irrelevant in an exact sum.
            varying = [i for i in node.inputs if not self._same_everywhere(i)]
            if node.op not in ("add", "subtract") or len(varying) != 1 or not self._is_whole(node):
                return False
            (node,) = varying

    def _tells_position(self, node: Node) -> bool:
        """Return whether it is known that no value occurs at two positions.

        An example is ``tokens + indices / 100`` for integer tokens and at most 100 positions.
        """
        table = self.values.table(node)
        if table is None or "indices" not in table.sources or len(table.values) > MAX_ROWS:
            return False
        sizes = [len(self.values.domain(source)) for source in table.sources]
        (axis,) = (i for i, source in enumerate(table.sources) if source == "indices")
        positions = np.indices(sizes)[axis].reshape(-1).tolist()
        at: dict[Atom | None, int] = {}
        return all(at.setdefault(v, p) == p for v, p in zip(table.values, positions, strict=True))

    def _is_rank(self, node: Node) -> bool:
        """Return whether an s-op is known to be the rank of the position in a total order.

        The rank is the number of positions before or after the position, with or without the position
        itself.
        """
        if node.op == "selector_width":
            return self._is_total_order(node.inputs[0])
        if node.op != "add" or any(i.op != "selector_width" for i in node.inputs):
            return False
        one, other = (i.inputs[0] for i in node.inputs)
        return self._is_lexicographic(one, other) or self._is_lexicographic(other, one)

    def _is_total_order(self, selector: Node) -> bool:
        """Return whether a selector is known to be a total order of the positions.

        In such an order, exactly one of any two different positions precedes the other.
        """
        if selector.op == "selector_or":
            one, other = selector.inputs
            return self._is_lexicographic(one, other) or self._is_lexicographic(other, one)
        key = _ordered_by(selector, "<", ">", "<=", ">=")
        return key is not None and self._different_everywhere(key)

    def _is_lexicographic(self, first: Node, rest: Node) -> bool:
        """Return whether two selectors form a lexicographic order of positions.

        ``first`` must compare the values of an s-op at two positions. ``rest`` must be a total order of
        the positions with equal values.
        """
        key = _ordered_by(first, "<", ">")
        if key is None or rest.op != "selector_and":
            return False
        one, other = rest.inputs
        return (_ordered_by(one, "==") is key and self._is_total_order(other)) or (
            _ordered_by(other, "==") is key and self._is_total_order(one)
        )

    def _is_whole(self, node: Node) -> bool:
        """Return whether an s-op and its inputs are certainly integers up to ±2⁵³ or booleans."""
        ranges = [self.values.integers(part) for part in (node, *node.inputs)]
        return all(part is not None and part.largest <= LARGEST_EXACT for part in ranges)

    def _same_everywhere(self, node: Node) -> bool:
        """Return whether an s-op is known to have the same value at all positions of an input."""
        if node not in self._same:
            for below in postorder(node, into=lambda n: n not in self._same):
                self._same[below] = self._is_same(below)
        return self._same[node]

    def _is_same(self, node: Node) -> bool:
        """Return whether a node is known to be the same for all queries.

        The results for the inputs of the node must be in ``_same``.
        """
        match node.op:
            case "constant" | "length":
                return True
            case "select":
                return self._same[node.inputs[1]]
            case "aggregate" | "best":
                return self._same[node.inputs[0]]
            case op if op.startswith("selector_") or OPERATIONS[op].elementwise:
                return all(self._same[i] for i in node.inputs)
            case _:
                return False

    def may_be_empty(self, selector: Node) -> bool:
        """Return whether some query may select no key."""
        if selector not in self._empty:
            self._empty[selector] = self._may_be_empty(selector)
        return self._empty[selector]

    def _may_be_empty(self, selector: Node) -> bool:
        while selector.op == "best":  # ``best`` selects a key if its inner selector selects one
            selector = selector.inputs[0]
        if self._fetches(selector) or self.widths(selector)[0] > 0:
            return False
        if self.pattern(selector) is None and self._of_positions_and_length(selector):
            lengths = range(self.target.shortest, self.target.longest + 1)
            patterns = (self.at_length(selector, length) for length in lengths)
            return any(pattern is None or not pattern.any(axis=1).all() for pattern in patterns)
        rest = False
        static = np.ones((self.target.longest, self.target.longest), dtype=bool)
        for condition in conditions(selector):
            pattern = self.pattern(condition)
            if pattern is not None:
                static &= pattern
            elif not reflexive(condition):
                return True
            else:
                rest = True
        if rest:  # a query selects its own position if the conditions on positions allow it
            return not bool(static.diagonal().all())
        shortest, longest = self.target.shortest, self.target.longest
        return any(not static[q, : max(q + 1, shortest)].any() for q in range(longest))

    def _fetches(self, selector: Node) -> bool:
        """Return whether each query is known to compute one valid position and to select it."""
        if selector.op != "select" or selector.predicate != "==":
            return False
        key, query = selector.inputs
        return key.op == "indices" and self.values.is_position(query)

    def _of_positions_and_length(self, selector: Node) -> bool:
        """Return whether a selector depends only on position and length.

        Return False if the inputs are too long to list all pairs of positions.
        """
        if self.target.longest**2 > MAX_POSITIONS:
            return False
        reads = [
            i for node in selectors_of(selector) if node.op in ("select", "best") for i in node.inputs
        ]
        sops = [node for node in reads if sort_of(node) is Sort.SOP]
        return all(self.values.depends_on(node, "indices", "length") for node in sops)

    def counts(self, selector: Node) -> NDArray[np.int64] | None:
        """Return the number of selected keys with shape [length − shortest, query].

        The number is 0 at positions after the end of the input. Return None if the number is not known
        to depend only on position and length.
        """
        shortest, longest = self.target.shortest, self.target.longest
        lengths = np.arange(shortest, longest + 1)
        pattern = self.pattern(selector)
        if pattern is not None:
            counts = np.cumsum(pattern, axis=1, dtype=np.int64).T[shortest - 1 :]
            return np.asarray(np.where(np.arange(longest) < lengths[:, None], counts, 0))
        counts = np.zeros((len(lengths), longest), dtype=np.int64)
        for row, length in enumerate(lengths.tolist()):
            here = self.at_length(selector, length)
            if here is None:
                return None
            counts[row, :length] = here.sum(axis=1)
        return counts

    def at_length(self, selector: Node, length: int) -> Pattern | None:
        """Return the pattern [query, key] on inputs of one length.

        Return None if the pattern may depend on other values than position and length, if the inputs
        are too long, or if the pattern is undefined. In the last case, running the program on
        such an input raises an error.
        """
        if not self._of_positions_and_length(selector):
            return None

        def leaf(node: Node, parts: Sequence[Pattern]) -> Pattern:
            if node.op == "best":
                return DOMAIN.best(parts[0], self.values.at_length(node.inputs[1], length))
            keys, queries = (self.values.at_length(i, length) for i in node.inputs)
            return select(keys, queries, node.predicate, node)

        try:
            return evaluated(selector, leaf)
        except CompileError:
            return None


def _ordered_by(selector: Node, *predicates: str) -> Node | None:
    """Return the s-op that a selector compares with itself by one of ``predicates``, otherwise None."""
    compares = selector.op == "select" and selector.predicate in predicates
    return selector.inputs[0] if compares and selector.inputs[0] is selector.inputs[1] else None
