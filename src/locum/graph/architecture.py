"""Compute the size of the transformer that a program needs: the number of layers and the heads per
layer.

The rules are from Weiss's implementation of RASP (`width_and_depth`). Before they are applied,
``length`` and ``selector_width`` are replaced by attention heads (``graph/definitions.py``):

- elementwise operations are free: every layer has a feed-forward, and one precedes layer 1;
- ``select`` is one layer above its keys or queries, whichever are higher;
- ``best`` is in the layer of its selector, or one layer above its score, whichever is higher;
- ``aggregate`` is in the layer of its selector, or one layer above its values, whichever is higher;
- a layer needs one head for each distinct selector that an ``aggregate`` in this layer uses. A selector
  that depends on families counts as one head for each combination of head indices. Selectors that
  differ only in names of families are one selector.

There is one deliberate difference. Weiss counts each ``select`` in the program's *text*. In Locum,
selectors of the same structure are one object, and hence one head in a layer. Locum therefore counts
fewer heads than Weiss if a selector occurs twice in one layer. For example,
``Cofactor()/Det(Cofactor())`` of the paper has 4 heads in its second layer, not 8.

>>> import locum
>>> backwards = locum.select(locum.indices, locum.length - 1 - locum.indices, "==")
>>> reverse = locum.aggregate(backwards, locum.tokens)
>>> locum.rasp.architecture(reverse).heads
[1, 1]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from locum.graph import Node, Sort, abbreviate, postorder, size_of, sort_of
from locum.graph.definitions import expand_definitions
from locum.graph.families import canonical
from locum.graph.node import HasNode, node_of
from locum.graph.traversal import depends_on, replace_families
from locum.graph.wellformed import require_program
from locum.text import MOST, text_rows


@dataclass(frozen=True)
class Head:
    """An attention head or a family of heads: one selector and all aggregations in a layer that use
    it.
    """

    selector: Node
    #: Number of heads: 1, or the product of the sizes of the families.
    members: int
    #: The ``aggregate`` nodes that use the selector, or a selector that differs only in names of
    #: families.
    serves: tuple[Node, ...]


@dataclass(frozen=True)
class Architecture:
    """The numbers of layers and heads of the transformer that a program needs.

    >>> import locum
    >>> size = locum.rasp.architecture(locum.selector_width(locum.full))
    >>> size.layers, size.heads, size.width
    (1, [2], 2)
    """

    #: The heads of each layer.
    structure: tuple[tuple[Head, ...], ...]

    @property
    def layers(self) -> int:
        """Number of attention layers, each with its feed-forward."""
        return len(self.structure)

    @property
    def heads(self) -> list[int]:
        """Number of heads in each layer."""
        return [sum(head.members for head in layer) for layer in self.structure]

    @property
    def width(self) -> int:
        """Number of heads in the widest layer, or 0 if there is no attention."""
        return max(self.heads, default=0)

    def _repr_html_(self) -> str:
        rows = []
        for number, heads in enumerate(self.structure):
            lines = [
                abbreviate(head.selector) + (f" (× {head.members})" if head.members > 1 else "")
                for head in heads[:MOST]
            ]
            lines += [f"… and {len(heads) - MOST} more"] if len(heads) > MOST else []
            rows.append((f"layer {number}", "\n".join(lines)))
        return text_rows(str(self), rows)

    def __str__(self) -> str:
        plural = "" if self.layers == 1 else "s"
        return f"{self.layers} layer{plural}, heads {self.heads}, width {self.width}"


def architecture(program: Node | HasNode) -> Architecture:
    """Return the layers and heads of the transformer that a program needs.

    For a selector, the result includes the head that uses the selector.

    >>> import locum
    >>> print(architecture(locum.aggregate(locum.full, locum.tokens)))
    1 layer, heads [1], width 1
    """
    root = node_of(program)
    require_program(root)
    root = expand_definitions(root)
    layer_of = _layers(root)
    readers: dict[tuple[int, Node], list[Node]] = {}
    for node, layer in layer_of.items():
        if node.op == "aggregate":
            readers.setdefault((layer, node.inputs[0]), []).append(node)
    if sort_of(root) is Sort.SELECTOR:
        readers.setdefault((layer_of[root], root), [])
    structure: list[dict[Node, Head]] = [{} for _ in range(layer_of[root])]
    for (layer, selector), serves in readers.items():
        heads, key = structure[layer - 1], _without_names(selector)
        before = heads[key].serves if key in heads else ()
        members = math.prod(size_of(family) for family in selector.free)
        heads[key] = Head(selector, members, before + tuple(serves))
    return Architecture(tuple(tuple(layer.values()) for layer in structure))


def _layers(root: Node) -> dict[Node, int]:
    """Return the layer in which each node is computed; layer 0 precedes the first attention layer."""
    layer: dict[Node, int] = {}
    for node in postorder(root):
        below = [layer[i] for i in node.inputs]
        match node.op:
            case "select":
                layer[node] = 1 + max(below)
            case "best" | "aggregate":
                layer[node] = max(below[0], 1 + below[1])
            case _:
                layer[node] = max(below, default=0)
    return layer


def _without_names(selector: Node) -> Node:
    """Return the selector with its free families renamed in order of occurrence.

    Selectors that differ only in the names of their families then become the same node. Only parts that
    depend on these families are visited. Visiting all inputs of each selector would make the time for
    counting heads quadratic.
    """
    into = depends_on(selector.free)
    free = [node for node in postorder(selector, into=into) if node in selector.free]
    return replace_families(
        selector, {family: canonical(0, i, size_of(family)) for i, family in enumerate(free)}
    )
