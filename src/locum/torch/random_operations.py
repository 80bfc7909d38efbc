"""Random numbers: PyTorch draws them on the host, with the generator that eager execution uses.

A random operation reads at most the layout of its first argument, or parameters such as probabilities.
``separate_random_numbers`` rewrites a graph so that all random numbers come from nodes that the host
can run, in the order of the graph, and everything computed from them is left to U. For example, dropout
becomes a mask from the host and two products on U.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import fx

from locum.torch.concrete_graph import ConcreteGraph

_aten = torch.ops.aten

#: Operations of which the first argument is a tensor of which only the layout is read.
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
#: Operations that read no tensor, or the values of tensors.
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
#: All operations that draw random numbers.
RANDOM = _LAYOUT_ONLY | _OTHERS
_ORIGIN = ("nn_module_stack", "fwd_nn_module_stack", "stack_trace")
#: Higher-order operations of activation checkpointing → the place of the operation that they run.
_WITH_STATE = {
    "run_and_save_rng_state": 0,
    "run_with_rng_state": 1,
    "graphsafe_run_with_rng_state": 0,
}


def drawn_operation(node: fx.Node) -> Any:
    """Return the random operation that a node executes; None if it draws no random numbers.

    Activation checkpointing wraps the operation: the forward graph saves the state of the generator,
    and the backward graph draws the same numbers again.
    """
    target: Any = node.target
    if isinstance(target, torch._ops.HigherOrderOperator):
        target = wrapped_operation(node)
    is_aten = isinstance(target, torch._ops.OpOverload)
    return target if is_aten and target.overloadpacket in RANDOM else None


def wrapped_operation(node: fx.Node) -> Any:
    """Return the operation that a node runs with a state of the generator; None for other nodes."""
    if not isinstance(node.target, torch._ops.HigherOrderOperator):
        return None
    place = _WITH_STATE.get(node.target.__name__)
    return None if place is None else node.args[place]


def separate_random_numbers(concrete: ConcreteGraph) -> ConcreteGraph:
    """Return a graph whose random nodes have arguments of the host, as far as only layouts are read."""
    called = [node for node in concrete.graph.nodes if node.op == "call_function"]
    if not any(drawn_operation(node) or wrapped_operation(node) for node in called):
        return concrete
    return _Separation(concrete).run()


@dataclass
class _Separation:
    """Copies a graph and replaces its random nodes."""

    old: ConcreteGraph
    graph: fx.Graph = field(default_factory=fx.Graph)
    values: dict[fx.Node, Any] = field(default_factory=dict)
    #: The new node of each old one; for dropout a tuple of nodes, in which ``getitem`` chooses.
    new: dict[fx.Node, Any] = field(default_factory=dict)

    def run(self) -> ConcreteGraph:
        for node in self.old.graph.nodes:
            self.new[node] = self.copy(node)
        return ConcreteGraph(self.old.module, self.graph, self.values)

    def copy(self, node: fx.Node) -> Any:
        """Copy a node; return the new one."""
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
        """Run an operation that draws nothing, such as attention without dropout, without a state."""
        leading = node.args.index(operation) + 1
        arguments = tuple(fx.node.map_arg(node.args[leading:], self.new.__getitem__))
        options: Any = fx.node.map_arg(node.kwargs, self.new.__getitem__)
        value = self.old.values[node]
        if node.target is not torch.ops.higher_order.run_and_save_rng_state:
            return self.add(node, operation, arguments, options, value)
        state, value = value
        # The state before an operation that draws no number.
        tensors = [self.values[one] for one in arguments if isinstance(one, fx.Node)]
        device = {"device": next((t.device for t in tensors if isinstance(t, torch.Tensor)), None)}
        nothing = (torch.ops.aten.rand.default, [0])
        saved = self.add(node, node.target, nothing, device, (state, torch.empty(0)))
        return self.item(node, saved, 0, state), self.add(node, operation, arguments, options, value)

    def draw(self, node: fx.Node, operation: Any) -> Any:
        """Copy a random node; return its results."""
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
        """Return x · mask / (1 − p) and the mask."""
        product, kept = (*value, None)[:2]  # results that are not used may be missing
        if kept is None:
            kept = torch.empty_like(self.values[x], dtype=torch.bool)
        mask = self.item(node, drawn, 1, kept)
        if product is None:  # it is not used
            return None, mask
        scale = 1.0 if train is False else 0.0 if p == 1 else 1.0 / (1.0 - p)
        masked = self.add(node, _aten.mul.Tensor, (x, mask), {}, torch.empty_like(product))
        return self.add(node, _aten.mul.Tensor, (masked, scale), {}, product), mask

    def empty(self, node: fx.Node, like: torch.Tensor) -> fx.Node:
        """Return a tensor of the host with the layout of another one."""
        options = {"dtype": like.dtype, "device": like.device}
        layout = (tuple(like.shape), tuple(like.stride()))
        return self.add(node, torch.empty_strided, layout, options, torch.empty_like(like))

    def item(self, node: fx.Node, results: fx.Node, index: int, value: Any) -> fx.Node:
        """Return one of several results."""
        return self.add(node, operator.getitem, (results, index), {}, value)

    def add(
        self, node: fx.Node, target: Any, arguments: tuple[Any, ...], options: Any, value: Any
    ) -> fx.Node:
        """Add a node that replaces a part of an old one."""
        added = self.graph.call_function(target, arguments, dict(options))
        added.meta = {key: node.meta[key] for key in _ORIGIN if key in node.meta}
        self.values[added] = value
        return added
