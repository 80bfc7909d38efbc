"""Find s-ops and selectors that may be undefined on some input, and check that programs are causal.

Dense execution raises an error if an s-op is undefined. Heads and hidden units always compute a number,
and constant parts are evaluated before there is an input, so the network needs explicit checks.

The result may include s-ops that are always defined. With a vocabulary, all other s-ops are defined if
their inputs are defined.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterator, Mapping
from itertools import product

import numpy as np

from locum.errors import CompileError
from locum.execution.types import Types, possible_types, types_of
from locum.graph import OPERATIONS, Node, Sort, abbreviate, postorder, sort_of
from locum.networks.compiler.compile_limits import check_time
from locum.networks.compiler.program.patterns import Patterns
from locum.networks.compiler.program.sources import MAX_COMBINATIONS, each, meaning

#: Operations that are always defined, and operations that are defined for all numbers. Exceptions are
#: sums and products of integers beyond the range of floats.
_ALWAYS = frozenset(("and", "or", "not", "indicator", "member", "equal", "not_equal", "if_else"))
_ORDERS = ("less", "less_equal", "greater", "greater_equal")
_ARITHMETIC = ("add", "subtract", "multiply", "negate", "absolute", "minimum", "maximum")
_OF_NUMBERS = frozenset((*_ORDERS, *_ARITHMETIC))
_QUOTIENTS = frozenset(("divide", "modulo", "floor_divide"))
_ROUNDINGS = ("floor", "round")  # infinity cannot be rounded to an integer
_EQUALITIES = ("==", "!=")
#: Largest float.
_LARGEST = sys.float_info.max


def undefined(
    root: Node, written_out: Node, selectors: Patterns, computed: Collection[Node]
) -> Iterator[Node]:
    """Yield the s-ops and selectors that may be undefined although their inputs are defined.

    ``written_out`` is the program without families, and ``selectors`` are facts about it. ``computed``
    are the s-ops that the network computes. With real-valued tokens, most elementwise s-ops that the
    network computes from tokens are omitted. If such an s-op may be undefined on the range of its
    inputs, the program does not compile to hidden units. Symbolic feed-forwards raise an error when the
    network runs on an input for which the s-op is undefined.

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
            yield node  # the sum starts with 0, to which no string can be added
    definedness = _Definedness(selectors, possible_types(written_out, tokens))
    for node in postorder(written_out):
        check_time(node)
        is_computed = numeric and node in computed and OPERATIONS[node.op].elementwise
        served = (
            is_computed
            and node.op != "lookup"
            and not _mixed(definedness.types_at(node))
            and not definedness.is_tabulated(node)
        )
        if not served and definedness.may_fail(node):
            yield node


class _Definedness:
    """Facts about which s-ops and selectors of a program may be undefined."""

    def __init__(self, selectors: Patterns, types: Mapping[Node, Types]) -> None:
        self.selectors, self.values = selectors, selectors.values
        #: Possible types of each s-op, derived only from the operations.
        self.types = types

    def is_tabulated(self, node: Node) -> bool:
        """Return whether embeddings or lookup tables may compute a node, or the inverse of its divisor.

        They contain an arbitrary number where the value is undefined.
        """
        last = node.inputs[-1] if node.op in _QUOTIENTS else node
        return any(self.values.table(part) is not None for part in (node, last))

    def may_fail(self, node: Node) -> bool:
        """Return whether a node may be undefined although its inputs are defined."""
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
                averaged = self.types[value] & {bool, str}  # ``finite`` merges True and 1
                return bool(averaged) and not self.selectors.unique(selector)
            case op if OPERATIONS[op].elementwise:
                return self._has_gap(node)
            case _:
                return False

    def types_at(self, node: Node) -> Types:
        """Return the types of an s-op's possible values.

        If the values cannot be listed, the types follow from the operations.
        """
        moved = False
        while node.op == "aggregate" and not self.selectors.may_be_empty(node.inputs[0]):
            node, moved = node.inputs[1], True  # the default is not used
        known = self.values.finite(node)
        types = self.types[node] if known is None else types_of(known)
        return types | {float} if moved and str not in types else types

    def _may_overflow(self, node: Node) -> bool:
        """Return whether a sum, difference or product reads integers beyond the range of floats.

        If the other number is a float, the result is undefined.
        """
        if node.op not in ("add", "subtract", "multiply"):
            return False
        tables = [self.values.table(i) for i in node.inputs]
        return any(table is not None and table.largest_whole > _LARGEST for table in tables)

    def _has_gap(self, node: Node) -> bool:
        """Return whether an elementwise operation may be undefined for some values of its inputs."""
        numbers = not any(str in self.types[i] for i in node.inputs)
        if node.op in _ALWAYS or (numbers and node.op in _OF_NUMBERS and not self._may_overflow(node)):
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
    """Raise CompileError, naming a selector or an s-op, unless a program is known to be causal."""
    ahead = ~np.tri(patterns.target.longest, dtype=bool)
    for node in postorder(root):
        if node.op == "length" and not patterns.target.fixed:
            raise CompileError(
                "causal: expected values that depend only on the prefix up to each position, got the "
                "length of the input; try indices + 1 for the length of the prefix, or fixed=True for "
                "inputs of one length",
                _reader_of_length(root),
            )
        if node.op in ("aggregate", "selector_width", "best"):
            selector = node.inputs[0]
            seen = np.argwhere(patterns.possible(selector) & ahead)
            if len(seen):
                seen = np.argwhere(patterns.possible_pairs(selector) & ahead)
            if len(seen):
                query, key = seen[0]
                raise CompileError(
                    "causal: expected a selector of the query's position or earlier positions, got one "
                    f"with which position {query} may select position {key}; try (selector) and "
                    "select(indices, indices, <=), or compile without causal",
                    abbreviate(selector),
                )


def _reader_of_length(root: Node) -> str:
    """Return the text of a selector that reads the length, or otherwise of an s-op that reads it."""
    readers = [node for node in postorder(root) if any(i.op == "length" for i in node.inputs)]
    selectors = [
        node
        for node in postorder(root)
        if node.op == "select"
        and any(i.op == "length" for part in node.inputs for i in postorder(part))
    ]
    return abbreviate(next(iter((*selectors, *readers)), root))
