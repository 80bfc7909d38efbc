"""MaxMin networks for 1-Lipschitz functions (remark on approximating Lipschitz functions).

A feed-forward network z ← W·MaxMin(z) + b whose weights obey ‖W¹‖₂,∞ ≤ 1 and ‖Wˡ‖∞ ≤ 1 is
1-Lipschitz, whatever its numbers; such networks are dense in the 1-Lipschitz functions. For a function
on an interval, known at knots xᵢ, the network here computes maxᵢ f(xᵢ) − |x − xᵢ|: MaxMin of
(x − xᵢ, xᵢ − x) gives −|x − xᵢ|, and a tree of MaxMin the maximum. Its error is at most the distance
of the knots.

>>> import math
>>> network = lipschitz_network(math.sin, [-1.0, 0.0, 1.0])
>>> network.norms
[1.0, 1.0, 1.0, 1.0]
>>> [round(y, 6) for y in network([0.0, 1.0])]
[0.0, 0.841471]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.constructions.groupsort import maxmin
from locum.constructions.matmul import matmul
from locum.constructions.matrix import Matrix, constant_matrix
from locum.constructions.sums import add, broadcast_row
from locum.errors import GraphError
from locum.language.python import tokens

Weights = NDArray[np.float64]


@dataclass(frozen=True)
class MaxMinNetwork:
    """Layers (W, b); MaxMin stands between them."""

    layers: tuple[tuple[Weights, Weights], ...]

    @property
    def norms(self) -> list[float]:
        """‖W¹‖₂,∞ and ‖Wˡ‖∞: the largest row norms (Euclidean in the first layer, absolute after)."""
        first, *rest = (weights for weights, _ in self.layers)
        norms = [float(np.sqrt((first**2).sum(axis=1)).max())]
        return norms + [float(np.abs(weights).sum(axis=1).max()) for weights in rest]

    def __call__(self, points: Sequence[float]) -> list[float]:
        """Compute the network directly, in NumPy."""
        z = np.atleast_1d(np.asarray(points, dtype=float))[:, None]
        for number, (weights, bias) in enumerate(self.layers):
            z = (_maxmin(z) if number else z) @ weights.T + bias
        values: list[float] = z[:, 0].tolist()
        return values

    def program(self, points: int) -> Matrix:
        """Return the network as a program on ``points`` tokens, one number each: a points×1 matrix."""
        z = Matrix(tokens, points, 1)
        for number, (weights, bias) in enumerate(self.layers):
            z = maxmin(z) if number else z
            product = matmul(z, constant_matrix(weights.T), recipe="fetch")
            z = add(product, broadcast_row(constant_matrix(bias[None, :]), points))
        return z


def lipschitz_network(function: Callable[[float], float], knots: Sequence[float]) -> MaxMinNetwork:
    """Return maxᵢ f(xᵢ) − |x − xᵢ|: equal to a 1-Lipschitz f at the knots, below it elsewhere."""
    x = np.array(sorted({float(knot) for knot in knots}))
    if len(x) < 1 or not np.isfinite(x).all():
        raise GraphError(f"lipschitz_network: expected one or more finite knots, got {knots!r:.60}")
    values = np.array([float(function(float(knot))) for knot in x])
    if not np.isfinite(values).all():
        raise GraphError("the function has no finite value at some knot")
    slack = 8 * np.finfo(float).eps * (np.abs(values).max() + np.abs(x).max())
    steep = np.abs(np.diff(values)) > np.diff(x) * (1 + 1e-12) + slack
    if steep.any():
        at = int(np.argmax(steep))
        raise GraphError(
            f"the function is not 1-Lipschitz: it is steeper between {x[at]} and {x[at + 1]}"
        )
    count = len(x)
    first = np.tile([[1.0], [-1.0]], (count, 1))
    layers = [(first, np.ravel([(-knot, knot) for knot in x]))]
    # The second of each pair is −|x − xᵢ|.
    width = count + count % 2
    weights, bias = np.zeros((width, 2 * count)), np.zeros(width)
    for row in range(width):
        knot = min(row, count - 1)  # an odd one out stands twice
        weights[row, 2 * knot + 1], bias[row] = 1.0, values[knot]
    layers.append((weights, bias))
    while width > 1:  # a tree of MaxMin; the first of each pair goes on
        winners = width // 2
        padded = winners + (winners % 2 if winners > 1 else 0)
        weights = np.zeros((padded, width))
        for row in range(padded):
            weights[row, 2 * min(row, winners - 1)] = 1.0
        layers.append((weights, np.zeros(padded)))
        width = padded
    return MaxMinNetwork(tuple(layers))


def _maxmin(z: NDArray[Any]) -> NDArray[Any]:
    pairs = z.reshape(len(z), z.shape[1] // 2, 2)
    return np.sort(pairs, axis=2)[:, :, ::-1].reshape(z.shape)
