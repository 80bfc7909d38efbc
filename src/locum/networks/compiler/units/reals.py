"""Express functions of real numbers as gates, or as combinations of other s-ops.

- ``a if c else b`` is the sum of a where c is true, and b where c is false.
- ``max(a, b)`` is b + max(a − b, 0).
- a / b is a·(1/b).
- exp(z) / b is exp(z − log b), without a product of numbers with a wide range; b must be positive.
- Comparisons are computed by ramps. The width of a ramp follows from the declared separation, or from
  the possible values of the compared s-ops.

:class:`CompileError` is raised for operations that hidden units cannot compute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from locum.errors import CompileError
from locum.graph import OPERATIONS, Node, abbreviate, build
from locum.graph.operations import constant
from locum.networks.compiler.network.forms import Bend, Curved, Form, Masked, Product, Ramp, Recipe
from locum.networks.compiler.program.values import Values
from locum.networks.compiler.scoring.broadcasting import Known
from locum.networks.compiler.scoring.scores import Linear, term
from locum.networks.compiler.units.curves import CURVES
from locum.networks.compiler.units.tables import rounded

ZERO, ONE = constant(0), constant(1)
#: A bound on the relative rounding error of means in dense execution.
_LAST_BITS = 1e-9
#: Maximum sum of integers, so that different quotients are also different in floating point.
_MAX_SUM = 2**30

#: Maximum number of binary digits of an integer factor.
_MAX_DIGITS = 10

#: How to write a comparison as a > b: whether to swap the inputs, and whether to negate the result.
_ORDERINGS = {
    "greater": (False, False),
    "less": (True, False),
    "less_equal": (False, True),
    "greater_equal": (True, True),
}


@dataclass
class RealFunctions:
    """The gates of operations on real numbers, for one type of hidden units."""

    known: Known
    #: Exponentials that are approximated within a relative error, and upper bounds on the arguments of
    #: exponentials.
    _relative: set[Node] = field(default_factory=set)
    _at_most: dict[Node, float] = field(default_factory=dict)
    #: For each exponential exp(z − log b) of a softmax: z and log b.
    _softmax: dict[Node, tuple[Node, Node]] = field(default_factory=dict)

    @property
    def values(self) -> Values:
        """The possible values of each s-op."""
        return self.known.values

    def number(self, node: Node) -> float | None:
        """Return the number that encodes an s-op if it is a constant number, otherwise None."""
        value = self.values.constant(node)
        if value is None or isinstance(value, str):
            return None
        return self.known.codes.number(value, abbreviate(node))

    def recipe(self, node: Node) -> Linear | Recipe:
        """Return the gate of an operation, or a linear combination of other s-ops that replaces it."""
        soft = self.known.target.feed_forward == "gelu"  # a GELU bends gradually
        match node.op:
            case "multiply":
                return self._product(*node.inputs)
            case "divide":
                return self._quotient(node)
            case "power":
                return term(self._power(node))
            case op if op in CURVES:
                return self._curve(op, node.inputs[0], node)
            case "absolute":
                return Recipe((term(node.inputs[0]),), lambda x: Bend(x, -1.0, 1.0), approximates=soft)
            case "maximum" | "minimum":
                a, b = node.inputs
                if self.number(b) == 0.0 and node.op == "maximum":
                    return Recipe((term(a),), lambda x: Bend(x, 0.0, 1.0), approximates=soft)
                if node.op == "maximum":
                    return term(b).plus(term(build("maximum", build("subtract", a, b), ZERO)))
                return term(a).plus(term(build("maximum", build("subtract", a, b), ZERO), -1.0))
            case "if_else":
                return self._choice(*node.inputs)
            case "indicator" | "not" | "and" | "or":
                booleans = [self._boolean(i) for i in node.inputs]
                if node.op == "indicator":
                    return term(booleans[0])
                if node.op == "not":
                    return term(booleans[0], -1.0).plus(Linear(constant=1.0))
                return term(build(node.op, *booleans))
            case op if OPERATIONS[op].group == "comparison":
                return self._comparison(node)
            case "round" if (known := self.values.finite(node)) and self._is_nearly_whole(node):
                return rounded(node, known, self.known.codes)
            case _:
                kind = self.known.target.feed_forward
                raise CompileError(
                    f"expected an argument of {node.op} with finitely many possible values, got real "
                    f"numbers, on which {kind} units cannot compute a discontinuous function",
                    abbreviate(node),
                )

    def _is_nearly_whole(self, node: Node) -> bool:
        """Return whether an s-op rounds a value that is an integer up to rounding errors."""
        return self.values.integers(node.inputs[0]) is not None or self.values.is_integer_sum(node)

    def _by_position(self, node: Node) -> bool:
        """Return whether an s-op depends only on the position."""
        return self.values.depends_on(node, "indices")

    def _boolean(self, node: Node) -> Node:
        """Return an s-op that is 1 where ``node`` is true, and 0 elsewhere."""
        finite = self.values.finite(node)
        if finite is not None and set(finite) <= {0, 1}:
            return node
        return build("not_equal", node, ZERO)

    def _product(self, a: Node, b: Node) -> Linear | Recipe:
        approximates = self.known.target.feed_forward != "glu"
        if a is b:
            return Recipe((term(a),), lambda x: Curved("square", x), approximates=approximates)
        for mask, value in ((a, b), (b, a)):
            finite = self.values.finite(mask)
            if finite is not None and set(finite) <= {0, 1}:
                return Recipe((term(mask), term(value)), Masked)
        scaled = self.scaled(a, b)
        if scaled is not None:
            return scaled
        return Recipe((term(a), term(b)), Product, approximates=approximates)

    def scaled(self, a: Node, b: Node) -> Linear | None:
        """Return n·x, for an integer n, as a weighted sum of x and of x masked by digits of n.

        The digits represent n minus the minimum of n. Their weights are powers of two, except for the
        weight of the first digit. The masked x is x if the digit is 1, and 0 otherwise. Compared with a
        product by ReLU units, masks have smaller rounding errors and need fewer units. Return None if
        no factor is an integer with a small range, or if units multiply almost exactly.
        """
        target = self.known.target
        if target.feed_forward == "glu" or (target.feed_forward, target.dtype) == ("gelu", "float64"):
            return None
        factors = [
            (not self._by_position(factor), digits, factor is b)
            for factor in (a, b)
            if (digits := self._digits(factor)) is not None
        ]
        if not factors:
            return None
        _, digits, swapped = min(factors)
        factor, x = (b, a) if swapped else (a, b)
        integers = self.values.integers(factor)
        assert integers is not None
        low, high = int(integers.low), int(integers.high)
        rest = build("subtract", factor, constant(low)) if low else factor
        total = term(x, float(low)) if low else Linear()
        # The first digit has the weight that remains of the maximum, so that bounds are tight.
        worth = high - low - (2 ** (digits - 1) - 1)
        first = build("indicator", build("greater_equal", rest, constant(2 ** (digits - 1))))
        total = total.plus(term(build("if_else", first, x, ZERO), float(worth)))
        rest = build("subtract", rest, build("multiply", first, constant(worth)))
        for place in range(digits - 1):
            shifted = build("floor_divide", rest, constant(2**place)) if place else rest
            masked = build("if_else", build("modulo", shifted, constant(2)), x, ZERO)
            total = total.plus(term(masked, 2.0**place))
        return total

    def _digits(self, node: Node) -> int | None:
        """Return the number of binary digits of an integer factor, or None if it is not suitable."""
        integers = self.values.integers(node)
        if integers is None or self.values.finite(node) is None or self.number(node) is not None:
            return None
        digits = int(integers.high - integers.low).bit_length()
        return digits if digits <= _MAX_DIGITS else None

    def _choice(self, condition: Node, a: Node, b: Node) -> Linear | Recipe:
        boolean = self._boolean(condition)
        if self.number(b) == 0.0:
            if a.op == "if_else" and a.inputs[0] is condition and self.number(a.inputs[2]) == 0.0:
                return term(a)
            return Recipe((term(boolean), term(a)), Masked)
        if self.number(b) is not None:
            closed = term(build("not", boolean), self.number(b) or 0.0)
            return closed.plus(term(build("if_else", boolean, a, ZERO)))
        otherwise = build("if_else", build("not", boolean), b, ZERO)
        if self.number(a) == 0.0:
            return term(otherwise)
        return term(build("if_else", boolean, a, ZERO)).plus(term(otherwise))

    def _curve(self, name: str, x: Node, node: Node) -> Recipe:
        def made(form: Form, *softmax: Form) -> Curved:
            known = (softmax[0], softmax[1]) if softmax else None
            bound = self._at_most.get(node, math.inf)
            return Curved(name, form, node in self._relative, bound, known)

        beside = tuple(map(term, self._softmax.get(node, ())))
        return Recipe((term(x),), made, beside, approximates=True)

    def _quotient(self, node: Node) -> Linear | Recipe:
        a, b = node.inputs
        if self.number(a) == 1.0:
            return self._curve("reciprocal", b, node)
        mask, exponential = _unmasked(a)
        least = self._least(b)
        positive = least is None or least > 0
        if exponential.op == "exp" and self._by_position(mask) and positive:
            z, log = exponential.inputs[0], build("log", b)
            inverse = build("exp", build("subtract", z, log))
            self._relative.add(exponential)
            self._at_most[inverse] = self._greatest_log(a, b)
            if self._at_most[inverse] < math.inf:
                self._softmax[inverse] = z, log
            return term(inverse if mask is ONE else build("if_else", mask, inverse, ZERO))
        return term(build("multiply", a, build("divide", ONE, b)))

    def _greatest_log(self, a: Node, b: Node) -> float:
        """Return an upper bound on log(a/b) if b is a multiple of a mean of values of a.

        Return infinity if b is not known to have this form, or if no bound is known.
        """
        mask, total = _unmasked(b, otherwise=None)
        factor = 1.0
        while total.op == "multiply" and (number := self.number(total.inputs[0])) is not None:
            factor, total = factor * number, total.inputs[1]
        if total.op != "aggregate" or total.inputs[1] is not a or factor <= 0:
            return math.inf
        inside, _ = _unmasked(a)
        pattern = self.known.selectors.pattern(total.inputs[0])
        if pattern is None or not self._by_position(mask):
            return math.inf
        here = np.array([bool(v) for v in self.values.at_positions(inside)])
        divided = np.array([bool(v) for v in self.values.at_positions(mask)])
        if not pattern.diagonal()[here].all() or not divided[here].all():
            return math.inf
        return math.log(float(pattern[here].sum(axis=1).max()) / factor) if here.any() else math.inf

    def _least(self, node: Node) -> float | None:
        """Return a lower bound on an s-op with finitely many values or integer values, otherwise None.

        An s-op that may be 0 or negative must not be rewritten with its logarithm: lookup tables store
        an arbitrary number for an undefined logarithm. For other s-ops, the gate of the logarithm
        raises an error unless the argument is positive.
        """
        finite, integers = self.values.finite(node), self.values.integers(node)
        if finite is not None:
            return min(self.known.codes.numbers(finite, node))
        return None if integers is None else integers.low

    def _power(self, node: Node) -> Node:
        base, exponent = node.inputs
        number = self.number(exponent)
        if number is not None and number == int(number) and 1 <= abs(number) <= 64:
            whole = _to_the(base, abs(int(number)))
            return whole if number > 0 else build("divide", ONE, whole)
        if number == 0.5:
            return build("sqrt", base)
        constant_base = self.number(base)
        if constant_base is not None and constant_base > 0:
            return build("exp", build("multiply", exponent, constant(math.log(constant_base))))
        least = self._least(base)
        if least is not None and least <= 0:
            raise CompileError(
                f"expected a positive base of a power, got a base that may be {least:g}",
                abbreviate(node),
            )
        return build("exp", build("multiply", exponent, build("log", base)))

    def _comparison(self, node: Node) -> Linear | Recipe:
        a, b = node.inputs
        width = self._apart(a, b)
        if width is None:
            raise CompileError(
                "expected a minimum difference between unequal real numbers that are compared, got "
                "none; "
                "try separation=…",
                abbreviate(node),
            )
        if node.op in ("equal", "not_equal"):
            above = term(build("greater", a, b)).plus(term(build("greater", b, a)))
            return above if node.op == "not_equal" else above.times(-1.0).plus(Linear(constant=1.0))
        swapped, opposite = _ORDERINGS[node.op]
        if swapped:
            a, b = b, a
        if opposite:
            return term(build("greater", a, b), -1.0).plus(Linear(constant=1.0))
        if node.op != "greater":
            return term(build("greater", a, b))
        return Recipe((term(a).plus(term(b, -1.0)),), lambda x: Ramp(x, width), approximates=True)

    def _apart(self, a: Node, b: Node) -> float | None:
        """Return a lower bound on the distance of different values of two s-ops; None if it is unknown.

        The bound follows from the declared separation, from possible values, or from means over the
        same keys.
        """
        if self.known.target.separation is not None:
            # Compared numbers are equal or differ by at least the separation. Rewritten comparisons
            # compare their difference with half of the separation.
            return self.known.target.separation / 2
        if self.values.integers(a) is not None and self.values.integers(b) is not None:
            return 1.0
        if self._means_of_the_same_keys(a, b):
            return (1 - _LAST_BITS) / self.known.target.longest
        first, second = self.values.finite(a), self.values.finite(b)
        if first is None or second is None or any(isinstance(v, str) for v in (*first, *second)):
            return None
        ones, others = (
            np.array(sorted(set(self.known.codes.numbers(part, a)))) for part in (first, second)
        )
        below, above = np.searchsorted(ones, others, "left") - 1, np.searchsorted(ones, others, "right")
        nearest = [others[below >= 0] - ones[below[below >= 0]]]
        nearest.append(ones[above[above < len(ones)]] - others[above < len(ones)])
        return float(np.concatenate(nearest).min(initial=math.inf))

    def _means_of_the_same_keys(self, a: Node, b: Node) -> bool:
        """Return whether two s-ops are means of integers over the same keys: k/m and l/m.

        One s-op may also be the difference of two such means, if the other s-op is 0. Return False for
        large integers, so that the rounded means are equal only if k = l.
        """
        for difference, other in ((a, b), (b, a)):
            if self.number(other) == 0.0 and difference.op == "subtract":
                a, b = difference.inputs
                break
        if not (a.op == b.op == "aggregate" and a.inputs[0] is b.inputs[0]):
            return False
        for mean in (a, b):
            integers = self.values.integers(mean.inputs[1])
            if integers is None or not isinstance(mean.default, int):
                return False
            if integers.largest * self.known.target.longest > _MAX_SUM:
                return False
        return True


def _unmasked(node: Node, otherwise: Node | None = ZERO) -> tuple[Node, Node]:
    """Return (mask, s-op) if ``node`` is ``s-op if mask else 0``, otherwise (1, ``node``).

    With ``otherwise=None``, the other branch may be any s-op.
    """
    if node.op == "if_else" and (otherwise is None or node.inputs[2] is otherwise):
        return node.inputs[0], node.inputs[1]
    return ONE, node


def _to_the(base: Node, exponent: int) -> Node:
    """Return a positive integer power of an s-op, by repeated squaring."""
    power: Node | None = None
    while exponent:
        if exponent & 1:
            power = base if power is None else build("multiply", power, base)
        exponent >>= 1
        if exponent:
            base = build("multiply", base, base)
    assert power is not None
    return power
