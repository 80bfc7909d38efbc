"""Define every elementwise operation on arrays in one table.

Plans (NumPy and torch), the structured tier, heads and symbolic feed-forwards use this table. The
*policy* for undefined results depends on the user of the table:

- :func:`ieee` keeps infinities and NaN of the array library (structured runs on tensors, and heads in
  IEEE 754 arithmetic);
- :func:`refusing` raises ``Unstructured`` (structured runs on NumPy), ``FloatingPointError`` (plans on
  NumPy), or ``ElementError`` with the position (heads);
- :func:`nan` replaces undefined results by NaN (symbolic feed-forwards).

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

#: Precedence levels of formulas, loosest first; a looser formula is put in parentheses.
LOOSE, SUM, PRODUCT, TERM = range(4)


@dataclass(frozen=True)
class Undefined:
    """A condition under which an operation is undefined, with the message of the error."""

    #: A function of the :class:`Arrays` and the inputs, with the attributes as keyword arguments.
    where: Callable[..., Array]
    problem: str
    #: The value of ``ExecutionError.kind``.
    kind: str


@dataclass(frozen=True)
class Format:
    """The printed form of an operation: a pattern, its precedence, and the precedence of each
    operand.
    """

    text: str
    holds: int = TERM
    needs: tuple[int, ...] = (LOOSE,)


@dataclass(frozen=True)
class Meaning:
    """The definition of an elementwise operation on arrays of one type."""

    #: A function of the :class:`Arrays` and the inputs, with the attributes as keyword arguments.
    array: Callable[..., Array]
    undefined: tuple[Undefined, ...] = ()
    #: Whether the result for integers is an integer (not set for ``indicator``, whose ``kind`` is
    #: ``int``).
    keeps_whole: bool = False
    #: Returns an interval of the results for integers in the given intervals; None if no rule is known.
    bound: Callable[..., Interval] | None = None
    #: The printed form. If it is None, ``member`` is printed as ``a in {…}``, and other operations as
    #: functions, ``name(a, b)``.
    format: Format | None = None
    #: ``bool``, ``int`` or ``float`` if the result has this type for all inputs.
    kind: str | None = None
    #: Whether an infinite result for finite inputs is an error (not for sums, products and quotients).
    overflows: bool = False


# Policies -----------------------------------------------------------------------------------------

#: A function that computes an operation from the :class:`Arrays`, the meaning, the inputs and the
#: attributes.
Policy: TypeAlias = "Callable[[Arrays, Meaning, Sequence[Any], Mapping[str, Any]], Array]"


def apply(
    arrays: Arrays,
    op: str,
    inputs: Sequence[Any],
    policy: Policy,
    attributes: Mapping[str, Any] | None = None,
) -> Array:
    """Compute an operation at every element of ``inputs``, which are arrays or scalars.

    ``policy`` handles the elements at which the operation is undefined. ``attributes`` contains the
    attributes of the operation.
    """
    return policy(arrays, MEANINGS[op], inputs, attributes or {})


def ieee(
    arrays: Arrays, meaning: Meaning, inputs: Sequence[Any], attributes: Mapping[str, Any]
) -> Array:
    """Compute an operation, and keep the infinities and NaN of the library."""
    return meaning.array(arrays, *inputs, **attributes)


def nan(
    arrays: Arrays, meaning: Meaning, inputs: Sequence[Any], attributes: Mapping[str, Any]
) -> Array:
    """Compute an operation, and return NaN where it is undefined."""
    result = meaning.array(arrays, *inputs, **attributes)
    bad = [case.where(arrays, *inputs, **attributes) for case in meaning.undefined]
    if meaning.overflows:
        bad.append(_overflow(result, inputs))
    for mask in bad:
        result = arrays.xp.where(mask, arrays.xp.full_like(result, math.nan), result)
    return result


def refusing(error: Callable[[str, str, Array], Exception]) -> Policy:
    """Return a policy that raises ``error(problem, kind, where)`` if the result is undefined
    somewhere.
    """

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
    """Compute a function of floats, and apply ``policy`` only if some result is not finite.

    Where a function of floats is undefined, every library returns an infinity or NaN.
    """
    result = MEANINGS[op].array(arrays, *inputs)
    if arrays.all(arrays.xp.isfinite(result)):
        return result
    return apply(arrays, op, inputs, policy)


def _overflow(result: Array, inputs: Sequence[Any]) -> Array:
    """Return a mask of the elements at which all inputs are finite and the result is infinite."""
    bad = abs(result) == math.inf
    for x in inputs:
        bad = bad & _finite(x)
    return bad


# Meanings of more than one line ---------------------------------------------------------------------


def truth(arrays: Arrays, a: Any) -> Any:
    """Return a mask of the values that are not 0, False or the empty string; a scalar gives a bool."""
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
        if arrays.on_torch and a.ndim == 0 and getattr(b, "ndim", 0) and b.is_floating_point():
            a = a.to(b.dtype)  # ``where`` would return an array with the dtype of the number ``a``
        # NumPy computes ** 0.5 as a square root, which is undefined for −∞. The power is ∞.
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


def _comparison(predicate: str, sign: str) -> Meaning:
    holds = COMPARISONS[predicate].holds
    return Meaning(
        lambda arrays, a, b: holds(a, b),
        bound=lambda a, b: BIT,
        format=Format(f"{{}} {sign} {{}}", LOOSE, (SUM, SUM)),
        kind="bool",
    )


def _function(name: str, *undefined: Undefined, **columns: Any) -> Meaning:
    """Return the meaning of the function of floats with this name in the array library."""
    return Meaning(lambda arrays, a: getattr(arrays.xp, name)(a), undefined, kind="float", **columns)


def _rounding(dtype: str) -> Meaning:
    """Return the meaning of rounding to a floating-point type; the result has the type of the run."""

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
    ),
    "subtract": Meaning(
        lambda arrays, a, b: a - b,
        keeps_whole=True,
        bound=lambda a, b: (a[0] - b[1], a[1] - b[0]),
        format=Format("{} − {}", SUM, (SUM, PRODUCT)),
    ),
    "multiply": Meaning(
        lambda arrays, a, b: a * b,
        keeps_whole=True,
        bound=product_bound,
        format=Format("{}·{}", PRODUCT, (PRODUCT, PRODUCT)),
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
    ),
    "absolute": Meaning(
        lambda arrays, a: abs(a),
        keeps_whole=True,
        bound=lambda a: (max(a[0], -a[1], 0), around_zero(a)[1]),
        format=Format("|{}|"),
    ),
    # Not the library's own minimum and maximum, which propagate NaN from either operand.
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
    "exp": _function("exp", overflows=True),
    "log": _function("log", _outside(lambda a: a <= 0, "log")),
    "sqrt": _function("sqrt", _outside(lambda a: a < 0, "sqrt")),
    "erf": Meaning(lambda arrays, a: erf(a), kind="float"),
    "tanh": _function("tanh"),
    "sin": _function("sin", _outside(lambda a: abs(a) == math.inf, "sin")),
    "cos": _function("cos", _outside(lambda a: abs(a) == math.inf, "cos")),
    "floor": Meaning(
        lambda arrays, a: arrays.xp.floor(a),
        _INFINITE,
        keeps_whole=True,
        bound=lambda a: a,
        kind="int",
    ),
    "round": Meaning(
        lambda arrays, a: arrays.xp.round(a),
        _INFINITE,
        keeps_whole=True,
        bound=lambda a: a,
        kind="int",
    ),
    **{dtype: _rounding(dtype) for dtype in ROUNDINGS},
    "equal": _comparison("==", "=="),
    "not_equal": _comparison("!=", "≠"),
    "less": _comparison("<", "<"),
    "less_equal": _comparison("<=", "≤"),
    "greater": _comparison(">", ">"),
    "greater_equal": _comparison(">=", "≥"),
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
