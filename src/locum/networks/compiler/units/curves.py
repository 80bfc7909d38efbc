"""Approximate smooth functions by piecewise-linear functions, with a certified error.

On an interval where a function is convex (or concave), the chord between two knots deviates to one side
only. The deviation is largest where the function has the slope of the chord. This point has a closed
form for every function in this module, so the largest deviation (the *sag*) of each segment is
computed, not sampled. Moving all knots by half of the largest sag balances the error on both sides. If
knots are evenly spaced in ∫√|f″|, all sags are nearly equal, and the number of segments is close to the
minimum.

>>> line = approximate("exp", -1.0, 1.0, 1e-2)
>>> len(line.knots), line.error <= 1e-2
(7, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from locum.execution.arrays import erf
from locum.networks.compiler.network.forms import Vector

#: Maximum number of segments for one function.
MAX_SEGMENTS = 50_000
_UNIT = 2.0**-52


@dataclass(frozen=True)
class Curve:
    """A function of one number, with the data that are needed to place knots and to compute sags."""

    name: str
    function: Callable[[Vector], Vector]
    slope: Callable[[Vector], Vector]
    #: The point with a given slope, on the right (+1) or on the left (−1) of 0.
    where: Callable[[Vector, float], Vector]
    #: ∫√|f″|, up to a factor, and its inverse, on one side of 0.
    measure: Callable[[Vector], Vector]
    unmeasure: Callable[[Vector], Vector]
    #: The open interval of valid arguments; ``sqrt`` also accepts 0, and ``reciprocal`` does not.
    domain: tuple[float, float] = (-math.inf, math.inf)
    #: Whether the curvature changes sign at 0, where the function is defined.
    turns_at_zero: bool = False
    #: +1 if the function is convex for x > 0, −1 if it is concave.
    curvature: int = 1


def _table(density: Callable[[Vector], Vector], reach: float) -> tuple[Vector, Vector]:
    """Integrate a density on a grid; the result only places knots and need not be accurate."""
    grid = np.linspace(0.0, reach, 4001)
    weights = density(grid)
    steps = (weights[1:] + weights[:-1]) / 2 * np.diff(grid)
    return grid, np.concatenate([[0.0], np.cumsum(steps + 1e-9 * np.diff(grid))])


def _numeric(
    density: Callable[[Vector], Vector], reach: float
) -> tuple[Callable[[Vector], Vector], Callable[[Vector], Vector]]:
    grid, total = _table(density, reach)

    def measure(x: Vector) -> Vector:
        return np.sign(x) * np.interp(np.abs(x), grid, total)

    def unmeasure(m: Vector) -> Vector:
        return np.sign(m) * np.interp(np.abs(m), total, grid)

    return measure, unmeasure


_TANH = _numeric(lambda x: np.sqrt(np.abs(2 * np.tanh(x)) / np.cosh(x) ** 2), 20.0)
_ERF = _numeric(lambda x: np.sqrt(4 / math.sqrt(math.pi) * np.abs(x) * np.exp(-(x**2))), 7.0)


_SIN = _numeric(lambda x: np.sqrt(np.abs(np.sin(x))), math.pi / 2)


def _where_tanh(slope: Vector, side: float) -> Vector:
    return side * np.arctanh(np.sqrt(np.clip(1 - slope, 0, 1 - 1e-16)))


def _where_erf(slope: Vector, side: float) -> Vector:
    return side * np.sqrt(np.maximum(-np.log(np.clip(slope * math.sqrt(math.pi) / 2, 1e-300, 1)), 0))


CURVES = {
    curve.name: curve
    for curve in (
        Curve(
            "exp",
            np.exp,
            np.exp,
            lambda s, side: np.log(s),
            lambda x: 2 * np.exp(x / 2),
            lambda m: 2 * np.log(m / 2),
            domain=(-700.0, 700.0),
        ),
        Curve(
            "log",
            np.log,
            lambda x: 1 / x,
            lambda s, side: 1 / s,
            np.log,
            np.exp,
            domain=(0.0, math.inf),
            curvature=-1,
        ),
        Curve(
            "sqrt",
            np.sqrt,
            lambda x: 0.5 / np.sqrt(x),
            lambda s, side: 0.25 / s**2,
            lambda x: 2 * x**0.25,
            lambda m: (m / 2) ** 4,
            domain=(0.0, math.inf),
            curvature=-1,
        ),
        Curve(
            "reciprocal",
            lambda x: 1 / x,
            lambda x: -1 / x**2,
            lambda s, side: side / np.sqrt(-s),
            lambda x: np.sign(x) * -2 * math.sqrt(2) / np.sqrt(np.abs(x)),
            lambda m: -np.sign(m) * 8 / m**2,
        ),
        Curve("square", np.square, lambda x: 2 * x, lambda s, side: s / 2, lambda x: x, lambda m: m),
        Curve(
            "tanh",
            np.tanh,
            lambda x: 1 / np.cosh(np.clip(x, -300, 300)) ** 2,
            _where_tanh,
            *_TANH,
            turns_at_zero=True,
            curvature=-1,
        ),
        Curve(  # only between −π/2 and π/2, since units cannot compute a period
            "sin",
            np.sin,
            np.cos,
            lambda s, side: side * np.arccos(np.clip(s, 0, 1)),
            *_SIN,
            domain=(-math.pi / 2, math.pi / 2),
            turns_at_zero=True,
            curvature=-1,
        ),
        Curve(
            "erf",
            erf,
            lambda x: 2 / math.sqrt(math.pi) * np.exp(-(x**2)),
            _where_erf,
            *_ERF,
            turns_at_zero=True,
            curvature=-1,
        ),
    )
}


@dataclass(frozen=True)
class PiecewiseLinear:
    """A continuous function that is linear between knots and constant outside of the knots.

    ``error`` bounds the absolute error of the approximation; for :func:`exponential`, the relative
    error.
    """

    knots: Vector
    values: Vector
    error: float

    def __call__(self, x: Vector) -> Vector:
        """Return the values of the function at ``x``."""
        return np.asarray(np.interp(x, self.knots, self.values), dtype=np.float64)


class UnitsError(ValueError):
    """Raised if hidden units cannot compute a gate, or if a function is undefined on a range.

    ``needed`` is the number of segments if too many segments are required, and otherwise 0.
    """

    def __init__(self, problem: str, needed: float = 0) -> None:
        super().__init__(problem)
        self.needed = needed


def approximate(name: str, low: float, high: float, error: float) -> PiecewiseLinear:
    """Approximate the function ``name`` on [low, high] with an error of at most ``error``."""
    curve = CURVES[name]
    _require_inside(curve, low, high)
    if high <= low:
        high = low + max(abs(low), 1.0) * 1e-9
    pieces = [(low, high)]
    if curve.turns_at_zero and low < 0 < high:
        pieces = [(low, 0.0), (0.0, high)]
    segments = [max(1, math.ceil(_span(curve, *piece) / (4 * math.sqrt(error)))) for piece in pieces]
    while True:
        if sum(segments) > MAX_SEGMENTS:
            raise UnitsError(
                f"approximating {name} on [{low:.4g}, {high:.4g}] with an error of {error:.2g} "
                "requires "
                f"more than {MAX_SEGMENTS:,} segments",
                sum(segments),
            )
        line = _balanced(curve, pieces, segments)
        if line.error <= error:
            return line
        segments = [count + max(1, count // 50) for count in segments]


def _require_inside(curve: Curve, low: float, high: float) -> None:
    if not (math.isfinite(low) and math.isfinite(high)):
        raise UnitsError(f"expected bounded arguments of {curve.name}, got unbounded numbers")
    crosses_pole = curve.name == "reciprocal" and low <= 0 <= high
    closed = curve.name == "sqrt" and low == 0.0
    if crosses_pole or not (curve.domain[0] < low or closed) or not high < curve.domain[1]:
        raise UnitsError(
            f"expected arguments in the domain of {curve.name}, got the range [{low:.4g}, {high:.4g}]"
        )


def _span(curve: Curve, low: float, high: float) -> float:
    ends = curve.measure(np.array([low, high]))
    return abs(float(ends[1] - ends[0]))


def _balanced(curve: Curve, pieces: list[tuple[float, float]], segments: list[int]) -> PiecewiseLinear:
    knots: list[Vector] = []
    offsets: list[Vector] = []
    lowest, highest = 0.0, 0.0
    sags: list[tuple[Vector, float]] = []
    for (low, high), count in zip(pieces, segments, strict=True):
        ends = curve.measure(np.array([low, high]))
        inside = curve.unmeasure(np.linspace(ends[0], ends[1], count + 1)[1:-1])
        at = np.unique(np.concatenate([[low], np.clip(inside, low, high), [high]]))
        side = 1.0 if low + high > 0 else -1.0
        if curve.turns_at_zero and len(pieces) == 2:
            # In the segment next to 0, the offset returns to 0, so this segment is divided in two.
            middle = (at[0] + at[1]) / 2 if side > 0 else (at[-2] + at[-1]) / 2
            at = np.unique(np.append(at, middle))
        sag, sign = _sag(curve, at, side)
        sags.append((sag, sign))
        knots.append(at)
        offsets.append(np.full(len(at), -sign * float(sag.max()) / 2))
    if len(pieces) == 2:
        offsets[0][-1] = offsets[1][0] = 0.0
    for (sag, sign), offset in zip(sags, offsets, strict=True):
        # chord − f is in [0, sag] (times the sign), and the offset is linear along the segment.
        least, most = np.minimum(offset[:-1], offset[1:]), np.maximum(offset[:-1], offset[1:])
        lowest = min(lowest, float((least if sign > 0 else least - sag).min()))
        highest = max(highest, float((most + sag if sign > 0 else most).max()))
    at = np.concatenate([knots[0], *(k[1:] for k in knots[1:])])
    offset = np.concatenate([offsets[0], *(o[1:] for o in offsets[1:])])
    values = curve.function(at) + offset
    steepest = float(np.abs(np.diff(values) / np.diff(at)).max())
    slack = 16 * _UNIT * (float(np.abs(values).max()) + float(np.abs(at).max()) * steepest)
    return PiecewiseLinear(at, values, max(-lowest, highest) + slack)


def _sag(curve: Curve, at: Vector, side: float) -> tuple[Vector, float]:
    """Return the largest distance of each chord from the function, and a sign.

    The sign is 1 if the chords are above the function, and −1 otherwise.
    """
    f = curve.function(at)
    width = np.diff(at)
    slope = np.diff(f) / width
    with np.errstate(all="ignore"):
        tangent = curve.where(slope, side)
    # If the chord is numerically constant, the point is unknown. The function is then also constant, so
    # the middle of the segment can be used.
    tangent = np.where(np.isfinite(tangent), tangent, (at[1:] + at[:-1]) / 2)
    tangent = np.clip(tangent, at[:-1], at[1:])
    chord = f[:-1] + slope * (tangent - at[:-1])
    away = chord - curve.function(tangent)
    right = curve.curvature
    sign = float(
        right if side > 0 or not (curve.turns_at_zero or curve.name == "reciprocal") else -right
    )
    # The tangent point has rounding errors, but the deviation is nearly constant around it. A small
    # margin is therefore enough.
    return np.maximum(sign * away, 0.0) * (1 + 1e-9), sign


def exponential(low: float, high: float, error: float) -> PiecewiseLinear:
    """Approximate exp on [low, high] within a *relative* error, by segments of equal width.

    On a segment [t, t + h], the ratio of the chord to exp is maximal at a distance from t that depends
    only on h.
    """
    _require_inside(CURVES["exp"], low, high)
    high = max(high, low + 1e-9)
    count = max(1, math.ceil((high - low) / (4 * math.sqrt(error))))
    while True:
        width = (high - low) / count
        excess = _relative_sag(width)
        balanced = (excess / 2) / (1 + excess / 2)
        if balanced + 32 * _UNIT <= error:
            break
        count += max(1, count // 50)
        if count > MAX_SEGMENTS:
            raise UnitsError(
                f"approximating exp with a relative error of {error:.2g} requires too many segments",
                count,
            )
    knots = np.linspace(low, high, count + 1)
    # Knots are rounded, so the widths and the values of exp have rounding errors.
    slack = (64 + 16 * max(abs(low), abs(high))) * _UNIT
    return PiecewiseLinear(knots, np.exp(knots) / (1 + excess / 2), balanced + slack)


def _relative_sag(width: float) -> float:
    """Bound the relative error of a chord of exp on a segment of the given width.

    With slope a, (1 + a·x)·e^−x is maximal at x = 1 − 1/a.
    """
    rise = math.expm1(width) / width
    x = min(max(1 - 1 / rise, 0.0), width)
    return max((1 + rise * x) * math.exp(-x) - 1, 0.0) * (1 + 1e-6) + 4 * _UNIT
