"""A captured graph as one RASP program: its tokens are the tensors that come in.

The graph, its shapes, types and Python numbers are the *order*. Nothing of the values of parameters and
inputs is in the program. Nodes that depend on integers and positions alone, and random numbers, are
computed by PyTorch on the host; their results are tokens. All other nodes are constructions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from locum.constructions.tensor import (
    Layout,
    Tensor,
    contiguous_strides,
    extent,
    is_dense,
    measure_positions,
)
from locum.errors import LocumError
from locum.execution import run_all
from locum.graph import Node
from locum.language.python import tokens
from locum.torch import operations as operations
from locum.torch.numbers import INTEGERS, dtype_name, is_float
from locum.torch.table import TABLE


class UnsupportedOperationError(LocumError):
    """An operation of a captured graph that has no construction."""


@dataclass
class Feed:
    """A tensor whose entries are tokens: which value it is, and where its entries are."""

    node: fx.Node
    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def entries(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the memory of a tensor as one row, without a copy."""
        tensor = tensor.detach()
        if tuple(tensor.stride()) != self.strides and tensor.numel() > 1:
            laid_out = torch.empty_strided(
                self.shape, self.strides, dtype=tensor.dtype, device=tensor.device
            )
            tensor = laid_out.copy_(tensor)
        return tensor.as_strided((extent(self.shape, self.strides),), (1,))


@dataclass
class Output:
    """How a result is made: from a root of the program, or from a value of the host."""

    tensor: Tensor | None
    node: fx.Node | None
    meta: Any = None


@dataclass
class Program:
    """A graph with concrete shapes, translated."""

    graph: fx.GraphModule
    executor: str
    host: str
    feeds: list[Feed] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    on_u: list[fx.Node] = field(default_factory=list)
    on_host: list[fx.Node] = field(default_factory=list)
    #: Tokens, and positions that results need.
    length: int = 0
    roots: dict[Node, range] = field(default_factory=dict)
    compute_host: Callable[..., Any] | None = None

    @classmethod
    def of(cls, graph: fx.GraphModule, executor: str, host: str) -> Program:
        """Translate a graph whose nodes have concrete fake tensors."""
        program = cls(graph, executor, host)
        program._translate()
        return program

    # Translating ------------------------------------------------------------------------------------

    def _translate(self) -> None:
        values: dict[fx.Node, Any] = {}
        nodes = list(self.graph.graph.nodes)
        on_host = self._host_nodes(nodes)
        tokens_read = 0
        for node in nodes:
            if node.op == "output":
                break
            if node in on_host:
                if node.op == "call_function":
                    self.on_host.append(node)
                continue
            for argument in node.all_input_nodes:
                if argument not in values and argument in on_host:
                    values[argument], tokens_read = self._feed(argument, tokens_read)
            values[node] = self._construct(node, values)
            self.on_u.append(node)
        self.length = max(tokens_read, self.length, 1)
        self._finish(nodes[-1], values, on_host)

    def _host_nodes(self, nodes: Sequence[fx.Node]) -> set[fx.Node]:
        """Return inputs, and the nodes that are computed from integers, positions and shapes alone."""
        hosted: set[fx.Node] = set()
        whole: set[fx.Node] = set()
        for node in nodes:
            value = node.meta.get("val")
            if node.op in ("placeholder", "get_attr"):
                hosted.add(node)
                if not isinstance(value, torch.Tensor) or not value.dtype.is_floating_point:
                    whole.add(node)
            elif node.op == "call_function":
                is_number = not isinstance(value, (torch.Tensor, tuple, list))
                from_whole = all(argument in whole for argument in node.all_input_nodes)
                if is_number or (from_whole and self.host == "allowed"):
                    hosted.add(node)
                    whole.add(node)
        return hosted

    def _feed(self, node: fx.Node, start: int) -> tuple[Any, int]:
        """Make the entries of a tensor tokens; Python's numbers stay what they are."""
        value = node.meta["val"]
        if not isinstance(value, torch.Tensor):
            return value, start
        dtype = self._type(node, value)
        shape, strides = tuple(value.shape), tuple(value.stride())
        self.feeds.append(Feed(node, start, shape, strides))
        size = extent(shape, strides)
        first = start - int(value.storage_offset())
        tensor = Tensor(tokens, shape, strides, start, dtype, first, int(value.storage_offset()) + size)
        return tensor, start + size

    def _construct(self, node: fx.Node, values: dict[fx.Node, Any]) -> Any:
        arguments = fx.node.map_arg(node.args, lambda n: values[n])
        options = fx.node.map_arg(node.kwargs, lambda n: values[n])
        if node.target is operator.getitem:
            return arguments[0][arguments[1]]
        row = TABLE.get(node.target)
        if row is None:
            raise UnsupportedOperationError(
                f"{node.target}: expected an operation that U computes, got one without a construction"
                f"{place_of(node)}; try executing this module without the locum backend"
            )
        out = _map(node.meta["val"], lambda value: self._layout(node, value))
        with measure_positions() as count:
            result = row.construct(out, *arguments, **dict(options))
        self.length = max(self.length, count.greatest)
        for tensor in result if isinstance(result, tuple) else (result,):
            if isinstance(tensor, Tensor):
                self.length = max(self.length, tensor.size, tensor.storage)
        return result

    def _layout(self, node: fx.Node, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        shape, strides = tuple(value.shape), tuple(value.stride())
        if not is_dense(shape, strides):
            strides = contiguous_strides(shape)
        return Layout(shape, strides, self._type(node, value))

    def _type(self, node: fx.Node, value: torch.Tensor) -> str:
        dtype = dtype_name(value.dtype)
        if not is_float(dtype) and dtype != "bool" and dtype not in INTEGERS:
            raise UnsupportedOperationError(
                f"{node.target}: expected tensors of real numbers, got {dtype}{place_of(node)}"
            )
        return dtype

    def _finish(self, output: fx.Node, values: dict[fx.Node, Any], on_host: set[fx.Node]) -> None:
        """Choose what is run for each output, and make the function that runs on the host."""
        for node in output.args[0]:
            if not isinstance(node, fx.Node):
                self.outputs.append(Output(None, None, node))
                continue
            value = values.get(node) if node not in on_host else None
            if not isinstance(value, Tensor):
                self.outputs.append(Output(None, node))
                continue
            if value.sop.node is tokens.node:
                source = self._input_of(value)
                self.outputs.append(Output(value, source, node.meta["val"]))
                continue
            self.roots[value.sop.node] = range(max(value.storage, 1))
            self.outputs.append(Output(value, None, node.meta["val"]))
        self._make_host(on_host)

    def _input_of(self, tensor: Tensor) -> fx.Node:
        """Return the input that a view of the tokens shows."""
        return next(
            feed.node
            for feed in reversed(self.feeds)
            if feed.start <= tensor.offset or not tensor.size
        )

    def _make_host(self, on_host: set[fx.Node]) -> None:
        graph = fx.Graph()
        copied: dict[fx.Node, fx.Node] = {}
        for node in self.graph.graph.nodes:
            if node in on_host:
                copied[node] = graph.node_copy(node, copied.__getitem__)
        wanted = [feed.node for feed in self.feeds]
        wanted += [o.node for o in self.outputs if o.node is not None]
        self._wanted = list(dict.fromkeys(wanted))
        graph.output(tuple(copied[node] for node in self._wanted))
        self.compute_host = fx.GraphModule(self.graph, graph)

    # Running ----------------------------------------------------------------------------------------

    def __call__(self, *arguments: Any) -> list[Any]:
        """Run the host's part, then the program; return the outputs of the graph."""
        assert self.compute_host is not None
        known = dict(zip(self._wanted, self.compute_host(*arguments), strict=True))
        parts = [feed.entries(known[feed.node]) for feed in self.feeds]
        found = {}
        if self.roots:
            if not parts:
                parts = [torch.zeros(1)]
            results = run_all(self.roots, parts, self.length, executor=self.executor)
            found = dict(zip(self.roots, results, strict=True))
        storages: dict[tuple[Node, torch.dtype], torch.Tensor] = {}
        return [self._output(output, known, found, storages) for output in self.outputs]

    def _output(
        self,
        output: Output,
        known: dict[fx.Node, Any],
        found: dict[Node, torch.Tensor],
        storages: dict[tuple[Node, torch.dtype], torch.Tensor],
    ) -> Any:
        tensor, meta = output.tensor, output.meta
        if tensor is None:
            return meta if output.node is None else known[output.node]
        if output.node is not None:
            source = known[output.node]
            return source.as_strided(
                tensor.shape, tensor.strides, tensor.offset - tensor.start
            )
        key = (tensor.sop.node, meta.dtype)
        if key not in storages:
            value = found[tensor.sop.node]
            storages[key] = (value != 0) if meta.dtype == torch.bool else value.to(meta.dtype)
        shown = storages[key].as_strided(tensor.shape, tensor.strides, tensor.offset)
        strides = tuple(meta.stride())
        if tuple(shown.stride()) == strides or not tensor.size:
            return shown if tensor.size else shown.new_empty_strided(tuple(meta.shape), strides)
        return shown.new_empty_strided(tuple(meta.shape), strides).copy_(shown)


def _map(value: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(function(part) for part in value)
    return function(value)


def place_of(node: fx.Node) -> str:
    """Return where a node comes from: its module and its line of source code."""
    stack = node.meta.get("nn_module_stack") or {}
    path = list(stack.values())[-1][0] if stack else ""
    trace = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines() if line.strip()]
    source = next((line for line in reversed(trace) if line.startswith("File ")), "")
    named = f" in module {path}" if path else ""
    return named + (f" ({source})" if source else "")


__all__ = ["FakeTensor", "Program", "UnsupportedOperationError", "place_of"]
