"""An evaluator of claims at one point, on fractions.

The evaluator reads the JSON of a program and the parts of formulas. It uses no executor and no
arithmetic of Locum. It is strict: an operation without a value is an error even if its result is not
used. Irrational numbers are decimals with 60 digits. A comparison that the digits do not decide raises
:class:`UndecidedError`.
"""

from __future__ import annotations

import decimal
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias

from locum.graph import dumps
from locum.proofs import Claim, Formula

#: A value at a position. Irrational numbers are decimals.
Value: TypeAlias = "bool | Fraction | Decimal"
#: The heads of the families, by name and size.
Heads: TypeAlias = Mapping[tuple[str, int], int]
#: The keys that each query selects.
Selector: TypeAlias = list[list[int]]
Matrix: TypeAlias = list[list[Value]]

_CONTEXT = decimal.Context(prec=60, Emax=10**6, Emin=-(10**6))
#: Relative differences below which decimals are not distinguished, and above which they are different.
_SAME, _DIFFERENT = Decimal("1e-40"), Decimal("1e-20")
_LARGEST_EXPONENT = 64
_MOST_BITS = 20_000

#: What :func:`judge` returns.
HOLDS, FAILS, OUTSIDE, NO_REFERENCE, UNDECIDED = (
    "holds",
    "fails",
    "outside",
    "no reference",
    "undecided",
)


class NoValueError(Exception):
    """An operation has no value."""


class UndecidedError(Exception):
    """The digits do not decide a comparison, or the evaluator does not support an operation."""


def judge(claim: Claim, point: Sequence[Fraction]) -> str:
    """Return whether a claim holds at a point.

    ``OUTSIDE`` means that the point does not satisfy the conditions. ``NO_REFERENCE`` means that the
    reference formula has no value.
    """
    if claim.integer and any(x.denominator != 1 for x in point):
        return OUTSIDE
    with decimal.localcontext(_CONTEXT):
        try:
            return _judge(claim, point)
        except (UndecidedError, decimal.DecimalException):
            return UNDECIDED


def _judge(claim: Claim, point: Sequence[Fraction]) -> str:
    formulas = _Formulas(claim, point)
    inputs = list(formulas.inputs.values())
    try:
        for condition, relation in claim.conditions:
            sign = compare(formulas.evaluate(condition)[0][0], Fraction(0))
            if not (sign > 0 if relation == ">" else sign != 0):
                return OUTSIDE
    except NoValueError:
        return OUTSIDE
    try:
        expected = [value for row in formulas.evaluate(claim.reference) for value in row]
    except NoValueError:
        return NO_REFERENCE
    tokens: list[Value] = [
        Fraction(token) if isinstance(token, int) else inputs[token[0]][token[1]][token[2]]
        for token in claim.layout
    ]
    try:
        values = Program(json.loads(dumps(claim.program))["nodes"], tokens).evaluate()
    except NoValueError:
        return FAILS
    found = [values[place] for row in claim.places for place in row]
    verdicts = [_equal(a, b) for a, b in zip(found, expected, strict=True)]
    if False in verdicts:
        return FAILS
    return UNDECIDED if None in verdicts else HOLDS


def _equal(a: Value, b: Value) -> bool | None:
    """Return whether two results are equal; None if the digits do not decide it."""
    a, b = _number(a), _number(b)
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a == b
    a, b = _decimal(a), _decimal(b)
    difference, scale = abs(a - b), 1 + abs(a) + abs(b)
    if difference <= _SAME * scale:
        return True
    return False if difference >= _DIFFERENT * scale else None


# Scalars ------------------------------------------------------------------------------------------


def _number(value: Value) -> Fraction | Decimal:
    return Fraction(int(value)) if isinstance(value, bool) else value


def _decimal(value: Fraction | Decimal) -> Decimal:
    if isinstance(value, Decimal):
        return value
    return Decimal(value.numerator) / Decimal(value.denominator)


def _fraction(value: Value) -> Fraction:
    number = _number(value)
    if isinstance(number, Decimal):
        raise UndecidedError("a decimal is rounded to an integer")
    return number


def compare(left: Value, right: Value) -> int:
    """Return the sign of left − right."""
    a, b = _number(left), _number(right)
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return (a > b) - (a < b)
    a, b = _decimal(a), _decimal(b)
    if abs(a - b) <= _DIFFERENT * (1 + abs(a) + abs(b)):
        raise UndecidedError("two decimals are close")
    return 1 if a > b else -1


def _is_true(value: Value) -> bool:
    return value if isinstance(value, bool) else compare(value, Fraction(0)) != 0


def _calculate(operation: Callable[[Any, Any], Any]) -> Callable[[Value, Value], Value]:
    def calculated(left: Value, right: Value) -> Value:
        a, b = _number(left), _number(right)
        if isinstance(a, Fraction) and isinstance(b, Fraction):
            exact: Fraction = operation(a, b)
            if max(exact.numerator.bit_length(), exact.denominator.bit_length()) > _MOST_BITS:
                raise UndecidedError("a number is too large")
            return exact
        inexact: Decimal = operation(_decimal(a), _decimal(b))
        return inexact

    return calculated


def _divide(a: Value, b: Value) -> Value:
    if compare(b, Fraction(0)) == 0:
        raise NoValueError("division by zero")
    return _calculate(lambda x, y: x / y)(a, b)


def _floor_divide(left: Value, right: Value) -> Value:
    a, b = _fraction(left), _fraction(right)
    if b == 0:
        raise NoValueError("division by zero")
    return Fraction(math.floor(a / b))


def _modulo(a: Value, b: Value) -> Value:
    return _fraction(a) - _fraction(b) * _fraction(_floor_divide(a, b))


def _power(left: Value, right: Value) -> Value:
    a, b = _number(left), _number(right)
    if isinstance(b, Fraction) and b.denominator == 1:
        exponent = int(b)
        if abs(exponent) > _LARGEST_EXPONENT:
            raise UndecidedError("a large exponent")
        if exponent < 0 and compare(a, Fraction(0)) == 0:
            raise NoValueError("zero to a negative power")
        return a**exponent
    if isinstance(a, Fraction) and a == 1:
        return a
    sign = compare(a, Fraction(0))
    if not isinstance(b, Fraction) and sign <= 0:
        raise UndecidedError("a power of a number that is not positive")
    if sign < 0:
        raise NoValueError("a negative number to a power that is not an integer")
    if sign == 0:
        if compare(b, Fraction(0)) < 0:
            raise NoValueError("zero to a negative power")
        return Fraction(0)
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        root = _find_root(a, b.denominator)
        if root is not None:
            return _power(root, Fraction(b.numerator))
    return (_decimal(b) * _decimal(a).ln()).exp()


def _find_root(value: Fraction, degree: int) -> Fraction | None:
    parts = []
    for part in (value.numerator, value.denominator):
        low, high = 0, 2 if degree > part.bit_length() else part + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if middle**degree <= part else (low, middle)
        if low**degree != part:
            return None
        parts.append(low)
    return Fraction(*parts)


def _sqrt(value: Value) -> Value:
    a = _number(value)
    if compare(a, Fraction(0)) < 0:
        raise NoValueError("the square root of a negative number")
    root = _find_root(a, 2) if isinstance(a, Fraction) else None
    return _decimal(a).sqrt() if root is None else root


def _log(value: Value) -> Value:
    a = _number(value)
    if compare(a, Fraction(0)) <= 0:
        raise NoValueError("the logarithm of a number that is not positive")
    return Fraction(0) if a == 1 else _decimal(a).ln()


def _exp(value: Value) -> Value:
    a = _number(value)
    return Fraction(1) if a == 0 else _decimal(a).exp()


def _tanh(value: Value) -> Value:
    a = _number(value)
    if a == 0:
        return Fraction(0)
    square = (2 * _decimal(a)).exp()
    return (square - 1) / (square + 1)


def _unsupported(value: Value) -> Value:
    if _number(value) == 0:
        return Fraction(0)  # erf and sin
    raise UndecidedError("a function without an implementation")


def _constant(value: Any) -> Value:
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return Fraction(value)
    raise UndecidedError(f"the constant {value!r}")


def _absolute(value: Value) -> Value:
    number = _number(value)
    return -number if number < 0 else number


def _if_else(condition: Value, then: Value, otherwise: Value) -> Value:
    return then if _is_true(condition) else otherwise


def _lookup(value: Value, table: Sequence[Sequence[Any]]) -> Value:
    for key, entry in table:
        if compare(value, _constant(key)) == 0:
            return _constant(entry)
    raise NoValueError("the table has no such key")


_add = _calculate(lambda a, b: a + b)
_subtract = _calculate(lambda a, b: a - b)
_multiply = _calculate(lambda a, b: a * b)
_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "==": lambda sign: sign == 0,
    "!=": lambda sign: sign != 0,
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
}
ELEMENTWISE: dict[str, Callable[..., Value]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "floor_divide": _floor_divide,
    "modulo": _modulo,
    "power": _power,
    "negate": lambda a: -_number(a),
    "absolute": _absolute,
    "floor": lambda a: Fraction(math.floor(_fraction(a))),
    "round": lambda a: Fraction(round(_fraction(a))),
    "sqrt": _sqrt,
    "log": _log,
    "exp": _exp,
    "tanh": _tanh,
    "erf": _unsupported,
    "sin": _unsupported,
    "cos": lambda a: _subtract(Fraction(1), _unsupported(a)),
    "minimum": lambda a, b: a if compare(a, b) < 0 else b,
    "maximum": lambda a, b: a if compare(a, b) > 0 else b,
    "and": lambda a, b: _is_true(a) & _is_true(b),
    "or": lambda a, b: _is_true(a) | _is_true(b),
    "not": lambda a: not _is_true(a),
    "if_else": _if_else,
    "indicator": lambda a: Fraction(int(_is_true(a))),
    "equal": lambda a, b: compare(a, b) == 0,
    "not_equal": lambda a, b: compare(a, b) != 0,
    "less": lambda a, b: compare(a, b) < 0,
    "less_equal": lambda a, b: compare(a, b) <= 0,
    "greater": lambda a, b: compare(a, b) > 0,
    "greater_equal": lambda a, b: compare(a, b) >= 0,
    "member": lambda a, values: any(compare(a, _constant(value)) == 0 for value in values),
    "lookup": _lookup,
}


# Programs -----------------------------------------------------------------------------------------


class Program:
    """A program, evaluated on tokens."""

    def __init__(self, rows: Sequence[Any], tokens: Sequence[Value]) -> None:
        self.rows = rows
        self.tokens = tokens
        self.positions = range(len(tokens))
        self.values: dict[Any, Any] = {}
        self.free: list[frozenset[tuple[str, int]]] = []
        for op, inputs, attributes in rows:
            families = [self.free[number] for number in inputs]
            if op == "family":
                self.free.append(frozenset([(attributes["name"], attributes["size"])]))
            elif op == "sum_over":
                self.free.append(families[0].difference(*families[1:]))
            else:
                self.free.append(frozenset().union(*families))

    def evaluate(self) -> list[Value]:
        """Return the values of the last row at all positions."""
        result: list[Value] = self._value(len(self.rows) - 1, {})
        return result

    def _value(self, number: int, heads: Heads) -> Any:
        key = number, tuple(sorted((family, heads[family]) for family in self.free[number]))
        if key not in self.values:
            self.values[key] = self._evaluate(self.rows[number], heads)
        return self.values[key]

    def _evaluate(self, row: Any, heads: Heads) -> Any:
        op, inputs, attributes = row
        if op == "sum_over":
            return self._sum(inputs[0], [self.rows[number][2] for number in inputs[1:]], heads)
        if op == "tokens":
            if attributes["cast"] not in ("asis", "float", "int"):
                raise UndecidedError("a cast")
            return self.tokens
        if op in ("indices", "length", "constant", "family"):
            return [self._leaf(op, attributes, position, heads) for position in self.positions]
        operands = [self._value(n, heads) for n in inputs]
        if op in ELEMENTWISE:
            function = ELEMENTWISE[op]
            return [function(*values, **attributes) for values in zip(*operands, strict=True)]
        method: Callable[..., Any] = getattr(self, f"_{op}")
        return method(*operands, **attributes)

    def _leaf(self, op: str, attributes: Any, position: int, heads: Heads) -> Value:
        if op == "constant":
            return _constant(attributes["value"])
        if op == "family":
            return Fraction(heads[attributes["name"], attributes["size"]])
        return Fraction(position if op == "indices" else len(self.tokens))

    def _sum(self, body: int, families: Sequence[Any], heads: Heads) -> list[Value]:
        names = [(family["name"], family["size"]) for family in families]
        total: list[Value] = [Fraction(0)] * len(self.tokens)
        for chosen in itertools.product(*(range(size) for _, size in names)):
            part = self._value(body, {**heads, **dict(zip(names, chosen, strict=True))})
            total = [_add(a, b) for a, b in zip(total, part, strict=True)]
        return total

    def _select(self, keys: list[Value], queries: list[Value], predicate: str) -> Selector:
        holds = _COMPARISONS[predicate]
        return [[k for k in self.positions if holds(compare(keys[k], query))] for query in queries]

    def _selector_and(self, a: Selector, b: Selector) -> Selector:
        return [[k for k in row if k in other] for row, other in zip(a, b, strict=True)]

    def _selector_or(self, a: Selector, b: Selector) -> Selector:
        return [sorted({*row, *other}) for row, other in zip(a, b, strict=True)]

    def _selector_not(self, a: Selector) -> Selector:
        return [[k for k in self.positions if k not in row] for row in a]

    def _best(self, a: Selector, scores: list[Value]) -> Selector:
        return [[k for k in row if all(compare(scores[k], scores[o]) >= 0 for o in row)] for row in a]

    def _selector_width(self, a: Selector) -> list[Value]:
        return [Fraction(len(row)) for row in a]

    def _aggregate(self, a: Selector, values: list[Value], default: Any) -> list[Value]:
        if all(isinstance(value, bool) for value in values) and any(len(row) > 1 for row in a):
            raise NoValueError("a mean of booleans")
        return [self._mean([values[k] for k in row], default) for row in a]

    def _mean(self, chosen: list[Value], default: Any) -> Value:
        if not chosen:
            return _constant(default)
        return chosen[0] if len(chosen) == 1 else _divide(reduce(_add, chosen), Fraction(len(chosen)))


# Formulas -----------------------------------------------------------------------------------------


class _Formulas:
    """Formulas, evaluated on input matrices."""

    def __init__(self, claim: Claim, point: Sequence[Fraction]) -> None:
        entries = iter(point)
        self.inputs: dict[str, Matrix] = {
            name: [[next(entries) for _ in range(columns)] for _ in range(rows)]
            for name, rows, columns in (one.attribute for one in claim.inputs)
        }
        self.values: dict[Formula, Matrix] = {}

    def evaluate(self, formula: Formula) -> Matrix:
        """Return the value of a formula."""
        if formula not in self.values:
            operands = list(map(self.evaluate, formula.operands))
            self.values[formula] = self._evaluate(formula.op, operands, formula.attribute)
        return self.values[formula]

    def _evaluate(self, op: str, operands: list[Matrix], attribute: Any) -> Matrix:
        match op:
            case "input":
                return self.inputs[attribute[0]]
            case "constant":
                return [[Fraction(attribute[0])] * attribute[2] for _ in range(attribute[1])]
            case "identity":
                return [[Fraction(int(i == j)) for j in range(attribute)] for i in range(attribute)]
            case "entries":
                flat = [part[0][0] for part in operands]
                return [flat[i : i + attribute[1]] for i in range(0, len(flat), attribute[1])]
            case "entry":
                return [[operands[0][attribute[0]][attribute[1]]]]
            case "transpose":
                return [list(column) for column in zip(*operands[0], strict=True)]
            case "matmul":
                columns = list(zip(*operands[1], strict=True))
                return [[_inner(row, column) for column in columns] for row in operands[0]]
            case "beside":
                return [
                    [entry for row in rows for entry in row] for rows in zip(*operands, strict=True)
                ]
            case "below":
                return [row for part in operands for row in part]
            case "softmax":
                causal = attribute == "causal"
                return [_softmax(row, i if causal else len(row)) for i, row in enumerate(operands[0])]
            case "layer_norm":
                return [_layer_norm(row, operands[1][0][0]) for row in operands[0]]
            case "hardmax":
                return [_hardmax(row) for row in operands[0]]
            case "determinant" | "permanent":
                return [[_permute(operands[0], op == "determinant")]]
            case "cofactors":
                return _cofactors(operands[0])
            case "inverse":
                determinant = _permute(operands[0], True)
                transposed = zip(*_cofactors(operands[0]), strict=True)
                return [[_divide(entry, determinant) for entry in row] for row in transposed]
            case "sort":
                return [_sort(row, attribute) for row in operands[0]]
            case "match2":
                return [[_match(a, row, attribute) for a in row] for row in operands[0]]
        function = ELEMENTWISE[op]
        return [
            [function(*entries) for entries in zip(*rows, strict=True)]
            for rows in zip(*operands, strict=True)
        ]


def _inner(row: Sequence[Value], column: Sequence[Value]) -> Value:
    return reduce(_add, [_multiply(a, b) for a, b in zip(row, column, strict=True)])


def _softmax(row: list[Value], last: int) -> list[Value]:
    weights = [_exp(value) if k <= last else Fraction(0) for k, value in enumerate(row)]
    return [_divide(weight, reduce(_add, weights)) for weight in weights]


def _layer_norm(row: list[Value], epsilon: Value) -> list[Value]:
    count = Fraction(len(row))
    mean = _divide(reduce(_add, row), count)
    centred = [_subtract(value, mean) for value in row]
    variance = _divide(_inner(centred, centred), count)
    return [_divide(value, _sqrt(_add(variance, epsilon))) for value in centred]


def _hardmax(row: list[Value]) -> list[Value]:
    greatest = [all(compare(value, other) >= 0 for other in row) for value in row]
    return [Fraction(int(one), sum(greatest)) for one in greatest]


def _permute(a: Matrix, signed: bool) -> Value:
    total: Value = Fraction(0)
    for order in itertools.permutations(range(len(a))):
        inversions = sum(p > q for p, q in itertools.combinations(order, 2))
        sign: Value = Fraction(-1 if signed and inversions % 2 else 1)
        factors = [row[j] for row, j in zip(a, order, strict=True)]
        total = _add(total, reduce(_multiply, factors, sign))
    return total


def _cofactors(a: Matrix) -> Matrix:
    size = range(len(a))
    result = []
    for i in size:
        row = []
        for j in size:
            minor = [[a[s][t] for t in size if t != j] for s in size if s != i]
            row.append(_multiply(Fraction((-1) ** (i + j)), _permute(minor, True)))
        result.append(row)
    return result


def _sort(row: list[Value], group: int) -> list[Value]:
    result: list[Value] = []
    for start in range(0, len(row), group):
        part: list[Value] = []
        for value in row[start : start + group]:
            place = sum(compare(other, value) > 0 for other in part)
            part.insert(place, value)
        result += part
    return result


def _match(a: Value, row: list[Value], modulus: int) -> Value:
    return Fraction(int(any(_modulo(_add(a, b), Fraction(modulus)) == 0 for b in row)))
