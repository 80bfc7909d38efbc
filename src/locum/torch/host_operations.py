"""Choose the operations that run on the host: random operations, and a closed list of operations.

The host is the ordinary PyTorch code outside the RASP program. ``separate_random_numbers`` rewrites a
graph so that nodes on the host draw all random numbers, in the order of the graph. These nodes read at
most the layout of a tensor, or parameters such as probabilities. U computes the other operations that
depend on random numbers. For example, dropout becomes a random mask from the host and two products on
U.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import fx

from locum.torch.concrete_graph import ConcreteGraph
from locum.torch.table import find_row

_aten = torch.ops.aten

#: Operations whose random numbers depend on the layout of their first argument, but not on its values.
_LAYOUT_ONLY = frozenset(
    (
        _aten.native_dropout,
        _aten.rand_like,
        _aten.randn_like,
        _aten.randint_like,
        _aten.uniform,
        _aten.normal_functional,
        _aten.exponential,
        _aten.geometric,
        _aten.log_normal,
        _aten.cauchy,
        _aten.random,
    )
)
#: The other random operations.
_OTHERS = frozenset(
    (
        _aten.rand,
        _aten.randn,
        _aten.randint,
        _aten.randperm,
        _aten.normal,
        _aten.bernoulli,
        _aten.multinomial,
        _aten.poisson,
        _aten.binomial,
        _aten._standard_gamma,
        _aten._sample_dirichlet,
    )
)
#: The operations whose random numbers the host draws.
RANDOM = _LAYOUT_ONLY | _OTHERS
_ORIGIN = ("nn_module_stack", "fwd_nn_module_stack", "stack_trace")
#: Higher-order operations of activation checkpointing, with the index of the argument that they run.
_WITH_STATE = {
    "run_and_save_rng_state": 0,
    "run_with_rng_state": 1,
    "graphsafe_run_with_rng_state": 0,
}


def drawn_operation(node: fx.Node) -> Any:
    """Return the random operation that a node executes, or None if the node draws no random numbers.

    Activation checkpointing may wrap such an operation: the forward graph saves the state of the
    generator, and the backward graph draws the same numbers again.
    """
    target: Any = node.target
    if isinstance(target, torch._ops.HigherOrderOperator):
        target = wrapped_operation(node)
    is_aten = isinstance(target, torch._ops.OpOverload)
    return target if is_aten and target.overloadpacket in RANDOM else None


def wrapped_operation(node: fx.Node) -> Any:
    """Return the operation that a node of activation checkpointing wraps, or None for any other node.

    Such a node runs the operation with a given state of the random number generator, or also returns
    the state before the operation.
    """
    if not isinstance(node.target, torch._ops.HigherOrderOperator):
        return None
    place = _WITH_STATE.get(node.target.__name__)
    return None if place is None else node.args[place]


def separate_random_numbers(concrete: ConcreteGraph) -> ConcreteGraph:
    """Return a graph in which random operations that read only a layout no longer depend on values of
    U.
    """
    called = [node for node in concrete.graph.nodes if node.op == "call_function"]
    if not any(drawn_operation(node) or wrapped_operation(node) for node in called):
        return concrete
    return _Separation(concrete).run()


@dataclass
class _Separation:
    """A rewrite that copies a graph and replaces its random nodes."""

    old: ConcreteGraph
    graph: fx.Graph = field(default_factory=fx.Graph)
    values: dict[fx.Node, Any] = field(default_factory=dict)
    #: The new node of each old one. For dropout and for saved generator states, a tuple of nodes that
    #: ``getitem`` indexes.
    new: dict[fx.Node, Any] = field(default_factory=dict)

    def run(self) -> ConcreteGraph:
        for node in self.old.graph.nodes:
            self.new[node] = self.copy(node)
        return ConcreteGraph(self.old.module, self.graph, self.values)

    def copy(self, node: fx.Node) -> Any:
        """Copy a node into the new graph and return the new node, or a tuple as in ``new``."""
        if node.op == "call_function":
            if node.target is operator.getitem:
                source, place = cast(tuple[fx.Node, int], node.args)
                if isinstance(self.new[source], tuple):
                    return self.new[source][place]
            operation = drawn_operation(node)
            if operation is not None:
                return self.draw(node, operation)
            operation = wrapped_operation(node)
            if operation is not None:
                return self.unwrap(node, operation)
        copied = self.graph.node_copy(node, self.new.__getitem__)
        if node in self.old.values:
            self.values[copied] = self.old.values[node]
        return copied

    def unwrap(self, node: fx.Node, operation: Any) -> Any:
        """Replace a wrapped operation that draws no random numbers, such as attention without dropout.

        The operation then runs without a state of the random number generator.
        """
        leading = node.args.index(operation) + 1
        arguments = tuple(fx.node.map_arg(node.args[leading:], self.new.__getitem__))
        options: Any = fx.node.map_arg(node.kwargs, self.new.__getitem__)
        value = self.old.values[node]
        if node.target is not torch.ops.higher_order.run_and_save_rng_state:
            return self.add(node, operation, arguments, options, value)
        state, value = value
        # Drawing no numbers saves the present state of the generator.
        tensors = [self.values[one] for one in arguments if isinstance(one, fx.Node)]
        device = {"device": next((t.device for t in tensors if isinstance(t, torch.Tensor)), None)}
        nothing = (torch.ops.aten.rand.default, [0])
        saved = self.add(node, node.target, nothing, device, (state, torch.empty(0)))
        return self.item(node, saved, 0, state), self.add(node, operation, arguments, options, value)

    def draw(self, node: fx.Node, operation: Any) -> Any:
        """Copy a random node into the new graph and return its results."""
        value = self.old.values[node]
        leading = 0 if operation is node.target else node.args.index(operation) + 1
        arguments: list[Any] = list(fx.node.map_arg(node.args, self.new.__getitem__))
        options: Any = fx.node.map_arg(node.kwargs, self.new.__getitem__)
        first: Any = arguments[leading] if len(arguments) > leading else None
        if operation.overloadpacket in _LAYOUT_ONLY or operation is _aten.bernoulli.p:
            arguments[leading] = self.empty(node, self.values[first])
        drawn = self.add(node, node.target, tuple(arguments), options, value)
        saves = node.target is torch.ops.higher_order.run_and_save_rng_state
        if saves:  # the results are (state of the generator, results)
            state, value = self.item(node, drawn, 0, value[0]), value[1]
            drawn = self.item(node, drawn, 1, value)
        result: Any = drawn
        if operation is _aten.native_dropout.default:
            p, train = arguments[leading + 1 :]
            result = self.dropout(node, drawn, first, p, train, value)
        return (state, result) if saves else result

    def dropout(
        self,
        node: fx.Node,
        drawn: fx.Node,
        x: fx.Node,
        p: float,
        train: bool | None,
        value: tuple[torch.Tensor | None, torch.Tensor | None],
    ) -> tuple[Any, Any]:
        """Add nodes that compute dropout from the random mask; return the product and the mask.

        The product is x · mask / (1 − p) in training, or None if it is not used.
        """
        product, kept = (*value, None)[:2]  # results that are not used may be missing
        if kept is None:
            kept = torch.empty_like(self.values[x], dtype=torch.bool)
        mask = self.item(node, drawn, 1, kept)
        if product is None:  # the product is not used
            return None, mask
        scale = 1.0 if train is False else 0.0 if p == 1 else 1.0 / (1.0 - p)
        masked = self.add(node, _aten.mul.Tensor, (x, mask), {}, torch.empty_like(product))
        return self.add(node, _aten.mul.Tensor, (masked, scale), {}, product), mask

    def empty(self, node: fx.Node, like: torch.Tensor) -> fx.Node:
        """Add a node on the host that creates an empty tensor with the layout of ``like``."""
        options = {"dtype": like.dtype, "device": like.device}
        layout = (tuple(like.shape), tuple(like.stride()))
        return self.add(node, torch.empty_strided, layout, options, torch.empty_like(like))

    def item(self, node: fx.Node, results: fx.Node, index: int, value: Any) -> fx.Node:
        """Add a node that selects one of several results."""
        return self.add(node, operator.getitem, (results, index), {}, value)

    def add(
        self, node: fx.Node, target: Any, arguments: tuple[Any, ...], options: Any, value: Any
    ) -> fx.Node:
        """Add a node to the new graph with the origin (module and source line) of the old node
        ``node``.
        """
        added = self.graph.call_function(target, arguments, dict(options))
        added.meta = {key: node.meta[key] for key in _ORIGIN if key in node.meta}
        self.values[added] = value
        return added


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
#: Names of the ATen operations that the host may run on integers, positions and shapes, besides views.
TABLE_OPERATIONS = frozenset(name for names in OPERATIONS_BY_KIND.values() for name in names.split())


def is_table_operation(node: fx.Node) -> bool:
    """Return whether the host may run the operation of a node on integers.

    These operations are views, ``getitem`` and the operations of the closed list.
    """
    if node.target is operator.getitem:
        return True
    if not isinstance(node.target, torch._ops.OpOverload) or node.target.namespace != "aten":
        return False
    return is_view(node) or node.target.overloadpacket.__name__ in TABLE_OPERATIONS


def is_view(node: fx.Node) -> bool:
    """Return whether the operation of a node is a view or the copying variant of a view."""
    row = find_row(node.target)
    return row is not None and row.kind == "views"


def choose_host_nodes(concrete: ConcreteGraph, *, tables: bool, integer_inputs: bool) -> set[fx.Node]:
    """Return the nodes whose tensors are known on the host: inputs, constants, random numbers, tables,
    and ``as_strided`` views of known tensors.

    ``tables`` allows the host to compute tables of integers, positions and shapes with the closed list.
    ``integer_inputs`` allows these tables to depend on inputs and constants of integers or booleans.
    This argument is false for a backward graph, since U may have computed its integer inputs.
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
    """Return an ``as_strided`` node and the nodes from which it is derived, up to the base of its
    storage.

    The list is empty if the base is not known on the host.
    """
    base = concrete.storage_base(node)
    if base not in known:
        return []
    views = [node]
    while views[-1].all_input_nodes and views[-1] is not base:
        views.append(views[-1].all_input_nodes[0])
    return views


@dataclass(frozen=True)
class HostPart:
    """The part of a graph that the host computes."""

    #: The nodes whose values are returned.
    wanted: Sequence[fx.Node]
    #: The nodes that are computed, without views and numbers.
    computed: Sequence[fx.Node]
    function: fx.GraphModule

    @classmethod
    def of(cls, concrete: ConcreteGraph, known: set[fx.Node], wanted: Sequence[fx.Node]) -> HostPart:
        """Return the part of a graph that computes the nodes ``wanted`` and draws all random
        numbers.
        """
        needed = set(wanted)
        for node in reversed(concrete.graph.nodes):
            is_number = concrete.is_number(node)
            if (is_number or node in known) and (node in needed or drawn_operation(node) is not None):
                needed.update((node, *node.all_input_nodes))
        graph = fx.Graph()
        copied: dict[fx.Node, fx.Node] = {}
        for node in concrete.graph.nodes:
            # Numbers are computed from numbers and inputs, so that this part works for other shapes.
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
        """Return the value of each wanted node for the arguments of the graph."""
        return dict(zip(self.wanted, self.function(*arguments), strict=True))
