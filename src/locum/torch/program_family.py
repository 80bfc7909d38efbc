"""Make programs for lengths between two lengths, such as those of a text that grows by one token.

Between two lengths the sizes, strides and offsets of a program are interpolated. The program for the
length in the middle must be the interpolated one, and the sizes in the graph must be linear in its
symbols. Otherwise each length has a separate program.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import sympy
import torch
from torch import fx

from locum.errors import LocumError
from locum.execution.fast.interpolation import NotLinearError, PlanFamily, draw_line, is_same
from locum.torch.concrete_graph import is_strided
from locum.torch.program import Program

#: The values of the symbols of a graph.
Values = tuple[int, ...]
#: The number of lengths of the first family of a graph; later families are longer.
SHORTEST, LONGEST = 64, 1_024
#: Families of fewer lengths are not worthwhile: three programs are made for a family.
FEWEST = 8
#: The least value of a symbol: Dynamo captures lengths of 0 and 1 as other graphs.
_LEAST = 2
#: The attributes of a program that are interpolated, besides its results and its plan.
_LINEAR = ("feeds", "read", "token_count", "multiply_adds")


class ProgramFamily:
    """Programs for values of symbols on a line: ``first`` and ``count`` steps from there."""

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
        """Return the values of the symbols after a number of steps."""
        return tuple(a + number * d for a, d in zip(self._values, self._step, strict=True))

    def find(self, values: Values) -> Program | None:
        """Return the program for some values of the symbols; None if the family does not have it."""
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
    """Return how many steps can be made until a value is too small.

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
    """Return the programs for values of symbols on a line; None if they are not alike."""
    line = sympy.Symbol("line")
    values = {s: a + line * d for s, a, d in zip(symbols, first, step, strict=True)}
    if not all(_is_linear(size.xreplace(values), line) for size in find_sizes(module)):
        return None
    try:
        return ProgramFamily(make, first, step, count)
    except (NotLinearError, LocumError, RuntimeError):  # PyTorch's error for impossible sizes
        return None


def find_sizes(module: fx.GraphModule) -> set[sympy.Expr]:
    """Return the expressions in the sizes, strides, offsets and numbers of a graph."""
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
    """Return what a program reads and returns."""
    return [program.outputs.parts, program.host_code, *(getattr(program, name) for name in _LINEAR)]
