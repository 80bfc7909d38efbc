"""Label nodes in full: by the program's own name for each, or by its whole expression in one line.

An expression of more than ``longest`` characters is abbreviated and followed by the beginning of its
fingerprint, so that different nodes have different labels.

>>> from locum.graph.operations import build
>>> i = build("indices")
>>> label = Labels({build("add", i, i): "twice"})
>>> label(build("exp", build("add", i, i))), label(build("add", i, i))
('exp(twice)', 'twice')
"""

from __future__ import annotations

from collections.abc import Mapping

from locum.graph.fingerprints import fingerprints
from locum.graph.node import Node
from locum.graph.printer import Phrase, abbreviate, phrase
from locum.graph.traversal import postorder


class Labels:
    """Label nodes: one object for all labels of a program, whose expressions share their parts."""

    def __init__(self, names: Mapping[Node, str] | None = None, longest: int = 2_000) -> None:
        self._names = dict(names or {})
        self._longest = longest
        #: None where an expression is too long.
        self._phrases: dict[Node, Phrase | None] = {}
        self._fingerprints: dict[Node, str] = {}
        self._labels: dict[Node, str] = {}

    def add(self, names: Mapping[Node, str]) -> None:
        """Name further nodes, of which no label was asked yet."""
        self._names |= names

    def __call__(self, node: Node) -> str:
        """Return the label of a node."""
        if node not in self._labels:
            self._labels[node] = self._label(node)
        return self._labels[node]

    def _label(self, node: Node) -> str:
        for part in postorder(node, into=lambda inner: inner not in self._phrases):
            self._phrases.setdefault(part, self._phrase(part))
        whole = self._phrases[node]
        if whole is not None:
            return whole.text
        fingerprint = fingerprints(node, known=self._fingerprints)[node]
        return f"{abbreviate(node, self._names)} #{fingerprint[:8]}"

    def _phrase(self, node: Node) -> Phrase | None:
        if node in self._names:
            return Phrase(self._names[node])
        inputs = [self._phrases[part] for part in node.inputs]
        known = [part for part in inputs if part is not None]
        if len(known) < len(inputs):
            return None
        said = phrase(node, known, exact=False, whole=True)
        return said if len(said.text) <= self._longest else None
