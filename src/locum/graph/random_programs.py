"""Generate random programs: graphs with shared nodes and families, of all operations in the table.

The caller supplies the random choices, from a seed or from a library for property-based testing.
:func:`grow` ensures that the program is well formed. ``INNER_OPERATIONS`` is computed from the table of
operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from locum.graph.families import family, sum_over
from locum.graph.node import Node
from locum.graph.operations import OPERATIONS, Sort, build, sort_of

T = TypeVar("T")

#: The operations with inputs, except ``sum_over``.
INNER_OPERATIONS = tuple(
    name for name, row in OPERATIONS.items() if row.group not in ("leaf", "family")
)


class Draws(Protocol):
    """The random choices that define a program."""

    def choice(self, options: Sequence[T]) -> T:
        """Choose one of the options."""
        ...

    def integer(self, low: int, high: int) -> int:
        """Choose an integer between ``low`` and ``high``, inclusive."""
        ...

    def attribute(self, name: str) -> Any:
        """Choose a value for the attribute ``name`` of an operation."""
        ...

    def has_families(self) -> bool:
        """Choose whether the program may contain families."""
        ...

    def operations(self) -> Sequence[str]:
        """Return the operations from which the program is built.

        An operation that is listed twice is chosen more often.
        """
        ...

    def sums_now(self) -> bool:
        """Choose whether an s-op that depends on families is summed immediately."""
        ...


def grow(
    draws: Draws,
    size: int,
    sorts: tuple[Sort, ...] = (Sort.SOP, Sort.SELECTOR),
    parts: Sequence[Node] = (),
) -> Node:
    """Return a program without free families that is made of at most ``size`` random operations.

    Sums over families are added to these operations. If the last node of one of the ``sorts`` has no
    free families, it is the root. Otherwise the root is a sum of this node, or of its selector width.
    The program is built from leaves, one selector, families and ``parts``.
    """

    def make(op: str, *inputs: Node) -> Node:
        drawn = {name: draws.attribute(name) for name in OPERATIONS[op].attributes}
        return build(op, *inputs, **drawn)

    nodes = [make("constant"), build("indices"), build("length"), make("tokens")]
    nodes.append(make("select", nodes[1], nodes[1]))
    nodes.extend(parts)
    if draws.has_families():
        nodes.extend(family(draws.integer(1, 3), name) for name in ("l", "m"))
    operations = draws.operations()
    for _ in range(draws.integer(1, size)):
        op = draws.choice(operations)
        chosen = [draws.choice(_of_sort(nodes, sort)) for sort in OPERATIONS[op].takes]
        nodes.append(make(op, *chosen))
        last = nodes[-1]
        if last.free and sort_of(last) is Sort.SOP and draws.sums_now():
            nodes.append(sum_over([draws.choice(_by_name(last))], last))
    last = next(node for node in reversed(nodes) if sort_of(node) in sorts)
    if last.free and sort_of(last) is Sort.SELECTOR:
        last = build("selector_width", last)
    return sum_over(_by_name(last), last) if last.free else last


def _by_name(node: Node) -> list[Node]:
    return sorted(node.free, key=lambda part: part.name)


def _of_sort(nodes: Sequence[Node], sort: Sort) -> list[Node]:
    allowed = (Sort.SOP, Sort.FAMILY) if sort is Sort.SOP else (sort,)
    return [node for node in nodes if sort_of(node) in allowed]
