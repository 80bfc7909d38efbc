"""Define conditions that the inputs of a network must satisfy and that are saved with its weights.

A condition is an automaton over the vocabulary, or a RASP program that must return true at every
position of an input. Loading a condition from a file executes no code. Programs of conditions run only
by dense execution.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import InputError
from locum.execution import dense
from locum.execution.domains.floats import FloatDomain
from locum.graph import Node, loads
from locum.text import shortened


@dataclass(frozen=True)
class TokenAutomaton:
    """A complete deterministic finite automaton over token ids, with initial state 0.

    >>> once = TokenAutomaton(((0, 1), (1, 2), (2, 2)), (1,))
    >>> once.accepts(np.array([[0, 1, 0], [1, 0, 1]])).tolist()
    [True, False]
    """

    #: For each state, the next state for each token id.
    transitions: tuple[tuple[int, ...], ...]
    accepting: tuple[int, ...]

    def accepts(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of the accepted inputs in a batch of token ids, [batch, position]."""
        table = np.array(self.transitions)
        states = np.zeros(len(ids), dtype=np.int64)
        for column in ids.T:
            states = table[states, column]
        return np.isin(states, self.accepting)


@dataclass(frozen=True)
class InputCondition:
    """A condition that every input of a network must satisfy: an automaton or a program."""

    #: Description of the inputs that satisfy the condition.
    text: str
    automaton: TokenAutomaton | None = None
    #: Graph (as JSON) of an s-op that must be true at every position.
    program: str = ""

    def accepts(self, rows: Sequence[Sequence[Any]], ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of the inputs ``rows`` that satisfy the condition; ``ids`` are their token
        ids.
        """
        if self.automaton is not None:
            return self.automaton.accepts(ids)
        return np.array([self._holds(row) for row in rows], dtype=bool)

    def _holds(self, row: Sequence[Any]) -> bool:
        """Return whether the program is true at every position of ``row``."""
        return all(value is True for value in dense.evaluate(self._root, list(row), FloatDomain()))

    @functools.cached_property
    def _root(self) -> Node:
        return loads(self.program)


def require_accepted(
    conditions: Sequence[InputCondition], rows: Sequence[Sequence[Any]], ids: NDArray[np.int64]
) -> None:
    """Raise ``InputError`` if an input of a batch violates one of ``conditions``."""
    for condition in conditions:
        accepted = condition.accepts(rows, ids)
        if not accepted.all():
            rejected = list(rows[int(np.argmin(accepted))])
            raise InputError(
                f"expected {condition.text}, got {_shown(rejected)}; this network is compiled for such "
                "inputs alone"
            )


def _shown(tokens: Sequence[Any]) -> str:
    characters = all(isinstance(token, str) and len(token) == 1 for token in tokens)
    return shortened(repr("".join(tokens) if characters else tokens), 80)


def check_conditions(conditions: Sequence[InputCondition], vocabulary: Sequence[Any] | None) -> None:
    """Raise ``InputError`` if the automata of ``conditions`` are invalid or do not fit the vocabulary.

    A condition must have either an automaton or a program. Programs are not checked.
    """
    for number, condition in enumerate(conditions):
        where, automaton = f"inputs[{number}]", condition.automaton
        if (automaton is None) == (not condition.program):
            raise InputError(f"{where}: expected either an automaton or a program")
        if automaton is None:
            continue
        columns, states = len(vocabulary or ()), len(automaton.transitions)
        if not columns:
            raise InputError(f"{where}: expected a vocabulary with an automaton")
        if not states or any(len(row) != columns for row in automaton.transitions):
            raise InputError(f"{where}.automaton: expected {columns} transitions for each state")
        if any(not 0 <= state < states for row in automaton.transitions for state in row):
            raise InputError(f"{where}.automaton.transitions: expected states from 0 to {states - 1}")
        if any(not 0 <= state < states for state in automaton.accepting):
            raise InputError(f"{where}.automaton.accepting: expected states from 0 to {states - 1}")


def read_condition(data: Mapping[str, Any]) -> InputCondition:
    """Return the condition described by an entry of a compiler report.

    >>> read_condition({"text": "any", "automaton": {"transitions": [[0]], "accepting": [0]}}).automaton
    TokenAutomaton(transitions=((0,),), accepting=(0,))
    """
    automaton = data.get("automaton")
    if automaton is not None:
        rows = tuple(tuple(map(int, row)) for row in automaton["transitions"])
        automaton = TokenAutomaton(rows, tuple(map(int, automaton["accepting"])))
    return InputCondition(str(data["text"]), automaton, str(data.get("program", "")))
