"""Create symbolic feed-forwards: each layer is a straight-line program on the forms that it reads.

The inputs are the units of a layer and the slots that the layer erases. The result is the weights of
the feed-forward, whose functions are data and not code (``transformer/functions.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from locum.errors import CompileError
from locum.graph import Atom, Node
from locum.graph.atoms import short
from locum.networks.compiler.network.forms import Form
from locum.networks.compiler.network.network import Unit
from locum.networks.compiler.network.network_lowering import Lowered
from locum.networks.compiler.network.roles import Role, in_order
from locum.networks.compiler.program.sources import table_of
from locum.networks.compiler.weights.stream import Stream
from locum.networks.transformer.functions import INSTRUCTIONS, Functions, Instruction
from locum.networks.transformer.weights import FeedForwardWeights


def exact_feed_forward(
    lowered: Lowered, stream: Stream, units: Sequence[Unit], erased: Sequence[int]
) -> FeedForwardWeights:
    """Return the symbolic feed-forward that computes these units and erases these slots."""
    layer = _Layer(lowered, units)
    functions = layer.functions(len(erased))
    w_in = np.zeros((stream.width, functions.arguments))
    b_in = np.zeros(functions.arguments)
    for i, form in enumerate(layer.forms):
        w_in[:, i], b_in[i] = stream.read(form)
    for i, slot in enumerate(erased, start=len(layer.forms)):
        w_in[slot, i] = 1.0
    w_out = np.zeros((len(functions.outputs), stream.width))
    for i, unit in enumerate(units):
        slot, scale = stream.slots.of(unit.into)
        w_out[i, slot] = scale
    for i, slot in enumerate(erased, start=len(units)):
        w_out[i, slot] = -1.0
    return FeedForwardWeights("exact", w_in, b_in, w_out, np.zeros(stream.width), functions=functions)


class _Layer:
    """The functions of one layer: forms are arguments, and each unit is one output."""

    def __init__(self, lowered: Lowered, units: Sequence[Unit]) -> None:
        self.lowered = lowered
        self.known = lowered.roles.known
        self.units = units
        #: The different forms that are read.
        self.forms: list[Form] = []
        self._places: dict[object, int] = {}
        self._instructions: list[Instruction] = []
        self._of: dict[Node, int] = {}
        for unit in units:
            for form in unit.reads.values():
                self._argument(form)

    def _argument(self, form: Form) -> int:
        if form.key not in self._places:
            self._places[form.key] = len(self.forms)
            self.forms.append(form)
        return self._places[form.key]

    def functions(self, erasures: int) -> Functions:
        """Return the functions of the layer; the slots to erase are arguments after the forms."""
        arguments = len(self.forms) + erasures
        if arguments == 0:  # constants need an argument that determines their length
            arguments = 1
        self._arguments = arguments
        outputs = [self._value(unit.node, unit.reads) for unit in self.units]
        outputs += range(len(self.forms), len(self.forms) + erasures)
        return Functions(arguments, tuple(self._instructions), tuple(outputs))

    def _add(self, op: str, inputs: tuple[int, ...], label: str, **attributes: Any) -> int:
        self._instructions.append(Instruction(op, inputs, attributes, label))
        return self._arguments + len(self._instructions) - 1

    def _value(self, root: Node, reads: Mapping[Node, Form]) -> int:
        """Add the instructions that compute an s-op, and return the index of its result.

        Arguments have the first indices, followed by the results of instructions.
        """
        roles = self.lowered.roles

        def below(node: Node) -> list[Node]:
            if node in self._of or roles.of(node) is Role.COUNT or (node in reads and node is not root):
                return []
            return roles.reads(node)

        for node in in_order(root, below):
            if node in self._of:
                continue
            self._of[node] = self._instruction(node, reads, inner=node is root)
        return self._of[root]

    def _instruction(self, node: Node, reads: Mapping[Node, Form], *, inner: bool) -> int:
        label, role = self.lowered.label(node), self.lowered.roles.of(node)
        if role is Role.COUNT and self.lowered.schedule.ready[node] == self.units[0].time:
            return self._count(node, self._argument(reads[node]), label)
        if node in reads and not inner:
            return self._argument(reads[node])
        constant = self.known.values.constant(node)
        if constant is not None:
            return self._add("constant", (), label, value=self.known.codes.number(constant, label))
        if role is Role.TABLE:
            return self._table(node, label)
        inputs = tuple(self._of[i] for i in node.inputs)
        if node.op == "lookup":
            return self._lookup(node, inputs, label)
        if node.op not in INSTRUCTIONS:
            raise CompileError(f"symbolic feed-forwards do not support {node.op}", label)
        if node.op == "member":
            met = filter(self._may_be_met, node.members)
            return self._add("member", inputs, label, values=self.known.codes.numbers(met, label))
        return self._add(node.op, inputs, label)

    def _count(self, node: Node, share: int, label: str) -> int:
        """Add the instructions that compute a count from the attention weight of one key.

        The count is round(1/share), minus 1 if the sink is counted.
        """
        one = self._add("constant", (), "1", value=1.0)
        keys = self._add("round", (self._add("divide", (one, share), f"1 / share of {label}"),), label)
        return (
            self._add("subtract", (keys, one), label)
            if node in self.lowered.counted_with_sink
            else keys
        )

    def _table(self, node: Node, label: str) -> int:
        codes, table = self.known.codes, self.lowered.roles.table(node)
        keys, order = [], []
        for by, domain in zip(table.by, table.domains, strict=True):
            numbers = codes.numbers(domain, by)
            place = sorted(range(len(numbers)), key=numbers.__getitem__)
            keys.append([numbers[i] for i in place])
            order.append(place)
        reordered = _reordered(table.values, order)
        inputs = tuple(self._of[by] for by in table.by)
        entries = [None if v is None else codes.number(v, label) for v in reordered]
        keys, entries = self._told_apart(keys, entries, label)
        return self._add("table", inputs, label, keys=keys, values=entries)

    def _may_be_met(self, atom: Atom) -> bool:
        """Return whether the residual stream may contain the number of an atom.

        For a lookup or a ``member``, the stream contains no strings, since strings have separate
        tables, and no integers that the type cannot represent.
        """
        if not isinstance(atom, int):
            return not isinstance(atom, str)
        # Integers beyond the range of floating-point numbers never occur.
        largest = float(np.finfo(self.known.target.dtype).max)
        return abs(atom) <= largest and int(np.dtype(self.known.target.dtype).type(atom)) == atom

    def _told_apart(
        self, keys: list[list[float]], values: list[float | None], label: str
    ) -> tuple[list[list[float]], list[float | None]]:
        """Remove keys that are equal in the type of the network, such as one of 1 and True.

        Raise CompileError if their values differ, since the residual stream cannot distinguish the
        keys.
        """
        dtype = self.known.target.dtype
        grid = np.empty(len(values), dtype=object)
        grid[:] = values
        grid = grid.reshape([len(among) for among in keys])
        for axis, among in enumerate(keys):
            held = np.array(among).astype(dtype)
            again = np.flatnonzero(held[1:] == held[:-1]) + 1
            if again.size == 0:
                continue
            rows, before = (grid.take(places, axis).ravel().tolist() for places in (again, again - 1))
            if rows != before:
                raise CompileError(
                    f"expected values that differ in {dtype}, got several that are rounded to the same "
                    f"number, such as {short(among[int(again[0])])}",
                    label,
                )
            grid = np.delete(grid, again, axis)
            keys = [*keys[:axis], np.delete(among, again).tolist(), *keys[axis + 1 :]]
        return keys, grid.ravel().tolist()

    def _lookup(self, node: Node, inputs: tuple[int, ...], label: str) -> int:
        pairs = sorted(
            (self.known.codes.number(key, label), self.known.codes.number(value, label))
            for key, value in table_of(node).items()
            if self._may_be_met(key)
        )
        if not pairs:
            raise CompileError(
                "expected a table with an entry for some value that is looked up, got none", label
            )
        (keys,), values = self._told_apart([[k for k, _ in pairs]], [v for _, v in pairs], label)
        table = self._add("table", inputs, label, keys=[keys], values=values)
        looked_up = self.known.values.finite(node.inputs[0])
        if looked_up is not None and set(looked_up) <= table_of(node).keys():
            return table
        # A table returns the nearest entry. The result for a missing key must be undefined, so it is
        # divided by 0.
        known = self._add("member", inputs, f"{label} is in the table", values=keys)
        return self._add("divide", (table, known), label)


def _reordered(values: tuple[Any, ...], order: list[list[int]]) -> list[Any]:
    """Return values in row-major order after each axis is reordered."""
    grid = np.empty(len(values), dtype=object)
    grid[:] = values
    shaped = grid.reshape([len(place) for place in order])
    return list(shaped[np.ix_(*order)].ravel())
