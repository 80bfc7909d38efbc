"""Prepare a T for many runs of its U: its matrices in the kind of array that X has, one per block.

Running a layer again, on another X or with another mask, then converts nothing but these. The copies of
a block (one per head) are joined once, so that plans read them without copying.

>>> import numpy as np
>>> from locum.simulators import Attention, UniversalSimulator
>>> T, U, X = Attention(np.eye(2), np.eye(2)), UniversalSimulator(3, 2, 2), np.ones((3, 2))
>>> Prepared(U, T.matrices(), X)(X).tolist()
[[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from locum.execution.arrays import Array, like
from locum.simulators.matrices import as_given, is_half, stacked_rows
from locum.simulators.recording import is_active, take
from locum.simulators.simulator import Simulator, in_single

if TYPE_CHECKING:
    from locum.constructions import Matrix


class Prepared:
    """A simulator and the matrices of one T: callable on X."""

    def __init__(
        self, simulator: Simulator, matrices: Mapping[str, Sequence[Array]], model: Array
    ) -> None:
        """Convert the matrices to the kind of array that ``model`` is; other blocks come with a run."""
        # Where steps cannot be done in a half type, the simulator says so.
        self.simulator, self.model = simulator, model
        if is_half(model) and not model.is_cuda:
            self.model = model.float()
        self.names = list(simulator.layout.blocks)
        self.parts: dict[str, Array] = {}
        for name, block in simulator.layout.blocks.items():
            if name not in matrices:
                continue
            # A number such as ε would be another in a half type.
            one = is_half(self.model) and (block.rows, block.columns) == (1, 1)
            kind = self.model[:0].float() if one else self.model
            copies = [like(copy, kind) for copy in matrices[name]]
            part = stacked_rows(copies)
            block.require(part, joined=True)
            self.parts[name] = part

    def on(self, simulator: Simulator) -> Prepared:
        """Return the same matrices for another simulator, such as one of more rows.

        Nothing is converted.
        """
        made = copy.copy(self)
        made.simulator, made.names = simulator, list(simulator.layout.blocks)
        return made

    def __call__(
        self,
        X: Array,
        others: Mapping[str, Array] | None = None,
        *,
        executor: str | None = None,
        step: Matrix | None = None,
        block: int | str | None = None,
    ) -> Array:
        """Compute T(X), or an intermediate result; ``others`` are further blocks, such as masks.

        ``block`` is the number of this layer in recordings (``recording.py``).
        """
        own = {"X": X, **(others or {})}
        for name, part in own.items():
            self.simulator.layout.blocks[name].require(part, joined=True)
            own[name] = like(part, self.model)
        parts = [own[name] if name in own else self.parts[name] for name in self.names]
        value = self.simulator.output if step is None else step
        whole = step is None and not is_active()
        parts = self.simulator.computable(parts) if whole else in_single(parts)
        if block is not None:
            take(self.simulator, parts, block)
        return as_given(self.simulator.run_parts(value, parts, executor), X)
