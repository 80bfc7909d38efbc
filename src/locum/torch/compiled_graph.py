"""Run a captured graph: choose the program for the shapes of a call, count the run, record steps."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import fx
from torch.autograd import forward_ad

from locum.errors import InputError
from locum.locks import Lock
from locum.torch.concrete_graph import is_symbolic, propagate_shapes, read_metadata, shape_key
from locum.torch.program import Program
from locum.torch.step_recorder import Recorder, active_recorder
from locum.torch.usage import GraphUsage, ProgramUsage

#: Programs that a graph keeps: one for each combination of concrete shapes. The least recently used
#: one is dropped first.
MOST_PROGRAMS = 64
#: Held while a program is found or added.
_lock = Lock()


class CompiledGraph:
    """A forward, backward or inference graph of AOT autograd.

    A graph is translated in its first call, so a backward graph that is never called costs nothing.
    """

    def __init__(self, module: fx.GraphModule, kind: str, usage: GraphUsage) -> None:
        self._module, self._kind, self._usage = module, kind, usage
        self._is_symbolic = is_symbolic(module)
        self._programs: OrderedDict[Hashable, tuple[Program, ProgramUsage]] = OrderedDict()

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the results of the graph."""
        check_tangents(arguments)
        recorder = active_recorder() if self._kind != "backward" else None
        program, usage = self._find(arguments, recorder)
        started = time.perf_counter()
        results, steps = program.run(arguments)
        usage.add_run(time.perf_counter() - started)
        if recorder is not None:
            recorder.add(steps)
        return results

    def _find(
        self, arguments: Sequence[Any], recorder: Recorder | None
    ) -> tuple[Program, ProgramUsage]:
        """Return the program for these arguments, made or remembered."""
        recorded = recorder.module_patterns if recorder is not None else ()
        key = (shape_key(arguments) if self._is_symbolic else None, recorded)
        with _lock:
            if key in self._programs:
                self._programs.move_to_end(key)
                return self._programs[key]
        # Translated outside of the lock: two threads may both translate.
        concrete = (
            propagate_shapes(self._module, arguments)
            if self._is_symbolic
            else read_metadata(self._module)
        )
        backward = self._kind == "backward"
        program = Program(concrete, self._usage.settings, is_backward=backward, recorded=recorded)
        entry = (program, self._usage.add_program(program, self._kind))
        with _lock:
            self._programs[key] = entry
            while len(self._programs) > MOST_PROGRAMS:
                self._programs.popitem(last=False)
        return entry


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
