"""Find the positions at which signals are needed, and the keys that heads may select.

The universal simulator U computes numbers at every position, but needs only numbers at positions that
contain matrix entries. The ranges of hidden units need not include numbers at other positions.

The analysis runs from the output to the embeddings. The output is needed at every position. A value of
a head is needed at the keys that the head may select. A masked number is needed where the mask is 1, if
the mask depends only on positions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from locum.networks.compiler.network.forms import Form, Mask, Masked, Signal, Vector
from locum.networks.compiler.network.network import Head, Network, Unit
from locum.networks.compiler.program.sources import conditions
from locum.networks.compiler.scoring.broadcasting import Known


@dataclass
class Demand:
    """The positions at which each signal of a network is needed."""

    network: Network
    known: Known
    _of: dict[Signal, Mask] = field(default_factory=dict)
    _allowed: dict[Head, tuple[Mask, bool]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.size = self.known.target.longest
        everywhere = np.ones(self.size, dtype=bool)
        self._read(self.network.output, everywhere)
        for step in reversed(self.network.steps()):
            if isinstance(step, Unit):
                self._unit(step)
            else:
                self._head(step)

    def of(self, signal: Signal) -> Mask:
        """Return a mask of the positions at which a signal is needed."""
        return self._of.get(signal, np.zeros(self.size, dtype=bool))

    def form(self, form: Form) -> Mask:
        """Return a mask of the positions at which any signal of a form is needed."""
        where = np.zeros(self.size, dtype=bool)
        for signal in form.terms:
            where |= self.of(signal)
        return where

    def rows(self, head: Head) -> Mask:
        """Return a mask of the queries for which a result of the head is needed."""
        where = np.zeros(self.size, dtype=bool)
        for value in head.values:
            where |= self.of(value.into)
        return where

    def allowed(self, head: Head) -> tuple[Mask, bool]:
        """Return the pairs [query, key] that a head may select.

        The second result is true if the head selects exactly these pairs on every input.
        """
        if head not in self._allowed:
            self._allowed[head] = self._compute_allowed(head)
        return self._allowed[head]

    def _compute_allowed(self, head: Head) -> tuple[Mask, bool]:
        everything = np.ones((self.size, self.size), dtype=bool)
        if head.kind == "softmax":
            # A selector that depends only on positions determines which keys can have attention weight.
            within = None if head.selector is None else self.known.selectors.pattern(head.selector)
            return everything if within is None else within, False
        # If a query exists, all keys before the query exist.
        all_present = self.known.target.fixed or self.known.target.causal
        if head.selector is None:
            return everything, all_present
        pattern = self.known.selectors.pattern(head.selector)
        if pattern is not None:
            return pattern, all_present
        for condition in conditions(head.selector):
            pattern = self.known.selectors.pattern(condition)
            if pattern is not None:
                everything &= pattern
        return everything, False

    def _read(self, form: Form, where: Mask) -> None:
        for signal in form.terms:
            self._of[signal] = self.of(signal) | where

    def _unit(self, unit: Unit) -> None:
        where = self.of(unit.into)
        if isinstance(unit.gate, Masked):
            self._read(unit.gate.mask, where)
            mask = static(unit.gate.mask, self.size)
            self._read(unit.gate.value, where if mask is None else where & (mask != 0))
            return
        for form in unit.forms:
            self._read(form, where)

    def _head(self, head: Head) -> None:
        allowed, _ = self.allowed(head)
        rows = self.rows(head)
        everywhere = np.full(self.size, rows.any())
        for query, key in zip(head.queries, head.keys, strict=True):
            self._read(query, rows)
            self._read(key, everywhere)
        self._read(head.offset, rows)
        for value in head.values:
            keys: Mask = np.asarray(allowed[self.of(value.into)].any(axis=0))
            self._read(value.form, keys)


def static(form: Form, size: int) -> Vector | None:
    """Return the value at each position of a form that depends only on positions, otherwise None."""
    values = np.full(size, form.constant)
    for signal, c in form.terms.items():
        if signal.positions is None:
            return None
        values = values + c * signal.positions
    return values
