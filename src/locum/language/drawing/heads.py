"""Run the heads of a program on one input: what each attends to, reads and gives."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from locum.analysis import Head
from locum.execution import run
from locum.graph import Node, build, members, postorder
from locum.graph.labels import Labels
from locum.graph.traversal import replace_families

#: Heads of one family, and values of one head, that are shown; the rest are counted in words.
MAX_MEMBERS, MAX_VALUES = 6, 24


@dataclass(frozen=True)
class ShownValue:
    """One sequence that a head carries: its expression, what stands at the keys, what comes out."""

    label: str
    reads: Sequence[Any]
    gives: Sequence[Any]


@dataclass(frozen=True)
class ShownHead:
    """A head on one input, with all values that it carries."""

    label: str
    pattern: Sequence[Sequence[bool]]
    values: tuple[ShownValue, ...]
    #: The aggregates that it computes, with its place in the family filled in, and as the program has
    #: them.
    closed: tuple[Node, ...]
    open: tuple[Node, ...]
    #: What is not shown: further values, and, in the last head of a family, further heads.
    note: str


def shown_heads(head: Head, tokens: Sequence[Any], names: Mapping[Node, str]) -> Iterator[ShownHead]:
    """Yield a head, or the first members of a family of heads."""
    label = Labels(names, longest=400)
    places = members(_families(head.selector))
    for count, member in enumerate(itertools.islice(places, MAX_MEMBERS)):
        selector = _filled(head.selector, member)
        aggregates = [a for node in head.serves for a in _aggregates(node, list(member.values()))]
        drawn = aggregates[:MAX_VALUES]
        notes = []
        if len(aggregates) > len(drawn):
            notes.append(f"… and {len(aggregates) - len(drawn)} more values of this head")
        if count == MAX_MEMBERS - 1 and head.members > MAX_MEMBERS:
            notes.append(f"… and {head.members - MAX_MEMBERS} more heads of this family")
        yield ShownHead(
            label(selector),
            run(selector, tokens),
            tuple(
                ShownValue(label(node.inputs[1]), run(node.inputs[1], tokens), run(node, tokens))
                for node in drawn
            ),
            closed=tuple(aggregates),
            open=head.serves,
            note="; ".join(notes),
        )


def _aggregates(node: Node, member: Sequence[int]) -> Iterator[Node]:
    """Yield what one head computes for an aggregate: a value for each member of its other families.

    Equal selectors may have families of their own; they correspond in the order of occurrence.
    """
    own = dict(zip(_families(node.inputs[0]), member, strict=True))
    others = sorted(node.free - own.keys(), key=lambda family: str(family.attributes["name"]))
    for rest in members(others):
        yield _filled(node, {**own, **rest})


def _families(selector: Node) -> list[Node]:
    return [node for node in postorder(selector) if node in selector.free]


def _filled(node: Node, places: Mapping[Node, int]) -> Node:
    return replace_families(
        node, {family: build("constant", value=value) for family, value in places.items()}
    )
