"""Choose the smaller of two networks of a program: with tables, or with forms of fewer hidden units.

A table of what an s-op depends on is exact and shallow, but it may be large. ``prefer`` says which
networks are made; without it both are, and their weights are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from locum.errors import CompileError
from locum.networks.compiler.bounds.fitting import Fitted
from locum.networks.compiler.network.network import Slots
from locum.networks.compiler.network.network_lowering import Lowered
from locum.networks.compiler.target import Target
from locum.networks.compiler.units.hidden import erasing

#: Without a preference, the share of the weights of tables that other forms may have, which may be
#: deeper or less exact; and how many times deeper they may be.
_WORTH, _DEEPER = 0.9, 2


class Candidate(NamedTuple):
    """A network of a program, its slots, and its hidden units with their errors."""

    lowered: Lowered
    slots: Slots
    fitted: Fitted | None

    def count_weights(self, target: Target) -> int:
        """Count the weights of heads and hidden units."""
        hidden = {} if self.fitted is None else self.fitted.hidden
        erasers = len(erasing(target.feed_forward, target.dtype, target.attention))
        units = sum(one.size for one in hidden.values())
        units += erasers * sum(map(len, self.slots.erased.values()))
        sides = 3 if target.feed_forward == "glu" else 2
        heads = self.lowered.network.heads
        attention = sum(2 * (len(head.keys) + 1 + len(head.values)) for head in heads)
        return self.slots.size * (sides * units + attention)


#: Makes a network with tables ("exact"), or with the smaller forms ("small"); None if these are the
#: tables.
Make = Callable[[str], Candidate | None]


def choose(target: Target, make: Make) -> Candidate:
    """Return the network that the target prefers.

    The error is that of the network with tables, if neither can be made.
    """
    if target.prefer == "exact" or target.feed_forward == "exact":
        return _required(make("exact"))
    tables: Candidate | None = None
    problem: CompileError | None = None
    try:
        tables = make("exact")
    except CompileError as error:
        problem = error
    small: Candidate | None = None
    with suppress(CompileError):
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
    return weights < _WORTH * before and layers <= _DEEPER * least
