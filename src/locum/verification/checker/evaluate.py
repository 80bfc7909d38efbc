"""The checker's evaluator of programs: every node on every position, in one case of a proof.

This is the definition of RASP once more, written for the checker alone: selectors are rows of bits,
``aggregate`` is a mean, a family is expanded head by head. What the case leaves open stays open (see
``scalars.py``); every operation that may have no value is a *site*, and the evaluator notes which sites
the case leaves open.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

from locum.errors import InputError
from locum.graph import Node, members, postorder, size_of
from locum.verification.checker.polynomials import TooLargeError
from locum.verification.checker.scalars import Scalars
from locum.verification.checker.values import (
    UNKNOWN,
    Missing,
    Open,
    Scalar,
    is_boolean,
    is_number,
    is_rational,
    length,
    simple,
    without_value,
)
from locum.verification.checker.work import OPERATION

#: Which head of each family is being evaluated.
Heads: TypeAlias = Mapping[Node, int]
#: A node and the heads of its free families.
Instance: TypeAlias = tuple[Node, tuple[int, ...]]
#: An operation that may have no value, at a position.
Site: TypeAlias = tuple[Node, tuple[int, ...], int]

#: What an operation on plain numbers costs, and a comparison that was made before, in steps.
PLAIN = 10
COMPARED_AGAIN = 30
#: Positions, and heads in all, at most.
MAX_LENGTH = 5_000
MAX_HEADS = 200_000

_RISKY = frozenset(("divide", "modulo", "floor_divide", "power", "log", "sqrt", "lookup"))
_PREDICATES: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "==": ("equal", operator.eq),
    "!=": ("not_equal", operator.ne),
    "<": ("less", operator.lt),
    "<=": ("less_equal", operator.le),
    ">": ("greater", operator.gt),
    ">=": ("greater_equal", operator.ge),
}


class NoValueError(InputError):
    """The program has no value in some case."""


class Row(NamedTuple):
    """Which keys a query selects, as bits: certainly, and possibly; and a number for what is open."""

    sure: int
    possible: int
    number: int = -1


#: The value of a node: scalars by position, or rows by query.
Values: TypeAlias = "list[Scalar] | list[Row]"


def require_numbers_only(program: Node) -> None:
    """Refuse programs with strings, infinities or casts that have no meaning for indeterminates."""
    if program.free:
        raise InputError("the program has families that no sum binds")
    for node in postorder(program):
        if node.op == "tokens" and node.attributes["cast"] in ("str", "bool"):
            raise InputError(f"expected tokens as numbers, got the cast {node.attributes['cast']}")
        for value in node.attributes.values():
            if node.op not in ("tokens", "family", "select"):
                _constants(value)


def _constants(value: Any) -> Any:
    """Read an attribute: floats as the rational numbers they are."""
    if isinstance(value, tuple):
        return tuple(_constants(part) for part in value)
    if isinstance(value, str):
        raise InputError("expected numbers and booleans in the program, got a string")
    if isinstance(value, float):
        if value - value != 0:
            raise InputError(f"expected finite numbers in the program, got {value}")
        return simple(Fraction(value))
    return value


class Evaluator:
    """One evaluation of a program in one case."""

    def __init__(self, scalars: Scalars, tokens: Sequence[Scalar]) -> None:
        if len(tokens) > MAX_LENGTH:
            raise TooLargeError(f"expected at most {MAX_LENGTH:,} tokens, got {len(tokens):,}")
        self.scalars = scalars
        self.spend = scalars.numbers.spend
        self.tokens = list(tokens)
        self.size = len(tokens)
        self.all = (1 << self.size) - 1
        self.memory: dict[Instance, Values] = {}
        self.open_sites: set[Site] = set()

    def evaluate(self, program: Node) -> Values:
        """Return the values of a program at all positions."""
        root: Instance = (program, ())
        stack: list[tuple[Instance, Heads, Iterator[tuple[Node, Heads]]]] = []
        if root not in self.memory:
            stack.append((root, {}, self._needed(program, {})))
        while stack:
            instance, heads, needed = stack[-1]
            for node, there in needed:
                other = _instance(node, there)
                if other not in self.memory:
                    stack.append((other, there, self._needed(node, there)))
                    break
            else:
                stack.pop()
                if instance not in self.memory:
                    self.memory[instance] = values = self._value(instance, heads)
                    self.scalars.numbers.keep(values)
        return self.memory[root]

    def _needed(self, node: Node, heads: Heads) -> Iterator[tuple[Node, Heads]]:
        if node.op != "sum_over":
            return iter([(i, heads) for i in node.inputs])
        body, *families = node.inputs
        count = 1
        for family in families:
            count *= size_of(family)
        if count > MAX_HEADS:
            raise TooLargeError(f"expected at most {MAX_HEADS:,} heads of one sum, got {count:,}")
        return ((body, {**heads, **member}) for member in members(families))

    def _value(self, instance: Instance, heads: Heads) -> Values:
        node, _ = instance
        self.spend(OPERATION + self.size)
        match node.op:
            case "tokens":
                if node.attributes["cast"] == "int" and not self.scalars.integer:
                    raise InputError("expected real tokens as they are, got the cast int")
                return self.tokens
            case "indices":
                return list(range(self.size))
            case "length":
                return [self.size] * self.size
            case "constant":
                return [_constants(node.attributes["value"])] * self.size
            case "family":
                return [heads[node]] * self.size
            case "sum_over":
                return self._sum_over(node, heads)
        inputs: list[Any] = [self.memory[_instance(i, heads)] for i in node.inputs]
        match node.op:
            case "select":
                return self._select(node, inputs[0], inputs[1])
            case "selector_and" | "selector_or":
                combine = operator.and_ if node.op == "selector_and" else operator.or_
                return [self._combined(node.op, combine, a, b) for a, b in zip(*inputs, strict=True)]
            case "selector_not":
                return [self._complement(row) for row in inputs[0]]
            case "best":
                return self._best(inputs[0], inputs[1])
            case "selector_width":
                return [self._width(row) for row in inputs[0]]
            case "aggregate":
                return self._aggregate(instance, inputs[0], inputs[1])
        return self._elementwise(instance, inputs)

    def _sum_over(self, node: Node, heads: Heads) -> Values:
        body, *families = node.inputs
        add = self.scalars.operations["add"]
        total: list[Scalar] = [0] * self.size
        for member in members(families):
            self.spend(PLAIN * self.size)
            part = self.memory[_instance(body, {**heads, **member})]
            total = [add(a, b) for a, b in zip(total, part, strict=True)]
        return total

    def _elementwise(self, instance: Instance, inputs: Sequence[list[Scalar]]) -> Values:
        node, heads = instance
        attributes = {name: _constants(value) for name, value in node.attributes.items()}
        function = self.scalars.operations[node.op]
        entries = sum(len(value) for value in attributes.values() if isinstance(value, tuple))
        self.spend(PLAIN * self.size * (1 + len(inputs) + entries))
        values = [function(*scalars, **attributes) for scalars in zip(*inputs, strict=True)]
        for position, value in enumerate(values):
            self._note(value, (node, heads, position), node.op in _RISKY)
        return values

    def _note(self, value: Scalar, site: Site, risky: bool) -> None:
        if isinstance(value, Missing):
            raise NoValueError(f"the program has no value in some case: {value.reason}")
        if risky and value is UNKNOWN:
            self.open_sites.add(site)

    # Selectors ------------------------------------------------------------------------------------

    def _select(self, node: Node, keys: list[Scalar], queries: list[Scalar]) -> list[Row]:
        name, holds = _PREDICATES[str(node.attributes["predicate"])]
        concrete = all(type(key) is bool or is_rational(key) for key in keys)
        rows: dict[Hashable, Row] = {}
        result = []
        each = 2 + max(map(length, keys), default=0) // 64 if concrete else COMPARED_AGAIN
        for query in queries:
            known = type(query) is bool or is_rational(query)
            mark: Hashable = (True, query) if known else (False, self.scalars.identity_of(query))
            if mark not in rows:
                self.spend(each * self.size)
                if concrete and known:
                    selected = sum(1 << k for k, key in enumerate(keys) if holds(key, query))
                    rows[mark] = Row(selected, selected)
                else:
                    rows[mark] = self._compared(name, keys, query)
            result.append(rows[mark])
        return result

    def _compared(self, name: str, keys: list[Scalar], query: Scalar) -> Row:
        sure = possible = 0
        marks = []
        for k, key in enumerate(keys):
            answer = self.scalars.compare(name, key, query)
            if isinstance(answer, Missing):
                raise NoValueError(f"the program has no value in some case: {answer.reason}")
            sure |= (answer is True) << k
            possible |= (answer is not False) << k
            if not isinstance(answer, bool):
                marks.append((k, self.scalars.identity_of(answer)))
        return self._row(sure, possible, ("cells", sure, tuple(marks)))

    def _row(self, sure: int, possible: int, key: Hashable) -> Row:
        if sure == possible:
            return Row(sure, possible)
        return Row(sure, possible, self.scalars.identity(key))

    def _combined(self, name: str, combine: Callable[[int, int], int], a: Row, b: Row) -> Row:
        sure, possible = combine(a.sure, b.sure), combine(a.possible, b.possible)
        return self._row(sure, possible, (name, a, b))

    def _complement(self, row: Row) -> Row:
        return self._row(self.all & ~row.possible, self.all & ~row.sure, ("not", row))

    def _best(self, rows: list[Row], scores: list[Scalar]) -> list[Row]:
        winners: dict[Row, Row] = {}
        for row in rows:
            if row not in winners:
                winners[row] = self._greatest(row, scores)
        return [winners[row] for row in rows]

    def _greatest(self, row: Row, scores: list[Scalar]) -> Row:
        """Keep of the selected keys those that no other selected key exceeds."""
        keys = list(bits(row.possible))
        self.spend(COMPARED_AGAIN * len(keys) ** 2)
        sure = possible = 0
        for k in keys:
            beaten: bool | None = False
            for other in keys:
                if other == k:  # (two unknown scores may be one object, and still differ)
                    continue
                exceeds = self.scalars.compare("greater", scores[other], scores[k])
                if isinstance(exceeds, Missing):
                    raise NoValueError(f"the program has no value in some case: {exceeds.reason}")
                if exceeds is True and row.sure >> other & 1:
                    beaten = True
                    break
                if exceeds is not False:
                    beaten = None
            if beaten is not True:
                possible |= 1 << k
                sure |= (beaten is False and row.sure >> k & 1) << k
        marks = tuple(self.scalars.identity_of(scores[k]) for k in keys)
        return self._row(sure, possible, ("best", row, marks))

    # Attention ------------------------------------------------------------------------------------

    def _width(self, row: Row) -> Scalar:
        low, high = row.sure.bit_count(), row.possible.bit_count()
        if low == high:
            return low
        return self.scalars.numbers.choice(("width", row), low, high, integer=True)

    def _aggregate(self, instance: Instance, rows: list[Row], values: list[Scalar]) -> Values:
        node, heads = instance
        self.spend(PLAIN * self.size)
        default = _constants(node.attributes["default"])
        if not any(map(is_number, values)):
            # As in RASP: a mean of booleans has no value, and then no position has one.
            several = [row.possible.bit_count() > 1 for row in rows]
            if all(map(is_boolean, values)) and any(row.sure.bit_count() > 1 for row in rows):
                raise NoValueError("the program has no value in some case: a mean of booleans")
            if any(several):
                self.open_sites.add((node, heads, -1))
        marks: tuple[int, ...] | None = None
        means: dict[Row, Scalar] = {}
        result = []
        for position, row in enumerate(rows):
            if row not in means:
                if row.sure != row.possible:
                    self.spend(self.size)
                if row.sure != row.possible and marks is None:
                    marks = tuple(self.scalars.identity_of(value) for value in values)
                means[row] = self._mean(row, values, default, marks)
            value = means[row]
            self._note(value, (node, heads, position), False)
            result.append(value)
        return result

    def _mean(
        self, row: Row, values: list[Scalar], default: Scalar, marks: tuple[int, ...] | None
    ) -> Scalar:
        keys = list(bits(row.possible))
        self.spend(PLAIN * len(keys))
        chosen = [values[k] for k in keys]
        if row.sure == row.possible:
            if not chosen:
                return default
            return chosen[0] if len(chosen) == 1 else self._average(chosen)
        trouble = without_value(chosen)
        if trouble is not None:
            return trouble
        candidates = chosen if row.sure else [*chosen, default]
        key = ("aggregate", row, marks, self.scalars.identity_of(default))
        if len(chosen) == 1 and all(map(is_boolean, candidates)):
            return Open(self.scalars.identity(key))
        if all(map(is_number, candidates)):
            return self.scalars.choice(key, candidates, mean=len(chosen) > 1)
        return UNKNOWN

    def _average(self, chosen: Sequence[Scalar]) -> Scalar:
        operations = self.scalars.operations
        return operations["divide"](reduce(operations["add"], chosen), len(chosen))


def _instance(node: Node, heads: Heads) -> Instance:
    return node, tuple(heads[family] for family in node.free)


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the bits that are 1."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
