"""Represent the contents of the residual stream: signals, affine forms and gates.

A :class:`Signal` is one number at each position. A :class:`Form` is an affine combination of signals.
The matrices of a transformer are linear and read forms, so sums and constant factors need no layers. A
*gate* is a function of one or two forms that the hidden units of a feed-forward compute. The module
also contains helpers that decide whether sums in floating point are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from locum.networks.compiler.scoring.scores import Linear
from locum.networks.compiler.target import EXACT_WHOLE

#: Arrays of numbers and of booleans, for example with one entry per position, hidden unit, knot or key.
Vector: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Signal:
    """One number at each position of the residual stream, written by sublayer ``time``."""

    label: str
    time: int
    #: For embeddings: the number for each position (0 … longest−1), or for each token of the
    #: vocabulary. For real-valued tokens, ``tokens`` is [1].
    positions: Vector | None = None
    tokens: Vector | None = None


@dataclass(frozen=True)
class Form:
    """An affine combination of signals, Σ coefficient · signal + constant."""

    terms: Mapping[Signal, float] = field(default_factory=dict)
    constant: float = 0.0
    #: Absolute coefficients and constant before cancellation, if terms cancelled. Bounds on rounding
    #: errors are proportional to them.
    gross: tuple[Mapping[Signal, float], float] | None = None
    #: The finest grid of the constants that dense execution adds, before any multiplication.
    finest: float = math.inf

    @cached_property
    def uncancelled(self) -> tuple[Mapping[Signal, float], float]:
        """Sums of absolute coefficients, by signal, and of absolute constants, before cancellation."""
        if self.gross is not None:
            return self.gross
        return {signal: abs(c) for signal, c in self.terms.items()}, abs(self.constant)

    @cached_property
    def key(self) -> tuple[frozenset[tuple[int, float]], float]:
        """A hashable key that is equal for forms with equal terms and constants."""
        return frozenset((id(s), c) for s, c in self.terms.items()), self.constant

    @property
    def time(self) -> int:
        """The sublayer after which all signals of the form are available."""
        return max((signal.time for signal in self.terms), default=0)


def total(parts: Iterable[tuple[Form, float]], constant: float = 0.0) -> Form:
    """Return the form Σ coefficient · form + constant."""
    terms: dict[Signal, float] = {}
    gross: dict[Signal, float] = {}
    gross_constant = abs(constant)
    finest = math.inf
    for form, coefficient in parts:
        constant += coefficient * form.constant
        for signal, c in form.terms.items():
            terms[signal] = terms.get(signal, 0.0) + coefficient * c
        if form.constant:
            finest = min(finest, 1 / form.constant.as_integer_ratio()[1])
        finest = min(finest, form.finest)
        sizes, size = form.uncancelled
        gross_constant += abs(coefficient) * size
        for signal, c in sizes.items():
            gross[signal] = gross.get(signal, 0.0) + abs(coefficient) * c
    combined = Form({signal: c for signal, c in terms.items() if c}, constant, finest=finest)
    if combined.uncancelled == (gross, gross_constant):
        return combined
    return replace(combined, gross=(gross, gross_constant))


#: The smallest positive number of each type, which bounds the rounding error of tiny numbers.
SMALLEST = {"float64": 2.0**-1074, "float32": 2.0**-149}
#: Multiples of 2⁻¹⁰ up to these limits, and sums of two such numbers, are exact.
_SAFE = {"float64": 2.0**40, "float32": 2.0**13}


def lowest_bit(number: float) -> float:
    """Return the largest power of two that divides a number, as :func:`lowest_bits` does for arrays.

    This version uses no arrays, since bounds call it for every coefficient of every form.

    >>> lowest_bit(12.0), lowest_bit(-0.75), lowest_bit(0.0), lowest_bit(math.nan)
    (4.0, 0.25, inf, 0.0)
    """
    if not math.isfinite(number):
        return 0.0
    if not number:
        return math.inf
    mantissa, exponent = math.frexp(number)
    whole = int(mantissa * 2.0**53)
    return math.ldexp(float(whole & -whole), exponent - 53)


def lowest_bits(numbers: Vector) -> Vector:
    """Return the largest power of two that divides each number.

    The result is infinity for 0, and 0 for infinity and NaN.

    >>> lowest_bits(np.array([12.0, 0.75, 0.0])).tolist()
    [4.0, 0.25, inf]
    """
    array = np.asarray(numbers, dtype=np.float64)
    finite = np.isfinite(array)
    mantissas, exponents = np.frexp(np.where(finite, array, 0.0))
    integers = (mantissas * 2.0**53).astype(np.int64)
    with np.errstate(all="ignore"):
        bits = np.ldexp((integers & -integers).astype(np.float64), exponents - 53)
    return np.where(finite, np.where(array == 0, np.inf, bits), 0.0)


def sums_exactly(weight: float, step: float, dtype: str) -> bool:
    """Return whether a sum of multiples of ``step`` is certainly exact in type ``dtype``.

    ``step`` is a power of two, and ``weight`` is the sum of the absolute values of the terms.
    """
    return bool(step >= SMALLEST[dtype] and weight <= EXACT_WHOLE[dtype] * step)


def dyadic(numbers: Vector | float, dtype: str) -> bool:
    """Return whether all numbers are multiples of 2⁻¹⁰ that are small enough for exact sums.

    The sum of any two such numbers is exact in type ``dtype``.
    """
    array = np.asarray(numbers, dtype=np.float64)
    if not np.isfinite(array).all():
        return False
    return bool(
        (array * 1024 == np.round(array * 1024)).all() and (np.abs(array) <= _SAFE[dtype]).all()
    )


@dataclass(frozen=True, eq=False)
class Product:
    """A gate that computes the product a · b."""

    a: Form
    b: Form

    @property
    def arguments(self) -> tuple[Form, ...]:
        """The forms that the gate reads."""
        return self.a, self.b


@dataclass(frozen=True, eq=False)
class Masked:
    """A gate that computes ``value`` where ``mask`` is 1, and 0 where ``mask`` is 0."""

    mask: Form
    value: Form

    @property
    def arguments(self) -> tuple[Form, ...]:
        """The forms that the gate reads."""
        return self.mask, self.value


class _OfOneForm:
    """A gate that reads a single form."""

    x: Form

    @property
    def arguments(self) -> tuple[Form, ...]:
        """The single form that the gate reads, as a tuple."""
        return (self.x,)


@dataclass(frozen=True, eq=False)
class Curved(_OfOneForm):
    """A gate that computes a smooth function of one form (``curves.CURVES``)."""

    name: str
    x: Form
    #: Whether the error must be small relative to the value, as for exponentials that are summed.
    relative: bool = False
    #: An upper bound on the argument, in addition to the bound that follows from its parts.
    at_most: float = np.inf
    #: The forms z and log b if the gate computes exp(z − log b) of a softmax, where b is a
    #: multiple of a sum of exp(z) over keys.
    softmax: tuple[Form, Form] | None = None


@dataclass(frozen=True, eq=False)
class Bend(_OfOneForm):
    """A gate that computes before·x for x < 0 and after·x for x ≥ 0, such as |x| or max(x, 0)."""

    x: Form
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Ramp(_OfOneForm):
    """A gate that is 0 if x ≤ 0 and 1 if x ≥ ``width``.

    For other x, the result is not specified.
    """

    x: Form
    width: float


@dataclass(frozen=True, eq=False)
class Table(_OfOneForm):
    """A gate that maps each key to a value; ``keys`` are in increasing order."""

    x: Form
    keys: Vector
    values: Vector
    #: Whether a :class:`Snap` has rounded x to a grid, so that sums of the units are exact.
    gridded: bool = False

    @cached_property
    def gap(self) -> float:
        """The smallest distance between adjacent keys with different values."""
        return float(np.diff(self.keys)[np.diff(self.values) != 0].min(initial=np.inf))

    @cached_property
    def steepest(self) -> float:
        """The largest absolute slope between adjacent keys."""
        if len(self.keys) < 2:
            return 0.0
        return float(np.abs(np.diff(self.values) / np.diff(self.keys)).max())


@dataclass(frozen=True, eq=False)
class Snap(_OfOneForm):
    """A gate that removes the rounding error of an integer x, or rounds any x to a grid.

    The gate computes (x + C) − C for a large C. Mathematically, this is x, but floating-point
    numbers as large as C cannot represent the error. Counts can thus be keys of hard attention, whose
    ties must be exact. Numbers on a grid can be arguments of tables whose units add without rounding.
    """

    x: Form
    #: Whether x is an integer up to an error; otherwise, x may be any number.
    whole: bool = True


Gate: TypeAlias = Product | Masked | Curved | Bend | Ramp | Table | Snap

#: For each type: C, and the distance between adjacent floating-point numbers near C.
SNAP = {"float64": (1.5 * 2.0**40, 2.0**-12), "float32": (1.5 * 2.0**21, 2.0**-2)}


@dataclass(frozen=True)
class Recipe:
    """A gate whose arguments are linear combinations of s-ops; ``make`` creates the gate from forms."""

    arguments: tuple[Linear, ...]
    make: Callable[..., Gate]
    #: Additional combinations that error bounds need, but that the gate does not read.
    beside: tuple[Linear, ...] = ()
    #: Whether the result may have an error although the arguments are exact.
    approximates: bool = False
    #: Whether the result is exact although the arguments may have errors.
    exact: bool = False
