"""Find s-ops that may have no value, and s-ops that are not causal.

Dense execution refuses such inputs. Heads and hidden units compute some number all the same, or never
look (a selector that is decided before there is any input is folded), so the network has to be told.

What is listed may have no value, as far as the values of its inputs are known; whatever is not listed
has one on every input that the network is compiled for.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from itertools import product

import numpy as np

from locum.errors import CompileError
from locum.execution.types import Types, possible_types, types_of
from locum.graph import OPERATIONS, Node, Sort, abbreviate, postorder, sort_of
from locum.networks.compiler.compile_limits import check_time
from locum.networks.compiler.program.patterns import Patterns
from locum.networks.compiler.program.sources import MAX_COMBINATIONS, each, meaning

#: Operations that have a value whatever their inputs are, and those that have one for all numbers.
_ALWAYS = frozenset(("and", "or", "not", "indicator", "member", "equal", "not_equal", "if_else"))
_ORDERS = ("less", "less_equal", "greater", "greater_equal")
_ARITHMETIC = ("add", "subtract", "multiply", "negate", "absolute", "minimum", "maximum")
_OF_NUMBERS = frozenset((*_ORDERS, *_ARITHMETIC))
_QUOTIENTS = frozenset(("divide", "modulo", "floor_divide"))
_ROUNDINGS = ("floor", "round")  # infinity has no integer
_EQUALITIES = ("==", "!=")


def undefined(
    root: Node, written_out: Node, selectors: Patterns, computed: Collection[Node]
) -> Iterator[Node]:
    """Yield the s-ops and selectors of a program that may have no value on some input.

    ``written_out`` is the program without families, of which ``selectors`` knows. ``computed`` are the
    s-ops that the network computes. On real-valued tokens, the units of elementwise s-ops serve exactly
    the numbers for which they have a value, or raise an error when they are run.

    >>> from locum import select, selector_width, tokens
    >>> from locum.networks.compiler.target import Target
    >>> from locum.networks.compiler.scoring.scored_selectors import Selectors
    >>> others = selector_width(select(tokens, tokens, "!="))
    >>> shares = (1 / (others + 1) + 1 / others).node
    >>> list(undefined(shares, shares, Selectors(Target.read(length=3, vocabulary="ab")), ()))
    [<divide: 1 / selector_width(select(tokens, tokens, !=))>]
    """
    vocabulary = selectors.target.vocabulary
    numeric = vocabulary is None
    tokens = frozenset({int, float}) if vocabulary is None else types_of(vocabulary)
    types = possible_types(root, tokens)
    for node in postorder(root):
        if node.op == "sum_over" and str in types[node.inputs[0]]:
            yield node  # it begins with 0, to which no string can be added
    definedness = _Definedness(selectors, possible_types(written_out, tokens))
    for node in postorder(written_out):
        check_time(node)
        is_computed = numeric and node in computed and OPERATIONS[node.op].elementwise
        served = is_computed and node.op != "lookup" and not _mixed(definedness.types_at(node))
        if not served and definedness.may_fail(node):
            yield node


class _Definedness:
    """Tell what may fail of each s-op and selector of a program."""

    def __init__(self, selectors: Patterns, types: Mapping[Node, Types]) -> None:
        self.selectors, self.values = selectors, selectors.values
        #: By the operations alone.
        self.types = types

    def may_fail(self, node: Node) -> bool:
        """Say whether it may have no value where its inputs have one."""
        if sort_of(node) is Sort.SOP and _mixed(self.types_at(node)):
            return True
        match node.op:
            case "tokens":
                table = self.values.table(node)
                return table is not None and None in table.values
            case "select":
                together = frozenset[type]().union(*map(self.types_at, node.inputs))
                return node.predicate not in _EQUALITIES and _mixed(together)
            case "best":
                return _mixed(self.types_at(node.inputs[1]))
            case "aggregate":
                selector, value = node.inputs
                averaged = self.types[value] & {bool, str}  # where 1 and True are one, both may occur
                return bool(averaged) and not self.selectors.unique(selector)
            case op if OPERATIONS[op].elementwise:
                return self._has_gap(node)
            case _:
                return False

    def types_at(self, node: Node) -> Types:
        """Return the types of its values, as far as they are listed, or that it may have."""
        moved = False
        while node.op == "aggregate" and not self.selectors.may_be_empty(node.inputs[0]):
            node, moved = node.inputs[1], True  # what it moves, or means, but not its default
        known = self.values.finite(node)
        types = self.types[node] if known is None else types_of(known)
        return types | {float} if moved and str not in types else types

    def _has_gap(self, node: Node) -> bool:
        """Say whether an operation may have no value for some values of its inputs."""
        numbers = not any(str in self.types[i] for i in node.inputs)
        if node.op in _ALWAYS or (numbers and node.op in _OF_NUMBERS):
            return False
        if node.op in _ROUNDINGS and numbers and float not in self.types[node.inputs[0]]:
            return False
        values = self.values
        gap = values.has_gap(node)
        if gap is not None:
            return gap
        domains = [known for i in node.inputs if (known := values.finite(i)) is not None]
        if len(domains) == len(node.inputs) and math.prod(map(len, domains)) <= MAX_COMBINATIONS:
            return None in each(meaning(node), list(zip(*product(*domains), strict=True)))
        if not numbers or node.op not in _QUOTIENTS:
            return True
        divisors, between = values.finite(node.inputs[1]), values.integers(node.inputs[1])
        if divisors is not None:
            return 0 in divisors
        return between is None or between.low <= 0 <= between.high


def _mixed(types: Types) -> bool:
    return str in types and len(types) > 1


def require_causal(root: Node, patterns: Patterns) -> None:
    """Refuse a program that looks ahead, by the selector that does; ``patterns`` are its selectors'."""
    ahead = ~np.tri(patterns.target.longest, dtype=bool)
    for node in postorder(root):
        if node.op == "length" and not patterns.target.fixed:
            raise CompileError(
                "a causal network does not know the length of its input, which no prefix tells; try "
                "indices + 1 for the length of the prefix, or fixed=True for inputs of one length",
                _reader_of_length(root),
            )
        if node.op in ("aggregate", "selector_width", "best"):
            selector = node.inputs[0]
            seen = np.argwhere(patterns.possible(selector) & ahead)
            if len(seen):
                query, key = seen[0]
                raise CompileError(
                    f"this selector looks ahead: from position {query} it may select position {key}, "
                    "which the causal mask of a decoder hides; try (selector) and "
                    "select(indices, indices, <=), or compile without causal",
                    abbreviate(selector),
                )


def _reader_of_length(root: Node) -> str:
    """Return the selector that reads the length; without one, what else does."""
    readers = [node for node in postorder(root) if any(i.op == "length" for i in node.inputs)]
    selectors = [
        node
        for node in postorder(root)
        if node.op == "select"
        and any(i.op == "length" for part in node.inputs for i in postorder(part))
    ]
    return abbreviate(next(iter((*selectors, *readers)), root))
