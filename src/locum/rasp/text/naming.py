"""Choose the names under which s-ops and selectors are displayed.

An s-op or selector receives a name if it is assigned or returned from a function. RASP displays lists
of s-ops with these names. The names are stored outside the graph. Building the same node twice returns
one node, so its name is the most recent one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from locum.graph import COMPARISONS, OPERATIONS, Node, Sort, is_atom, sort_of
from locum.graph.atoms import short
from locum.rasp.handles import Selector, SOp

#: Maximum lengths of a name and of a list in a call. Of longer ones, only the kind is displayed.
LONGEST, _LONGEST_ARGUMENT = 30, 20


class Names:
    """The display names of nodes, kept as long as the nodes exist."""

    def __init__(self) -> None:
        self._names: WeakKeyDictionary[Node, str] = WeakKeyDictionary()

    def give(self, value: Any, name: str) -> None:
        """Set the display name of ``value`` if it is an s-op or a selector."""
        if isinstance(value, (SOp, Selector)):
            self._names[value.node] = name if len(name) <= LONGEST else unnamed(value.node)

    def of(self, node: Node) -> str:
        """Return the display name of a node, or its expression if it has no name.

        If the expression is too long or too deep, the result is a word for the kind of the node. The
        same is true for calls such as ``select(…)``.
        """
        name = self._names.get(node)
        if name is None:
            name = self._spelled(node)
            name = self._names[node] = name if len(name) <= LONGEST else unnamed(node)
        return name

    def call(self, function: str, arguments: Sequence[Any]) -> str:
        """Return the text of a function call, for use as the display name of its result."""
        parts: list[str] = []
        for argument in arguments:
            parts.append(self._argument(argument))
            if sum(map(len, parts)) > LONGEST:
                break
        return f"{function}({' , '.join(parts)})"

    def members(self, atoms: Sequence[Any]) -> str:
        """Return a list of atoms as text, with at most ``LONGEST`` atoms and characters per string."""
        some = [atom[:LONGEST] if isinstance(atom, str) else atom for atom in atoms[:LONGEST]]
        return f"[{', '.join(short(atom) for atom in some)}]"

    def _argument(self, value: Any, depth: int = 0) -> str:
        if isinstance(value, (SOp, Selector)):
            return self.of(value.node)
        if isinstance(value, (list, dict)):
            return self._collection(value, depth)
        if is_atom(value):
            return f'"{value[:LONGEST]}"' if isinstance(value, str) else short(value)
        return str(value)

    def _collection(self, value: list[Any] | dict[Any, Any], depth: int) -> str:
        kind = "(list)" if isinstance(value, list) else "(dict)"
        if len(value) > _LONGEST_ARGUMENT or depth > 2:
            return kind
        members = value if isinstance(value, list) else value.values()
        parts = [self._argument(member, depth + 1) for member in members]
        left, right = "[]" if isinstance(value, list) else "{}"
        if isinstance(value, dict):
            parts = [f"{self._argument(key)}: {part}" for key, part in zip(value, parts, strict=True)]
        text = f"{left}{', '.join(parts)}{right}"
        return text if len(text) <= _LONGEST_ARGUMENT else kind

    def _spelled(self, node: Node) -> str:
        if node.op == "tokens":
            return f"tokens_{node.cast}"
        if node.op in ("indices", "length"):
            return node.op
        if node.op == "constant":
            value = node.value
            return value[: LONGEST + 1] if isinstance(value, str) else short(value)
        pattern = _PATTERNS.get(node.op)
        if node.op in _MIRRORED and node.inputs[0].op == "constant" != node.inputs[1].op:
            pattern = _MIRRORED[node.op]  # Python mirrors a comparison of a plain value with an s-op
        # All s-ops and selectors that the machine builds receive names, inputs first. Only Python
        # functions build deeper expressions whose parts have no names.
        if pattern is None or any(self._is_deep(part) for part in node.inputs):
            return unnamed(node, "plain select")
        return pattern.format(*(self.of(part) for part in node.inputs))

    def _is_deep(self, node: Node) -> bool:
        return node.op in _PATTERNS and node.depth > 2 and node not in self._names


def unnamed(node: Node, selector: str = "sel") -> str:
    """Return the text that is displayed if the name of a node is missing or too long."""
    return selector if sort_of(node) is Sort.SELECTOR else "s-op"


#: The text of operations in RASP.
_PATTERNS = {
    **{
        row.name: f"( {{0}} {row.symbol} {{1}} )"
        for row in OPERATIONS.values()
        if row.group in ("arithmetic", "comparison")
    },
    "power": "( {0} pow {1} )",
    "negate": "( - {0} )",
    "round": "( round {0} )",
    "and": "( {0} and {1})",
    "or": "( {0} or {1})",
    "not": "( not {0} )",
    "if_else": "{1} if {0} else {2}",
    "indicator": "I({0})",
}
_MIRRORED = {row.operation: f"( {{1}} {row.converse} {{0}} )" for row in COMPARISONS.values()}
