"""Translate a captured graph into a sequence of small RASP programs, one for each operation.

The tokens of a small program are the storages of its operands. Their composition is the RASP program of
the graph. The fast executor plans each small program once, however many layers have it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from torch import fx

from locum.constructions.tensor import Tensor
from locum.execution.fast.composition import Call
from locum.graph import Node
from locum.language.handles import SOp
from locum.language.python import constant, tokens
from locum.torch.node_origin import describe_origin
from locum.torch.table import Row
from locum.torch.translation import Construction, Translation


class Composition(Translation):
    """The small programs of a graph. The s-op of a tensor is the name of a storage."""

    def __init__(self, *arguments: Any) -> None:
        #: The small programs, in the order of the graph.
        self.calls: list[Call] = []
        #: The number of entries of each storage, by its name.
        self._sizes: dict[Node, int] = {}
        self._feeds_by_name: dict[Node, fx.Node] = {}
        super().__init__(*arguments)

    @property
    def inputs(self) -> list[Node]:
        """The names of the storages that are fed."""
        return list(self._feeds_by_name)

    def find_feed(self, tensor: Tensor) -> tuple[fx.Node, int] | None:
        """Return the node whose tokens a view shows; None for a tensor that is computed."""
        node = self._feeds_by_name.get(tensor.sop.node)
        return None if node is None else (node, 0)

    def _enter(self, tensor: Tensor) -> Tensor:
        """Return a tensor that is fed, as a view of a storage of its own."""
        name = self._name(tensor.storage)
        self._feeds_by_name[name.node] = list(self.feeds)[-1]
        return tensor.replace(sop=name)

    def _name(self, size: int) -> SOp:
        name = constant(f"storage {len(self._sizes)}")
        self._sizes[name.node] = size
        return name

    def _compute(self, node: fx.Node, row: Row, out: Any, arguments: Any, options: Any) -> Construction:
        """Return what a node computes, as views of named storages."""
        if row.kind == "views":
            made = self._call_construction(node, row, out, arguments, options)
            if all(tensor.sop.node in self._sizes for tensor in _tensors(made.result)):
                return made
        names = list(dict.fromkeys(tensor.sop.node for tensor in _tensors((arguments, options))))
        ends = list(accumulate((self._sizes[name] for name in names), initial=0))
        starts = dict(zip(names, ends, strict=False))

        def show(tensor: Tensor) -> Tensor:
            start = starts[tensor.sop.node]
            return tensor.replace(sop=tokens, offset=tensor.offset + start, start=tensor.start + start)

        made = self._call_construction(node, row, out, _map(arguments, show), _map(options, show))
        results = _Results(self._name, starts, self._sizes)
        wanted = made.result
        if self._collector is None and isinstance(wanted, tuple):
            used = {user.args[1] for user in node.users if user.target is operator.getitem}
            wanted = tuple(part if n in used else None for n, part in enumerate(wanted))
        kept = Construction(
            _map(wanted, results.keep),
            [(name, results.keep(tensor)) for name, tensor in made.observed],
            [(results.keep_condition(sop), problem) for sop, problem in made.conditions],
            made.storages,
        )
        if results.roots:
            inner = {sop: size for sop, size in made.storages.sizes.items() if sop is not tokens.node}
            self.length = max(self.length, *inner.values()) if inner else self.length
            self.calls.append(
                Call(
                    {root: range(stop) for root, stop in results.roots.items()},
                    list(results.names.values()),
                    names,
                    max(made.storages.greatest, ends[-1], 1),
                    inner,
                    f"{node.name}{describe_origin(node)}",
                )
            )
        return kept


class _Results:
    """The results of a small program, which become storages."""

    def __init__(
        self, name: Callable[[int], SOp], starts: dict[Node, int], sizes: dict[Node, int]
    ) -> None:
        self._name, self._starts, self._sizes = name, starts, sizes
        #: The number of positions that are read of each root.
        self.roots: dict[Node, int] = {}
        self.names: dict[Node, Node] = {}
        self._sops: dict[Node, SOp] = {}

    def keep(self, tensor: Tensor) -> Tensor:
        """Return a result as a view of a named storage; some are views of operands."""
        if not tensor.size:
            return tensor.replace(sop=self._name(0))
        if tensor.sop.node is not tokens.node:
            return tensor.replace(sop=self._keep_root(tensor.sop, tensor.start + tensor.storage))
        for name, start in self._starts.items():
            if start <= tensor.offset < start + self._sizes[name]:
                break
        else:
            raise AssertionError("a view of tokens that no operand has")
        return tensor.replace(
            sop=constant(name.value), offset=tensor.offset - start, start=tensor.start - start
        )

    def keep_condition(self, sop: SOp) -> SOp:
        """Return the name of an s-op that is read at position 0."""
        return self._keep_root(sop, 1)

    def _keep_root(self, sop: SOp, stop: int) -> SOp:
        node = sop.node
        if node not in self._sops:
            self._sops[node] = self._name(stop)
            self.names[node], self.roots[node] = self._sops[node].node, stop
        if stop > self.roots[node]:
            self.roots[node] = self._sizes[self.names[node]] = stop
        return self._sops[node]


def _tensors(value: Any) -> list[Tensor]:
    """Return the tensors in nested arguments."""
    found: list[Tensor] = []
    _map(value, lambda tensor: found.append(tensor) or tensor)
    return found


def _map(value: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """Apply a function to the tensors in nested arguments."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, (tuple, list)):
        return type(value)(_map(part, function) for part in value)
    if isinstance(value, dict):
        return {key: _map(part, function) for key, part in value.items()}
    return value
