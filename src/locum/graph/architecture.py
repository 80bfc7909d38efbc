"""How large a transformer a program asks for: layers, and heads in each.

The rules are those of Weiss's RASP (`width_and_depth`), applied to the program after ``length`` and
``selector_width`` are replaced by the heads they are made of (``graph/definitions.py``):

- elementwise operations are free: every layer has a feed-forward, and one stands before layer 1;
- ``select`` lies one layer above its keys and queries; ``best`` above its score, too;
- ``aggregate`` lies in the layer of its selector, or one above its values, whichever is higher;
- a layer needs one head for each distinct selector that an ``aggregate`` in it uses. A selector
  that depends on families stands for as many heads as those families have members.

One difference, on purpose. Weiss counts each ``select`` in the program's *text*; here selectors of
the same structure are one object, hence one head. So we never count more heads than Weiss, and
fewer where a program says the same selector twice (``Cofactor()/Det(Cofactor())`` of the paper
has 4 heads in its second layer, not 8).

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
    """One attention head, or a family of them: a selector and all that is read through it."""

    selector: Node
    #: How many heads it stands for: 1, or the number of members of its families.
    members: int
    #: The ``aggregate`` nodes it serves.
    serves: tuple[Node, ...]


@dataclass(frozen=True)
class Architecture:
    """The size of the transformer that a program describes.

    >>> import locum
    >>> size = locum.rasp.architecture(locum.selector_width(locum.full))
    >>> size.layers, size.heads, size.width
    (1, [2], 2)
    """

    #: For each layer, its heads.
    structure: tuple[tuple[Head, ...], ...]

    @property
    def layers(self) -> int:
        """Attention layers, each with its feed-forward."""
        return len(self.structure)

    @property
    def heads(self) -> list[int]:
        """How many heads each layer has."""
        return [sum(head.members for head in layer) for layer in self.structure]

    @property
    def width(self) -> int:
        """The heads of the widest layer; 0 if there is no attention at all."""
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
    """Return the layers and heads of a program (for a selector: of the head that it would be).

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
    """Return the layer in which each node has its value; 0 is before the first attention."""
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
    """Return the selector with its free families named by order of occurrence.

    Equal selectors become equal. Only parts that depend on these families are visited: a walk over all
    that a selector is computed from would make counting heads quadratic.
    """
    into = depends_on(selector.free)
    free = [node for node in postorder(selector, into=into) if node in selector.free]
    return replace_families(
        selector, {family: canonical(0, i, size_of(family)) for i, family in enumerate(free)}
    )
