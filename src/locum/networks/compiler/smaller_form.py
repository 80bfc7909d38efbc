"""Choose between two networks of a program: one with tables, and one with fewer hidden units.

A table over the sources of an s-op contains exact values and adds few layers, but it may be large. With
``prefer="exact"`` or ``feed_forward="exact"``, the compiler makes only the network with tables.
Otherwise, it makes both networks if possible, and compares their sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from locum.errors import CompileError
from locum.networks.compiler.bounds.fitting import Fitted
from locum.networks.compiler.compile_limits import share_time
from locum.networks.compiler.network.network import Slots
from locum.networks.compiler.network.network_lowering import Lowered
from locum.networks.compiler.target import Target
from locum.networks.compiler.units.hidden import erasing

#: These numbers apply without a preference, if both networks can be made. The network of smaller
#: forms, which may be less exact, is then chosen only if two conditions hold. First, the ratio of its
#: number of weights to the number of weights of the network with tables is less than ``_WORTH``, or
#: ``_WORTH_DEEPER`` if it has more layers. Second, the ratio of the numbers of layers is at most
#: ``_DEEPER``.
_WORTH, _WORTH_DEEPER, _DEEPER = 0.9, 0.5, 2
#: Maximum share of the remaining CPU time that may be used for one of the two networks.
_SHARE = 0.75


class Candidate(NamedTuple):
    """A network of a program, its slots, and its hidden units with their errors."""

    lowered: Lowered
    slots: Slots
    fitted: Fitted | None

    def count_weights(self, target: Target) -> int:
        """Estimate the number of weights of the heads and hidden units."""
        hidden = {} if self.fitted is None else self.fitted.hidden
        erasers = len(erasing(target.feed_forward, target.dtype, target.attention))
        units = sum(one.size for one in hidden.values())
        units += erasers * sum(map(len, self.slots.erased.values()))
        sides = 3 if target.feed_forward == "glu" else 2
        heads = self.lowered.network.heads
        attention = sum(2 * (len(head.keys) + 1 + len(head.values)) for head in heads)
        return self.slots.size * (sides * units + attention)


#: A function that makes a network with tables ("exact") or with smaller forms ("small"). For "small",
#: the result may be None, for example if the program has no smaller forms.
Make = Callable[[str], Candidate | None]


def choose(target: Target, make: Make) -> Candidate:
    """Return the network with tables or the network with smaller forms.

    With ``prefer="exact"`` or symbolic feed-forwards, return the network with tables. With
    ``prefer="small"``, return the network with fewer weights. Without a preference, the numbers of
    weights and layers are compared. If only one network can be made, return this network. If neither
    can be made, raise the error of the network with tables.
    """
    if target.prefer == "exact" or target.feed_forward == "exact":
        return _required(make("exact"))
    tables: Candidate | None = None
    problem: CompileError | None = None
    try:
        with share_time(_SHARE):
            tables = make("exact")
    except CompileError as error:
        problem = error
    small: Candidate | None = None
    with suppress(CompileError), share_time(_SHARE):
        small = make("small")
    if tables is None and small is None and problem is not None:
        raise problem
    if small is None or (tables is not None and not _is_better(small, tables, target)):
        return _required(tables)
    return small


def _required(candidate: Candidate | None) -> Candidate:
    assert candidate is not None
    return candidate


def _is_better(small: Candidate, tables: Candidate, target: Target) -> bool:
    weights, before = (candidate.count_weights(target) for candidate in (small, tables))
    if target.prefer == "small":
        return weights < before
    layers, least = (candidate.lowered.network.layers for candidate in (small, tables))
    worth = _WORTH if layers <= least else _WORTH_DEEPER
    return weights < worth * before and layers <= _DEEPER * least
