"""Rewriting a graph to a fixpoint, with a log of every step.

A :class:`Rule` looks at one node whose inputs are already rewritten and gives a node with the same
meaning, or None. Rules are tried on every node, inputs first, again and again until none applies.
What was done is kept: each :class:`Step` names the rule and shows the node before and after.

>>> from locum.graph.operations import build
>>> i = build("indices")
>>> before = build("selector_not", build("selector_not", build("select", i, i, predicate="<")))
>>> result = rewrite(before, SELECTOR_ALGEBRA)
>>> result.root
<select: select(indices, indices, <)>
>>> [step.rule for step in result.log]
['not not s = s']
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from locum.errors import GraphError
from locum.graph.families import closed, opened
from locum.graph.node import Node
from locum.graph.operations import COMPARISONS, build
from locum.graph.traversal import transform


@dataclass(frozen=True)
class Rule:
    """A named equality, read from left to right."""

    name: str
    apply: Callable[[Node], Node | None]


@dataclass(frozen=True)
class RewriteStep:
    """One use of a rule."""

    rule: str
    before: Node
    after: Node

    def __str__(self) -> str:
        return f"{self.rule}: {self.before!r} → {self.after!r}"


@dataclass(frozen=True)
class Rewritten:
    """The graph no rule applies to any more, and how it came about."""

    root: Node
    log: tuple[RewriteStep, ...]


def rewrite(root: Node, rules: Sequence[Rule], passes: int = 100) -> Rewritten:
    """Rewrite ``root`` by ``rules`` until nothing changes.

    Rules that undo one another would never end: after ``passes`` passes over the graph that is
    an error, which names the rule last used.
    """
    log: list[RewriteStep] = []

    def change(node: Node) -> Node:
        for rule in rules:
            after = rule.apply(node)
            if after is not None and after is not node:
                log.append(RewriteStep(rule.name, node, after))
                return after
        return node

    # Families are renamed apart meanwhile: a rule may move a sum into or out of another.
    current = opened(root)
    for _ in range(passes):
        steps = len(log)
        current = transform(current, change)
        if len(log) == steps:
            return Rewritten(closed(current), tuple(log))
    raise GraphError(
        f"rewriting did not come to an end in {passes} passes; the last rule used was {log[-1].rule!r}"
    )


def _double_negation(node: Node) -> Node | None:
    if node.op == "selector_not" and node.inputs[0].op == "selector_not":
        return node.inputs[0].inputs[0]
    return None


def _idempotence(node: Node) -> Node | None:
    if node.op in ("selector_and", "selector_or") and node.inputs[0] is node.inputs[1]:
        return node.inputs[0]
    return None


def _negated_equality(node: Node) -> Node | None:
    if node.op == "selector_not" and node.inputs[0].op == "select":
        predicate = node.inputs[0].predicate
        if predicate in ("==", "!="):  # only these: with nan, "not <" is not ">="
            opposite = COMPARISONS[predicate].negation
            return build("select", *node.inputs[0].inputs, predicate=opposite)
    return None


#: Equalities of selectors that hold whatever the values are.
SELECTOR_ALGEBRA = (
    Rule("not not s = s", _double_negation),
    Rule("s and s = s, s or s = s", _idempotence),
    Rule("not == is !=", _negated_equality),
)
