"""What ``config.report`` says: how everything was realised, and how exact it is, as plain data."""

from __future__ import annotations

import math
from typing import Any

from locum.compiler.bounds.fitting import Fitted
from locum.compiler.bounds.head_bounds import Temperature
from locum.compiler.network.lowering import Lowered
from locum.compiler.network.network import LOSING_SINK, NO_SINK, TIED_SINK, Network, Unit

_SINKS = {NO_SINK: "none", LOSING_SINK: "where nothing is selected", TIED_SINK: "counted"}


def report(lowered: Lowered, fitted: Fitted | None) -> dict[str, Any]:
    """Report how heads attend; units, temperatures and the error bound; what depends on rounding."""
    account: dict[str, Any] = {"attention": _attention(lowered.network), "error_bound": None}
    if fitted is not None:
        account |= _fit(fitted, lowered)
    if lowered.roles.rounded:
        account["hangs on rounding"] = [lowered.label(node) for node in lowered.roles.rounded]
    return account


def _attention(network: Network) -> list[dict[str, Any]]:
    """Report how each head attends."""
    return [
        {
            **_place((head.time - 1) // 2, "attn"),
            "selector": head.label,
            "scored by": ", ".join(dict.fromkeys(head.how)) or "nothing: it attends everywhere",
            "gap": head.gap,
            "sink": _SINKS[head.sink],
            "values": len(head.values),
        }
        for head in network.heads
    ]


def _fit(fitted: Fitted, lowered: Lowered) -> dict[str, Any]:
    """Return units and temperatures, and the errors that they have."""
    bounds, network = fitted.bounds, lowered.network
    account: dict[str, Any] = {"error_bound": fitted.bound}
    if fitted.hidden:
        layers = (max((u.time for u in network.units), default=0)) // 2
        account["feed_forward"] = [
            _counted([u for u in network.units if u.time == 2 * n], fitted)
            for n in range(1, layers + 1)
        ]
        account["realised"] = [
            {
                "s-op": lowered.label(unit.node),
                "gate": type(unit.gate).__name__.lower(),
                **_place(unit.time // 2 - 1, "mlp"),
                "units": fitted.hidden[unit].size,
                "how": fitted.hidden[unit].how,
                "own_error": fitted.hidden[unit].error,
                "error": float(bounds.intervals.signals[unit.into].error.max()),
            }
            for unit in sorted(network.units, key=lambda u: u.time)
        ]
    if bounds.temperatures:
        account["softmax"] = [
            {"head": head.label, **_place((head.time - 1) // 2, "attn"), **_plain(temperature)}
            for head, temperature in bounds.temperatures.items()
        ]
    return account


def _place(layer: int, half: str) -> dict[str, Any]:
    """Return the layer, counted from 0, and its half by TransformerLens's name."""
    return {"layer": layer, "block": f"blocks.{layer}.{half}"}


def _plain(temperature: Temperature) -> dict[str, float | None]:
    """Return plain numbers; None where there is no bound, which JSON has no number for."""
    return {name: value if math.isfinite(value) else None for name, value in vars(temperature).items()}


def _counted(units: list[Unit], fitted: Fitted) -> dict[str, int]:
    counts: dict[str, int] = {}
    for unit in units:
        name = type(unit.gate).__name__.lower()
        counts[name] = counts.get(name, 0) + fitted.hidden[unit].size
    return counts
