"""Compute functions by hidden units: assign a role to each s-op, and find the units of each gate."""

from __future__ import annotations

from collections.abc import Iterator

from locum.graph import Node
from locum.networks.compiler.network.roles import Roles, exact_roles
from locum.networks.compiler.scoring.broadcasting import Known
from locum.networks.compiler.units.gate_roles import GateRoles


def assign_roles(root: Node, known: Known) -> list[Iterator[Roles]]:
    """Return iterators over possible assignments of roles to s-ops.

    Each iterator yields assignments in order of increasing number of layers. A later assignment is used
    if the error with an earlier one is too large, or if the earlier one is rejected.
    """
    if known.target.feed_forward == "exact":
        return [iter([exact_roles(root, known)])]
    ways = [GateRoles(known)]
    if known.target.dtype == "float32":
        ways.insert(0, GateRoles(known, early=True))
    return [way.attempts(root) for way in ways]


__all__ = ["assign_roles"]
