"""Write random programs: graphs with sharing and families, from the whole table of operations.

Whoever draws (a seed, or a library of property tests) says how; :func:`grow` says what a well-formed
program is. A new operation is drawn as soon as it is in the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from locum.graph.families import family, sum_over
from locum.graph.node import Node
from locum.graph.operations import OPERATIONS, Sort, build, sort_of

T = TypeVar("T")

#: What can be written on top of leaves and families.
INNER_OPERATIONS = tuple(
    name for name, row in OPERATIONS.items() if row.group not in ("leaf", "family")
)


class Draws(Protocol):
    """What chance decides about a program, asked for in one order."""

    def choice(self, options: Sequence[T]) -> T:
        """Choose one of the options."""
        ...

    def integer(self, low: int, high: int) -> int:
        """Return an integer between ``low`` and ``high``, both included."""
        ...

    def attribute(self, name: str) -> Any:
        """Return a value for an attribute of an operation."""
        ...

    def has_families(self) -> bool:
        """Return whether the program may use families."""
        ...

    def operations(self) -> Sequence[str]:
        """Return the operations to choose from; one that is named twice comes more often."""
        ...

    def sums_now(self) -> bool:
        """Return whether an s-op of a family is summed over at once."""
        ...


def grow(
    draws: Draws,
    size: int,
    sorts: tuple[Sort, ...] = (Sort.SOP, Sort.SELECTOR),
    parts: Sequence[Node] = (),
) -> Node:
    """Write a program of up to ``size`` operations, of one of the sorts, with no family left free.

    It may use ``parts`` as well as the leaves.
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
