"""Bound the error of symbolic feed-forwards, whose arguments may have errors.

Intervals and errors are propagated through every operation of an expression. The result of a
discontinuous operation, such as a comparison or a remainder, may be any of its values if an argument
may have an error. Tables over sources, counts and rounded sums ignore small errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from locum.execution.arrays import erf
from locum.execution.types import possible_types, types_of
from locum.graph import OPERATIONS, Atom, Node
from locum.graph.atoms import LARGEST_EXACT
from locum.graph.operations import TRANSCENDENTAL
from locum.networks.compiler.bounds.intervals import ErrorInterval, ErrorIntervals, representation_error
from locum.networks.compiler.network.forms import SMALLEST, Vector, lowest_bits, sums_exactly
from locum.networks.compiler.network.network import Unit
from locum.networks.compiler.network.network_lowering import Lowered
from locum.networks.compiler.network.roles import Role, Roles, in_order
from locum.networks.compiler.program.exactness import jumps_on
from locum.networks.compiler.program.sources import table_of

#: Maximum number of rounding errors in a library function (exp, tanh, …).
_LIBRARY = 8


@dataclass
class FunctionBounds:
    """The error intervals of the outputs of symbolic feed-forwards."""

    intervals: ErrorIntervals
    lowered: Lowered
    #: The intervals of constants, which many units read.
    _constants: dict[Node, ErrorInterval] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._boolean = self._between(0.0, 1.0, 1.0)

    @property
    def roles(self) -> Roles:
        """The role of each s-op in the network."""
        return self.lowered.roles

    def interval(self, unit: Unit) -> ErrorInterval:
        """Return the error interval of the output of a unit."""
        read = {node: self.intervals.form(form) for node, form in unit.reads.items()}
        known: dict[Node, ErrorInterval] = {}

        def below(node: Node) -> list[Node]:
            stops = self.roles.of(node) is Role.COUNT or (node in read and node is not unit.node)
            return [] if stops else self.roles.reads(node)

        with np.errstate(all="ignore"):
            for node in in_order(unit.node, below):
                counts = self.roles.of(node) is Role.COUNT
                if counts and self.lowered.schedule.ready[node] == unit.time:
                    bound = self._count(node, read[node])
                elif node in read and node is not unit.node:
                    bound = read[node]
                else:
                    bound = self._interval(node, known)
                known[node] = self._cleaned(bound)
        return known[unit.node]

    def _count(self, node: Node, share: ErrorInterval) -> ErrorInterval:
        """Bound the count that is computed from a share, the attention weight of one key.

        The result is exact if the error of the share is small enough.
        """
        least = self.intervals.target.shortest if node.op == "length" else 0
        bound = self._between(least, self.intervals.size, 1.0)
        near = 1 / (4 * (self.intervals.size + 1) ** 2)
        return bound if (share.error < near).all() else self._any(bound)

    def _cleaned(self, bound: ErrorInterval) -> ErrorInterval:
        """Replace bounds that are NaN by infinite bounds."""
        parts = bound.low, bound.high, bound.error
        # A sum of squares is NaN only if one of the numbers is NaN.
        if not math.isnan(sum(float(part.dot(part)) for part in parts)):
            return bound
        return replace(
            bound,
            low=np.where(np.isnan(bound.low), -np.inf, bound.low),
            high=np.where(np.isnan(bound.high), np.inf, bound.high),
            error=np.where(np.isnan(bound.error), np.inf, bound.error),
        )

    def _interval(self, node: Node, known: Mapping[Node, ErrorInterval]) -> ErrorInterval:
        if node in self._constants:
            return self._constants[node]
        constant = self.roles.values.constant(node)
        if constant is not None:
            self._constants[node] = self._among([constant], node)
            return self._constants[node]
        if self.roles.of(node) is Role.TABLE:
            return self._table(node, known)
        inputs = [known[i] for i in self.roles.reads(node)]
        bound = self._computed(node, inputs)
        if any(part.unbounded for part in inputs):
            return replace(bound, unbounded=True)
        return bound

    def _table(self, node: Node, known: Mapping[Node, ErrorInterval]) -> ErrorInterval:
        """Bound the result of a lookup, which returns the value of the nearest key.

        An error of a source has no effect if it is less than half of the smallest distance between
        keys.
        """
        table = self.roles.table(node)
        bound = self._among([v for v in dict.fromkeys(table.values) if v is not None], node)
        for by, domain in zip(table.by, table.domains, strict=True):
            keys = sorted(self.roles.known.codes.numbers(domain, by))
            gap = min((after - key for key, after in pairwise(keys)), default=math.inf)
            if (known[by].error >= gap / 2).any():
                return self._any(bound)
        return bound

    def _among(self, atoms: Sequence[Atom], node: Node) -> ErrorInterval:
        """Bound a value that is one of these atoms, rounded to the type of the network."""
        numbers = np.array(self.roles.known.codes.numbers(atoms, node) or [0.0])
        step = min(float(lowest_bits(numbers).min()), 1.0)
        bound = self._between(float(numbers.min()), float(numbers.max()), step)
        return replace(bound, error=bound.error + representation_error(numbers, self._dtype))

    def _between(self, low: float, high: float, step: float) -> ErrorInterval:
        """Bound a multiple of ``step`` between ``low`` and ``high`` that has no error."""
        zero = np.zeros(self.intervals.size)
        largest = max(abs(low), abs(high))
        exact = sums_exactly(largest, step, self.intervals.target.dtype)
        return ErrorInterval(zero + low, zero + high, zero, step if exact else 0.0)

    def _any(self, interval: ErrorInterval) -> ErrorInterval:
        """Return the interval with the largest error, as the network may compute any number in it."""
        return replace(interval, error=interval.high - interval.low, step=0.0)

    def _computed(self, node: Node, inputs: list[ErrorInterval]) -> ErrorInterval:
        if self.roles.values.is_integer_sum(node):  # the argument is an integer up to rounding errors
            bound = self._between(*self.roles.values.integers(node) or (-math.inf, math.inf), 1.0)
            return bound if (inputs[0].error < 0.25).all() else self._any(bound)
        jumps = jumps_on(node)
        at_jumps = [part for i, part in zip(node.inputs, inputs, strict=True) if i in jumps]
        off = not all(map(self._is_right, at_jumps))
        if OPERATIONS[node.op].group == "comparison" or node.op in _BOOLEAN:
            return self._any(self._boolean) if off else self._boolean
        if node.op == "lookup":
            bound = self._among(list(table_of(node).values()), node)
            return self._any(bound) if off else bound
        if node.op == "if_else":
            return self._choice(*inputs)
        if node.op not in _RULES:
            everything = np.full(self.intervals.size, np.inf)
            return ErrorInterval(-everything, everything, everything)
        bound = _RULES[node.op](*inputs)
        if off:
            return self._any(bound)
        largest = bound.largest
        if bound.exact and sums_exactly(float(largest.max()), bound.step, self._dtype):
            return bound
        right = self._dtype == "float64" and all(map(self._is_right, inputs))
        beyond = float(largest.max()) > LARGEST_EXACT and self._may_be_int(node)
        if right and node.op not in _LIBRARY_FUNCTIONS and not beyond:
            return replace(bound, step=0.0)  # a single operation, which dense execution rounds equally
        count = _LIBRARY if node.op in _LIBRARY_FUNCTIONS else 1
        rounding = count * self.intervals.unit * np.where(np.isfinite(largest), largest, 0.0)
        rounding = rounding + count * SMALLEST[self._dtype]
        unbounded = bound.unbounded or not np.isfinite(largest).all()
        return replace(bound, error=bound.error + rounding, step=0.0, unbounded=unbounded)

    def _may_be_int(self, node: Node) -> bool:
        """Return whether an s-op may be an integer of arbitrary size in dense execution."""
        vocabulary = self.intervals.target.vocabulary
        tokens = frozenset([int, float]) if vocabulary is None else types_of(vocabulary)
        return int in possible_types(node, tokens)[node]

    @property
    def _dtype(self) -> str:
        return self.intervals.target.dtype

    def _is_right(self, interval: ErrorInterval) -> bool:
        """Return whether the network certainly computes the same number as dense execution."""
        return not interval.unbounded and not interval.error.any()

    def _choice(self, condition: ErrorInterval, a: ErrorInterval, b: ErrorInterval) -> ErrorInterval:
        low, high = np.minimum(a.low, b.low), np.maximum(a.high, b.high)
        bound = ErrorInterval(low, high, np.maximum(a.error, b.error), min(a.step, b.step))
        return bound if self._is_right(condition) else self._any(bound)


_BOOLEAN = ("and", "or", "not", "indicator", "member")
#: Functions whose rounding errors may differ from dense execution.
_LIBRARY_FUNCTIONS = (*TRANSCENDENTAL, "sqrt", "power")

_Rule = Callable[..., ErrorInterval]


def _add(a: ErrorInterval, b: ErrorInterval) -> ErrorInterval:
    return ErrorInterval(a.low + b.low, a.high + b.high, a.error + b.error, min(a.step, b.step))


def _negate(a: ErrorInterval) -> ErrorInterval:
    return ErrorInterval(-a.high, -a.low, a.error, a.step)


def _multiply(a: ErrorInterval, b: ErrorInterval) -> ErrorInterval:
    corners = [_product(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    size_a, size_b = (np.maximum(np.abs(x.low), np.abs(x.high)) for x in (a, b))
    error = _product(size_a, b.error) + _product(size_b, a.error) + _product(a.error, b.error)
    return ErrorInterval(np.min(corners, axis=0), np.max(corners, axis=0), error, a.step * b.step)


def _product(a: Vector, b: Vector) -> Vector:
    """Multiply two vectors; the product of 0 and infinity is 0."""
    return np.where((a == 0) | (b == 0), 0.0, a * b)


def _divide(a: ErrorInterval, b: ErrorInterval) -> ErrorInterval:
    apart = (b.low - b.error > 0) | (b.high + b.error < 0)
    quotients = [x / y for x in (a.low, a.high) for y in (b.low, b.high)]
    low = np.where(apart, np.min(quotients, axis=0), -np.inf)
    high = np.where(apart, np.max(quotients, axis=0), np.inf)
    nearest = np.minimum(np.abs(b.low), np.abs(b.high)) - b.error
    largest = np.maximum(np.abs(low), np.abs(high))
    error = np.where(apart, (a.error + _product(largest, b.error)) / nearest, np.inf)
    # If the operands are exact, division by 0 is an error of the program itself.
    exact = np.where(apart | (a.error + b.error > 0), error, 0.0)
    return ErrorInterval(low, high, exact)


def _modulo(a: ErrorInterval, b: ErrorInterval) -> ErrorInterval:
    return ErrorInterval(
        np.minimum(b.low, 0.0), np.maximum(b.high, 0.0), np.zeros_like(a.low), min(a.step, b.step)
    )


def _floor_divide(a: ErrorInterval, b: ErrorInterval) -> ErrorInterval:
    apart = (b.low > 0) | (b.high < 0)
    nearest = np.where(apart, np.minimum(np.abs(b.low), np.abs(b.high)), b.step)
    reach = np.maximum(np.abs(a.low), np.abs(a.high)) / nearest + 1
    return ErrorInterval(-reach, reach, np.zeros_like(reach), 1.0)


def _absolute(a: ErrorInterval) -> ErrorInterval:
    crosses = (a.low < 0) & (a.high > 0)
    low = np.where(crosses, 0.0, np.minimum(np.abs(a.low), np.abs(a.high)))
    return ErrorInterval(low, np.maximum(np.abs(a.low), np.abs(a.high)), a.error, a.step)


def _extreme(pick: Callable[[Vector, Vector], Vector]) -> _Rule:
    def rule(a: ErrorInterval, b: ErrorInterval) -> ErrorInterval:
        error = np.maximum(a.error, b.error)
        return ErrorInterval(pick(a.low, b.low), pick(a.high, b.high), error, min(a.step, b.step))

    return rule


def _whole(function: Callable[[Vector], Vector]) -> _Rule:
    def rule(a: ErrorInterval) -> ErrorInterval:
        return ErrorInterval(function(a.low), function(a.high), np.zeros_like(a.low), 1.0)

    return rule


def _monotone(function: Callable[[Vector], Vector], slope: Callable[[Vector, Vector], Vector]) -> _Rule:
    """Return the rule for an increasing function whose slope is at most ``slope(low, high)``."""

    def rule(a: ErrorInterval) -> ErrorInterval:
        steepest = slope(a.low - a.error, a.high + a.error)
        return ErrorInterval(function(a.low), function(a.high), _product(steepest, a.error))

    return rule


def _sine(a: ErrorInterval) -> ErrorInterval:
    """Bound a sine or a cosine."""
    ones = np.ones_like(a.low)
    return ErrorInterval(-ones, ones, np.minimum(a.error, 2.0))


def _power(a: ErrorInterval, b: ErrorInterval) -> ErrorInterval:
    """Bound a power as exp(b·log a) for positive a; the result is unbounded for other a."""
    positive = a.low - a.error > 0
    logs = [np.log(np.where(positive, end, 1.0)) for end in (a.low, a.high)]
    nearest = np.where(positive, a.low - a.error, 1.0)
    bound = _RULES["exp"](_multiply(ErrorInterval(logs[0], logs[1], a.error / nearest), b))
    everything = np.full_like(a.low, np.inf)
    return ErrorInterval(
        np.where(positive, bound.low, -everything),
        np.where(positive, bound.high, everything),
        np.where(positive, bound.error, everything),
    )


_RULES: Mapping[str, _Rule] = {
    "add": _add,
    "subtract": lambda a, b: _add(a, _negate(b)),
    "negate": _negate,
    "multiply": _multiply,
    "divide": _divide,
    "modulo": _modulo,
    "floor_divide": _floor_divide,
    "power": _power,
    "absolute": _absolute,
    "minimum": _extreme(np.minimum),
    "maximum": _extreme(np.maximum),
    "floor": _whole(np.floor),
    "round": _whole(np.round),
    "exp": _monotone(np.exp, lambda low, high: np.exp(high)),
    "log": _monotone(np.log, lambda low, high: np.where(low > 0, 1 / low, np.inf)),
    "sqrt": _monotone(np.sqrt, lambda low, high: np.where(low > 0, 0.5 / np.sqrt(low), np.inf)),
    "tanh": _monotone(np.tanh, lambda low, high: np.ones_like(low)),
    "sin": _sine,
    "cos": _sine,
    "erf": _monotone(erf, lambda low, high: np.full_like(low, 2 / math.sqrt(math.pi))),
}
