"""A captured graph in which all shapes are numbers.

Dynamo may capture a graph with symbolic shapes. A program has fixed shapes, so such a graph is run on
fake tensors with the shapes of a call; the result is the fake tensor of each node. Other graphs have
these fake tensors in their metadata.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter, getitem
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.multiprocessing.reductions import StorageWeakRef

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)

#: Operations that raise an error if a condition on data does not hold.
ASSERTIONS = (torch.ops.aten._assert_async.default, torch.ops.aten._assert_async.msg)


@dataclass(frozen=True)
class ConcreteGraph:
    """A graph, and the value of each node: a fake tensor, a number, or a tuple of them."""

    #: Has the attributes of the graph, such as tensor constants.
    module: torch.nn.Module
    graph: fx.Graph
    values: Mapping[fx.Node, Any]

    @property
    def inputs(self) -> list[fx.Node]:
        """The placeholders, in the order of the arguments."""
        return [node for node in self.graph.nodes if node.op == "placeholder"]

    @property
    def outputs(self) -> Sequence[Any]:
        """The results: nodes and constants."""
        (output,) = self.graph.find_nodes(op="output")
        results: Sequence[Any] = output.args[0]
        return results

    def find_needed(self) -> set[fx.Node]:
        """Return the nodes that the results and the assertions of the graph depend on."""
        needed: set[fx.Node] = set()
        for node in reversed(self.graph.nodes):
            if node.op == "output" or node.target in ASSERTIONS or node in needed:
                needed.update((node, *node.all_input_nodes))
        return needed

    def is_number(self, node: fx.Node) -> bool:
        """Return whether a node is a number, or None: a constant of the program."""
        value = self.values.get(node)
        return isinstance(value, (int, float)) or (value is None and node.op == "placeholder")

    def storage_base(self, node: fx.Node) -> fx.Node:
        """Return the node that made the storage of a tensor: the node itself, unless it is a view."""
        key = storage_key(self.values[node])
        while node.op == "call_function":
            bases = [n for n in node.all_input_nodes if key in storage_keys(self.values[n])]
            if not bases:
                return node
            node = bases[0]
        return node


def storage_key(value: torch.Tensor) -> StorageWeakRef:
    """Return a key of a tensor's storage; tensors that share memory have the same key."""
    return StorageWeakRef(value.untyped_storage())  # type: ignore[no-untyped-call]


def storage_keys(value: Any) -> list[StorageWeakRef]:
    """Return the keys of a value's tensors."""
    if isinstance(value, (tuple, list)):
        return [key for part in value for key in storage_keys(part)]
    return [storage_key(value)] if isinstance(value, torch.Tensor) and is_strided(value) else []


def is_strided(value: torch.Tensor) -> bool:
    """Return whether a tensor is storage with strides: not sparse, nested or quantised."""
    return value.layout is torch.strided and not value.is_quantized and not value.is_nested


def is_symbolic(module: fx.GraphModule) -> bool:
    """Return whether inputs of a graph have symbolic shapes, or are symbolic numbers."""
    for node in module.graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        if isinstance(value, _SYMBOLS):
            return True
        if isinstance(value, torch.Tensor) and is_strided(value):
            sizes = (*value.shape, *value.stride(), value.storage_offset())
            if any(isinstance(size, _SYMBOLS) for size in sizes):
                return True
    return False


def read_metadata(module: fx.GraphModule) -> ConcreteGraph:
    """Return a graph with the fake tensors of its metadata."""
    values = {}
    for node in module.graph.nodes:
        if node.op == "get_attr":
            values[node] = attrgetter(node.target)(module)
        elif node.op != "output":
            values[node] = node.meta.get("val", _results(node))
    return ConcreteGraph(module, module.graph, values)


def _results(node: fx.Node) -> tuple[Any, ...] | None:
    """Return the results of a node without metadata, as far as they are used; None for one result."""
    used: dict[Any, Any] = {
        user.args[1]: user.meta.get("val", _results(user))
        for user in node.users
        if user.target is getitem
    }
    return tuple(used.get(n) for n in range(max(used) + 1)) if used else None


def propagate_shapes(module: fx.GraphModule, arguments: Sequence[Any]) -> ConcreteGraph:
    """Return a graph with the fake tensors that it computes for arguments of these shapes."""
    interpreter = _Propagation(module)
    with plain_execution(), FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = [
            mode.from_tensor(value, static_shapes=True) if isinstance(value, torch.Tensor) else value
            for value in arguments
        ]
        interpreter.run(*fake)
    return ConcreteGraph(module, module.graph, interpreter.values)


class _Propagation(fx.Interpreter):
    """Runs a graph and keeps the value of each node."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.values: dict[fx.Node, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        """Run a node and keep its value."""
        self.values[n] = super().run_node(n)
        return self.values[n]


@contextmanager
def plain_execution() -> Iterator[None]:
    """Run operations as they are called, whatever the user's settings: no gradients, no autocast."""
    with torch.no_grad(), torch._C._DisableAutocast():
        yield


def shape_key(arguments: Sequence[Any]) -> Hashable:
    """Return what a program depends on: numbers, and the shapes and types of tensors."""
    return tuple(
        (value.shape, value.stride(), value.dtype, value.device)
        if isinstance(value, torch.Tensor) and is_strided(value)
        else (type(value), value)
        for value in arguments
    )
