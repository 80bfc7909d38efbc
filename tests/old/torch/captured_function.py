"""Capture a function of tensors with AOT autograd, as the backend does, and run its graphs on U."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import fx
from torch._functorch.aot_autograd import aot_function
from torch.utils import _pytree as pytree

from locum.torch.backend import decompositions
from locum.torch.compiled_graph import box_arguments
from locum.torch.concrete_graph import read_metadata
from locum.torch.host_operations import drawn_operation
from locum.torch.program import Program, Settings
from locum.torch.table import find_row
from tests.torch.comparing import copy_tensors


class CaptureError(Exception):
    """PyTorch does not capture a function as a graph, for example because its shapes depend on data."""


class TooLargeError(Exception):
    """A program is longer than a run allows."""


class _NotRunError(Exception):
    """A graph was captured and is not run."""


class CapturedFunction:
    """A function whose graphs are captured in the first call; each becomes a program when it is run.

    The executor may change between calls. The executor ``eager`` runs the graphs without U, and the
    executor ``none`` does not run them.
    """

    def __init__(self, function: Any, host: str = "allowed") -> None:
        self.host, self.executor = host, "fast"
        #: The greatest length of a program that is run.
        self.longest: int | None = None
        self.graphs: list[fx.GraphModule] = []
        self.programs: dict[int, Program] = {}
        compile_function: Any = aot_function
        self._function = compile_function(
            function,
            fw_compiler=self._compile_forward,
            bw_compiler=self._compile_backward,
            inference_compiler=self._compile_forward,
            decompositions=decompositions(),
        )

    def __call__(self, *tensors: Any) -> Any:
        """Run the function; raise :class:`CaptureError` if PyTorch captures no graph."""
        try:
            return self._function(*tensors)
        except Exception as error:
            if not self.graphs:
                raise CaptureError(str(error)) from error
            raise

    def _compile_forward(self, graph: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        return self._compile(graph, kind="inference")

    def _compile_backward(self, graph: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        return self._compile(graph, kind="backward")

    def _compile(self, graph: fx.GraphModule, kind: str) -> Any:
        number = len(self.graphs)
        self.graphs.append(graph)

        def run(arguments: Sequence[Any]) -> Any:
            if self.executor == "none":
                raise _NotRunError
            if self.executor == "eager":
                return graph(*arguments)
            settings = Settings(self.executor, self.host)
            if number not in self.programs:
                concrete = read_metadata(graph)
                self.programs[number] = Program(concrete, settings, kind=kind)
            program = self.programs[number]
            if self.longest is not None and program.length > self.longest:
                raise TooLargeError
            program.settings = settings
            return program(*arguments)

        return box_arguments(run)

    @property
    def overloads(self) -> set[str]:
        """The overloads of the table that were translated."""
        nodes = (node for program in self.programs.values() for node in program.on_u)
        return {str(node.target) for node in nodes if find_row(node.target)}

    @property
    def unlisted(self) -> set[str]:
        """The operations of the graphs that are not in the table and draw no random numbers."""
        nodes = [n for graph in self.graphs for n in graph.graph.nodes if n.op == "call_function"]
        called = [n for n in nodes if isinstance(n.target, torch._ops.OperatorBase)]
        return {str(n.target) for n in called if not find_row(n.target) and drawn_operation(n) is None}


def run(function: Any, tensors: Sequence[torch.Tensor], *, gradients: bool) -> list[Any]:
    """Run a function on copies of tensors; return results, gradients, and the tensors afterwards.

    The gradients are those of a weighted sum of all results.
    """
    torch.manual_seed(42)  # as random operations of op_db do, which is no part of a graph
    given = copy_tensors(tensors)
    if not gradients:
        given = [tensor.detach() for tensor in given]
    found: list[Any] = pytree.tree_leaves(function(*given))
    if gradients:
        roots = [r for r in found if isinstance(r, torch.Tensor) and r.requires_grad]
        leaves = [tensor for tensor in given if tensor.requires_grad]
        generator = torch.Generator().manual_seed(0)
        weights = [(torch.rand(r.shape, generator=generator) + 0.5).to(r.dtype) for r in roots]
        if roots:
            found += torch.autograd.grad(roots, leaves, weights, allow_unused=True)
    return [_as_plain(x) for x in (*found, *given)]


def _as_plain(value: Any) -> Any:
    """Return a tensor without its graph, and with memory: gradients that are 0 may have none."""
    if not isinstance(value, torch.Tensor):
        return value
    return torch.zeros_like(value) if value._is_zerotensor() else value.detach()


def capture(function: Any, tensors: Sequence[torch.Tensor]) -> fx.GraphModule:
    """Return the graph of a function as the backend receives it for inference."""
    captured = CapturedFunction(function)
    captured.executor = "none"
    with suppress(_NotRunError):
        captured(*(tensor.detach() for tensor in tensors))
    return captured.graphs[0]
