"""Estimate the size of a network before it has weights, and compare it with the option ``limit``.

Before hidden units are chosen, the number of hidden units of a table is estimated as the number of
bends of its line. Each other gate counts as one unit. Afterwards, the numbers of hidden units are
known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from locum.graph import Node, postorder
from locum.networks.compiler.compile_limits import require_size
from locum.networks.compiler.network.forms import Table
from locum.networks.compiler.network.network import Slots, Unit
from locum.networks.compiler.network.network_lowering import Lowered
from locum.networks.compiler.target import Target
from locum.networks.compiler.units.hidden import Hidden

#: Bytes per weight. Weights are assembled in float64, and then copied once to their type.
_BYTES = 16
#: Bytes per pair of positions: a boolean in a pattern, and numbers in the error bounds of a head.
_BYTES_OF_PAIR = 12


def require_small(lowered: Lowered, slots: Slots, hidden: Mapping[Unit, Hidden] | None = None) -> None:
    """Raise an error if a network exceeds the limits of hidden units, residual width or memory.

    Without ``hidden``, the numbers of hidden units are estimated.
    """
    network, target = lowered.network, lowered.roles.known.target
    width = slots.size + network.sink
    require_size("width", width, lambda: _slots(lowered))
    sizes = {
        unit: fewest_units(unit) if hidden is None else hidden[unit].size
        for unit in network.units
        if unit.gate is not None
    }
    require_size("units", sum(sizes.values()), lambda: _by_node(sizes))
    matrices = 3 if target.feed_forward == "glu" else 2
    by_node = {node: matrices * width * size for node, size in _by_node(sizes).items()}
    parameters = width * (len(target.vocabulary or "1") + target.longest) + sum(by_node.values())
    for time in {head.time for head in network.heads}:
        heads = [head for head in network.heads if head.time == time]
        widest = max(max(len(head.keys) + 1, len(head.values)) for head in heads)
        parameters += 4 * width * len(heads) * widest
        for head in heads:
            if head.selector is not None:
                by_node[head.selector] = by_node.get(head.selector, 0) + 4 * width * widest
    bytes_of = {node: _BYTES * count for node, count in by_node.items()}
    require_size("memory", _BYTES * parameters, lambda: bytes_of)


def _by_node(sizes: Mapping[Unit, int]) -> dict[Node, int]:
    """Return the number of hidden units of each s-op."""
    by_node: dict[Node, int] = {}
    for unit, size in sizes.items():
        by_node[unit.node] = by_node.get(unit.node, 0) + size
    return by_node


def _slots(lowered: Lowered) -> dict[Node, int]:
    """Return the number of signals that represent each s-op."""
    nodes = [*lowered.holds.values(), *(node for each in lowered.embeds.values() for node in each)]
    return dict(Counter(nodes))


def require_short(target: Target, root: Node) -> None:
    """Raise an error if the attention patterns for the longest input exceed the memory limit."""
    attends = any(node.op in ("aggregate", "selector_width") for node in postorder(root))
    require_size("memory", _BYTES_OF_PAIR * target.longest**2 if attends else 0)


def fewest_units(unit: Unit) -> int:
    """Estimate the minimum number of hidden units for the gate of a unit."""
    if not isinstance(unit.gate, Table):
        return 1
    slopes = np.diff(unit.gate.values) / np.diff(unit.gate.keys)
    return int(np.count_nonzero(np.diff(slopes)))
