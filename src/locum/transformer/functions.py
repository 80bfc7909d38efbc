"""Exact feed-forwards: RASP's licence that a feed-forward may compute any function of a position.

:class:`Functions` is a straight-line program on numbers, as plain data: it can be written to JSON, and
reading it runs nothing. Its instructions are the elementwise operations of the graph on floats (truth
is 1 and falsehood 0), and ``table``, which looks several numbers up at once.

Whatever has no value (a division by zero, a number too large) is nan here; who runs it says so.

>>> import numpy as np

from locum.execution.arrays import erf
from locum.graph.atoms import EXACT_INTEGERS
>>> twice = Functions(1, (Instruction("add", (0, 0)),), (1,))
>>> twice(np, [np.array([1.0, 2.0])])[0].tolist()
[2.0, 4.0]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from locum.execution.arrays import erf
from locum.graph.atoms import EXACT_INTEGERS


@dataclass(frozen=True)
class Instruction:
    """One operation; inputs are numbered: the arguments first, then the results so far."""

    op: str
    inputs: tuple[int, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    #: The s-op it computes, for those who read and for errors.
    label: str = ""


@dataclass(frozen=True)
class Functions:
    """``arguments`` numbers in, as many as ``outputs`` out."""

    arguments: int
    instructions: tuple[Instruction, ...]
    outputs: tuple[int, ...]

    def __call__(self, xp: Any, arguments: Sequence[Any]) -> list[Any]:
        """The outputs on arrays of one shape; ``xp`` is NumPy or torch."""
        return self.trace(xp, arguments)[1]

    def trace(self, xp: Any, arguments: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The result of every instruction, and the outputs."""
        values = list(arguments)
        with np.errstate(all="ignore"):
            for instruction in self.instructions:
                inputs = [values[place] for place in instruction.inputs]
                values.append(_apply(xp, instruction, inputs, arguments))
        return values[self.arguments :], [values[place] for place in self.outputs]

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "arguments": self.arguments,
            "instructions": [
                {"op": i.op, "inputs": list(i.inputs)}
                | ({"attributes": dict(i.attributes)} if i.attributes else {})
                | ({"label": i.label} if i.label else {})
                for i in self.instructions
            ],
            "outputs": list(self.outputs),
        }


def _apply(xp: Any, instruction: Instruction, inputs: Sequence[Any], arguments: Sequence[Any]) -> Any:
    match instruction.op:
        case "constant":
            return xp.full_like(arguments[0], float(instruction.attributes["value"]))
        case "table":
            return _table(xp, inputs, **instruction.attributes)
        case "member":
            (value,) = inputs
            found = value != value  # nowhere
            for number in instruction.attributes["values"]:
                found = found | (value == float(number))
            return _number(found, value)
        case op:
            result = MEANINGS[op](xp, *inputs)
            return _number(result, inputs[0])


def _number(result: Any, like: Any) -> Any:
    """Truth as 1 and 0."""
    if isinstance(result, np.ndarray):
        return result.astype(like.dtype, copy=False)
    return result.to(like.dtype)


def _table(xp: Any, inputs: Sequence[Any], keys: Sequence[Sequence[float]], values: Any) -> Any:
    """The value of the nearest key; ``values`` are in row-major order of the keys. None is nan."""
    first = inputs[0]
    make = _maker(xp, first)
    flat = None
    for number, among in zip(inputs, keys, strict=True):
        sorted_keys = make(among)
        place = xp.searchsorted(sorted_keys, number)
        below = xp.clip(place - 1, 0, len(among) - 1)
        above = xp.clip(place, 0, len(among) - 1)
        nearer = number - sorted_keys[below] <= sorted_keys[above] - number
        nearest = xp.where(nearer, below, above)
        flat = nearest if flat is None else flat * len(among) + nearest
    return make([math.nan if value is None else float(value) for value in values])[flat]


def _maker(xp: Any, like: Any) -> Callable[[Sequence[float]], Any]:
    if xp is np:
        return lambda numbers: np.asarray(numbers, dtype=like.dtype)
    return lambda numbers: xp.tensor(numbers, dtype=like.dtype, device=like.device)


def _nan_unless(xp: Any, condition: Any, value: Any) -> Any:
    return xp.where(condition, value, value * math.nan)


def _nonzero(xp: Any, b: Any) -> Any:
    """``b``, with 1 in place of 0: what is divided by it there is not looked at."""
    return xp.where(b == 0, xp.ones_like(b), b)


def _divide(xp: Any, a: Any, b: Any) -> Any:
    return _nan_unless(xp, b != 0, a / _nonzero(xp, b))


def _exact(xp: Any, a: Any, b: Any) -> Any:
    limit = EXACT_INTEGERS[str(a.dtype).removeprefix("torch.")]
    return (b != 0) & (abs(a) <= limit) & (abs(b) <= limit)


def _modulo(xp: Any, a: Any, b: Any) -> Any:
    return _nan_unless(xp, _exact(xp, a, b), xp.remainder(a, _nonzero(xp, b)))


def _floor_divide(xp: Any, a: Any, b: Any) -> Any:
    return _nan_unless(xp, _exact(xp, a, b), xp.floor_divide(a, _nonzero(xp, b)))


def _power(xp: Any, a: Any, b: Any) -> Any:
    # Whole numbers to a whole power come out whole where floats hold them.
    return _nan_unless(xp, (a != 0) | (b >= 0), xp.pow(a, b) if xp is not np else np.power(a, b))


def _truth(a: Any) -> Any:
    return a != 0


#: What each operation is on arrays of floats.
MEANINGS: Mapping[str, Callable[..., Any]] = {
    "add": lambda xp, a, b: a + b,
    "subtract": lambda xp, a, b: a - b,
    "multiply": lambda xp, a, b: a * b,
    "divide": _divide,
    "modulo": _modulo,
    "floor_divide": _floor_divide,
    "power": _power,
    "negate": lambda xp, a: -a,
    "absolute": lambda xp, a: abs(a),
    "minimum": lambda xp, a, b: xp.where(a < b, a, b),
    "maximum": lambda xp, a, b: xp.where(a > b, a, b),
    "exp": lambda xp, a: xp.exp(a),
    "log": lambda xp, a: _nan_unless(xp, a > 0, xp.log(xp.where(a > 0, a, xp.ones_like(a)))),
    "sqrt": lambda xp, a: _nan_unless(xp, a >= 0, xp.sqrt(abs(a))),
    "erf": lambda xp, a: erf(a),
    "tanh": lambda xp, a: xp.tanh(a),
    "floor": lambda xp, a: xp.floor(a),
    "round": lambda xp, a: xp.round(a),
    "equal": lambda xp, a, b: a == b,
    "not_equal": lambda xp, a, b: a != b,
    "less": lambda xp, a, b: a < b,
    "less_equal": lambda xp, a, b: a <= b,
    "greater": lambda xp, a, b: a > b,
    "greater_equal": lambda xp, a, b: a >= b,
    "and": lambda xp, a, b: _truth(a) & _truth(b),
    "or": lambda xp, a, b: _truth(a) | _truth(b),
    "not": lambda xp, a: a == 0,
    "if_else": lambda xp, a, b, c: xp.where(_truth(a), b, c),
    "indicator": lambda xp, a: _truth(a),
}

#: Operations that an instruction may name.
INSTRUCTIONS = frozenset(MEANINGS) | {"constant", "table", "member"}
