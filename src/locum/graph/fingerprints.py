"""Short names of the nodes of a graph that depend on what they compute alone, all found in one pass.

>>> from locum import length, tokens
>>> from locum.graph.fingerprints import fingerprints
>>> one, other = (length + 1).node, (tokens == 1).node
>>> names = fingerprints(one, other)
>>> names[one] == fingerprints(one)[one] != names[other]
True
"""

from __future__ import annotations

import hashlib

from locum.graph.node import Node
from locum.graph.traversal import postorder


def fingerprints(*roots: Node, known: dict[Node, str] | None = None) -> dict[Node, str]:
    """Return 16 hexadecimal digits for every node below ``roots``: equal for equal graphs.

    With ``known``, the fingerprints of other roots, these are added to it.
    """
    digits: dict[Node, str] = {} if known is None else known
    for node in postorder(*roots, into=lambda inner: inner not in digits):
        what = (node.op, sorted(node.attributes.items()), [digits[below] for below in node.inputs])
        digits[node] = hashlib.sha256(repr(what).encode()).hexdigest()[:16]
    return digits
