"""What a program may be run on: one sequence of atoms, or a batch of sequences of one length.

A string is a sequence of characters. A list, tuple or one-dimensional array is a sequence of atoms.
A list of lists, or a two-dimensional array, is a batch. Everything else is refused here, once, so
that no executor needs to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.errors import InputError
from understudy.execution.domains import Domain, Value


@dataclass(frozen=True)
class Inputs:
    """Sequences to run on, and the form in which results are to be given back."""

    sequences: list[list[Value]]
    batch: bool
    array: bool

    @property
    def length(self) -> int:
        """The length of every sequence."""
        return len(self.sequences[0])


def read(given: object, domain: Domain) -> Inputs:
    """``given`` as sequences of values the domain accepts, or an :class:`InputError`."""
    array = isinstance(given, np.ndarray)
    items = _listed(given)
    if not items:
        raise InputError("the input is empty: a program needs at least one token")
    nested = [isinstance(item, (list, tuple, np.ndarray)) for item in items]
    if not any(nested):
        return Inputs([_sequence(items, domain)], batch=False, array=array)
    if not all(nested):
        raise InputError("the input mixes tokens and sequences: give one sequence, or a batch of them")
    sequences = [_sequence(_listed(item), domain) for item in items]
    lengths = [len(sequence) for sequence in sequences]
    if len(set(lengths)) > 1:
        raise InputError(
            f"the batch is ragged: its sequences have lengths {_some(lengths)}; a batch holds "
            "sequences of one length (run the others by themselves)"
        )
    if lengths[0] == 0:
        raise InputError("the input is empty: every sequence of the batch has no tokens")
    return Inputs(sequences, batch=True, array=array)


def _listed(given: object) -> list[Any]:
    if isinstance(given, np.ndarray):
        if given.ndim not in (1, 2):
            raise InputError(
                f"the input is an array of shape {given.shape}: it must have one axis (a sequence) "
                "or two (a batch of sequences)"
            )
        return given.tolist() if given.dtype != object else list(given)
    if isinstance(given, (Mapping, set, frozenset, bytes, bytearray)) or not isinstance(
        given, Iterable
    ):
        raise InputError(
            f"the input must be a string, a list of tokens or a batch of lists, not {given!r}"
        )
    return list(given)


def _sequence(items: Sequence[Any], domain: Domain) -> list[Value]:
    values = [item.item() if isinstance(item, np.generic) else item for item in items]
    for position, value in enumerate(values):
        if not domain.accepts(value):
            raise InputError(
                f"the input has {value!r} at position {position}: tokens are bools, ints, floats or "
                f"strings{' (or fractions)' if domain.name == 'exact' else ''}"
            )
    return values


def _some(lengths: Sequence[int]) -> str:
    shown = ", ".join(map(str, lengths[:6]))
    return shown + (", …" if len(lengths) > 6 else "")
