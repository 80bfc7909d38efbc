"""Rewrite selectors that cannot be expressed as scores q·k.

No single head with small keys can attend to ``key < query`` for arbitrary numbers: for N ordered
values, a head needs keys of dimension N−1 (docs/compiler_internals.md). Instead, a network can copy
keys to every position and compare the keys in the feed-forward, which thus computes the query's row of
the pattern. A width is the sum of this row. An aggregate uses the row as the query of a further head,
whose keys are one-hot positions.

``candidates.py`` defines the keys to copy. Positions may restrict each query to a few keys, as in the
rows of a matrix. For a width, or for an aggregate of values that cannot be listed, a separate head then
copies each of these keys. The feed-forward computes the width or the mean. Otherwise, all keys are
copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from locum.errors import CompileError
from locum.graph import COMPARISONS, OPERATIONS, Atom, Node, Sort, abbreviate, build, postorder, sort_of
from locum.graph.operations import constant
from locum.graph.traversal import with_inputs
from locum.networks.compiler.compile_limits import check_time, claim, work_on
from locum.networks.compiler.program.integer_sums import FEW_ADDENDS, is_exact, plain_sum
from locum.networks.compiler.program.normalise import Origins
from locum.networks.compiler.program.sources import conditions, distinct, selectors_of
from locum.networks.compiler.program.values import MAX_ROWS, Codes, Values
from locum.networks.compiler.scoring.candidates import Candidates, EveryKey, FewKeys, few_keys, split
from locum.networks.compiler.scoring.factoring import factored
from locum.networks.compiler.scoring.scored_selectors import Selectors
from locum.networks.compiler.scoring.scores import (
    Linear,
    Scores,
    Unscored,
    at_positions,
    looked_up,
    rank,
    term,
    whole_numbers,
)
from locum.networks.compiler.target import Target


@dataclass(frozen=True)
class Known:
    """The target of a compilation, and facts about the program found before the network is made."""

    target: Target
    #: The possible values of each s-op.
    values: Values
    #: The patterns and scores of selectors.
    selectors: Selectors
    #: The number that encodes each string.
    codes: Codes
    #: With ``fold=False``: s-ops that heads and units compute, although they depend only on the token,
    #: or only on position and length.
    kept: frozenset[Node] = frozenset()

    @classmethod
    def of(
        cls, target: Target, root: Node, scores: Mapping[Node, Scores] = MappingProxyType({})
    ) -> Known:
        """Analyse a program without families.

        ``scores`` contains the scores of selectors that RASP cannot express.
        """
        selectors = Selectors(target).knowing({}, scores)
        values = selectors.values
        known = cls(target, values, selectors, Codes(values, root))
        if target.fold:
            return known
        return replace(known, kept=frozenset(filter(known._is_kept, postorder(root))))

    def is_foldable(self, node: Node) -> bool:
        """Return whether an s-op depends only on the position, or only on the token."""
        by_token = self.target.vocabulary is not None and self.values.depends_on(node, "tokens")
        return by_token or self.values.depends_on(node, "indices")

    def _is_kept(self, node: Node) -> bool:
        """Return whether ``fold=False`` requires that heads and units compute an s-op."""
        if sort_of(node) is not Sort.SOP or self.values.constant(node) is not None:
            return False
        if node.op == "aggregate":
            return self.values.depends_on(node, "indices", "length")
        table = self.values.table(node) if OPERATIONS[node.op].elementwise else None
        return table is not None and self.is_foldable(node) and len(table.values) <= MAX_ROWS

    def knowing(
        self,
        values: Mapping[Node, Sequence[Atom]] = MappingProxyType({}),
        scores: Mapping[Node, Scores] = MappingProxyType({}),
    ) -> Known:
        """Return a copy that also contains the values of new s-ops and the scores of new selectors."""
        selectors = self.selectors.knowing(values, scores)
        return replace(self, values=selectors.values, selectors=selectors)

    def of_program(self, root: Node) -> Known:
        """Return a copy with codes for all strings of the rewritten program ``root``."""
        return replace(self, codes=Codes(self.values, root))


#: Maximum number of keys that are copied to every position, which limits the width of the residual
#: stream.
MAX_KEYS = 256
#: Maximum number of ranks of fractions, divided by the number of positions, for which one head moves
#: all keys to hidden units. With ranks, hidden units look up the rank of the query and of every key. If
#: a separate head moves the number of each key, no ranks are needed.
_RANKS = 4

#: Maximum number of widths that are summed.
MAX_PARTS = 8

#: Sources that are available before the first layer, each as an embedding.
_AT_ONCE = ("indices", "tokens")
_KNOWN = ("indices", "length", "tokens")


def broadcast(root: Node, known: Known, origins: Origins | None = None) -> tuple[Node, Known]:
    """Rewrite a program so that every selector that a head uses has scores.

    Return the new program, and the facts extended by the values and scores of its new parts.
    """
    stage = _Broadcasting(known)
    new: dict[Node, Node] = {}
    claimed: set[Node] = set()
    attending = ("aggregate", "selector_width", "best")
    selectors = {node.inputs[0] for node in postorder(root) if node.op in attending}
    for node in postorder(root):
        work_on(node)
        new[node] = same = with_inputs(node, tuple(new[i] for i in node.inputs))
        if same.op in ("aggregate", "selector_width"):
            new[node] = stage.attention(same)
        elif node in selectors:
            new[node] = stage.conjunction(same)
        elif sort_of(same) is Sort.SOP:
            new[node] = stage.chosen(same) or stage.counted(same) or same
            stage.keep_integer_sum(node, new[node])
            if (product := plain_sum(node)) is not None:
                stage.values.add_sum(new[node], new[product])
        made = list(postorder(new[node], into=lambda n: n not in claimed))
        claimed.update(made)
        claim(node, (node, same, *made))
        check_time(node)
        if origins is not None:
            origins.rewrote(node, same)
            origins.rewrote(node, new[node])
    if origins is not None:
        origins.replaced(new)
    known = stage.known if new[root] is root else stage.known.of_program(new[root])
    return new[root], known


class _Broadcasting:
    """The rewriting of one program; ``known`` is extended with facts about new s-ops and selectors."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.target = known.target

    @property
    def selectors(self) -> Selectors:
        return self.known.selectors

    @property
    def values(self) -> Values:
        return self.known.values

    def _brought(self, node: Node, candidates: Candidates) -> list[Node]:
        """Return s-ops that copy the value at each candidate to every position."""
        brought = candidates.brought(node, self.values)
        if brought.values:
            self.known = self.known.knowing(values=brought.values)
        return brought.nodes

    def conjunction(self, selector: Node) -> Node:
        """Return the selector with its conditions replaced by simpler conditions, where possible."""
        if self.selectors.pattern(selector) is not None:
            return selector
        parts: list[Node] = []
        for condition in conditions(selector):
            static = condition.op == "best" or self.selectors.pattern(condition) is not None
            parts += (None if static else factored(condition, self.values)) or [condition]
        if parts == conditions(selector):
            return selector
        return reduce(lambda one, other: build("selector_and", one, other), parts)

    def attention(self, node: Node) -> Node:
        """Return a rewritten aggregate or width, or the same node if it needs no rewriting.

        A width is also rewritten if the scores of its selector would need too many slots. If all keys
        are copied, an aggregate remains the same, but its selector receives new scores.
        """
        selector = node.inputs[0]
        width = node.op == "selector_width"
        fold = self.target.fold
        if fold and not width and self.values.depends_on(node, "indices", "length"):
            return node  # a mean that depends only on position and length
        pattern = self.selectors.pattern(selector)
        itself = pattern is not None and bool((pattern == np.eye(len(pattern))).all())
        if itself and not width and fold:
            return node.inputs[1]  # each position attends only to itself
        if pattern is not None and not width and int(pattern.sum(axis=1).max()) > 1:
            self._require_numbers(node)
        by_heads = self._counted(node) if width else self._share(node)
        if by_heads is not None and (width or fold):
            return by_heads
        if not width and self._is_scored(selector, width=False):
            return node
        few = self._few(selector)
        if few is not None and (width or self.values.finite(node.inputs[1]) is None):
            return self._among(few, node)
        if self.target.longest > MAX_KEYS:
            raise CompileError(
                f"length: expected at most {MAX_KEYS} for a selector that compares real numbers or too "
                f"many different values, got {self.target.longest}; try a smaller length, or integers",
                abbreviate(selector),
            )
        every_key = EveryKey(self.target)
        if width:
            return self._among(every_key, node)
        at = build("indices")
        pairs = tuple(
            (
                term(build("indicator", here)),
                term(build("indicator", build("equal", at, constant(key)))),
            )
            for key, here in enumerate(self.row(selector, every_key))
        )
        scores = Scores(pairs, Linear(constant=-1.0), how=("keys brought to every position",))
        claim(node, postorder(*scores.nodes))
        self.known = self.known.knowing(scores={selector: scores})
        return node

    def _counted(self, node: Node) -> Node | None:
        """Return a width as a sum of counts by heads and functions of position and length, or None.

        None means that the keys must be copied to the query instead.
        """
        selector = node.inputs[0]
        known = self._known_width(selector)
        if known is not None:
            return known
        early = self._split_at_once(selector)
        if early is not None:
            return self._sum_of_widths(early)
        if self._is_scored(selector, width=True):
            return node
        few = self._few(selector)
        parts = self._split(selector, by_digits=few is None and not self._compares_many(selector))
        if parts is not None:
            return self._sum_of_widths(parts)
        # Each comparison of a formula needs one slot for each copied key.
        compared = sum(part.op == "select" for part in selectors_of(selector))
        brought = self.target.longest if few is None else len(few.places)
        return node if self._is_scored(selector, width=True, slots=2 * brought * compared) else None

    def _share(self, node: Node) -> Node | None:
        """Return an aggregate as a number divided by a width, or None if this is not possible.

        The values must be integers that are 0 at all keys except one, and every query must select this
        key on every input. RASP programs without ``selector_width`` count keys in this way.
        """
        selector, value = node.inputs
        if not self.values.depends_on(value, "indices"):
            return None
        at = self.values.at_positions(value)
        numbers = {place: number for place, number in enumerate(at) if number != 0}
        if len(numbers) != 1 or not whole_numbers(at) or any(isinstance(v, bool) for v in at):
            return None
        ((place, number),) = numbers.items()
        if place >= self.target.shortest or not self.selectors.certain(selector)[:, place].all():
            return None
        width = self._counted(build("selector_width", selector))
        if width is None:
            return None
        table = self.values.table(width)
        if table is None or table.sources == (width,):
            self.known = self.known.knowing(values={width: range(1, self.target.longest + 1)})
        return build("divide", constant(number), width)

    def _counted_by_position(self, counts: NDArray[np.int64]) -> Node | None:
        """Return a width as a function of the position plus a function of the length, or None.

        ``counts`` contains the width for each length and position.
        """
        shortest, longest = self.target.shortest, self.target.longest
        at, more = counts[-1], counts[:, 0] - counts[-1, 0]
        lengths = np.arange(shortest, longest + 1)
        exists = np.arange(longest) < lengths[:, None]
        if ((counts != at + more[:, None]) & exists).any():
            return None
        of_length: Node | None = None
        if (more == lengths - longest).all() and shortest < longest:
            at, of_length = at - longest, build("length")
        elif more.any():
            of_length = looked_up(
                build("length"), dict(zip(lengths.tolist(), more.tolist(), strict=True))
            )
        more_than_place = at - np.arange(longest)
        of_position = at_positions(at.tolist())
        if longest > 1 and not (more_than_place - more_than_place[0]).any():
            of_position = build("add", build("indices"), constant(int(more_than_place[0])))
        if of_length is None:
            return of_position
        return build("add", of_length, of_position) if at.any() else of_length

    def chosen(self, node: Node) -> Node | None:
        """Return the selected branch of an ``if_else`` with constant condition, otherwise None."""
        condition = self.values.constant(node.inputs[0]) if node.op == "if_else" else None
        return None if condition is None else node.inputs[1 if condition else 2]

    def counted(self, node: Node) -> Node | None:
        """Return a sum of few different integers as a weighted sum of counts, or None.

        Heads count the keys with each value except one. The values must depend only on the token or
        only on the position, since keys must be exact.
        """
        found = self.values.sum_of_keys(node) if node.op in ("multiply", "round") else None
        if found is None or not self._at_once(found.values):
            return None
        addends, sums = self.values.finite(found.values), self.values.list_sums(found)
        if addends is None or sums is None or len(addends) > FEW_ADDENDS:
            return None
        if node.op == "multiply" and not is_exact(sums, self.target.longest):
            return None
        numbers = [int(value) for value in addends if not isinstance(value, str)]
        first = 0 if 0 in numbers else numbers[0]
        if first and self.values.depends_on(found.count, "indices"):
            return None  # multiplying the mean by a count from the position is cheaper
        parts = [(found.count, first)] if first else []
        for value, number in zip(addends, numbers, strict=True):
            if number == first:
                continue
            condition = build("select", found.values, constant(value), predicate="==")
            selector = build("selector_and", found.selector, condition)
            if not self._is_scored(selector, width=True):
                return None
            width = self.attention(build("selector_width", selector))
            parts.append((width, number - first))
        kind = int if node.op == "round" else float
        weighted = [
            part if weight == 1 and kind is int else build("multiply", part, constant(kind(weight)))
            for part, weight in parts
        ]
        return _total(weighted) if weighted else constant(kind(0))

    def keep_integer_sum(self, old: Node, new: Node) -> None:
        """Record that ``new`` is a sum of integers if it has no table and ``old`` is such a sum."""
        values = self.values.finite(old) if self.values.is_integer_sum(old) else None
        if values is not None and self.values.table(new) is None:
            self.known = self.known.knowing(values={new: values})
            self.values.add_integer_sum(new, values)

    def _is_scored(self, selector: Node, *, width: bool, slots: int | None = None) -> bool:
        """Return whether a head can use the scores of a selector.

        With ``width``, the head counts keys. Such a head cannot use ``best``, and scores that are not
        embedded must not need more than ``slots`` slots, by default twice the maximum length.
        """
        most = 2 * self.target.longest if slots is None else slots
        if width and self._slots(selector) > most:
            return False
        try:
            scores = self.selectors.scores(selector)
        except Unscored:
            return False
        dear = width and len(scores.pairs) > most
        late = any(not self._at_once(n) for n in scores.nodes)
        return not (width and scores.bonus) and not (dear and late)

    def _split_at_once(self, selector: Node) -> list[tuple[Node, int]] | None:
        """Return the parts of a width if one head in the first layer can count them.

        Parts that are functions of position and length need no head. Return None if one head can count
        the whole width in the first layer, or if splitting does not help.
        """
        parts = None if self._is_early(selector) else split(selector, self.values)
        if parts is None:
            return None
        counted = [part for part, _ in parts if self._known_width(part) is None]
        early = len(counted) == 1 and self._is_early(counted[0])
        return parts if early and self._is_scored(counted[0], width=True) else None

    def _is_early(self, selector: Node) -> bool:
        """Return whether the scores of a selector use only s-ops available before the first layer."""
        for condition in conditions(selector):
            if self.selectors.pattern(condition) is None:
                compared = [node.inputs for node in selectors_of(condition) if node.op == "select"]
                for side in zip(*compared, strict=True):
                    if not any(all(self.values.depends_on(n, s) for n in side) for s in _AT_ONCE):
                        return False
        return True

    def _split(self, selector: Node, *, by_digits: bool) -> list[tuple[Node, int]] | None:
        """Return pairs of a selector and a sign; the signed widths add up to the width of ``selector``.

        Heads can count with the selectors, or their widths are functions of position and length. Return
        None if no such selectors are found. With ``by_digits``, ranks are split into two digits.
        """
        parts, pending = list[tuple[Node, int]](), [(selector, 1)]
        while pending:
            part, sign = pending.pop()
            if self._known_width(part) is None and not self._is_scored(part, width=True):
                smaller = split(part, self.values, by_digits=by_digits)
                if smaller is None:
                    return None
                pending += [(each, sign * other) for each, other in reversed(smaller)]
            else:
                parts.append((part, sign))
            if len(parts) + len(pending) > MAX_PARTS:
                return None
        return parts

    def _known_width(self, selector: Node) -> Node | None:
        """Return the width of a selector as a function of the position plus a function of the length.

        Return None if this is not possible, or with ``fold=False``.
        """
        counts = self.selectors.counts(selector) if self.target.fold else None
        return None if counts is None else self._counted_by_position(counts)

    def _sum_of_widths(self, parts: Sequence[tuple[Node, int]]) -> Node:
        """Return the width of a selector as the sum of the signed widths of its parts."""
        count: Node | None = None
        # Functions of the position are added after the widths of heads, and parts are subtracted last.
        # A head does not compute a width, but only 1 / (width + 1).
        for part, sign in sorted(parts, key=lambda part: self._comes_last(*part)):
            counted = self.attention(build("selector_width", part))
            if count is None:
                count = counted
            else:
                count = build("add" if sign > 0 else "subtract", count, counted)
        assert count is not None
        table = self.values.table(count)
        if table is None or len(table.sources) != 1:
            self.known = self.known.knowing(values={count: range(self.target.longest + 1)})
        return count

    def _comes_last(self, part: Node, sign: int) -> int:
        """Return the sort key of a part of a width; parts that are subtracted come last."""
        return 2 if sign < 0 else int(self._known_width(part) is not None)

    def _few(self, selector: Node) -> FewKeys | None:
        """Return the few keys to which positions restrict each query, or None for no or too many keys.

        If a key is selected only as the best of many keys, it must be compared with all of them, so the
        result is None.
        """
        allowed = self.selectors.possible(selector)
        for node in selectors_of(selector):
            if node.op == "best" and (self.selectors.possible(node.inputs[0]) & ~allowed).any():
                return None
        return few_keys(allowed, self.target)

    def _require_numbers(self, node: Node) -> None:
        """Raise CompileError for an aggregate of several keys if all values are strings or booleans."""
        values = self.values.finite(node.inputs[1])
        if values and all(isinstance(value, (str, bool)) for value in values):
            raise CompileError(
                "expected numbers to average, got strings or booleans (several keys are selected on "
                f"inputs of {self.target.longest} tokens); try a selector of one key per query, or the "
                "mean of an indicator",
                abbreviate(node),
            )

    def _among(self, candidates: Candidates, node: Node) -> Node:
        """Return a width or an aggregate that the feed-forward computes from copied values."""
        row = self.row(node.inputs[0], candidates)
        counts = [build("indicator", here) for here in row]
        count = _total(counts)
        if node.op == "selector_width":
            self.known = self.known.knowing(values={count: range(len(row) + 1)})
            return count
        zero, one = constant(0), constant(1)
        brought = self._brought(node.inputs[1], candidates)
        selected = [
            build("if_else", here, value, zero) for here, value in zip(row, brought, strict=True)
        ]
        mean = build("divide", _total(selected), build("maximum", count, one))
        if not self.selectors.may_be_empty(node.inputs[0]):
            return mean
        return build("if_else", build("equal", count, zero), constant(node.default), mean)

    def _slots(self, selector: Node) -> int:
        """Estimate the number of slots that the scores of a selector need in addition to embeddings.

        The scores are not computed, which would be slow.
        """
        slots = 0
        for condition in conditions(selector):
            if condition.op == "select" and not all(map(self._at_once, condition.inputs)):
                classes = self.selectors.classes(condition)
                if condition.predicate != "==" and classes is not None:
                    slots += classes.count
            elif condition.op in ("selector_or", "selector_not"):
                slots += self._slots_of_formula(condition)
        return slots

    def _slots_of_formula(self, condition: Node) -> int:
        """Return the number of classes of a formula.

        Return 0 if its s-ops are available before the first layer, or if the number is unknown.
        """
        if self.selectors.pattern(condition) is not None:
            return 0
        try:
            joint = self.selectors.together(condition)
        except Unscored:
            return 0
        late = not (self._at_once(joint.key) and self._at_once(joint.query))
        return joint.classes.count if late else 0

    def _at_once(self, node: Node) -> bool:
        """Return whether an s-op is available before the first layer."""
        return any(self.values.depends_on(node, source) for source in _AT_ONCE)

    def row(self, selector: Node, candidates: Candidates) -> list[Node]:
        """Return, for each candidate, an s-op that is true if the query selects this candidate."""
        rows: dict[Node, list[Node]] = {}
        for node in selectors_of(selector):
            parts = [rows[i] for i in node.inputs if i in rows]
            match node.op:
                case "select":
                    rows[node] = self._compared(node, candidates)
                case "selector_and" | "selector_or":
                    op = node.op.removeprefix("selector_")
                    rows[node] = [build(op, a, b) for a, b in zip(*parts, strict=True)]
                case "selector_not":
                    rows[node] = [build("not", a) for a in parts[0]]
                case "best":
                    rows[node] = self._greatest(parts[0], node.inputs[1], candidates)
        return candidates.only_present(rows[selector])

    def _compared(self, node: Node, candidates: Candidates) -> list[Node]:
        key, query = node.inputs
        predicate = node.predicate
        keys, queries = self.values.finite(key), self.values.finite(query)
        strings = [isinstance(v, str) for v in (*(keys or ()), *(queries or ()))]
        if any(strings) and (keys is None or queries is None or not all(strings)):
            raise CompileError(
                "expected only strings or only numbers in a comparison, got both", abbreviate(node)
            )
        finite = keys is not None and queries is not None
        together = distinct((*(keys or ()), *(queries or ())))
        if finite and not self._too_many_ranks(together):
            key, query = rank(key, together), rank(query, together)
            query = self._as_it_is(query, range(len(together)))
        brought = self._brought(key, candidates)
        margin = self.target.separation
        if finite or margin is None:
            return [build(COMPARISONS[predicate].operation, each, query) for each in brought]
        return [_separated(predicate, build("subtract", each, query), margin / 2) for each in brought]

    def _compares_many(self, selector: Node) -> bool:
        """Return whether a selector compares numbers that have too many ranks."""
        for condition in selectors_of(selector):
            if condition.op == "select":
                listed = [self.values.finite(part) or () for part in condition.inputs]
                if self._too_many_ranks(distinct(value for values in listed for value in values)):
                    return True
        return False

    def _too_many_ranks(self, together: Sequence[Atom]) -> bool:
        """Return whether numbers have too many ranks, so that separate heads move the numbers instead.

        The result is false for strings, for small integers and for symbolic feed-forwards.
        """
        units = self.target.feed_forward != "exact"
        numbers = not any(isinstance(value, str) for value in together)
        few = len(together) <= _RANKS * self.target.longest or whole_numbers(together)
        return units and numbers and not few

    def _as_it_is(self, node: Node, values: Sequence[Atom]) -> Node:
        """Return a separate s-op with the same integers, whose values are then used as a source.

        The separate s-op rounds the integers, which does not change them. If ``node`` has no table, has
        at most one source, or depends only on position, length and token, return ``node`` itself.
        """
        table = self.values.table(node)
        if table is None or len(table.sources) < 2 or self.values.depends_on(node, *_KNOWN):
            return node
        same = build("round", node)
        self.known = self.known.knowing(values={same: values})
        return same

    def _greatest(self, row: list[Node], score: Node, candidates: Candidates) -> list[Node]:
        """Return, for each candidate, an s-op that is true if the candidate is one of the best.

        The best candidates have the maximum score of all candidates that ``row`` selects.
        """
        values = self.values.finite(score)
        if values is not None:
            score = rank(score, values)
        brought, present = self._brought(score, candidates), candidates.only_present(row)
        if values is not None:
            worth = [
                build("if_else", here, build("add", value, constant(1)), constant(0))
                for here, value in zip(present, brought, strict=True)
            ]
            self.known = self.known.knowing(values=dict.fromkeys(worth, range(len(values) + 1)))
            most = _balanced("maximum", worth)
            return [
                build("and", here, build("greater_equal", value, most))
                for here, value in zip(present, worth, strict=True)
            ]
        greatest, some = brought[0], present[0]
        for here, value in zip(present[1:], brought[1:], strict=True):
            better = build("or", build("not", some), build("greater", value, greatest))
            greatest = build("if_else", build("and", here, better), value, greatest)
            some = build("or", some, here)
        return [
            build("and", here, build("greater_equal", value, greatest))
            for here, value in zip(present, brought, strict=True)
        ]


def _separated(predicate: str, difference: Node, margin: float) -> Node:
    """Compare a key and a query; the absolute ``difference`` is 0 or at least twice ``margin``."""
    above, below = constant(margin), constant(-margin)
    match predicate:
        case ">":
            return build("greater", difference, above)
        case ">=":
            return build("greater", difference, below)
        case "<":
            return build("less", difference, below)
        case "<=":
            return build("less", difference, above)
        case "==":
            return build("less", build("absolute", difference), above)
        case _:
            return build("greater", build("absolute", difference), above)


def _total(parts: list[Node]) -> Node:
    """Return the sum of all parts."""
    return _balanced("add", parts)


def _balanced(op: str, parts: list[Node]) -> Node:
    """Combine all parts by an operation in a balanced tree, which is less deep than a chain."""
    while len(parts) > 1:
        paired = [build(op, a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = paired + parts[len(paired) * 2 :]
    return parts[0]
