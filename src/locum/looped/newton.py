"""Invert a matrix by Newton's iteration X ← X(2I − AX), as a program of the FLEQ machine.

>>> A = np.array([[2.0, 1.0], [0.0, 1.0]])
>>> bool(np.allclose(invert(A) @ A, np.eye(2), rtol=0, atol=1e-8))
True
"""

from __future__ import annotations

from typing import Any

import numpy as np

from locum.errors import InputError
from locum.looped.block import Floats, real_matrix
from locum.looped.fleq import FleqMachine, Instruction
from locum.settings import require_integer

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
