"""Run a captured graph: choose the program for the shapes of a call, count the run, record steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import torch
from torch import fx
from torch.autograd import forward_ad

from locum.bounded_cache import BoundedCache
from locum.errors import InputError
from locum.torch.concrete_graph import SymbolBinding, read_metadata
from locum.torch.program import Program
from locum.torch.program_family import (
    FEWEST,
    LONGEST,
    SHORTEST,
    ProgramFamily,
    Values,
    count_steps,
    make_family,
)
from locum.torch.step_recorder import Recorder, active_recorder
from locum.torch.usage import GraphUsage, ProgramUsage

#: Programs that a graph keeps: one for each combination of values of the symbols in its shapes. The
#: least recently used one is dropped first. Interpolated programs are small, and made quickly.
MOST_PROGRAMS, MOST_INTERPOLATED = 64, 256
#: A program, and the record of its runs.
Entry = tuple[Program, ProgramUsage]


class CompiledGraph:
    """A forward, backward or inference graph of AOT autograd.

    A graph is translated in its first call, so a backward graph that is never called costs nothing.
    """

    def __init__(self, module: fx.GraphModule, kind: str, usage: GraphUsage) -> None:
        self._module, self._kind, self._usage = module, kind, usage
        self._binding = SymbolBinding(module)
        self._programs = BoundedCache[Entry](MOST_PROGRAMS)
        self._interpolated = BoundedCache[Entry](MOST_INTERPOLATED)
        #: For recorded modules: the families of programs, and the values of the last new programs.
        self._families: dict[Hashable, list[tuple[ProgramFamily, ProgramUsage]]] = {}
        self._recent: dict[Hashable, list[Values]] = {}
        #: Recorded modules with which programs cannot be interpolated.
        self._unlike: set[Hashable] = set()

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the results of the graph."""
        check_tangents(arguments)
        recorder = active_recorder() if self._kind != "backward" else None
        program, usage = self._find(arguments, recorder)
        started = time.perf_counter()
        results, steps = program.run(arguments)
        usage.add_run(program, time.perf_counter() - started)
        if recorder is not None:
            recorder.add(steps)
        return results

    def _find(self, arguments: Sequence[Any], recorder: Recorder | None) -> Entry:
        """Return the program for these arguments, made or remembered."""
        recorded = recorder.module_patterns if recorder is not None else ()
        values = self._binding.find_values(arguments)
        key = values, recorded
        entry = self._programs.get(key) or self._interpolated.get(key)
        if entry is not None:
            return entry
        entry = self._find_in_families(*key)
        if entry is not None:
            return self._interpolated.put(key, entry)
        program = self._make(*key)
        return self._programs.put(key, (program, self._usage.add_program(program, self._kind)))

    def _make(self, values: Values, recorded: tuple[str, ...]) -> Program:
        symbols = dict(zip(self._binding.symbols, values, strict=True))
        concrete = read_metadata(self._module, symbols)
        return Program(concrete, self._usage.settings, kind=self._kind, recorded=recorded)

    def _find_in_families(self, values: Values, recorded: tuple[str, ...]) -> Entry | None:
        """Return an interpolated program; a third value on a line starts a family."""
        families = self._families.setdefault(recorded, [])
        for family, usage in families:
            program = family.find(values)
            if program is not None:
                return program, usage
        recent = self._recent.setdefault(recorded, [])
        recent[:] = [*recent[-2:], values]
        if self._usage.settings.executor != "fast" or len(recent) < 3 or recorded in self._unlike:
            return None
        one, two, three = recent
        step = tuple(b - a for a, b in zip(two, three, strict=True))
        if not any(step) or step != tuple(b - a for a, b in zip(one, two, strict=True)):
            return None
        count = min(SHORTEST << len(families), LONGEST, count_steps(values, step))
        if count < FEWEST:
            return None
        make = partial(self._make, recorded=recorded)
        made = make_family(self._module, self._binding.symbols, make, values, step, count)
        if made is None:
            self._unlike.add(recorded)
            return None
        families.append((made, self._usage.add_program(made.last, self._kind)))
        recent[:] = [made.at(count - 1), made.at(count)]
        return made.first, families[-1][1]


def check_tangents(arguments: Sequence[Any]) -> None:
    """Raise an error for the dual tensors of forward-mode differentiation: U computes no tangents."""
    if forward_ad._current_level < 0:
        return
    unpack: Callable[[torch.Tensor], Any] = forward_ad.unpack_dual
    for value in arguments:
        if isinstance(value, torch.Tensor) and unpack(value).tangent is not None:
            raise InputError(
                "forward-mode differentiation: expected tensors without tangents, got a dual tensor; "
                "try torch.func.jvp inside of the compiled function"
            )


def box_arguments(function: Callable[[Sequence[Any]], Any]) -> Callable[[list[Any]], Any]:
    """Return a function that empties its list of arguments, so that AOT autograd can free them."""

    def call(arguments: list[Any]) -> Any:
        taken = list(arguments)
        arguments.clear()
        return function(taken)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call
