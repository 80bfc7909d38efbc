"""Compute gates, including products of two numbers, by hidden units within a tolerance.

The inputs are a gate, the type of hidden units, and facts about the arguments of the gate. The output
is the hidden units and a bound on their error. An error of an argument is propagated
(``bounds/gate_bounds.py``), or removed if the gate is constant around every possible value of the
argument.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from locum.networks.compiler.network.forms import (
    SNAP,
    Bend,
    Curved,
    Gate,
    Masked,
    Product,
    Ramp,
    Snap,
    Table,
    Vector,
)
from locum.networks.compiler.units.curves import (
    MAX_SEGMENTS,
    PiecewiseLinear,
    UnitsError,
    approximate,
    exponential,
)
from locum.networks.compiler.units.hidden import (
    SOFTNESS,
    Argument,
    Hidden,
    along,
    from_line,
    power_of_two,
    ridges,
    sharpened,
)
from locum.text import at_most


def masked(kind: str, mask: Argument, value: Argument) -> Hidden:
    """Return units that compute x if the mask c is 1, and 0 if c is 0.

    ReLU units compute relu(x − B·(1 − c)) − relu(−x − B·(1 − c)), where B exceeds all |x|. If x has
    only one sign, one of these terms is omitted. GELU units compute both terms with GELU. A gated unit
    computes relu(c)·x.
    """
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
            weight=value.largest * max(mask.largest, 1.0),
        )
    if not math.isfinite(value.largest):
        raise UnitsError("expected a choice between bounded numbers, got unbounded numbers")
    bound = power_of_two(max(value.largest * 1.0625, 2.0**-20))
    sides = [s for s, there in ((1.0, value.high > 0), (-1.0, value.low < 0)) if there]
    if kind == "gelu" and len(sides) == 1:
        sides = [1.0, -1.0]  # GELU(z) − GELU(−z) is also exactly z for small z
    pre = np.array([[bound, side] for side in sides]).reshape(-1, 2)
    hidden = ridges(
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
    hidden.weight = 4 * bound * len(sides)
    hidden.limits = -bound, bound
    return hidden


def glu_product(a: Argument, b: Argument, tolerance: float, unit: float) -> Hidden:
    """Return units that multiply two numbers, with one gated unit for each possible sign of the first.

    The product is exact up to rounding.
    """
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
                f"approximating a product with an error of {tolerance:.2g} requires more than "
                f"{MAX_SEGMENTS:,} segments",
                count,
            )
        knots = np.linspace(low, high, count + 1) if high > low else np.array([low, low + 1e-6])
        direction, at, coefficient, level = along(PiecewiseLinear(knots, knots**2, 0.0))
        pre = direction[:, None] * np.array([[scale, sign / scale]])
        parts.append((pre, -direction * at, sign / 4 * coefficient))
        constant += sign / 4 * level
        error = max(error, float(np.diff(knots).max()) ** 2 / 16)
        segments += count
    hidden = ridges(
        "relu",
        np.concatenate([p[0] for p in parts]),
        np.concatenate([p[1] for p in parts]),
        np.concatenate([p[2] for p in parts]),
        constant,
        error * (1 + 1e-9),
        f"a product by {segments} segments",
        (a.largest, b.largest),
    )
    largest = max(a.largest * scale + b.largest / scale, 1.0)
    hidden.limits = -largest * largest / 2, largest * largest / 2
    return hidden


def _balance(a: Argument, b: Argument) -> float:
    """Return a scale s for which the ranges of s·a and b/s are about equally wide."""
    # A factor with a narrow range is not scaled up much, since its square would have a large rounding
    # error.
    wide_a, wide_b = (max(x.high - x.low, x.largest / 16) for x in (a, b))
    if not (math.isfinite(wide_a) and math.isfinite(wide_b)):
        raise UnitsError("expected a product of bounded numbers, got unbounded numbers")
    if wide_a <= 0 or wide_b <= 0:
        return 1.0
    return float(2.0 ** round(math.log2(math.sqrt(wide_b / wide_a))))


def _gelu_product(a: Argument, b: Argument, tolerance: float, unit: float) -> Hidden:
    if not (math.isfinite(a.largest) and math.isfinite(b.largest)):
        raise UnitsError("expected a product of bounded numbers, got unbounded numbers")
    balance = 1.0
    if a.largest > 0 and b.largest > 0:
        balance = 2.0 ** round(math.log2(math.sqrt(b.largest / a.largest)))
    reach = max(a.largest * balance + b.largest / balance, 2.0**-30)
    root = math.sqrt(2 / math.pi)

    def cut(s: float) -> float:
        z = s * reach
        return (z**4 / 20 + 68 / 3 / 336 / 2 * z**6) * (reach * reach)  # ** raises for large numbers

    def rounding(s: float) -> float:
        return 32 * unit * reach / (3 * root * s)

    # The terms of the series alternate in sign and decrease if |z| ≤ 1 at the larger of the two scales.
    scales = [2.0**-k / reach for k in range(2, 24)]
    scale = min(scales, key=lambda s: cut(s) + rounding(s))
    if not math.isfinite(cut(scale)):
        raise UnitsError(
            "expected factors whose squares are within the range of floats, got larger ones"
        )
    rows, outs = [], []
    for factor, share in ((1.0, 4 / 3), (2.0, -1 / 3)):
        s = factor * scale
        for sign in (1.0, -1.0):
            for direction in (1.0, -1.0):
                rows.append([direction * s * balance, direction * sign * s / balance])
                outs.append(share * sign / (4 * s * s * root))
    pre, out = np.array(rows), np.array(outs)
    hidden = Hidden(pre, np.zeros(8), out, 0.0, cut(scale) * (1 + 1e-9), "a product by 8 units")
    hidden.weight = float((np.abs(out) * (np.abs(pre) @ np.array([a.largest, b.largest]))).sum())
    return hidden


#: For each type of hidden units, the function that returns the units of a product. Its arguments are
#: the two factors, the tolerance and the rounding error of one operation.
PRODUCTS = {"glu": glu_product, "relu": _relu_product, "gelu": _gelu_product}


#: A threshold between the relative rounding errors of float64 and float32.
_DOUBLE = 2.0**-40
#: Maximum error of a table's result that is propagated. Larger errors are removed by plateaus.
SLIGHT = 2.0**-36


def realise(
    gate: Gate, kind: str, arguments: tuple[Argument, ...], tolerance: float, unit: float
) -> Hidden:
    """Return the hidden units of a gate on the ranges of its arguments.

    ``unit`` is the relative rounding error of one operation.
    """
    match gate:
        case Product():
            return PRODUCTS[kind](arguments[0], arguments[1], tolerance, unit)
        case Masked():
            return masked(kind, arguments[0], arguments[1])
        case Curved():
            return _curved(gate, kind, arguments[0], tolerance)
        case Bend():
            return _bend(gate, kind, arguments[0], tolerance)
        case Ramp():
            return _ramp(gate, kind, arguments[0])
        case Table():
            return _table(gate, kind, arguments[0], unit)
        case Snap():
            return _snap(gate, kind, arguments[0], unit)


def depends_on_tolerance(gate: Gate, kind: str) -> bool:
    """Return whether the hidden units of a gate may depend on the tolerance."""
    return isinstance(gate, Product | Curved) or (isinstance(gate, Bend) and kind == "gelu")


def _curved(gate: Curved, kind: str, x: Argument, tolerance: float) -> Hidden:
    if gate.name == "square" and kind == "glu":
        hidden = glu_product(x, x, tolerance, 0.0)
        assert hidden.gate is not None
        pre, opened = (side.sum(axis=1, keepdims=True) for side in (hidden.pre, hidden.gate))
        return replace(hidden, pre=pre, gate=opened)
    share = 0.75 if kind == "gelu" else 1.0
    if gate.relative:
        line = exponential(x.low, x.high, share * tolerance)
        slack = 0.25 * tolerance * math.exp(x.low) * 0.5
    else:
        line = approximate(gate.name, x.low, x.high, share * tolerance)
        slack = 0.25 * tolerance
    how = f"{len(line.knots) - 1} segments"
    if kind != "gelu":
        return from_line(line, kind, how, x)
    sharpness, more = sharpened(line, slack)
    hidden = from_line(line, kind, how, x, sharpness)
    hidden.error += more if not gate.relative else 0.25 * tolerance
    return hidden


def _bend(gate: Bend, kind: str, x: Argument, tolerance: float) -> Hidden:
    rows = [(1.0, gate.after), (-1.0, -gate.before)]
    some = [(direction, out) for direction, out in rows if out]
    pre = np.array([[direction] for direction, _ in some]).reshape(-1, 1)
    out = np.array([out for _, out in some])
    sharpness, error = 1.0, 0.0
    if kind == "gelu":
        sharpness = max(power_of_two(SOFTNESS * float(np.abs(out).sum()) * 64 / tolerance), 64.0)
        error = SOFTNESS * float(np.abs(out).sum()) / sharpness
    return ridges(kind, pre, np.zeros(len(out)), out, 0.0, error, "a bend", (x.largest,), sharpness)


def _ramp(gate: Ramp, kind: str, x: Argument) -> Hidden:
    if x.error > gate.width / 8:
        raise UnitsError(
            f"expected compared numbers with an error of at most {gate.width / 8:.2g} for a separation "
            "of "
            f"{2 * gate.width:.2g}, got an error of up to {at_most(x.error, '.2g')}"
        )
    line = PiecewiseLinear(np.array([0.25, 0.75]) * gate.width, np.array([0.0, 1.0]), 0.0)
    hidden = from_line(line, kind, "a ramp", x, power_of_two(320 / gate.width))
    hidden.flat = True
    return hidden


def _table(gate: Table, kind: str, x: Argument, unit: float) -> Hidden:
    keys, values = gate.keys, gate.values
    noise = x.error
    changes = np.flatnonzero(np.diff(values))
    flat = noise * gate.steepest > SLIGHT
    if flat and noise > gate.gap / 5:
        raise UnitsError(
            f"expected a number with an error below {gate.gap / 5:.2g} to look up in a table, got one "
            f"whose error may be {noise:.2g}"
        )
    if not changes.size:
        empty = np.zeros((0, 1))
        return ridges(
            kind, empty, np.zeros(0), np.zeros(0), float(values[0]), 0.0, "a constant", (0.0,)
        )
    if flat:
        below, above = keys[changes], keys[changes + 1]
        inset = (above - below) / 4
        if x.grid:  # knots on the grid, and slopes that are multiples of one power of two
            middle = np.round((below + above) / 2 / x.grid) * x.grid
            rise = max(2.0 ** math.floor(math.log2(gate.gap / 8)), x.grid)
            below, above, inset = middle - rise, middle + rise, np.zeros_like(middle)
        at = np.stack([below + inset, above - inset], axis=1).ravel()
        heights = np.stack([values[changes], values[changes + 1]], axis=1).ravel()
        how = f"a staircase of {len(keys)} steps"
    else:
        at, heights = _steps(keys, values, alike=noise == 0 and unit > _DOUBLE)
        how = f"a table of {len(keys)}"
    line = PiecewiseLinear(at, heights, 0.0)
    nearest = float(np.diff(np.unique(np.concatenate([at, keys]))).min())
    sharpness = power_of_two(64 / (min(nearest, gate.gap / 20) if flat else nearest))
    # The argument is a sum of parts, and is one of the keys for all possible parts.
    at_keys = replace(x, low=max(x.low, keys[0] - noise), high=min(x.high, keys[-1] + noise))
    hidden = from_line(line, kind, how, at_keys, sharpness, steps=flat)
    hidden.flat = flat
    # The units add differences of values. Floats round a difference such as 2⁶³ − 1.
    differences = np.diff(values)
    lost = np.abs(values[:-1] + differences - values[1:]) + np.abs(
        values[1:] - differences - values[:-1]
    )
    hidden.error += float(lost.sum())
    return hidden


def _steps(keys: Vector, values: Vector, *, alike: bool) -> tuple[Vector, Vector]:
    """Return the knots and heights of the line through the points of a table.

    Between two keys with different values, the line rises over a distance that is a power of two.
    Tables of small integers with integer keys are then computed without rounding, even if keys are far
    apart. With ``alike``, all rises have the same width. Larger sums are then exact, but steeper slopes
    amplify errors of the argument.
    """
    gaps = np.diff(keys)
    rise = 2.0 ** np.floor(np.log2(np.full_like(gaps, gaps.min()) if alike else gaps))
    starts = keys[1:] - rise
    # If a rise is about as wide as the gap, its start may be rounded to the previous key.
    more = (np.diff(values) != 0) & (starts > keys[:-1])
    at = np.concatenate([keys, starts[more]])
    heights = np.concatenate([values, values[:-1][more]])
    order = np.argsort(at, kind="stable")
    return at[order], heights[order]


def _snap(gate: Snap, kind: str, x: Argument, unit: float) -> Hidden:
    large, grid = SNAP["float64" if unit < _DOUBLE else "float32"]
    if (gate.whole and x.error > grid / 4) or x.largest > large / 4:
        raise UnitsError(
            f"expected an integer with an error below {grid / 4:.2g} to round, got one whose error may "
            f"be {at_most(x.error, '.2g')}"
        )
    one = np.ones((1, 1))
    bias = np.array([large])
    weight = large + x.largest
    hidden = Hidden(one, bias, np.ones(1), -large, 0.0, "rounded", weight=weight, flat=True)
    hidden.open_at_sink = True  # otherwise, adding −C would round away defaults such as 0.1
    if kind == "glu":
        hidden.gate, hidden.gate_bias = np.zeros((1, 1)), np.ones(1)
    return hidden
