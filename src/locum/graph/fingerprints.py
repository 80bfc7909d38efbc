"""Compute short names for nodes of a graph; equal graphs have equal names.

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
    """Return a fingerprint of 16 hexadecimal digits for every node below ``roots``; equal graphs have
    equal fingerprints.

    ``known`` contains fingerprints that were computed for other roots. The new fingerprints are added
    to ``known``.
    """
    digits: dict[Node, str] = {} if known is None else known
    for node in postorder(*roots, into=lambda inner: inner not in digits):
        what = (node.op, sorted(node.attributes.items()), [digits[below] for below in node.inputs])
        digits[node] = hashlib.sha256(repr(what).encode()).hexdigest()[:16]
    return digits
