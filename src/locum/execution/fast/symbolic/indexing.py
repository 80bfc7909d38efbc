"""Lower elementwise operations: to index arithmetic on positions, or to terms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from locum.execution.fast.symbolic import solving
from locum.execution.fast.symbolic.affine import (
    Affine,
    IndexScope,
    NotNumeric,
    Stuck,
    bounds,
    divided,
    number,
)
from locum.execution.fast.symbolic.solving import FALSE, TRUE, GuardedCases
from locum.execution.fast.symbolic.terms import (
    Apply,
    Entry,
    Literal,
    Position,
    Sum,
    Term,
    extent,
    guarded,
    product,
    scaled,
    tidy,
)
from locum.graph import COMPARISONS, Node
from locum.graph.atoms import INT64_LIMIT, LARGEST_EXACT
from locum.graph.operations import PREDICATE_OF

#: What a node is at a symbolic position.
Lowered: TypeAlias = Affine | GuardedCases | Sum

#: Integral floats below this stay exact in sums and products with positions.
_EXACT_FLOATS = 2**31
#: Constants beyond these are not moved out of the order in which they are added and multiplied.
_LARGE, _EXTREME = 2.0**40, 1e100
#: Lowered values of more factors, or with longer coefficients, are left to the structured tier.
_LONGEST, _MOST_BITS = 4_096, 2_048
#: How many values a ``member`` may list to be a condition on positions.
_FEW = 8


def terms_of(lowered: Lowered) -> Sum:
    """Return any lowered value as a sum of terms."""
    if isinstance(lowered, Affine):
        if lowered.is_constant:
            return (Term(lowered.constant),) if lowered.constant else ()
        return (Term(1, factors=(Position(lowered),)),)
    if isinstance(lowered, GuardedCases):
        return lowered.terms()
    return lowered


def constant(node: Node, scope: IndexScope) -> Lowered:
    """Lower an atom of the program."""
    value = node.attributes["value"]
    if scope.ieee and isinstance(value, float):
        return (Term(1, factors=(Literal(value),)),)
    if isinstance(value, bool):
        return TRUE if value else FALSE
    if isinstance(value, int):
        if abs(value) > LARGEST_EXACT:
            raise Stuck("an integer constant beyond 2⁵³")
        return number(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Stuck("a constant that is not finite")
        return (Term(value),) if value else ()
    raise NotNumeric


def lower(node: Node, inputs: Sequence[Lowered], scope: IndexScope) -> Lowered:
    """Lower an elementwise operation (other than ``if_else``) on lowered inputs."""
    op = node.op
    if op in PREDICATE_OF:
        return comparison(PREDICATE_OF[op], inputs[0], inputs[1])
    if op in ("and", "or", "not"):
        return _logic(op, inputs, scope)
    if op == "indicator":
        (condition,) = inputs
        if isinstance(condition, GuardedCases):
            return decided(condition, scope).terms()
        return (_applied(node, inputs),)
    if op in ("member", "lookup"):
        return _table(node, inputs[0], scope)
    indices = [whole(lowered) for lowered in inputs]
    if all(index is not None for index in indices):
        affine = _index(op, [index for index in indices if index is not None], scope)
        if affine is not None:
            return affine
    return _arithmetic(node, [terms_of(lowered) for lowered in inputs], scope)


def whole(lowered: Lowered) -> Affine | None:
    """Return a lowered value as an integer known from the position, or None."""
    if isinstance(lowered, Affine):
        return lowered
    if isinstance(lowered, GuardedCases):
        return None if lowered.value is None else number(int(lowered.value))
    if not lowered:
        return number(0)
    if len(lowered) == 1 and not (lowered[0].sums or lowered[0].guards or lowered[0].factors):
        c = lowered[0].coefficient
        return number(int(c)) if _is_whole(c) else None
    return None


def _is_whole(c: object) -> bool:
    """Return whether a number can be computed with as a position: floats only where they are exact."""
    if isinstance(c, float):
        return math.isfinite(c) and c == int(c) and abs(c) < _EXACT_FLOATS
    return isinstance(c, (int, Fraction)) and c == int(c)


def _index(op: str, e: list[Affine], scope: IndexScope) -> Lowered | None:
    """Apply arithmetic to positions where it stays affine; None where it does not."""
    match op, e:
        case "add", [a, b]:
            return a + b
        case "subtract", [a, b]:
            return a - b
        case "negate", [a]:
            return -a
        case "multiply", [a, b] if a.is_constant or b.is_constant:
            return b * a.constant if a.is_constant else a * b.constant
        case "floor_divide", [a, b] if b.is_constant and b.constant > 0:
            return divided(a, b.constant, scope.box)[0]
        case "modulo", [a, b] if b.is_constant and b.constant > 0:
            return divided(a, b.constant, scope.box)[1]
        case "divide", [a, b] if b.is_constant and b.constant:
            by = b.constant
            numbers = (a.constant, *(k for _, k in a.parts))
            if all(k % by == 0 and abs(k) < LARGEST_EXACT for k in numbers):
                return Affine(((v, k // by) for v, k in a.parts), a.constant // by)
        case (("floor" | "round"), [a]):
            return a
        case "absolute", [a]:
            return _chosen(solving.comparison(">=", a, number(0)), a, -a, scope)
        case "minimum", [a, b]:
            return _chosen(solving.comparison("<", a, b), a, b, scope)
        case "maximum", [a, b]:
            return _chosen(solving.comparison(">", a, b), a, b, scope)
    return None


def _chosen(condition: GuardedCases, a: Affine, b: Affine, scope: IndexScope) -> Lowered:
    holds = decided(condition, scope)
    if holds.value is not None:
        return a if holds.value else b
    return if_else(holds, terms_of(a), terms_of(b), scope.ieee)


def _arithmetic(node: Node, inputs: list[Sum], scope: IndexScope) -> Lowered:
    if scope.ieee:
        # A product of two loads may become part of a contraction; all else is computed as written.
        is_product = node.op == "multiply" and all(map(_is_plain, inputs))
        return product(*inputs) if is_product else (_applied(node, inputs),)
    if not all(map(is_moderate, inputs)):
        return (_applied(node, inputs),)
    match node.op, inputs:
        case "add", [a, b]:
            return added(a, b)
        case "subtract", [a, b]:
            return tidy(a + scaled(b, -1))
        case "negate", [a]:
            return scaled(a, -1)
        case "multiply", [a, b]:
            return product(a, b)
        case "divide", [a, (Term(sums=(), guards=(), factors=()) as by,)] if isinstance(
            by.coefficient, (int, Fraction)
        ):
            if all(not (t.sums or t.guards or t.factors) for t in a):  # numbers are rounded, as ever
                return tidy(tuple(Term(float(t.coefficient) / float(by.coefficient)) for t in a))
            return scaled(a, Fraction(1) / by.coefficient)
    return (_applied(node, inputs),)


def _is_plain(terms: Sum) -> bool:
    """Return whether it is one product of factors, without a sum, a condition or a coefficient."""
    return len(terms) == 1 and bool(terms[0].factors) and terms[0] == Term(1, factors=terms[0].factors)


def is_moderate(terms: Sum) -> bool:
    """Return whether its numbers may be reordered: (x + 1e17) − 1e17, x · 1e300 · 1e−300 are not x."""
    for t in terms:
        size: Any = abs(t.coefficient)
        if not t.factors and not size < _LARGE:
            return False
        if t.factors and not 1 / _EXTREME < size < _EXTREME:
            return False
    return True


def require_bounded(lowered: Lowered) -> None:
    """Refuse a value that has grown too long, or has numbers with too many digits, to be lowered.

    Terms are trees: y = x · x, thirty times over, has a billion factors, or a number of a billion bits.
    """
    if isinstance(lowered, Affine):
        for integer in (lowered.constant, *[k for _, k in lowered.parts]):
            if not -INT64_LIMIT < integer < INT64_LIMIT:
                raise Stuck("integers beyond 64 bits")
    elif not isinstance(lowered, GuardedCases):
        length, bits = extent(lowered)
        if length > _LONGEST:
            raise Stuck(f"a value of more than {_LONGEST:,} factors")
        if bits > _MOST_BITS:
            raise Stuck(f"a coefficient of more than {_MOST_BITS:,} bits")


def added(a: Lowered, b: Lowered) -> Lowered:
    """Add two lowered values in the order in which they are written."""
    left, right = whole(a), whole(b)
    if left is not None and right is not None:
        return left + right
    terms = terms_of(a), terms_of(b)
    if all(map(is_moderate, terms)):
        return tidy(terms[0] + terms[1])
    return (Term(1, factors=(Apply("add", terms),)),)


def _applied(node: Node, inputs: Sequence[Lowered]) -> Term:
    arguments = tuple(terms_of(lowered) for lowered in inputs)
    return Term(1, factors=(Apply(node.op, arguments),))


def comparison(predicate: str, a: Lowered, b: Lowered) -> Lowered:
    """Compare two lowered values: a condition if both are known from the position."""
    if isinstance(a, GuardedCases) and isinstance(b, GuardedCases):
        if predicate in ("==", "!="):
            same = solving.either(
                solving.both(a, b), solving.both(solving.negation(a), solving.negation(b))
            )
            return same if predicate == "==" else solving.negation(same)
    elif isinstance(a, GuardedCases) or isinstance(b, GuardedCases):
        condition, other = (a, b) if isinstance(a, GuardedCases) else (b, a)
        assert isinstance(condition, GuardedCases)
        value = whole(other)
        if value is not None and value.is_constant and predicate in ("==", "!="):
            if value.constant not in (0, 1):
                return FALSE if predicate == "==" else TRUE
            is_same = (value.constant == 1) == (predicate == "==")
            return condition if is_same else solving.negation(condition)
    left, right = whole(a), whole(b)
    if left is not None and right is not None:
        return solving.comparison(predicate, left, right)
    arguments = (terms_of(a), terms_of(b))
    return (Term(1, factors=(Apply(COMPARISONS[predicate].operation, arguments),)),)


def _logic(op: str, inputs: Sequence[Lowered], scope: IndexScope) -> Lowered:
    parts = [solving.comparison("!=", x, number(0)) if isinstance(x, Affine) else x for x in inputs]
    known = [decided(x, scope) for x in parts if isinstance(x, GuardedCases)]
    if len(known) == len(parts):
        match op:
            case "and":
                return solving.both(*known)
            case "or":
                return solving.either(*known)
        return solving.negation(known[0])
    if op == "not":
        return (Term(1, factors=(Apply("not", (terms_of(parts[0]),)),)),)
    # One part may be settled: then the other decides, as a boolean.
    for n, x in enumerate(parts):
        if isinstance(x, GuardedCases) and (value := decided(x, scope).value) is not None:
            if value == (op == "or"):
                return TRUE if value else FALSE
            other = terms_of(parts[1 - n])
            return (Term(1, factors=(Apply(op, (other, other)),)),)
    return (Term(1, factors=(Apply(op, tuple(map(terms_of, parts))),)),)


def _table(node: Node, key: Lowered, scope: IndexScope) -> Lowered:
    """Lower ``lookup`` and ``member`` of a position: a load from a table of the program."""
    index = whole(key)
    if index is None:
        raise NotNumeric if _has_strings(node) else Stuck(f"{node.op} of data")
    if node.op == "member":
        values = [v for v in node.members if isinstance(v, (int, float)) and math.isfinite(v)]
        integers = [v for v in values if v == int(v)]
        if len(integers) > _FEW:
            raise Stuck("a member of many")
        listed = FALSE
        for v in dict.fromkeys(int(v) for v in integers):
            listed = solving.either(listed, solving.comparison("==", index, number(v)))
        return listed
    if _has_strings(node):
        raise NotNumeric
    least, greatest = bounds(index, scope.box)
    entry = Entry(node, index)
    entries = entry.entries()
    if len(entries) < greatest - least + 1 or any(e not in entries for e in range(least, greatest + 1)):
        raise Stuck("a table that does not list all positions")
    return (Term(1, factors=(entry,)),)


def _has_strings(node: Node) -> bool:
    """Return whether a table gives strings."""
    values = Entry(node, number(0)).entries().values() if node.op == "lookup" else ()
    return any(isinstance(value, str) for value in values)


def if_else(holds: Lowered, then: Sum, otherwise: Sum, ieee: bool) -> Lowered:
    """Choose: by guarded terms if positions decide, by a function of three sums if data does.

    In IEEE arithmetic always by the function: a sum of guarded terms would lose the sign of −0.
    """
    if isinstance(holds, GuardedCases) and not ieee:
        chosen = tuple(t for case in holds.cases for t in guarded(then, case))
        if otherwise:
            opposite = solving.negation(holds)
            chosen += tuple(t for case in opposite.cases for t in guarded(otherwise, case))
        return tidy(chosen)
    return (Term(1, factors=(Apply("if_else", (terms_of(holds), then, otherwise)),)),)


def decided(condition: GuardedCases, scope: IndexScope) -> GuardedCases:
    """Decide a condition over the box; cut the positions being computed where it changes."""
    settled = condition.settled(scope.box)
    if settled.value is None:
        request = solving.cut_for(settled, scope.box, scope.roots)
        if request is not None:
            raise request
    return settled
