"""Choose which s-ops of a program become arrays, their ranges of positions, and the steps.

An s-op that becomes an array is called a *buffer*. Buffers are lowered in order from the result to the
tokens. When a buffer is lowered, all loads from it are therefore known. These loads, and the requested
positions of a result, determine the *hull* of the buffer: the range of positions that are computed.

Lowering may find that a node must be a separate buffer, or that it cannot be lowered. The structured
tier runs a node that cannot be lowered; such a node is called *opaque*. Then all buffers are lowered
again with this information, until nothing changes. If a node that depends on tokens cannot be lowered,
the program has no IEEE plan.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from locum.execution.fast.steps import tiling
from locum.execution.fast.steps.emission import Emission, LoadSource
from locum.execution.fast.steps.fusion import fits_when_fused
from locum.execution.fast.steps.step import Shape, Step, Steps, row_major
from locum.execution.fast.symbolic.affine import (
    MOST_PIECES,
    Affine,
    Box,
    IndexScope,
    NotNumeric,
    Opaque,
    Refine,
    Refinements,
    Stuck,
    bounds,
)
from locum.execution.fast.symbolic.indexing import decided
from locum.execution.fast.symbolic.reuse import (
    Buffers,
    LoweredBuffer,
    Piece,
    find_or_lower,
    is_input,
    ordered,
)
from locum.execution.fast.symbolic.solving import GuardedCases, solve_all
from locum.execution.fast.symbolic.symbolic_lowering import Lowering
from locum.execution.fast.symbolic.terms import Fetch, Load, everywhere, fetches, loads, value_bounds
from locum.execution.types import atoms, possible_types
from locum.graph import OPERATIONS, Node, Sort, abbreviate, postorder, size_of, sort_of
from locum.graph.atoms import LARGEST_EXACT
from locum.graph.traversal import count_uses

_PASSES = 2_000
#: Maximum number of nodes in the inputs of an elementwise s-op that may be computed repeatedly. The
#: inputs are expanded to trees of elementwise s-ops. Larger s-ops on tokens are computed once.
_LONG = 40


@dataclass
class Hull:
    """The range of positions at which a buffer is needed."""

    start: int
    stop: int

    def cover(self, start: int, stop: int) -> None:
        """Extend the range to include the positions in ``range(start, stop)``."""
        self.start, self.stop = min(self.start, start), max(self.stop, stop)

    @property
    def size(self) -> int:
        """Number of positions in the range."""
        return self.stop - self.start


class Segment(NamedTuple):
    """The shape of an array of tokens, and its dtype if the plan is for IEEE arithmetic."""

    shape: Shape
    dtype: str = ""


@dataclass(frozen=True)
class Blueprint:
    """The steps of a plan with their inputs and results, before a backend compiles them."""

    roots: tuple[Node, ...]
    length: int
    results: tuple[Step, ...]
    inputs: tuple[Step, ...]
    #: The nodes that steps compute, for explanations.
    computes: dict[Step, Node]
    #: Nodes that the structured tier runs, with the reasons.
    opaque: dict[Node, str]


def blueprint(
    roots: Mapping[Node, range],
    length: int,
    segments: Sequence[Segment],
    steps: Steps,
    run_static: Callable[[Node, int], Any],
    ieee: bool = False,
    storages: Mapping[Node, int] = MappingProxyType({}),
) -> Blueprint:
    """Return the steps that compute each root at its positions of a sequence of ``length`` tokens.

    The tokens are in arrays with the shapes of ``segments``, in order; missing tokens are blanks.
    ``steps`` creates the steps. ``run_static`` computes s-ops that depend on no token and cannot be
    lowered. With ``ieee``, arithmetic on data follows IEEE 754, with infinities and NaN. It is computed
    in the order of the program, except within sums over families and means.

    ``storages`` maps s-ops that are storages of tensors to their sizes. If another array reads such an
    s-op, all its positions are computed. The reason is that a part of a tensor often consists of more
    pieces than the whole tensor.

    An array may exceed the size limit if a fused step avoids the array. An example is the array of the
    attention scores of many rows.
    """
    plan = partial(_blueprint, roots, length, segments, steps, run_static, ieee, storages)
    made, problem = None, None
    try:
        made = plan()
    except (Stuck, NotNumeric) as reason:
        problem = reason
    if steps.has_exceeded and not ieee:
        steps.is_unbounded = True
        with contextlib.suppress(Stuck, NotNumeric):
            whole = plan()
            if fits_when_fused(whole.results, steps):
                return whole
    if made is None:
        assert problem is not None
        raise problem
    return made


def _blueprint(
    roots: Mapping[Node, range],
    length: int,
    segments: Sequence[Segment],
    steps: Steps,
    run_static: Callable[[Node, int], Any],
    ieee: bool,
    storages: Mapping[Node, int],
) -> Blueprint:
    """Return the steps of a plan with arrays that are at most as large as ``steps`` allows."""
    nodes = list(postorder(*roots))
    numbers = (atom for node in nodes for atom in atoms(node) if isinstance(atom, float))
    if not ieee and not all(map(math.isfinite, numbers)):
        raise Stuck("the program contains infinities or NaN")  # lowering omits factors multiplied by 0
    first, *others = roots
    possible = possible_types(first, frozenset([float]), *others)
    buffers = Buffers(
        length,
        data=_above(nodes, "tokens"),
        positional=_above(nodes, "indices"),
        attentive=_above(nodes, "aggregate", "selector_width"),
        boolean=frozenset(n for n, kinds in possible.items() if kinds == {bool}),
        ieee=ieee,
    )
    buffers.designated.update((*roots, *_heavy(roots, buffers.data)))
    buffers.designated.update(n for n in nodes if n in storages and _is_computed(n, buffers.data))
    kept: dict[Node, LoweredBuffer] = {}
    for _ in range(_PASSES):
        known = (len(buffers.designated), len(buffers.opaque))
        try:
            lowered, hulls, loaded_by = _lower_all(roots, buffers, kept, storages)
            if (len(buffers.designated), len(buffers.opaque)) == known:
                emitter = _Emitter(buffers, hulls, segments, steps, run_static)
                return emitter.emit(roots, lowered, loaded_by)
        except Opaque as request:
            if request.node in buffers.opaque:
                raise Stuck(f"{request.reason} (twice)") from None
            if str in possible[request.node]:
                raise NotNumeric from None
            if ieee and request.node in buffers.data:  # the structured tier has other arithmetic rules
                raise Stuck(f"{abbreviate(request.node)}: {request.reason}") from None
            buffers.opaque[request.node] = request.reason
            buffers.designated.discard(request.node)
    raise Stuck("the computed ranges of the buffers do not converge")


def _above(nodes: list[Node], *ops: str) -> frozenset[Node]:
    """Return the nodes whose operation is one of ``ops``, and all nodes that depend on them."""
    above: set[Node] = set()
    for node in nodes:
        if node.op in ops or any(i in above for i in node.inputs):
            above.add(node)
    return frozenset(above)


def _heavy(roots: Iterable[Node], data: frozenset[Node]) -> list[Node]:
    """List elementwise s-ops that depend on tokens, are used repeatedly, and are long when expanded.

    Terms are trees: y · tanh(y), nested twenty times, would have a million leaves.
    """
    uses = count_uses(*roots)
    sizes: dict[Node, int] = {}
    heavy = []
    for node in uses:
        inner = sum(sizes[i] for i in node.inputs) if OPERATIONS[node.op].elementwise else 0
        sizes[node] = 1 + inner
        if inner > _LONG and uses[node] > 1 and node in data:
            heavy.append(node)
            sizes[node] = 1
    return heavy


def _is_computed(node: Node, data: frozenset[Node]) -> bool:
    """Return whether an s-op depends on tokens and on no family, and is not a view of other values.

    The tokens, and heads with a selector ``select(indices, …)``, count as views.
    """
    if node not in data or is_input(node) or node.free or sort_of(node) is not Sort.SOP:
        return False
    return (
        node.op != "aggregate"
        or node.inputs[0].op != "select"
        or node.inputs[0].inputs[0].op != "indices"
    )


# Lowering all buffers ---------------------------------------------------------------------------------


def _lower_all(
    roots: Mapping[Node, range],
    buffers: Buffers,
    kept: dict[Node, LoweredBuffer],
    storages: Mapping[Node, int],
) -> tuple[dict[Node, list[Piece]], dict[Node, Hull], dict[Node, Node]]:
    hulls = {root: Hull(positions.start, positions.stop) for root, positions in roots.items()}
    lowered: dict[Node, list[Piece]] = {}
    loaded_by: dict[Node, Node] = {}
    while True:
        # A node has a greater depth than the nodes that it loads. The deepest node is lowered first, so
        # that all loads from a node are known before it is lowered.
        waiting = [node for node in hulls if node not in lowered and not is_input(node)]
        if not waiting:
            return lowered, hulls, loaded_by
        node = max(waiting, key=lambda n: n.depth)
        if node in buffers.opaque:
            hulls[node] = Hull(0, buffers.length)
            lowered[node] = []
            asked = {dependency: Hull(0, buffers.length) for dependency in dependencies(node, buffers)}
        else:
            try:
                _lower_buffer(node, hulls[node], buffers, kept)
            except (Stuck, OverflowError) as reason:
                raise Opaque(_closed(node, loaded_by), str(reason)) from None
            lowered[node] = kept[node].pieces
            asked = {}
            for piece in lowered[node]:
                for load in loads(piece.terms):
                    least, greatest = bounds(load.position, piece.box)
                    start = min(max(least, 0), buffers.length - 1)
                    stop = min(max(greatest, 0), buffers.length - 1) + 1
                    asked.setdefault(load.node, Hull(start, stop)).cover(start, stop)
                for fetch in fetches(piece.terms):
                    start, stop = fetched_range(fetch, piece.box, buffers.length)
                    asked.setdefault(fetch.node, Hull(start, stop)).cover(start, stop)
        for other, hull in asked.items():
            hull.cover(0 if other in storages else hull.start, storages.get(other, 0))
            hulls.setdefault(other, hull).cover(hull.start, hull.stop)
            loaded_by.setdefault(other, node)


def fetched_range(fetch: Fetch, box: Box, length: int) -> tuple[int, int]:
    """Return the range of positions that a fetch may read.

    The range ends at the bounds of the position that is computed from data, or, where a bound is
    unknown, at an end of the sequence.
    """
    least, greatest = value_bounds(fetch.position, box)
    start = min(max(int(least), 0), length - 1) if math.isfinite(least) else 0
    stop = min(max(int(greatest), 0), length - 1) + 1 if math.isfinite(greatest) else length
    return start, stop


def _lower_buffer(node: Node, hull: Hull, buffers: Buffers, kept: dict[Node, LoweredBuffer]) -> None:
    """Lower one buffer and store the result in ``kept``, unless a valid result is already there.

    If a range of positions begins within a row of a matrix, it may consist of too many pieces. If
    lowering fails, the buffer is therefore lowered from position 0, and ``hull`` is changed.
    """
    while True:
        key = (node, hull.start, hull.stop, buffers.length, buffers.ieee)
        if node in kept and kept[node].still_holds(key, buffers):
            return
        try:
            kept[node] = find_or_lower(key, buffers, partial(_lower, node, hull, buffers))
            return
        except Stuck:
            if hull.start == 0:
                raise
            hull.start = 0


def _lower(node: Node, hull: Hull, buffers: Buffers) -> LoweredBuffer:
    """Lower one buffer, splitting its box of positions into more pieces as often as needed."""
    refinements: Refinements = {}
    buffers.asked, buffers.added = {}, set()
    while True:
        scope = IndexScope(refinements, buffers.ieee)
        lowering = Lowering(buffers, scope, node)
        try:
            families = ordered(node)
            heads = [scope.ranges(f"h{n}", size_of(f), root=True) for n, f in enumerate(families)]
            places = [p + hull.start for p in scope.ranges("p", hull.size, root=True)]
            pieces = []
            if math.prod(map(len, (*heads, places))) > MOST_PIECES:
                raise Stuck("a box in too many pieces")
            for *members, p in itertools.product(*heads, places):
                terms = lowering.terms(p, dict(zip(families, members, strict=True)))
                solved = solve_all(terms, scope.box, scope.fresh)
                for term in everywhere(solved):
                    decided(GuardedCases((term.guards,)), scope)
                pieces.append(Piece(scope.box, tuple(members), p, solved))
            key = (node, hull.start, hull.stop, buffers.length, buffers.ieee)
            return LoweredBuffer.of(key, pieces, lowering.inlined, buffers)
        except Refine as request:
            scope.refine(request)
            refinements = scope.refinements


def _closed(node: Node, loaded_by: dict[Node, Node]) -> Node:
    """Return ``node`` if it depends on no family, else a buffer without families that depends on it."""
    while node.free:
        node = loaded_by[node]
    return node


def dependencies(node: Node, buffers: Buffers) -> list[Node]:
    """List the s-ops below an opaque node that receive separate arrays.

    These are the nearest s-ops below the node that depend on tokens and on attention, and on no family.
    """

    def is_inside(other: Node) -> bool:
        return other is node or not _is_worthwhile(other, buffers)

    below = dict.fromkeys(i for inside in postorder(node, into=is_inside) for i in inside.inputs)
    return [other for other in below if _is_worthwhile(other, buffers)]


def _is_worthwhile(node: Node, buffers: Buffers) -> bool:
    if node.free or node not in buffers.data or sort_of(node) is not Sort.SOP:
        return False
    return node in buffers.attentive


# Emitting steps ---------------------------------------------------------------------------------------


class _Emitter:
    """A factory of the steps of all lowered buffers."""

    def __init__(
        self,
        buffers: Buffers,
        hulls: dict[Node, Hull],
        segments: Sequence[Segment],
        steps: Steps,
        run_static: Callable[[Node, int], Any],
    ) -> None:
        self.buffers, self.hulls = buffers, hulls
        self.steps, self.run_static = steps, run_static
        self.inputs = tuple(
            steps.make("input", (), segment.shape, (place, segment.dtype), segment.dtype == "bool")
            for place, segment in enumerate(segments)
        )
        sizes = (math.prod(segment.shape) for segment in segments)
        self.starts = list(itertools.accumulate(sizes, initial=0))
        self.made: dict[Node, Step] = {}

    def emit(
        self,
        roots: Mapping[Node, range],
        lowered: dict[Node, list[Piece]],
        loaded_by: dict[Node, Node],
    ) -> Blueprint:
        """Emit the steps of every buffer, inputs first, and return the blueprint."""
        for node in sorted(lowered, key=lambda n: n.depth):
            try:
                if node in self.buffers.opaque:
                    self.made[node] = self.opaque(node)
                else:
                    self.made[node] = self.buffer(node, lowered[node])
            except (Stuck, OverflowError) as reason:
                raise Opaque(_closed(node, loaded_by), str(reason)) from None
        results = tuple(self.result(root, positions) for root, positions in roots.items())
        computes = {step: node for node, step in self.made.items()}
        return Blueprint(
            tuple(roots), self.buffers.length, results, self.inputs, computes, dict(self.buffers.opaque)
        )

    def result(self, root: Node, positions: range) -> Step:
        """Return the values of a root at its positions, flattened."""
        whole = self.tokens() if is_input(root) else self.made[root]
        row = self.steps.reshape(whole, (whole.size,))
        first = 0 if is_input(root) else self.hulls[root].start
        if len(positions) == row.size:
            return row
        return self.steps.view(row, (len(positions),), (1,), positions.start - first)

    def buffer(self, node: Node, pieces: list[Piece]) -> Step:
        """Emit the array of a buffer, in row-major order of its families and its positions."""
        sizes = [size_of(f) for f in ordered(node)]
        total = math.prod(sizes) * self.hulls[node].size
        self.steps.require_room(total, tiling.LARGEST_ARRAY)
        parts: list[tuple[Step, Shape, int]] = []
        for piece in pieces:
            emission = Emission(self.steps, piece.box, self.load, self.fetch)
            address = self.address(node, piece.heads, piece.position)
            axes = [v for v, _ in sorted(address.parts, key=lambda part: -part[1])]
            value = emission.placed(emission.total(piece.terms), axes)
            parts.append((value, tuple(address.coefficient(v) for v in axes), address.constant))
        if any(not part.boolean for part, _, _ in parts):
            parts = [(self.number(part), strides, offset) for part, strides, offset in parts]
        first, strides, offset = parts[0]
        if len(parts) == 1 and offset == 0 and strides == row_major(first.shape):
            return first
        parts.sort(key=lambda part: part[2])
        ends = itertools.accumulate((part.size for part, _, _ in parts), initial=0)
        together = all(
            offset == end and strides == row_major(part.shape)
            for (part, strides, offset), end in zip(parts, ends, strict=False)
        )
        if together:
            flat = [self.steps.reshape(part, (part.size,)) for part, _, _ in parts]
            return self.steps.make("concatenate", flat, (total,), (), first.boolean)
        places = tuple((part.shape, strides, offset) for part, strides, offset in parts)
        return self.steps.make(
            "assemble", [part for part, _, _ in parts], (total,), places, first.boolean
        )

    def number(self, step: Step) -> Step:
        return self.steps.make("to_float", (step,), step.shape) if step.boolean else step

    def address(self, node: Node, heads: Sequence[Affine], position: Affine) -> Affine:
        """Return the index in the array of a buffer for given members of families and a position."""
        hull = self.hulls[node]
        address = position - hull.start
        step = hull.size
        for family, head in zip(reversed(ordered(node)), reversed(heads), strict=True):
            address = address + head * step
            step *= size_of(family)
        return address

    def load(self, load: Load, box: Box) -> LoadSource:
        """Return the array that a load reads, with strides and offset."""
        if not is_input(load.node):
            base = self.made[load.node]
            address = self.address(load.node, load.heads, load.position)
            return LoadSource(base, address.parts, address.constant)
        least, greatest = bounds(load.position, box)
        for base, start in zip(self.inputs, self.starts, strict=False):
            if start <= least and greatest < start + base.size:
                break
        else:
            base, start = self.tokens(), 0
        return LoadSource(base, load.position.parts, load.position.constant - start)

    def fetch(self, fetch: Fetch, box: Box) -> LoadSource:
        """Return the array that a fetch reads; its offset is the position of its first element."""
        start, stop = fetched_range(fetch, box, self.buffers.length)
        if not is_input(fetch.node):
            return LoadSource(self.made[fetch.node], (), self.hulls[fetch.node].start)
        for base, first in zip(self.inputs, self.starts, strict=False):
            if first <= start and stop <= first + base.size:
                return LoadSource(base, (), first)
        return LoadSource(self.tokens(), (), 0)

    def tokens(self) -> Step:
        """Concatenate all arrays of tokens and the blanks."""
        parts = [self.steps.reshape(part, (part.size,)) for part in self.inputs]
        blanks = self.buffers.length - self.starts[-1]
        if blanks > tiling.LARGEST_ARRAY:
            raise Stuck("a sequence with too many blanks")
        if blanks:
            parts.append(self.steps.constant(("blanks", blanks), np.zeros(blanks)))
        if len(parts) == 1:
            return parts[0]
        return self.steps.make("concatenate", parts, (self.buffers.length,))

    def opaque(self, node: Node) -> Step:
        """Emit the step of an s-op that the structured tier runs; it is a constant if the s-op does not
        depend on tokens.
        """
        if node not in self.buffers.data:
            values = np.asarray(self.run_static(node, self.buffers.length))
            if values.dtype.kind == "i" and int(np.abs(values).max()) > LARGEST_EXACT:
                raise Stuck("integers beyond 2⁵³")
            kept = values if values.dtype == np.bool_ else values.astype(np.float64)
            return self.steps.constant(("static", id(node)), kept)
        below = dependencies(node, self.buffers)
        flat = [self.steps.reshape(self.made[n], (self.buffers.length,)) for n in below]
        inputs = [self.tokens(), *flat]
        step = self.steps.make("structured", inputs, (self.buffers.length,), (node, *below))
        return self.steps.make("to_float", (step,), step.shape)
