"""Walking a graph without recursion: chains of 100,000 nodes are ordinary programs here.

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
    """Walk over every node below ``roots`` once, inputs before the nodes that use them.

    The order depends on the graph alone, so numbering nodes by it is stable. With ``into``, nodes
    for which it is false are left out, with all that can only be reached through them. With
    ``deepest_first`` the inputs of a node come in the order of their depth: evaluated so, a long chain
    does not keep what its links use waiting.
    """
    return walk(roots, _deepest_first if deepest_first else _inputs, into)


def walk(
    roots: Iterable[T], parts_of: Callable[[T], Sequence[T]], into: Callable[[T], bool] | None = None
) -> Iterator[T]:
    """Walk over all that is made of parts once, parts first: :func:`postorder` of anything."""
    seen: set[T] = set()
    ahead = iter(roots)
    #: What is being walked, each with what comes after it.
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
    """Return each of ``order`` with those that nobody needs after it; ``keep`` stays to the end."""
    here, seen, backwards = set(order), set(keep), []
    for item in reversed(order):
        last_used = [i for i in dict.fromkeys(needs(item)) if i in here and i not in seen]
        seen.update(last_used)
        backwards.append((item, last_used))
    return backwards[::-1]


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
