"""Evaluate a program in one case of a proof, position by position.

Each node is evaluated from the values of its inputs, once for each combination of heads of its free
families. A selector is represented by a row of booleans, decided or open, for each query. An operation
that may be undefined is a *site*. A site is open if the checker cannot decide in this case whether the
operation is defined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias

from locum.errors import InputError
from locum.graph import COMPARISONS, Node, members, postorder
from locum.proofs.checker.proof_case import UNKNOWN, Case, NoValueError, Value, is_boolean, is_number
from locum.proofs.checker.quotients import simplify

Heads: TypeAlias = Mapping[Node, int]
#: An operation that may be undefined: its node, heads and position.
Site: TypeAlias = tuple[Node, tuple[int, ...], int]
Row: TypeAlias = tuple[Value, ...]

_PARTIAL = frozenset(("divide", "modulo", "floor_divide", "power", "log", "sqrt", "lookup"))


class Evaluator:
    """An evaluator of the nodes of a program in one case."""

    def __init__(self, case: Case, tokens: Sequence[Value]) -> None:
        self.case = case
        self.tokens = list(tokens)
        self.size = len(tokens)
        #: The values of each node for each choice of heads: a scalar for each position, or a row for
        #: each query of a selector.
        self.values: dict[tuple[Node, tuple[int, ...]], list[Any]] = {}
        self.open_sites: set[Site] = set()

    def evaluate(self, program: Node) -> list[Any]:
        """Evaluate all nodes of a program, and return the values of its output at all positions."""
        for node in postorder(program):
            for heads in members(_families(node)):
                self.values[_instance(node, heads)] = self._evaluate(node, heads)
        return self.values[program, ()]

    def _evaluate(self, node: Node, heads: Heads) -> list[Any]:
        if node.op == "sum_over":
            body, *families = node.inputs
            parts = [self.values[_instance(body, {**heads, **one})] for one in members(families)]
            return [self._sum([0, *column]) for column in zip(*parts, strict=True)]
        inputs: list[Any] = [self.values[_instance(part, heads)] for part in node.inputs]
        match node.op:
            case "tokens":
                if node.cast not in ("asis", "float", *(["int"] if self.case.integer else [])):
                    raise InputError(f"program: expected tokens as numbers, got the cast {node.cast}")
                return self.tokens
            case "indices":
                return list(range(self.size))
            case "length":
                return [self.size] * self.size
            case "constant":
                return [_read_constant(node.value)] * self.size
            case "family":
                return [heads[node]] * self.size
            case "select":
                name, (keys, queries) = COMPARISONS[node.predicate].operation, inputs
                return [tuple(self.case.compare(name, key, query) for key in keys) for query in queries]
            case "selector_and" | "selector_or" | "selector_not":
                name = node.op.removeprefix("selector_")
                return _map(lambda *rows: self._combine(name, *rows), zip(*inputs, strict=True))
            case "best":
                return _map(lambda row: self._best(row, inputs[1]), zip(inputs[0], strict=True))
            case "selector_width":
                return _map(self._width, zip(inputs[0], strict=True))
            case "aggregate":
                rows, values, default = *inputs, _read_constant(node.default)
                self._require_mean((*_instance(node, heads), -1), rows, values)
                return _map(lambda row: self._mean(row, values, default), zip(rows, strict=True))
        attributes = {name: _read_constant(value) for name, value in node.attributes.items()}
        values = [self.case.apply(node.op, *x, **attributes) for x in zip(*inputs, strict=True)]
        if node.op in _PARTIAL:
            unknown = [position for position, value in enumerate(values) if value is UNKNOWN]
            self.open_sites |= {(*_instance(node, heads), position) for position in unknown}
        return values

    def _sum(self, values: Sequence[Value]) -> Value:
        return reduce(lambda a, b: self.case.apply("add", a, b), values)

    def _combine(self, name: str, *rows: Row) -> Row:
        return tuple(self.case.apply(name, *cells) for cells in zip(*rows, strict=True))

    def _best(self, row: Row, scores: list[Value]) -> Row:
        """Return ``row`` without the keys whose score is less than the score of a selected key."""
        keys = [k for k, cell in enumerate(row) if cell is not False]
        result: list[Value] = [False] * len(row)
        for k in keys:
            result[k] = row[k]
            for other in (other for other in keys if other != k and result[k] is not False):
                exceeds = self.case.compare("greater", scores[other], scores[k])
                beaten = self.case.apply("and", row[other], exceeds)
                result[k] = self.case.apply("and", result[k], self.case.apply("not", beaten))
        return tuple(result)

    def _width(self, row: Row) -> Value:
        low, high = row.count(True), len(row) - row.count(False)
        key = ("width", *map(self.case.identity, row))
        return low if low == high else self.case.choose(key, [low, high])

    def _require_mean(self, site: Site, rows: Sequence[Row], values: Sequence[Value]) -> None:
        """Raise an error or record an open site if an aggregate may compute a mean of booleans.

        A mean of several values is defined only if at least one value of the sequence is a number.
        """
        if not any(map(is_number, values)):
            if all(map(is_boolean, values)) and any(row.count(True) > 1 for row in rows):
                raise NoValueError("a mean of booleans")
            if any(len(row) - row.count(False) > 1 for row in rows):
                self.open_sites.add(site)

    def _mean(self, row: Row, values: Sequence[Value], default: Value) -> Value:
        chosen = [value for value, cell in zip(values, row, strict=True) if cell is not False]
        if all(type(cell) is bool for cell in row):
            if len(chosen) < 2:
                return chosen[0] if chosen else default
            return self.case.apply("divide", self._sum(chosen), len(chosen))
        if any(value is UNKNOWN for value in chosen):
            return UNKNOWN
        key = ("aggregate", *map(self.case.identity, (*row, *values, default)))
        candidates = chosen if True in row else [*chosen, default]
        return self.case.choose(key, candidates, mean=len(chosen) > 1)


def _read_constant(value: Any) -> Any:
    """Return an attribute of a node with each float converted to an equal rational number.

    Raise an error for strings and for floats that are not finite.
    """
    if isinstance(value, tuple):
        return tuple(map(_read_constant, value))
    if isinstance(value, str) or (isinstance(value, float) and value - value != 0):
        raise InputError(f"program: expected finite numbers and booleans, got {str(value)[:40]!r}")
    return simplify(Fraction(value)) if isinstance(value, float) else value


def _families(node: Node) -> list[Node]:
    """Return the free families of a node in an order that depends only on the graph."""
    return sorted(node.free, key=lambda family: (family.name, family.size))


def _instance(node: Node, heads: Heads) -> tuple[Node, tuple[int, ...]]:
    return node, tuple(heads[family] for family in _families(node))


def _map(function: Callable[..., Any], arguments: Iterable[tuple[Row, ...]]) -> list[Any]:
    """Apply a function to each tuple of rows; the function is called only once for equal tuples."""
    values: dict[tuple[Row, ...], Any] = {}
    return [values[x] if x in values else values.setdefault(x, function(*x)) for x in arguments]
