"""Evaluate a program on N positions: s-ops are arrays, and selectors are structures.

Each node is evaluated after its inputs: once, or once for each head if it depends on a family. Each
evaluation needs O(N log N) time, unless all pairs of positions are compared. Nodes that do not depend
on a family are evaluated outside of the loop over the family, and arrays are freed after their last
use. No function is recursive: the body of a ``sum_over`` is another block of nodes on a stack.

On NumPy arrays, the values are the same as in dense execution, up to rounding. Otherwise,
:class:`Unstructured` is raised with the reason, such as a selector without structure, numbers that
arrays cannot represent, or an undefined operation. For an undefined operation, dense execution then
raises an error with the position. On tensors, operations follow IEEE 754.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from locum.execution.arrays import Array, Arrays
from locum.execution.dense import MAX_HEADS, expansion
from locum.execution.domains.floats import FloatDomain
from locum.execution.fast.structured import logic, structured_attention
from locum.execution.fast.structured.series import (
    Series,
    Unstructured,
    arrays_for,
    as_array,
    constant,
    series,
)
from locum.execution.fast.structured.structured_attention import (
    CombinedSelection,
    PairComparison,
    Selection,
)
from locum.execution.fast.structured.structured_selectors import (
    Structure,
    conjunction,
    disjunction,
    negation,
)
from locum.graph import OPERATIONS, Node, abbreviate, members, postorder
from locum.graph.operations import PREDICATE_OF
from locum.graph.traversal import depends_on, last_uses
from locum.graph.wellformed import require_program

_SCALARS = FloatDomain.meanings
_WRONG = (ArithmeticError, TypeError, ValueError)

#: Operations that choose among values of several types, or look values up. All other elementwise
#: operations are comparisons, logical operations such as ``and``, arithmetic or functions.
_CHOICES: Mapping[str, Callable[..., Series]] = {
    "if_else": logic.if_else,
    "minimum": logic.minimum,
    "maximum": logic.maximum,
    "member": logic.member,
    "lookup": logic.lookup,
}


def evaluate(
    root: Node,
    tokens: Array | Series,
    *,
    known: Mapping[Node, Array | Series] | None = None,
    counts: MutableMapping[str, int] | None = None,
    allow_masks: bool = False,
    max_heads: int = MAX_HEADS,
) -> Any:
    """Return the value of a program on one sequence: an array, or a :data:`Selection` for a selector.

    ``tokens`` is a NumPy array, a torch tensor, or the result of :func:`tokens_array` for a list.
    ``known`` maps nodes without free families to their values on this input. ``counts`` receives the
    numbers of gathers, masks, scans, sorts, segment reductions and trees. With ``allow_masks``, a
    selector without structure is evaluated for all pairs of at most 65,536 positions, block by block,
    instead of raising :class:`Unstructured`.

    >>> from locum.graph import build
    >>> tokens = build("tokens", cast="asis")
    >>> evaluate(build("selector_width", build("select", tokens, tokens, predicate="==")),
    ...          np.array(["b", "a", "b"]))
    array([2, 1, 2])
    """
    return evaluate_all((root,), tokens, known, counts, allow_masks, max_heads)[0]


def evaluate_all(
    roots: Sequence[Node],
    tokens: Array | Series,
    known: Mapping[Node, Array | Series] | None = None,
    counts: MutableMapping[str, int] | None = None,
    allow_masks: bool = False,
    max_heads: int = MAX_HEADS,
) -> list[Any]:
    """Return the values of several programs on one sequence; shared parts are computed once."""
    for root in roots:
        require_program(root)
    arrays = arrays_for(tokens.data if isinstance(tokens, Series) else tokens, counts)
    run = _Run(arrays, _as_series(arrays, tokens), allow_masks)
    run.values.update((node, _as_series(arrays, value)) for node, value in (known or {}).items())
    heads = expansion(*roots, known=run.values)
    if heads > max_heads:
        raise Unstructured(f"its families have too many heads: {heads:,} (the limit is {max_heads:,})")
    with np.errstate(all="ignore"):
        run.evaluate(roots)
        return [run.result(root) for root in roots]


def _as_series(arrays: Arrays, value: Array | Series) -> Series:
    """Convert an array to a series, or copy a series without its cached facts."""
    return replace(value, cache={}) if isinstance(value, Series) else series(arrays, value)


#: Nodes in the order of evaluation, each with the nodes that are not needed after it.
_Schedule: TypeAlias = "list[tuple[Node, list[Node]]]"


def _needed(node: Node) -> Iterable[Node]:
    """Return the nodes needed to evaluate a node.

    For a sum, these are all nodes that its body uses from outside of the sum.
    """
    if node.op != "sum_over":
        return node.inputs
    body, outside = node.inputs[0], node.free
    inside = postorder(body, into=lambda local: not local.free <= outside)
    used = [i for local in inside for i in local.inputs if i.free <= outside]
    return used or [body]


class _Run:
    """One evaluation of programs on one sequence, with intermediate values."""

    def __init__(self, arrays: Arrays, tokens: Series, allow_masks: bool) -> None:
        self.arrays = arrays
        self.tokens = tokens
        self.allow_masks = allow_masks
        self.values: dict[Node, Series | Selection] = {}

    def result(self, root: Node) -> Any:
        value = self.values[root]
        if not isinstance(value, Series):
            return value
        array = as_array(self.arrays, value)
        if value.constant:
            return self.arrays.copied(array)  # results must not share memory
        return self.arrays.cast(array, self.arrays.float) if value.kind == "float" else array

    # The order of evaluation ----------------------------------------------------------------------

    def evaluate(self, roots: Sequence[Node]) -> None:
        unknown = postorder(*roots, into=lambda node: node not in self.values, deepest_first=True)
        closed = [node for node in unknown if not node.free]
        blocks = [self.block(last_uses(closed, _needed, roots))]
        while blocks:
            inner = next(blocks[-1], None)
            if inner is None:
                blocks.pop()
            else:
                blocks.append(inner)

    def block(self, schedule: _Schedule) -> Iterator[Any]:
        """Evaluate nodes in order.

        Yield the block of each body of a ``sum_over``, which must be evaluated before the generator
        continues.
        """
        for node, done_with in schedule:
            try:
                if node.op == "sum_over":
                    yield from self.sum_over(node)
                else:
                    self.values[node] = self.apply(node)
            except Unstructured as reason:
                raise Unstructured(f"{reason}, in {abbreviate(node)}") from None
            for other in done_with:
                del self.values[other]

    def sum_over(self, node: Node) -> Iterator[Any]:
        """Evaluate a sum over families as 0 + body at the first member + body at the second + …"""
        body, *families = node.inputs
        bound = node.free.union(families)
        inside = [
            local
            for local in postorder(body, into=depends_on(families), deepest_first=True)
            if local.free <= bound and local not in families
        ]
        schedule = last_uses(inside, _needed, [body])
        total = constant(0)
        for member in members(families):
            self.values.update((family, constant(value)) for family, value in member.items())
            yield self.block(schedule)
            part = self.values[body]
            assert isinstance(part, Series)
            total = self.elementwise("add", [total, part], {})
        for local in {body, *families}:
            if not local.free.isdisjoint(families):
                del self.values[local]
        self.values[node] = total

    # One node -------------------------------------------------------------------------------------

    def apply(self, node: Node) -> Series | Selection:
        arrays = self.arrays
        inputs: list[Any] = [self.values[i] for i in node.inputs]
        attributes: Mapping[str, Any] = node.attributes
        match node.op:
            case "tokens":
                return logic.cast(arrays, self.tokens, attributes["cast"])
            case "indices":
                last = arrays.size - 1
                return Series(arrays.places, "int", (0, last), is_indices=True)
            case "length":
                return constant(arrays.size)
            case "constant":
                if isinstance(attributes["value"], str) and "\0" in attributes["value"]:
                    raise Unstructured("strings that contain the character NUL")
                return constant(attributes["value"])
            case "select":
                return self.select(inputs[0], inputs[1], attributes["predicate"])
            case "selector_and" | "selector_or" | "selector_not":
                return self.combine(node.op, inputs)
            case "best":
                return structured_attention.best(arrays, self.ready(inputs[0]), inputs[1])
            case "selector_width":
                ranked = inputs[0].ranking if isinstance(inputs[0], Structure) else None
                if ranked is not None:
                    return structured_attention.ranks(arrays, ranked)
                return structured_attention.width(arrays, self.ready(inputs[0], counted=True))
            case "aggregate":
                selection = self.ready(inputs[0], counted=inputs[1].kind != "float")
                return structured_attention.aggregate(
                    arrays, selection, inputs[1], attributes["default"]
                )
        return self.elementwise(node.op, inputs, attributes)

    def elementwise(self, op: str, inputs: list[Series], attributes: Mapping[str, Any]) -> Series:
        if all(value.constant for value in inputs):
            try:
                return constant(_SCALARS[op](*(value.data for value in inputs), **attributes))
            except _WRONG as error:
                raise Unstructured(str(error)) from None
        if op in PREDICATE_OF:
            return logic.compare(self.arrays, inputs[0], inputs[1], PREDICATE_OF[op])
        if op in _CHOICES:
            return _CHOICES[op](self.arrays, *inputs, **attributes)
        if OPERATIONS[op].group == "logic":
            return logic.truth(self.arrays, op, *inputs)
        return logic.compute(self.arrays, op, *inputs)

    def select(self, keys: Series, queries: Series, predicate: str) -> Selection:
        try:
            return structured_attention.select(self.arrays, keys, queries, predicate)
        except Unstructured:
            if not self.allow_masks or keys.is_number != queries.is_number:
                raise
            compared = PairComparison(self.arrays, keys, queries, predicate)
            return CombinedSelection(self.arrays, "same", (compared,))

    def combine(self, op: str, operands: list[Selection]) -> Selection:
        try:
            if all(isinstance(operand, Structure) for operand in operands):
                return _ALGEBRA[op](*operands)
        except Unstructured:
            if not self.allow_masks:
                raise
        return CombinedSelection(self.arrays, op, tuple(operands))

    def ready(self, selection: Selection, counted: bool = False) -> Selection:
        """Return a selection for which counts and sums can be computed.

        All pairs of positions are compared only if masks are allowed. With ``counted``, only counts and
        sums of integers must be possible.
        """
        if isinstance(selection, Structure) and not selection.is_solved:
            try:
                selection.counted if counted else selection.solved  # noqa: B018  # solved once, kept
            except Unstructured:
                if not self.allow_masks:
                    raise
                return CombinedSelection(self.arrays, "same", (selection,))
        return selection


_ALGEBRA: dict[str, Callable[..., Structure]] = {
    "selector_and": conjunction,
    "selector_or": disjunction,
    "selector_not": negation,
}
