"""Build MaxMin networks for 1-Lipschitz functions (remark on approximating Lipschitz functions).

A feed-forward network z ← W·MaxMin(z) + b with ‖W¹‖₂,∞ ≤ 1 and ‖Wˡ‖∞ ≤ 1 is 1-Lipschitz in the
Euclidean norm. Such networks are dense in the 1-Lipschitz functions on a compact set Z ⊂ ℝ^{n₀}. For a
function whose values at knots xᵢ ∈ ℝ^{n₀} are known, :func:`lipschitz_network` returns a network for

    maxᵢ min_u f(xᵢ) − |u · (x − xᵢ)|

over unit vectors u that depend on i. MaxMin of ±u · (x − xᵢ) returns −|u · (x − xᵢ)| as its minimum,
and trees of MaxMin compute the minima and maxima. The unit vectors of xᵢ are directions to other knots,
or a coordinate axis if there is only one knot. They are chosen such that the network equals f at all
knots, up to rounding. Since f and the network are both 1-Lipschitz, the error at x is at most twice the
distance from x to the nearest knot.

>>> import math
>>> network = lipschitz_network(math.sin, [-1.0, 0.0, 1.0])
>>> network.norms
[1.0, 1.0, 1.0, 1.0]
>>> [round(y, 6) for y in network([0.0, 1.0])]
[0.0, 0.841471]
>>> plane = lipschitz_network(lambda z: max(z), [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)])
>>> plane([(1.0, 0.0), (0.5, 0.0)])
[1.0, 0.5]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from locum.constructions.groupsort import maxmin
from locum.constructions.matmul import matmul
from locum.constructions.matrix import Matrix, constant_matrix
from locum.constructions.sums import add, broadcast_row
from locum.errors import GraphError
from locum.rasp.python import tokens

Weights = NDArray[np.float64]


@dataclass(frozen=True)
class MaxMinNetwork:
    """A feed-forward network of layers (W, b) with MaxMin between the layers and one output.

    In layer ℓ, W is an n_ℓ × n_(ℓ−1) matrix and b is a vector of n_ℓ entries.
    """

    layers: tuple[tuple[Weights, Weights], ...]

    def __post_init__(self) -> None:
        layers = tuple(
            (_array(w, "MaxMinNetwork: W"), _array(b, "MaxMinNetwork: b")) for w, b in self.layers
        )
        object.__setattr__(self, "layers", layers)
        for weights, bias in layers:
            if weights.ndim != 2 or bias.shape != weights.shape[:1]:
                raise GraphError(
                    "MaxMinNetwork: expected a matrix W and one entry of b for each row of W, got the "
                    f"shapes {weights.shape} and {bias.shape}"
                )
        for (before, _), (weights, _) in pairwise(layers):
            if len(before) % 2 or weights.shape[1] != len(before):
                raise GraphError(
                    "MaxMinNetwork: expected an even number of rows, and as many columns in the next "
                    f"layer, got {len(before)} rows and {weights.shape[1]} columns"
                )
        if not layers or len(layers[-1][0]) != 1:
            got = f"{len(layers[-1][0])} rows" if layers else "no layers"
            raise GraphError(f"MaxMinNetwork: expected a last layer of one row, got {got}")

    @property
    def inputs(self) -> int:
        """Number of coordinates of an input point, n₀."""
        return int(self.layers[0][0].shape[1])

    @property
    def norms(self) -> list[float]:
        """Largest row norm of each weight matrix: ‖W¹‖₂,∞ (Euclidean), then ‖Wˡ‖∞ (sums of absolute
        values).
        """
        first, *rest = (weights for weights, _ in self.layers)
        norms = [float(np.sqrt((first**2).sum(axis=1)).max())]
        return norms + [float(np.abs(weights).sum(axis=1).max()) for weights in rest]

    def __call__(self, points: ArrayLike) -> list[float]:
        """Evaluate the network with NumPy at several points, given as numbers (if n₀ is 1) or rows of
        n₀ numbers.
        """
        z = _array(points, "MaxMinNetwork: points")
        if self.inputs == 1 and z.ndim < 2:
            z = z.reshape(-1, 1)
        if z.ndim != 2 or z.shape[1] != self.inputs:
            raise GraphError(
                f"MaxMinNetwork: expected points as rows of {self.inputs} numbers, got the shape "
                f"{z.shape}"
            )
        for number, (weights, bias) in enumerate(self.layers):
            z = (_maxmin(z) if number else z) @ weights.T + bias
        values: list[float] = z[:, 0].tolist()
        return values

    def program(self, points: int) -> Matrix:
        """Return the network as a program that maps points × n₀ tokens to a points × 1 matrix."""
        z = Matrix(tokens, points, self.inputs)
        for number, (weights, bias) in enumerate(self.layers):
            z = maxmin(z) if number else z
            product = matmul(z, constant_matrix(weights.T), recipe="fetch")
            z = add(product, broadcast_row(constant_matrix(bias[None, :]), points))
        return z


def lipschitz_network(function: Callable[[Any], float], knots: ArrayLike) -> MaxMinNetwork:
    """Return a 1-Lipschitz network that equals a 1-Lipschitz ``function`` at the ``knots``.

    ``knots`` are numbers, or rows of n₀ numbers. ``function`` is called with a number, or with an array
    of n₀ numbers. Lipschitz constants refer to the Euclidean norm. The values at the knots are equal up
    to rounding. If the values at two knots contradict the Lipschitz constant 1, an error is raised.
    """
    x = _array(knots, "lipschitz_network: knots")
    if x.ndim not in (1, 2) or not x.size or not np.isfinite(x).all():
        raise GraphError(
            "lipschitz_network: expected one or more finite knots, numbers or rows of numbers, got "
            f"{knots!r:.60}"
        )
    x = np.unique(x, axis=0)
    values = np.array([_value(function, knot if x.ndim == 2 else knot.item()) for knot in x])
    x = x.reshape(len(x), -1)
    slack = 8 * np.finfo(float).eps * (np.abs(values).max() + np.abs(x).max())
    units = [_directions(x, values, knot, slack) for knot in range(len(x))]
    most = max(map(len, units))
    units = [[*own, *own[-1:] * (most - len(own))] for own in units]
    rows = np.array([(unit, -unit) for own in units for unit in own]).reshape(-1, x.shape[1])
    layers = [(rows, -(rows * np.repeat(x, 2 * most, axis=0)).sum(axis=1))]
    # The candidates of each knot: a column of the output of MaxMin, and a number that is added to it.
    # The second entry of each pair is −|u · (x − xᵢ)|.
    groups = [
        [(2 * (knot * most + unit) + 1, float(values[knot])) for unit in range(most)]
        for knot in range(len(x))
    ]
    second = 1
    while True:
        if len(groups[0]) == 1 and len(groups) > 1:  # The minima are complete; compute their maximum.
            groups, second = [[only for (only,) in groups]], 0
        groups = [[*group, *group[-1:] * (len(group) % 2)] if group[1:] else group for group in groups]
        chosen = [candidate for group in groups for candidate in group]
        weights = np.zeros((len(chosen), len(layers[-1][0])))
        weights[range(len(chosen)), [column for column, _ in chosen]] = 1.0
        layers.append((weights, np.array([added for _, added in chosen])))
        if len(chosen) == 1:
            return MaxMinNetwork(tuple(layers))
        size = len(groups[0])
        groups = [
            [(number * size + 2 * pair + second, 0.0) for pair in range(size // 2)]
            for number in range(len(groups))
        ]


def _directions(x: Weights, values: Weights, knot: int, slack: float) -> list[Weights]:
    """Return unit vectors u of knot i such that min_u f(xᵢ) − |u · (xⱼ − xᵢ)| is at most f(xⱼ) for all
    j, up to rounding.
    """
    away = x - x[knot]
    distances = np.sqrt((away**2).sum(axis=1))
    excess = values[knot] - values
    steep = np.abs(excess) > distances * (1 + 1e-12) + slack
    if steep.any():
        other = int(np.argmax(steep))
        raise GraphError(
            "lipschitz_network: expected a 1-Lipschitz function, got one that is steeper between "
            f"{_written(x[knot])} and {_written(x[other])}"
        )
    units: list[Weights] = []
    wanted = np.clip(excess, 0, distances) * (1 - 1e-14)  # the remainder is rounding
    for other in np.argsort(distances, kind="stable")[1:].tolist():
        reached = max((abs(float(unit @ away[other])) for unit in units), default=-1.0)
        if reached < wanted[other]:
            units.append(_unit(away[other]))
    return units or [np.eye(x.shape[1])[0]]


def _unit(vector: Weights) -> Weights:
    """Normalise a vector, with a positive first non-zero entry and a Euclidean length of at most 1."""
    unit = vector / np.abs(vector).max()
    unit = unit / np.sqrt((unit**2).sum()) * np.sign(unit[np.flatnonzero(unit)[0]])
    while sum(Fraction(entry) ** 2 for entry in unit.tolist()) > 1:
        unit = np.nextafter(unit, 0.0)
    return np.asarray(unit)


def _value(function: Callable[[Any], float], knot: Any) -> float:
    given = function(knot)
    value = _array(given, f"lipschitz_network: the value at {_written(knot)}")
    if value.size != 1 or not np.isfinite(value).all():
        raise GraphError(
            f"lipschitz_network: expected a finite value at {_written(knot)}, got {given!r:.60}"
        )
    return float(value.item())


def _array(values: Any, what: str) -> Weights:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise GraphError(f"{what}: expected an array of numbers, got {values!r:.60}") from None


def _written(knot: Any) -> str:
    entries = np.ravel(knot).tolist()
    return str(entries[0]) if len(entries) == 1 else str(tuple(entries))


def _maxmin(z: NDArray[Any]) -> NDArray[Any]:
    pairs = z.reshape(len(z), z.shape[1] // 2, 2)
    return np.sort(pairs, axis=2)[:, :, ::-1].reshape(z.shape)
