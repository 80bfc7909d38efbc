"""Which keys a selector selects, as far as that is known before there is any input.

Selectors of positions are *patterns*, [query, key]. Of others it is known which keys the positions rule
out, whether one key at most is selected, and whether there is a query that selects nothing. Values
depend on that (attention to one key moves a value as it is, to several it takes a mean) and patterns on
values, so both are found together, each when it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Self

import numpy as np

from locum.errors import CompileError
from locum.graph import Atom, Node, Sort, postorder, sort_of
from locum.networks.compiler.compile_limits import check_time
from locum.networks.compiler.program.sources import (
    MAX_POSITIONS,
    Pattern,
    conditions,
    evaluated,
    reflexive,
    select,
    selectors_of,
)
from locum.networks.compiler.program.values import Values
from locum.networks.compiler.target import DOMAIN, Target


class Patterns:
    """What is known about how many keys, and which, the selectors of a program select."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.values = Values(target, self)
        self._patterns: dict[Node, Pattern | None] = {}
        self._empty: dict[Node, bool] = {}

    def knowing(self, values: Mapping[Node, Sequence[Atom]]) -> Self:
        """Copy that also knows which values these s-ops, new to the program, take."""
        new = copy(self)
        new.values = self.values.knowing(values, new)
        new._patterns, new._empty = dict(self._patterns), dict(self._empty)
        return new

    def pattern(self, selector: Node) -> Pattern | None:
        """Return [query, key] where it depends on positions alone, else None."""
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
        return False

    def _different_everywhere(self, node: Node) -> bool:
        """Return whether an s-op has a different value at every position of an input."""
        slope = self.values.affine(node)
        if slope is not None:
            return slope.indices != 0
        if not self.values.depends_on(node, "indices"):
            return False
        at = self.values.at_positions(node)
        return len(set(at)) == len(at)

    def may_be_empty(self, selector: Node) -> bool:
        """Return whether some query may select nothing."""
        if selector not in self._empty:
            self._empty[selector] = self._may_be_empty(selector)
        return self._empty[selector]

    def _may_be_empty(self, selector: Node) -> bool:
        while selector.op == "best":  # some selected key is the best of them
            selector = selector.inputs[0]
        if self._fetches(selector):
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
