"""Run a captured graph: find, interpolate or translate the program for the shapes of a call."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property, partial
from typing import Any

import sympy
import torch
from torch import fx
from torch.autograd import forward_ad

from locum.errors import InputError, LocumError
from locum.execution.fast.interpolation import NotLinearError, PlanFamily, draw_line, is_same
from locum.shared_state import BoundedCache
from locum.torch.concrete_graph import SymbolBinding, is_strided, read_metadata
from locum.torch.program import Program
from locum.torch.step_recorder import Recorder, active_recorder, module_paths
from locum.torch.usage import GraphUsage, ProgramUsage

#: The values of the symbols of a graph.
Values = tuple[int, ...]
#: Maximum number of steps of the first family of a graph, and of any family. The maximum doubles with
#: each further family, up to the second number.
SHORTEST, LONGEST = 64, 1_024
#: Minimum number of steps of a family. A family requires the translation of three programs.
FEWEST = 8
#: Minimum value of a decreasing symbol in a family: Dynamo captures separate graphs for lengths of 0
#: and 1.
_LEAST = 2
#: The attributes of a program that are interpolated, besides its results and its plan.
_LINEAR = ("feeds", "read", "token_count", "multiply_adds")


class ProgramFamily:
    """Programs for values of shape symbols on a line, interpolated between the first and the last
    program.

    The family contains the values after 0 to ``count`` steps from ``first``. The constructor raises
    :class:`NotLinearError` if the first and the last program differ in more than integers. The error is
    also raised if interpolation does not reproduce the program in the middle.
    """

    def __init__(
        self, make: Callable[[Values], Program], first: Values, step: Values, count: int
    ) -> None:
        self._values, self._step, self._count = first, step, count
        self.first, middle, self.last = (make(self.at(n)) for n in (0, count // 2, count))
        self._plans = PlanFamily(self.first.make_plan(), self.last.make_plan(), count)
        self._numbers = draw_line(_numbers(self.first), _numbers(self.last), count)
        half = count // 2
        if not self._plans.has(middle.make_plan(), half) or not is_same(
            self._numbers(half), _numbers(middle)
        ):
            raise NotLinearError

    def at(self, number: int) -> Values:
        """Return the values of the symbols after ``number`` steps."""
        return tuple(a + number * d for a, d in zip(self._values, self._step, strict=True))

    def find(self, values: Values) -> Program | None:
        """Return the interpolated program for these values of the symbols, or None if the family does
        not contain them.
        """
        place = next(n for n, d in enumerate(self._step) if d)
        number = (values[place] - self._values[place]) // self._step[place]
        if not 0 <= number <= self._count or self.at(number) != values:
            return None
        program = copy.copy(self.first)
        vars(program).pop("roots", None)
        parts, _, *numbers = self._numbers(number)
        program.outputs = self.first.outputs.with_parts(*parts)
        for name, value in zip(_LINEAR, numbers, strict=True):
            setattr(program, name, value)
        program.use_plan(self._plans.make(number), has_graph=False)
        return program


def count_steps(first: Values, step: Values) -> int:
    """Return the number of steps, at most ``LONGEST``, before a value becomes less than 2.

    >>> count_steps((20, 4), (-2, 0))
    9
    """
    falling = [(a - _LEAST) // -d for a, d in zip(first, step, strict=True) if d < 0]
    return min([LONGEST, *falling])


def make_family(
    module: fx.GraphModule,
    symbols: Sequence[sympy.Symbol],
    make: Callable[[Values], Program],
    first: Values,
    step: Values,
    count: int,
) -> ProgramFamily | None:
    """Return a family of programs for values of symbols on a line.

    Return None if the programs do not depend linearly on the values, or if one of them cannot be made.
    """
    line = sympy.Symbol("line")
    values = {s: a + line * d for s, a, d in zip(symbols, first, step, strict=True)}
    if not all(_is_linear(size.xreplace(values), line) for size in find_sizes(module)):
        return None
    try:
        return ProgramFamily(make, first, step, count)
    except (NotLinearError, LocumError, RuntimeError):  # PyTorch's error for impossible sizes
        return None


def find_sizes(module: fx.GraphModule) -> set[sympy.Expr]:
    """Return the symbolic expressions in the sizes, strides, offsets and numbers of a graph."""
    found: set[sympy.Expr] = set()

    def add(value: Any) -> None:
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            found.add(value.node.expr)
        elif isinstance(value, (tuple, list)):
            for part in value:
                add(part)
        elif isinstance(value, torch.Tensor) and is_strided(value):
            add([*value.shape, *value.stride(), value.storage_offset()])

    for node in module.graph.nodes:
        add(node.meta.get("val"))
    return found


def _is_linear(size: sympy.Expr, symbol: sympy.Symbol) -> bool:
    return not size.has(symbol) or (
        size.is_polynomial(symbol) and sympy.Poly(size, symbol).degree() <= 1
    )


def _numbers(program: Program) -> Any:
    """Return the data of a program that a family interpolates or requires to be equal."""
    return [program.outputs.parts, program.host_code, *(getattr(program, name) for name in _LINEAR)]


#: Maximum numbers of translated and of interpolated programs that a graph caches. Each program is for
#: one set of values of the symbols and one set of recorded modules. The least recently used program is
#: dropped first.
MOST_PROGRAMS, MOST_INTERPOLATED = 64, 256
#: A program, and the record of its runs.
Entry = tuple[Program, ProgramUsage]


class CompiledGraph:
    """A forward, backward or inference graph of AOT autograd.

    A graph is translated in its first call, so a backward graph that is never called needs no
    translation.
    """

    def __init__(self, module: fx.GraphModule, kind: str, usage: GraphUsage) -> None:
        self._module, self._kind, self._usage = module, kind, usage
        self._binding = SymbolBinding(module)
        self._programs = BoundedCache[Entry](MOST_PROGRAMS)
        self._interpolated = BoundedCache[Entry](MOST_INTERPOLATED)
        #: For each set of recorded modules: the families, and the values of the last new programs.
        self._families: dict[Hashable, list[tuple[ProgramFamily, ProgramUsage]]] = {}
        self._recent: dict[Hashable, list[Values]] = {}
        #: Sets of recorded modules for which programs cannot be interpolated.
        self._unlike: set[Hashable] = set()

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        """Run the program of the graph for these arguments and return the results of the graph."""
        check_tangents(arguments)
        recorder = active_recorder() if self._kind != "backward" else None
        program, usage = self._find(arguments, recorder)
        started = time.perf_counter()
        results, steps = program.run(arguments)
        usage.add_run(program, time.perf_counter() - started)
        if recorder is not None:
            recorder.add(steps, self._paths)
        return results

    @cached_property
    def _paths(self) -> list[str]:
        """Paths of the modules that contain nodes of the graph."""
        paths = (path for node in self._module.graph.nodes for path in module_paths(node))
        return list(dict.fromkeys(paths))

    def _find(self, arguments: Sequence[Any], recorder: Recorder | None) -> Entry:
        """Return the program for these arguments and its usage, from a cache if possible."""
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
        """Return a program of a family, or None if no family contains these values.

        For the fast executor, a new family may be created when three successive new sets of values are
        at equal distances on a line.
        """
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
    """Raise an error for dual tensors of forward-mode differentiation, since U does not compute
    tangents.
    """
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
    """Wrap ``function`` so that it clears its list of arguments, which AOT autograd can then free."""

    def call(arguments: list[Any]) -> Any:
        taken = list(arguments)
        arguments.clear()
        return function(taken)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call
