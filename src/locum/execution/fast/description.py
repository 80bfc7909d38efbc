"""Describe a program before it runs: the types of its result, and whether plans can run it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from locum.execution.types import MIXING, Types, has_strings, measure, possible_types
from locum.graph import Node, postorder
from locum.locks import Lock


@dataclass(frozen=True)
class Description:
    """What is known of a program before it runs on tokens of some types."""

    #: Where the result is a float, and a bool: known, or an s-op that is positive there.
    floats: Node | bool
    bools: Node | bool
    #: Why plans cannot run it; None if they can.
    unplanned: str | None
    #: Whether it computes with its numbers. Plans do so in another order: there 0 · ∞ may be 0.
    has_arithmetic: bool
    #: Weak references to plans that only moved integers, by the length and the positions.
    moves: dict[tuple[int, range], Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def static(self) -> list[Node]:
        """The measures that depend on no token: the length decides them."""
        return [m for m in self.measures if not any(node.op == "tokens" for node in postorder(m))]

    @property
    def measures(self) -> list[Node]:
        """The s-ops to run beside the program."""
        return [m for m in (self.floats, self.bools) if isinstance(m, Node)]


#: Descriptions that were made, as long as their programs live, by the types of the tokens.
_known: WeakKeyDictionary[Node, dict[Types, Description]] = WeakKeyDictionary()
_lock = Lock()


def described(root: Node, tokens: Types) -> Description:
    """Describe a program on tokens of these types, once.

    >>> from locum.graph import build
    >>> described(build("add", build("tokens", cast="asis"), build("indices")), frozenset([int]))
    Description(floats=False, bools=False, unplanned=None, has_arithmetic=True)
    """
    with _lock:
        known = _known.setdefault(root, {})
    if tokens not in known:
        possible = possible_types(root, tokens)
        known[tokens] = Description(
            measure(root, possible, float),
            measure(root, possible, bool),
            "the program has strings" if has_strings(root) else _averages_booleans(possible),
            any(node.op in MIXING or node.op in ("divide", "sum_over") for node in possible),
        )
    return known[tokens]


def _averages_booleans(possible: dict[Node, Types]) -> str | None:
    """Say where a mean may be of booleans alone, which dense execution refuses and plans do not see."""
    for node in possible:
        # Tokens are known not to be booleans alone: those are not run by plans.
        if node.op == "aggregate" and node.inputs[1].op != "tokens":
            values = possible[node.inputs[1]]
            if bool in values and values != {bool}:
                return "values that may be booleans are averaged"
    return None
