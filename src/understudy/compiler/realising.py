"""Which gates an s-op is made of, where a feed-forward has units of one kind instead of any function.

An s-op becomes one *gate* (``gates.py``), or stands for a combination of other s-ops that are gates:

- whatever is finite is a table: of the positions, tokens and attention results that it depends on, if
  these combine in few ways, or else of its inputs. Several numbers are looked up at once by one number,
  their mixed-radix code, which is a linear form;
- ``a if c else b`` is a where c, plus b where not c; ``max(a, b)`` is b + max(a − b, 0);
- a / b is a·(1/b), and exp(z) / b is exp(z − log b): then no number of wide range is multiplied;
- comparisons of real numbers are ramps, whose width is the separation that was declared.

What has no such form is refused, with the s-op and what would help.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product

import numpy as np

from understudy.compiler.codes import Codes
from understudy.compiler.forms import Form
from understudy.compiler.gates import Bend, Curved, Gate, Masked, Product, Step, Table
from understudy.compiler.linear import Linear, of
from understudy.compiler.schedule import (
    AGGREGATE,
    COUNT,
    FUNCTION,
    LINEAR,
    POSITION,
    TABLE,
    Roles,
    in_order,
)
from understudy.compiler.target import DOMAIN
from understudy.errors import CompileError
from understudy.graph import OPERATIONS, Atom, Node, abbreviate, build
from understudy.graph.operations import constant

#: Rows of one table.
MAX_ROWS = 4096
ZERO, ONE = constant(0), constant(1)

_CURVES = {"exp": "exp", "log": "log", "sqrt": "sqrt", "tanh": "tanh", "erf": "erf"}
#: (swap the inputs, take the opposite) so that all comparisons become a > b.
_ORDERINGS = {
    "greater": (False, False),
    "less": (True, False),
    "less_equal": (False, True),
    "greater_equal": (True, True),
}


@dataclass(frozen=True)
class Recipe:
    """A gate before its arguments are forms: how to make it of them."""

    arguments: tuple[Linear, ...]
    make: Callable[..., Gate]
    #: More forms that it is good to know of, but that are not read.
    beside: tuple[Linear, ...] = ()
    #: Whether whole numbers come out, but real ones go in.
    rounds: bool = False


@dataclass
class GateRoles(Roles):
    """Roles where every function is a gate, or stands for others."""

    codes: Codes = field(kw_only=True)
    kind: str = field(kw_only=True)
    _instead: dict[Node, Linear] = field(default_factory=dict)
    _recipes: dict[Node, Recipe] = field(default_factory=dict)
    #: Exponentials whose relative error counts, and arguments that are known to be bounded.
    _relative: set[Node] = field(default_factory=set)
    _at_most: dict[Node, float] = field(default_factory=dict)
    #: Counts, and comparisons of real numbers, that are made whole.
    _whole: set[Node] = field(default_factory=set)
    #: Exponentials that are a softmax: exp(z − log b), by z and log b.
    _softmax: dict[Node, tuple[Node, Node]] = field(default_factory=dict)

    def _found(self, node: Node) -> str:
        role = super()._found(node)
        if role not in (LINEAR, FUNCTION, TABLE):
            return role
        found = self._realised(node, role)
        if isinstance(found, Linear):
            self._instead[node] = found
            return LINEAR
        self._recipes[node] = found
        return FUNCTION

    def keep_whole(self, root: Node) -> None:
        """Finds the whole numbers that heads score by: they are to be whole to the last bit.

        Hard attention needs exact ties, and a softmax that is to be as good as hard makes much of
        noise.
        """
        scored = [
            below
            for node in in_order(root, self.reads)
            if self.of(node) in (AGGREGATE, COUNT) and node.op != "length"
            for below in self.selectors.scores(node.inputs[0]).nodes
        ]
        seen: set[Node] = set()
        for node in scored:
            if node not in seen:
                seen.update(in_order(node, lambda n: [b for b in self.reads(n) if b not in seen]))
        self._whole = {
            node
            for node in seen
            if self.of(node) == COUNT or (node in self._recipes and self._recipes[node].rounds)
        }

    def delay(self, node: Node) -> int:
        """How long after its attention a count can be read; a function, after what it reads."""
        return 3 if node in self._whole else 1

    def reads(self, node: Node) -> list[Node]:
        """The s-ops that have to be there before it."""
        role = self.of(node)
        if role == LINEAR:
            return [below for below, _ in self.parts(node)]
        if role == FUNCTION:
            return [below for linear in self._recipes[node].arguments for below, _ in linear.terms]
        return super().reads(node)

    def parts(self, node: Node) -> list[tuple[Node, float]]:
        """A linear s-op as a combination of others."""
        found = self._instead[node]
        rest = [(constant(found.constant), 1.0)] if found.constant else []
        return [*found.terms, *rest] or [(ZERO, 1.0)]

    def gate(self, node: Node, form: Callable[[Linear], Form]) -> Gate:
        """The gate of a function."""
        recipe = self._recipes[node]
        return recipe.make(*map(form, (*recipe.arguments, *recipe.beside)))

    # Choosing -----------------------------------------------------------------------------------

    def _realised(self, node: Node, role: str) -> Linear | Recipe:
        if role == LINEAR or (node.op == "divide" and self._number(node.inputs[1])):
            return self._linear_parts(node)
        values = self.values
        column = values.column(node)
        if column is not None and column.sources != (node,) and len(column.values) <= MAX_ROWS:
            by = self.sources(node)
            domains = [values.domain(source) for source in column.sources]
            return self._table(node, by, domains, column.values)
        finite = [values.finite(i) for i in node.inputs]
        if all(f is not None for f in finite):
            known = [f for f in finite if f is not None]
            if math.prod(map(len, known)) <= MAX_ROWS:
                return self._of_inputs(node, known)
        return self._of_reals(node)

    def _linear_parts(self, node: Node) -> Linear:
        match node.op:
            case "add":
                return of(node.inputs[0]).plus(of(node.inputs[1]))
            case "subtract":
                return of(node.inputs[0]).plus(of(node.inputs[1], -1.0))
            case "negate":
                return of(node.inputs[0], -1.0)
            case _:
                a, b = node.inputs
                if self._number(b) is None:
                    a, b = b, a
                number = self._number(b)
                assert number is not None
                return of(a, 1 / number if node.op == "divide" else number)

    def _number(self, node: Node) -> float | None:
        """Its value, if it is one number everywhere."""
        value = self.values.constant(node)
        if value is None or isinstance(value, str):
            return None
        return self.codes.number(value, abbreviate(node))

    def _of_reals(self, node: Node) -> Linear | Recipe:
        match node.op:
            case "multiply":
                return self._product(*node.inputs)
            case "divide":
                return self._quotient(node)
            case "power":
                return of(self._power(node))
            case op if op in _CURVES:
                return self._curve(_CURVES[op], node.inputs[0], node)
            case "absolute":
                return Recipe((of(node.inputs[0]),), lambda x: Bend(x, -1.0, 1.0))
            case "maximum" | "minimum":
                a, b = node.inputs
                if self._number(b) == 0.0 and node.op == "maximum":
                    return Recipe((of(a),), lambda x: Bend(x, 0.0, 1.0))
                if node.op == "maximum":
                    return of(b).plus(of(build("maximum", build("subtract", a, b), ZERO)))
                return of(a).plus(of(build("maximum", build("subtract", a, b), ZERO), -1.0))
            case "if_else":
                return self._choice(*node.inputs)
            case "indicator" | "not" | "and" | "or":
                truths = [self._truth(i) for i in node.inputs]
                if node.op == "indicator":
                    return of(truths[0])
                if node.op == "not":
                    return of(truths[0], -1.0).plus(Linear(constant=1.0))
                return of(build(node.op, *truths))
            case op if OPERATIONS[op].group == "comparison":
                return self._comparison(node)
            case "round" if (known := self.values.finite(node)) is not None:
                return self._rounded(node, known)
            case _:
                raise CompileError(
                    f"{self.kind} units have no {node.op} of real numbers, which jumps; it can be had "
                    "where its inputs take finitely many values, or with feed_forward='exact'",
                    abbreviate(node),
                )

    # Tables -------------------------------------------------------------------------------------

    def _of_inputs(self, node: Node, domains: Sequence[Sequence[Atom]]) -> Linear | Recipe:
        function = partial(DOMAIN.meanings[node.op], **node.attributes)
        return self._table(
            node, node.inputs, domains, [_value(function, row) for row in product(*domains)]
        )

    def _table(
        self,
        node: Node,
        by: Sequence[Node],
        domains: Sequence[Sequence[Atom]],
        values: Sequence[Atom | None],
    ) -> Linear | Recipe:
        """A look-up of several numbers at once, by their mixed-radix code."""
        where = abbreviate(node)
        code = Linear()
        keys = np.zeros(1)
        reach, least = 0.0, 0.0
        for source, domain in zip(reversed(by), reversed(domains), strict=True):
            numbers = np.array([self.codes.number(v, where) for v in domain])
            if len(numbers) > 1:
                gap = float(np.diff(np.sort(numbers)).min())
                if gap <= 0:
                    raise CompileError("two of its inputs' values are one number", where)
                factor = float(math.ceil((reach + least) / gap)) if reach else 1.0
                least = least or gap
                span = float(numbers.max() - numbers.min())
                reach += factor * span
                code = code.plus(of(source, factor))
            else:
                factor = 0.0
            keys = (factor * numbers[:, None] + keys[None]).ravel()
        found = [None if v is None else self.codes.number(v, where) for v in values]
        rows = sorted(
            {k: v for k, v in zip(keys.tolist(), found, strict=True) if v is not None}.items()
        )
        if not rows:
            raise CompileError("it has no value for any input", where)
        at, heights = np.array([k for k, _ in rows]), np.array([v for _, v in rows])
        if len(set(heights.tolist())) == 1:
            return Linear(constant=float(heights[0]))
        slopes = np.diff(heights) / np.diff(at)
        if np.ptp(slopes) == 0 and float(slopes[0]).is_integer():
            return code.times(float(slopes[0])).plus(
                Linear(constant=float(heights[0] - slopes[0] * at[0]))
            )
        return Recipe((code,), lambda x: Table(x, at, heights))

    def _rounded(self, node: Node, known: Sequence[Atom]) -> Recipe:
        """The nearest of few whole numbers, where the argument is one of them up to rounding."""
        numbers = np.array(sorted(self.codes.number(v, abbreviate(node)) for v in known))
        return Recipe((of(node.inputs[0]),), lambda x: Table(x, numbers, numbers), rounds=True)

    def counting(self, node: Node, share: Form, sink: bool) -> Table:
        """Keys from the share of attention that one of them gets: 1/(1 + m) with a sink, else 1/m."""
        target = self.values.target
        numbers = range(0 if sink else 1, target.longest + 1)
        if node.op == "length":
            numbers = range(target.shortest, target.longest + 1)
        rows = sorted((1 / (m + sink), float(m)) for m in numbers)
        return Table(share, np.array([k for k, _ in rows]), np.array([v for _, v in rows]))

    # Real numbers -------------------------------------------------------------------------------

    def _truth(self, node: Node) -> Node:
        """An s-op that is 1 where this one holds, and 0 elsewhere."""
        finite = self.values.finite(node)
        if finite is not None and set(finite) <= {0, 1}:
            return node
        return build("not_equal", node, ZERO)

    def _product(self, a: Node, b: Node) -> Linear | Recipe:
        if a is b:
            return Recipe((of(a),), lambda x: Curved("square", x))
        for mask, value in ((a, b), (b, a)):
            finite = self.values.finite(mask)
            if finite is not None and set(finite) <= {0, 1}:
                return Recipe((of(mask), of(value)), Masked)
        return Recipe((of(a), of(b)), Product)

    def _choice(self, condition: Node, a: Node, b: Node) -> Linear | Recipe:
        truth = self._truth(condition)
        if self._number(b) == 0.0:
            if a.op == "if_else" and a.inputs[0] is condition and self._number(a.inputs[2]) == 0.0:
                return of(a)
            return Recipe((of(truth), of(a)), Masked)
        if self._number(b) is not None:
            closed = of(build("not", truth), self._number(b) or 0.0)
            return closed.plus(of(build("if_else", truth, a, ZERO)))
        otherwise = build("if_else", build("not", truth), b, ZERO)
        if self._number(a) == 0.0:
            return of(otherwise)
        return of(build("if_else", truth, a, ZERO)).plus(of(otherwise))

    def _curve(self, name: str, x: Node, node: Node) -> Recipe:
        def made(form: Form, *softmax: Form) -> Curved:
            known = (softmax[0], softmax[1]) if softmax else None
            bound = self._at_most.get(node, math.inf)
            return Curved(name, form, node in self._relative, bound, known)

        return Recipe((of(x),), made, tuple(map(of, self._softmax.get(node, ()))))

    def _quotient(self, node: Node) -> Linear | Recipe:
        a, b = node.inputs
        if self._number(a) == 1.0:
            return self._curve("reciprocal", b, node)
        mask, exponential = _unmasked(a)
        if exponential.op == "exp" and self.of(mask) == POSITION:
            z, log = exponential.inputs[0], build("log", b)
            inverse = build("exp", build("subtract", z, log))
            self._relative.add(exponential)
            self._at_most[inverse] = self._greatest_log(a, b)
            if self._at_most[inverse] < math.inf:
                self._softmax[inverse] = z, log
            return of(inverse if mask is ONE else build("if_else", mask, inverse, ZERO))
        return of(build("multiply", a, build("divide", ONE, b)))

    def _greatest_log(self, a: Node, b: Node) -> float:
        """log of the most that a/b can be, where b is a sum that a is a part of."""
        mask, total = _unmasked(b, otherwise=None)
        factor = 1.0
        while total.op == "multiply" and (number := self._number(total.inputs[0])) is not None:
            factor, total = factor * number, total.inputs[1]
        if total.op != "aggregate" or total.inputs[1] is not a or factor <= 0:
            return math.inf
        inside, _ = _unmasked(a)
        pattern = self.selectors.pattern(total.inputs[0])
        if pattern is None or self.of(mask) != POSITION:
            return math.inf
        here = np.array([bool(v) for v in self.values.at_positions(inside)])
        divided = np.array([bool(v) for v in self.values.at_positions(mask)])
        if not pattern.diagonal()[here].all() or not divided[here].all():
            return math.inf
        return math.log(float(pattern[here].sum(axis=1).max()) / factor) if here.any() else math.inf

    def _power(self, node: Node) -> Node:
        base, exponent = node.inputs
        number = self._number(exponent)
        if number is not None and number == int(number) and 1 <= abs(number) <= 64:
            whole = _to_the(base, abs(int(number)))
            return whole if number > 0 else build("divide", ONE, whole)
        if number == 0.5:
            return build("sqrt", base)
        constant_base = self._number(base)
        if constant_base is not None and constant_base > 0:
            return build("exp", build("multiply", exponent, constant(math.log(constant_base))))
        if number is None and self._number(base) is not None:
            raise CompileError("a power of a negative number", abbreviate(node))
        return build("exp", build("multiply", exponent, build("log", base)))

    def _comparison(self, node: Node) -> Linear | Recipe:
        separation = self.values.target.separation
        if separation is None:
            raise CompileError(
                "real numbers are compared, which jumps where they are equal: say by how much "
                "different ones differ at least, separation=…",
                abbreviate(node),
            )
        # What is compared is equal or a separation apart; or it is compared with half of one.
        width = separation / 2
        a, b = node.inputs
        if node.op in ("equal", "not_equal"):
            above = of(build("greater", a, b)).plus(of(build("greater", b, a)))
            return above if node.op == "not_equal" else above.times(-1.0).plus(Linear(constant=1.0))
        swapped, opposite = _ORDERINGS[node.op]
        if swapped:
            a, b = b, a
        if opposite:
            return of(build("greater", a, b), -1.0).plus(Linear(constant=1.0))
        if node.op != "greater":
            return of(build("greater", a, b))
        return Recipe((of(a).plus(of(b, -1.0)),), lambda x: Step(x, width), rounds=True)


def _value(function: Callable[..., Atom], row: tuple[Atom, ...]) -> Atom | None:
    """The function there, or None where it has no value."""
    try:
        return function(*row)
    except (ArithmeticError, TypeError, ValueError):
        return None


def _unmasked(node: Node, otherwise: Node | None = ZERO) -> tuple[Node, Node]:
    """(mask, s-op) of ``s-op if mask else 0`` (or anything else, for None).

    The mask is 1 where there is none.
    """
    if node.op == "if_else" and (otherwise is None or node.inputs[2] is otherwise):
        return node.inputs[0], node.inputs[1]
    return ONE, node


def _to_the(base: Node, exponent: int) -> Node:
    """base · base · …, by squaring."""
    found: Node | None = None
    while exponent:
        if exponent & 1:
            found = base if found is None else build("multiply", found, base)
        exponent >>= 1
        if exponent:
            base = build("multiply", base, base)
    assert found is not None
    return found
