"""Rewrite a graph by rules until no rule applies, and log every step.

A :class:`Rule` maps a node, whose inputs are already rewritten, to a node with the same meaning. The
result is None if the rule does not apply. Rules are tried on every node, inputs first, until no rule
applies. Each :class:`RewriteStep` in the log contains the name of the rule and the node before and
after.

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
    """A named rewrite rule: an equality that is applied from left to right."""

    name: str
    apply: Callable[[Node], Node | None]


@dataclass(frozen=True)
class RewriteStep:
    """One application of a rewrite rule to a node."""

    rule: str
    before: Node
    after: Node

    def __str__(self) -> str:
        return f"{self.rule}: {self.before!r} → {self.after!r}"


@dataclass(frozen=True)
class Rewritten:
    """The result of :func:`rewrite`: a graph to which no rule applies, and the steps that led to it."""

    root: Node
    log: tuple[RewriteStep, ...]


def rewrite(root: Node, rules: Sequence[Rule], passes: int = 100) -> Rewritten:
    """Return ``root`` rewritten by ``rules`` until no rule applies, and the log of all steps.

    Two rules that reverse each other would be applied forever. :class:`GraphError` is raised if each of
    ``passes`` passes over the graph applies a rule.
    """
    log: list[RewriteStep] = []

    def change(node: Node) -> Node:
        for rule in rules:
            after = rule.apply(node)
            if after is not None and after is not node:
                log.append(RewriteStep(rule.name, node, after))
                return after
        return node

    # During rewriting families have unique names, since a rule may move a sum into or out of another.
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
        if predicate in ("==", "!="):  # for "<" and others, "not <" is not ">=" if an operand is NaN
            opposite = COMPARISONS[predicate].negation
            return build("select", *node.inputs[0].inputs, predicate=opposite)
    return None


#: Equalities of selectors that hold for all values.
SELECTOR_ALGEBRA = (
    Rule("not not s = s", _double_negation),
    Rule("s and s = s, s or s = s", _idempotence),
    Rule("not == is !=", _negated_equality),
)
