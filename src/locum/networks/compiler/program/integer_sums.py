"""Find the sums of a program, and the possible values of sums of integers.

RASP has means over keys, but no sums over keys. A program expresses a sum as the number of selected
keys times their mean: ``length * aggregate(full_s, v)`` or ``selector_width(s) * aggregate(s, v)``.
Dense execution rounds the quotient and the product, so the result for integers may differ from an
integer in its last bits. For sums up to 2⁵⁰, applying ``round`` returns the exact integer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from locum.errors import CompileError
from locum.graph import Atom, Node, build
from locum.graph.operations import constant
from locum.networks.compiler.program.aggregates import (
    SelectorFacts,
    Unlisted,
    ValuesOfInputs,
    sums_of_subsets,
)
from locum.networks.compiler.program.sources import MAX_POSITIONS, MAX_VALUES, Pattern
from locum.networks.compiler.target import Target

#: Maximum number of different integers for which a sum is computed as a weighted sum of counts.
FEW_ADDENDS = 3
#: Largest absolute value of the sums that are listed. Sums up to this value are distinguishable after a
#: quotient and a product are rounded.
_LARGEST = 2**50


@dataclass(frozen=True)
class SumOfKeys:
    """The sum of ``values`` over the keys of a selector, written as ``count`` times ``mean``."""

    count: Node
    mean: Node

    @property
    def selector(self) -> Node:
        """The selector of the keys that are summed."""
        return self.mean.inputs[0]

    @property
    def values(self) -> Node:
        """The s-op whose values are summed."""
        return self.mean.inputs[1]


class SelectedKeys(SelectorFacts, Protocol):
    """Facts about selectors that determine the values of sums (``patterns.py``)."""

    def pattern(self, selector: Node) -> Pattern | None:
        """Return the pattern [query, key] of a selector of positions; None for other selectors."""
        ...

    def may_be_empty(self, selector: Node) -> bool:
        """Return whether some query may select no key."""
        ...


def find_sum(
    node: Node, target: Target, values: ValuesOfInputs, selectors: SelectedKeys
) -> SumOfKeys | None:
    """Return the sum over selected keys that a product or a rounded product represents, or None."""
    product = node.inputs[0] if node.op == "round" else node
    if product.op != "multiply":
        return None
    for count, mean in (product.inputs, product.inputs[::-1]):
        if mean.op == "aggregate" and _counts(count, mean.inputs[0], target, values, selectors):
            return SumOfKeys(count, mean)
    return None


def plain_sum(node: Node) -> Node | None:
    """Return the product in a ``locum.sum`` that rounds it only if all selected values are integers.

    The product differs from this sum only by rounding errors. Return None for other s-ops.
    """
    if node.op != "if_else":
        return None
    condition, rounded, total = node.inputs
    if rounded.op != "round" or rounded.inputs[0] is not total or total.op != "multiply":
        return None
    mean = total.inputs[1]
    if mean.op != "aggregate":
        return None
    selector, values = mean.inputs
    fraction = build("not_equal", build("modulo", values, constant(1)), constant(0))
    some = build("aggregate", selector, build("indicator", fraction), default=0)
    return total if condition is build("equal", some, constant(0)) else None


def list_sums(
    found: SumOfKeys, target: Target, values: ValuesOfInputs, selectors: SelectedKeys
) -> tuple[Atom, ...] | None:
    """Return the possible values of a sum of integers.

    Return None if the summed values may not be integers, or if the sums are too many or too large. The
    result is also None if the default of the mean is a string or not finite.
    """
    addends, default = values.finite(found.values), found.mean.default
    if addends is None or not addends or any(isinstance(value, (bool, str)) for value in addends):
        return None
    if isinstance(default, str) or (isinstance(default, float) and not math.isfinite(default)):
        return None
    try:
        sums = sums_of_subsets(addends, target.longest)
    except Unlisted:
        return None
    empty = {0} if selectors.may_be_empty(found.selector) else set()
    listed = tuple(sorted(empty.union(sums)))
    return listed if len(listed) <= MAX_VALUES and max(map(abs, listed)) <= _LARGEST else None


def is_exact(sums: Sequence[Atom], longest: int) -> bool:
    """Return whether dense execution returns all of the sums exactly.

    This means that n · (sum / n) equals the sum for every number n of keys up to ``longest``.
    """
    totals = np.array(sums, dtype=np.float64)
    return all(np.array_equal(n * (totals / n), totals) for n in range(1, longest + 1))


def _counts(
    count: Node, selector: Node, target: Target, values: ValuesOfInputs, selectors: SelectedKeys
) -> bool:
    """Return whether the s-op ``count`` is known to be the number of keys that a selector selects."""
    if count.op == "selector_width" and count.inputs[0] is selector:
        return True
    pattern = selectors.pattern(selector)
    if count.op == "length" and pattern is not None:
        return bool(pattern.all())
    if target.longest**2 > MAX_POSITIONS or not values.depends_on(count, "indices", "length"):
        return False
    try:
        for length in range(target.longest, target.shortest - 1, -1):
            keys = (
                selectors.at_length(selector, length) if pattern is None else pattern[:length, :length]
            )
            if keys is None or not np.array_equal(keys.sum(axis=1), values.at_length(count, length)):
                return False
    except CompileError:
        return False
    return True
