"""Represent a captured graph in which all shapes are numbers.

The metadata of a graph contains fake tensors for the tensors of its nodes. Dynamo may capture a graph
with symbols in its shapes. A program has fixed shapes, so each symbol that the arguments of a call
determine is replaced by its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter, getitem
from typing import Any

import sympy
import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.multiprocessing.reductions import StorageWeakRef

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)

#: Operations that raise an error if a condition on data does not hold.
ASSERTIONS = (torch.ops.aten._assert_async.default, torch.ops.aten._assert_async.msg)


@dataclass(frozen=True)
class ConcreteGraph:
    """A graph with the values of its nodes, such as fake tensors, numbers, and tuples of them."""

    #: The module that contains the attributes of the graph, such as tensor constants.
    module: torch.nn.Module
    graph: fx.Graph
    values: Mapping[fx.Node, Any]

    @property
    def inputs(self) -> list[fx.Node]:
        """The placeholders, in the order of the arguments."""
        return [node for node in self.graph.nodes if node.op == "placeholder"]

    @property
    def outputs(self) -> Sequence[Any]:
        """The results of the graph: nodes and constants."""
        (output,) = self.graph.find_nodes(op="output")
        results: Sequence[Any] = output.args[0]
        return results

    def find_needed(self) -> set[fx.Node]:
        """Return the output, the assertions, and all nodes on which they depend."""
        needed: set[fx.Node] = set()
        for node in reversed(self.graph.nodes):
            if node.op == "output" or node.target in ASSERTIONS or node in needed:
                needed.update((node, *node.all_input_nodes))
        return needed

    def is_number(self, node: fx.Node) -> bool:
        """Return whether a node is a number, or an input that is None, and therefore a constant of the
        program.
        """
        value = self.values.get(node)
        return isinstance(value, (int, float)) or (value is None and node.op == "placeholder")

    def storage_base(self, node: fx.Node) -> fx.Node:
        """Return the first node with the storage of a tensor, such as the base of a view.

        For an item of a tuple with a new storage, this is the node that returns the tuple.
        """
        key = storage_key(self.values[node])
        while node.op == "call_function":
            bases = [n for n in node.all_input_nodes if key in storage_keys(self.values[n])]
            if not bases:
                return node
            node = bases[0]
        return node


def storage_key(value: torch.Tensor) -> StorageWeakRef:
    """Return a key for the storage of a tensor; tensors that share memory have equal keys."""
    return StorageWeakRef(value.untyped_storage())  # type: ignore[no-untyped-call]


def storage_keys(value: Any) -> list[StorageWeakRef]:
    """Return the storage keys of all strided tensors in a value, which may be a nested tuple."""
    if isinstance(value, (tuple, list)):
        return [key for part in value for key in storage_keys(part)]
    return [storage_key(value)] if isinstance(value, torch.Tensor) and is_strided(value) else []


def is_strided(value: torch.Tensor) -> bool:
    """Return whether a tensor is a strided view of a storage: not sparse, nested or quantised."""
    return value.layout is torch.strided and not value.is_quantized and not value.is_nested


class SymbolBinding:
    """A map from the symbols in the shapes of a graph to the arguments that determine their values."""

    def __init__(self, module: fx.GraphModule) -> None:
        #: For each symbol, the index of an argument and an index into its sizes and strides, or None if
        #: the argument itself is the value.
        self._places: dict[sympy.Symbol, tuple[int, int | None]] = {}
        for place, node in enumerate(module.graph.find_nodes(op="placeholder")):
            value = node.meta.get("val")
            if isinstance(value, torch.SymInt):
                self._add(value, place, None)
            elif isinstance(value, torch.Tensor) and is_strided(value):
                for dim, size in enumerate((*value.shape, *value.stride())):
                    self._add(size, place, dim)

    def _add(self, size: Any, place: int, dim: int | None) -> None:
        if isinstance(size, torch.SymInt) and isinstance(size.node.expr, sympy.Symbol):
            self._places.setdefault(size.node.expr, (place, dim))

    @property
    def symbols(self) -> list[sympy.Symbol]:
        """The symbols, in the order in which :meth:`find_values` returns their values."""
        return list(self._places)

    def find_values(self, arguments: Sequence[Any]) -> tuple[int, ...]:
        """Return the values of the symbols for the arguments of a call."""
        return tuple(
            int(arguments[place])
            if dim is None
            else (*arguments[place].shape, *arguments[place].stride())[dim]
            for place, dim in self._places.values()
        )


def read_metadata(
    module: fx.GraphModule, symbols: Mapping[sympy.Symbol, int] | None = None
) -> ConcreteGraph:
    """Return a graph with the values from its metadata; ``symbols`` are replaced by numbers."""
    values = {}
    for node in module.graph.nodes:
        if node.op == "get_attr":
            values[node] = attrgetter(node.target)(module)
        elif node.op != "output":
            values[node] = node.meta.get("val", _results(node))
    if symbols:
        substitution = _Substitution(symbols, values.values())
        values = {node: substitution(value) for node, value in values.items()}
    return ConcreteGraph(module, module.graph, values)


def _results(node: fx.Node) -> tuple[Any, ...] | None:
    """Return the values of a node without metadata, taken from the ``getitem`` nodes that use its
    results.

    Results that are not used are None, and unused results after the last used one are left out. Return
    None if no ``getitem`` node uses the node.
    """
    used: dict[Any, Any] = {
        user.args[1]: user.meta.get("val", _results(user))
        for user in node.users
        if user.target is getitem
    }
    return tuple(used.get(n) for n in range(max(used) + 1)) if used else None


def _symbolic_keys(value: Any) -> list[StorageWeakRef]:
    """Return the storage keys of the tensors in a value whose sizes, strides or offsets contain
    symbols.
    """
    if isinstance(value, (tuple, list)):
        return [key for part in value for key in _symbolic_keys(part)]
    if not isinstance(value, torch.Tensor) or not is_strided(value):
        return []
    sizes = (*value.shape, *value.stride(), value.storage_offset())
    return [storage_key(value)] if any(isinstance(size, _SYMBOLS) for size in sizes) else []


class _Substitution:
    """A function that replaces symbols in numbers and fake tensors, and preserves shared memory."""

    def __init__(self, symbols: Mapping[sympy.Symbol, int], values: Iterable[Any]) -> None:
        #: Storage keys of tensors with symbols in their sizes, strides or offsets.
        self._symbolic = {key for value in values for key in _symbolic_keys(value)}
        self._symbols = {symbol: sympy.Integer(value) for symbol, value in symbols.items()}
        self._numbers: dict[sympy.Expr, Any] = {}
        self._memories: dict[StorageWeakRef, torch.Tensor] = {}
        self._tensors: dict[int, torch.Tensor] = {}
        self._mode = FakeTensorMode(allow_non_fake_inputs=True)

    def __call__(self, value: Any) -> Any:
        """Return a value with its symbols replaced by numbers.

        A number or tensor with a symbol whose value is unknown is returned unchanged.
        """
        if isinstance(value, _SYMBOLS):
            return self._evaluate(value)
        if isinstance(value, (tuple, list)):
            return type(value)(map(self, value))
        if not isinstance(value, FakeTensor) or not is_strided(value):
            return value
        if id(value) not in self._tensors:
            is_symbolic = storage_key(value) in self._symbolic
            self._tensors[id(value)] = self._make(value) if is_symbolic else value
        return self._tensors[id(value)]

    def _evaluate(self, number: Any) -> Any:
        if not isinstance(number, _SYMBOLS):
            return number
        expression = number.node.expr
        if expression not in self._numbers:
            found = expression.xreplace(self._symbols)
            kind = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}[type(number)]
            self._numbers[expression] = number if found.free_symbols else kind(found)
        return self._numbers[expression]

    def _make(self, value: FakeTensor) -> torch.Tensor:
        shape, strides = map(self._evaluate, value.shape), map(self._evaluate, value.stride())
        layout = (*shape,), (*strides,), self._evaluate(value.storage_offset())
        if any(isinstance(size, _SYMBOLS) for part in (*layout[:2], layout[2:]) for size in part):
            return value
        key = storage_key(value)
        if key not in self._memories:
            bytes_ = self._evaluate(value.untyped_storage().nbytes())
            self._memories[key] = torch.empty(bytes_, dtype=torch.uint8, device="meta")
        typed = torch.empty(0, dtype=value.dtype, device="meta")
        typed.set_(self._memories[key].untyped_storage(), layout[2], *layout[:2])
        return FakeTensor(self._mode, typed, value.device)


@contextmanager
def plain_execution() -> Iterator[None]:
    """Disable gradients and autocast in a ``with`` block, regardless of the user's settings."""
    with torch.no_grad(), torch._C._DisableAutocast():
        yield
