"""Derive facts from the option ``inputs``: counts of tokens, and positions at which a token can occur.

Every fact holds for all inputs that the network accepts. Facts that would take too long to compute are
not used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from locum.errors import CompileError
from locum.graph import OPERATIONS, Atom, Node, loads, postorder
from locum.networks.compiler.input_reading import count_automaton
from locum.networks.compiler.program.sources import (
    MAX_COMBINATIONS,
    Pattern,
    each,
    evaluated,
    meaning,
    select,
    selectors_of,
)
from locum.networks.compiler.target import DOMAIN, Target
from locum.networks.transformer.input_conditions import InputCondition, TokenAutomaton

#: Maximum number of states of the automaton of two combined conditions.
MAX_COMBINED = 2**10
#: Maximum number of search steps for counts of tokens, and maximum size of the table of possible
#: tokens. The search for possible tokens may have 64 times as many steps.
MAX_SEARCH = 2**24
MAX_POSSIBLE = 2**22


class AssumedInputs:
    """Facts about all inputs that satisfy the conditions of a network."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._conditions: Sequence[InputCondition] = target.inputs or ()
        self._counts: dict[frozenset[int], tuple[int, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._conditions) and self._target.vocabulary is not None

    def counts(self, tokens: frozenset[int]) -> tuple[int, int]:
        """Return a lower and an upper bound on the number of positions whose token id is in ``tokens``.

        >>> target = Target.read(length=5, vocabulary="ab+", inputs={"+": 1, "a": (0, 2)})
        >>> assumed = AssumedInputs(target)
        >>> assumed.counts(frozenset({2})), assumed.counts(frozenset({0, 2}))
        ((1, 1), (1, 3))
        """
        if tokens not in self._counts:
            bounds = [(0, self._target.longest)]
            bounds += [self._bounds(automaton, tokens) for automaton in self._automata]
            lows, highs = zip(*bounds, strict=True)
            self._counts[tokens] = max(lows), min(highs)
        return self._counts[tokens]

    @cached_property
    def possible(self) -> NDArray[np.bool_] | None:
        """Whether each token can occur at each position, for each length of the input.

        The shape is [token, position, length − shortest]. The value is None without conditions or
        without a vocabulary, or if the array would be too large. Some impossible tokens may count as
        possible.
        """
        target, automata = self._target, self._automata
        if not self or target.vocabulary is None:
            return None
        lengths = range(target.shortest, target.longest + 1)
        shape = len(target.vocabulary), target.longest, len(lengths)
        if math.prod(shape) > MAX_POSSIBLE:
            return None
        inside = np.arange(target.longest)[:, None] < np.array(lengths)
        result = np.broadcast_to(inside, shape).copy()
        for automaton in automata:
            by_rest = self._by_rest(automaton)  # [token, position, number of later tokens]
            if by_rest is None:
                continue
            for place, length in enumerate(lengths):
                at = np.arange(length)
                result[:, at, place] &= by_rest[:, at, length - 1 - at]
        for conjunct in self._conjuncts:
            holds = _local(conjunct, target)
            if holds is not None:
                result &= holds
        # An input has a token at every position.
        result &= (result.any(axis=0) | ~inside).all(axis=0)
        if not result.any():
            raise _no_input(target)
        return result

    # How facts are derived ------------------------------------------------------------------------

    @cached_property
    def _conjuncts(self) -> list[Node]:
        """The s-ops that the conditions require to be true at every position."""
        conjuncts = []
        stack = [loads(condition.program) for condition in self._conditions if condition.program]
        while stack:
            node = stack.pop()
            if node.op == "and":
                stack.extend(node.inputs)
            else:
                conjuncts.append(node)
        return conjuncts

    @cached_property
    def _automata(self) -> list[TokenAutomaton]:
        """Automata that accept every input of the network.

        Automata are combined if their product has few states.
        """
        if not self:
            return []
        given = [c.automaton for c in self._conditions if c.automaton is not None]
        combined: list[TokenAutomaton] = []
        for automaton in [*given, *self._counted()]:
            product = _product(combined[-1], automaton) if combined else None
            if product is None:
                combined.append(automaton)
            else:
                combined[-1] = product
        for automaton in combined:
            self._require_input(automaton)
        return combined

    def _counted(self) -> Iterator[TokenAutomaton]:
        """Yield automata for the conditions on counts.

        Such a condition compares the width of a selector of tokens with a constant.
        """
        vocabulary, longest = self._target.vocabulary or (), self._target.longest
        for node in self._conjuncts:
            if OPERATIONS[node.op].group != "comparison":
                continue
            widths = [i for i in node.inputs if i.op == "selector_width"]
            numbers = [i.value for i in node.inputs if i.op == "constant"]
            if len(widths) != 1 or len(numbers) != 1:
                continue
            tokens = selected_tokens(widths[0].inputs[0], vocabulary)
            if tokens is None:
                continue
            counts = list(range(longest + 1))
            columns = [counts if i is widths[0] else [numbers[0]] * len(counts) for i in node.inputs]
            holds = [count for count, value in enumerate(each(meaning(node), columns)) if value]
            if not holds:
                raise _no_input(self._target)
            high = None if holds[-1] == longest else holds[-1]
            yield count_automaton(tokens, holds[0], high, len(vocabulary))

    def _bounds(self, automaton: TokenAutomaton, tokens: frozenset[int]) -> tuple[int, int]:
        """Return bounds on the count of ``tokens`` in the words that an automaton accepts."""
        table = np.array(automaton.transitions)
        if table.size * self._target.longest > MAX_SEARCH:
            return 0, self._target.longest
        weight = np.isin(np.arange(table.shape[1]), list(tokens)).astype(float)
        accepting = list(automaton.accepting)
        least, most = np.full(len(table), np.inf), np.full(len(table), -np.inf)
        least[0] = most[0] = 0.0
        low, high = math.inf, -math.inf
        for length in range(1, self._target.longest + 1):
            least, before = np.full(len(table), np.inf), least
            np.minimum.at(least, table, before[:, None] + weight)
            most, before = np.full(len(table), -np.inf), most
            np.maximum.at(most, table, before[:, None] + weight)
            if length >= self._target.shortest and accepting:
                low, high = min(low, least[accepting].min()), max(high, most[accepting].max())
        return int(low), int(high)  # some word is accepted

    def _require_input(self, automaton: TokenAutomaton) -> None:
        """Raise CompileError if an automaton accepts no input of the lengths of the network."""
        reached = _forward(automaton, self._target.longest + 1)
        lengths = slice(self._target.shortest, None)
        if not reached[lengths, list(automaton.accepting)].any():
            raise _no_input(self._target)

    def _by_rest(self, automaton: TokenAutomaton) -> NDArray[np.bool_] | None:
        """Return whether an accepted word can contain a token at a position.

        The shape is [token, position, number of later tokens]. Return None if the search would be too
        long.
        """
        table, longest = np.array(automaton.transitions), self._target.longest
        states, tokens = table.shape
        if states * tokens * longest**2 > 64 * MAX_SEARCH:
            return None
        reached = _forward(automaton, longest).astype(np.float32)
        accepted = np.zeros((longest, states), dtype=np.float32)  # [number of later tokens, state]
        accepted[0, list(automaton.accepting)] = 1
        for count in range(1, longest):
            accepted[count] = accepted[count - 1][table].max(axis=1)
        return np.stack([reached @ accepted[:, table[:, t]].T > 0 for t in range(tokens)])


def _no_input(target: Target) -> CompileError:
    lengths = f"{target.shortest} to {target.longest}" if not target.fixed else f"{target.longest}"
    return CompileError(
        f"inputs: expected a condition that some input of {lengths} tokens satisfies, got one that no "
        "such input satisfies"
    )


def _forward(automaton: TokenAutomaton, steps: int) -> NDArray[np.bool_]:
    """Return whether each state of an automaton is reachable after a number of tokens.

    The shape is [number of tokens, state], for 0 to ``steps`` − 1 tokens.
    """
    table = np.array(automaton.transitions)
    reached = np.zeros((steps, len(table)), dtype=bool)
    reached[0, 0] = True
    for count in range(1, steps):
        reached[count, table[reached[count - 1]].ravel()] = True
    return reached


def _product(one: TokenAutomaton, other: TokenAutomaton) -> TokenAutomaton | None:
    """Return the automaton of the words that both automata accept; None if it has too many states."""
    numbers = {(0, 0): 0}
    order, rows = [(0, 0)], []
    for first, second in order:
        row = []
        for pair in zip(one.transitions[first], other.transitions[second], strict=True):
            if pair not in numbers:
                if len(order) == MAX_COMBINED:
                    return None
                numbers[pair] = len(order)
                order.append(pair)
            row.append(numbers[pair])
        rows.append(tuple(row))
    both = set(one.accepting), set(other.accepting)
    accepting = (number for (a, b), number in numbers.items() if a in both[0] and b in both[1])
    return TokenAutomaton(tuple(rows), tuple(accepting))


def selected_tokens(selector: Node, vocabulary: Sequence[Atom]) -> list[int] | None:
    """Return the ids of the tokens that a selector selects.

    Return None if the selector depends on more than the token of the key, or is undefined for a token.
    """

    def leaf(node: Node, _: Sequence[Pattern]) -> Pattern:
        if node.op != "select":
            raise _OtherError
        keys = [_by_token(i, vocabulary) for i in node.inputs]
        queries = set(keys[1])
        if len(queries) > 1:
            raise _OtherError
        return select(keys[0], list(queries), node.predicate, node)

    try:
        return np.flatnonzero(evaluated(selector, leaf)[0]).tolist() if selectors_of(selector) else None
    except (_OtherError, CompileError):
        return None


class _OtherError(Exception):
    """Raised if a selector depends on more than the token of the key, or if a value is undefined."""


def _by_token(node: Node, vocabulary: Sequence[Atom]) -> list[Atom]:
    """Return the value of an s-op for each token.

    Raise an error if the s-op depends on more than the token or is undefined for some token.
    """
    columns: dict[Node, list[Atom | None]] = {}
    for below in postorder(node):
        match below.op:
            case "constant":
                columns[below] = [below.value] * len(vocabulary)
            case "tokens":
                columns[below] = each(partial(DOMAIN.token, cast=below.cast), [vocabulary])
            case op if OPERATIONS[op].elementwise:
                columns[below] = each(meaning(below), [columns[i] for i in below.inputs])
            case _:
                raise _OtherError
    listed = [value for value in columns[node] if value is not None]
    if len(listed) < len(vocabulary):
        raise _OtherError
    return listed


def _local(node: Node, target: Target) -> NDArray[np.bool_] | None:
    """Return whether a boolean s-op may be true for each token, position and length.

    The shape is [token, position, length − shortest]. A combination for which the s-op is undefined
    counts as true. Return None if the s-op depends on attention, or if the array would be too large.
    """
    vocabulary = target.vocabulary or ()
    lengths = range(target.shortest, target.longest + 1)
    shape = len(vocabulary), target.longest, len(lengths)
    if math.prod(shape) > MAX_COMBINATIONS:
        return None
    places = np.indices(shape).reshape(3, -1)
    columns: dict[Node, Sequence[Atom | None]] = {}
    for below in postorder(node):
        match below.op:
            case "constant":
                columns[below] = [below.value] * places.shape[1]
            case "tokens":
                cast = each(partial(DOMAIN.token, cast=below.cast), [vocabulary])
                columns[below] = [cast[token] for token in places[0]]
            case "indices":
                columns[below] = places[1].tolist()
            case "length":
                columns[below] = (places[2] + target.shortest).tolist()
            case op if OPERATIONS[op].elementwise:
                columns[below] = each(meaning(below), [columns[i] for i in below.inputs])
            case _:
                return None
    return np.array([value is not False for value in columns[node]]).reshape(shape)
