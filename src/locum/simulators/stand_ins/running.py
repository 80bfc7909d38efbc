"""Run U on a torch module's own tensors: differentiable, compilable, exportable.

Everything here is torch. What is planned, and which program it is, depends on shapes and on the order
alone; so torch's tracers see nothing but the operations of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor, _dynamo

from locum.errors import InputError
from locum.execution.arrays import is_readable
from locum.locks import Lock
from locum.simulators import recording
from locum.simulators.models.batch import simulator_of
from locum.simulators.models.families.stage import NORM, stage_simulator
from locum.simulators.order import Order
from locum.simulators.simulator import Simulator, in_single
from locum.simulators.stand_ins.projected import projected_attention

P = ParamSpec("P")
R = TypeVar("R")
#: Without it, in torch before 2.8, compiling breaks the graph, and is right all the same.
_nonstrict = getattr(_dynamo, "nonstrict_trace", lambda function: function)


def nonstrict_trace(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function whose operations are compiled, whatever Python chose them by."""
    marked: Callable[P, R] = _nonstrict(function)
    return marked


#: Orders by the numbers that traced code has for them: torch's compiler takes numbers, not objects.
_orders: list[Order] = []
_numbers: dict[Order, int] = {}
_lock = Lock()


def number_of(order: Order) -> int:
    """Return the number of an order, for :func:`run_layer`."""
    with _lock:
        if order not in _numbers:
            _numbers[order] = len(_orders)
            _orders.append(order)
    return _numbers[order]


@nonstrict_trace
def run_layer(
    number: int, block: int, batch: int, inputs: Mapping[str, Tensor], matrices: Mapping[str, Tensor]
) -> Tensor:
    """Run the U of an order on the rows of a batch, one item below the other.

    ``inputs`` are X, the memory M and what is added to scores ("added" or "added to heads", those of a
    cross-attention with "cross " before them); ``matrices`` are T's. ``block`` is for recordings.
    """
    U = layer_simulator(number, batch, inputs)
    return _run(U, inputs | matrices, block)  # type: ignore[operator]


@nonstrict_trace
def layer_weights(
    number: int, batch: int, inputs: Mapping[str, Tensor], matrices: Mapping[str, Tensor]
) -> Tensor:
    """Return the weights of the keys, [item, head, query, key], of the same run."""
    U = layer_simulator(number, batch, inputs)
    return weights_of(U, _parts(U, inputs | matrices), batch)  # type: ignore[operator]


def layer_simulator(number: int, batch: int, inputs: Mapping[str, Tensor]) -> Simulator:
    """Return the U of an order on inputs of these shapes and with these masks."""
    order = _orders[number]
    memory = inputs["M"].shape[0] // batch if "M" in inputs else 0
    first, cross = order.attention, order.cross
    for kind in ("added", "added to heads"):
        if kind in inputs:
            first = replace(first, mask=kind)
        if f"cross {kind}" in inputs and cross is not None:
            cross = replace(cross, mask=kind)
    n = int(inputs["X"].shape[0]) // batch
    return simulator_of(
        replace(order, n=n, memory=int(memory), batch=batch, attention=first, cross=cross)
    )


@nonstrict_trace
def run_norm(X: Tensor, gain: Tensor, bias: Tensor, epsilon: Tensor) -> Tensor:
    """Norm each row of X."""
    U = stage_simulator(int(X.shape[0]), int(X.shape[1]), (NORM,))
    norm = {"norm gain": gain, "norm bias": bias, "norm epsilon": epsilon}
    return _run(U, {"X": X, **norm}, None)


@nonstrict_trace
def run_projected(
    sizes: tuple[int, ...], block: int, inputs: Mapping[str, Tensor], weights: bool
) -> list[Tensor]:
    """Run attention behind its projections; give its rows and, if asked for, the weights of keys."""
    U = projected_attention(*map(int, sizes))
    results = [_run(U, inputs, block)]
    if weights:
        results.append(weights_of(U, _parts(U, inputs), int(sizes[0])))
    return results


def weights_of(U: Simulator, parts: list[Tensor], batch: int) -> Tensor:
    """Return the weights of the keys in all heads of all items, [item, head, query, key]."""
    value, sizes = U.step_of_all("softmax")
    places = value.places
    heads = sizes[-1] if len(sizes) > (batch > 1) else 1
    weights: Tensor = U.run_parts(value, in_single(parts))
    return weights.reshape(batch, heads, -1, places.columns)


def _run(U: Simulator, inputs: Mapping[str, Tensor], block: int | None) -> Tensor:
    parts = _parts(U, inputs)
    parts = in_single(parts) if recording.is_active() else U.computable(parts)
    if block is not None:
        for name in ("added", "added to heads", "cross added", "cross added to heads"):
            if name in inputs:
                _require_some_key(inputs[name])
        recording.take(U, parts, block)
    result: Tensor = U.run_parts(U.output, parts)
    return result


def _parts(U: Simulator, inputs: Mapping[str, Tensor]) -> list[Tensor]:
    return [inputs[name] for name in U.layout.blocks]


def _require_some_key(added: Tensor) -> None:
    """Refuse a query that attends to nothing, where numbers can be read without waiting."""
    if added.is_cuda or added.is_meta or not is_readable(added):
        return
    empty = (added.detach() == -torch.inf).all(-1)
    if bool(empty.any()):
        raise InputError(
            f"row {int(empty.nonzero()[0])} of the joined masks leaves no key to a query (rows of all "
            "items one below the other): expected one or more, since there is no softmax of nothing"
        )


def autocast_dtype(tensor: Tensor) -> torch.dtype | None:
    """Return the type that autocast computes products of such a tensor in, if it does."""
    kind = tensor.device.type
    if tensor.is_meta:  # shapes alone
        return None
    enabled = torch.is_autocast_enabled(kind) and tensor.dtype is not torch.float64
    return torch.get_autocast_dtype(kind) if enabled else None


__all__ = [
    "autocast_dtype",
    "layer_weights",
    "number_of",
    "run_layer",
    "run_norm",
    "run_projected",
]
