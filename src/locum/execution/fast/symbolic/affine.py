"""Represent positions as affine expressions in loop variables.

Where dense execution has a position 0 … N−1, lowering has an expression such as 4·i + t + 12. Here i
and t are loop variables that take the values 0 … size−1. The sizes of all variables are called the
*box*. Lowering decides conditions and key ranges by the minimum and the maximum of such an expression
over the box.

>>> box = {"i": 3, "t": 4}
>>> e = variable("i") * 4 + variable("t") + 12
>>> e, bounds(e, box)
(4·i + t + 12, (12, 23))
>>> divided(e, 4, box)
(i + 3, t)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from locum.graph import Node


class Refine(Exception):  # noqa: N818 - a request, not an error
    """Raised to split a variable into digits, or to cut its range in two, and to repeat lowering."""

    def __init__(self, name: str, kind: str, at: int) -> None:
        self.name, self.kind, self.at = name, kind, at
        super().__init__(f"{kind} {name} at {at}")


class Stuck(Exception):  # noqa: N818 - the normal end of what can be lowered
    """Raised if no rule for lowering applies, or if a limit would be exceeded."""


class Opaque(Exception):  # noqa: N818 - a request, as Refine is
    """Raised for an s-op without free families that cannot be lowered.

    Unless a buffer avoids the problem, the structured tier runs this s-op, or planning fails.
    """

    def __init__(self, node: Node, reason: str) -> None:
        self.node, self.reason = node, reason
        super().__init__(reason)


class NotNumeric(Exception):  # noqa: N818 - decides which tier runs the program
    """Raised for a program that computes strings, since such a program is not lowered."""


#: The sizes of the loop variables.
Box: TypeAlias = Mapping[str, int]


class Affine:
    """A hashable expression constant + Σ coefficient · variable over the integers."""

    __slots__ = ("_hash", "constant", "parts")

    def __init__(self, parts: Iterable[tuple[str, int]] = (), constant: int = 0) -> None:
        self.parts: tuple[tuple[str, int], ...] = tuple(sorted(part for part in parts if part[1]))
        self.constant = constant
        self._hash = hash((self.parts, constant))

    @classmethod
    def _ordered(cls, parts: tuple[tuple[str, int], ...], constant: int) -> Affine:
        """Create an expression from parts that are sorted and non-zero, without sorting them again."""
        self = cls.__new__(cls)
        self.parts, self.constant = parts, constant
        self._hash = hash((parts, constant))
        return self

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Affine) and self.constant == other.constant and self.parts == other.parts
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        shown = [f"{k}·{v}" if k != 1 else v for v, k in self.parts]
        if self.constant or not shown:
            shown.append(str(self.constant))
        return " + ".join(shown)

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine._ordered(self.parts, self.constant + other) if other else self
        if not other.parts:
            return self + other.constant
        if not self.parts:
            return other + self.constant
        total = dict(self.parts)
        for v, k in other.parts:
            total[v] = total.get(v, 0) + k
        return Affine(total.items(), self.constant + other.constant)

    def __neg__(self) -> Affine:
        return self * -1

    def __sub__(self, other: Affine | int) -> Affine:
        return self + (-other)

    def __mul__(self, factor: int) -> Affine:
        if factor == 1:
            return self
        parts = tuple([(v, k * factor) for v, k in self.parts]) if factor else ()
        return Affine._ordered(parts, self.constant * factor)

    @property
    def is_constant(self) -> bool:
        """Whether the expression contains no variable."""
        return not self.parts

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that occur in the expression."""
        return tuple(v for v, _ in self.parts)

    def coefficient(self, name: str) -> int:
        """Return the coefficient of the variable ``name``, or 0 if it does not occur."""
        for v, k in self.parts:
            if v == name:
                return k
        return 0

    def without(self, name: str) -> Affine:
        """Return the expression without the variable ``name``."""
        return Affine._ordered(tuple([p for p in self.parts if p[0] != name]), self.constant)

    def substitute(self, name: str, value: Affine) -> Affine:
        """Return the expression with the variable ``name`` replaced by ``value``."""
        k = self.coefficient(name)
        return self.without(name) + value * k if k else self


def variable(name: str) -> Affine:
    """Return a loop variable as an expression."""
    return Affine._ordered(((name, 1),), 0)


def number(value: int) -> Affine:
    """Return an integer as an expression."""
    return Affine._ordered((), value)


def bounds(e: Affine, box: Box) -> tuple[int, int]:
    """Return the minimum and the maximum of ``e`` over the box."""
    least = greatest = e.constant
    for v, k in e.parts:
        reach = k * (box[v] - 1)
        if reach < 0:
            least += reach
        else:
            greatest += reach
    return least, greatest


def digits(e: Affine, base: int) -> tuple[Affine, Affine]:
    """Split ``e`` into base·quotient + rest.

    The rest contains the constant and the terms whose coefficients are not divisible by ``base``.

    >>> digits(variable("i") * 8 + variable("t") * 3 + 5, 4)
    (2·i, 3·t + 5)
    """
    quotient = Affine((v, k // base) for v, k in e.parts if k % base == 0)
    rest = Affine(((v, k) for v, k in e.parts if k % base), e.constant)
    return quotient, rest


def divided(e: Affine, base: int, box: Box) -> tuple[Affine, Affine]:
    """Return the quotient and the remainder of ``e`` by a positive integer ``base``, both affine.

    If the remainder wraps around within the box, :class:`Refine` is raised. The exception requests to
    split a variable into digits, or to cut its range where the remainder wraps around. If neither
    helps, :class:`Stuck` is raised. An example is (i + t) % n for i, t < n: the region i + t < n is not
    a box.
    """
    quotient, rest = digits(e, base)
    least, greatest = bounds(rest, box)
    wraps = least // base
    if wraps == greatest // base:
        return quotient + wraps, rest - wraps * base
    for v, k in rest.parts:
        period = base // abs(k)
        if base % abs(k) == 0 and box[v] > period > 1:
            raise Refine(v, "split", period)
    if len(rest.parts) == 1:
        ((v, k),) = rest.parts
        raise Refine(v, "cut", crossing(k, rest.constant - (least // base + 1) * base))
    raise Stuck(f"({e}) modulo {base}")


def crossing(k: int, constant: int) -> int:
    """Return the smallest v from which k·v + constant ≥ 0 holds (k > 0), or fails (k < 0).

    >>> crossing(2, -5), crossing(-2, 5)
    (3, 3)
    """
    return -(constant // k) if k > 0 else constant // -k + 1


#: For each refined variable, ("split", base) or ("cut", at).
Refinements = dict[str, tuple[str, int]]

_MOST_REFINEMENTS = 80
#: Maximum number of pieces of a lowered box.
MOST_PIECES = 64


class IndexScope:
    """The loop variables of a lowered buffer, with their sizes and refinements.

    Root variables are the variables that form the position at which the buffer is computed, and the
    members of its families.
    """

    def __init__(self, refinements: Refinements, ieee: bool = False) -> None:
        self.refinements = refinements
        #: Whether arithmetic follows IEEE 754. If so, arithmetic on data is neither reordered, except
        #: within sums over families and means, nor simplified.
        self.ieee = ieee
        self.box: dict[str, int] = {}
        self.roots: set[str] = set()

    def ranges(self, name: str, size: int, root: bool = False) -> list[Affine]:
        """Return expressions that together take each value 0 … size−1 of a variable once."""
        if size == 1:
            return [number(0)]
        kind, at = self.refinements.get(name, ("", 0))
        if kind == "split":
            whole = size // at * at
            if whole < size and whole:  # digits for complete blocks, the rest separately
                first = self._digits(name, whole // at, at, root)
                rest = self.ranges(name + "'", size - whole, root)
                return first + [e + whole for e in rest]
            if whole:
                return self._digits(name, size // at, at, root)
        if kind == "cut" and 0 < at < size:
            below = self.ranges(name + "<", at, root)
            above = self.ranges(name + ">", size - at, root)
            return below + [e + at for e in above]
        assert self.box.get(name, size) == size, f"two variables are called {name}"
        self.box[name] = size
        if root:
            self.roots.add(name)
        return [variable(name)]

    def _digits(self, name: str, high: int, low: int, root: bool) -> list[Affine]:
        highs = self.ranges(name + "/", high, root)
        lows = self.ranges(name + "%", low, root)
        if len(highs) * len(lows) > MOST_PIECES:
            raise Stuck(f"the range of {name} in too many pieces")
        return [h * low + l for h in highs for l in lows]

    def fresh(self, name: str, mark: str, size: int) -> Affine:
        """Return an expression with ``size`` values that replaces another variable; 0 for size 1.

        The name of the variable is the same in every attempt.
        """
        ranges = self.ranges(f"{name}[{mark}:{size}]", size)
        if len(ranges) > 1:
            raise Stuck(f"the range of {name} in pieces")
        return ranges[0]

    def may_refine(self, request: Refine) -> bool:
        """Return whether a variable may be refined: once, and as long as the limit is not reached.

        The limit guarantees termination.
        """
        return request.name not in self.refinements and len(self.refinements) < _MOST_REFINEMENTS

    def refine(self, request: Refine) -> None:
        """Record the refinement of a variable, or raise :class:`Stuck` if it is not allowed."""
        if not self.may_refine(request):
            raise Stuck(f"{request}: too many pieces")
        self.refinements = {**self.refinements, request.name: (request.kind, request.at)}
