"""Walking a graph without recursion: chains of 100,000 nodes are ordinary programs here.

>>> from locum.graph.operations import build
>>> i = build("indices")
>>> [node.op for node in postorder(build("add", i, build("multiply", i, i)))]
['indices', 'multiply', 'add']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter

from locum.graph.node import Node


def postorder(
    *roots: Node, into: Callable[[Node], bool] | None = None, deepest_first: bool = False
) -> Iterator[Node]:
    """Walk over every node below ``roots`` once, inputs before the nodes that use them.

    The order depends on the graph alone, so numbering nodes by it is stable. With ``into``, nodes
    for which it is false are left out, with all that can only be reached through them. With
    ``deepest_first`` the inputs of a node come in the order of their depth: evaluated so, a long chain
    does not keep what its links use waiting.
    """
    seen: set[Node] = set()
    ahead = iter(roots)
    #: The nodes whose inputs are being walked, each with what comes after it.
    waiting: list[tuple[Node, Iterator[Node]]] = []
    while True:
        for node in ahead:
            if node in seen or (into is not None and not into(node)):
                continue
            seen.add(node)
            inputs = node.inputs
            if inputs:
                waiting.append((node, ahead))
                if deepest_first:
                    inputs = tuple(sorted(inputs, key=_by_depth, reverse=True))
                ahead = iter(inputs)
                break
            yield node
        else:
            if not waiting:
                return
            node, ahead = waiting.pop()
            yield node


_by_depth = attrgetter("depth")


def depends_on(families: Iterable[Node]) -> Callable[[Node], bool]:
    """Restrict :func:`postorder` to the part of a graph in which one of ``families`` occurs free."""
    bound = frozenset(families)
    return lambda node: not node.free.isdisjoint(bound)


def count_uses(*roots: Node) -> dict[Node, int]:
    """Count for each node how many input places it fills (a root counts as one use)."""
    uses = dict.fromkeys(postorder(*roots), 0)
    for node in uses:
        for i in node.inputs:
            uses[i] += 1
    for root in roots:
        uses[root] += 1
    return uses


def transform(root: Node, change: Callable[[Node], Node]) -> Node:
    """Apply ``change`` to every node, inputs first; each sees its inputs already changed.

    Nodes are rebuilt as they are, without renaming bound families: use
    :func:`locum.graph.families.opened` first if ``change`` may put one ``sum_over`` inside
    another.
    """
    new: dict[Node, Node] = {}
    for node in postorder(root):
        new[node] = change(with_inputs(node, tuple([new[i] for i in node.inputs])))
    return new[root]


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """Return the same operation on other inputs (the node itself where nothing differs)."""
    return node if inputs == node.inputs else Node(node.op, inputs, node.attributes)


def replace_families(root: Node, renaming: Mapping[Node, Node]) -> Node:
    """Replace free families; only the parts in which they occur are walked."""
    new: dict[Node, Node] = dict(renaming)
    for node in postorder(root, into=depends_on(renaming)):
        if node not in new:
            new[node] = with_inputs(node, tuple([new.get(i, i) for i in node.inputs]))
    return new.get(root, root)
