"""Define the hidden units of a feed-forward: ReLU, GELU, or ReLU-gated (``glu``).

Hidden units of all three types can compute *ridges*, c·relu(w·x + b). A gated unit multiplies 1 by the
gate relu(w·x + b). A GELU unit computes GELU(S·z)/S with a sharpness S. The result differs from relu(z)
by at most 0.17/S, and is equal in floating point if |S·z| ≥ 40. Piecewise-linear functions are sums of
ridges, and most gates are piecewise linear (``realise.py``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from locum.networks.compiler.network.forms import Vector
from locum.networks.compiler.units.curves import PiecewiseLinear, UnitsError

#: The maximum of |GELU(z) − relu(z)|, rounded up.
SOFTNESS = 0.17
#: Sharpness of GELU units that erase a slot. A large sharpness changes only tiny numbers: for
#: hard heads, ties and erased slots must be exact. Softmax heads do not distinguish 2⁻¹¹⁰ from 0, and
#: their network may be converted to float32, which has no numbers above 2¹²⁸.
SHARP = {"float64": 2.0**400, "float32": 2.0**50}
SHARP_SOFTMAX = 2.0**64
#: Maximum sharpness for a curve; its product with an input must be finite.
SHARPEST = 2.0**500


@dataclass(frozen=True)
class Argument:
    """The range of an argument of a gate in the network, and a bound on its error."""

    low: float
    high: float
    error: float = 0.0
    #: A power of two that divides the argument in the network, even if the argument has an error; 0 if
    #: unknown.
    grid: float = 0.0

    @property
    def largest(self) -> float:
        """The largest absolute value in the range."""
        return max(abs(self.low), abs(self.high))


@dataclass
class Hidden:
    """The hidden units of a function of one or two numbers x: Σ out·activation(pre·x + bias) +
    constant.

    Gated units compute Σ out·(pre·x + bias)·relu(gate·x + gate_bias) + constant.
    """

    pre: Vector  # [unit, argument]
    bias: Vector
    out: Vector
    constant: float
    #: Bound on the error of the gate for exact arguments, without rounding errors. The bound is
    #: relative for a gate with ``relative``.
    error: float
    how: str
    gate: Vector | None = None
    gate_bias: Vector | None = None
    #: Whether the units are also active at the sink, where their arguments are 0. Otherwise, only the
    #: constant is written there.
    open_at_sink: bool = False
    #: Bounds of the output for any argument within its range; for some gates, also for other arguments.
    #: None if no bounds are known.
    limits: tuple[float, float] | None = None
    #: A bound on Σ |out|·activation for possible arguments. The bound on the rounding error of the sum
    #: is proportional to it.
    weight: float = 0.0
    #: A bound on Σ |out|·(|pre|·|x| + |bias|) over units that are active at the same time. The bound on
    #: the rounding error of their pre-activations is proportional to it. None: ``weight`` bounds the
    #: sum.
    reading: float | None = None
    #: Maximum number of units that are active at the same time; None for all.
    active: int | None = None
    #: Whether the units remove errors of the argument.
    flat: bool = False

    @property
    def size(self) -> int:
        """Number of hidden units."""
        return len(self.bias)

    @property
    def terms(self) -> int:
        """Maximum number of units that are active at the same time."""
        return self.size if self.active is None else self.active


def ridges(
    kind: str,
    pre: Vector,
    bias: Vector,
    out: Vector,
    constant: float,
    error: float,
    how: str,
    largest: tuple[float, ...],
    sharpness: float = 1.0,
) -> Hidden:
    """Return units of the type ``kind`` that compute Σ out·relu(pre·x + bias) + constant.

    GELU units approximate this function; a larger ``sharpness`` reduces the error.
    ``largest`` contains the largest absolute value of each argument.
    """
    weight = float((np.abs(out) * (np.abs(pre) @ np.array(largest) + np.abs(bias))).sum())
    if kind == "glu":
        return Hidden(
            np.zeros_like(pre),
            np.ones_like(bias),
            out,
            constant,
            error,
            how,
            pre,
            bias,
            weight=weight,
        )
    if kind == "gelu":
        pre, bias, out = sharpness * pre, sharpness * bias, out / sharpness
        how = f"{how}, sharpness {sharpness:g}"
    return Hidden(pre, bias, out, constant, error, how, weight=weight)


def power_of_two(at_least: float) -> float:
    """Return the smallest power of two that is at least ``at_least``."""
    return float(2.0 ** math.ceil(math.log2(at_least)))


def along(line: PiecewiseLinear, *, steps: bool = False) -> tuple[Vector, Vector, Vector, float]:
    """Return a piecewise-linear function as ridges and a constant.

    The ridges are arrays (direction, knot, coefficient). The ridges point away from an anchor, so that
    coefficients on either side rarely change sign and cancel. The anchor is the turning point if there
    is exactly one, and otherwise the flatter end. With ``steps``, the coefficients always cancel. In
    this case, the anchor is the knot with the smallest sums.
    """
    knots, values = line.knots, line.values
    slopes = np.diff(values) / np.diff(knots)
    level = np.concatenate([[0.0], slopes, [0.0]])  # constant outside
    inner = np.abs(level[1:-1])
    turn = np.flatnonzero(np.sign(slopes[1:]) * np.sign(slopes[:-1]) <= 0)
    flat_end = 0 if inner[0] <= inner[-1] else len(knots) - 1
    anchor = int(turn[0]) + 1 if len(turn) == 1 else flat_end
    bends = np.diff(level)
    if steps:
        anchor = _balanced_anchor(knots, np.abs(bends))
    right = bends[anchor:].copy()
    right[0] = level[anchor + 1]
    left = bends[: anchor + 1].copy()
    left[-1] = -level[anchor]
    direction = np.concatenate([np.ones(len(right)), -np.ones(len(left))])
    at = np.concatenate([knots[anchor:], knots[: anchor + 1]])
    coefficient = np.concatenate([right, left])
    some = coefficient != 0
    return direction[some], at[some], coefficient[some], float(values[anchor])


def _balanced_anchor(knots: Vector, sizes: Vector) -> int:
    """Return the index of the knot that minimises the larger sum of ridges, left or right."""
    left = np.cumsum(sizes * (knots - knots[0]))
    right = np.cumsum((sizes * (knots[-1] - knots))[::-1])[::-1]
    return int(np.argmin(np.maximum(left, right)))


def from_line(
    line: PiecewiseLinear,
    kind: str,
    how: str,
    x: Argument,
    sharpness: float = 1.0,
    *,
    steps: bool = False,
) -> Hidden:
    """Return the units of type ``kind`` that compute a piecewise-linear function of ``x``.

    ``steps`` states that the function is constant around every key of a table.
    """
    direction, at, coefficient, constant = along(line, steps=steps)
    pre, bias = direction[:, None], -direction * at
    hidden = ridges(kind, pre, bias, coefficient, constant, line.error, how, (x.largest,), sharpness)
    # The sum of the ridges to one side is largest at the end of this side, where all ridges are active.
    sides = [direction > 0, direction < 0]
    ends = max(x.high, float(line.knots[-1])), min(x.low, float(line.knots[0]))
    sizes = np.abs(coefficient)
    hidden.weight = max(
        float((sizes[side] * np.abs(end - at[side])).sum())
        for side, end in zip(sides, ends, strict=True)
    )
    hidden.reading = max(float((sizes[side] * (x.largest + np.abs(at[side]))).sum()) for side in sides)
    hidden.active = max(int(side.sum()) for side in sides)
    hidden.limits = float(line.values.min()), float(line.values.max())
    return hidden


def sharpened(line: PiecewiseLinear, slack: float) -> tuple[float, float]:
    """Return a sharpness for GELU units, and the error that it causes, at most ``slack``."""
    spacing = float(np.diff(line.knots).min())
    jump = float(
        np.abs(np.diff(np.concatenate([[0], np.diff(line.values) / np.diff(line.knots), [0]]))).max()
    )
    needed = max(64 / spacing, 2 * SOFTNESS * jump / slack) if slack > 0 else math.inf
    if needed > SHARPEST:
        raise UnitsError(f"gelu units require an input scale of {needed:.2g}, more than {SHARPEST:.2g}")
    sharpness = power_of_two(needed)
    # Beyond the two neighbours of a knot, its unit is saturated.
    return sharpness, 2 * SOFTNESS * jump / sharpness


def erasing(kind: str, dtype: str, attention: str = "hard") -> list[tuple[float, float]]:
    """Return weights (w_in, w_out) of hidden units that together subtract a slot from itself."""
    if kind == "glu":  # exact, since its gate is 1
        return [(1.0, -1.0)]
    if kind == "gelu":
        sharp = SHARP[dtype] if attention == "hard" else min(SHARP[dtype], SHARP_SOFTMAX)
        return [(sharp, -1 / sharp), (-sharp, 1 / sharp)]
    return [(1.0, -1.0), (-1.0, 1.0)]
