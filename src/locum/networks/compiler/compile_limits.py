"""Bound what a compilation takes: hidden units, residual width, CPU time and memory.

``compile(…, limit={"units": …, "width": …, "seconds": …, "memory": …})`` sets the bounds. Sizes are
estimated from the network before it has weights, and large arrays before they are allocated
(:func:`require_size`). Stages call :func:`check_time` between steps, so that none of them takes longer
than the limit. Costs are attributed to the s-op of the program that a step is for (:func:`claim`). The
error names the s-op with the highest costs.

>>> with compile_within(read_limit({"memory": 1000})):
...     require_size("memory", 2000)
Traceback (most recent call last):
locum.networks.compiler.compile_limits.LimitExceededError: limit: expected at most 1,000 bytes of \
memory, got at least 2,000; try a smaller length or vocabulary, or limit={"memory": None} for no bound
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from locum.errors import CompileError
from locum.graph import Node, abbreviate
from locum.settings import Setting, require_known

#: The name of each resource with its bound; None: no bound.
Limit: TypeAlias = "tuple[tuple[str, float | None], ...]"

#: What can be bounded, with the unit of measurement.
RESOURCES = {
    "units": "hidden units",
    "width": "slots of the residual stream",
    "seconds": "seconds of CPU time",
    "memory": "bytes of memory",
}
DEFAULTS: Limit = (("units", 100_000), ("width", 4_096), ("seconds", 4.0), ("memory", 800_000_000))
UNLIMITED: Limit = tuple((name, None) for name in RESOURCES)


def read_limit(value: Any) -> Limit:
    """Read bounds by name; the others have their defaults. None means no bounds.

    >>> read_limit({"seconds": 60})
    (('units', 100000), ('width', 4096), ('seconds', 60.0), ('memory', 800000000))
    >>> read_limit(None) == UNLIMITED
    True
    """
    if value is None:
        return UNLIMITED
    given = dict(value)
    require_known(given, RESOURCES, "limit", CompileError)
    limit = dict(DEFAULTS)
    for name, bound in given.items():
        kind = "a number" if name == "seconds" else "an integer"
        whole = isinstance(bound, float) and bound.is_integer() and name != "seconds"
        setting = Setting(kind, default=None, above=0)
        limit[name] = setting.read(int(bound) if whole else bound, f"limit {name!r}", CompileError)
    return tuple(limit.items())


class LimitExceededError(CompileError):
    """A program whose compilation takes more than ``limit``.

    ``resource`` is a name of the limit, and ``found`` has the bound and what was found instead.
    """

    def __init__(self, found: str, where: str, resource: str, instead: str = "") -> None:
        self.found = found
        self.resource = resource
        advice = f'limit={{"{resource}": None}} for no bound'
        super().__init__(
            f"limit: {found}; try a smaller length or vocabulary, or {advice}", where, instead
        )


class _Meter:
    """The bounds of one compilation, the CPU time of each s-op so far, and whom s-ops were made for."""

    def __init__(self, limit: Limit) -> None:
        self.limit = dict(limit)
        self.latest = time.thread_time()
        seconds = self.limit["seconds"]
        self.end = math.inf if seconds is None else self.latest + seconds
        self.taken: dict[Node, float] = {}
        #: The s-op that is worked on, where a step does not say so.
        self.current: Node | None = None
        self.owners: dict[Node, Node] = {}

    def exceeded(self, resource: str, got: str, costs: Mapping[Node, float]) -> LimitExceededError:
        """Return the error, which names the s-op of the program with the highest costs."""
        by_owner: dict[Node, float] = {}
        for node, cost in costs.items():
            owner = self.owners.get(node, node)
            by_owner[owner] = by_owner.get(owner, 0.0) + cost
        worst = max(by_owner, key=lambda node: by_owner[node], default=None)
        share = "" if worst is None else f", {_written(by_owner[worst])} of them for one s-op"
        bound = f"{_written(self.limit[resource] or 0.0)} {RESOURCES[resource]}"
        return LimitExceededError(
            f"expected at most {bound}, got {got}{share}",
            "" if worst is None else abbreviate(worst),
            resource,
        )


def _written(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


_meter: ContextVar[_Meter | None] = ContextVar("meter", default=None)


@contextmanager
def compile_within(limit: Limit) -> Iterator[None]:
    """Apply bounds to what is compiled inside of the ``with`` statement."""
    token = _meter.set(_Meter(limit))
    try:
        yield
    finally:
        _meter.reset(token)


@contextmanager
def share_time(share: float) -> Iterator[None]:
    """Bound the CPU time of an attempt by a share of the time that is left, so that others follow."""
    meter = _meter.get()
    if meter is None:
        yield
        return
    end, now = meter.end, time.thread_time()
    meter.end = now + share * (end - now)
    try:
        yield
    finally:
        meter.end = end


def claim(owner: Node, nodes: Iterable[Node]) -> None:
    """Attribute the costs of s-ops to the one that they were made for, unless they have an owner."""
    meter = _meter.get()
    if meter is not None:
        for node in nodes:
            meter.owners.setdefault(node, meter.owners.get(owner, owner))


def work_on(node: Node) -> None:
    """Attribute what follows to an s-op, where a step does not name another one."""
    meter = _meter.get()
    if meter is not None:
        meter.current = node


def check_time(node: Node | None = None) -> None:
    """Attribute the time since the last check to an s-op; raise an error if no time is left.

    Without an s-op, the time is attributed to the one of :func:`work_on`.
    """
    meter = _meter.get()
    if meter is None:
        return
    now = time.thread_time()
    node = node or meter.current
    if node is not None:
        meter.taken[node] = meter.taken.get(node, 0.0) + now - meter.latest
    meter.latest = now
    if now > meter.end:
        raise meter.exceeded("seconds", "no network in that time", meter.taken)


def require_size(resource: str, size: float, costs: Callable[[], Mapping[Node, float]] = dict) -> None:
    """Raise an error if units, width or memory (in bytes) exceed a bound.

    ``costs`` returns the part of each s-op in the size.
    """
    meter = _meter.get()
    bound = None if meter is None else meter.limit[resource]
    if meter is not None and bound is not None and size > bound:
        raise meter.exceeded(resource, f"at least {_written(size)}", costs())
