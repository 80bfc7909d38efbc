"""Build activation functions of matrices, elementwise or by MaxMin (Listing 4, Lipschitz remark).

MaxMin sorts a pair of numbers. ReLU is max(x, 0), leaky ReLU is max(x, a·x), and |x| is max(x, −x).
With ``through="maxmin"``, these three functions are built from MaxMin. All other activations are
elementwise functions, which the feed-forward computes. The values at positions outside the matrix are
not specified.

>>> from locum import tokens
>>> relu(Matrix(tokens, 1, 3)).run([1.5, -2, 0]).tolist()
[[1.5, 0.0, 0.0]]
>>> relu(Matrix(tokens, 1, 3), through="maxmin").run([1.5, -2, 0]).tolist()
[[1.5, 0.0, 0.0]]
"""

from __future__ import annotations

import math
from collections.abc import Callable

from locum.constructions.groupsort import first_of_pairs, interleaved, maxmin
from locum.constructions.matrix import Matrix
from locum.errors import GraphError
from locum.rasp import python
from locum.rasp.handles import SOp
from locum.rasp.python import constant, erf, exp, maximum, where


def relu(m: Matrix, through: str = "feed-forward") -> Matrix:
    """Return max(x, 0) for each entry x of ``m``."""
    return _greater(m, lambda x: constant(0), through)


def leaky_relu(m: Matrix, slope: float = 0.01, through: str = "feed-forward") -> Matrix:
    """Return max(x, slope·x) for each entry x of ``m``, with 0 ≤ slope ≤ 1."""
    if not 0 <= slope <= 1:
        raise GraphError(f"slope of a leaky ReLU: expected a number from 0 to 1, got {slope!r}")
    return _greater(m, lambda x: slope * x, through)


def absolute(m: Matrix, through: str = "feed-forward") -> Matrix:
    """Return |x| = max(x, −x) for each entry x of ``m``."""
    return _greater(m, lambda x: -x, through)


def _greater(m: Matrix, other: Callable[[SOp], SOp], through: str) -> Matrix:
    if through == "feed-forward":
        return m.map(maximum(m.sop, other(m.sop)))
    if through != "maxmin":
        raise GraphError(
            f"activation: expected through='feed-forward' or through='maxmin', got {through!r}"
        )
    compact = m.compact()
    pairs = maxmin(interleaved(compact, other(compact.sop)))
    return first_of_pairs(pairs, m.rows, m.columns)


def gelu(m: Matrix) -> Matrix:
    """Return the exact GELU of each entry x of ``m``: x · Φ(x) = ½x(1 + erf(x/√2))."""
    x = m.inside_or(0)
    return m.map(0.5 * x * (1 + erf(x / math.sqrt(2))))


def gelu_tanh(m: Matrix) -> Matrix:
    """Return the tanh approximation of GELU for each entry x of ``m``: ½x(1 + tanh(√(2/π)(x +
    0.044715x³))).
    """
    x = m.inside_or(0)
    return m.map(0.5 * x * (1 + python.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x)))))


def quick_gelu(m: Matrix) -> Matrix:
    """Return x · sigmoid(1.702 x), an approximation of GELU, for each entry x of ``m``."""
    x = m.inside_or(0)
    return m.map(x * _sigmoid(1.702 * x))


def sigmoid(m: Matrix) -> Matrix:
    """Return 1 / (1 + e⁻ˣ) for each entry x of ``m``, computed without overflow."""
    return m.map(_sigmoid(m.inside_or(0)))


def silu(m: Matrix) -> Matrix:
    """Return x · sigmoid(x) for each entry x of ``m``."""
    x = m.inside_or(0)
    return m.map(x * _sigmoid(x))


def tanh(m: Matrix) -> Matrix:
    """Return the hyperbolic tangent of each entry of ``m``."""
    return m.map(python.tanh(m.inside_or(0)))


def elu_plus_one(m: Matrix) -> Matrix:
    """Return elu(x) + 1 for each entry x of ``m``: x + 1 if x > 0, otherwise eˣ.

    This is the feature map of linear attention.
    """
    x = m.inside_or(0)
    return m.map(where(x > 0, x + 1, exp(python.minimum(x, 0))))


def _sigmoid(x: SOp) -> SOp:
    small = exp(-abs(x))  # never greater than 1
    return where(x >= 0, 1, small) / (1 + small)


#: The activations of feed-forward layers by name. ``execution/array_activations.py`` defines the same
#: functions for arrays.
ACTIVATIONS: dict[str, Callable[[Matrix], Matrix]] = {
    function.__name__: function
    for function in (relu, gelu, gelu_tanh, quick_gelu, silu, tanh, sigmoid, leaky_relu)
}
