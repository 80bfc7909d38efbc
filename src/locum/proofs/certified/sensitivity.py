"""Bound the effect of all roundings on a result, even if a selection is undecided.

Balls that are widened by every rounding overestimate errors that cancel. For example, the maximum of a
row is subtracted from all its scores, but the softmax does not depend on this maximum. A rounded
execution is therefore recorded as a function F of its rounding errors δ₁, …, δₘ. Every :class:`Rounded`
ball is an operation on its operands plus a separate δ. F(0) is the true result, and F(δ) is the
floating-point result. For some ξ between 0 and δ,

    F(δ) − F(0) = Σ δᵢ · ∂F/∂δᵢ(ξ),

so :func:`worst_errors` sums the largest |δᵢ| · |∂F/∂δᵢ| over the box of all rounding errors.

This bound is sound because a ball is widened by its δ in both directions. The balls therefore enclose
every intermediate value at every point between 0 and δ. Slopes computed on the balls enclose the slopes
at ξ. A comparison that is decided on these balls has the same result at all these points.

A ball that was not returned by an operation of :data:`SLOPES` is a separate variable. Examples are a
constant that the format cannot represent, and the hull of the candidates for a highest score. In both
executions, the value of this variable is in its ball, so it changes by at most twice the radius. An
operation that is not recorded can make a bound larger, but not wrong.

>>> rounding = arb(2.0**-54)
>>> third = Rounded(arb(1) / 3 + arb(0, rounding), "divide", (1, 3), rounding)
>>> difference = Rounded(third - third, "subtract", (third, third), arb(0))
>>> list(map(float, worst_errors([third, difference]))) == [2.0**-54, 0.0], difference.is_exact()
(True, False)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

import numpy as np
from flint import arb

from locum.execution.domains import Value

#: The slopes of one ball: a mapping from the index of each dependent result to ∂(result)/∂(ball).
Slopes: TypeAlias = Mapping[int, Any]

_numbers = count()
_NONE = arb(0)


class Rounded(arb):
    """A ball that encloses ``operation(operands) + δ`` with |δ| ≤ ``error``.

    The operands are balls or exact numbers.
    """

    __slots__ = ("error", "number", "operands", "operation", "slopes")

    def __new__(cls, *_: Any) -> Rounded:
        """Create a ball; as in flint, ``__init__`` sets its value."""
        return super().__new__(cls)

    def __init__(self, ball: arb, operation: str, operands: tuple[Any, ...], error: arb) -> None:
        """Record the operation, the operands and the rounding error from which a ball was computed."""
        super().__init__(ball)
        self.operation, self.operands, self.error = operation, operands, error
        #: The number of the ball; operands have smaller numbers than results.
        self.number = next(_numbers)
        self.slopes: list[tuple[arb, Any]] | None = None


def _around_zero(_: arb) -> arb:
    return arb(0, 1)


#: The slope of a sum with respect to each of its terms.
_SAME = 1
#: ∂(operation)/∂(operand) for every operand. The absolute value has slopes from −1 to 1.
SLOPES: Mapping[str, tuple[Callable[..., Any], ...]] = {
    "add": (lambda a, b: _SAME, lambda a, b: _SAME),
    "subtract": (lambda a, b: _SAME, lambda a, b: -1),
    "multiply": (lambda a, b: b, lambda a, b: a),
    "divide": (lambda a, b: 1 / b, lambda a, b: -a / (b * b)),
    "power": (lambda a, b: b * a ** (b - 1), lambda a, b: a**b * a.log()),
    "negate": (lambda a: -1,),
    "absolute": (_around_zero,),
    "sqrt": (lambda a: 1 / (2 * a.sqrt()),),
    "exp": (lambda a: a.exp(),),
    "log": (lambda a: 1 / a,),
    "erf": (lambda a: 2 * (-a * a).exp() / arb.pi().sqrt(),),
    "tanh": (lambda a: 1 - a.tanh() ** 2,),
    "sin": (lambda a: a.cos(),),
    "cos": (lambda a: -a.sin(),),
}


def worst_errors(results: Sequence[arb]) -> list[arb]:
    """Bound the distances between rounded results, which may share operands, and the true results.

    The bound of a result is infinite or NaN if a slope is infinite or NaN.

    The slopes of a ball map the index of each result to the derivative ∂(result)/∂(ball). The slopes
    are complete after all balls that were computed from this ball have been visited. A sum passes its
    slopes to its terms unchanged. Several balls may therefore share a mapping of slopes, and no mapping
    is modified. The rounding errors of balls that share a mapping are added before they are multiplied
    by the slopes.
    """
    slopes: dict[int, Slopes] = {}
    variables: dict[int, arb] = {}
    for number, result in enumerate(results):
        _hand_on(slopes, result, {number: 1}, variables)
    errors: dict[int, tuple[Slopes, arb]] = {}
    for ball in _latest_first(results):
        mine = slopes.pop(id(ball))
        _, before = errors.get(id(mine), (mine, _NONE))
        errors[id(mine)] = mine, before + ball.error
        for operand, partial in _partials(ball):
            _hand_on(slopes, operand, _times(mine, partial), variables)
    moves = [(slopes[number], 2 * variable.rad()) for number, variable in variables.items()]
    totals = [_NONE] * len(results)
    for theirs, error in [*errors.values(), *moves]:
        for number, slope in theirs.items():
            totals[number] += abs(slope) * error
    return [total.upper() for total in totals]


def _hand_on(slopes: dict[int, Slopes], ball: arb, more: Slopes, variables: dict[int, arb]) -> None:
    """Add ``more`` to the slopes of a ball; a ball without an operation is recorded as a variable."""
    if not isinstance(ball, Rounded):
        variables[id(ball)] = ball
    theirs = slopes.get(id(ball))
    if theirs is not None:
        more = {
            **theirs,
            **{
                number: theirs[number] + slope if number in theirs else slope
                for number, slope in more.items()
            },
        }
    slopes[id(ball)] = more


def _times(slopes: Slopes, partial: Any) -> Slopes:
    """Multiply all slopes of a ball by the partial derivative of an operation."""
    if partial is _SAME:
        return slopes
    return {number: slope * partial for number, slope in slopes.items()}


def _latest_first(results: Sequence[arb]) -> list[Rounded]:
    """Return ``results`` and the inexact balls from which they are computed, each before its operands.

    Balls without a recorded operation are omitted.
    """
    balls: dict[int, Rounded] = {}
    left = [result for result in results if isinstance(result, Rounded)]
    while left:
        ball = left.pop()
        if ball.number not in balls:
            balls[ball.number] = ball
            left += [operand for operand, _ in _partials(ball) if isinstance(operand, Rounded)]
    return [balls[number] for number in sorted(balls, reverse=True)]


def _partials(ball: Rounded) -> list[tuple[arb, Any]]:
    """Return the operands of a ball that are not exact, each with its partial derivative.

    The derivatives are computed once and stored in the ball.
    """
    if ball.slopes is None:
        ball.slopes = [
            (operand, slope(*ball.operands))
            for operand, slope in zip(ball.operands, SLOPES[ball.operation], strict=True)
            if isinstance(operand, arb) and not operand.is_exact()
        ]
    return ball.slopes


class TooCloseError(ValueError):
    """Raised for an operation that enclosures do not decide, such as a comparison of two numbers."""


@dataclass(frozen=True)
class Candidates:
    """The keys that a query may select.

    If ``certain``, the query selects all of the keys. If ``nonempty``, the query selects at least one
    key. If ``single``, the query selects at most one key.
    """

    keys: tuple[int, ...]
    certain: bool
    nonempty: bool
    single: bool


class Cell:
    """An undecided cell of an attention pattern, which only ``best`` and ``aggregate`` accept."""

    __slots__ = ("row",)

    def __init__(self, row: Candidates) -> None:
        self.row = row

    def _undecided(self, *_: object) -> Any:
        raise TooCloseError("the enclosures do not determine which key has the highest score")

    __and__ = __or__ = __rand__ = __ror__ = __invert__ = __bool__ = _undecided


def candidates_of(pattern: Any) -> list[Candidates]:
    """Return the keys that each row of an attention pattern may select.

    If all cells of a row are decided, the keys are certain: they are the keys that the row selects.
    """
    if pattern.dtype != object:
        return [_certain(np.flatnonzero(row).tolist()) for row in pattern]
    rows = []
    for row in pattern:
        cells = row.tolist()
        open_ones = [cell for cell in cells if isinstance(cell, Cell)]
        if open_ones:
            rows.append(open_ones[0].row)
        else:
            rows.append(_certain([k for k, here in enumerate(cells) if here]))
    return rows


def _certain(keys: Sequence[int]) -> Candidates:
    return Candidates(tuple(keys), True, bool(keys), len(keys) <= 1)


def contenders(selected: Any, scores: Sequence[Value], greater: Callable[..., bool], ties: bool) -> Any:
    """Return the pattern of the selected keys with the highest score in each row.

    Without ``ties``, an undecided comparison of scores raises an error. With ``ties``, if undecided
    comparisons do not determine these keys, the cells of all keys that may have the highest score are
    undecided.
    """
    rows = candidates_of(selected)
    winners = {row: _greatest(row, scores, greater, ties) for row in dict.fromkeys(rows)}
    rows_won = [winners[row] for row in rows]
    shape = selected.shape
    decided = all(isinstance(one, tuple) for one in rows_won)
    array: Any = np.full(shape, False, dtype=np.bool_ if decided else object)
    for q, one in enumerate(rows_won):
        if isinstance(one, tuple):
            array[q, list(one)] = True
        else:
            array[q, list(one.keys)] = Cell(one)
    return array


def _greatest(
    row: Candidates, scores: Sequence[Value], greater: Callable[..., bool], ties: bool
) -> tuple[int, ...] | Candidates:
    """Return the keys with the highest score as a tuple, or as undecided candidates."""
    answers: dict[tuple[int, int], bool | None] = {
        (a, b): _answer(greater, scores[a], scores[b], ties)
        for a in row.keys
        for b in row.keys
        if scores[a] is not scores[b]
    }
    # A key that is only a candidate does not exclude another key.
    left = [k for k in row.keys if not (row.certain and any(answers.get((o, k)) for o in row.keys))]
    among = [answers[a, b] for a in left for b in left if (a, b) in answers]
    if row.certain and all(answer is False for answer in among):
        return tuple(left)
    distinct = all(answers.get((a, b)) or answers.get((b, a)) for a in left for b in left if a < b)
    return Candidates(tuple(left), False, row.nonempty, row.single or distinct)


def _answer(greater: Callable[..., bool], a: Value, b: Value, ties: bool) -> bool | None:
    try:
        return greater(a, b)
    except TooCloseError:
        if not ties:
            raise
        return None
