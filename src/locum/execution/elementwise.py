"""What every elementwise operation does to arrays: the one table under all array execution.

Plans (NumPy and torch), the structured tier, heads and exact feed-forwards compute by this table. They
differ in what they do where an operation has no value, which is their *policy*:

- :func:`ieee` keeps what the array library gives (plans and structured runs on tensors);
- :func:`refusing` raises ``Unstructured`` (NumPy), or ``ElementError`` with its place (heads);
- :func:`nan` puts NaN there (exact feed-forwards).

Kinds, bounds of integers, formats and ONNX names are columns of the same table. Scalars are the
business of the domains (``domains/floats.py`` is the meaning); the prover's and the checker's rules
stay apart on purpose.

>>> import numpy as np
>>> arrays = Arrays(np.zeros(2))
>>> apply(arrays, "log", (np.array([1.0, 2.0]),), nan).round(2)
array([0.  , 0.69])
>>> MEANINGS["subtract"].bound((0, 5), (1, 2))
(-2, 4)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from locum.execution.array_numbers import (
    BIT,
    Interval,
    around_zero,
    floor_divide_bound,
    hull,
    lookup,
    member,
    missing,
    modulo_bound,
    power_bound,
    product_bound,
    round_array,
)
from locum.execution.arrays import Array, Arrays, erf
from locum.graph.operations import COMPARISONS, ROUNDINGS

#: How tightly a formula holds together, loosest first: it stands in brackets where more is needed.
LOOSE, SUM, PRODUCT, TERM = range(4)


@dataclass(frozen=True)
class Undefined:
    """Where an operation has no value, and what the error says."""

    #: Of the array layer and the inputs; attributes come as keywords.
    where: Callable[..., Array]
    problem: str
    #: What dense execution calls it: ``ExecutionError.kind``.
    kind: str


@dataclass(frozen=True)
class Format:
    """How an operation is printed: a pattern, how tightly it holds, what each operand needs."""

    text: str
    holds: int = TERM
    needs: tuple[int, ...] = (LOOSE,)


@dataclass(frozen=True)
class Meaning:
    """A row of the table: one elementwise operation on arrays of one type."""

    #: Of the array layer and the inputs; attributes come as keywords.
    array: Callable[..., Array]
    undefined: tuple[Undefined, ...] = ()
    #: Whether integers (and booleans) in give integers out.
    keeps_whole: bool = False
    #: An interval that has all integers that come of integers in these intervals.
    bound: Callable[..., Interval] | None = None
    #: None: printed as a function, ``name(a, b)``.
    format: Format | None = None
    #: ``bool``, ``int`` or ``float`` if the results are such whatever the inputs are.
    kind: str | None = None
    #: Whether an infinite result for finite inputs is an error; of sums and products it is not.
    overflows: bool = False
    #: The ONNX operator that does the same, if there is one.
    onnx: str | None = None


# Policies -----------------------------------------------------------------------------------------

#: Computes a row of the table: of the array layer, the row, the inputs and the attributes.
Policy: TypeAlias = "Callable[[Arrays, Meaning, Sequence[Any], Mapping[str, Any]], Array]"


def apply(
    arrays: Arrays,
    op: str,
    inputs: Sequence[Any],
    policy: Policy,
    attributes: Mapping[str, Any] | None = None,
) -> Array:
    """Compute an operation at every element of ``inputs``: arrays of one type, or scalars beside them.

    Where it has no value, ``policy`` decides. What the operation carries comes in ``attributes``.
    """
    return policy(arrays, MEANINGS[op], inputs, attributes or {})


def ieee(
    arrays: Arrays, meaning: Meaning, inputs: Sequence[Any], attributes: Mapping[str, Any]
) -> Array:
    """Keep what the library gives: infinities and NaN."""
    return meaning.array(arrays, *inputs, **attributes)


def nan(
    arrays: Arrays, meaning: Meaning, inputs: Sequence[Any], attributes: Mapping[str, Any]
) -> Array:
    """Put NaN where the operation has no value."""
    result = meaning.array(arrays, *inputs, **attributes)
    bad = [case.where(arrays, *inputs, **attributes) for case in meaning.undefined]
    if meaning.overflows:
        bad.append(_overflow(result, inputs))
    for mask in bad:
        result = arrays.xp.where(mask, arrays.xp.full_like(result, math.nan), result)
    return result


def refusing(error: Callable[[str, str, Array], Exception]) -> Policy:
    """Make the policy that raises ``error(problem, kind, where)`` if there is no value somewhere."""

    def policy(
        arrays: Arrays, meaning: Meaning, inputs: Sequence[Any], attributes: Mapping[str, Any]
    ) -> Array:
        for case in meaning.undefined:
            bad = case.where(arrays, *inputs, **attributes)
            if arrays.any(bad):
                raise error(case.problem, case.kind, bad)
        result = meaning.array(arrays, *inputs, **attributes)
        if meaning.overflows:
            bad = _overflow(result, inputs)
            if arrays.any(bad):
                raise error("the result is too large for a float", "OverflowError", bad)
        return result

    return policy


def checked(arrays: Arrays, op: str, inputs: Sequence[Any], policy: Policy) -> Array:
    """Compute a function of floats, and look where it has no value only if the result is not finite.

    Where a function of floats has no value, every library gives an infinity or NaN.
    """
    result = MEANINGS[op].array(arrays, *inputs)
    if arrays.all(arrays.xp.isfinite(result)):
        return result
    return apply(arrays, op, inputs, policy)


def _overflow(result: Array, inputs: Sequence[Any]) -> Array:
    """Return where finite numbers give an infinite one."""
    bad = abs(result) == math.inf
    for x in inputs:
        bad = bad & _finite(x)
    return bad


# Meanings that take more than a line --------------------------------------------------------------


def truth(arrays: Arrays, a: Any) -> Any:
    """Return where a value holds, as Python sees it: not 0, not False, not the empty string."""
    if isinstance(a, (bool, int, float, str)):
        return bool(a)
    if a.dtype == arrays.xp.bool:
        return a
    if a.dtype == object:
        return a.astype(np.bool_)
    return a != ("" if not arrays.on_torch and a.dtype.kind == "U" else 0)


def _power(arrays: Arrays, a: Any, b: Any) -> Array:
    xp = arrays.xp
    if isinstance(a, float) and a == -math.inf:
        a = xp.full_like(b, a)
    if not isinstance(a, (int, float)):
        # ** 0.5 is a square root to NumPy, and −∞ has none; as a power it is ∞.
        a = xp.where((a == -math.inf) & (b % 1 != 0), -a, a)
    return a**b


def _finite(x: Any) -> Any:
    return abs(x) < math.inf


_ZERO = Undefined(lambda arrays, a, b: b == 0, "division by zero", "ZeroDivisionError")
_ZERO_POWER = Undefined(
    lambda arrays, a, b: (a == 0) & (b < 0) & (b > -math.inf),
    "zero to a negative power",
    "ZeroDivisionError",
)
_NOT_REAL = Undefined(
    lambda arrays, a, b: (a < 0) & _finite(a) & _finite(b) & (b % 1 != 0),
    "a power that is not a real number",
    "not real",
)
_INFINITE = (
    Undefined(lambda arrays, a: abs(a) == math.inf, "no integer is infinite", "OverflowError"),
    Undefined(lambda arrays, a: a != a, "no integer is NaN", "ValueError"),
)


def _outside(condition: Callable[[Any], Array], name: str) -> Undefined:
    def where(arrays: Arrays, a: Any) -> Array:
        return condition(a)

    return Undefined(where, f"{name} is not defined there", "ValueError")


# The table ----------------------------------------------------------------------------------------


def _comparison(predicate: str, sign: str, onnx: str | None) -> Meaning:
    holds = COMPARISONS[predicate].holds
    return Meaning(
        lambda arrays, a, b: holds(a, b),
        bound=lambda a, b: BIT,
        format=Format(f"{{}} {sign} {{}}", LOOSE, (SUM, SUM)),
        kind="bool",
        onnx=onnx,
    )


def _function(name: str, *undefined: Undefined, **columns: Any) -> Meaning:
    """Return a function of floats that the array library has under this name."""
    return Meaning(lambda arrays, a: getattr(arrays.xp, name)(a), undefined, kind="float", **columns)


def _rounding(dtype: str) -> Meaning:
    """Return the rounding to a floating-point type; the result keeps the type of the array."""

    def rounded(arrays: Arrays, a: Array) -> Array:
        if arrays.on_torch:
            return arrays.to_float(a.to(getattr(arrays.xp, dtype)))
        return arrays.to_float(round_array(a, dtype))

    return Meaning(rounded, kind="float", overflows=True)


MEANINGS: Mapping[str, Meaning] = {
    "add": Meaning(
        lambda arrays, a, b: a + b,
        keeps_whole=True,
        bound=lambda a, b: (a[0] + b[0], a[1] + b[1]),
        format=Format("{} + {}", SUM, (SUM, SUM)),
        onnx="Add",
    ),
    "subtract": Meaning(
        lambda arrays, a, b: a - b,
        keeps_whole=True,
        bound=lambda a, b: (a[0] - b[1], a[1] - b[0]),
        format=Format("{} − {}", SUM, (SUM, PRODUCT)),
        onnx="Sub",
    ),
    "multiply": Meaning(
        lambda arrays, a, b: a * b,
        keeps_whole=True,
        bound=product_bound,
        format=Format("{}·{}", PRODUCT, (PRODUCT, PRODUCT)),
        onnx="Mul",
    ),
    "divide": Meaning(
        lambda arrays, a, b: a / b,
        (_ZERO,),
        format=Format("{} / {}", PRODUCT, (PRODUCT, TERM)),
        kind="float",
    ),
    "modulo": Meaning(
        lambda arrays, a, b: a % b,
        (_ZERO,),
        keeps_whole=True,
        bound=modulo_bound,
        format=Format("{} % {}", PRODUCT, (TERM, TERM)),
    ),
    "floor_divide": Meaning(
        lambda arrays, a, b: a // b,
        (_ZERO,),
        keeps_whole=True,
        bound=floor_divide_bound,
        format=Format("{} // {}", PRODUCT, (TERM, TERM)),
    ),
    "power": Meaning(
        _power,
        (_ZERO_POWER, _NOT_REAL),
        overflows=True,
        bound=power_bound,
        format=Format("{}^{}", PRODUCT, (TERM, TERM)),
    ),
    "negate": Meaning(
        lambda arrays, a: -a,
        keeps_whole=True,
        bound=lambda a: (-a[1], -a[0]),
        format=Format("−{}", SUM, (PRODUCT,)),
        onnx="Neg",
    ),
    "absolute": Meaning(
        lambda arrays, a: abs(a),
        keeps_whole=True,
        bound=lambda a: (max(a[0], -a[1], 0), around_zero(a)[1]),
        format=Format("|{}|"),
        onnx="Abs",
    ),
    # Not the library's own minimum and maximum: those pass NaN on, whichever operand it is.
    "minimum": Meaning(
        lambda arrays, a, b: arrays.where(a < b, a, b),
        keeps_whole=True,
        bound=lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    ),
    "maximum": Meaning(
        lambda arrays, a, b: arrays.where(a > b, a, b),
        keeps_whole=True,
        bound=lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    ),
    "exp": _function("exp", overflows=True, onnx="Exp"),
    "log": _function("log", _outside(lambda a: a <= 0, "log")),
    "sqrt": _function("sqrt", _outside(lambda a: a < 0, "sqrt"), onnx="Sqrt"),
    "erf": Meaning(lambda arrays, a: erf(a), kind="float", onnx="Erf"),
    "tanh": _function("tanh", onnx="Tanh"),
    "sin": _function("sin", _outside(lambda a: abs(a) == math.inf, "sin"), onnx="Sin"),
    "cos": _function("cos", _outside(lambda a: abs(a) == math.inf, "cos"), onnx="Cos"),
    "floor": Meaning(
        lambda arrays, a: arrays.xp.floor(a),
        _INFINITE,
        keeps_whole=True,
        bound=lambda a: a,
        kind="int",
        onnx="Floor",
    ),
    "round": Meaning(
        lambda arrays, a: arrays.xp.round(a),
        _INFINITE,
        keeps_whole=True,
        bound=lambda a: a,
        kind="int",
        onnx="Round",
    ),
    **{dtype: _rounding(dtype) for dtype in ROUNDINGS},
    "equal": _comparison("==", "==", "Equal"),
    "not_equal": _comparison("!=", "≠", None),
    "less": _comparison("<", "<", "Less"),
    "less_equal": _comparison("<=", "≤", "LessOrEqual"),
    "greater": _comparison(">", ">", "Greater"),
    "greater_equal": _comparison(">=", "≥", "GreaterOrEqual"),
    "and": Meaning(
        lambda arrays, a, b: truth(arrays, a) & truth(arrays, b),
        bound=lambda a, b: BIT,
        format=Format("{} and {}", LOOSE, (TERM, TERM)),
        kind="bool",
    ),
    "or": Meaning(
        lambda arrays, a, b: truth(arrays, a) | truth(arrays, b),
        bound=lambda a, b: BIT,
        format=Format("{} or {}", LOOSE, (TERM, TERM)),
        kind="bool",
    ),
    "not": Meaning(
        lambda arrays, a: arrays.xp.logical_not(truth(arrays, a)),
        bound=lambda a: BIT,
        format=Format("not {}", LOOSE, (TERM,)),
        kind="bool",
    ),
    "if_else": Meaning(
        lambda arrays, condition, a, b: arrays.where(truth(arrays, condition), a, b),
        keeps_whole=True,
        bound=lambda condition, a, b: hull(a, b),
        format=Format("{1} if {0} else {2}", LOOSE, (SUM, SUM, SUM)),
    ),
    "indicator": Meaning(truth, bound=lambda a: BIT, kind="int"),
    "member": Meaning(member, bound=lambda a: BIT, kind="bool"),
    "lookup": Meaning(
        lookup, (Undefined(missing, "the table has nothing for the value there", "missing"),)
    ),
}
