"""Traverse graphs without recursion, since programs can contain chains of 100,000 nodes.

>>> from locum.graph.operations import build
>>> i = build("indices")
>>> [node.op for node in postorder(build("add", i, build("multiply", i, i)))]
['indices', 'multiply', 'add']
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TypeVar

from locum.graph.node import Node

T = TypeVar("T", bound=Hashable)


def postorder(
    *roots: Node, into: Callable[[Node], bool] | None = None, deepest_first: bool = False
) -> Iterator[Node]:
    """Yield every node below ``roots`` once, inputs before the nodes that use them.

    The order depends only on the graph and the order of ``roots``, so numbering nodes in this order is
    stable. Nodes for which ``into`` is false are omitted, and so are nodes that are reachable only
    through them. With ``deepest_first``, the inputs of a node are visited in order of decreasing depth.
    Intermediate results of a long chain can then be freed early.
    """
    return walk(roots, _deepest_first if deepest_first else _inputs, into)


def walk(
    roots: Iterable[T], parts_of: Callable[[T], Sequence[T]], into: Callable[[T], bool] | None = None
) -> Iterator[T]:
    """Yield every item reachable from ``roots`` through ``parts_of`` once, parts before the items that
    contain them.

    Items for which ``into`` is false are omitted, and so are items that are reachable only through
    them. :func:`postorder` is the special case for nodes and their inputs.
    """
    seen: set[T] = set()
    ahead = iter(roots)
    #: The items whose parts are being traversed, each with the iterator that is resumed afterwards.
    waiting: list[tuple[T, Iterator[T]]] = []
    while True:
        for whole in ahead:
            if whole in seen or (into is not None and not into(whole)):
                continue
            seen.add(whole)
            parts = parts_of(whole)
            if parts:
                waiting.append((whole, ahead))
                ahead = iter(parts)
                break
            yield whole
        else:
            if not waiting:
                return
            whole, ahead = waiting.pop()
            yield whole


_inputs = attrgetter("inputs")


def _deepest_first(node: Node) -> list[Node]:
    return sorted(node.inputs, key=attrgetter("depth"), reverse=True)


def last_uses(
    order: Sequence[T], needs: Callable[[T], Iterable[T]], keep: Iterable[T]
) -> list[tuple[T, list[T]]]:
    """Return pairs of each item of ``order`` and the list of items for which this item is the last
    user.

    ``needs`` returns the items that an item uses. After an item has been computed, the results of the
    items in its list can be freed. Items in ``keep`` are in no list.
    """
    here, seen, backwards = set(order), set(keep), []
    for item in reversed(order):
        last_used = [i for i in dict.fromkeys(needs(item)) if i in here and i not in seen]
        seen.update(last_used)
        backwards.append((item, last_used))
    return backwards[::-1]


def depends_on(families: Iterable[Node]) -> Callable[[Node], bool]:
    """Return a filter for :func:`postorder` that tests whether one of ``families`` occurs free in a
    node.
    """
    bound = frozenset(families)
    return lambda node: not node.free.isdisjoint(bound)


def count_uses(*roots: Node) -> dict[Node, int]:
    """Return for each node the number of times that it is an input of other nodes; each root counts as
    one more use.
    """
    uses = dict.fromkeys(postorder(*roots), 0)
    for node in uses:
        for i in node.inputs:
            uses[i] += 1
    for root in roots:
        uses[root] += 1
    return uses


def transform(root: Node, change: Callable[[Node], Node]) -> Node:
    """Return the graph below ``root`` with ``change`` applied to every node after its inputs.

    Bound families are not renamed. If ``change`` may nest one ``sum_over`` in another, first use
    :func:`locum.graph.families.opened`.
    """
    new: dict[Node, Node] = {}
    for node in postorder(root):
        new[node] = change(with_inputs(node, tuple([new[i] for i in node.inputs])))
    return new[root]


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """Return a node with the operation and attributes of ``node`` and other inputs, or ``node`` itself
    if the inputs are equal.
    """
    return node if inputs == node.inputs else Node(node.op, inputs, node.attributes)


def replace_families(root: Node, renaming: Mapping[Node, Node]) -> Node:
    """Return a graph with free families replaced according to ``renaming``.

    Only parts in which these families occur are visited.
    """
    new: dict[Node, Node] = dict(renaming)
    for node in postorder(root, into=depends_on(renaming)):
        if node not in new:
            new[node] = with_inputs(node, tuple([new.get(i, i) for i in node.inputs]))
    return new.get(root, root)
