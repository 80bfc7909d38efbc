"""Gates as hidden units of a feed-forward: relu, gelu, or relu-gated (``glu``).

All three kinds have *ridges*, c·relu(w·x + b), in common: relu itself; relu(w·x + b) as the gate of a
unit that is 1; and GELU(S·z)/S with a sharpness S, which differs from relu(z) by at most 0.17/S, and
not at all (in floats) where |S·z| ≥ 40. Where they differ is in products:

- ``glu``: relu(a)·b − relu(−a)·b = a·b, exactly;
- ``relu``: ((s·a + b/s)² − (s·a − b/s)²)/4, each square a broken line; with knots h apart both lie
  above by at most h²/4, so the product is off by at most h²/16;
- ``gelu``: GELU(z) + GELU(−z) = z·erf(z/√2) = √(2/π)·(z² − z⁴/6 + z⁶/40 − …), at two scales, so that
  the terms in z⁴ cancel: what is left of a·b is s⁴R⁶/20 and less, R the greatest |a| + |b|.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from understudy.compiler.curves import MAX_SEGMENTS, BrokenLine, approximate, exponential
from understudy.compiler.forms import Vector
from understudy.compiler.gates import SNAP, Bend, Curved, Gate, Masked, Product, Snap, Step, Table

#: GELU(z) is z or 0 to the last bit from here on.
SATURATED = 40.0
#: The greatest |GELU(z) − relu(z)|, rounded up.
SOFTNESS = 0.17
#: Errors of tables that are let through rather than cut off by plateaus.
SLIGHT = 2.0**-36
#: Sharpness of units that only move or erase: whatever is not tiny passes them unchanged.
SHARP = {"float64": 2.0**400, "float32": 2.0**50}


@dataclass(frozen=True)
class Argument:
    """What is known of a form: the numbers that the network has there, and how wrong they may be."""

    low: float
    high: float
    error: float = 0.0

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
    #: What each argument is to be at the sink, so that what the sink holds is known exactly.
    at_sink: tuple[float, ...] = (0.0,)
    #: Greatest and least that may come out, whatever comes in; None: no limit.
    limits: tuple[float, float] | None = None
    #: Σ |out|·(greatest pre-activation): what rounding is in proportion to.
    weight: float = 0.0
    #: Whether noise in the argument is cut off.
    flat: bool = field(default=False)

    @property
    def size(self) -> int:
        """How many units."""
        return len(self.bias)


class UnitsError(ValueError):
    """A gate that these units cannot realise; the message says why."""


def realise(
    gate: Gate, kind: str, arguments: tuple[Argument, ...], tolerance: float, unit: float
) -> Hidden:
    """The units of a gate over the ranges of its arguments; ``unit``: the rounding of one operation."""
    match gate:
        case Product():
            return _PRODUCTS[kind](arguments[0], arguments[1], tolerance, unit)
        case Masked():
            return _masked(kind, arguments[0], arguments[1])
        case Curved():
            return _curved(gate, kind, arguments[0], tolerance)
        case Bend():
            return _bend(gate, kind, arguments[0], tolerance)
        case Step():
            return _step(gate, kind, arguments[0])
        case Table():
            return _table(gate, kind, arguments[0])
        case Snap():
            return _snap(kind, arguments[0], unit)


# Ridges -----------------------------------------------------------------------------------------


def _ridges(
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
    """c·relu(w·x + b) in each kind."""
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


def _power_of_two(at_least: float) -> float:
    return float(2.0 ** math.ceil(math.log2(at_least)))


def _along(line: BrokenLine) -> tuple[Vector, Vector, Vector, float]:
    """A broken line as ridges: (direction, knot, coefficient), and a constant.

    Anchored where it is flattest, so that coefficients on either side have few signs and do not cancel.
    """
    knots, values = line.knots, line.values
    slopes = np.diff(values) / np.diff(knots)
    level = np.concatenate([[0.0], slopes, [0.0]])  # constant outside
    inner = np.abs(level[1:-1])
    turn = np.flatnonzero(np.sign(slopes[1:]) * np.sign(slopes[:-1]) <= 0)
    flat_end = 0 if inner[0] <= inner[-1] else len(knots) - 1
    anchor = int(turn[0]) + 1 if len(turn) == 1 else flat_end
    bends = np.diff(level)
    right = bends[anchor:].copy()
    right[0] = level[anchor + 1]
    left = bends[: anchor + 1].copy()
    left[-1] = -level[anchor]
    direction = np.concatenate([np.ones(len(right)), -np.ones(len(left))])
    at = np.concatenate([knots[anchor:], knots[: anchor + 1]])
    coefficient = np.concatenate([right, left])
    some = coefficient != 0
    return direction[some], at[some], coefficient[some], float(values[anchor])


def _from_line(line: BrokenLine, kind: str, how: str, largest: float, sharpness: float = 1.0) -> Hidden:
    direction, at, coefficient, constant = _along(line)
    pre, bias = direction[:, None], -direction * at
    hidden = _ridges(kind, pre, bias, coefficient, constant, line.error, how, (largest,), sharpness)
    hidden.at_sink = (float(line.knots[0]),)
    hidden.limits = float(line.values.min()), float(line.values.max())
    return hidden


def _sharpened(line: BrokenLine, slack: float) -> tuple[float, float]:
    """A sharpness for gelu, and what it adds to the error: no more than ``slack``."""
    spacing = float(np.diff(line.knots).min())
    jump = float(
        np.abs(np.diff(np.concatenate([[0], np.diff(line.values) / np.diff(line.knots), [0]]))).max()
    )
    sharpness = _power_of_two(max(64 / spacing, 2 * SOFTNESS * jump / slack))
    # Beyond its two neighbours a knot is saturated.
    return sharpness, 2 * SOFTNESS * jump / sharpness


# Gates ------------------------------------------------------------------------------------------


def _curved(gate: Curved, kind: str, x: Argument, tolerance: float) -> Hidden:
    if gate.name == "square" and kind == "glu":
        hidden = _glu_product(x, x, tolerance, 0.0)
        for part in ("pre", "gate"):
            setattr(hidden, part, getattr(hidden, part).sum(axis=1, keepdims=True))
        hidden.at_sink = (0.0,)
        return hidden
    share = 0.75 if kind == "gelu" else 1.0
    if gate.relative:
        line = exponential(x.low, x.high, share * tolerance)
        slack = 0.25 * tolerance * math.exp(x.low) * 0.5
    else:
        line = approximate(gate.name, x.low, x.high, share * tolerance)
        slack = 0.25 * tolerance
    how = f"{len(line.knots) - 1} segments"
    if kind != "gelu":
        return _from_line(line, kind, how, x.largest)
    sharpness, more = _sharpened(line, slack)
    hidden = _from_line(line, kind, how, x.largest, sharpness)
    hidden.error += more if not gate.relative else 0.25 * tolerance
    return hidden


def _bend(gate: Bend, kind: str, x: Argument, tolerance: float) -> Hidden:
    rows = [(1.0, gate.after), (-1.0, -gate.before)]
    some = [(direction, out) for direction, out in rows if out]
    pre = np.array([[direction] for direction, _ in some]).reshape(-1, 1)
    out = np.array([out for _, out in some])
    sharpness, error = 1.0, 0.0
    if kind == "gelu":
        sharpness = max(_power_of_two(SOFTNESS * float(np.abs(out).sum()) * 64 / tolerance), 64.0)
        error = SOFTNESS * float(np.abs(out).sum()) / sharpness
    return _ridges(kind, pre, np.zeros(len(out)), out, 0.0, error, "a bend", (x.largest,), sharpness)


def _step(gate: Step, kind: str, x: Argument) -> Hidden:
    if x.error > gate.width / 8:
        raise UnitsError(
            f"numbers that are compared are off by up to {x.error:.2g}, too much for a separation of "
            f"{2 * gate.width:.2g}"
        )
    line = BrokenLine(np.array([0.25, 0.75]) * gate.width, np.array([0.0, 1.0]), 0.0)
    hidden = _from_line(line, kind, "a ramp", x.largest, _power_of_two(320 / gate.width))
    hidden.flat = True
    return hidden


def _table(gate: Table, kind: str, x: Argument) -> Hidden:
    keys, values = gate.keys, gate.values
    noise = x.error
    flat = noise * gate.steepest > SLIGHT
    if flat and noise > gate.gap / 5:
        raise UnitsError(
            f"a table with keys {gate.gap:.2g} apart is looked up with a number that may be off by "
            f"{noise:.2g}"
        )
    if len(keys) == 1 or bool((values == values[0]).all()):
        empty = np.zeros((0, 1))
        return _ridges(
            kind, empty, np.zeros(0), np.zeros(0), float(values[0]), 0.0, "a constant", (0.0,)
        )
    if flat:
        quarter = np.diff(keys) / 4
        at = np.stack([keys[:-1] + quarter, keys[1:] - quarter], axis=1).ravel()
        heights = np.repeat(values, 2)[1:-1]
        how = f"a staircase of {len(keys)} steps"
    else:
        at, heights = _steps(keys, values)
        how = f"a table of {len(keys)}"
    line = BrokenLine(at, heights, 0.0)
    nearest = float(np.diff(np.unique(np.concatenate([at, keys]))).min())
    sharpness = _power_of_two(64 / (min(nearest, gate.gap / 20) if flat else nearest))
    hidden = _from_line(line, kind, how, x.largest, sharpness)
    hidden.at_sink = (float(keys[0]),)
    hidden.flat = flat
    return hidden


def _steps(keys: Vector, values: Vector) -> tuple[Vector, Vector]:
    """Points through which a table's line goes: between two keys it rises over a power of two.

    So whole values of whole keys come out whole, without rounding, however far the keys are apart.
    """
    gaps = np.diff(keys)
    rise = 2.0 ** np.floor(np.log2(gaps))
    more = (np.diff(values) != 0) & (rise < gaps)
    at = np.concatenate([keys, (keys[1:] - rise)[more]])
    heights = np.concatenate([values, values[:-1][more]])
    order = np.argsort(at, kind="stable")
    return at[order], heights[order]


def _snap(kind: str, x: Argument, unit: float) -> Hidden:
    large, grid = SNAP["float64" if unit < 2.0**-40 else "float32"]
    if x.error > grid / 4 or x.largest > large / 4:
        raise UnitsError(
            f"a whole number is off by up to {x.error:.2g}, too much to be made whole again"
        )
    one = np.ones((1, 1))
    bias = np.array([large])
    hidden = Hidden(one, bias, np.ones(1), -large, 0.0, "made whole", flat=True)
    if kind == "glu":
        hidden.gate, hidden.gate_bias = np.zeros((1, 1)), np.ones(1)
    return hidden


def _masked(kind: str, mask: Argument, value: Argument) -> Hidden:
    """relu(x − B·(1 − c)) − relu(−x − B·(1 − c)), with B above all |x|."""
    if kind == "glu":
        return Hidden(
            np.array([[0.0, 1.0]]),
            np.zeros(1),
            np.ones(1),
            0.0,
            0.0,
            "a gate",
            np.array([[1.0, 0.0]]),
            np.zeros(1),
            at_sink=(0.0, 0.0),
            weight=value.largest * max(mask.largest, 1.0),
        )
    if not math.isfinite(value.largest):
        raise UnitsError("a choice between numbers without bounds")
    bound = _power_of_two(max(value.largest * 1.0625, 2.0**-20))
    sides = [s for s, there in ((1.0, value.high > 0), (-1.0, value.low < 0)) if there]
    if kind == "gelu" and len(sides) == 1:
        sides = [1.0, -1.0]  # GELU(z) − GELU(−z) is z even where z is small
    pre = np.array([[bound, side] for side in sides]).reshape(-1, 2)
    hidden = _ridges(
        kind,
        pre,
        np.full(len(sides), -bound),
        np.array(sides),
        0.0,
        0.0,
        "a gate",
        (1.0, value.largest),
        max(2.0**16 / bound, 64.0),
    )
    if kind == "gelu":
        hidden.how = "a gate"
    hidden.at_sink = (0.0, 0.0)
    hidden.weight = 4 * bound * len(sides)
    hidden.limits = -bound, bound
    return hidden


# Products ---------------------------------------------------------------------------------------


def _glu_product(a: Argument, b: Argument, tolerance: float, unit: float) -> Hidden:
    signs = [1.0] if a.low >= 0 else [-1.0] if a.high <= 0 else [1.0, -1.0]
    gate = np.array([[sign, 0.0] for sign in signs])
    pre = np.array([[0.0, 1.0] for _ in signs])
    return Hidden(
        pre,
        np.zeros(len(signs)),
        np.array(signs),
        0.0,
        0.0,
        "a product",
        gate,
        np.zeros(len(signs)),
        at_sink=(0.0, 0.0),
        weight=a.largest * b.largest if a.largest and b.largest else 0.0,
    )


def _relu_product(a: Argument, b: Argument, tolerance: float, unit: float) -> Hidden:
    scale = _balance(a, b)
    parts = []
    width = 4 * math.sqrt(tolerance * (1 - 1e-6))
    constant, error, segments = 0.0, 0.0, 0
    for sign in (1.0, -1.0):
        low = scale * a.low + min(sign * b.low / scale, sign * b.high / scale)
        high = scale * a.high + max(sign * b.low / scale, sign * b.high / scale)
        count = max(1, math.ceil((high - low) / width))
        if count > MAX_SEGMENTS:
            raise UnitsError(
                f"a product within {tolerance:.2g} takes more than {MAX_SEGMENTS:,} segments"
            )
        knots = np.linspace(low, high, count + 1) if high > low else np.array([low, low + 1e-6])
        direction, at, coefficient, level = _along(BrokenLine(knots, knots**2, 0.0))
        pre = direction[:, None] * np.array([[scale, sign / scale]])
        parts.append((pre, -direction * at, sign / 4 * coefficient))
        constant += sign / 4 * level
        error = max(error, float(np.diff(knots).max()) ** 2 / 16)
        segments += count
    hidden = _ridges(
        "relu",
        np.concatenate([p[0] for p in parts]),
        np.concatenate([p[1] for p in parts]),
        np.concatenate([p[2] for p in parts]),
        constant,
        error * (1 + 1e-9),
        f"a product by {segments} segments",
        (a.largest, b.largest),
    )
    hidden.at_sink = (a.low, b.low)
    largest = max(a.largest * scale + b.largest / scale, 1.0) ** 2 / 2
    hidden.limits = -largest, largest
    return hidden


def _balance(a: Argument, b: Argument) -> float:
    """A scale that makes the ranges of s·a and b/s equally wide."""
    # A factor that hardly varies is not blown up: its square would round too much.
    wide_a, wide_b = (max(x.high - x.low, x.largest / 16) for x in (a, b))
    if not (math.isfinite(wide_a) and math.isfinite(wide_b)):
        raise UnitsError("a product of numbers without bounds")
    if wide_a <= 0 or wide_b <= 0:
        return 1.0
    return float(2.0 ** round(math.log2(math.sqrt(wide_b / wide_a))))


def _gelu_product(a: Argument, b: Argument, tolerance: float, unit: float) -> Hidden:
    if not (math.isfinite(a.largest) and math.isfinite(b.largest)):
        raise UnitsError("a product of numbers without bounds")
    balance = 1.0
    if a.largest > 0 and b.largest > 0:
        balance = 2.0 ** round(math.log2(math.sqrt(b.largest / a.largest)))
    reach = max(a.largest * balance + b.largest / balance, 2.0**-30)
    root = math.sqrt(2 / math.pi)

    def cut(s: float) -> float:
        return s**4 * reach**6 / 20 + 68 / 3 / 336 / 2 * s**6 * reach**8

    def rounding(s: float) -> float:
        return 32 * unit * reach / (3 * root * s)

    # Terms alternate and fall as long as |z| ≤ 1 at the wider scale.
    scales = [2.0**-k / reach for k in range(2, 24)]
    scale = min(scales, key=lambda s: cut(s) + rounding(s))
    rows, outs = [], []
    for factor, share in ((1.0, 4 / 3), (2.0, -1 / 3)):
        s = factor * scale
        for sign in (1.0, -1.0):
            for direction in (1.0, -1.0):
                rows.append([direction * s * balance, direction * sign * s / balance])
                outs.append(share * sign / (4 * s * s * root))
    pre, out = np.array(rows), np.array(outs)
    hidden = Hidden(pre, np.zeros(8), out, 0.0, cut(scale) * (1 + 1e-9), "a product by 8 units")
    hidden.at_sink = (0.0, 0.0)
    hidden.weight = float((np.abs(out) * (np.abs(pre) @ np.array([a.largest, b.largest]))).sum())
    return hidden


_PRODUCTS = {"glu": _glu_product, "relu": _relu_product, "gelu": _gelu_product}


def erasing(kind: str, dtype: str) -> list[tuple[float, float]]:
    """(what a slot is multiplied by, and what the unit then writes): together they take it away."""
    if kind == "gelu":
        sharp = SHARP[dtype]
        return [(sharp, -1 / sharp), (-sharp, 1 / sharp)]
    return [(1.0, -1.0), (-1.0, 1.0)]
