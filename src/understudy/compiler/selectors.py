"""What is known about a program's selectors: patterns, how many keys they select, scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from understudy.compiler.classes import Classes, class_numbers, indicator, one_hot, sum_of
from understudy.compiler.columns import distinct
from understudy.compiler.conditions import Pattern, conditions, evaluated, reflexive, select
from understudy.compiler.linear import Linear, of
from understudy.compiler.scores import Scores, Unscored, at_positions, binary, quadratic
from understudy.compiler.target import DOMAIN, EXACT_WHOLE
from understudy.compiler.values import Values
from understudy.errors import CompileError
from understudy.graph import Atom, Node, Sort, build, postorder, sort_of
from understudy.graph.atoms import canonical_table
from understudy.graph.operations import constant

#: Keys and queries of one condition are told apart into at most so many classes.
MAX_CLASSES = 512
#: Values of several s-ops that are looked at together.
MAX_TOGETHER = 1024


@dataclass
class Selectors:
    """The scores of a program's selectors, and what is known about how many keys they select."""

    values: Values = field(init=False)
    longest: int
    shortest: int
    dtype: str
    _scores: dict[Node, Scores] = field(default_factory=dict)
    _patterns: dict[Node, Pattern | None] = field(default_factory=dict)
    _empty: dict[Node, bool] = field(default_factory=dict)
    _classes: dict[Node, Classes] = field(default_factory=dict)
    #: The greatest absolute value of an s-op that scores are made of.
    _greatest: dict[Node, float] = field(default_factory=dict)

    # Static selectors ---------------------------------------------------------------------------

    def pattern(self, selector: Node) -> Pattern | None:
        """[query, key] where it depends on positions alone, else None."""
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
                return select(keys, queries, str(node.attributes["predicate"]), node)
            case "selector_not":
                return None if inputs[0] is None else ~inputs[0]
            case "best":
                # What is best depends on how many keys there are.
                if self.shortest < self.longest or inputs[0] is None:
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
        """[query, key]: what may be selected, as far as positions tell."""
        allowed = np.ones((self.longest, self.longest), dtype=bool)
        stack = [selector]
        while stack:
            for condition in conditions(stack.pop()):
                pattern = self.pattern(condition)
                if pattern is not None:
                    allowed &= pattern
                elif condition.op == "best":
                    stack.append(condition.inputs[0])
        return allowed

    def unique(self, selector: Node) -> bool:
        """Whether each query selects at most one key, whatever the input."""
        found = self.pattern(selector)
        if found is not None:
            return bool((found.sum(axis=1) <= 1).all())
        for condition in conditions(selector):
            pattern = self.pattern(condition)
            if pattern is not None and bool((pattern.sum(axis=1) <= 1).all()):
                return True
            if condition.op == "select" and condition.attributes["predicate"] == "==":
                key = condition.inputs[0]
                if self.values.depends_on(key, "indices"):
                    at = self.values.at_positions(key)
                    if len(set(at)) == len(at):
                        return True
        return False

    def may_be_empty(self, selector: Node) -> bool:
        """Whether some query may select nothing."""
        if selector not in self._empty:
            self._empty[selector] = self._may_be_empty(selector)
        return self._empty[selector]

    def _may_be_empty(self, selector: Node) -> bool:
        while selector.op == "best":  # some selected key is the best of them
            selector = selector.inputs[0]
        reads = [
            i for node in postorder(selector) if node.op in ("select", "best") for i in node.inputs
        ]
        sops = [node for node in reads if sort_of(node) is Sort.SOP]
        known = all(self.values.depends_on(node, "indices", "length") for node in sops)
        if known and self.pattern(selector) is None:
            lengths = range(self.shortest, self.longest + 1)
            try:
                return any(not self._at_length(selector, n).any(axis=1).all() for n in lengths)
            except CompileError:  # no value at some length: an error when it is run on such an input
                return True
        rest = False
        static = np.ones((self.longest, self.longest), dtype=bool)
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
        return any(not static[q, : max(q + 1, self.shortest)].any() for q in range(self.longest))

    def _at_length(self, selector: Node, length: int) -> Pattern:
        """The pattern on inputs of one length, of a selector that depends on positions and length."""
        found: dict[Node, Pattern] = {}
        for node in postorder(selector):
            parts = [found[i] for i in node.inputs if i in found]
            match node.op:
                case "select":
                    keys, queries = (self.values.at_length(i, length) for i in node.inputs)
                    found[node] = select(keys, queries, str(node.attributes["predicate"]), node)
                case "selector_and":
                    found[node] = parts[0] & parts[1]
                case "selector_or":
                    found[node] = parts[0] | parts[1]
                case "selector_not":
                    found[node] = ~parts[0]
                case "best":
                    scores = self.values.at_length(node.inputs[1], length)
                    found[node] = DOMAIN.best(parts[0], scores)
        return found[selector]

    # Scores -------------------------------------------------------------------------------------

    def scores(self, selector: Node) -> Scores:
        """Its scores, or :class:`Unscored`."""
        if selector not in self._scores:
            self._scores[selector] = self._found(selector)
        return self._scores[selector]

    def given(self, selector: Node, scores: Scores) -> None:
        """Scores that another stage has found."""
        self._scores[selector] = scores

    def _found(self, selector: Node) -> Scores:
        if selector.op == "best" and self.pattern(selector) is None:
            best = self._best(selector)
            self._require_exact(best)
            return best
        static: Pattern | None = None
        rest: list[Node] = []
        for condition in conditions(selector):
            pattern = self.pattern(condition)
            if pattern is None:
                rest.append(condition)
            else:
                static = pattern if static is None else static & pattern
        found = Scores(()) if static is None else self.of_pattern(static)
        for condition in rest:
            found = found.plus(self._condition(condition))
        self._require_exact(found)
        return found

    def _best(self, selector: Node) -> Scores:
        """Of the selected, those of greatest rank: ranks are worth less than one penalty."""
        inner, score = selector.inputs
        values = self.values.finite(score)
        if values is None or len(values) > 4096 or not _comparable(values):
            raise Unscored
        size = len(values)
        scores = self.scores(inner)
        if scores.bonus:
            raise Unscored
        ranked = (Linear(constant=1.0), of(self.rank(score, values)))
        scaled = tuple((query.times(size), key) for query, key in scores.pairs)
        return Scores(
            (*scaled, ranked),
            scores.offset.times(size),
            bonus=size - 1.0,
            how=(*scores.how, f"best of {size} ranks"),
        )

    def _condition(self, condition: Node) -> Scores:
        if condition.op != "select":
            return self._together(condition)
        key, query = condition.inputs
        predicate = str(condition.attributes["predicate"])
        keys, queries = self.values.finite(key), self.values.finite(query)
        if keys is None or queries is None:
            raise Unscored
        if predicate == "==" and len(set(keys) & set(queries)) > 2:
            return self._equality(key, keys, query, queries)
        classes = self.classes(condition)
        if classes is None or classes.count > MAX_CLASSES:
            raise Unscored
        return self._by_classes(classes, query, queries, key, keys)

    def classes(self, condition: Node) -> Classes | None:
        """The classes of a comparison of values that are known to be few, else None."""
        if condition not in self._classes:
            key, query = condition.inputs
            keys, queries = self.values.finite(key), self.values.finite(query)
            if keys is None or queries is None or len(keys) * len(queries) > 2**22:
                return None
            predicate = str(condition.attributes["predicate"])
            self._classes[condition] = Classes.of(
                select(list(keys), list(queries), predicate, condition)
            )
        return self._classes[condition]

    def _equality(
        self, key: Node, keys: Sequence[Atom], query: Node, queries: Sequence[Atom]
    ) -> Scores:
        """−(q − k)², for whole numbers, or for ranks among all values."""
        if not _whole((*keys, *queries)):
            together = distinct((*keys, *queries))
            key, query = self.rank(key, together), self.rank(query, together)
        return quadratic(query, key)

    def rank(self, node: Node, among: Sequence[Atom]) -> Node:
        """Its place among these values."""
        if tuple(among) == tuple(range(len(among))) and _whole(among):
            return node
        return build("lookup", node, table=canonical_table({v: i for i, v in enumerate(among)}))

    def _by_classes(
        self, classes: Classes, query: Node, queries: Sequence[Atom], key: Node, keys: Sequence[Atom]
    ) -> Scores:
        """Σ_c [query in c]·[c selects the key] − 1, or the same by classes of keys."""
        if query is key:
            # One set of one-hot s-ops serves both sides.
            pairs = classes.pairs(partial(sum_of, one_hot(query, queries)))
        elif classes.of_queries:
            pairs = tuple(
                (indicator(query, queries, members), indicator(key, keys, holds))
                for members, holds in zip(classes.members, classes.holds, strict=True)
            )
        else:
            pairs = tuple(
                (indicator(query, queries, holds), indicator(key, keys, members))
                for members, holds in zip(classes.members, classes.holds, strict=True)
            )
        return Scores(pairs, Linear(constant=-1.0), how=(f"{classes.count} classes",))

    def _together(self, condition: Node) -> Scores:
        """Any formula of conditions on few values: its keys together are one key, so its queries."""
        atoms = [node for node in postorder(condition) if node.op == "select"]
        if any(node.op == "best" for node in postorder(condition)):
            raise Unscored
        keys = tuple(dict.fromkeys(node.inputs[0] for node in atoms))
        queries = tuple(dict.fromkeys(node.inputs[1] for node in atoms))
        key, key_values = self._tuple(keys)
        query, query_values = self._tuple(queries)
        pattern = evaluated(condition, keys, key_values, queries, query_values)
        classes = Classes.of(pattern)
        if classes.count > MAX_CLASSES:
            raise Unscored
        codes_of_keys, codes_of_queries = range(len(key_values)), range(len(query_values))
        return self._by_classes(classes, query, codes_of_queries, key, codes_of_keys)

    def _tuple(self, nodes: Sequence[Node]) -> tuple[Node, list[tuple[Atom, ...]]]:
        """One whole number for the values of several s-ops, and which values each number means."""
        code: Node | None = None
        combinations: list[tuple[Atom, ...]] = [()]
        for node in nodes:
            values = self.values.finite(node)
            if values is None or len(combinations) * len(values) > MAX_TOGETHER:
                raise Unscored
            combinations = [(*before, value) for before in combinations for value in values]
            rank = self.rank(node, values)
            if code is None:
                code = rank
            else:
                code = build("add", build("multiply", code, constant(len(values))), rank)
        assert code is not None
        return code, combinations

    # Patterns -----------------------------------------------------------------------------------

    def of_pattern(self, pattern: Pattern) -> Scores:
        """The scores of a selector of positions."""
        if pattern.all():
            return Scores(())
        at = build("indices")
        positions = tuple(range(len(pattern)))
        ids = class_numbers(pattern)
        if ids is not None:
            of_queries, of_keys = (at_positions(at, numbers) for numbers in ids)
            largest = max(map(abs, (*ids[0], *ids[1])))
            if 4 * largest**2 < EXACT_WHOLE[self.dtype]:
                return quadratic(of_queries, of_keys)
            return binary(at, *ids)
        classes = Classes.of(pattern)
        shared = len(positions) - 1 < 2 * classes.count
        if shared:
            pairs = classes.pairs(partial(sum_of, one_hot(at, positions)))
        else:
            pairs = classes.pairs(lambda chosen: indicator(at, positions, chosen))
        return Scores(pairs, Linear(constant=-1.0), how=(f"{classes.count} classes of positions",))

    def _require_exact(self, scores: Scores) -> None:
        """Whole scores must be ones that the type of number holds exactly; else there are none."""
        total = 0.0
        for query, key in scores.pairs:
            total += self._largest(query) * self._largest(key)
        if total >= EXACT_WHOLE[self.dtype] / 4:
            raise Unscored

    def _largest(self, linear: Linear) -> float:
        total = abs(linear.constant)
        for node, coefficient in linear.terms:
            if node not in self._greatest:
                values = self.values.finite(node) or ()
                self._greatest[node] = max(
                    (abs(float(v)) for v in values if not isinstance(v, str)), default=0.0
                )
            total += abs(coefficient) * self._greatest[node]
        return total


def _comparable(values: Sequence[Atom]) -> bool:
    return all(isinstance(v, str) for v in values) or not any(isinstance(v, str) for v in values)


def _whole(values: Sequence[Atom]) -> bool:
    return all(isinstance(v, int) and abs(v) < 2**20 for v in values)
