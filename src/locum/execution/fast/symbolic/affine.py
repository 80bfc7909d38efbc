"""Represent positions as affine expressions over a box of loop variables in a scope.

Where dense execution has a position 0 … N−1, lowering has an expression such as 4·i + t + 12, where
i and t are loop variables that run over 0 … size−1. The sizes of all variables make up the *box*.
Everything that lowering decides (is this condition always true? which keys are these?) it decides
from the least and the greatest value of such an expression over the box.

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
    """Split a variable into digits, or cut its range in two, and begin again."""

    def __init__(self, name: str, kind: str, at: int) -> None:
        self.name, self.kind, self.at = name, kind, at
        super().__init__(f"{kind} {name} at {at}")


class Stuck(Exception):  # noqa: N818 - the normal end of what can be lowered
    """There is no rule for this."""


class Opaque(Exception):  # noqa: N818 - a request, as Refine is
    """A closed s-op that lowering cannot express: the structured tier runs it."""

    def __init__(self, node: Node, reason: str) -> None:
        self.node, self.reason = node, reason
        super().__init__(reason)


class NotNumeric(Exception):  # noqa: N818 - decides which tier runs the program
    """The program computes strings, which are not lowered."""


#: The sizes of the loop variables.
Box: TypeAlias = Mapping[str, int]


class Affine:
    """constant + Σ coefficient · variable, over the integers; immutable and hashable."""

    __slots__ = ("_hash", "constant", "parts")

    def __init__(self, parts: Iterable[tuple[str, int]] = (), constant: int = 0) -> None:
        self.parts: tuple[tuple[str, int], ...] = tuple(sorted(part for part in parts if part[1]))
        self.constant = constant
        self._hash = hash((self.parts, constant))

    @classmethod
    def _ordered(cls, parts: tuple[tuple[str, int], ...], constant: int) -> Affine:
        """Skip sorting parts that are in order and not 0: most expressions come from others."""
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
        """Whether no variable occurs in it."""
        return not self.parts

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that occur in it."""
        return tuple(v for v, _ in self.parts)

    def coefficient(self, name: str) -> int:
        """Return the coefficient of a variable: 0 if it does not occur."""
        for v, k in self.parts:
            if v == name:
                return k
        return 0

    def without(self, name: str) -> Affine:
        """Drop the part of one variable."""
        return Affine._ordered(tuple([p for p in self.parts if p[0] != name]), self.constant)

    def substitute(self, name: str, value: Affine) -> Affine:
        """Replace a variable by ``value``."""
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
    """Split ``e`` into base·quotient + rest; the rest has the parts that ``base`` does not divide.

    >>> digits(variable("i") * 8 + variable("t") * 3 + 5, 4)
    (2·i, 3·t + 5)
    """
    quotient = Affine((v, k // base) for v, k in e.parts if k % base == 0)
    rest = Affine(((v, k) for v, k in e.parts if k % base), e.constant)
    return quotient, rest


def divided(e: Affine, base: int, box: Box) -> tuple[Affine, Affine]:
    """Return quotient and remainder by a positive integer, both affine.

    Where the remainder would wrap around, the variable that makes it so is split into digits, or its
    range is cut where it wraps ((i + t) % n becomes two boxes).
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
    """Return the first v ≥ 0 from which k·v + constant ≥ 0 holds (k > 0), or fails (k < 0).

    >>> crossing(2, -5), crossing(-2, 5)
    (3, 3)
    """
    return -(constant // k) if k > 0 else constant // -k + 1


#: What became of a variable: ("split", base) or ("cut", at).
Refinements = dict[str, tuple[str, int]]

_MOST_REFINEMENTS = 80
#: Boxes in more pieces than this are not worth lowering.
MOST_PIECES = 64


class IndexScope:
    """The sizes of variables, and which of them make up the position being computed (roots)."""

    def __init__(self, refinements: Refinements, ieee: bool = False) -> None:
        self.refinements = refinements
        #: Whether numbers are IEEE 754's: then arithmetic on data is neither reordered nor simplified.
        self.ieee = ieee
        self.box: dict[str, int] = {}
        self.roots: set[str] = set()

    def ranges(self, name: str, size: int, root: bool = False) -> list[Affine]:
        """Return a variable 0 … size−1 as expressions that together take each of its values once."""
        if size == 1:
            return [number(0)]
        kind, at = self.refinements.get(name, ("", 0))
        if kind == "split":
            whole = size // at * at
            if whole < size and whole:  # digits for the part that they fill, the rest by itself
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
        """Return a smaller variable in place of another, the same one in every attempt."""
        ranges = self.ranges(f"{name}[{mark}:{size}]", size)
        if len(ranges) > 1:
            raise Stuck(f"the range of {name} in pieces")
        return ranges[0]

    def may_refine(self, request: Refine) -> bool:
        """Return whether a variable may be refined (further): a limit keeps lowering finite."""
        return request.name not in self.refinements and len(self.refinements) < _MOST_REFINEMENTS

    def refine(self, request: Refine) -> None:
        """Note what becomes of a variable."""
        if not self.may_refine(request):
            raise Stuck(f"{request}: too many pieces")
        self.refinements = {**self.refinements, request.name: (request.kind, request.at)}
