"""Which keys a selector selects, as far as that is known before there is any input.

Selectors of positions are *patterns*, [query, key]. Of others it is known which keys the positions rule
out, whether one key at most is selected, and whether there is a query that selects nothing. Values
depend on that (attention to one key moves a value as it is, to several it takes a mean) and patterns on
values, so both are found together, each when it is asked for.
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
    """What is known about how many keys, and which, the selectors of a program select."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._assumed = AssumedInputs(target)
        self.values = Values(target, self, self._assumed.possible)
        self._patterns: dict[Node, Pattern | None] = {}
        self._widths: dict[Node, tuple[int, int]] = {}
        self._same: dict[Node, bool] = {}
        self._empty: dict[Node, bool] = {}

    def knowing(self, values: Mapping[Node, Sequence[Atom]]) -> Self:
        """Copy that also knows which values these s-ops, new to the program, take."""
        new = copy(self)
        new.values = self.values.knowing(values, new)
        new._patterns, new._empty = dict(self._patterns), dict(self._empty)
        new._widths = dict(self._widths)
        return new

    def pattern(self, selector: Node) -> Pattern | None:
        """Return [query, key] where it depends on positions alone, else None."""
        if selector not in self._patterns:
            for node in postorder(selector, into=lambda n: n not in self._patterns):
                if node.op == "select" or node.op.startswith("selector_") or node.op == "best":
                    self._patterns[node] = self._static(node)
        return self._patterns[selector]

    def _static(self, node: Node) -> Pattern | None:
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
                # What is best depends on how many keys there are.
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
        """Return [query, key] that may be selected, as far as positions tell."""
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

    def certain(self, selector: Node) -> Pattern:
        """Return [query, key] that is selected on every input with both, as far as positions tell."""
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
        """Return whether it selects its own position and all before it: what a causal mask leaves."""
        return bool((pattern == np.tri(len(pattern), dtype=bool)).all())

    def unique(self, selector: Node) -> bool:
        """Return whether each query selects at most one key, whatever the input."""
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
        """Return the least and the greatest number of keys that a query selects, from ``inputs``."""
        if not self._assumed:
            return 0, self.target.longest
        if selector not in self._widths:
            conjuncts = conditions(selector)
            bounds = [self._token_counts(condition) for condition in conjuncts]
            least = bounds[0][0] if len(bounds) == 1 else 0
            self._widths[selector] = least, min(high for _, high in bounds)
        return self._widths[selector]

    def _token_counts(self, condition: Node) -> tuple[int, int]:
        """Return how many keys a query selects, if which these are depends on their tokens alone."""
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
        """Return whether an s-op has a different value at every position of an input."""
        while True:
            slope = self.values.affine(node)
            if slope is not None:
                return slope.indices != 0
            if self.values.depends_on(node, "indices"):
                at = self.values.at_positions(node)
                return len(set(at)) == len(at)
            # What is the same everywhere does not matter to an exact sum.
            varying = [i for i in node.inputs if not self._same_everywhere(i)]
            if node.op not in ("add", "subtract") or len(varying) != 1 or not self._is_whole(node):
                return False
            (node,) = varying

    def _is_whole(self, node: Node) -> bool:
        """Return whether an s-op and its inputs are integers that floats hold exactly."""
        ranges = [self.values.integers(part) for part in (node, *node.inputs)]
        return all(part is not None and part.largest <= LARGEST_EXACT for part in ranges)

    def _same_everywhere(self, node: Node) -> bool:
        """Return whether an s-op has one value at all positions of an input."""
        if node not in self._same:
            for below in postorder(node, into=lambda n: n not in self._same):
                self._same[below] = self._is_same(below)
        return self._same[node]

    def _is_same(self, node: Node) -> bool:
        """Return whether a node, the inputs of which are known, is the same for all queries."""
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
        """Return whether some query may select nothing."""
        if selector not in self._empty:
            self._empty[selector] = self._may_be_empty(selector)
        return self._empty[selector]

    def _may_be_empty(self, selector: Node) -> bool:
        while selector.op == "best":  # some selected key is the best of them
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
        if rest:  # the key at the query's own position is selected, if the rest allows
            return not bool(static.diagonal().all())
        shortest, longest = self.target.shortest, self.target.longest
        return any(not static[q, : max(q + 1, shortest)].any() for q in range(longest))

    def _fetches(self, selector: Node) -> bool:
        """Return whether each query selects the key at one position that it computes."""
        if selector.op != "select" or selector.predicate != "==":
            return False
        key, query = selector.inputs
        return key.op == "indices" and self.values.is_position(query)

    def _of_positions_and_length(self, selector: Node) -> bool:
        """Return whether positions and length tell what it selects, and are few enough to enumerate."""
        if self.target.longest**2 > MAX_POSITIONS:
            return False
        reads = [
            i for node in selectors_of(selector) if node.op in ("select", "best") for i in node.inputs
        ]
        sops = [node for node in reads if sort_of(node) is Sort.SOP]
        return all(self.values.depends_on(node, "indices", "length") for node in sops)

    def counts(self, selector: Node) -> NDArray[np.int64] | None:
        """Return [length, query] how many keys are selected; None unless positions and length tell.

        Past the end of an input it is 0.
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
        """Return [query, key] on inputs of one length, where positions and length tell; else None.

        None also where it has no value there: that is an error when it is run on such an input.
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
