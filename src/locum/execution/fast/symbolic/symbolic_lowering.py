"""Lower s-ops: compute their values *at a symbolic position*.

The position is an affine expression in loop variables. The value of an s-op at this position is one of

- an :class:`Affine` expression, for an integer that is affine in the loop variables;
- a condition (:class:`GuardedCases`), for a boolean that comparisons of such integers determine;
- a sum of terms, otherwise.

``aggregate`` at position p is (1/count) Σ_j [the selector, at key j and query p] value(j). The selector
is solved first. The value is then lowered at the remaining keys, so that ``j % k`` is simplified if the
selector implies j < k. If one key remains, the result is the value at this key; a block of keys becomes
a sum. The r·c heads of a matrix product, summed over their family, become one contraction.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from locum.execution.fast.symbolic import indexing, solving
from locum.execution.fast.symbolic.affine import (
    Affine,
    IndexScope,
    NotNumeric,
    Opaque,
    Refine,
    Stuck,
    number,
    variable,
)
from locum.execution.fast.symbolic.indexing import Lowered, terms_of
from locum.execution.fast.symbolic.rerolling import Heads, Keys, direction, rerolled
from locum.execution.fast.symbolic.reuse import Buffers, may_be_looked_up, ordered
from locum.execution.fast.symbolic.solving import GuardedCases, solve
from locum.execution.fast.symbolic.terms import (
    Apply,
    Fetch,
    Greatest,
    Guard,
    Literal,
    Load,
    PlaceOfGreatest,
    Position,
    Scattered,
    Sum,
    Term,
    free_variables,
    guarded,
    is_multilinear,
    is_view,
    scaled,
    tidy,
)
from locum.graph import COMPARISONS, Node, postorder, size_of
from locum.graph.operations import ROUNDINGS

#: Maximum depth of recursion while a buffer is lowered, since Python's stack is limited.
_DEEPEST = 150
#: Maximum number of lowered pairs of an s-op and a position, and the additional number for each node.
_POSITIONS, _POSITIONS_PER_NODE = 4_096, 32


class Lowering:
    """One attempt to lower a buffer."""

    def __init__(self, buffers: Buffers, scope: IndexScope, target: Node) -> None:
        self.buffers = buffers
        self.scope = scope
        self.target = target
        self.memory: dict[tuple[Node, Affine, tuple[Affine, ...]], Lowered] = {}
        #: For each s-op that is known to be affine in the position, (variable, expression).
        self.affine: dict[Node, tuple[str, Affine]] = {}
        self.most_positions = _POSITIONS
        self.depth = 0

    def terms(self, position: Affine, heads: Heads) -> Sum:
        """Lower the target at ``position``, for one member of each family, to a sum of terms."""
        return terms_of(self.lower(self.target, position, heads, "r"))

    @property
    def inlined(self) -> frozenset[Node]:
        """The nodes that were lowered as parts of the target."""
        return frozenset(node for node, _, _ in self.memory if node is not self.target)

    def lower(self, node: Node, p: Affine, heads: Heads, way: str) -> Lowered:
        """Lower a node at position ``p``, for the members ``heads`` of its families.

        ``way`` is the path to the node in the graph, from which names of variables are derived.
        """
        members = tuple([heads[f] for f in ordered(node)]) if node.free else ()
        if self.buffers.holds(node) and (node is not self.target or self.depth):
            return (Term(1, factors=(Load(node, members, p),)),)
        if node in self.affine:
            name, expression = self.affine[node]
            return expression.substitute(name, p)
        key = (node, p, members)
        lowered = self.memory.get(key)  # one lookup only, since hashing takes much time
        if lowered is None:
            self.require_moderate()
            if self.depth > _DEEPEST:
                raise Opaque(node, "too deep") if not node.free else Stuck("too deep")
            self.depth += 1
            try:
                lowered = self._lower(node, p, heads, way)
                indexing.require_bounded(lowered)
                self.memory[key] = lowered
                if isinstance(lowered, Affine) and not node.free and node in self.buffers.attentive:
                    self.remember(node, p, lowered)
            except Stuck as reason:
                if node.free:
                    raise
                raise Opaque(node, str(reason)) from None
            finally:
                self.depth -= 1
        return lowered

    def remember(self, node: Node, p: Affine, lowered: Affine) -> None:
        """Store a result so that it can be reused, if it is valid at every position.

        Without stored results, counts of counts would be lowered 2ⁿ times.
        """
        if len(p.parts) != 1 or p != variable(name := p.variables[0]):
            return
        if self.scope.box[name] == self.buffers.length and set(lowered.variables) <= {name}:
            self.affine[node] = name, lowered

    def require_moderate(self) -> None:
        """Raise an error if lowering the target needs too much work."""
        if len(self.memory) < self.most_positions:
            return
        nodes = sum(1 for _ in postorder(self.target))
        self.most_positions = _POSITIONS + _POSITIONS_PER_NODE * nodes
        if len(self.memory) >= self.most_positions:
            reason = "its parts are needed at too many positions"
            raise Stuck(reason) if self.target.free else Opaque(self.target, reason)

    def _lower(self, node: Node, p: Affine, heads: Heads, way: str) -> Lowered:
        match node.op:
            case "tokens":
                if node.attributes["cast"] == "str":
                    raise NotNumeric
                raise Stuck("tokens are converted")
            case "indices":
                return p
            case "length":
                return number(self.buffers.length)
            case "family":
                return heads[node]
            case "constant":
                return indexing.constant(node, self.scope)
            case "aggregate":
                return self.with_variables(self.aggregate, node, p, heads, way)
            case "selector_width":
                return self.with_variables(self.width, node, p, heads, way)
            case "sum_over":
                return self.with_variables(self.sum_over, node, p, heads, way)
            case "if_else":
                return self.if_else(node, p, heads, way)
            case "add" if node.inputs[0].op == "add" and not self.scope.ieee:
                return self.addition(node, p, heads, way)
        inputs = [self.lower(i, p, heads, f"{way}.{n}") for n, i in enumerate(node.inputs)]
        if node.op == "multiply" and not self.scope.ieee and self.multiplies_zero(node, inputs):
            return (indexing.applied(node, inputs),)  # the other factor may be undefined
        return indexing.lower(node, inputs, self.scope)

    def multiplies_zero(self, node: Node, inputs: list[Lowered]) -> bool:
        """Return whether a factor of a product is always 0, and the other factor is no position."""
        if all(isinstance(lowered, Affine) for lowered in inputs):
            return False
        return any(map(self.is_zero, node.inputs, inputs))

    def is_zero(self, node: Node, lowered: Lowered) -> bool:
        """Return whether an s-op is 0 for all tokens, positions and members of families."""
        depends = node in self.buffers.data or node in self.buffers.positional or node.free
        return not depends and not terms_of(lowered)

    def with_variables(
        self, lower: Callable[..., Lowered], node: Node, p: Affine, heads: Heads, way: str
    ) -> Lowered:
        """Lower a node that introduces variables, and repeat this if one of them is refined.

        Results of earlier nodes do not contain these variables. Lowering therefore need not start again
        from the target.
        """
        known: tuple[dict[Any, Any], ...] = (self.memory, self.affine, self.scope.box)
        while True:
            sizes, designated = [len(each) for each in known], len(self.buffers.designated)
            try:
                return lower(node, p, heads, way)
            except Refine as request:
                is_older = request.name in itertools.islice(self.scope.box, sizes[-1])
                has_designated = len(self.buffers.designated) > designated
                if is_older or has_designated or not self.scope.may_refine(request):
                    raise
                self.scope.refine(request)
                for each, size in zip(known, sizes, strict=True):
                    while len(each) > size:
                        each.popitem()

    def if_else(self, node: Node, p: Affine, heads: Heads, way: str) -> Lowered:
        """Lower a choice; if one branch is chosen everywhere in the box, lower only this branch."""
        condition, *branches = node.inputs
        holds = self.lower(condition, p, heads, f"{way}.0")
        if isinstance(holds, Affine):
            holds = solving.comparison("!=", holds, number(0))
        if isinstance(holds, GuardedCases):
            holds = indexing.decided(holds, self.scope)
            if holds.value is not None:
                place = 1 if holds.value else 2
                return self.lower(node.inputs[place], p, heads, f"{way}.{place}")
        lowered = [self.lower(b, p, heads, f"{way}.{n}") for n, b in enumerate(branches, start=1)]
        then, otherwise = map(terms_of, lowered)
        return indexing.if_else(holds, then, otherwise, self.scope.ieee)

    def addition(self, node: Node, p: Affine, heads: Heads, way: str) -> Lowered:
        """Lower a chain of additions without recursion, and combine its terms if this is exact enough.

        In RASP text without families, several heads are added up by such a chain.
        """
        addends = []
        while node.op == "add" and (node is self.target or not self.buffers.holds(node)):
            node, last = node.inputs
            addends.append(last)
        addends.append(node)
        lowered = [self.lower(x, p, heads, f"{way}+{n}") for n, x in enumerate(reversed(addends))]
        if all(isinstance(x, Affine) for x in lowered):
            return sum((x for x in lowered if isinstance(x, Affine)), number(0))
        terms = tuple(t for x in lowered for t in terms_of(x))
        if not indexing.is_moderate(terms):
            return functools.reduce(indexing.added, lowered)
        names = (f"{way}r{n}" for n in itertools.count())
        # The size is part of the name, since other pieces of the box may have runs of other lengths.
        rolled = rerolled(
            terms, self.scope.box, lambda size: self.scope.ranges(f"{next(names)}:{size}", size)
        )
        if rolled == terms:
            return tidy(terms)
        solved = (solve(t, self.scope.box, self.scope.fresh) for t in rolled)
        return tidy(tuple(t for t in solved if t is not None))

    def sum_over(self, node: Node, p: Affine, heads: Heads, way: str) -> Lowered:
        """Lower a sum over families; indices of families become summed variables."""
        body, *families = node.inputs
        ranges = [self.scope.ranges(f"{way}s{n}", size_of(f)) for n, f in enumerate(families)]
        terms: list[Term] = []
        for values in itertools.product(*ranges):
            inside = {**heads, **dict(zip(families, values, strict=True))}
            variables = tuple(v for e in values for v in e.variables)
            for term in terms_of(self.lower(body, p, inside, f"{way}b")):
                scattered = self.scattered(term, variables) if self.scope.ieee else None
                if scattered is not None:
                    terms.append(scattered)
                    continue
                summed = Term(term.coefficient, term.sums + variables, term.guards, term.factors)
                solved = solve(summed, self.scope.box, self.scope.fresh)
                if solved is not None:
                    terms.append(solved)
        return tuple(terms)

    def scattered(self, term: Term, sums: tuple[str, ...]) -> Term | None:
        """Return Σ (value if target = position else 0) as a sum that adds values at their targets.

        The result is None if the term does not have this form, for example if the positions are not
        consecutive or if the target does not depend on ``sums``.
        """
        if term != Term(1, factors=term.factors) or len(term.factors) != 1:
            return None
        (chosen,) = term.factors
        if not isinstance(chosen, Apply) or chosen.op != "if_else":
            return None
        condition, values, otherwise = chosen.arguments
        if otherwise != (Term(1, factors=(Literal(0.0),)),) or len(condition) != 1:
            return None
        match condition[0].factors:
            case (Apply("equal", (target, (Term(1, (), (), (Position(place),)),))),):
                pass
            case _:
                return None
        mine = set(place.variables)
        if mine & (free_variables(target) | free_variables(values) | set(sums)):
            return None
        # The positions must be consecutive, row by row.
        rows = sorted(place.parts, key=lambda part: part[1])
        sizes = itertools.accumulate((self.scope.box[v] for v, _ in rows), operator.mul, initial=1)
        if not rows or any(step != size for (_, step), size in zip(rows, sizes, strict=False)):
            return None
        if not free_variables(target) & set(sums):
            return None
        return Term(1, factors=(Scattered(sums, target, place, values),))

    # Attention ------------------------------------------------------------------------------------

    def aggregate(self, node: Node, p: Affine, heads: Heads, way: str) -> Lowered:
        """Lower a head: solve its selector, then lower the value at the selected keys."""
        selector, values = node.inputs
        default = node.attributes["default"]
        if isinstance(default, str):
            raise NotNumeric
        if not isinstance(default, (int, float)) or not math.isfinite(default):
            raise Stuck("an infinite default")
        if self.scope.ieee and self.is_position(selector):
            position = self.lower(selector.inputs[1], p, heads, f"{way}y")
            if indexing.whole(position) is None:
                return self.fetch(terms_of(position), values, float(default))
        scores = []
        while selector.op == "best":
            selector, score = selector.inputs
            scores.append(score)
        keys = self.keys(selector, p, heads, way)
        if scores:
            return self.greatest(values, scores, keys, default, heads, way)
        return self.mean(values, keys, default, heads, way)

    def is_position(self, selector: Node) -> bool:
        """Return whether a selector selects only the key whose position equals the query."""
        if selector.op != "select" or selector.attributes["predicate"] != "==":
            return False
        return selector.inputs[0].op == "indices"

    def fetch(self, position: Sum, values: Node, default: float) -> Lowered:
        """Lower a head that reads a key at a position that is not affine in the loop variables."""
        if values.free:
            raise Stuck("a fetch from a family of values")
        if not self.buffers.holds(values):
            self.buffers.designate(values)
        return (Term(1, factors=(Fetch(values, position, default),)),)

    def mean(self, values: Node, keys: list[Keys], default: float, heads: Heads, way: str) -> Lowered:
        """Lower the mean over the keys.

        The number of keys must be the same for all queries in the box that select a key.
        """
        if any(k.filters for k in keys):
            raise Stuck("a mean over keys that depend on data")
        if any(v in k.sums for k in keys for g in k.guards for v in g.e.variables):
            raise Stuck("the number of selected keys varies")
        # If there is one range of keys and no default, the sum over families handles the guards.
        conditioned = keys if len(keys) == 1 and not default else self.settled(keys)
        if not conditioned:
            return terms_of(number(default) if isinstance(default, int) else (Term(default),))
        if len(conditioned) == 1 and not conditioned[0].sums and not conditioned[0].guards:
            return self.value(values, conditioned[0].position, heads, f"{way}v")
        if len(conditioned) > 1 and any(k.guards for k in conditioned):
            raise Stuck("the number of selected keys varies")
        total = sum(k.count(self.scope) for k in conditioned)
        if total > 1 and values in self.buffers.boolean:
            raise Stuck("a mean of booleans")
        terms: list[Term] = []
        for place, k in enumerate(conditioned):
            value = terms_of(self.value(values, k.position, heads, f"{way}v{place}"))
            for term in value:
                share = term.coefficient * Fraction(1, total) if total > 1 else term.coefficient
                summed = Term(share, term.sums + k.sums, term.guards, term.factors).guarded(k.guards)
                solved = solve(summed, self.scope.box, self.scope.fresh)
                if solved is not None:
                    terms.append(solved)
        return (*terms, *self.default(default, conditioned[0].guards))

    def greatest(
        self,
        values: Node,
        scores: list[Node],
        keys: list[Keys],
        default: float,
        heads: Heads,
        way: str,
    ) -> Lowered:
        """Lower a head whose selector is ``best``.

        The result is a maximum or minimum if the head aggregates the score itself, or its negation. If
        only one key can be selected, the result is the value at this key. Otherwise, it is the value at
        the position of a maximum, which is lowered only in IEEE arithmetic.
        """
        sign = direction(values, scores[-1])
        settled = self.settled(keys)
        if not settled:
            return terms_of(number(default) if isinstance(default, int) else (Term(default),))
        if len(settled) > 1:
            raise Stuck("a maximum over several ranges")
        k = settled[0]
        outer = tuple(g for g in k.guards if not any(v in k.sums for v in g.e.variables))
        inner = tuple(g for g in k.guards if g not in outer)
        filters = tuple(
            self.filter(f, k.position, heads, f"{way}f{n}") for n, f in enumerate(k.filters)
        )
        if sign is None and k.sums and not (k.guards or filters) and self.scope.ieee:
            return self.place_of_greatest(values, scores, k, heads, way)
        value = terms_of(self.value(values, k.position, heads, f"{way}v"))
        if not k.sums and not filters:
            return (*guarded(value, k.guards), *self.default(default, k.guards))
        if sign is None:
            raise Stuck("the position of a maximum")
        maximum = Greatest(k.sums, inner, filters, value, sign, float(default))
        return (Term(1, guards=outer, factors=(maximum,)), *self.default(default, outer))

    def place_of_greatest(
        self, values: Node, scores: list[Node], k: Keys, heads: Heads, way: str
    ) -> Lowered:
        """Lower the value at the leftmost key with the highest score.

        The keys must be one range, and the value must be affine in the key.
        """
        is_leftmost = len(scores) == 2 and scores[0].op == "negate"
        if not is_leftmost or scores[0].inputs[0].op != "indices" or len(k.sums) != 1:
            raise Stuck("the position of a maximum")
        (along,) = k.sums
        if k.position.coefficient(along) < 1:
            raise Stuck("the position of a maximum from right to left")
        score = terms_of(self.value(scores[1], k.position, heads, f"{way}g"))
        place = Term(1, factors=(PlaceOfGreatest(along, score),))
        found = self.lower(values, k.position, heads, f"{way}v")
        if isinstance(found, Affine):
            rest, step = terms_of(found.without(along)), found.coefficient(along)
            return (Term(1, factors=(Apply("add", ((place.scaled(step),), rest)),)),)
        raise Stuck("the value at the position of a maximum")

    def default(self, default: float, guards: tuple[Guard, ...]) -> Sum:
        """Return the default of a head as terms that apply where no key is selected."""
        if not default or not guards:
            return ()
        return scaled(solving.negation(GuardedCases((guards,))).terms(), default)

    def width(self, node: Node, p: Affine, heads: Heads, way: str) -> Lowered:
        """Return the lowered form of the number of keys that the query at position ``p`` selects."""
        keys = self.settled(self.keys(node.inputs[0], p, heads, way))
        if any(k.filters or any(v in k.sums for g in k.guards for v in g.e.variables) for k in keys):
            raise Stuck("the number of selected keys varies")
        if not any(k.guards for k in keys):
            return number(sum(k.count(self.scope) for k in keys))
        return tuple(Term(k.count(self.scope), guards=k.guards) for k in keys)

    def settled(self, keys: list[Keys]) -> list[Keys]:
        """Return the keys after a check of the guards that do not depend on summed variables.

        :class:`Refine` is raised if a cut of the box helps to decide these guards.
        """
        for k in keys:
            outer = [g for g in k.guards if not any(v in k.sums for v in g.e.variables)]
            indexing.decided(GuardedCases((tuple(outer),)), self.scope)
        return keys

    def value(self, node: Node, p: Affine, heads: Heads, way: str) -> Lowered:
        """Lower a value at the positions of selected keys, and load it from a buffer if necessary.

        Views, and integers and conditions that positions determine, need no buffer. A product of loads
        becomes part of the sum that uses it. Every other value is computed once, in a buffer. The
        buffer of a value that depends on families has one more axis for each family. Data that cannot
        be lowered at these positions are also computed in a buffer, at consecutive positions.
        """
        computed = node in self.buffers.data or node.op in ROUNDINGS  # positions are never rounded
        if computed and not node.free and not may_be_looked_up(node):
            self.buffers.designate(node)
        try:
            lowered = self.lower(node, p, heads, way)
        except (Stuck, Opaque):
            if node not in self.buffers.data or self.buffers.holds(node):
                raise
        else:
            if isinstance(lowered, (Affine, GuardedCases)) or self.buffers.holds(node):
                return lowered
            if is_view(lowered) or (is_multilinear(lowered) and (node.free or len(lowered) == 1)):
                return lowered
        self.buffers.designate(node)
        return self.lower(node, p, heads, way)

    # Selectors ------------------------------------------------------------------------------------

    def keys(self, selector: Node, p: Affine, heads: Heads, way: str) -> list[Keys]:
        """Return the keys that the query at position ``p`` selects, as disjoint sets of positions."""
        keys = []
        for j in self.scope.ranges(f"{way}k", self.buffers.length):
            for guards, filters in self.cases(selector, j, p, heads, way):
                term = Term(1, j.variables, guards, (Position(j),))
                solved = solve(term, self.scope.box, self.scope.fresh)
                if solved is not None:
                    (position,) = solved.factors
                    assert isinstance(position, Position)
                    keys.append(Keys(position.e, solved.sums, solved.guards, filters))
        return keys

    def cases(
        self, selector: Node, j: Affine, p: Affine, heads: Heads, way: str
    ) -> list[tuple[tuple[Guard, ...], tuple[Node, ...]]]:
        """Return a selector as disjoint conjunctions of guards, each with selectors that filter the
        keys by data.
        """
        if selector.op == "selector_and":
            parts = [self.cases(s, j, p, heads, f"{way}{n}") for n, s in enumerate(selector.inputs)]
            return [((*g, *h), (*e, *f)) for g, e in parts[0] for h, f in parts[1]]
        if selector.op == "select" and selector.inputs[0] in self.buffers.data:
            return [((), (selector,))]
        return [(case, ()) for case in self.condition(selector, j, p, heads, way).cases]

    def condition(self, selector: Node, j: Affine, p: Affine, heads: Heads, way: str) -> GuardedCases:
        """Lower a selector that depends only on positions; the result is a condition."""
        if selector.op == "best":
            raise Stuck("a best within a selector")
        if selector.op != "select":
            parts = [self.condition(s, j, p, heads, f"{way}{n}") for n, s in enumerate(selector.inputs)]
            match selector.op:
                case "selector_and":
                    return solving.both(*parts).settled(self.scope.box)
                case "selector_or":
                    return solving.either(*parts).settled(self.scope.box)
            return solving.negation(parts[0]).settled(self.scope.box)
        key, query = selector.inputs
        if key in self.buffers.data or query in self.buffers.data:
            raise Stuck("the selected keys depend on data")
        lowered = (self.lower(key, j, heads, f"{way}x"), self.lower(query, p, heads, f"{way}y"))
        compared = indexing.comparison(str(selector.attributes["predicate"]), *lowered)
        if not isinstance(compared, GuardedCases):
            raise Stuck("a selector by values that are not integers")
        return compared.settled(self.scope.box)

    def filter(self, selector: Node, p: Affine, heads: Heads, way: str) -> Sum:
        """Lower a data-dependent condition on keys at the positions of the keys."""
        key, query = selector.inputs
        if query in self.buffers.data or query in self.buffers.positional:
            raise Stuck("keys and queries are compared by values that depend on data")
        name = COMPARISONS[str(selector.attributes["predicate"])].operation
        a = terms_of(self.value(key, p, heads, f"{way}x"))
        b = terms_of(self.lower(query, p, heads, f"{way}y"))
        return (Term(1, factors=(Apply(name, (a, b)),)),)
