"""Multiply and transpose matrices by looped transformers (reconstructions).

:class:`Product` computes AᵀB in two layers, through a softmax in its nearly linear range. The positions
are the columns of A, the columns of B, and one empty position that receives nearly all attention. Let C
be the score of the empty position. The weight of column i of A for column j of B is then
e^(−C)·(1 + δ·aᵢ·bⱼ + …). This weight is linear in the product aᵢ·bⱼ up to terms of higher order. Let M
be the largest |aᵢ·bⱼ|. With one head, a bias subtracts the constant 1/δ, and the truncation error is
about δ·M²/2. The rounding error is proportional to 1/δ, so at least about half of the digits are lost.
With two heads of opposite signs ±δ, the even terms cancel, and the truncation error is about δ²·M³/6.

:class:`Transposition` has four layers of at most one head; the published width is about 4r, for r²
positions. Position c = i·r + j represents the entry (i, j). The first r positions contain the columns
of A.

1. Position (i, j) reads column j; hidden units keep entry i.
2. Position (i, j) reads the entry of position (j, i).
3. Hidden units write the entry into row i of a column.
4. The mean of these columns over the positions with the same j, times r, is column j of Aᵀ.

>>> A = np.array([[2.0, 1.0], [0.0, 1.0]])
>>> bool(np.allclose(Product(2, 2, 2)(A, A), A.T @ A, rtol=0, atol=1e-5))
True
"""

from __future__ import annotations

from typing import Any

import numpy as np

from locum.errors import InputError
from locum.networks.looped.block import (
    Floats,
    Head,
    LoopedBlock,
    Slots,
    Units,
    bits_for,
    code,
    layer,
    real_matrix,
    sharpness,
)
from locum.settings import require_integer, require_number


class Product(LoopedBlock):
    """A block that computes AᵀB for matrices A of k × r and B of k × c."""

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
        """Create the block for A of ``k`` × ``r`` and B of ``k`` × ``c``.

        ``heads`` is 1 (as published) or 2. ``delta`` is the scale δ of the scores. ``largest`` is an
        upper bound on |aᵢ·bⱼ|, the entries of AᵀB.
        """
        k, r, c = require_integer(k, "k"), require_integer(r, "r"), require_integer(c, "c")
        if require_integer(heads, "heads") > 2:
            raise InputError(f"expected 1 head or 2, got {heads}")
        self.k, self.r, self.c = k, r, c
        self.largest = largest = require_number(largest, "largest", 0.0, 1e9)
        # The softmax is nearly linear if δ times the product is at most 1/100.
        most = 1e-2 / largest
        if delta is None:
            delta = min(1e-8 if heads == 1 else 1e-5, most)
        self.delta = delta = require_number(delta, "delta", 1e-12, most)
        # Relative to the empty position, all columns of A together have a weight of about δ·1e-12.
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
        """Return the residual stream that contains the columns of A and of B."""
        A, B = real_matrix(A, "A", (self.k, self.r)), real_matrix(B, "B", (self.k, self.c))
        if not np.abs(A.T @ B).max() <= self.largest:
            raise InputError(f"expected finite products up to {self.largest:g}; try a larger largest=…")
        if self.delta * np.abs(B.T @ B).max() > 1:
            # Columns of B also attend to each other, but must not outweigh the empty position.
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
        """Return AᵀB, read from the positions of the columns of B."""
        end = self.run(self.state(A, B))
        return end[self.r : self.r + self.c, list(self.slots["result"])].T


class Transposition(LoopedBlock):
    """A block that transposes r × r matrices."""

    def __init__(self, order: int, *, error: float = 1e-16, bound: float = 1e3) -> None:
        """Create the block for matrices of ``order`` × ``order``.

        ``error`` bounds the attention weight of wrong positions, and ``bound`` the absolute values of
        the entries of A.
        """
        order = require_integer(order, "the order")
        error = require_number(error, "error", 0.0, 1e-3)
        # The error of a gated value is about the bound times the unit roundoff.
        self.order, self.bound = order, require_number(bound, "bound", 0.0, 1e6)
        r, n = order, order * order
        bits, group = bits_for(n), bits_for(r)
        slots = Slots(
            A=r, fetched=r, row=r, result=r, entry=1, swapped=1, is_row=r,
            position=bits, source=bits, mirror=bits, column=group,
        )  # fmt: skip
        scale = sharpness(n, error)
        identity = np.eye(slots.size)

        def head(query: str, key: str, source: str, target: str, factor: float = 1.0) -> Head:
            return Head(
                scale * identity[:, list(slots[query])],
                identity[:, list(slots[key])],
                slots.map(slots[source], slots[target], factor),
            )

        keep = Units(slots)
        for i in range(r):
            keep.gated(slots.unit("fetched", i), slots.unit("is_row", i), 0.0, slots["entry"][0], bound)
        keep.clear(slots["fetched"])
        spread = Units(slots)
        for i in range(r):
            spread.gated(slots.unit("swapped"), slots.unit("is_row", i), 0.0, slots["row"][i], bound)
        tidy = Units(slots)
        for name in ("A", "row", "entry", "swapped"):
            tidy.clear(slots[name])
        super().__init__(
            slots,
            [
                layer(slots, [head("source", "position", "A", "fetched")], keep),
                layer(slots, [head("mirror", "position", "entry", "swapped")]),
                layer(slots, units=spread),
                layer(slots, [head("column", "column", "row", "result", float(r))], tidy),
            ],
            n,
            f"transposition of order {r}",
        )

    def state(self, A: Any) -> Floats:
        """Return the residual stream that contains A and the codes of positions."""
        r, slots = self.order, self.slots
        A = real_matrix(A, "A", (r, r))
        if not np.abs(A).max() < self.bound:
            raise InputError(f"expected finite entries below {self.bound:g}; try a larger bound=…")
        state = np.zeros((r * r, slots.size))
        state[:r, list(slots["A"])] = A.T
        for c in range(r * r):
            i, j = divmod(c, r)
            state[c, slots["is_row"][i]] = 1.0
            state[c, list(slots["position"])] = code(c, len(slots["position"]))
            state[c, list(slots["source"])] = code(j, len(slots["source"]))
            state[c, list(slots["mirror"])] = code(j * r + i, len(slots["mirror"]))
            state[c, list(slots["column"])] = code(j, len(slots["column"]))
        return state

    def __call__(self, A: Any) -> Floats:
        """Return Aᵀ, read from the first r positions."""
        return self.run(self.state(A))[: self.order, list(self.slots["result"])].T
