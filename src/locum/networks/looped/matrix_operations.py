"""Products, transposition and inversion by looped transformers (reconstructions).

:class:`Product` computes AᵀB by two layers, through a softmax that is nearly linear.
Positions are the columns of A, those of B, and one empty position that takes nearly all attention: the
weight of column i of A for column j of B is then e^(−C)·(1 + δ·aᵢ·bⱼ + …), linear in the product. With
one head the constant 1/δ is subtracted by a bias and the error is δ·M²/2 (M: the largest |aᵢ·bⱼ|), so
that half of the digits are lost whatever δ is. With two heads of ±δ even terms cancel: δ²·M³/6.

:class:`Transposition` has four layers of one head (the published size, 4r × r²).
Position c = i·r + j of r² stands for the entry (i, j). The columns of A lie at positions 0 … r − 1.

1. Position (i, j) fetches column j; hidden units keep its entry i.
2. It swaps its entry with position (j, i).
3. Hidden units put the entry into row i of a column.
4. The mean over the positions of one j, times r, is column j of Aᵀ.

:func:`invert` is Newton's iteration X ← X(2I − AX), as a program of the FLEQ machine.

>>> A = np.array([[2.0, 1.0], [0.0, 1.0]])
>>> bool(np.allclose(invert(A) @ A, np.eye(2), rtol=0, atol=1e-8))
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
from locum.networks.looped.fleq import FleqMachine, Instruction
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


#: The registers of the program.
NAMES = ("A", "Aᵀ", "X", "AX", "2I − AX", "Xᵀ", "εI", "2I", "count", "−1", "zero")
_A, _AT, _X, _AX, _REST, _XT, _SMALL, _TWICE, _COUNT, _MINUS, _ZERO = range(len(NAMES))


def inversion_program(A: Any, iterations: int) -> tuple[list[Floats], list[Instruction]]:
    """Return registers and instructions that leave the inverse of A in register X.

    The machine's host supplies ε = 1/(‖A‖₁·‖A‖∞), with which the iteration converges for every
    non-singular A. The program takes 2 + 5·iterations passes and then stays where it is.
    """
    A = real_matrix(A, "A")
    if not A.size or A.shape[0] != A.shape[1]:
        raise InputError(f"expected a square matrix, got {' × '.join(map(str, A.shape))}")
    require_integer(iterations, "iterations")
    norms = np.abs(A).sum(axis=0).max() * np.abs(A).sum(axis=1).max()
    if norms == 0:
        raise InputError("expected a non-singular matrix, got 0")
    eye = np.eye(len(A))
    registers = [np.zeros_like(A) for _ in NAMES]
    registers[_A] = A
    registers[_SMALL], registers[_TWICE] = eye / norms, 2 * eye
    registers[_COUNT], registers[_MINUS] = (1 - iterations) * eye, -eye
    # Where nothing is to be decided, the target is the next instruction anyhow.
    return registers, [
        Instruction(_A, _ZERO, _AT, "T", _ZERO, 1),
        Instruction(_SMALL, _AT, _X, "MUL", _ZERO, 2),
        Instruction(_AT, _X, _AX, "MUL", _ZERO, 3),
        Instruction(_AX, _TWICE, _REST, "SUB", _ZERO, 4),
        Instruction(_X, _ZERO, _XT, "T", _ZERO, 5),
        Instruction(_XT, _REST, _X, "MUL", _ZERO, 6),
        Instruction(_MINUS, _COUNT, _COUNT, "SUB", _COUNT, 2),
        Instruction(_ZERO, _ZERO, _ZERO, "SUB", _ZERO, 7),
    ]


def invert(A: Any, iterations: int = 30) -> Floats:
    """Return the inverse of A as the looped machine computes it.

    A is scaled to entries of about 8 before, and the inverse after it: errors of products grow with
    both. Refused if the iteration has not converged: A is singular, or so nearly that it takes more
    iterations than these.
    """
    A = real_matrix(A, "A")
    scale = float(np.abs(A).max()) / 8 if A.size else 0.0
    A = A / scale if scale else A
    registers, program = inversion_program(A, iterations)
    machine = FleqMachine(len(registers[_A]), len(registers), len(program))
    inverse = machine.execute(registers, program, passes=2 + 5 * iterations)[0][_X]
    rest = float(np.abs(A @ inverse - np.eye(len(A))).max())
    if not rest < 1e-5:
        raise InputError(
            f"expected AX = I after {iterations} iterations, got a difference of {rest:.1g}: A is "
            "singular or nearly so; try more iterations"
        )
    with np.errstate(over="ignore"):
        inverse = inverse / scale
    if not np.isfinite(inverse).all():
        raise InputError("expected an inverse within the range of floats, got an infinity")
    return inverse
