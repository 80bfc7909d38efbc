"""Translate a captured graph into one RASP program.

The tokens of the program are the memory of the tensors on the host that the program reads.
Constructions from the table compute the operations that do not run on the host. The roots of the
program are the storages of its results and its conditions.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import torch
from torch import fx

from locum.constructions.observation import observing
from locum.constructions.tensor import (
    Layout,
    StorageSizes,
    Tensor,
    contiguous_strides,
    extent,
    is_dense,
    measure_storages,
)
from locum.errors import InputError, LocumError
from locum.graph import Node
from locum.rasp.handles import SOp
from locum.rasp.python import tokens, where
from locum.torch import operations as operations
from locum.torch.concrete_graph import ASSERTIONS, ConcreteGraph, is_strided
from locum.torch.host_operations import drawn_operation, is_view
from locum.torch.numbers import INTEGERS, collect_notes, dtype_name, is_float, require
from locum.torch.step_recorder import StepCollector, describe_origin
from locum.torch.table import Row, find_row

#: Integer dtypes that are converted to int64 tokens.
_NARROW = ("int8", "uint8", "int16", "int32")
#: Operations whose strides and offset refer to a storage.
_EXPLICIT_STRIDES = (torch.ops.aten.as_strided.default, torch.ops.aten.as_strided_scatter.default)


def _require_first(out: None, condition: Tensor, problem: str) -> None:
    """Require that the first entry of ``condition`` is true."""
    first = condition.at(*(0 for _ in condition.shape))
    require(where(first, 0.0, 1.0), problem)


_ASSERTION = Row("assertion", "assertions", _require_first)


class UnsupportedOperationError(LocumError):
    """Raised for an operation, argument or tensor of a captured graph that U does not support."""


@dataclass(frozen=True)
class Feed:
    """A tensor on the host whose memory becomes tokens of the program."""

    node: fx.Node
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    #: The dtype of the tokens. Narrow integers become int64, so that wider sums do not wrap around.
    dtype: str
    #: The number of tokens.
    size: int

    def entries(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the memory of a tensor as a vector of tokens, without a copy if the strides are as
        expected.
        """
        if tensor.shape != self.shape:  # AOT autograd may pass more memory than it traced
            raise InputError(
                f"{self.node.name}: expected a tensor of shape {tuple(self.shape)}, got "
                f"{tuple(tensor.shape)}; try inputs that do not share memory"
            )
        if tensor.stride() == self.strides or tensor.numel() < 2:
            return tensor.as_strided((self.size,), (1,))
        memory = tensor.new_empty(self.size)
        write_strided(memory, tensor, self.strides, 0)
        return memory


def write_strided(
    memory: torch.Tensor, tensor: torch.Tensor, strides: tuple[int, ...], offset: int
) -> None:
    """Write a tensor into ``memory`` with the given strides; entries at the same position must be
    equal.
    """
    places = torch.arange(memory.numel(), device=memory.device)
    memory[places.as_strided(tensor.shape, strides, offset).reshape(-1)] = tensor.reshape(-1)


@dataclass(frozen=True)
class Construction:
    """The result of a construction, with the observed tensors and conditions collected from it."""

    #: A tensor, or a tuple of tensors, some of which may be None.
    result: Any
    #: Tensors that the construction names, such as attention patterns.
    observed: Sequence[tuple[str, Tensor]]
    #: S-ops that are 0 at position 0 for valid inputs, each with the text of the error.
    conditions: Sequence[tuple[SOp, str]]
    storages: StorageSizes


class Translation:
    """The translation of a graph into one RASP program, before the roots of the program are chosen."""

    def __init__(
        self, concrete: ConcreteGraph, known: set[fx.Node], collector: StepCollector | None = None
    ) -> None:
        self._concrete, self._known, self._collector = concrete, known, collector
        #: The tensors that become tokens, in the order of the tokens.
        self.feeds: dict[fx.Node, Feed] = {}
        self.token_count = 0
        #: The device of the program: the device of the first tensor that is not a scalar, otherwise of
        #: the first scalar tensor, otherwise the CPU.
        self.device = _device(concrete)
        #: Nodes that U computes.
        self.on_u: list[fx.Node] = []
        #: S-ops that are 0 at position 0 for valid inputs, each with the text of the error.
        self.conditions: dict[Node, str] = {}
        #: Length of the sequence: tokens, and further positions that computed tensors need.
        self.length = 1
        #: The number of positions of each s-op that is the storage of a tensor.
        self.storages: dict[Node, int] = {}
        self._tensors: dict[fx.Node, Any] = {}
        self._translate()

    def _translate(self) -> None:
        needed = self._concrete.find_needed()
        for node in self._concrete.graph.nodes:
            if node.op != "call_function" or node not in needed or self._concrete.is_number(node):
                continue
            if node.target in ASSERTIONS:
                self._add_assertion(node)
            elif node not in self._known:
                self._tensors[node] = self._construct(node)
                self.on_u.append(node)
            elif node.target is torch.ops.aten.as_strided.default:
                self._tensors[node] = self._show_memory(node)
                self.on_u.append(node)
            elif self._collector is not None:
                self._collect_known(node, self._collector)
        self.length = max(self.length, self.token_count)
        if self._collector is not None:
            self._collector.add_outputs({node: self._tensors[node] for node in self.on_u})

    def _collect_known(self, node: fx.Node, collector: StepCollector) -> None:
        """Add the result of an operation on the host to the recorded steps, unless it is a view."""
        is_tensor = isinstance(self._concrete.values[node], torch.Tensor)
        if not is_tensor or is_view(node) or node.target is torch.empty_strided:
            return
        name = _step_name(node)
        if node.target is operator.getitem:
            source, place = cast(tuple[fx.Node, int], node.args)
            name = f"{_step_name(source)}.{place}"
        collector.add(node, name, node)

    def _add_assertion(self, node: fx.Node) -> None:
        """Add the condition of an assertion in the graph, so that a run raises its error."""
        condition, *message = node.args
        if not isinstance(condition, fx.Node) or self._concrete.is_number(condition):
            raise _error(node, "expected a condition on a tensor, got a number")
        problem = (
            str(message[0]) if message else "expected a condition that holds, got one that does not"
        )
        made = self._compute(node, _ASSERTION, None, (self.read(condition), problem), {})
        for violations, problem in made.conditions:
            self.conditions[violations.node] = problem + describe_origin(node)

    def read(self, node: fx.Node) -> Any:
        """Return the tensor, the tuple of tensors or the number of a graph node.

        A tensor on the host becomes tokens on first use.
        """
        if node in self._tensors:
            return self._tensors[node]
        value = self._concrete.values[node]
        if self._concrete.is_number(node):
            return value
        self._tensors[node] = self._feed(node, value)
        return self._tensors[node]

    def find_feed(self, tensor: Tensor) -> tuple[fx.Node, int] | None:
        """Return the graph node whose tokens a tensor views, and the position of its first token.

        Return None for a computed tensor or an empty tensor.
        """
        if tensor.sop.node is not tokens.node or not tensor.size:
            return None
        start = 0
        for node, feed in self.feeds.items():
            stop = start + feed.size
            if start <= tensor.offset < stop:
                return node, start
            start = stop
        raise AssertionError("a view of tokens that no tensor has")

    def _feed(self, node: fx.Node, value: Any) -> Tensor:
        """Append the memory of a tensor on the host to the tokens, and return a view of these
        tokens.
        """
        if not isinstance(value, torch.Tensor):
            raise _error(node, f"expected a tensor, got {type(value).__name__}")
        dtype = _type(node, value)
        shape, strides = tuple(value.shape), value.stride()
        size = extent(shape, strides)
        fed = "int64" if dtype in _NARROW else dtype
        self.feeds[node] = Feed(node, shape, strides, fed, size)
        tensor = self._enter(Tensor(tokens, shape, strides, 0, dtype, 0, size))
        self.token_count += size
        return tensor

    def _enter(self, tensor: Tensor) -> Tensor:
        """Return an input tensor as a view of the next tokens."""
        return tensor.replace(offset=self.token_count, start=self.token_count)

    def _show_memory(self, node: fx.Node) -> Tensor:
        """Return the result of ``as_strided`` on an input, with the visible memory as new tokens.

        The storage of an input may be larger than the input, and its offset may differ between calls.
        """
        value = self._concrete.values[node]
        memory = self._feed(node, value)
        first = value.storage_offset()
        row = (memory.storage,), (1,), memory.offset, memory.dtype
        storage = Tensor(memory.sop, *row, memory.start - first, first + memory.storage)
        size, stride = list(value.shape), list(value.stride())
        result: Tensor = _find_row(node).construct(_layout(node, value), storage, size, stride, first)
        return result

    def _construct(self, node: fx.Node) -> Any:
        """Return the tensor, or the tuple of tensors, that the construction of a graph node creates.

        Also add the conditions and the recorded steps of the node.
        """
        if node.target is operator.getitem:
            source, place = cast(tuple[fx.Node, int], node.args)
            return self.read(source)[place]
        for used in (node, *node.all_input_nodes):
            _map(self._concrete.values[used], lambda value: _check_type(node, value))
        row = _find_row(node)
        self._check_storage(node)
        arguments = fx.node.map_arg(node.args, self.read)
        options = dict(fx.node.map_arg(node.kwargs, self.read))
        out = _map(self._concrete.values[node], lambda value: _layout(node, value))
        _check_arguments(node, row, out, arguments, options)
        made = self._compute(node, row, out, arguments, options)
        for violations, problem in made.conditions:
            self.conditions[violations.node] = str(_error(node, problem))
        if self._collector is not None:
            for name, tensor in made.observed:
                self._collector.add(node, name, tensor)
            if row.kind != "views":
                self._collector.add(node, _step_name(node), made.result)
        return made.result

    def _compute(self, node: fx.Node, row: Row, out: Any, arguments: Any, options: Any) -> Construction:
        """Call the construction of a graph node, and record the sizes of the storages that it needs."""
        made = self._call_construction(node, row, out, arguments, options)
        self.length = max(self.length, made.storages.greatest)
        for sop, size in made.storages.sizes.items():
            self.storages[sop] = max(size, self.storages.get(sop, 0))
        return made

    def _call_construction(
        self, node: fx.Node, row: Row, out: Any, arguments: Any, options: Any
    ) -> Construction:
        observed: list[tuple[str, Tensor]] = []
        try:
            with (
                observing(lambda name, tensor: observed.append((name, tensor)))
                if self._collector is not None
                else nullcontext(),
                collect_notes() as notes,
                measure_storages() as storages,
            ):
                result = row.construct(out, *arguments, **options)
        except UnsupportedOperationError:
            raise
        except LocumError as error:
            raise _error(node, str(error)) from error
        return Construction(result, observed, notes.required, storages)

    def _check_storage(self, node: fx.Node) -> None:
        """Raise an error if an operation with explicit strides reads a storage that differs from
        PyTorch's storage.
        """
        if node.target not in _EXPLICIT_STRIDES:
            return
        source = cast(fx.Node, node.args[0])
        tensor, value = self.read(source), self._concrete.values[source]
        strides = zip(value.shape, tensor.strides, value.stride(), strict=True)
        if tensor.offset - tensor.start != value.storage_offset() or any(
            size > 1 and a != b for size, a, b in strides
        ):
            raise _error(node, "expected a tensor without gaps in memory; try x.contiguous() before")


def _device(concrete: ConcreteGraph) -> torch.device:
    tensors = [value for value in concrete.values.values() if isinstance(value, torch.Tensor)]
    tensors.sort(key=lambda value: value.ndim == 0)
    return tensors[0].device if tensors else torch.device("cpu")


def _find_row(node: fx.Node) -> Row:
    row = find_row(node.target)
    if row is not None:
        return row
    if drawn_operation(node) is not None:
        raise _error(
            node,
            "expected random numbers whose parameters are inputs, got parameters that U computes; "
            "try torch.rand_like or torch.randn_like, or drawing them outside of the compiled function",
        )
    target = node.target
    if isinstance(target, torch._ops.HigherOrderOperator):
        kind = "a higher-order operation"
    elif isinstance(target, torch._ops.OpOverload) and target.namespace not in ("aten", "prims"):
        kind = "a custom operation"
    else:
        kind = "one without a construction"
    raise _error(
        node,
        f"expected an operation that U computes, got {kind}; "
        'try compiling only modules without it: module.compile(backend="locum")',
    )


def _check_arguments(node: fx.Node, row: Row, out: Any, arguments: Any, options: Any) -> None:
    """Raise an error if a construction does not support the arguments of a call."""
    try:
        _signature(row.construct).bind(out, *arguments, **options)
    except TypeError as error:
        raise _error(node, f"expected arguments that U supports, got others: {error}") from None


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _layout(node: fx.Node, value: Any) -> Any:
    """Return the layout of a result: the layout of eager execution if it is dense, otherwise a
    contiguous layout.
    """
    if not isinstance(value, torch.Tensor):
        return value
    dtype = _type(node, value)
    shape, strides = tuple(value.shape), value.stride()
    return Layout(shape, strides if is_dense(shape, strides) else contiguous_strides(shape), dtype)


def _check_type(node: fx.Node, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        _type(node, value)


def _type(node: fx.Node, value: torch.Tensor) -> str:
    """Return the dtype of a tensor as a string, or raise an error if the tensor is not supported."""
    dtype = dtype_name(value.dtype)
    if not is_strided(value):
        kind = "quantised" if value.is_quantized else "nested" if value.is_nested else "sparse"
        raise _error(node, f"expected a strided tensor, got a {kind} one; try x.to_dense()")
    if any(isinstance(size, torch.SymInt) for size in value.shape):
        raise _error(node, f"expected a shape that does not depend on data, got {tuple(value.shape)}")
    if not is_float(dtype) and dtype != "bool" and dtype not in INTEGERS:
        known = "float64, float32, float16, bfloat16, bool, uint8, int8, int16, int32, int64 or uint64"
        raise _error(node, f"expected numbers of type {known}, got {dtype}")
    return dtype


def _error(node: fx.Node, problem: str) -> UnsupportedOperationError:
    name = f"input {node.target}" if node.op in ("placeholder", "get_attr") else str(node.target)
    problem, separator, advice = problem.partition("; try ")
    return UnsupportedOperationError(f"{name}: {problem}{describe_origin(node)}{separator}{advice}")


def _step_name(node: fx.Node) -> str:
    """Return the name of an operation for recorded steps, such as ``addmm``."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return str(target.overloadpacket.__name__).lstrip("_")
    return str(getattr(target, "__name__", target))


def _map(value: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(function(part) for part in value)
    return function(value)
