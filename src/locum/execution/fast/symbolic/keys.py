"""The keys that a selector selects, at symbolic positions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from locum.execution.fast.symbolic.affine import Affine
from locum.execution.fast.symbolic.scope import IndexScope
from locum.execution.fast.symbolic.terms import Guard
from locum.graph import Node

#: Values of the family parameters in scope.
Heads: TypeAlias = Mapping[Node, Affine]


@dataclass(frozen=True, slots=True)
class Keys:
    """Selected keys: positions, one for each value of ``sums``, where guards hold."""

    position: Affine
    sums: tuple[str, ...]
    guards: tuple[Guard, ...]
    filters: tuple[Node, ...]

    def count(self, scope: IndexScope) -> int:
        """Count the keys."""
        return math.prod(scope.box[v] for v in self.sums)


def direction(values: Node, score: Node) -> int | None:
    """Return +1 if the greatest score is the greatest value, −1 if it is the least; None if neither."""
    if values is score:
        return 1
    if (score.op == "negate" and score.inputs[0] is values) or (
        values.op == "negate" and values.inputs[0] is score
    ):
        return -1
    return None
