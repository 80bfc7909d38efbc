"""What PyTorch computes on the host, outside of U: a closed list.

- Random numbers (``random_operations``).
- Tables that depend on integers, positions and shapes alone, such as masks, position ids and rotary
  tables. These are results of :data:`TABLE_OPERATIONS` on integer inputs and on each other. With
  ``host="forbidden"`` U computes them.

Views of inputs with explicit strides (``as_strided``) are read from the input as tensors of their own.
All other nodes run on U. Products of matrices are never on the list.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from locum.torch.concrete_graph import ConcreteGraph
from locum.torch.random_operations import drawn_operation
from locum.torch.table import find_row

OPERATIONS_BY_KIND = {
    "creation": "arange empty empty_like empty_permuted empty_strided eye full full_like linspace "
    "new_empty new_empty_strided new_full new_ones new_zeros ones ones_like scalar_tensor zeros "
    "zeros_like",
    "casts": "_to_copy clone copy lift_fresh_copy",
    "elementwise": "abs add bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift "
    "bitwise_xor ceil clamp clamp_max clamp_min cos div eq exp exp2 expm1 floor floor_divide fmod ge "
    "gt isfinite isinf isnan le log log1p log2 logical_and logical_not logical_or logical_xor lt "
    "masked_fill maximum minimum mul ne neg pow reciprocal remainder round rsqrt rsub sign sin sqrt "
    "square sub trunc where",
    "reductions": "all amax amin any argmax argmin argsort bincount cummax cummin cumprod cumsum max "
    "min prod sort sum",
    "indexing": "bucketize cat constant_pad_nd flip gather index index_add index_copy index_fill "
    "index_put index_select isin masked_scatter repeat roll scatter scatter_add searchsorted "
    "select_scatter slice_scatter stack take tril tril_indices triu triu_indices",
}
#: Packets of ATen operations that the host may run on integers, positions and shapes, besides views.
TABLE_OPERATIONS = frozenset(name for names in OPERATIONS_BY_KIND.values() for name in names.split())


def is_table_operation(node: fx.Node) -> bool:
    """Return whether a node is on the list of operations on integers, positions and shapes."""
    if node.target is operator.getitem:
        return True
    if not isinstance(node.target, torch._ops.OpOverload) or node.target.namespace != "aten":
        return False
    return is_view(node) or node.target.overloadpacket.__name__ in TABLE_OPERATIONS


def is_view(node: fx.Node) -> bool:
    """Return whether a node is a view, which computes nothing."""
    row = find_row(node.target)
    return row is not None and row.kind == "views"


def choose_host_nodes(concrete: ConcreteGraph, *, tables: bool, integer_inputs: bool) -> set[fx.Node]:
    """Return the nodes whose tensors are known on the host: inputs, constants and the closed list.

    ``tables`` allows the host to compute tables of integers, positions and shapes. ``integer_inputs``
    allows tables of integer inputs. In a backward graph such inputs were computed by U.
    """
    known: set[fx.Node] = set()
    whole: set[fx.Node] = set()
    for node in concrete.graph.nodes:
        if node.op == "output" or concrete.is_number(node):
            continue
        value = concrete.values[node]
        if node.op in ("placeholder", "get_attr"):
            known.add(node)
            is_tensor = isinstance(value, torch.Tensor)
            if is_tensor and integer_inputs and not (value.is_floating_point() or value.is_complex()):
                whole.add(node)
            continue
        inputs = [argument for argument in node.all_input_nodes if not concrete.is_number(argument)]
        if tables and is_table_operation(node) and all(argument in whole for argument in inputs):
            known.add(node)
            whole.add(node)
        elif node.target is torch.ops.aten.as_strided.default:
            known.update(_views_of_input(concrete, node, known))
        elif (
            drawn_operation(node) is not None
            or node.target is torch.empty_strided
            or node.target is operator.getitem
        ) and all(argument in known for argument in inputs):
            known.add(node)
    return known


def _views_of_input(concrete: ConcreteGraph, node: fx.Node, known: set[fx.Node]) -> list[fx.Node]:
    """Return the views between an input and ``as_strided``, which reads the input's storage."""
    base = concrete.storage_base(node)
    if base not in known:
        return []
    views = [node]
    while views[-1].all_input_nodes and views[-1] is not base:
        views.append(views[-1].all_input_nodes[0])
    return views


@dataclass(frozen=True)
class HostPart:
    """Computes the values of some nodes that are known on the host."""

    #: The nodes whose values are returned.
    wanted: Sequence[fx.Node]
    #: The nodes that are computed.
    computed: Sequence[fx.Node]
    function: fx.GraphModule

    @classmethod
    def of(cls, concrete: ConcreteGraph, known: set[fx.Node], wanted: Sequence[fx.Node]) -> HostPart:
        """Return the part of a graph that computes ``wanted``, and draws all random numbers."""
        needed = set(wanted)
        for node in reversed(concrete.graph.nodes):
            is_number = concrete.is_number(node)
            if (is_number or node in known) and (node in needed or drawn_operation(node) is not None):
                needed.update((node, *node.all_input_nodes))
        graph = fx.Graph()
        copied: dict[fx.Node, fx.Node] = {}
        for node in concrete.graph.nodes:
            # Numbers are computed from numbers and inputs, so that the part fits other shapes.
            is_computable = concrete.is_number(node) and all(n in copied for n in node.all_input_nodes)
            if node.op == "placeholder" or (node in needed and (node in known or is_computable)):
                copied[node] = graph.node_copy(node, lambda n: copied.get(n, concrete.values[n]))
        graph.output(tuple(copied[node] for node in wanted))
        computed = [
            node
            for node in copied
            if node.op == "call_function" and not is_view(node) and not concrete.is_number(node)
        ]
        return cls(wanted, computed, fx.GraphModule(concrete.module, graph))

    def __call__(self, arguments: Sequence[Any]) -> dict[fx.Node, Any]:
        """Return the values for the arguments of the graph."""
        return dict(zip(self.wanted, self.function(*arguments), strict=True))
