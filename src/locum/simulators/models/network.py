"""One attention head of a trained model by literal head execution: every row of U that is read.

A whole layer of MiniLM is a sequence of 1.8 million tokens; one of its heads at 16 tokens is one of
43,000, whose rows can be scored against all keys in seconds.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from locum.errors import InputError
from locum.execution import heads as network
from locum.simulators.models.results import ModelRun
from locum.simulators.modules.factored import FactoredAttention
from locum.simulators.modules.module import Numbers
from locum.simulators.universal import UniversalSimulator


class HeadRun(NamedTuple):
    """What one head gave on the network, and what the model's own formula gives."""

    layer: int
    head: int
    output: Numbers
    direct: Numbers
    simulator: UniversalSimulator
    report: network.Report
    seconds: float

    @property
    def error(self) -> float:
        """The greatest difference."""
        return float(np.abs(self.output - self.direct).max())


def run_head(run: ModelRun, layer: int, head: int, text: int = 0) -> HeadRun:
    """Run head ``head`` of layer ``layer`` (both from 0) on one text, in double precision."""
    attention = run.model.layers[layer].attention
    if not isinstance(attention, FactoredAttention):
        raise InputError("one head is run on the network in the factored form: leave --form paper out")
    T = attention.with_masks(None).head(head)
    X = run.states[layer][text]
    U = UniversalSimulator.of(T, len(X), recipe="paper", stable=True)
    report = network.Report()
    began = time.perf_counter()
    positions = U.output.places.positions
    values = network.evaluate(U.program.node, U.encode(T, X), positions=positions, report=report)
    seconds = time.perf_counter() - began
    result = np.reshape(np.asarray(values, dtype=np.float64), (len(X), -1))
    return HeadRun(layer, head, result, T(X), U, report, seconds)
