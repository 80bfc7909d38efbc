"""Stage *scores*: find the scores q·k of a selector, and classes of queries with equal rows.

A selector comes in, :class:`Scores` come out, made of those that ``scores.py`` describes; or
:class:`Unscored`, where its values are not few enough to be told apart, and ``broadcasting.py`` has to
find another way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from locum.graph import OPERATIONS, Atom, Node, build
from locum.graph.operations import constant
from locum.networks.compiler.program.patterns import Patterns
from locum.networks.compiler.program.sources import (
    Pattern,
    conditions,
    distinct,
    each,
    evaluated,
    meaning,
    select,
    selectors_of,
)
from locum.networks.compiler.scoring.scores import (
    Linear,
    Scores,
    Unscored,
    binary,
    indicator,
    numbered,
    one_hot,
    quadratic,
    rank,
    sum_of,
    term,
    whole_numbers,
)
from locum.networks.compiler.target import EXACT_WHOLE, Target


@dataclass(frozen=True)
class Classes:
    """A pattern by its different rows (or columns): who belongs to each, and what each selects."""

    members: tuple[Pattern, ...]
    holds: tuple[Pattern, ...]
    #: Whether the members are queries; else they are keys.
    of_queries: bool

    @property
    def count(self) -> int:
        """How many there are, not counting the one that selects nothing."""
        return len(self.members)

    def pairs(
        self, query: Callable[[Pattern], Linear], key: Callable[[Pattern], Linear]
    ) -> tuple[tuple[Linear, Linear], ...]:
        """Return (query, key) for each class, from what describes some of the queries or keys."""
        queries, keys = self.members, self.holds
        if not self.of_queries:
            queries, keys = keys, queries
        return tuple(zip(map(query, queries), map(key, keys), strict=True))

    @classmethod
    def of(cls, pattern: Pattern) -> Classes:
        """Group by rows or by columns, whichever are fewer."""
        rows, of_query = different_rows(pattern)
        columns, of_key = different_rows(pattern.T)
        by_rows = int(rows.any(axis=1).sum()) <= int(columns.any(axis=1).sum())
        lines, belongs = (rows, of_query) if by_rows else (columns, of_key)
        some = [c for c in range(len(lines)) if lines[c].any()]
        return cls(tuple(belongs == c for c in some), tuple(lines[c] for c in some), by_rows)


def different_rows(pattern: Pattern) -> tuple[Pattern, NDArray[np.int64]]:
    """List each row once, and which of them every row is."""
    numbers: dict[bytes, int] = {}
    packed = np.packbits(pattern, axis=1)
    which = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in packed], np.int64)
    _, first = np.unique(which, return_index=True)
    return pattern[first], which


def class_numbers(pattern: Pattern) -> tuple[list[int], list[int]] | None:
    """Give queries and keys numbers that are equal just where the pattern holds, if there are such.

    A class of one key is numbered by the key's position: so all heads that fetch single keys share the
    encoding of their keys.
    """
    if bool((pattern.sum(axis=1) <= 1).all()):
        some = pattern.any(axis=1)
        return np.where(some, pattern.argmax(axis=1), -1).tolist(), list(range(pattern.shape[1]))
    rows, _ = different_rows(pattern[pattern.any(axis=1)])
    if len(rows) and int(rows.sum(axis=0).max()) > 1:
        return None
    first, some = pattern.argmax(axis=1), pattern.any(axis=1)
    numbers = np.full(pattern.shape[1], -1)
    order = sorted(range(len(rows)), key=lambda r: int(rows[r].argmax()))
    for number, r in enumerate(order):
        numbers[rows[r]] = number
    return np.where(some, numbers[first], -2).tolist(), numbers.tolist()


#: Keys and queries of one condition are told apart into at most so many classes.
MAX_CLASSES = 512
#: Pairs of values that are compared to find these classes.
MAX_COMPARISONS = 2**22
#: Values of a score by which the best key is found.
MAX_RANKS = 4096
#: Values of several s-ops that are looked at together.
MAX_TOGETHER = 1024


@dataclass(frozen=True)
class Together:
    """A formula of conditions as one: numbers of keys and of queries, how many, and their classes."""

    key: Node
    keys: int
    query: Node
    queries: int
    classes: Classes


class Selectors(Patterns):
    """Patterns and scores: those found here, or known from another stage."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._scores: dict[Node, Scores] = {}
        self._classes: dict[Node, Classes] = {}
        self._formulas: dict[Node, Together] = {}
        #: The greatest absolute value of an s-op that scores are made of.
        self._greatest: dict[Node, float] = {}

    def scores(self, selector: Node) -> Scores:
        """Return its scores, or raise :class:`Unscored`."""
        if selector not in self._scores:
            self._scores[selector] = self._scores_of(selector)
        return self._scores[selector]

    def knowing(
        self,
        values: Mapping[Node, Sequence[Atom]],
        scores: Mapping[Node, Scores] = MappingProxyType({}),
    ) -> Self:
        """Copy that also knows the values of s-ops that are new to the program, and scores."""
        new = super().knowing(values)
        new._scores = {**self._scores, **scores}
        new._classes, new._greatest = dict(self._classes), dict(self._greatest)
        new._formulas = dict(self._formulas)
        return new

    def _scores_of(self, selector: Node) -> Scores:
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
        scores = Scores(()) if static is None else self._of_pattern(static)
        for condition in rest:
            scores = scores.plus(self._condition(condition))
        self._require_exact(scores)
        return scores

    def _best(self, selector: Node) -> Scores:
        """Keep of the selected keys those of greatest rank: ranks count less than one penalty.

        Where the selected are the best by another score, a rank is worth less than a rank of that.
        """
        inner, score = selector.inputs
        values = self.values.finite(score)
        if values is None or len(values) > MAX_RANKS or not _comparable(values):
            raise Unscored
        size = len(values)
        scores = self.scores(inner)
        ranked = (Linear(constant=1.0), term(rank(score, values)))
        scaled = tuple((query.times(size), key) for query, key in scores.pairs)
        return Scores(
            (*scaled, ranked),
            scores.offset.times(size),
            bonus=size * scores.bonus + size - 1.0,
            how=(*scores.how, f"best of {size} ranks"),
        )

    def _condition(self, condition: Node) -> Scores:
        if condition.op != "select":
            return self._together(condition)
        key, query = condition.inputs
        predicate = condition.predicate
        if predicate == "==":
            key, query = self._shifted(key, query)
            condition = build("select", key, query, predicate=predicate)
        keys, queries = self.values.finite(key), self.values.finite(query)
        if keys is None or queries is None:
            integers = all(self.values.integers(node) is not None for node in (key, query))
            if predicate == "==" and integers:
                return self._equal_integers(query, key)
            raise Unscored
        if predicate == "==" and len(set(keys) & set(queries)) > 2:
            return self._equality(key, keys, query, queries)
        classes = self.classes(condition)
        if classes is None or classes.count > MAX_CLASSES:
            raise Unscored
        return self._by_classes(classes, query, queries, key, keys)

    def _shifted(self, key: Node, query: Node) -> tuple[Node, Node]:
        """Subtract from both sides of an equality what is the same at all positions.

        So the keys of ``select(indices + shift, indices, ==)`` are positions, which are embedded.
        """
        left, right = key, query
        while left.op in ("add", "subtract") and self._is_whole(left) and self._is_whole(right):
            varying, same = left.inputs
            if left.op == "add" and self._same_everywhere(varying):
                varying, same = same, varying
            if not self._same_everywhere(same):
                break
            inverse = "subtract" if left.op == "add" else "add"
            left, right = varying, build(inverse, right, same)
        embedded = self.values.depends_on(left, "indices") or self.values.depends_on(left, "tokens")
        return (left, right) if embedded and self._is_whole(right) else (key, query)

    def classes(self, condition: Node) -> Classes | None:
        """Return the classes of a comparison of values that are known to be few, else None."""
        if condition not in self._classes:
            key, query = condition.inputs
            keys, queries = self.values.finite(key), self.values.finite(query)
            if keys is None or queries is None or len(keys) * len(queries) > MAX_COMPARISONS:
                return None
            predicate = condition.predicate
            self._classes[condition] = Classes.of(
                select(list(keys), list(queries), predicate, condition)
            )
        return self._classes[condition]

    def _equality(
        self, key: Node, keys: Sequence[Atom], query: Node, queries: Sequence[Atom]
    ) -> Scores:
        """Score −(q − k)², for integers, or for ranks among all values."""
        together = distinct((*keys, *queries))
        computed = not all(
            any(self.values.depends_on(side, source) for source in ("indices", "tokens"))
            for side in (key, query)
        )
        if not whole_numbers(together) or (computed and _sparse(together)):
            key, query = rank(key, together), rank(query, together)
        return self._equal_integers(query, key)

    def _equal_integers(self, query: Node, key: Node) -> Scores:
        """Score −(q − k)², around the middle where floats would not hold the squares."""
        scores = quadratic(query, key)
        ranges = [self.values.integers(node) for node in (query, key)]
        if self._is_exact(scores) or None in ranges:
            return scores
        ends = [end for each in ranges if each is not None for end in each]
        if not all(map(math.isfinite, ends)):
            return scores
        middle = constant((int(min(ends)) + int(max(ends))) // 2)
        return quadratic(build("subtract", query, middle), build("subtract", key, middle))

    def _by_classes(
        self, classes: Classes, query: Node, queries: Sequence[Atom], key: Node, keys: Sequence[Atom]
    ) -> Scores:
        """Return Σ_c [query in c]·[c selects the key] − 1, or the same by classes of keys."""
        if query is key and len(queries) - 1 < 2 * classes.count:
            # One set of one-hot s-ops serves both sides.
            both = partial(sum_of, one_hot(query, queries))
            pairs = classes.pairs(both, both)
        else:
            pairs = classes.pairs(partial(indicator, query, queries), partial(indicator, key, keys))
        return Scores(pairs, Linear(constant=-1.0), how=(f"{classes.count} classes",))

    def _together(self, condition: Node) -> Scores:
        """Score a formula of conditions on few values: keys together are one key, as are queries."""
        joint = self.together(condition)
        if joint.classes.count > MAX_CLASSES:
            raise Unscored
        return self._by_classes(
            joint.classes, joint.query, range(joint.queries), joint.key, range(joint.keys)
        )

    def together(self, condition: Node) -> Together:
        """Return the classes of a formula of conditions, or raise :class:`Unscored`."""
        if condition not in self._formulas:
            self._formulas[condition] = self._classified(condition)
        return self._formulas[condition]

    def _classified(self, condition: Node) -> Together:
        parts = selectors_of(condition)
        atoms = [node for node in parts if node.op == "select"]
        if any(node.op == "best" for node in parts):
            raise Unscored
        keys = tuple(dict.fromkeys(node.inputs[0] for node in atoms))
        queries = tuple(dict.fromkeys(node.inputs[1] for node in atoms))
        key, key_values = self._tuple(keys)
        query, query_values = self._tuple(queries)

        def compared(node: Node, _: Sequence[Pattern]) -> Pattern:
            k, q = keys.index(node.inputs[0]), queries.index(node.inputs[1])
            at_keys, at_queries = [row[k] for row in key_values], [row[q] for row in query_values]
            return select(at_keys, at_queries, node.predicate, node)

        pattern = evaluated(condition, compared)
        return Together(key, len(key_values), query, len(query_values), Classes.of(pattern))

    def _tuple(self, nodes: Sequence[Node]) -> tuple[Node, list[tuple[Atom, ...]]]:
        """Encode the values of several s-ops as one integer; return it, and what each integer means."""
        base = self._base(nodes)
        domain = None if base is None else self.values.finite(base)
        if base is not None and domain is not None and len(domain) <= MAX_TOGETHER:
            columns = [self._of_base(node, base, domain) for node in nodes]
            if all(None not in column for column in columns):
                return rank(base, domain), [tuple(row) for row in zip(*columns, strict=True)]
        code: Node | None = None
        combinations: list[tuple[Atom, ...]] = [()]
        for node in nodes:
            values = self.values.finite(node)
            if values is None or len(combinations) * len(values) > MAX_TOGETHER:
                raise Unscored
            combinations = [(*before, value) for before in combinations for value in values]
            place = rank(node, values)
            if code is None:
                code = place
            else:
                code = build("add", build("multiply", code, constant(len(values))), place)
        assert code is not None
        return code, combinations

    def _base(self, nodes: Sequence[Node]) -> Node | None:
        """Return the one s-op that all these are functions of, if each is a function of one alone."""
        bases: set[Node] = set()
        for node in nodes:
            if self.values.constant(node) is not None:
                continue
            varying = [i for i in node.inputs if self.values.constant(i) is None]
            alone = OPERATIONS[node.op].elementwise and len(varying) == 1
            bases.add(varying[0] if alone else node)
        return bases.pop() if len(bases) == 1 else None

    def _of_base(self, node: Node, base: Node, domain: Sequence[Atom]) -> list[Atom | None]:
        """Return the value of an s-op for each value of the one that it is a function of."""
        fixed = self.values.constant(node)
        if fixed is not None or node is base:
            return list(domain) if fixed is None else [fixed] * len(domain)
        arguments = [
            list(domain) if i is base else [self.values.constant(i)] * len(domain) for i in node.inputs
        ]
        return each(meaning(node), arguments)

    # Patterns -----------------------------------------------------------------------------------

    def _of_pattern(self, pattern: Pattern) -> Scores:
        """Return the scores of a selector of positions."""
        if pattern.all() or (self.target.causal and self.is_mask(pattern)):
            return Scores(())
        at = build("indices")
        positions = tuple(range(len(pattern)))
        ids = class_numbers(pattern)
        if ids is not None:
            of_queries, of_keys = map(numbered, ids)
            scores = self._equal_integers(of_queries, of_keys)
            return scores if self._is_exact(scores) else binary(*ids)
        classes = Classes.of(pattern)
        shared = len(positions) - 1 < 2 * classes.count
        both = partial(sum_of, one_hot(at, positions)) if shared else partial(indicator, at, positions)
        return Scores(
            classes.pairs(both, both),
            Linear(constant=-1.0),
            how=(f"{classes.count} classes of positions",),
        )

    def _require_exact(self, scores: Scores) -> None:
        if not self._is_exact(scores):
            raise Unscored

    def _is_exact(self, scores: Scores) -> bool:
        """Return whether the type of number holds all scores, which are integers, exactly."""
        total = 0.0
        for query, key in scores.pairs:
            total += self._largest(query) * self._largest(key)
        return total < EXACT_WHOLE[self.target.dtype] / 4

    def _largest(self, linear: Linear) -> float:
        total = abs(linear.constant)
        for node, coefficient in linear.terms:
            if node not in self._greatest:
                self._greatest[node] = self._greatest_of(node)
            total += abs(coefficient) * self._greatest[node]
        return total

    def _greatest_of(self, node: Node) -> float:
        if node.op == "indicator":  # at once: there are many
            return 1.0
        integers = self.values.integers(node)
        if integers is not None:
            return float(integers.largest)
        values = self.values.finite(node)
        if values is None:
            return math.inf
        return max((abs(float(v)) for v in values if not isinstance(v, str)), default=0.0)


#: Times as large as ranks: squares of such numbers are worth a table.
_SPARSE = 4


def _sparse(values: Sequence[Atom]) -> bool:
    """Return whether integers are much larger than their ranks, so that squares are less exact."""
    return max(abs(float(value)) for value in values) > _SPARSE * len(values)


def _comparable(values: Sequence[Atom]) -> bool:
    return all(isinstance(v, str) for v in values) or not any(isinstance(v, str) for v in values)
