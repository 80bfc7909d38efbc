"""Label the residual stream: each slot at each position, in the embedding and after each sublayer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from locum.errors import InputError
from locum.networks.transformer.weights import Array
from locum.text import MOST, matrix, shortened

#: Maximum number of printed characters of a label.
MAX_LETTERS = 48


@dataclass(frozen=True)
class ResidualStream:
    """The residual stream of one input, with the axes [moment, position, slot].

    The moments are the embedding and the end of each sublayer.
    """

    slots: tuple[str, ...]
    moments: tuple[str, ...]
    #: Token at each position, preceded by "sink" if the network has a sink.
    positions: tuple[str, ...]
    values: Array

    def slot(self, label: str) -> Array:
        """Return the values of the slot ``label`` at every moment, [moment, position]."""
        return self.values[:, :, _place(label, self.slots, "slot")]

    def moment(self, label: str) -> Array:
        """Return the whole residual stream at one moment, [position, slot].

        ``label`` is one of ``moments`` or the hook name of a moment, ``blocks.<layer>.hook_resid_mid``
        or ``blocks.<layer>.hook_resid_post``.
        """
        match label.split("."):
            case ["blocks", layer, "hook_resid_mid"]:
                label = f"layer {layer}, attention"
            case ["blocks", layer, "hook_resid_post"]:
                label = f"layer {layer}, feed-forward"
        values: Array = self.values[_place(label, self.moments, "moment")]
        return values

    def _repr_html_(self) -> str:
        """Return an HTML table for each moment, without slots that are 0 at all positions."""
        parts = []
        for moment, values in zip(self.moments, self.values, strict=True):
            slots = [number for number in range(len(self.slots)) if np.any(values[:, number])]
            labels = [shortened(self.slots[slot], MAX_LETTERS) for slot in slots]
            title = f"{moment}; positions {', '.join(self.positions[:MOST])}"
            parts.append(matrix(title, values.T[slots], labels))
        return "".join(parts)

    def __str__(self) -> str:
        """Return a text table for each moment, without slots that are 0 at all positions."""
        parts = []
        for moment, values in zip(self.moments, self.values, strict=True):
            shown = [number for number in range(len(self.slots)) if np.any(values[:, number])]
            rows = [["", *self.positions]]
            for slot in shown:
                numbers = (f"{value:.4g}" for value in values[:, slot])
                rows.append([shortened(self.slots[slot], MAX_LETTERS), *numbers])
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            lines = [
                "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
                for row in rows
            ]
            parts.append("\n".join([moment, *(line.rstrip() for line in lines)]))
        return "\n\n".join(parts)


def _place(label: str, labels: tuple[str, ...], what: str) -> int:
    if label not in labels:
        known = ", ".join(repr(shortened(known, MAX_LETTERS)) for known in labels[:20])
        raise InputError(f"expected the label of a {what}, got {label!r}; try one of {known}")
    return labels.index(label)
