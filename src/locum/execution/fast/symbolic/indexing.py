"""Lower elementwise operations to index arithmetic on positions, to conditions, or to terms."""

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

#: The value of a node at a symbolic position.
Lowered: TypeAlias = Affine | GuardedCases | Sum

#: Limit of the absolute value of a float that is used as an integer in index arithmetic.
_EXACT_FLOATS = 2**31
#: Limits on constants, and on the coefficients of factors, above which sums and products are not
#: reordered. Coefficients must also be greater than the reciprocal of their limit.
_LARGE, _EXTREME = 2.0**40, 1e100
#: Maximum number of terms and factors of a lowered value, and of bits of its coefficients. A value that
#: exceeds these limits is not lowered to one sum.
_LONGEST, _MOST_BITS = 4_096, 2_048
#: Maximum number of integers in the set of a ``member`` that becomes a condition on positions.
_FEW = 8


def terms_of(lowered: Lowered) -> Sum:
    """Return a lowered value of any kind as a sum of terms."""
    if isinstance(lowered, Affine):
        if lowered.is_constant:
            return (Term(lowered.constant),) if lowered.constant else ()
        return (Term(1, factors=(Position(lowered),)),)
    if isinstance(lowered, GuardedCases):
        return lowered.terms()
    return lowered


def constant(node: Node, scope: IndexScope) -> Lowered:
    """Lower a constant node to an integer, a condition or a sum of at most one term."""
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
    """Lower an elementwise operation other than ``if_else``, given its lowered inputs."""
    op = node.op
    if op in PREDICATE_OF:
        return comparison(PREDICATE_OF[op], inputs[0], inputs[1])
    if op in ("and", "or", "not"):
        return _logic(op, inputs, scope)
    if op == "indicator":
        (condition,) = inputs
        if isinstance(condition, GuardedCases):
            return decided(condition, scope).terms()
        return (applied(node, inputs),)
    if op in ("member", "lookup"):
        return _table(node, inputs[0], scope)
    indices = [whole(lowered) for lowered in inputs]
    if all(index is not None for index in indices):
        affine = _index(op, [index for index in indices if index is not None], scope)
        if affine is not None:
            return affine
    return _arithmetic(node, [terms_of(lowered) for lowered in inputs], scope)


def whole(lowered: Lowered) -> Affine | None:
    """Return a lowered value as an integer expression in the position, or None if there is none."""
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
    """Return whether a number is an integer; a float must also have an absolute value below 2³¹."""
    if isinstance(c, float):
        return math.isfinite(c) and c == int(c) and abs(c) < _EXACT_FLOATS
    return isinstance(c, (int, Fraction)) and c == int(c)


def _index(op: str, e: list[Affine], scope: IndexScope) -> Lowered | None:
    """Apply arithmetic to positions; return None if no rule applies.

    The result is affine, or a sum of terms for some absolute values, minima and maxima.
    """
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
        # A product of two loads may become part of a contraction. All other operations are computed in
        # the order of the program.
        is_product = node.op == "multiply" and all(map(_is_plain, inputs))
        return product(*inputs) if is_product else (applied(node, inputs),)
    if not all(map(is_moderate, inputs)):
        return (applied(node, inputs),)
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
            if all(not (t.sums or t.guards or t.factors) for t in a):  # numbers are rounded as usual
                return tidy(tuple(Term(float(t.coefficient) / float(by.coefficient)) for t in a))
            return scaled(a, Fraction(1) / by.coefficient)
    return (applied(node, inputs),)


def _is_plain(terms: Sum) -> bool:
    """Return whether terms are one product of factors, without sum, condition or coefficient."""
    return len(terms) == 1 and bool(terms[0].factors) and terms[0] == Term(1, factors=terms[0].factors)


def is_moderate(terms: Sum) -> bool:
    """Return whether the numbers in terms have sizes for which sums and products may be reordered.

    For example, (x + 1e17) − 1e17 and x · 1e300 · 1e−300 may not be reordered.
    """
    for t in terms:
        size: Any = abs(t.coefficient)
        if not t.factors and not size < _LARGE:
            return False
        if t.factors and not 1 / _EXTREME < size < _EXTREME:
            return False
    return True


def require_bounded(lowered: Lowered) -> None:
    """Raise an error if a lowered value is too long or contains numbers with too many bits.

    Terms are trees: if x is squared thirty times, the term contains a billion factors, or a constant
    with a billion bits.
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
    """Return the sum of two lowered values, which is not reordered if its numbers are too large."""
    left, right = whole(a), whole(b)
    if left is not None and right is not None:
        return left + right
    terms = terms_of(a), terms_of(b)
    if all(map(is_moderate, terms)):
        return tidy(terms[0] + terms[1])
    return (Term(1, factors=(Apply("add", terms),)),)


def applied(node: Node, inputs: Sequence[Lowered]) -> Term:
    """Return a term that computes an elementwise operation on the values of its operands."""
    arguments = tuple(terms_of(lowered) for lowered in inputs)
    return Term(1, factors=(Apply(node.op, arguments),))


def comparison(predicate: str, a: Lowered, b: Lowered) -> Lowered:
    """Compare two lowered values; the result is a condition, or a term if no condition expresses it."""
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
    # If one part is decided, it is the result, or the other part determines the result as a boolean.
    for n, x in enumerate(parts):
        if isinstance(x, GuardedCases) and (value := decided(x, scope).value) is not None:
            if value == (op == "or"):
                return TRUE if value else FALSE
            other = terms_of(parts[1 - n])
            return (Term(1, factors=(Apply(op, (other, other)),)),)
    return (Term(1, factors=(Apply(op, tuple(map(terms_of, parts))),)),)


def _table(node: Node, key: Lowered, scope: IndexScope) -> Lowered:
    """Lower ``lookup`` or ``member`` of a position, to a table entry or a condition."""
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
    """Return whether the values of a ``lookup`` table contain strings."""
    values = Entry(node, number(0)).entries().values() if node.op == "lookup" else ()
    return any(isinstance(value, str) for value in values)


def if_else(holds: Lowered, then: Sum, otherwise: Sum, ieee: bool) -> Lowered:
    """Lower a choice: to guarded terms if positions determine it, else to a function of three sums.

    IEEE arithmetic always uses the function, since a sum of guarded terms would lose the sign of −0.
    """
    if isinstance(holds, GuardedCases) and not ieee:
        chosen = tuple(t for case in holds.cases for t in guarded(then, case))
        if otherwise:
            opposite = solving.negation(holds)
            chosen += tuple(t for case in opposite.cases for t in guarded(otherwise, case))
        return tidy(chosen)
    return (Term(1, factors=(Apply("if_else", (terms_of(holds), then, otherwise)),)),)


def decided(condition: GuardedCases, scope: IndexScope) -> GuardedCases:
    """Simplify a condition over the box, or raise :class:`Refine` for a cut that helps to decide it."""
    settled = condition.settled(scope.box)
    if settled.value is None:
        request = solving.cut_for(settled, scope.box, scope.roots)
        if request is not None:
            raise request
    return settled
