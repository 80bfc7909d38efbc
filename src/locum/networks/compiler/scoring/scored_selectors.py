"""Find the scores q·k of a selector, and classes of queries with equal rows.

The result is a :class:`Scores`, built by the functions of ``scores.py``. The module raises
:class:`Unscored` for selectors without such scores, for example if there are too many values to
distinguish. ``broadcasting.py`` then rewrites the selector.
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
from locum.networks.compiler.compile_limits import check_time, claim
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
    """The distinct rows (or columns) of a pattern, without the row that selects nothing.

    A class is a set of queries with equal rows: ``members`` are masks of these queries, and ``holds``
    are their rows. With ``of_queries=False``, classes are sets of keys with equal columns.
    """

    members: tuple[Pattern, ...]
    holds: tuple[Pattern, ...]
    #: Whether the members are queries; otherwise they are keys.
    of_queries: bool

    @property
    def count(self) -> int:
        """Number of classes, without the class that selects nothing."""
        return len(self.members)

    def pairs(
        self, query: Callable[[Pattern], Linear], key: Callable[[Pattern], Linear]
    ) -> tuple[tuple[Linear, Linear], ...]:
        """Return one pair (query, key) of factors for each class.

        ``query`` and ``key`` return the factor that is 1 for a set of queries or keys, given as a mask.
        """
        queries, keys = self.members, self.holds
        if not self.of_queries:
            queries, keys = keys, queries
        return tuple(zip(map(query, queries), map(key, keys), strict=True))

    @classmethod
    def of(cls, pattern: Pattern) -> Classes:
        """Group the rows or the columns of a pattern, whichever results in fewer classes."""
        rows, of_query = different_rows(pattern)
        columns, of_key = different_rows(pattern.T)
        by_rows = int(rows.any(axis=1).sum()) <= int(columns.any(axis=1).sum())
        lines, belongs = (rows, of_query) if by_rows else (columns, of_key)
        some = [c for c in range(len(lines)) if lines[c].any()]
        return cls(tuple(belongs == c for c in some), tuple(lines[c] for c in some), by_rows)


def different_rows(pattern: Pattern) -> tuple[Pattern, NDArray[np.int64]]:
    """Return the distinct rows of a pattern, and the index of each row among them."""
    numbers: dict[bytes, int] = {}
    packed = np.packbits(pattern, axis=1)
    which = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in packed], np.int64)
    _, first = np.unique(which, return_index=True)
    return pattern[first], which


def class_numbers(pattern: Pattern) -> tuple[list[int], list[int]] | None:
    """Return numbers of queries and keys that are equal exactly where the pattern is true.

    Return None if the rows are not pairwise equal or disjoint. If each query selects at most one key,
    the number of a key is its position. All heads that fetch single keys thus share the encoding of the
    keys.
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


#: Maximum number of classes of the keys and queries of one condition.
MAX_CLASSES = 512
#: Maximum number of pairs of values that are compared to find these classes.
MAX_COMPARISONS = 2**22
#: Maximum number of possible values of the score in ``best``.
MAX_RANKS = 4096
#: Maximum number of combinations of values of several s-ops that are encoded as one s-op.
MAX_TOGETHER = 1024


@dataclass(frozen=True)
class Together:
    """A formula of comparisons as one condition on the s-ops ``key`` and ``query``.

    ``keys`` and ``queries`` are the numbers of possible values of the two s-ops, which are 0, 1, ….
    """

    key: Node
    keys: int
    query: Node
    queries: int
    classes: Classes


class Selectors(Patterns):
    """Patterns and scores of the selectors of a program.

    Scores are computed on demand, or given to ``knowing`` by another stage.
    """

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._scores: dict[Node, Scores] = {}
        self._classes: dict[Node, Classes] = {}
        self._formulas: dict[Node, Together] = {}
        #: The largest absolute value of each s-op that occurs in scores.
        self._greatest: dict[Node, float] = {}

    def scores(self, selector: Node) -> Scores:
        """Return the scores of a selector; raise :class:`Unscored` if it has no scores."""
        if selector not in self._scores:
            self._scores[selector] = self._scores_of(selector)
            claim(selector, self._scores[selector].nodes)
            check_time(selector)
        return self._scores[selector]

    def knowing(
        self,
        values: Mapping[Node, Sequence[Atom]],
        scores: Mapping[Node, Scores] = MappingProxyType({}),
    ) -> Self:
        """Return a copy that also contains the values and scores of new s-ops and selectors."""
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
        """Return the scores of ``best``: scores of the inner selector, and a smaller term for the rank.

        Scores of the inner selector are multiplied, so that the largest rank counts less than one
        penalty. If the inner selector is also a ``best``, the largest rank counts less than one rank of
        its score.
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
        """Move terms that are equal at all positions from the key of an equality to the query.

        In ``select(indices + shift, indices, ==)``, the key thus becomes the position, which is
        embedded. If the new key is not embedded, or if numbers may be rounded, return both unchanged.
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
        """Return the classes of a comparison.

        Return None if the values of the compared s-ops cannot be listed, or are too many.
        """
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
        """Return the score −(q − k)² of the values or of their ranks.

        Ranks are used if some value is not a small integer, or if computed integers are much larger
        than their ranks.
        """
        together = distinct((*keys, *queries))
        computed = not all(
            any(self.values.depends_on(side, source) for source in ("indices", "tokens"))
            for side in (key, query)
        )
        if not whole_numbers(together) or (computed and _sparse(together)):
            key, query = rank(key, together), rank(query, together)
        return self._equal_integers(query, key)

    def _equal_integers(self, query: Node, key: Node) -> Scores:
        """Return the score −(q − k)² for integers.

        If floating-point numbers might round the squares, and if both sides are bounded, a constant is
        first subtracted from both sides.
        """
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
        """Return the score Σ_c [query in class c]·[c selects the key] − 1, summed over all classes c.

        If classes are sets of keys, query and key are exchanged.
        """
        if query is key and len(queries) - 1 < 2 * classes.count:
            # Both sides use the same one-hot s-ops.
            both = partial(sum_of, one_hot(query, queries))
            pairs = classes.pairs(both, both)
        else:
            pairs = classes.pairs(partial(indicator, query, queries), partial(indicator, key, keys))
        return Scores(pairs, Linear(constant=-1.0), how=(f"{classes.count} classes",))

    def _together(self, condition: Node) -> Scores:
        """Return the scores of a formula of conditions on few values.

        All keys of the formula are encoded as one s-op, and so are all queries.
        """
        joint = self.together(condition)
        if joint.classes.count > MAX_CLASSES:
            raise Unscored
        return self._by_classes(
            joint.classes, joint.query, range(joint.queries), joint.key, range(joint.keys)
        )

    def together(self, condition: Node) -> Together:
        """Return a formula of conditions as one condition on two s-ops.

        Raise :class:`Unscored` if the values of the compared s-ops are unknown or too many, or if the
        formula contains ``best``.
        """
        if condition not in self._formulas:
            self._formulas[condition] = self._classified(condition)
            check_time(condition)
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
        """Encode several s-ops as one s-op with the values 0, 1, ….

        Return this s-op and the tuple of values that each integer represents. Raise :class:`Unscored`
        if there are too many tuples.
        """
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
        """Return the single s-op of which all these s-ops are functions, or None."""
        bases: set[Node] = set()
        for node in nodes:
            if self.values.constant(node) is not None:
                continue
            varying = [i for i in node.inputs if self.values.constant(i) is None]
            alone = OPERATIONS[node.op].elementwise and len(varying) == 1
            bases.add(varying[0] if alone else node)
        return bases.pop() if len(bases) == 1 else None

    def _of_base(self, node: Node, base: Node, domain: Sequence[Atom]) -> list[Atom | None]:
        """Return the value of a function of ``base`` for each value of ``base`` in ``domain``.

        The value is None where the function is undefined.
        """
        fixed = self.values.constant(node)
        if fixed is not None or node is base:
            return list(domain) if fixed is None else [fixed] * len(domain)
        arguments = [
            list(domain) if i is base else [self.values.constant(i)] * len(domain) for i in node.inputs
        ]
        return each(meaning(node), arguments)

    # Patterns -----------------------------------------------------------------------------------

    def _of_pattern(self, pattern: Pattern) -> Scores:
        """Return the scores of a selector of positions, given its pattern."""
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
        """Return whether the network's type certainly represents all (integer) scores exactly."""
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
        if node.op == "indicator":  # a fast path, since there are many indicators
            return 1.0
        integers = self.values.integers(node)
        if integers is not None:
            return float(integers.largest)
        values = self.values.finite(node)
        if values is None:
            return math.inf
        return max((abs(float(v)) for v in values if not isinstance(v, str)), default=0.0)


#: If the largest absolute value is more than this many times the number of values, scores of computed
#: integers use ranks.
_SPARSE = 4


def _sparse(values: Sequence[Atom]) -> bool:
    """Return whether integers are much larger than their ranks, so that squares are less exact."""
    return max(abs(float(value)) for value in values) > _SPARSE * len(values)


def _comparable(values: Sequence[Atom]) -> bool:
    return all(isinstance(v, str) for v in values) or not any(isinstance(v, str) for v in values)
