"""Where the nodes of a rewritten program come from: the node of the program that each stands for.

Stages make new nodes for old ones. What is a node of the program stays its own origin, however often a
stage makes it again; of what is new, the origin is the node that was being rewritten.

>>> from locum.graph import build
>>> old = build("negate", build("length"))
>>> new = build("add", build("indices"), build("indices"))
>>> origins = Origins(old)
>>> origins.rewrote(old, new)
>>> origins.of(new) is old, origins.of(build("indices")) is old, origins.of(build("exp", new)) is None
(True, True, True)
"""

from __future__ import annotations

from locum.graph import Node, postorder


class Origins:
    """The nodes of a program, and what became of them."""

    def __init__(self, root: Node) -> None:
        self._of: dict[Node, Node] = {node: node for node in postorder(root)}

    def of(self, node: Node) -> Node | None:
        """Return the node of the program that a node comes from, if a stage has said so."""
        return self._of.get(node)

    def rewrote(self, old: Node, new: Node) -> None:
        """Note that a stage made ``new`` in the place of ``old``, after all that ``old`` is made of."""
        origin = self._of.get(old, old)
        for part in postorder(new, into=lambda node: node not in self._of):
            self._of.setdefault(part, origin)

    def renamed(self, old: Node, new: Node) -> None:
        """Note that two graphs of one shape are the same program, as after renaming families."""
        waiting, seen = [(old, new)], {new}
        while waiting:
            before, after = waiting.pop()
            self._of.setdefault(after, self._of.get(before, before))
            for pair in zip(before.inputs, after.inputs, strict=True):
                if pair[1] not in seen:
                    seen.add(pair[1])
                    waiting.append(pair)
