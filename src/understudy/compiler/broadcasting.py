"""Second stage: selectors that no dot product can score, by bringing every key to every query.

One head cannot attend to ``key < query`` for arbitrary numbers: on N ordered values it needs d_k ≥ N−1
(docs/compiler.md). But a network can bring all N keys to every position first, one slot each, and let the
feed-forward compare: position by position it then knows its row of the pattern. A width is the sum of that
row; an aggregate attends with it (a query of N zeros and ones against the position of the key).

Keys are brought in one of two ways:

- whole numbers and other finite values, by **one** head: each position writes its value into a slot of its
  own, a uniform head takes the mean, and the length gives the value back, rounded;
- real numbers by one head for each position, which fetches its value unchanged; or, if the program's author
  declares a separation, by the one uniform head, and comparisons allow for half of it.
"""

from __future__ import annotations

import numpy as np

from understudy.compiler.linear import Linear, of
from understudy.compiler.scores import Scores, Selectors, Unscored, conditions
from understudy.compiler.target import Target
from understudy.compiler.values import Values, distinct
from understudy.errors import CompileError
from understudy.execution.domains import COMPARISONS
from understudy.graph import Node, abbreviate, build, postorder
from understudy.graph.definitions import everywhere
from understudy.graph.operations import constant
from understudy.graph.traversal import with_inputs

#: Keys that are brought to every position; a residual stream wider than that is not worth having.
MAX_KEYS = 256


def realisable(root: Node, selectors: Selectors, values: Values, target: Target) -> Node:
    """The same program, in which every selector that attention uses has scores."""
    stage = _Broadcasting(selectors, values, target)
    new: dict[Node, Node] = {}
    for node in postorder(root):
        same = with_inputs(node, tuple(new[i] for i in node.inputs))
        new[node] = stage.attention(same) if same.op in ("aggregate", "selector_width") else same
    return new[root]


class _Broadcasting:
    def __init__(self, selectors: Selectors, values: Values, target: Target) -> None:
        self.selectors = selectors
        self.values = values
        self.target = target

    def attention(self, node: Node) -> Node:
        """The node itself, if it needs a head and its selector has scores that are worth their slots."""
        selector = node.inputs[0]
        width = node.op == "selector_width"
        pattern = self.selectors.pattern(selector)
        if pattern is not None and width and pattern.all():
            return build("length")
        if pattern is not None and not width and bool((pattern == np.eye(len(pattern))).all()):
            return node.inputs[1]  # each position attends to itself: nothing moves
        if pattern is not None and not width and int(pattern.sum(axis=1).max()) > 1:
            self._require_numbers(node)
        try:
            if not (width and self._dear(selector)):
                scores = self.selectors.scores(selector)
                dear = width and len(scores.pairs) > 2 * self.target.longest
                late = any(not self._at_once(n) for n in scores.nodes)
                if not (width and scores.bonus) and not (dear and late):
                    return node
        except Unscored:
            pass
        if self.target.longest > MAX_KEYS:
            raise CompileError(
                f"this selector needs every key at every position, and {self.target.longest} keys are too "
                f"many for that: the limit is {MAX_KEYS}",
                abbreviate(selector),
            )
        row = self.row(selector)
        if width:
            total = _total([build("indicator", here) for here in row])
            self.values.declare(total, range(self.target.longest + 1))
            return total
        at = build("indices")
        pairs = tuple(
            (of(build("indicator", here)), of(build("indicator", build("equal", at, constant(key)))))
            for key, here in enumerate(row)
        )
        self.selectors.given(
            selector, Scores(pairs, Linear(constant=-1.0), how=("keys brought to every position",))
        )
        return node

    def _require_numbers(self, node: Node) -> None:
        """Several keys certainly: what is averaged must not all be strings and truths."""
        values = self.values.finite(node.inputs[1])
        if values and all(isinstance(value, (str, bool)) for value in values):
            raise CompileError(
                f"it averages several values on inputs of {self.target.longest} tokens, and they are not "
                "numbers; select one key per query, or average an indicator",
                abbreviate(node),
            )

    def _dear(self, selector: Node) -> bool:
        """Whether its scores would take more slots than all keys do, in as many layers.

        That much can be said of comparisons before any scores are made; where they are dear, making
        them takes long.
        """
        wanted = 0
        for condition in conditions(selector):
            if condition.op == "select" and not all(map(self._at_once, condition.inputs)):
                classes = self.selectors.classes(condition)
                if condition.attributes["predicate"] != "==" and classes is not None:
                    wanted += classes.count
        return wanted > 2 * self.target.longest

    def _at_once(self, node: Node) -> bool:
        """Whether it is known before the first layer."""
        return self.values.depends_on(node, "indices") or self.values.depends_on(node, "tokens")

    def row(self, selector: Node) -> list[Node]:
        """For each key, an s-op that is true where the query selects it."""
        found: dict[Node, list[Node]] = {}
        for node in postorder(selector):
            parts = [found[i] for i in node.inputs if i in found]
            match node.op:
                case "select":
                    found[node] = self._compared(node)
                case "selector_and" | "selector_or":
                    op = node.op.removeprefix("selector_")
                    found[node] = [build(op, a, b) for a, b in zip(*parts, strict=True)]
                case "selector_not":
                    found[node] = [build("not", a) for a in parts[0]]
                case "best":
                    found[node] = self._greatest(parts[0], node.inputs[1])
        row = found[selector]
        if self.target.fixed:
            return row
        present = [build("less", constant(key), build("length")) for key in range(len(row))]
        return [build("and", here, there) for here, there in zip(row, present, strict=True)]

    def _compared(self, node: Node) -> list[Node]:
        key, query = node.inputs
        predicate = str(node.attributes["predicate"])
        keys, queries = self.values.finite(key), self.values.finite(query)
        if keys is not None and queries is not None:
            together = distinct((*keys, *queries))
            if any(isinstance(v, str) for v in together) and not all(
                isinstance(v, str) for v in together
            ):
                raise CompileError("strings are compared with numbers", abbreviate(node))
            key, query = self.selectors.rank(key, together), self.selectors.rank(query, together)
        brought = self.brought(key)
        margin = self.target.separation
        if (keys is not None and queries is not None) or margin is None:
            return [build(COMPARISONS[predicate], each, query) for each in brought]
        return [_separated(predicate, build("subtract", each, query), margin / 2) for each in brought]

    def _greatest(self, row: list[Node], score: Node) -> list[Node]:
        """Of the selected keys those that no other selected key exceeds."""
        values = self.values.finite(score)
        if values is not None:
            score = self.selectors.rank(score, values)
        brought = self.brought(score)
        if self.target.fixed:
            present = row
        else:
            present = [
                build("and", here, build("less", constant(key), build("length")))
                for key, here in enumerate(row)
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

    def brought(self, node: Node) -> list[Node]:
        """The value at each position, at every position."""
        places = range(self.target.longest)
        at = build("indices")
        if self.values.depends_on(node, "indices"):
            return [constant(value) for value in self.values.at_positions(node)]
        finite = self.values.finite(node)
        whole = finite is not None and all(isinstance(v, int) and abs(v) < 2**20 for v in finite)
        if whole or (self.target.separation is not None and self.target.feed_forward == "exact"):
            shares = [
                build(
                    "aggregate",
                    everywhere(),
                    build("if_else", build("equal", at, constant(place)), node, constant(0)),
                    default=0,
                )
                for place in places
            ]
            sums = [build("multiply", build("length"), share) for share in shares]
            if finite is None or not whole:
                return sums
            rounded = [build("round", total) for total in sums]
            for total in rounded:
                self.values.declare(total, distinct((0, *finite)))
            return rounded
        return [
            build("aggregate", build("select", at, constant(place), predicate="=="), node, default=0)
            for place in places
        ]


def _separated(predicate: str, difference: Node, margin: float) -> Node:
    """key ? query, where the difference is 0 or at least two margins."""
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
    """Σ, as a balanced tree: long chains are slow to walk."""
    while len(parts) > 1:
        paired = [build("add", a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = paired + parts[len(paired) * 2 :]
    return parts[0]
