"""Selectors as scores: q·k is greatest exactly where the selector holds.

A selector is a conjunction of conditions, and each condition becomes a *penalty*: 0 where it holds, −1 or
less where it does not. Penalties add up, so all conditions hold exactly where the sum is 0. Every penalty is
a sum of products (something of the query) · (something of the key), plus something of the query alone:

- ``key == query`` for whole numbers: −(q − k)² = 2q·k − k² − q²;
- anything about finitely many values: Σ_c [query in class c]·[the condition holds for c and the key] − 1;
- anything about positions alone: the same, on the pattern itself; where rows are equal or disjoint (each key
  belongs to one class, as in a permutation, or "the same row") they are an equality of class numbers.

All of these are whole numbers, so ties between selected keys are exact in floating point. What has no such
form (comparisons of real numbers, maxima of them) is rewritten first: see ``broadcasting.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from understudy.compiler.linear import Linear, of
from understudy.compiler.target import DOMAIN, EXACT_WHOLE
from understudy.compiler.values import Values, distinct
from understudy.errors import CompileError
from understudy.graph import Atom, Node, abbreviate, build, postorder
from understudy.graph.atoms import canonical_table
from understudy.graph.operations import constant

Pattern = NDArray[np.bool_]

#: The predicate that holds exactly where this one does not.
NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
#: Keys and queries of one condition are told apart into at most so many classes.
MAX_CLASSES = 512
#: Values of several s-ops that are looked at together.
MAX_TOGETHER = 1024


@dataclass(frozen=True)
class Scores:
    """How a head scores: Σ query·key + offset is 0 where the selector holds and ≤ −gap elsewhere."""

    pairs: tuple[tuple[Linear, Linear], ...]
    #: What depends on the query alone: it only matters where a sink competes.
    offset: Linear = Linear()
    gap: float = 1.0
    #: How much a ``best`` may add to the score of a selected key.
    bonus: float = 0.0
    how: tuple[str, ...] = ()

    def plus(self, other: Scores) -> Scores:
        """Both conditions."""
        return Scores(
            self.pairs + other.pairs, self.offset.plus(other.offset), how=self.how + other.how
        )

    @property
    def nodes(self) -> Iterator[Node]:
        """The s-ops it is made of."""
        for query, key in (*self.pairs, (self.offset, Linear())):
            for node, _ in (*query.terms, *key.terms):
                yield node


class Unscored(Exception):  # noqa: N818  (a signal between stages, not an error)
    """A selector that has no scores as it is."""


@dataclass
class Selectors:
    """The scores of a program's selectors, and what is known about how many keys they select."""

    values: Values = field(init=False)
    longest: int
    shortest: int
    dtype: str
    _scores: dict[Node, Scores] = field(default_factory=dict)
    _patterns: dict[Node, Pattern | None] = field(default_factory=dict)
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
        rest = False
        static = np.ones((self.longest, self.longest), dtype=bool)
        for condition in conditions(selector):
            pattern = self.pattern(condition)
            if pattern is not None:
                static &= pattern
            elif not _reflexive(condition):
                return True
            else:
                rest = True
        if rest:  # the key at the query's own position is selected, if the rest allows
            return not bool(static.diagonal().all())
        return any(not static[q, : max(q + 1, self.shortest)].any() for q in range(self.longest))

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
        return _quadratic(query, key)

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
            pairs = classes.pairs(lambda chosen, hot=one_hot(query, queries): _sum(hot, chosen))
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
        """Any formula of conditions on few values: its keys together are one key, its queries one query."""
        atoms = [node for node in postorder(condition) if node.op == "select"]
        if any(node.op == "best" for node in postorder(condition)):
            raise Unscored
        keys = tuple(dict.fromkeys(node.inputs[0] for node in atoms))
        queries = tuple(dict.fromkeys(node.inputs[1] for node in atoms))
        key, key_values = self._tuple(keys)
        query, query_values = self._tuple(queries)
        pattern = _evaluated(condition, keys, key_values, queries, query_values)
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
        ids = _class_numbers(pattern)
        if ids is not None:
            of_queries, of_keys = (_at_positions(at, numbers) for numbers in ids)
            largest = max(map(abs, (*ids[0], *ids[1])))
            if 4 * largest**2 < EXACT_WHOLE[self.dtype]:
                return _quadratic(of_queries, of_keys)
            return _binary(at, *ids)
        classes = Classes.of(pattern)
        shared = len(positions) - 1 < 2 * classes.count
        if shared:
            pairs = classes.pairs(lambda chosen, hot=one_hot(at, positions): _sum(hot, chosen))
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


# Formulas ---------------------------------------------------------------------------------------


def conditions(selector: Node) -> list[Node]:
    """The selector as a conjunction; negations are carried inwards as far as they go.

    >>> from understudy import indices, select, tokens
    >>> s = ~(select(tokens, 1, "==") | select(indices, indices, "<"))
    >>> conditions(s.node)
    [<select: select(tokens, 1, !=)>, <select: select(indices, indices, >=)>]
    """
    found: list[Node] = []
    stack = [(selector, False)]
    while stack:
        node, negated = stack.pop()
        if node.op == "selector_not":
            stack.append((node.inputs[0], not negated))
        elif node.op == ("selector_or" if negated else "selector_and"):
            stack.extend((i, negated) for i in reversed(node.inputs))
        elif node.op == "select" and negated:
            found.append(
                build("select", *node.inputs, predicate=NEGATED[str(node.attributes["predicate"])])
            )
        else:
            found.append(build("selector_not", node) if negated else node)
    return list(dict.fromkeys(found))


def select(keys: Sequence[Atom], queries: Sequence[Atom], predicate: str, where: Node) -> Pattern:
    """The pattern of a comparison, as RASP compares."""
    try:
        return DOMAIN.select(keys, queries, predicate)
    except TypeError as error:
        raise CompileError(f"these cannot be compared: {error}", abbreviate(where)) from None


def _evaluated(
    condition: Node,
    keys: Sequence[Node],
    key_values: Sequence[tuple[Atom, ...]],
    queries: Sequence[Node],
    query_values: Sequence[tuple[Atom, ...]],
) -> Pattern:
    found: dict[Node, Pattern] = {}
    for node in postorder(condition):
        if node.op == "select":
            k, q = keys.index(node.inputs[0]), queries.index(node.inputs[1])
            found[node] = select(
                [values[k] for values in key_values],
                [values[q] for values in query_values],
                str(node.attributes["predicate"]),
                node,
            )
        elif node.op == "selector_not":
            found[node] = ~found[node.inputs[0]]
        elif node.op == "selector_and":
            found[node] = found[node.inputs[0]] & found[node.inputs[1]]
        elif node.op == "selector_or":
            found[node] = found[node.inputs[0]] | found[node.inputs[1]]
    return found[condition]


def _reflexive(condition: Node) -> bool:
    """Whether a query certainly selects the key at its own position."""
    if condition.op != "select":
        return False
    key, query = condition.inputs
    return key is query and condition.attributes["predicate"] in ("==", "<=", ">=")


def _comparable(values: Sequence[Atom]) -> bool:
    return all(isinstance(v, str) for v in values) or not any(isinstance(v, str) for v in values)


def _whole(values: Sequence[Atom]) -> bool:
    return all(isinstance(v, int) and abs(v) < 2**20 for v in values)


# Classes ----------------------------------------------------------------------------------------


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

    def pairs(self, side: Callable[[Pattern], Linear]) -> tuple[tuple[Linear, Linear], ...]:
        """(query, key) for each class, where both sides are described alike."""
        both = zip(map(side, self.members), map(side, self.holds), strict=True)
        return tuple(both) if self.of_queries else tuple((holds, member) for member, holds in both)

    @classmethod
    def of(cls, pattern: Pattern) -> Classes:
        """By rows or by columns, whichever are fewer."""
        rows, of_query = _different(pattern)
        columns, of_key = _different(pattern.T)
        by_rows = int(rows.any(axis=1).sum()) <= int(columns.any(axis=1).sum())
        lines, belongs = (rows, of_query) if by_rows else (columns, of_key)
        some = [c for c in range(len(lines)) if lines[c].any()]
        return cls(tuple(belongs == c for c in some), tuple(lines[c] for c in some), by_rows)


def _different(pattern: Pattern) -> tuple[Pattern, NDArray[np.int64]]:
    """The different rows, in the order they come in, and which of them each row is."""
    seen: dict[bytes, int] = {}
    first: list[int] = []
    belongs = np.empty(len(pattern), dtype=np.int64)
    for place, row in enumerate(np.packbits(pattern, axis=1)):
        number = seen.setdefault(row.tobytes(), len(seen))
        belongs[place] = number
        if number == len(first):
            first.append(place)
    return pattern[first], belongs


def _class_numbers(pattern: Pattern) -> tuple[list[int], list[int]] | None:
    """Numbers of queries and keys that are equal exactly where the pattern holds, if there are such.

    A class of one key is numbered by the key's position: so all heads that fetch single keys share the
    encoding of their keys.
    """
    rows = np.unique(pattern[pattern.any(axis=1)], axis=0)
    if len(rows) and int(rows.sum(axis=0).max()) > 1:
        return None
    single = bool((rows.sum(axis=1) == 1).all())
    first = pattern.argmax(axis=1)
    some = pattern.any(axis=1)
    if single:
        return np.where(some, first, -1).tolist(), list(range(pattern.shape[1]))
    numbers = np.full(pattern.shape[1], -1)
    order = sorted(range(len(rows)), key=lambda r: int(rows[r].argmax()))
    for number, r in enumerate(order):
        numbers[rows[r]] = number
    return np.where(some, numbers[first], -2).tolist(), numbers.tolist()


def _quadratic(query: Node, key: Node) -> Scores:
    pairs = (
        (of(query, 2.0), of(key)),
        (Linear(constant=-1.0), of(build("multiply", key, key))),
    )
    return Scores(pairs, of(build("multiply", query, query), -1.0), how=("equality by squares",))


def _binary(at: Node, queries: Sequence[int], keys: Sequence[int]) -> Scores:
    """±1 for each binary digit: the score is 0 where all agree, −2 or less where one does not."""
    lowest = min(*queries, *keys)
    bits = max(1, (max(*queries, *keys) - lowest).bit_length())
    pairs = []
    for bit in range(bits):
        q, k = (
            _at_positions(at, [2 * ((number - lowest) >> bit & 1) - 1 for number in numbers])
            for numbers in (queries, keys)
        )
        pairs.append((of(q), of(k)))
    return Scores(tuple(pairs), Linear(constant=-float(bits)), how=(f"{bits} binary digits",))


def _at_positions(at: Node, numbers: Sequence[int]) -> Node:
    """The s-op that has these numbers at the positions."""
    if list(numbers) == list(range(len(numbers))):
        return at
    if len(set(numbers)) == 1:
        return constant(numbers[0])
    return build("lookup", at, table=canonical_table(dict(enumerate(numbers))))


def indicator(node: Node, values: Sequence[Atom], chosen: Pattern) -> Linear:
    """1 where the value is one of the chosen, else 0."""
    if chosen.all():
        return Linear(constant=1.0)
    table: Mapping[Atom, Atom] = {v: int(c) for v, c in zip(values, chosen.tolist(), strict=True)}
    return of(build("lookup", node, table=canonical_table(table)))


def one_hot(node: Node, values: Sequence[Atom]) -> list[Linear]:
    """For each value, whether it is the one; the last follows from the others."""
    hot: list[Linear] = []
    rest = Linear(constant=1.0)
    for value in values[:-1]:
        this = of(build("indicator", build("equal", node, constant(value))))
        hot.append(this)
    rest = Linear(tuple((linear.terms[0][0], -1.0) for linear in hot), 1.0)
    return [*hot, rest]


def _sum(hot: Sequence[Linear], chosen: Pattern) -> Linear:
    """Σ of the chosen; the last one is 1 minus all others, so its coefficients cancel."""
    coefficient = -1.0 if chosen[-1] else 1.0
    others = np.flatnonzero(chosen[:-1] != chosen[-1]).tolist()
    return Linear(tuple((hot[place].terms[0][0], coefficient) for place in others), float(chosen[-1]))
