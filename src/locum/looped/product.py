"""Multiply AᵀB by two layers, through a softmax that is nearly linear (a reconstruction).

Positions are the columns of A, those of B, and one empty position that takes nearly all attention: the
weight of column i of A for column j of B is then e^(−C)·(1 + δ·aᵢ·bⱼ + …), linear in the product. With
one head the constant 1/δ is subtracted by a bias and the error is δ·M²/2 (M: the largest |aᵢ·bⱼ|), so
that half of the digits are lost whatever δ is. With two heads of ±δ even terms cancel: δ²·M³/6.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from locum.errors import InputError
from locum.looped.block import (
    Floats,
    Head,
    LoopedBlock,
    Slots,
    Units,
    layer,
    real_matrix,
)
from locum.settings import require_integer, require_number


class Product(LoopedBlock):
    """The block that computes AᵀB for A of k × r and B of k × c."""

    def __init__(
        self,
        k: int,
        r: int,
        c: int,
        *,
        heads: int = 1,
        delta: float | None = None,
        largest: float = 1e3,
    ) -> None:
        """Take ``heads``: 1 as published, or 2; ``delta``: δ; ``largest``: bound of |aᵢ·bⱼ|."""
        k, r, c = require_integer(k, "k"), require_integer(r, "r"), require_integer(c, "c")
        if require_integer(heads, "heads") > 2:
            raise InputError(f"expected 1 head or 2, got {heads}")
        self.k, self.r, self.c = k, r, c
        self.largest = largest = require_number(largest, "largest", 0.0, 1e9)
        # A softmax is linear where δ times the product is small: beyond a hundredth it is not.
        most = 1e-2 / largest
        if delta is None:
            delta = min(1e-8 if heads == 1 else 1e-5, most)
        self.delta = delta = require_number(delta, "delta", 1e-12, most)
        # The empty position outweighs all columns by 1/unit roundoff even after division by δ.
        sink = float(np.log(r / (delta * 1e-12)))
        slots = Slots(data=k, column=r, result=r, in_A=1, in_B=1, empty=1)
        identity = np.eye(slots.size)
        data = list(slots["data"])

        def head(sign: float) -> Head:
            query, key = np.zeros((slots.size, k + 1)), np.zeros((slots.size, k + 1))
            query[:, :k] = sign * delta * identity[:, data]
            key[:, :k] = identity[:, data]
            for name in ("in_A", "in_B", "empty"):
                query[slots[name][0], k] = 1.0
            key[slots["empty"][0], k], key[slots["in_B"][0], k] = sink, -sink
            factor = np.exp(sink) / delta * (1.0 if heads == 1 else sign / 2)
            return Head(query, key, slots.map(slots["column"], slots["result"], factor))

        subtract = Units(slots)
        if heads == 1:
            subtract.constant[list(slots["result"])] = -1 / delta
        tidy = Units(slots)
        bound = (1 / delta if heads == 1 else 0.0) + 10 * largest
        for slot in slots["result"]:
            direction = identity[slot]
            tidy.gated(direction, -slots.unit("in_B"), 1.0, slot, 4 * bound, -1.0)
        super().__init__(
            slots,
            [layer(slots, [head(1.0), head(-1.0)][:heads], subtract), layer(slots, units=tidy)],
            r + c + 1,
            f"AᵀB, {heads} {'head' if heads == 1 else 'heads'}",
        )

    def state(self, A: Any, B: Any) -> Floats:
        """Return the residual stream that holds the columns of A and of B."""
        A, B = real_matrix(A, "A", (self.k, self.r)), real_matrix(B, "B", (self.k, self.c))
        if not np.abs(A.T @ B).max() <= self.largest:
            raise InputError(f"expected finite products up to {self.largest:g}; try a larger largest=…")
        if self.delta * np.abs(B.T @ B).max() > 1:
            # Columns of B see each other, too, and must not outweigh the empty position.
            raise InputError(
                f"expected columns of B with products up to {1 / self.delta:g}; try smaller B and "
                "larger A"
            )
        slots, r, c = self.slots, self.r, self.c
        state = np.zeros((r + c + 1, slots.size))
        state[:r, list(slots["data"])] = A.T
        state[r : r + c, list(slots["data"])] = B.T
        state[:r, list(slots["column"])] = np.eye(r)
        state[:r, slots["in_A"][0]] = 1.0
        state[r : r + c, slots["in_B"][0]] = 1.0
        state[-1, slots["empty"][0]] = 1.0
        return state

    def __call__(self, A: Any, B: Any) -> Floats:
        """Return AᵀB, read off the positions of B's columns."""
        end = self.run(self.state(A, B))
        return end[self.r : self.r + self.c, list(self.slots["result"])].T
