"""Count the multiply-adds of a node: products of matrices, convolutions and attention."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import fx
from torch.utils.flop_counter import flop_registry

from locum.torch.concrete_graph import ConcreteGraph

_aten = torch.ops.aten
#: Products with a vector, which PyTorch's counter of floating-point operations does not count.
_VECTOR_PRODUCTS = frozenset((_aten.dot, _aten.vdot, _aten.mv, _aten.addmv, _aten.addr, _aten.ger))
#: Products in groups, and the number of products that each computes.
_GROUPED_PRODUCTS = {
    "aten._grouped_mm.default": 1,
    "transformers.grouped_mm_fallback.default": 1,
    "transformers.grouped_mm_fallback_backward.default": 2,
}


def count_multiply_adds(concrete: ConcreteGraph, node: fx.Node) -> int:
    """Return the number of multiply-adds of a node, from the shapes of its arguments."""
    packet = getattr(node.target, "overloadpacket", None)
    values = concrete.values
    arguments: Any = fx.node.map_arg(node.args, values.__getitem__)
    if packet in _VECTOR_PRODUCTS:
        tensors = [value for value in arguments if isinstance(value, torch.Tensor)][-2:]
        if packet in (_aten.addr, _aten.ger):
            return math.prod(tensor.numel() for tensor in tensors)
        return max(tensor.numel() for tensor in tensors)
    if str(node.target) in _GROUPED_PRODUCTS:  # each row of the first factor has one matrix
        return _GROUPED_PRODUCTS[str(node.target)] * int(arguments[0].numel() * arguments[1].shape[-1])
    if packet not in flop_registry:
        return 0
    options: dict[str, Any] = dict(fx.node.map_arg(node.kwargs, values.__getitem__))
    count = partial(flop_registry[packet], **options, out_val=values[node])
    try:
        operations: int = count(*arguments)
    except AssertionError:  # some versions of PyTorch count no attention with grouped heads
        q, k, v, *rest = arguments
        k, v = (x.new_empty((*q.shape[:2], *x.shape[2:])) for x in (k, v))
        operations = count(q, k, v, *rest)
    return operations // 2
