"""Hidden units of a feed-forward, of each kind: relu, gelu, or relu-gated (``glu``).

All three have *ridges*, c·relu(w·x + b), in common: relu itself; relu(w·x + b) as the gate of a unit
that is 1; and GELU(S·z)/S with a sharpness S, which differs from relu(z) by at most 0.17/S, and not at
all (in floats) where |S·z| ≥ 40. Piecewise-linear functions are sums of ridges, and most gates are
piecewise linear (``realise.py``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from locum.networks.compiler.network.forms import Vector
from locum.networks.compiler.units.curves import PiecewiseLinear, UnitsError

#: The greatest |GELU(z) − relu(z)|, rounded up.
SOFTNESS = 0.17
#: Sharpness of units that only move or erase: whatever is not tiny passes them unchanged.
#: Ties of hard heads have to be exact, and so has the erased slot to be; a softmax does not see
#: 2⁻¹¹⁰, and its network may be turned into float32, which has no numbers above 2¹²⁸.
SHARP = {"float64": 2.0**400, "float32": 2.0**50}
SHARP_SOFTMAX = 2.0**64
#: No unit is sharper: what it reads times this still is a number.
SHARPEST = 2.0**500


@dataclass(frozen=True)
class Argument:
    """What is known of a form: the numbers that the network has there, and how wrong they may be."""

    low: float
    high: float
    error: float = 0.0
    #: A power of two that every number there is a multiple of, however wrong it is; 0: not known.
    grid: float = 0.0

    @property
    def largest(self) -> float:
        """The greatest absolute value."""
        return max(abs(self.low), abs(self.high))


@dataclass
class Hidden:
    """Units of one gate: out·activation(pre·x + bias), times (gate·x + gate_bias) in a gated one."""

    pre: Vector  # [unit, argument]
    bias: Vector
    out: Vector
    constant: float
    #: How far the gate is from what it stands for, at most, on exact arguments (rounding left out).
    error: float
    how: str
    gate: Vector | None = None
    gate_bias: Vector | None = None
    #: Whether its units are on at the sink, too, where they read 0; else they write the constant only.
    open_at_sink: bool = False
    #: Greatest and least that may come out, whatever comes in; None: no limit.
    limits: tuple[float, float] | None = None
    #: Σ |out|·(activation), at most: what the rounding of the sum is in proportion to.
    weight: float = 0.0
    #: Σ |out|·(|pre|·|x| + |bias|) of units that are active together, at most: what the rounding of
    #: their pre-activations is in proportion to; None: the same as ``weight``.
    reading: float | None = None
    #: How many units are active together, at most; None: all.
    active: int | None = None
    #: Whether noise in the argument is cut off.
    flat: bool = False

    @property
    def size(self) -> int:
        """How many units."""
        return len(self.bias)

    @property
    def terms(self) -> int:
        """How many units add something at a time, at most."""
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
    """Make Σ out·relu(pre·x + bias) + constant in each kind, for arguments up to ``largest``."""
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
    """Return the smallest power of two ≥ ``at_least``."""
    return float(2.0 ** math.ceil(math.log2(at_least)))


def along(line: PiecewiseLinear, *, steps: bool = False) -> tuple[Vector, Vector, Vector, float]:
    """Write a piecewise-linear function as ridges (direction, knot, coefficient) and a constant.

    Anchored where it is flattest, so that coefficients on either side have few signs and do not cancel;
    a function of ``steps``, whose coefficients cancel everywhere, where the sums are smallest.
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
    """Return the knot from which ridges of these coefficients, to both sides, sum to least."""
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
    """Return the units of a piecewise-linear function of ``x``; ``steps``: it is level at every key."""
    direction, at, coefficient, constant = along(line, steps=steps)
    pre, bias = direction[:, None], -direction * at
    hidden = ridges(kind, pre, bias, coefficient, constant, line.error, how, (x.largest,), sharpness)
    # A sum of ridges to one side is greatest at the end of that side, where all of them are active.
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
    """Return a sharpness for gelu, and what it adds to the error: no more than ``slack``."""
    spacing = float(np.diff(line.knots).min())
    jump = float(
        np.abs(np.diff(np.concatenate([[0], np.diff(line.values) / np.diff(line.knots), [0]]))).max()
    )
    needed = max(64 / spacing, 2 * SOFTNESS * jump / slack) if slack > 0 else math.inf
    if needed > SHARPEST:
        raise UnitsError(f"gelu would have to bend as sharply as {needed:.2g}·x does")
    sharpness = power_of_two(needed)
    # Beyond its two neighbours a knot is saturated.
    return sharpness, 2 * SOFTNESS * jump / sharpness


def erasing(kind: str, dtype: str, attention: str = "hard") -> list[tuple[float, float]]:
    """Return pairs (w_in, w_out) of units that together subtract a slot from itself."""
    if kind == "glu":  # nothing is cut off: its gate is 1
        return [(1.0, -1.0)]
    if kind == "gelu":
        sharp = SHARP[dtype] if attention == "hard" else min(SHARP[dtype], SHARP_SOFTMAX)
        return [(sharp, -1 / sharp), (-sharp, 1 / sharp)]
    return [(1.0, -1.0), (-1.0, 1.0)]
