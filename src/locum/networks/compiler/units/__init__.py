"""Functions as hidden units: what each s-op is to the network, and the units of each gate."""

from __future__ import annotations

from collections.abc import Iterator

from locum.graph import Node
from locum.networks.compiler.network.roles import Roles, exact_roles
from locum.networks.compiler.scoring.broadcasting import Known
from locum.networks.compiler.units.gate_roles import GateRoles


def assign_roles(root: Node, known: Known) -> Iterator[Roles]:
    """Say what each s-op is to a network with the feed-forwards that the target asks for.

    Where there are several ways, the one of the fewest layers comes first; it may turn out too noisy.
    """
    if known.target.feed_forward == "exact":
        yield exact_roles(root, known)
    else:
        yield from GateRoles(known).attempts(root)


__all__ = ["assign_roles"]
