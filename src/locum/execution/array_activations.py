"""Define the activation functions of feed-forward layers on NumPy arrays and torch tensors, by name.

The corresponding programs are in ``constructions/activations.py``.

>>> import numpy as np
>>> ACTIVATIONS["relu"](np.array([-1.0, 2.0])).tolist()
[0.0, 2.0]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from locum.execution.arrays import Array, erf, namespace


def relu(x: Array) -> Array:
    """Return max(x, 0)."""
    return x.clip(min=0)


def leaky_relu(x: Array, slope: float = 0.01) -> Array:
    """Return x where x > 0, and slope · x elsewhere."""
    return namespace(x).where(x > 0, x, slope * x)


def gelu(x: Array) -> Array:
    """Return x · Φ(x), exactly: ½x(1 + erf(x/√2))."""
    return x * (1 + erf(x / math.sqrt(2))) / 2


def gelu_tanh(x: Array) -> Array:
    """Return GELU approximated by tanh: ½x(1 + tanh(√(2/π)(x + 0.044715x³)))."""
    return x * (1 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x)))) / 2


def quick_gelu(x: Array) -> Array:
    """Return x · sigmoid(1.702 x)."""
    return x * sigmoid(1.702 * x)


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + e⁻ˣ), without overflow."""
    xp = namespace(x)
    small = xp.exp(-abs(x))  # never greater than 1
    return xp.where(x >= 0, xp.ones_like(x), small) / (1 + small)


def silu(x: Array) -> Array:
    """Return x · sigmoid(x)."""
    return x * sigmoid(x)


def tanh(x: Array) -> Array:
    """Return the hyperbolic tangent of x."""
    return namespace(x).tanh(x)


#: All activation functions by name.
ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    function.__name__: function
    for function in (relu, gelu, gelu_tanh, quick_gelu, silu, tanh, sigmoid, leaky_relu)
}
