"""Short names of the nodes of a graph that depend on what they compute alone, all found in one pass.

>>> from locum import length, tokens
>>> from locum.graph.fingerprints import fingerprints
>>> one, other = (length + 1).node, (tokens == 1).node
>>> found = fingerprints(one, other)
>>> found[one] == fingerprints(one)[one] != found[other]
True
"""

from __future__ import annotations

import hashlib

from locum.graph.node import Node
from locum.graph.traversal import postorder


def fingerprints(*roots: Node) -> dict[Node, str]:
    """Return 16 hexadecimal digits for every node below ``roots``: equal for equal graphs."""
    found: dict[Node, str] = {}
    for node in postorder(*roots):
        what = (node.op, sorted(node.attributes.items()), [found[below] for below in node.inputs])
        found[node] = hashlib.sha256(repr(what).encode()).hexdigest()[:16]
    return found
