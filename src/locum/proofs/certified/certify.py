"""Certify results: enclose the true value, and bound the floating-point error.

:func:`certify` runs U on given numbers by dense execution, first with balls that enclose the true
real-valued result. If comparisons are undecided, this run is repeated. In the last run, balls are
widened by a bound on the rounding error after each operation that may round. These balls enclose every
result of a floating-point execution that performs the operations of the same program one by one. The
certified error bounds the distance between the true result and all such results. :func:`certify_matrix`
does the same for other programs.

The bound is valid for dense execution in IEEE arithmetic (round to nearest). The errors of library
functions must be at most 4 units of 2⁻⁵³ (float64) or 2⁻²⁴ (float32). The bound is not valid for other
executors, which may add numbers in another order.

>>> from locum import Attention, UniversalSimulator
>>> T, U = Attention(A=[[1.0]], V=[[2.0]]), UniversalSimulator(2, 1, 1)
>>> certified = certify(U, T, [[1.0], [2.0]])
>>> certified.error < 1e-14, certified.width < 1e-30
(True, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from locum.constructions import Matrix
from locum.errors import ExecutionError, InputError
from locum.execution import dense
from locum.execution.arrays import Array, numpy_of
from locum.proofs.certified.balls import FORMATS, PRECISION, BallDomain, precise
from locum.proofs.certified.sensitivity import TooCloseError, worst_errors
from locum.simulators import UniversalSimulator
from locum.simulators.modules.module import Module
from locum.text import at_most, matrix

#: Precision in bits for undecided comparisons; sums of products of floats with similar exponents are
#: then exact.
_EXACT_BITS = 2048


@dataclass(frozen=True)
class Certified:
    """The certified result of a program on given numbers: an enclosure and error bounds."""

    #: Bounds of the true result, entry by entry.
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    #: Upper bound on the widths of ``balls``.
    width: float
    #: Bound on the error of dense execution in the format ``dtype``, over all entries.
    error: float
    #: Bound on the error of each entry.
    errors: NDArray[np.float64] = field(repr=False)
    dtype: str = "float64"

    #: Balls that enclose the true result, row by row.
    balls: tuple[arb, ...] = field(default=(), repr=False)

    def seen(self, values: Any) -> float:
        """Return a lower bound on the largest error in ``values``, the result of an execution."""
        entries = np.asarray(values, dtype=np.float64).ravel().tolist()
        with precise(PRECISION):
            distances = [
                abs(arb(fmpq(*x.as_integer_ratio())) - ball).lower()
                for x, ball in zip(entries, self.balls, strict=True)
            ]
            return max(float(distance) for distance in distances)

    def _repr_html_(self) -> str:
        return matrix(f"certified result; {self}", (self.lower + self.upper) / 2)

    def __str__(self) -> str:
        width, error = at_most(self.width, ".1e"), at_most(self.error, ".1e")
        return f"enclosed within {width}; {self.dtype} error ≤ {error}, certified"

    def to_dict(self) -> dict[str, Any]:
        """Return the enclosure and the certified error as a JSON-compatible dictionary."""
        return {
            "lower": self.lower.tolist(), "upper": self.upper.tolist(), "width": self.width,
            "dtype": self.dtype, "certified_error": self.error,
        }  # fmt: skip


def certify(
    U: UniversalSimulator, T: Module, X: Array, memory: Array | None = None, *, dtype: str = "float64"
) -> Certified:
    """Enclose the result of U on ⟨T, X⟩, and bound the error of a floating-point execution.

    ``dtype`` is the format of this execution, ``"float64"`` or ``"float32"``. For float32, T and X must
    consist of numbers that float32 represents exactly. The same applies to ``memory``.

    >>> import numpy as np
    >>> import locum
    >>> T, X = locum.Attention(np.eye(2), np.eye(2)), np.eye(2)
    >>> certified = certify(locum.UniversalSimulator(2, 2, 2), T, X)
    >>> bool(certified.error < 1e-14)
    True
    """
    numbers = np.concatenate([numpy_of(part).ravel() for part in U.parts_of(T, X, memory)])
    blanks = [0.0] * (U.length - len(numbers))
    return certify_matrix(U.output, [*numbers.tolist(), *blanks], dtype=dtype)


def certify_matrix(program: Matrix, tokens: Sequence[float], *, dtype: str = "float64") -> Certified:
    """Enclose the result of a program that returns a matrix, and bound its floating-point error.

    ``tokens`` is the whole sequence on which the program is run.
    """
    if dtype not in FORMATS:
        raise InputError(f"expected one of the formats {', '.join(FORMATS)}, got {dtype!r}")
    if dtype == "float32" and any(float(np.float32(x)) != x for x in tokens):
        raise InputError(
            "expected numbers that float32 represents exactly, got others; try rounding them to float32"
        )
    if not all(np.isfinite(x) for x in tokens):
        raise InputError("expected finite numbers, got NaN or an infinity")
    true = _true_entries(program, tokens)
    rounded = _entries(program, tokens, BallDomain(FORMATS[dtype], ties=True), PRECISION)
    with precise(PRECISION):
        moved = worst_errors(rounded)
        errors = [_error(a, b, c) for a, b, c in zip(rounded, true, moved, strict=True)]
        widths = [_above(2 * ball.rad()) for ball in true]
        lower = [_below(ball) for ball in true]
        upper = [_above(ball) for ball in true]
    view = program.places
    shape = (view.rows, view.columns)
    return Certified(
        np.reshape(lower, shape), np.reshape(upper, shape), max(widths), max(errors),
        np.reshape(errors, shape), dtype, tuple(true),
    )  # fmt: skip


def _true_entries(program: Matrix, tokens: Sequence[float]) -> list[arb]:
    """Enclose the entries of the true result.

    If comparisons are undecided, repeat the run with higher precision, and then at the first precision
    with candidates for the highest score.
    """
    attempts = ((PRECISION, False), (_EXACT_BITS, False), (PRECISION, True))
    for bits, ties in attempts:
        try:
            return _entries(program, tokens, BallDomain(ties=ties), bits)
        except ExecutionError as error:
            if error.kind != TooCloseError.__name__ or ties:
                raise
    raise AssertionError("the last attempt returns or raises")


def _entries(program: Matrix, tokens: Sequence[float], domain: BallDomain, bits: int) -> list[arb]:
    """Run a program on balls at a precision of ``bits``, and return the entries of the result."""
    with precise(bits):
        balls = [arb(fmpq(*float(x).as_integer_ratio())) for x in tokens]
        values = dense.evaluate(program.sop.node, balls, domain, program.names)
        view = program.places
        return [
            _as_ball(values[view.offset + i * view.row_stride + j * view.column_stride])
            for i in range(view.rows) for j in range(view.columns)
        ]  # fmt: skip


def _as_ball(value: Any) -> arb:
    if isinstance(value, arb):
        return value
    return arb(int(value)) if isinstance(value, (bool, int)) else arb(value)


def _error(rounded: arb, true: arb, moved: arb) -> float:
    """Return the smaller of two bounds on an error.

    One bound is the largest distance between numbers in the two balls. The other bound is the effect
    of all roundings.
    """
    distance = _above(abs(rounded - true))
    return min(distance, _above(moved)) if moved.is_finite() else distance


def _above(ball: arb) -> float:
    """Return a float that is at least as large as every number in the ball."""
    return float(np.nextafter(float(ball.upper()), np.inf))


def _below(ball: arb) -> float:
    return float(np.nextafter(float(ball.lower()), -np.inf))
