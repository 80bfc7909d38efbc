"""Hold the variables of one attempt at lowering, refined by earlier attempts.

Lowering a value may find that it needs a variable in digits (p = 4·p₁ + p₀) or its range in two
pieces. It then raises :class:`~locum.execution.fast.symbolic.affine.Refine`; the refinement is noted
under the variable's name, and lowering begins again. Names come from the way to the node (and the size,
where that may differ), so they are the same in the next attempt.
"""

from __future__ import annotations

from locum.execution.fast.symbolic.affine import Affine, number, variable
from locum.execution.fast.symbolic.signals import Refine, Stuck

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
