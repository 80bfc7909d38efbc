"""Transpose a matrix by four layers of one head (a reconstruction of the published size, 4r × r²).

Position c = i·r + j of r² stands for the entry (i, j). The columns of A lie at positions 0 … r − 1.

1. Position (i, j) fetches column j; hidden units keep its entry i.
2. It swaps its entry with position (j, i).
3. Hidden units put the entry into row i of a column.
4. The mean over the positions of one j, times r, is column j of Aᵀ.
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
    bits_for,
    code,
    layer,
    real_matrix,
    sharpness,
)
from locum.settings import require_integer, require_number


class Transposition(LoopedBlock):
    """The block that transposes r × r matrices."""

    def __init__(self, order: int, *, error: float = 1e-16, bound: float = 1e3) -> None:
        """Take ``error``: the weight of a head's wrong positions in all; ``bound``: of entries of A."""
        order = require_integer(order, "the order")
        error = require_number(error, "error", 0.0, 1e-3)
        # Gates lose the digits below their bound times the unit roundoff.
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
        """Return the residual stream that holds A, and the codes of positions."""
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
        """Return Aᵀ, read off the first r positions."""
        return self.run(self.state(A))[: self.order, list(self.slots["result"])].T
