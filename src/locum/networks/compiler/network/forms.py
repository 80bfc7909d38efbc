"""The contents of the residual stream: forms, exact grids of numbers, and gates.

A :class:`Signal` is one number at each position. A :class:`Form` is an affine combination of signals;
since every matrix of a transformer is linear, whatever reads the stream reads forms, and sums and
constant factors cost nothing.
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

#: A number, or a boolean, for each position (or for each of some units, knots, keys).
Vector: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Signal:
    """One number at each position, from ``time`` on."""

    label: str
    time: int
    #: What the positions (0 … longest−1) and the tokens put into it at the start.
    positions: Vector | None = None
    tokens: Vector | None = None


@dataclass(frozen=True)
class Form:
    """Σ coefficient · signal + constant."""

    terms: Mapping[Signal, float] = field(default_factory=dict)
    constant: float = 0.0
    #: Coefficients and constant before anything cancelled, where something did: what dense execution
    #: rounds is as large as that.
    gross: tuple[Mapping[Signal, float], float] | None = None
    #: The finest grid of a constant before it was multiplied: dense execution adds it as it was.
    finest: float = math.inf

    @cached_property
    def uncancelled(self) -> tuple[Mapping[Signal, float], float]:
        """The absolute values of all coefficients and constants that were added up."""
        if self.gross is not None:
            return self.gross
        return {signal: abs(c) for signal, c in self.terms.items()}, abs(self.constant)

    @cached_property
    def key(self) -> tuple[frozenset[tuple[int, float]], float]:
        """Equal for equal forms."""
        return frozenset((id(s), c) for s, c in self.terms.items()), self.constant

    @property
    def time(self) -> int:
        """When all of it is there."""
        return max((signal.time for signal in self.terms), default=0)


def total(parts: Iterable[tuple[Form, float]], constant: float = 0.0) -> Form:
    """Return Σ coefficient · form + constant."""
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


#: Between this and 0 there is no number: what rounding adds to a number however small.
SMALLEST = {"float64": 2.0**-1074, "float32": 2.0**-149}
#: Multiples of 2⁻¹⁰ below these are added and multiplied without rounding.
_SAFE = {"float64": 2.0**40, "float32": 2.0**13}


def lowest_bit(number: float) -> float:
    """Return the greatest power of two that divides a number, as :func:`lowest_bits` has it.

    Without arrays: bounds ask this of every coefficient of every form.

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
    """Return the greatest power of two dividing each number; infinite for 0, 0 for inf and NaN.

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
    """Return whether numbers on a grid add up without rounding, if all of them make ``weight``."""
    return bool(step >= SMALLEST[dtype] and weight <= EXACT_WHOLE[dtype] * step)


def dyadic(numbers: Vector | float, dtype: str) -> bool:
    """Return whether arithmetic with these is exact: multiples of 2⁻¹⁰, and not too large."""
    array = np.asarray(numbers, dtype=np.float64)
    if not np.isfinite(array).all():
        return False
    return bool(
        (array * 1024 == np.round(array * 1024)).all() and (np.abs(array) <= _SAFE[dtype]).all()
    )


@dataclass(frozen=True, eq=False)
class Product:
    """a · b."""

    a: Form
    b: Form

    @property
    def arguments(self) -> tuple[Form, ...]:
        """What it reads."""
        return self.a, self.b


@dataclass(frozen=True, eq=False)
class Masked:
    """``value`` where ``mask`` is 1, and 0 where it is 0."""

    mask: Form
    value: Form

    @property
    def arguments(self) -> tuple[Form, ...]:
        """What it reads."""
        return self.mask, self.value


class _OfOneForm:
    """A gate that reads one form."""

    x: Form

    @property
    def arguments(self) -> tuple[Form, ...]:
        """What it reads."""
        return (self.x,)


@dataclass(frozen=True, eq=False)
class Curved(_OfOneForm):
    """A smooth function (``curves.CURVES``) of one form."""

    name: str
    x: Form
    #: Whether its error is to be small in proportion to its value (exponentials that are summed).
    relative: bool = False
    #: What the argument is known not to exceed, beyond what its parts tell.
    at_most: float = np.inf
    #: (z, log b), where this is exp(z − log b) and b a sum of exp(z) over keys, its own among them: a
    #: softmax.
    softmax: tuple[Form, Form] | None = None


@dataclass(frozen=True, eq=False)
class Bend(_OfOneForm):
    """before·x left of 0 and after·x right of it: |x|, max(x, 0)."""

    x: Form
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Ramp(_OfOneForm):
    """0 where x ≤ 0 and 1 where x ≥ width; x is never in between."""

    x: Form
    width: float


@dataclass(frozen=True, eq=False)
class Table(_OfOneForm):
    """Where x is one of the keys (in order), the value of that key."""

    x: Form
    keys: Vector
    values: Vector
    #: Whether x was put on a grid by a :class:`Snap`, so that the sums of units are exact.
    gridded: bool = False

    @cached_property
    def gap(self) -> float:
        """How far keys of different values are apart, at least."""
        return float(np.diff(self.keys)[np.diff(self.values) != 0].min(initial=np.inf))

    @cached_property
    def steepest(self) -> float:
        """The greatest slope between neighbouring keys."""
        if len(self.keys) < 2:
            return 0.0
        return float(np.abs(np.diff(self.values) / np.diff(self.keys)).max())


@dataclass(frozen=True, eq=False)
class Snap(_OfOneForm):
    """Round x, an integer plus rounding error, to that integer; or any x to a grid.

    It is relu(x + C) − C for a large C: no more than x on paper, but floats as large as C have no room
    for the noise. So counts can be keys of hard attention, whose ties have to be exact; and a table can
    be looked up by a number on a grid without rounding.
    """

    x: Form
    #: Whether x is an integer but for noise; else it may be any number.
    whole: bool = True


Gate: TypeAlias = Product | Masked | Curved | Bend | Ramp | Table | Snap

#: C, and how far apart the floats of its size are.
SNAP = {"float64": (1.5 * 2.0**40, 2.0**-12), "float32": (1.5 * 2.0**21, 2.0**-2)}


@dataclass(frozen=True)
class Recipe:
    """A gate before its arguments are forms: how to make it of them."""

    arguments: tuple[Linear, ...]
    make: Callable[..., Gate]
    #: More forms that it is good to know of, but that are not read.
    beside: tuple[Linear, ...] = ()
    #: Whether what comes out may be off even where what goes in is not.
    approximates: bool = False
    #: Whether what comes out is exact even where what goes in is not.
    exact: bool = False
