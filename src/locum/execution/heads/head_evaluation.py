"""Run the heads of a program for the needed rows against all keys, and report statistics.

``support.py`` determines the needed rows. Values are computed in the order of the graph and are
freed after their last use. Elementwise operations use broadcasting over heads and positions. The
rows of all members of a family are run together, unless the members have different keys.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from locum.errors import ExecutionError
from locum.execution.arrays import Array, Arrays, largest
from locum.execution.heads import head_numbers
from locum.execution.heads.head_numbers import ElementError
from locum.execution.heads.head_scores import HeadValues
from locum.execution.heads.head_strings import is_text, move, put, settle
from locum.execution.heads.points import Points, product, spread
from locum.execution.heads.selection import Selection
from locum.execution.heads.support import PointDemand
from locum.graph import Node, Sort, abbreviate, postorder, size_of, sort_of
from locum.graph.atoms import LARGEST_EXACT, short


@dataclass
class Report:
    """Statistics of a run, summed over all heads that were run.

    The pattern of a root that is a selector is not counted. If a query of a head selects several keys
    and some result is not finite, the head is run and counted a second time.
    """

    #: Number of heads with at least one live row, counting each member of a family.
    heads: int = 0
    #: Number of queries that were run.
    rows: int = 0
    #: Number of scored pairs of a query and a key. A selector with ``or``, or with several comparisons
    #: of which one is ``!=`` or orders many queries, can need several products, and each product counts
    #: its pairs. The maximum of ``best`` counts its pairs again. Comparisons that do not depend on the
    #: key are not scored.
    pairs: int = 0
    #: Number of coordinates of the longest query and key vectors.
    width: int = 0
    seconds: float = 0.0
    #: The statistics of each head or family of heads, in the order of execution.
    families: list[dict[str, int | str]] = field(default_factory=list)

    def add(self, name: str, heads: int, rows: int, pairs: int, width: int) -> None:
        """Add the statistics of one head, or of one family of heads, to the sums."""
        self.heads += heads
        self.rows += rows
        self.pairs += pairs
        self.width = max(self.width, width)
        self.families.append(
            {"name": name, "heads": heads, "rows": rows, "pairs": pairs, "width": width}
        )


#: Maximum number of rows of one family of heads, limited by memory.
MAX_ROWS = 2**31
#: Function of positions and the name of a cast that returns the cast tokens at these positions.
Tokens = Callable[[NDArray[np.int64], str], Array]
#: Function that is called after each block of rows with the name of the head and the number of scored
#: pairs.
Progress = Callable[[str, int], None]


class Evaluation:
    """One run of a program on one input."""

    def __init__(
        self,
        tokens: Tokens,
        arrays: Arrays,
        demand: PointDemand,
        names: Callable[[], Mapping[Node, str]],
        memory: int,
        report: Report,
        progress: Progress | None,
        mixed: Collection[Node],
    ) -> None:
        self.tokens = tokens
        #: S-ops that compute integers and floats in one array of floats.
        self.mixed = mixed
        self.arrays = arrays
        self.demand = demand
        self.statics = demand.statics
        self.names = names
        self.memory = memory
        self.report = report
        self.progress = progress
        self.values: dict[Node, Array] = {}

    def run(self, roots: Mapping[Node, NDArray[np.int64]]) -> list[Array]:
        """Return each root's values at its positions; for a selector, these rows of its pattern."""
        order = [node for node in postorder(*roots) if node in self.demand.points]
        left = Counter(read for node in order for read in self.demand.reads(node))
        for root in roots:
            left.update([root] if sort_of(root) is Sort.SOP else self.demand.reads(root))
        for node in order:
            self.values[node] = self.value(node, self.demand.points[node])
            if node in self.mixed:
                self.require_exact(node)
            left.subtract(self.demand.reads(node))
            for read in self.demand.reads(node):
                if left[read] == 0:
                    self.values.pop(read, None)
        return [self.result(root, positions) for root, positions in roots.items()]

    def require_exact(self, node: Node) -> None:
        """Raise an error if an integer may have been rounded, because a node stores it as a float."""
        value = self.values[node]
        if not is_text(value) and largest(value) >= LARGEST_EXACT:
            raise ExecutionError(
                'expected integers that floats represent exactly, got others; try executor="dense"',
                abbreviate(node, self.names()),
                kind="refused",
            )

    def result(self, root: Node, positions: NDArray[np.int64]) -> Array:
        """Return the value of ``root`` at ``positions``, after all its inputs have been computed."""
        points = product((), positions)
        if sort_of(root) is Sort.SELECTOR:
            return self.pattern(root, points)
        return self.arrays.xp.broadcast_to(self.read(root, points), positions.shape)

    def value(self, node: Node, points: Points) -> Array:
        """Return the values of a node at the heads and positions ``points``."""
        try:
            if node.op == "tokens":
                return self.tokens(points.together, node.cast)
            if node.op == "sum_over":
                return self.sum_over(node, points)
            if node.op in ("aggregate", "selector_width"):
                return self.attention(node, points)
            if node.op == "if_else":
                return self.if_else(node, points)
            inputs = [self.read(i, points) for i in node.inputs]
            return head_numbers.apply(self.arrays, node.op, inputs, node.attributes)
        except ElementError as error:
            raise self.statics.described(error, node, points) from None

    def read(self, node: Node, points: Points, needed: NDArray[np.bool_] | None = None) -> Array:
        """Return the computed values of a node in the layout of ``points``.

        At points where the mask ``needed`` is False, the values are undefined.
        """
        if node in self.statics:
            return put(self.arrays, self.statics.at(node, points))
        if node not in self.values:
            if points.positions.size and (needed is None or bool(needed.any())):
                raise _missing(node)
            return self.arrays.full((1,) * (len(points.families) + 1), 0, self.arrays.float)
        stored, value = self.demand.points[node], self.values[node]
        value = spread(value, stored.families, points.families)
        if np.array_equal(spread(stored.positions, stored.families, points.families), points.positions):
            return value
        if not stored.is_product:
            raise _missing(node)
        places = np.full(self.statics.length, -1, dtype=np.int64)
        places[stored.together] = np.arange(len(stored.together))
        rows = places[points.positions]
        if bool(((rows < 0) if needed is None else (rows < 0) & needed).any()):
            raise _missing(node)
        index = self.arrays.put(np.maximum(rows, 0))
        if points.positions.size == points.positions.shape[-1]:
            return self.arrays.xp.take(value, index.reshape(-1), axis=-1)
        if math.prod(value.shape) == value.shape[-1]:
            return value.reshape(-1)[index]
        shape = np.broadcast_shapes(tuple(value.shape[:-1]), tuple(index.shape[:-1]))
        value = self.arrays.xp.broadcast_to(value, (*shape, value.shape[-1]))
        index = self.arrays.xp.broadcast_to(index, (*shape, index.shape[-1]))
        return self.arrays.xp.take_along_axis(value, index, axis=-1)

    def if_else(self, node: Node, points: Points) -> Array:
        """Return one of two values at each point.

        A branch that has not been computed is never chosen, and is not read.
        """
        condition, *branches = node.inputs
        chosen = self.read(condition, points)
        present = [branch for branch in branches if branch in self.statics or branch in self.values]
        if len(present) < len(branches):
            value = self.read(present[0], points)  # chosen everywhere
            shape = np.broadcast_shapes(tuple(value.shape), tuple(chosen.shape))
            return self.arrays.xp.broadcast_to(value, shape)
        then, otherwise = (
            self.read(branch, points, self.is_chosen(condition, points, holds))
            for branch, holds in zip(branches, (True, False), strict=True)
        )
        return head_numbers.choose(self.arrays, chosen, then, otherwise)

    def is_chosen(self, condition: Node, points: Points, holds: bool) -> NDArray[np.bool_]:
        """Return a mask of the points at which a branch is read.

        At other points, the value of the branch may not have been computed.
        """
        kept = np.zeros(self.statics.length, dtype=np.bool_)
        kept[self.demand.branch_points(condition, points, holds).together] = True
        return kept[points.positions]

    # Sums over families ---------------------------------------------------------------------------

    def sum_over(self, node: Node, points: Points) -> Array:
        """Return the sum of a body over its families, computed only where the body can be non-zero."""
        body, *summed = node.inputs
        arrays, where = self.arrays, self.demand.summed[node]
        outer = [family for family in where.families if family not in summed]
        if where.positions.size == 0:
            return arrays.full((*map(size_of, outer), points.shape[-1]), 0, arrays.int)
        value = arrays.xp.broadcast_to(self.read(body, where), where.shape)
        if is_text(value):
            text = next(item for item in value.ravel() if isinstance(item, str))
            raise ElementError(f"add is not defined for 0 and {short(text)}", "TypeError")
        times = math.prod(size_of(family) for family in summed if family not in where.families)
        if arrays.is_int(value):
            value = arrays.to_int(value)
            heads = times * math.prod(where.shape[:-1])
            head_numbers.require_room(head_numbers.largest(arrays, value) * heads)
        if where.same(product(where.families, points.together)):
            axes = tuple(axis for axis, family in enumerate(where.families) if family in summed)
            total = arrays.xp.sum(value, axis=axes) if axes else value
        else:
            total = self.scattered(value, where, outer, points.together)
        total = total * times if times > 1 else total
        if points.is_product:
            return total
        places = np.searchsorted(points.together, np.broadcast_to(points.positions, points.shape))
        return arrays.xp.take_along_axis(total, arrays.put(places), axis=-1)

    def scattered(
        self, value: Array, where: Points, outer: list[Node], positions: NDArray[np.int64]
    ) -> Array:
        """Sum values with equal positions, separately for each member of the ``outer`` families."""
        arrays = self.arrays
        if where.valid is not None:
            zero = arrays.full((1,) * len(where.shape), 0, value.dtype)
            value = arrays.xp.where(arrays.put(where.valid), value, zero)
        index = np.broadcast_to(np.searchsorted(positions, where.positions), where.shape).reshape(-1)
        members = where.member_index(tuple(outer))
        if members is not None:
            index = members * len(positions) + index
        shape = (*map(size_of, outer), len(positions))
        total = arrays.add_at(math.prod(shape), arrays.put(index), value.reshape(-1))
        return total.reshape(shape)

    # Heads ----------------------------------------------------------------------------------------

    def attention(self, node: Node, points: Points) -> Array:
        """Return the values of a head, or of all heads of a family, at ``points``.

        The values are numbers of selected keys for ``selector_width``, and otherwise means, single
        values or defaults.
        """
        arrays, reachable = self.arrays, self.demand.reachable[node]
        selection = self.selection(node, points)
        adds = node.op == "aggregate" and len(reachable) > 0
        values = selection.values(node.inputs[1], reachable) if adds else None
        counts, totals = self.sums(node, selection, values)
        if node.op == "selector_width":
            return counts.reshape(points.shape)
        own = None if values is None else values(None)
        if own is not None and own.texts is not None:
            moved = move(counts, totals, own.texts, node.default)
            return settle(moved.reshape(points.shape))
        bools = own is not None and arrays.is_bool(own.array)

        def divided(scale: float) -> Array:
            """Return the sums of the values divided by ``scale``."""

            def smaller(rows: Array | None) -> HeadValues:
                assert values is not None
                own = values(rows)
                return replace(own, array=own.array / scale)

            return self.sums(node, selection, smaller)[1]

        return head_numbers.means(arrays, counts, totals, node.default, bools, divided).reshape(
            points.shape
        )

    def sums(
        self, node: Node, selection: Selection, values: Callable[[Array | None], HeadValues] | None
    ) -> tuple[Array, Array]:
        """Return, for each row, the number of selected keys and the sum of their values, and add the
        head to the report.

        If ``values`` is None, the sums are 0.
        """
        arrays = self.arrays
        counts = arrays.full((selection.points.rows,), 0, arrays.int)
        totals, pairs, width = counts, 0, 0
        for rows, head in selection.heads(self.memory):
            head.progress = self.watch(node)
            width = max(width, head.width)
            count, total = (head.counts(), counts) if values is None else head.sums(values(rows))
            pairs += head.pairs
            if rows is None:
                counts, totals = count, total
                continue
            counts[rows] = count
            if values is not None:
                totals = totals if totals is not counts else arrays.full(counts.shape, 0, total.dtype)
                totals[rows] = total
        name = abbreviate(node, self.names())
        self.report.add(name, selection.live_heads, selection.rows, pairs, width)
        return counts, totals

    def pattern(self, selector: Node, points: Points) -> Array:
        """Return the attention pattern of a selector as an array [query, key]."""
        pattern = self.arrays.full((points.rows, self.statics.length), False, self.arrays.xp.bool)
        try:
            selection = self.selection(selector, points)
            for rows, head in selection.heads(self.memory):
                pattern[slice(None) if rows is None else rows] = head.pattern()
        except ElementError as error:
            raise self.statics.described(error, selector, points) from None
        return pattern

    def selection(self, node: Node, points: Points) -> Selection:
        """Return the selector of a head, prepared for execution at ``points``."""
        if points.rows > MAX_ROWS:
            problem = f"its heads have {points.rows:,} rows in all; the limit here is {MAX_ROWS:,}"
            raise ElementError(problem, "too large")
        return Selection(self.arrays, self.demand, self.read, self.demand.formulas[node], points)

    def watch(self, node: Node) -> Callable[[int], None]:
        """Return a callback that reports the number of scored pairs of a head to ``progress``."""
        if self.progress is None:
            return lambda pairs: None
        name, progress = abbreviate(node, self.names()), self.progress
        return lambda pairs: progress(name, pairs)


def _missing(node: Node) -> ElementError:
    """Return the error for a node that is read outside its computed points, which indicates a bug."""
    return ElementError(f"{abbreviate(node)} is read where it had been found unread", "internal")
