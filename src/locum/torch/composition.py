"""Translate a captured graph into a sequence of small RASP programs, at most one for each operation.

An operation whose results are views of its operands needs no program. The tokens of a small program are
the storages of its operands. The composition of all small programs is the RASP program of the graph.
Equal layers of a model share their small programs, so that the fast executor can reuse their plans.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable
from itertools import accumulate
from typing import Any

from torch import fx

from locum.constructions.tensor import Tensor
from locum.execution.fast.interpolation import Call
from locum.graph import Node
from locum.rasp.handles import SOp
from locum.rasp.python import constant, tokens
from locum.torch.step_recorder import describe_origin
from locum.torch.table import Row
from locum.torch.translation import Construction, Translation


class Composition(Translation):
    """A translation of a graph into small programs; the s-op of a tensor is a constant that names its
    storage.
    """

    def __init__(self, *arguments: Any) -> None:
        #: The small programs, in the order of the graph.
        self.calls: list[Call] = []
        #: The number of entries of each storage, by its name.
        self._sizes: dict[Node, int] = {}
        self._feeds_by_name: dict[Node, fx.Node] = {}
        #: Results of constructions, which equal layers with operands of the same layout share.
        self._made: dict[Hashable, Construction] = {}
        super().__init__(*arguments)

    @property
    def inputs(self) -> list[Node]:
        """The constant nodes that name the storages of the inputs."""
        return list(self._feeds_by_name)

    def find_feed(self, tensor: Tensor) -> tuple[fx.Node, int] | None:
        """Return the graph node whose tokens a tensor views, and position 0; None for a computed
        tensor.
        """
        node = self._feeds_by_name.get(tensor.sop.node)
        return None if node is None else (node, 0)

    def _enter(self, tensor: Tensor) -> Tensor:
        """Return an input tensor as a view of a new storage."""
        name = self._name(tensor.storage)
        self._feeds_by_name[name.node] = list(self.feeds)[-1]
        return tensor.replace(sop=name)

    def _name(self, size: int) -> SOp:
        name = constant(f"storage {len(self._sizes)}")
        self._sizes[name.node] = size
        return name

    def _compute(self, node: fx.Node, row: Row, out: Any, arguments: Any, options: Any) -> Construction:
        """Return the results of a graph node as views of named storages.

        If the node computes new storages, add its small program to ``calls``.
        """
        names = {tensor.sop.node: tensor.sop for tensor in _tensors((arguments, options))}
        ends = list(accumulate((self._sizes[name] for name in names), initial=0))
        starts = dict(zip(names, ends, strict=False))
        shown = _map(
            (arguments, options), lambda tensor: _move(tensor, tokens, starts[tensor.sop.node])
        )
        made = self._construct_once(node, row, out, *shown)
        wanted = made.result
        if self._collector is None and isinstance(wanted, tuple):
            used = {user.args[1] for user in node.users if user.target is operator.getitem}
            wanted = tuple(part if n in used else None for n, part in enumerate(wanted))
        results = _Results(self._name, names, starts, self._sizes)
        kept = Construction(
            _map(wanted, results.keep),
            [(name, results.keep(tensor)) for name, tensor in made.observed],
            [(results.keep_root(sop, 1), problem) for sop, problem in made.conditions],
            made.storages,
        )
        if results.roots:
            inner = {sop: size for sop, size in made.storages.sizes.items() if sop is not tokens.node}
            self.length = max(self.length, *inner.values()) if inner else self.length
            call = Call(
                {root: range(stop) for root, stop in results.roots.items()},
                [name.node for name in results.names.values()],
                [name for name in names if self._sizes[name]],
                max(made.storages.greatest, ends[-1], 1),
                inner,
                f"{node.name}{describe_origin(node)}",
            )
            self.calls.append(call)
        return kept

    def _construct_once(
        self, node: fx.Node, row: Row, out: Any, arguments: Any, options: Any
    ) -> Construction:
        """Call the construction of an operation, or return the result of an earlier call with equal
        arguments.
        """
        key = (row.construct, _key(out), _key(arguments), _key(options))
        if key not in self._made:
            self._made[key] = self._call_construction(node, row, out, arguments, options)
        return self._made[key]


class _Results:
    """The results of a small program, which become named storages."""

    def __init__(
        self,
        name: Callable[[int], SOp],
        operands: dict[Node, SOp],
        starts: dict[Node, int],
        sizes: dict[Node, int],
    ) -> None:
        self._name, self._operands, self._starts, self._sizes = name, operands, starts, sizes
        #: The number of positions of each root that are needed.
        self.roots: dict[Node, int] = {}
        self.names: dict[Node, SOp] = {}

    def keep(self, tensor: Tensor) -> Tensor:
        """Return a result as a view of a named storage, which may be the storage of an operand."""
        if not tensor.size:
            return _move(tensor, self._name(0), 0)
        if tensor.sop.node is not tokens.node:
            return _move(tensor, self.keep_root(tensor.sop, tensor.start + tensor.storage), 0)
        for name, start in self._starts.items():
            if start <= tensor.offset < start + self._sizes[name]:
                return _move(tensor, self._operands[name], -start)
        raise AssertionError("a view of tokens that no operand has")

    def keep_root(self, sop: SOp, stop: int) -> SOp:
        """Return the name of the storage that contains a computed s-op, and mark its positions before
        ``stop`` as needed.
        """
        if sop.node not in self.names:
            self.names[sop.node] = self._name(stop)
            self.roots[sop.node] = stop
        name = self.names[sop.node]
        if stop > self.roots[sop.node]:
            self.roots[sop.node] = self._sizes[name.node] = stop
        return name


def _move(tensor: Tensor, sop: SOp, distance: int) -> Tensor:
    """Return a tensor as a view of another s-op, with its positions shifted by ``distance``."""
    return tensor.replace(sop=sop, offset=tensor.offset + distance, start=tensor.start + distance)


def _tensors(value: Any) -> list[Tensor]:
    """Return the tensors in nested lists, tuples and dictionaries of arguments."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [tensor for part in value for tensor in _tensors(part)]


def _map(value: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """Apply a function to the tensors in nested lists, tuples and dictionaries of arguments."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, (tuple, list)):
        return type(value)(_map(part, function) for part in value)
    if isinstance(value, dict):
        return {key: _map(part, function) for key, part in value.items()}
    return value


def _key(value: Any) -> Hashable:
    """Return a dictionary key for nested arguments; numbers of different types have different keys."""
    if isinstance(value, Tensor):
        return tuple(part for name, part in vars(value).items() if name != "sop")  # the tokens
    if isinstance(value, (tuple, list)):
        return tuple(map(_key, value))
    if isinstance(value, dict):
        return tuple((name, _key(part)) for name, part in value.items())
    return type(value), value if not isinstance(value, float) else value.hex()
