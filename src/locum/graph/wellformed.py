"""Specify well-formed graphs by an executable check.

Tests apply this check to the results of front ends and rewrites, and ``loads`` applies it to graphs
with sums. A graph is well formed if

1. every node satisfies the table of operations: inputs, sorts, attributes;
2. every node is interned: building it again returns the same object;
3. every ``sum_over`` binds distinct families, whose names follow from their index and the height of the
   sum, so that equal sums are one node;
4. a whole *program* is an s-op or a selector without free families.

>>> from locum.graph.families import family
>>> problems(family(4, "l"))
['family parameter l (size 4) is bound by no sum: close it with sum_over(l, …)']
"""

from __future__ import annotations

from collections.abc import Iterator

from locum.errors import GraphError
from locum.graph.families import canonical, size_of
from locum.graph.node import Node
from locum.graph.operations import problem_with
from locum.graph.printer import family_name
from locum.graph.traversal import postorder


def problems(root: Node, program: bool = True) -> list[str]:
    """Return messages for violations in the graph below ``root``, or an empty list if the graph is well
    formed.

    With ``program=False``, free families are allowed, since parts of a program may contain them.
    """
    local = [problem for node in postorder(root) for problem in _local_problems(node)]
    return local + _unbound(root) if program else local


def require_program(root: Node) -> None:
    """Raise :class:`GraphError` if a graph has free families; ``operations.build`` does not check
    this.
    """
    for problem in _unbound(root):
        raise GraphError(problem)


def _unbound(root: Node) -> list[str]:
    names = sorted((family_name(f), size_of(f)) for f in root.free)
    return [
        f"family parameter {name} (size {size}) is bound by no sum: close it with sum_over({name}, …)"
        for name, size in names
    ]


def _local_problems(node: Node) -> Iterator[str]:
    problem = problem_with(node.op, node.inputs, node.attributes)
    if problem is not None:
        yield problem
        return
    if Node(node.op, node.inputs, node.attributes) is not node:
        yield f"{node!r} is not interned: there is another equal node"
    if node.op == "sum_over":
        body, *bound = node.inputs
        if len(set(bound)) < len(bound):
            yield f"{node!r} binds a family twice"
        for slot, family in enumerate(bound):
            if family is not canonical(body.height + 1, slot, size_of(family)):
                yield f"{node!r} binds {family!r}, which is not named by the height of the sum"
