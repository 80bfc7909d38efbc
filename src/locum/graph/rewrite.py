"""Rewrite a graph by rules until no rule applies, and log every step.

A :class:`Rule` maps a node, whose inputs are already rewritten, to a node with the same meaning. The
result is None if the rule does not apply. Rules are tried on every node, inputs first, until no rule
applies. Each :class:`RewriteStep` in the log contains the name of the rule and the node before and
after.

>>> from locum.graph.operations import build
>>> rule = Rule("min(a, a) = a", lambda n: n.inputs[0] if n.op == "minimum" else None)
>>> result = rewrite(build("minimum", build("indices"), build("indices")), [rule])
>>> result.root
<indices: indices>
>>> [step.rule for step in result.log]
['min(a, a) = a']
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from locum.errors import GraphError
from locum.graph.families import closed, opened
from locum.graph.node import Node
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
