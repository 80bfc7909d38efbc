"""Random T's for the tests of simulators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.simulators import Attention, MultiHeadAttention, Order, UniversalSimulator

Numbers = NDArray[np.float64]


def simulator(n: int, d: int, d_v: int, **options: Any) -> UniversalSimulator:
    """U of an order, whose fields and whose recipe, stable and base come together."""
    style = {name: options.pop(name) for name in ("recipe", "stable", "base") if name in options}
    return UniversalSimulator(Order.of(n, d, d_v, **options), **style)


class Chance:
    """Normal matrices from one seed."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def __call__(self, *shape: int) -> Numbers:
        return self.generator.normal(size=shape)

    def attention(self, d: int, d_v: int, **options: Any) -> Attention:
        return Attention(self(d, d), self(d, d_v), **options)

    def projected(self, d: int, d_v: int, biases: bool = True, **options: Any) -> Attention:
        inputs = [self(d_v), self(d_v), self(d_v)] if biases else None
        weights = (self(d, d_v), self(d, d_v), self(d, d_v))
        return Attention.from_projections(*weights, scale=d_v**-0.5, biases=inputs, **options)

    def heads(
        self, d: int, d_v: int, heads: int, biases: bool = True, **options: Any
    ) -> MultiHeadAttention:
        """As real models have it: W_O behind the heads, back to d columns."""
        each = [self.projected(d, d_v, biases, **options) for _ in range(heads)]
        return MultiHeadAttention(each, self(heads * d_v, d), self(d) if biases else None)

    def norm(self, d: int) -> tuple[Numbers, Numbers]:
        return self(d), self(d)


def distance(a: Any, b: Any) -> float:
    """The greatest difference of two arrays of one shape."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape, (a.shape, b.shape)
    return float(np.abs(a - b).max())
