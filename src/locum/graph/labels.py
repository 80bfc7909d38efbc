"""Label each node by its name in the program, or by its expression.

An expression of more than ``longest`` characters is abbreviated and followed by the start of its
fingerprint, which distinguishes nodes with equal abbreviations.

>>> from locum.graph.operations import build
>>> i = build("indices")
>>> label = Labels({build("add", i, i): "twice"})
>>> label(build("exp", build("add", i, i))), label(build("add", i, i))
('exp(twice)', 'twice')
"""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from locum.graph.fingerprints import fingerprints
from locum.graph.node import Node
from locum.graph.printer import Phrase, abbreviate, phrase
from locum.graph.traversal import postorder
from locum.shared_state import Lock

#: Names given to nodes by ``.named()``. Names are not part of the graph: equal programs are one node.
_given: WeakKeyDictionary[Node, str] = WeakKeyDictionary()
_lock = Lock()


def give_name(node: Node, name: str) -> None:
    """Give a node a name, which replaces any earlier name."""
    with _lock:
        _given[node] = name


def names_given(root: Node) -> dict[Node, str]:
    """Return the names that ``give_name`` has given to the nodes of a program."""
    with _lock:
        return {node: _given[node] for node in postorder(root) if node in _given} if _given else {}


class Labels:
    """A callable that returns the label of a node; each label is computed once."""

    def __init__(self, names: Mapping[Node, str] | None = None, longest: int = 2_000) -> None:
        self._names = dict(names or {})
        self._longest = longest
        #: The name or the expression of each node, or None if the expression is too long.
        self._phrases: dict[Node, Phrase | None] = {}
        self._fingerprints: dict[Node, str] = {}
        self._labels: dict[Node, str] = {}

    def add(self, names: Mapping[Node, str]) -> None:
        """Add names for further nodes, none of which may have a label yet."""
        self._names |= names

    def __call__(self, node: Node) -> str:
        """Return the label of a node: its name, its expression, or its abbreviated expression with a
        fingerprint.
        """
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
