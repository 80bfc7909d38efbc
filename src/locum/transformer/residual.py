"""The residual stream with its labels: what each slot holds at each position, layer after layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from locum.errors import InputError
from locum.transformer.weights import Array


@dataclass(frozen=True)
class ResidualStream:
    """The stream of one input: ``values`` is [moment, position, slot].

    Moments are the embedding, then what stands behind each half of each layer.
    """

    slots: tuple[str, ...]
    moments: tuple[str, ...]
    #: What stands at each position: the tokens, and "sink" before them where there is one.
    positions: tuple[str, ...]
    values: Array

    def slot(self, label: str) -> Array:
        """One slot at every moment, [moment, position]."""
        if label not in self.slots:
            raise InputError(f"there is no slot {label!r}; there are {', '.join(self.slots)}")
        found: Array = self.values[:, :, self.slots.index(label)]
        return found

    def moment(self, label: str) -> Array:
        """The whole stream at one moment, [position, slot]."""
        if label not in self.moments:
            raise InputError(f"there is no moment {label!r}; there are {', '.join(self.moments)}")
        found: Array = self.values[self.moments.index(label)]
        return found

    def __str__(self) -> str:
        """A table a moment; slots that are 0 everywhere in it are left out."""
        parts = []
        for moment, values in zip(self.moments, self.values, strict=True):
            shown = [number for number in range(len(self.slots)) if np.any(values[:, number])]
            rows = [["", *self.positions]]
            rows += [[self.slots[i], *(f"{value:.4g}" for value in values[:, i])] for i in shown]
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            lines = [
                "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
                for row in rows
            ]
            parts.append("\n".join([moment, *(line.rstrip() for line in lines)]))
        return "\n\n".join(parts)
