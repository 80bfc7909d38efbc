"""Create the results of a graph from the roots of its program.

Results have the dtype, shape, strides and aliasing of eager execution. The fake tensors of the graph
determine these properties. Results of U share memory exactly if their fake tensors share a storage.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import fx

from locum.constructions.tensor import Tensor, contiguous_strides, extent
from locum.errors import ExecutionError
from locum.graph import Node
from locum.graph.atoms import LARGEST_EXACT
from locum.torch.concrete_graph import ConcreteGraph, storage_key
from locum.torch.translation import Translation, write_strided


@dataclass(frozen=True)
class KnownOutput:
    """A result available on the host: an input, a constant, a node that the host computes, or a view
    of one of them.
    """

    node: fx.Node
    #: For a view: its shape, its strides, and the offset from the beginning of the tensor.
    view: tuple[tuple[int, ...], tuple[int, ...], int] | None = None

    def make(self, known: Mapping[fx.Node, Any]) -> Any:
        """Return the result, given the values of nodes that are known on the host."""
        source = known[self.node]
        if self.node.op == "get_attr":  # a constant of the graph, which the user may change
            source = source.clone()
        if self.view is None:
            return source
        shape, strides, distance = self.view
        return source.as_strided(shape, strides, source.storage_offset() + distance)


#: The source of a result: a root of the program, or a node on the host whose entries are tokens.
Source = Node | fx.Node


@dataclass(frozen=True)
class ComputedOutput:
    """A result computed by U, with its location in the program and in the memory of the result."""

    source: Source
    #: The result as a view of its source.
    tensor: Tensor
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @property
    def is_laid_out(self) -> bool:
        """Whether the entries in the program have the same layout as the result."""
        strides = zip(self.shape, self.tensor.strides, self.strides, strict=True)
        return self.tensor.offset == self.offset and all(size == 1 or a == b for size, a, b in strides)

    @property
    def size(self) -> int:
        """Number of entries of memory that the result needs, including its offset."""
        return self.offset + extent(self.shape, self.strides)


@dataclass
class Memory:
    """Results of U that share memory; ``outputs`` maps the index of each result to the result."""

    dtype: torch.dtype
    device: torch.device
    outputs: dict[int, ComputedOutput] = field(default_factory=dict)

    @property
    def read(self) -> list[ComputedOutput]:
        """The results that are not empty."""
        return [output for output in self.outputs.values() if output.tensor.size]

    @cached_property
    def source(self) -> Source | None:
        """The source whose entries have the layout of all results, or None if the results are written
        to new memory.
        """
        sources = {output.source for output in self.read}
        is_laid_out = all(output.is_laid_out for output in self.outputs.values())
        return sources.pop() if len(sources) == 1 and is_laid_out else None

    def make(self, found: Mapping[Source, torch.Tensor], taken: set[int]) -> dict[int, torch.Tensor]:
        """Return the results as tensors.

        ``taken`` contains the addresses of memory that other tensors use. The address of the memory of
        a source that the results use is added to ``taken``.
        """
        if self.source is not None:
            memory = self._convert(found[self.source])
            if memory.untyped_storage().data_ptr() in taken or memory.storage_offset():
                memory = memory.clone()
            taken.add(memory.untyped_storage().data_ptr())
        else:
            memory = self._write(found)
        return {
            place: memory.as_strided(output.shape, output.strides, output.offset)
            for place, output in self.outputs.items()
        }

    def _write(self, found: Mapping[Source, torch.Tensor]) -> torch.Tensor:
        """Return new memory that contains the entries of all results."""
        size = max(output.size for output in self.outputs.values())
        memory = torch.empty(size, dtype=self.dtype, device=self.device)
        for output in self.read:
            tensor, entries = output.tensor, self._convert(found[output.source])
            entries = entries.as_strided(
                tensor.shape, tensor.strides, entries.storage_offset() + tensor.offset
            )
            write_strided(memory, entries, output.strides, output.offset)
        return memory

    def _convert(self, value: torch.Tensor) -> torch.Tensor:
        """Convert computed numbers to the dtype of the results.

        Floats beyond 2⁵³ in magnitude and NaN raise an error if the results are integers.
        """
        if value.dtype == self.dtype:
            return value
        if self.dtype == torch.bool:
            return value != 0
        is_rounded = value.is_floating_point() and not self.dtype.is_floating_point
        if is_rounded:
            is_exact = (value.abs() <= LARGEST_EXACT).all()
            problem = f"expected integers of at most 2⁵³ as {self.dtype}, got larger ones or NaN"
            if value.is_cuda:  # without waiting for the GPU
                torch._assert_async(is_exact, problem)
            elif not is_exact:
                raise ExecutionError(problem, "a result of U", kind="too large")
        return value.to(self.dtype)


class Outputs:
    """The results of a graph in order; each result is a constant, is available on the host, or is
    computed by U.
    """

    def __init__(self, concrete: ConcreteGraph, translation: Translation, known: set[fx.Node]) -> None:
        self._concrete, self._translation, self._known = concrete, translation, known
        self._count = 0
        self._constants: dict[int, Any] = {}
        self._of_host: dict[int, KnownOutput] = {}
        self._memories: dict[Any, Memory] = {}

    def with_parts(
        self, constants: dict[int, Any], of_host: dict[int, KnownOutput], memories: list[Memory]
    ) -> Outputs:
        """Return a copy with the given :attr:`parts`, which belong to a program for other shapes."""
        outputs = copy.copy(self)
        outputs._constants, outputs._of_host = constants, of_host
        outputs._memories = dict(enumerate(memories))
        return outputs

    @property
    def parts(self) -> tuple[dict[int, Any], dict[int, KnownOutput], list[Memory]]:
        """The constants, the results of the host, and the memories of results of U."""
        return self._constants, self._of_host, list(self._memories.values())

    def add(self, result: Any) -> int:
        """Add a result and return its index; a result is a graph node, a constant, or a tensor of the
        program.
        """
        place, self._count = self._count, self._count + 1
        if isinstance(result, Tensor):
            self._add_tensor(place, result)
        elif not isinstance(result, fx.Node):
            self._constants[place] = result
        elif self._concrete.is_number(result):
            self._constants[place] = self._concrete.values[result]
        elif result in self._known:
            self._of_host[place] = KnownOutput(result)
        else:
            self._add_node(place, result)
        return place

    def _add_node(self, place: int, node: fx.Node) -> None:
        value = self._concrete.values[node]
        base = self._concrete.storage_base(node)
        shape, strides = tuple(value.shape), value.stride()
        if base in self._known:
            distance = value.storage_offset() - self._concrete.values[base].storage_offset()
            self._of_host[place] = KnownOutput(base, (shape, strides, distance))
            return
        memory = self._memories.setdefault(storage_key(value), Memory(value.dtype, value.device))
        source, tensor = self._find_source(self._translation.read(node))
        offset = value.storage_offset()
        memory.outputs[place] = ComputedOutput(source, tensor, shape, strides, offset)

    def _add_tensor(self, place: int, tensor: Tensor) -> None:
        memory = Memory(getattr(torch, tensor.dtype), self._translation.device)
        source, tensor = self._find_source(tensor)
        strides = contiguous_strides(tensor.shape)
        memory.outputs[place] = ComputedOutput(source, tensor, tensor.shape, strides, 0)
        self._memories[place] = memory

    def _find_source(self, tensor: Tensor) -> tuple[Source, Tensor]:
        """Return the source of a result, and the result as a view of this source.

        If the result is a view of tokens, the source is the node whose tokens it views.
        """
        feed = self._translation.find_feed(tensor)
        if feed is None:
            return tensor.sop.node, tensor
        node, start = feed
        return node, tensor.replace(offset=tensor.offset - start, start=0)

    @property
    def roots(self) -> dict[Node, range]:
        """The roots of the program, and the positions of each root that are needed."""
        stops: dict[Node, int] = {}
        for memory in self._memories.values():
            for output in memory.read:
                if isinstance(output.source, Node):
                    stop = output.tensor.start + output.tensor.storage
                    stops[output.source] = max(stop, stops.get(output.source, 0))
        return {root: range(stop) for root, stop in stops.items()}

    @property
    def wanted(self) -> list[fx.Node]:
        """The nodes on the host whose values are needed."""
        return [output.node for output in self._of_host.values()]

    def make(
        self,
        known: Mapping[fx.Node, Any],
        found: Mapping[Node, torch.Tensor],
        parts: Mapping[fx.Node, torch.Tensor],
    ) -> list[Any]:
        """Return the results of a run, given the values of host nodes ``known`` and of roots ``found``.

        ``parts`` are the tokens of each input, whose memory a result must not reuse.
        """
        taken = {part.untyped_storage().data_ptr() for part in parts.values()}
        sources: dict[Source, torch.Tensor] = {}
        sources.update(found.items())
        sources.update(parts.items())
        made: dict[int, Any] = dict(self._constants)
        made.update((place, output.make(known)) for place, output in self._of_host.items())
        for memory in self._memories.values():
            made.update(memory.make(sources, taken))
        return [made[place] for place in range(self._count)]
