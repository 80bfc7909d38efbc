"""Limit the resources of a compilation: hidden units, residual width, CPU time and memory.

``compile(…, limit={"units": …, "width": …, "seconds": …, "memory": …})`` sets the limits. The compiler
estimates sizes before it creates weights, and raises an error if a size exceeds its limit
(:func:`require_size`). Stages call :func:`check_time` between steps, so a stage stops soon after the
time limit. Costs are attributed to the s-op of the program for which a step is done
(:func:`claim`). Errors name the s-op with the highest costs, if the costs of s-ops are known.

>>> with compile_within(read_limit({"memory": 1000})):
...     require_size("memory", 2000)
Traceback (most recent call last):
locum.networks.compiler.compile_limits.LimitExceededError: limit: expected at most 1,000 bytes of \
memory, got at least 2,000; try limit={"memory": None} for no bound
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

#: Clock of the CPU time in seconds: of this thread, or of the process where Python has no such clock
#: (in a browser).
_clock = getattr(time, "thread_time", time.process_time)

#: The limit of each resource by name; None for no limit.
Limit: TypeAlias = "tuple[tuple[str, float | None], ...]"

#: The limited resources, each with its unit of measurement.
RESOURCES = {
    "units": "hidden units",
    "width": "slots of the residual stream",
    "seconds": "seconds of CPU time",
    "memory": "bytes of memory",
}
DEFAULTS: Limit = (("units", 100_000), ("width", 4_096), ("seconds", 4.0), ("memory", 800_000_000))
UNLIMITED: Limit = tuple((name, None) for name in RESOURCES)


def read_limit(value: Any) -> Limit:
    """Return the limit of each resource, given a mapping from names of resources to limits.

    Resources that are not listed have their default limits. The value None removes all limits.

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
    """Raised if a compilation exceeds one of the limits.

    ``resource`` is the name of the limit. ``found`` states the limit, and the amount if it is known.
    """

    def __init__(self, found: str, where: str, resource: str, instead: str = "") -> None:
        self.found = found
        self.resource = resource
        if resource == "seconds":
            instead = instead or "a smaller length or vocabulary"
        unbounded = f'limit={{"{resource}": None}} for no bound'
        advice = f"{instead}; or try {unbounded}" if instead else unbounded
        super().__init__(f"limit: {found}", where, advice)

    def at(self, where: str, instead: str = "") -> LimitExceededError:
        """Return the same error with another s-op ``where`` and another alternative ``instead``."""
        return LimitExceededError(self.found, where, self.resource, instead)


class _Meter:
    """The limits of one compilation, the CPU time of each s-op, and the owners of s-ops.

    The owner of an s-op is the s-op of the program for which a stage created the s-op.
    """

    def __init__(self, limit: Limit) -> None:
        self.limit = dict(limit)
        self.latest = _clock()
        self.checked = time.perf_counter()
        seconds = self.limit["seconds"]
        self.end = math.inf if seconds is None else self.latest + seconds
        self.taken: dict[Node, float] = {}
        #: The s-op to which steps without an explicit s-op are attributed.
        self.current: Node | None = None
        self.owners: dict[Node, Node] = {}

    def exceeded(self, resource: str, got: str, costs: Mapping[Node, float]) -> LimitExceededError:
        """Return the error for an exceeded limit, naming the s-op with the highest costs, if any."""
        by_owner: dict[Node, float] = {}
        for node, cost in costs.items():
            owner = self.owners.get(node, node)
            by_owner[owner] = by_owner.get(owner, 0.0) + cost
        worst = max(by_owner, key=lambda node: by_owner[node], default=None)
        share = "" if worst is None else f", {_written(by_owner[worst])} of them for one s-op"
        if resource == "width":  # several s-ops use one slot in turn, so their widths do not add up
            share = ""
        bound = f"{_written(self.limit[resource] or 0.0)} {RESOURCES[resource]}"
        return LimitExceededError(
            f"expected at most {bound}, got {got}{share}",
            "" if worst is None else abbreviate(worst),
            resource,
        )


def _written(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


#: Minimum time in seconds between two readings of the CPU time by :func:`check_time`, before the limit
#: is exceeded. Each reading is a system call.
_TICK = 0.001

_meter: ContextVar[_Meter | None] = ContextVar("meter", default=None)


@contextmanager
def compile_within(limit: Limit) -> Iterator[None]:
    """Apply limits to the code inside the ``with`` statement.

    Inside a nested ``with`` statement of this kind, only the limits of that statement apply.
    """
    token = _meter.set(_Meter(limit))
    try:
        yield
    finally:
        _meter.reset(token)


@contextmanager
def share_time(share: float) -> Iterator[None]:
    """Limit the CPU time inside the ``with`` statement to a share of the remaining time."""
    meter = _meter.get()
    if meter is None:
        yield
        return
    end, now = meter.end, _clock()
    meter.end = now + share * (end - now)
    try:
        yield
    finally:
        meter.end = end


@contextmanager
def extend_time(share: float) -> Iterator[None]:
    """Extend the limit of CPU time inside the ``with`` statement by a share of the limit."""
    meter = _meter.get()
    if meter is None:
        yield
        return
    more = share * (meter.limit["seconds"] or 0.0)
    meter.end += more
    try:
        yield
    finally:
        meter.end -= more


def time_left() -> float:
    """Return the CPU time in seconds until the limit; return infinity if there is no limit."""
    meter = _meter.get()
    return math.inf if meter is None else meter.end - _clock()


def claim(owner: Node, nodes: Iterable[Node]) -> None:
    """Attribute the costs of ``nodes`` to ``owner``, the s-op for which a stage made them.

    If ``owner`` has an owner, the costs are attributed to that owner. Nodes that already have an owner
    keep this owner.
    """
    meter = _meter.get()
    if meter is not None:
        for node in nodes:
            meter.owners.setdefault(node, meter.owners.get(owner, owner))


def owners() -> Mapping[Node, Node]:
    """Return a mapping from nodes that stages made to the nodes for which they were made."""
    meter = _meter.get()
    return {} if meter is None else meter.owners


def work_on(node: Node) -> None:
    """Attribute the time of steps that do not name an s-op to ``node``, until the next call."""
    meter = _meter.get()
    if meter is not None:
        meter.current = node


def check_time(node: Node | None = None) -> None:
    """Attribute the time since the last check to an s-op; raise an error if the time limit is exceeded.

    Without ``node``, the time is attributed to the s-op given to :func:`work_on`. Unless the limit was
    exceeded at the last check, calls that follow it by less than ``_TICK`` seconds have no effect.
    """
    meter = _meter.get()
    if meter is None:
        return
    if meter.latest <= meter.end and time.perf_counter() - meter.checked < _TICK:
        return
    meter.checked, now = time.perf_counter(), _clock()
    node = node or meter.current
    if node is not None:
        meter.taken[node] = meter.taken.get(node, 0.0) + now - meter.latest
    meter.latest = now
    if now > meter.end:
        raise meter.exceeded("seconds", "no network in that time", meter.taken)


def require_size(resource: str, size: float, costs: Callable[[], Mapping[Node, float]] = dict) -> None:
    """Raise an error if ``size``, a number of units, slots or bytes of memory, exceeds the limit.

    ``costs`` returns the costs of each s-op, which determine the s-op that the error names.
    """
    meter = _meter.get()
    bound = None if meter is None else meter.limit[resource]
    if meter is not None and bound is not None and size > bound:
        raise meter.exceeded(resource, f"at least {_written(size)}", costs())
