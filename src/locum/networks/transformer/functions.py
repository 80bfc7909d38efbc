"""Define the instructions of symbolic feed-forwards, which compute functions at each position.

:class:`Functions` is a straight-line program on numbers. A program can be saved as JSON, and loading it
executes no code. The instructions are the elementwise operations of program graphs on floats, except
``lookup``. There are two more instructions: ``constant``, and ``table``, which looks up a value by
one or more numbers. Booleans are represented as 1 and 0.

Undefined operations, such as a division by zero, return NaN. Results that are too large are NaN or
infinite. The forward pass in NumPy raises an error for such results.

>>> import numpy as np
>>> twice = Functions(1, (Instruction("add", (0, 0)),), (1,))
>>> twice([np.array([1.0, 2.0])])[0].tolist()
[2.0, 4.0]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.execution.arrays import Array, Arrays
from locum.execution.elementwise import MEANINGS, apply, nan
from locum.graph.atoms import EXACT_INTEGERS


@dataclass(frozen=True)
class Instruction:
    """One operation of a symbolic feed-forward.

    ``inputs`` contains indices into a list of all arguments and all earlier results.
    """

    op: str
    inputs: tuple[int, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    #: Label of the s-op that the instruction computes, for display and error messages.
    label: str = ""

    @cached_property
    def table(self) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
        """Keys of a ``table``, and its values in row-major order of the keys, with None as NaN."""
        keys = [np.array(among, dtype=np.float64) for among in self.attributes["keys"]]
        return keys, np.array(self.attributes["values"], dtype=np.float64)


@dataclass(frozen=True)
class Functions:
    """A straight-line program that maps ``arguments`` numbers to ``len(outputs)`` numbers."""

    arguments: int
    instructions: tuple[Instruction, ...]
    outputs: tuple[int, ...]

    def __call__(self, arguments: Sequence[Array]) -> list[Array]:
        """Return the outputs for arguments that are arrays or tensors of one shape."""
        return self.trace(arguments)[1]

    def trace(self, arguments: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        """Return the results of all instructions, and the outputs."""
        arrays, values = Arrays(arguments[0]), list(arguments)
        with np.errstate(all="ignore"):
            for instruction in self.instructions:
                inputs = [values[place] for place in instruction.inputs]
                values.append(_apply(arrays, instruction, inputs, arguments[0]))
        return values[self.arguments :], [values[place] for place in self.outputs]


def _apply(arrays: Arrays, instruction: Instruction, inputs: Sequence[Array], like: Array) -> Array:
    match instruction.op:
        case "constant":
            return arrays.xp.full_like(like, float(instruction.attributes["value"]))
        case "table":
            return _table(arrays, inputs, *instruction.table)
        case op:
            result = apply(arrays, op, inputs, nan, instruction.attributes)
            if op in ("modulo", "floor_divide"):
                result = arrays.xp.where(_exact(arrays, *inputs), result, math.nan)
            return arrays.to_float(result)  # booleans become 1 and 0


def _table(
    arrays: Arrays,
    inputs: Sequence[Array],
    keys: Sequence[NDArray[np.float64]],
    values: NDArray[np.float64],
) -> Array:
    """Return the table values at the keys nearest to the inputs."""
    xp, flat = arrays.xp, None
    for number, among in zip(inputs, keys, strict=True):
        ascending = arrays.put(among)
        place = xp.searchsorted(ascending, number)
        below = xp.clip(place - 1, 0, len(among) - 1)
        above = xp.clip(place, 0, len(among) - 1)
        nearer = number - ascending[below] <= ascending[above] - number
        nearest = xp.where(nearer, below, above)
        flat = nearest if flat is None else flat * len(among) + nearest
    return arrays.put(values)[flat]


def _exact(arrays: Arrays, a: Array, b: Array) -> Array:
    """Return a mask of the elements at which both operands are small enough for an exact remainder.

    The limit of the absolute values is the largest exact integer of the dtype.
    """
    limit = EXACT_INTEGERS[arrays.float_name]
    return (abs(a) <= limit) & (abs(b) <= limit)


#: Operations that an instruction may contain.
INSTRUCTIONS = frozenset(MEANINGS) - {"lookup"} | {"constant", "table"}
