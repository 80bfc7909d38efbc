"""Products of two numbers, of which one may be a boolean: here the kinds of units differ.

- ``glu``: relu(a)·b − relu(−a)·b = a·b, exactly;
- ``relu``: ((s·a + b/s)² − (s·a − b/s)²)/4, each square piecewise linear; with knots h apart both lie
  above by at most h²/4, so the product is off by at most h²/16;
- ``gelu``: GELU(z) + GELU(−z) = z·erf(z/√2) = √(2/π)·(z² − z⁴/6 + z⁶/40 − …), at two scales, so that
  the terms in z⁴ cancel: what is left of a·b is s⁴R⁶/20 and less, R the greatest |a| + |b|.

A product with 0 or 1 needs no more than a gate that is open or closed, in each kind.
"""

from __future__ import annotations

import math

import numpy as np

from locum.compiler.units.curves import MAX_SEGMENTS, PiecewiseLinear, UnitsError
from locum.compiler.units.hidden import Argument, Hidden, along, power_of_two, ridges


def masked(kind: str, mask: Argument, value: Argument) -> Hidden:
    """Return relu(x − B·(1 − c)) − relu(−x − B·(1 − c)), with B above all |x|."""
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
        raise UnitsError("a choice between numbers without bounds")
    bound = power_of_two(max(value.largest * 1.0625, 2.0**-20))
    sides = [s for s, there in ((1.0, value.high > 0), (-1.0, value.low < 0)) if there]
    if kind == "gelu" and len(sides) == 1:
        sides = [1.0, -1.0]  # GELU(z) − GELU(−z) is z even where z is small
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
    """Multiply by one glu unit for each sign that a may have; exact but for rounding."""
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
                f"a product within {tolerance:.2g} takes more than {MAX_SEGMENTS:,} segments", count
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
    largest = max(a.largest * scale + b.largest / scale, 1.0) ** 2 / 2
    hidden.limits = -largest, largest
    return hidden


def _balance(a: Argument, b: Argument) -> float:
    """Return a scale s that makes the ranges of s·a and b/s equally wide."""
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
    hidden.weight = float((np.abs(out) * (np.abs(pre) @ np.array([a.largest, b.largest]))).sum())
    return hidden


#: For each kind: (a, b, tolerance, rounding of one operation) → units.
PRODUCTS = {"glu": glu_product, "relu": _relu_product, "gelu": _gelu_product}
