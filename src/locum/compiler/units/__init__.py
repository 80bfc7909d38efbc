"""Functions as hidden units: what each s-op is to the network, and the units of each gate."""

from __future__ import annotations

from locum.compiler.network.roles import Roles, exact_roles
from locum.compiler.scoring.known import Known
from locum.compiler.units.gate_roles import GateRoles
from locum.graph import Node


def assign_roles(root: Node, known: Known) -> Roles:
    """Say what each s-op is to a network with the feed-forwards that the target asks for."""
    if known.target.feed_forward == "exact":
        return exact_roles(root, known)
    return GateRoles(known).keeping_whole(root)


__all__ = ["assign_roles"]
