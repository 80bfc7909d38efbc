"""How far roundings can move a result, all of them together: the mean value theorem on balls.

Balls that are widened by every rounding do not see that errors cancel: the greatest score of a row is
subtracted from all its scores, and the softmax does not depend on it; weights that sum to 1 meet values
that are nearly equal. So a rounded execution is remembered as what it is, a function F of the roundings
δ₁, …, δₘ that it made: every :class:`Rounded` ball is an operation on its operands plus a δ of its own.
F(0) is the true result, F(δ) that of floats, and for some ξ between 0 and δ

    F(δ) − F(0) = Σ δᵢ · ∂F/∂δᵢ(ξ),

so :func:`worst_error` adds up the greatest |δᵢ| · |∂F/∂δᵢ| over the box of all roundings.

Why that is sound: a ball was widened by its δ in both directions, so the balls enclose every
intermediate value at every point between 0 and δ, and slopes computed on the balls enclose those at ξ.
All comparisons were decided on the same balls, so F takes the same branches everywhere in between. A
ball that no operation of :data:`SLOPES` made (a constant that the format does not hold, the hull of the
candidates for a greatest score) is a variable of its own: in the true execution and in the rounded one
it is somewhere in its ball, so it moves by twice the radius at most. What is not remembered makes a
bound loose, never wrong.

>>> rounding = arb(2.0**-54)
>>> third = Rounded(arb(1) / 3 + arb(0, rounding), "divide", (1, 3), rounding)
>>> difference = Rounded(third - third, "subtract", (third, third), arb(0))
>>> float(worst_error(third)) == 2.0**-54, float(worst_error(difference)), difference.is_exact()
(True, 0.0, False)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from flint import arb

_numbers = count()


class Rounded(arb):
    """The ball of ``operation(operands) + δ``, |δ| ≤ ``error``, on balls and exact numbers."""

    __slots__ = ("error", "number", "operands", "operation", "slopes")

    def __new__(cls, *_: Any) -> Rounded:
        """Leave the value to ``__init__``, as flint does."""
        return super().__new__(cls)

    def __init__(self, ball: arb, operation: str, operands: tuple[Any, ...], error: arb) -> None:
        """Remember where a ball comes from."""
        super().__init__(ball)
        self.operation, self.operands, self.error = operation, operands, error
        #: Operands have smaller numbers than what is made of them.
        self.number = next(_numbers)
        self.slopes: list[tuple[arb, Any]] | None = None


def _around_zero(_: arb) -> arb:
    return arb(0, 1)


#: ∂(operation)/∂(operand) for every operand. Functions of Lipschitz constant 1 may have a kink.
SLOPES: Mapping[str, tuple[Callable[..., Any], ...]] = {
    "add": (lambda a, b: 1, lambda a, b: 1),
    "subtract": (lambda a, b: 1, lambda a, b: -1),
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
}


def worst_error(result: arb) -> arb:
    """Bound the distance of a rounded result from the true one; not finite where slopes are not."""
    #: ∂(result)/∂(ball), complete when everything that is made of the ball has been gone through.
    slopes: dict[int, Any] = {id(result): 1}
    variables: dict[int, arb] = {} if isinstance(result, Rounded) else {id(result): result}
    total = arb(0)
    for ball in _latest_first(result):
        slope = slopes.pop(id(ball))
        total += abs(slope) * ball.error
        for operand, partial in _partials(ball):
            if not isinstance(operand, Rounded):
                variables[id(operand)] = operand
            slopes[id(operand)] = slopes.get(id(operand), 0) + slope * partial
    for number, variable in variables.items():
        total += abs(slopes[number]) * (2 * variable.rad())
    return total.upper()


def _latest_first(result: arb) -> list[Rounded]:
    """Everything remembered that a result is made of, each before its operands."""
    found: dict[int, Rounded] = {}
    left = [result] if isinstance(result, Rounded) else []
    while left:
        ball = left.pop()
        if ball.number not in found:
            found[ball.number] = ball
            left += [operand for operand, _ in _partials(ball) if isinstance(operand, Rounded)]
    return [found[number] for number in sorted(found, reverse=True)]


def _partials(ball: Rounded) -> list[tuple[arb, Any]]:
    """The operands of a ball that are not exact, with the slope in each; computed once."""
    if ball.slopes is None:
        ball.slopes = [
            (operand, slope(*ball.operands))
            for operand, slope in zip(ball.operands, SLOPES[ball.operation], strict=True)
            if isinstance(operand, arb) and not operand.is_exact()
        ]
    return ball.slopes
