"""Find the sums of a program, and the values of those that are integers.

RASP has means, and no sums. A sum is written as the number of selected keys times their mean:
``length * aggregate(full_s, v)``, ``selector_width(s) * aggregate(s, v)``. Dense execution rounds the
quotient and the product, so a sum of integers is an integer only up to its last bits. ``round`` of it
is that integer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from locum.errors import CompileError
from locum.graph import Atom, Node
from locum.networks.compiler.program.aggregates import (
    SelectorFacts,
    Unlisted,
    ValuesOfInputs,
    sums_of_subsets,
)
from locum.networks.compiler.program.sources import MAX_POSITIONS, MAX_VALUES, Pattern
from locum.networks.compiler.target import Target

#: Sums of so few different integers are weighted sums of counts.
FEW_ADDENDS = 3
#: Integers up to here are told apart after a quotient and a product were rounded.
_LARGEST = 2**50


@dataclass(frozen=True)
class SumOfKeys:
    """The sum of ``values`` over the keys that a selector selects: ``count`` times their mean."""

    count: Node
    mean: Node

    @property
    def selector(self) -> Node:
        """The selector of both."""
        return self.mean.inputs[0]

    @property
    def values(self) -> Node:
        """The s-op that is summed."""
        return self.mean.inputs[1]


class SelectedKeys(SelectorFacts, Protocol):
    """What sums depend on of selectors (``patterns.py``)."""

    def pattern(self, selector: Node) -> Pattern | None:
        """Return [query, key] where it depends on positions alone, else None."""
        ...

    def may_be_empty(self, selector: Node) -> bool:
        """Return whether some query may select nothing."""
        ...


def find_sum(
    node: Node, target: Target, values: ValuesOfInputs, selectors: SelectedKeys
) -> SumOfKeys | None:
    """Return the sum that a product is, or that ``round`` rounds; None for other s-ops."""
    product = node.inputs[0] if node.op == "round" else node
    if product.op != "multiply":
        return None
    for count, mean in (product.inputs, product.inputs[::-1]):
        if mean.op == "aggregate" and _counts(count, mean.inputs[0], target, values, selectors):
            return SumOfKeys(count, mean)
    return None


def list_sums(
    found: SumOfKeys, target: Target, values: ValuesOfInputs, selectors: SelectedKeys
) -> tuple[Atom, ...] | None:
    """List the integers that a sum may be; None for sums of other numbers, and for too many."""
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
    """Return whether dense execution rounds no sum: it equals count · (sum / count) for every count."""
    totals = np.array(sums, dtype=np.float64)
    return all(np.array_equal(n * (totals / n), totals) for n in range(1, longest + 1))


def _counts(
    count: Node, selector: Node, target: Target, values: ValuesOfInputs, selectors: SelectedKeys
) -> bool:
    """Return whether an s-op is the number of keys that a selector selects, on every input."""
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
