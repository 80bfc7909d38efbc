"""Count calls of captured graphs and runs of their programs, for each compiled object.

A run, except a backward run, is counted for the compiled functions and modules whose calls are on the
call stack. One captured graph may be used by several compiled objects, since Dynamo shares graphs
between modules of the same class.
"""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import fx
from torch._dynamo.eval_frame import OptimizeContext

from locum.shared_state import Lock
from locum.torch.program import Program, Settings
from locum.torch.step_recorder import module_path

_lock = Lock()
_graphs: weakref.WeakSet[GraphUsage] = weakref.WeakSet()
#: The compiled objects that are currently being called.
_callers: ContextVar[tuple[Any, ...]] = ContextVar("locum_callers", default=())
#: Weak references to the compiled objects of one call, innermost first.
Callers: TypeAlias = "tuple[weakref.ref[Any], ...]"
_EVAL_FRAME = OptimizeContext.__init__.__code__.co_filename


@dataclass
class Count:
    """A number of runs, with their time and their multiply-adds."""

    runs: int = 0
    seconds: float = 0.0
    #: Numbers of multiply-adds computed by U and by the host.
    multiply_adds: int = 0
    multiply_adds_on_host: int = 0

    def add(self, other: Count) -> None:
        """Add the numbers of another count to this count."""
        self.runs += other.runs
        self.seconds += other.seconds
        self.multiply_adds += other.multiply_adds
        self.multiply_adds_on_host += other.multiply_adds_on_host


class ProgramUsage:
    """The properties of a program, and its numbers of runs."""

    def __init__(self, program: Program, kind: str) -> None:
        #: ``forward``, ``backward`` or ``inference``.
        self.kind = kind
        self.tokens = program.token_count
        #: Number of occurrences of each pair of module path and operation.
        self.on_u = _count_operations(program.on_u)
        self.on_host = _count_operations(program.on_host)
        self.seconds_to_translate = program.seconds_to_translate
        self._program = weakref.ref(program)
        self._counts: dict[Callers, Count] = {}
        self._without_caller = Count()

    @property
    def program(self) -> Program | None:
        """The program, or None if it was dropped from the cache.

        For a family of interpolated programs, this is the last program of the family.
        """
        return self._program()

    def add_run(self, program: Program, seconds: float) -> None:
        """Count a run for all compiled objects that are being called.

        A backward run is counted without a compiled object. ``program`` is the program that ran, which
        may be interpolated.
        """
        run = Count(1, seconds, *program.multiply_adds)
        with _lock:
            callers = () if self.kind == "backward" else _callers.get()
            if callers:
                find_entry(self._counts, callers).add(run)
            else:
                self._without_caller.add(run)

    def count(self, objects: Sequence[Any] | None) -> Count:
        """Return the runs by the given compiled objects, or by all existing objects if ``objects`` is
        None.

        Each run counts once. Runs without a compiled object, such as backward runs, are always
        included.
        """
        total = Count()
        with _lock:
            total.add(self._without_caller)
            for callers, count in self._counts.items():
                if is_any_among(callers, objects):
                    total.add(count)
        return total


class GraphUsage:
    """The properties of a graph captured by Dynamo, and its numbers of calls."""

    def __init__(self, settings: Settings, name: str, is_last: bool) -> None:
        self.settings, self.name = settings, name
        #: Whether Dynamo compiles no further graph of the same function.
        self.is_last = is_last
        self.programs: list[ProgramUsage] = []
        self._calls: dict[Callers, Count] = {}
        self._calls_without_caller = 0
        with _lock:
            _graphs.add(self)

    def add_program(self, program: Program, kind: str) -> ProgramUsage:
        """Add a program of the graph and return the object that counts its runs."""
        usage = ProgramUsage(program, kind)
        with _lock:
            self.programs.append(usage)
        return usage

    def count_calls(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that counts its calls and then calls ``function``."""

        def call(*arguments: Any) -> Any:
            callers = find_callers()
            with _lock:
                if callers:
                    find_entry(self._calls, callers).runs += 1
                else:
                    self._calls_without_caller += 1
            token = _callers.set(callers)
            try:
                return function(*arguments)
            finally:
                _callers.reset(token)

        return call

    def calls(self, objects: Sequence[Any] | None) -> int:
        """Return the number of calls by the given compiled objects, or by all existing objects if
        ``objects`` is None.

        Each call counts once. Calls without a compiled object are included if ``objects`` is None.
        """
        with _lock:
            counted = sum(
                count.runs for callers, count in self._calls.items() if is_any_among(callers, objects)
            )
        return counted + (self._calls_without_caller if objects is None else 0)


def list_graphs() -> list[GraphUsage]:
    """Return all graphs that are currently compiled, sorted by name."""
    with _lock:
        return sorted(_graphs, key=lambda graph: graph.name)


def find_entry(counts: dict[Callers, Count], callers: Sequence[Any]) -> Count:
    """Return the count for these compiled objects; a new count is 0.

    If a count is added, counts for objects that no longer exist are removed.
    """
    key = tuple(map(weakref.ref, callers))
    if key not in counts:
        for other in [other for other in counts if not is_any_among(other, None)]:
            del counts[other]
        counts[key] = Count()
    return counts[key]


def is_any_among(callers: Callers, objects: Sequence[Any] | None) -> bool:
    """Return whether one of the ``callers`` still exists and is one of ``objects``.

    If ``objects`` is None, return whether one of the ``callers`` still exists.
    """
    alive = [caller for caller in (reference() for reference in callers) if caller is not None]
    return any(is_among(caller, objects) for caller in alive)


def is_among(caller: Any, objects: Sequence[Any] | None) -> bool:
    """Return whether ``caller`` is one of ``objects``, compared by identity; always true if ``objects``
    is None.
    """
    return objects is None or any(caller is one for one in objects)


def find_callers() -> tuple[Any, ...]:
    """Return the compiled functions and modules whose calls are on the call stack, innermost first."""
    callers: list[Any] = []
    frame = sys._getframe(1).f_back
    while frame is not None:
        if frame.f_code.co_filename == _EVAL_FRAME:
            names = frame.f_locals
            if isinstance(names.get("self"), OptimizeContext) and "fn" in names:
                caller = find_original(names["fn"])
                if not is_among(caller, callers):
                    callers.append(caller)
        frame = frame.f_back
    return tuple(callers)


def find_original(compiled: Any) -> Any:
    """Return the module or function inside the wrappers of ``torch.compile`` and bound methods."""
    if isinstance(compiled, torch._dynamo.OptimizedModule):
        return compiled._orig_mod
    while not isinstance(compiled, torch.nn.Module):
        names = ("_torchdynamo_orig_callable", "__wrapped__", "__self__")
        inner = next((getattr(compiled, name) for name in names if hasattr(compiled, name)), None)
        if inner is None:
            return compiled
        compiled = inner
    return compiled


def _count_operations(nodes: Sequence[fx.Node]) -> Counter[tuple[str, str]]:
    counted = (node for node in nodes if isinstance(node.target, torch._ops.OperatorBase))
    return Counter((module_path(node), str(node.target)) for node in counted)
