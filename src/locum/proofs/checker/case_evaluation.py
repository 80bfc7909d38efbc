"""Evaluate a program and its reference formula in one case of a proof, entry by entry.

Each node is evaluated from the values of its inputs, once for each combination of heads of its free
families. A selector is represented by a row of booleans, decided or open, for each query. An operation
that may be undefined is a *site*. A site is open if the checker cannot decide in this case whether the
operation is defined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import combinations
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from locum.errors import InputError
from locum.graph import COMPARISONS, Node, members, postorder
from locum.graph.traversal import walk
from locum.proofs.checker.proof_case import UNKNOWN, Case, NoValueError, Value, is_boolean, is_number
from locum.proofs.checker.quotients import simplify

if TYPE_CHECKING:
    from locum.proofs.claims.formula import Formula

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


Matrix: TypeAlias = "list[list[Any]]"
Inputs: TypeAlias = Mapping[str, Matrix]
#: A function that applies a named elementwise operation to scalars.
Apply: TypeAlias = Callable[..., Any]

_ELEMENTWISE = {
    "add": 2, "subtract": 2, "multiply": 2, "divide": 2, "maximum": 2, "minimum": 2, "negate": 1,
    "absolute": 1, "exp": 1, "log": 1, "sqrt": 1, "tanh": 1, "erf": 1,
}  # fmt: skip


def evaluate_formulas(
    roots: Sequence[Formula],
    inputs: Inputs,
    apply: Apply,
    known: Mapping[Formula, Matrix] | None = None,
) -> dict[Formula, Matrix]:
    """Evaluate the formulas ``roots`` and all formulas of which they consist.

    ``known`` contains the values of formulas that were evaluated before. Return the value of each
    formula.
    """
    values, formulas = dict(known or {}), Formulas(inputs, apply)
    for part in walk(roots, attrgetter("operands"), lambda one: one not in values):
        operands = [values[operand] for operand in part.operands]
        values[part] = formulas.evaluate(part.op, operands, part.attribute)
    return values


class Formulas:
    """The operations on matrices of scalars; a matrix of an unexpected shape raises an error."""

    def __init__(self, inputs: Inputs, apply: Apply) -> None:
        self.inputs = inputs
        self.apply = apply

    def evaluate(self, op: str, operands: Sequence[Matrix], attribute: Any) -> Matrix:
        """Apply the operation ``op`` to matrices and return the resulting matrix."""
        match op, attribute, operands:
            case "input", [name, rows, columns], []:
                if (len(self.inputs[name]), len(self.inputs[name][0])) == (rows, columns):
                    return self.inputs[name]
            case "constant", [number, rows, columns], [] if are_sizes(rows, columns):
                top, bottom = number.as_integer_ratio()
                entry = top if bottom == 1 else self.apply("divide", top, bottom)
                return [[entry] * columns for _ in range(rows)]
            case "identity", order, [] if are_sizes(order):
                return [[int(i == j) for j in range(order)] for i in range(order)]
            case "entries", [rows, columns], _ if are_sizes(rows, columns):
                flat = [entry for [[entry]] in operands]
                if len(flat) == rows * columns:
                    return [flat[i * columns : (i + 1) * columns] for i in range(rows)]
            case "entry", [i, j], [a] if i in range(len(a)) and j in range(len(a[0])):
                # Every entry of the operand must be defined, even if it is not selected.
                others = [self.apply("multiply", 0, x) for row in a for x in row]
                return [[self.sum([a[i][j], *others])]]
            case "transpose", None, [a]:
                return [list(column) for column in zip(*a, strict=True)]
            case "matmul", None, [a, b]:
                return [[self.inner(row, column) for column in zip(*b, strict=True)] for row in a]
            case "beside", None, _:
                return [[x for row in rows for x in row] for rows in zip(*operands, strict=True)]
            case "below", None, _ if len({len(operand[0]) for operand in operands}) == 1:
                return [row for operand in operands for row in operand]
            case "softmax", None | "causal", [a]:
                return [self.softmax(row, i if attribute else len(row)) for i, row in enumerate(a)]
            case "layer_norm", None, [a, [[epsilon]]]:
                return [self.layer_norm(row, epsilon) for row in a]
            case "hardmax", None, [a]:
                return [self.hardmax(row) for row in a]
            case "determinant" | "permanent" | "cofactors" | "inverse", None, [a]:
                if len(a) == len(a[0]) <= 8:
                    return self.minors(op, a)
            case "sort", group, [a] if are_sizes(group) and len(a[0]) % group == 0:
                return [self.sort(row, group) for row in a]
            case "match2", modulus, [[row]] if are_sizes(modulus):
                return [[self.match2(a, row, modulus) for a in row]]
            case name, None, _ if _ELEMENTWISE.get(name) == len(operands):
                rows = [zip(*rows, strict=True) for rows in zip(*operands, strict=True)]
                return [[self.apply(name, *scalars) for scalars in row] for row in rows]
        raise InputError(f"formula: expected an operation and its operands, got {str(op)[:40]}")

    def sum(self, values: Sequence[Any]) -> Any:
        return reduce(lambda a, b: self.apply("add", a, b), values)

    def inner(self, row: Sequence[Any], column: Sequence[Any]) -> Any:
        return self.sum([self.apply("multiply", a, b) for a, b in zip(row, column, strict=True)])

    def normalise(self, weights: Sequence[Any]) -> list[Any]:
        total = self.sum(weights)
        return [self.apply("divide", weight, total) for weight in weights]

    def softmax(self, row: Sequence[Any], last: int) -> list[Any]:
        """Return the softmax of the entries up to index ``last``, followed by zeros.

        The entries after ``last`` do not influence the result, but they must be defined.
        """
        shown = [self.apply("exp", x) for x in row[: last + 1]]
        return self.normalise(shown + [self.apply("multiply", 0, x) for x in row[last + 1 :]])

    def layer_norm(self, row: Sequence[Any], epsilon: Any) -> list[Any]:
        mean = self.apply("divide", self.sum(row), len(row))
        deviations = [self.apply("subtract", x, mean) for x in row]
        variance = self.apply("divide", self.inner(deviations, deviations), len(row))
        root = self.apply("sqrt", self.apply("add", variance, epsilon))
        return [self.apply("divide", x, root) for x in deviations]

    def hardmax(self, row: Sequence[Any]) -> list[Any]:
        """Return 1/k for each of the k entries that equal the maximum of a row, and 0 elsewhere."""
        below = [[self.apply("less_equal", y, x) for y in row] for x in row]
        greatest = [reduce(lambda a, b: self.apply("and", a, b), truths) for truths in below]
        return self.normalise([self.apply("indicator", one) for one in greatest])

    def expand(self, a: Matrix, signed: bool) -> Any:
        """Compute the determinant (``signed``) or the permanent by expansion along rows.

        Minors that occur several times are computed once.
        """
        minors: dict[tuple[int, ...], Any] = {(): 1}
        for i in reversed(range(len(a))):
            here = {}
            for columns in combinations(range(len(a)), len(a) - i):
                terms = []
                for place, j in enumerate(columns):
                    minor = minors[columns[:place] + columns[place + 1 :]]
                    term = self.apply("multiply", a[i][j], minor)
                    terms.append(self.apply("negate", term) if signed and place % 2 else term)
                here[columns] = self.sum(terms)
            minors = here
        return minors[tuple(range(len(a)))]

    def minors(self, op: str, a: Matrix) -> Matrix:
        size = range(len(a))
        if op in ("determinant", "permanent"):
            return [[self.expand(a, op == "determinant")]]
        if op == "inverse":
            adjugate, determinant = zip(*self.minors("cofactors", a), strict=True), self.expand(a, True)
            return [[self.apply("divide", x, determinant) for x in row] for row in adjugate]
        if len(a) == 1:
            return [[self.apply("add", 1, self.apply("multiply", 0, a[0][0]))]]
        result = []
        for i in size:
            minors = [[[a[s][t] for t in size if t != j] for s in size if s != i] for j in size]
            values = [self.expand(minor, signed=True) for minor in minors]
            result.append([self.apply("negate", x) if (i + j) % 2 else x for j, x in enumerate(values)])
        return result

    def sort(self, row: Sequence[Any], group: int) -> list[Any]:
        """Sort each group of ``group`` consecutive entries of a row in descending order."""
        result = list(row)
        for start in range(0, len(row), group):
            for last in reversed(range(start + 1, start + group)):
                for place in range(start, last):
                    a, b = result[place : place + 2]
                    result[place : place + 2] = self.apply("maximum", a, b), self.apply("minimum", a, b)
        return result

    def match2(self, a: Any, row: Sequence[Any], modulus: int) -> Any:
        rests = [self.apply("modulo", self.apply("add", a, b), modulus) for b in row]
        matched = [self.apply("equal", rest, 0) for rest in rests]
        return self.apply("indicator", reduce(lambda x, y: self.apply("or", x, y), matched))


def are_sizes(*values: Any) -> bool:
    """Return whether all values are positive integers, as sizes of matrices must be."""
    return all(type(value) is int and value >= 1 for value in values)
