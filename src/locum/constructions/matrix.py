"""Matrices as views of a sequence: where in an s-op the entries lie (Proposition 1D).

Entry (i, j) of a :class:`Matrix` is what its s-op has at position

    offset + i · row_stride + j · column_stride,

row-major from position 0 unless said otherwise. A transposed matrix is the same s-op with the
strides exchanged and costs nothing; several matrices in one sequence differ in their offsets; a
family of matrices has an offset that contains a family parameter. Sizes may be s-ops, too
(``length // 7``): then one program serves all shapes, as the paper's listings do.

Every construction takes views and gives a view, inside one sequence; its result is an s-op of its
own whose entries begin at position 0. A matrix knows how many tokens its inputs need
(``reads``) and how much room its intermediate results do (``needs``): running it refuses a sequence
that is too short for the former and pads it with blanks for the latter.

>>> from locum import tokens
>>> a = Matrix(tokens, 2, 3)
>>> a.run([1, 2, 3, 4, 5, 6])
array([[1., 2., 3.],
       [4., 5., 6.]])
>>> a.view_transposed().run([1, 2, 3, 4, 5, 6]).shape
(3, 2)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from locum.constructions.places import Places, entries_as_numbers, token_arrays
from locum.constructions.sizes import (
    Size,
    largest,
    number_of,
    plus,
    same_size,
    times,
    whole,
)
from locum.errors import ExecutionError, GraphError, InputError
from locum.graph import Node, abbreviate, postorder
from locum.html_table import text_rows
from locum.language.handles import Selector, SOp
from locum.language.python import (
    aggregate,
    best,
    indices,
    lookup,
    maximum,
    minimum,
    select,
    where,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from locum.execution.fast import Plan


@dataclass(frozen=True, eq=False)
class Matrix:
    """A view of an s-op as a matrix."""

    sop: SOp
    rows: Size
    columns: Size
    offset: Size = 0
    row_stride: Size | None = None
    column_stride: Size = 1
    #: Tokens the inputs take up, and positions that results need; found from the view if not given.
    reads: int | None = None
    needs: int | None = None
    #: The messages of errors where a quotient has no value.
    names: Mapping[Node, str] = field(default_factory=dict)
    #: The numbers of a constant matrix, by position: reading them takes no head.
    table: Mapping[int, float] | None = None

    def __post_init__(self) -> None:
        fill = object.__setattr__
        if self.row_stride is None:
            fill(self, "row_stride", self.columns)
        for name in Places._fields:
            fill(self, name, whole(getattr(self, name), name.replace("_", " "), _least(name)))
        if self.reads is None or self.needs is None:
            extent = largest(self.end) or 0
            fill(self, "reads", extent if self.reads is None else self.reads)
            fill(self, "needs", extent if self.needs is None else self.needs)

    def _repr_html_(self) -> str:
        """Show shape and size in a notebook."""
        rows = [("shape", self.shape), ("program", str(self.sop.architecture))]
        return text_rows("a matrix that a program computes", rows)

    # Where things are -----------------------------------------------------------------------------

    @property
    def shape(self) -> str:
        """``2×3``, for messages; sizes that are s-ops are written ·"""
        return "×".join(
            "·" if isinstance(size, SOp) else str(size) for size in (self.rows, self.columns)
        )

    @property
    def end(self) -> Size:
        """One past the last position of an entry."""
        last = self.position(plus(self.rows, -1), plus(self.columns, -1))
        return plus(last, 1)

    @property
    def count(self) -> Size:
        """Rows times columns."""
        return times(self.rows, self.columns)

    @property
    def is_compact(self) -> bool:
        """Whether it is row-major from position 0 on, as results are."""
        return (
            type(self.offset) is int
            and self.offset == 0
            and (same_size(self.rows, 1) or same_size(self.row_stride, self.columns))
            and (same_size(self.columns, 1) or same_size(self.column_stride, 1))
        )

    def position(self, i: Size, j: Size) -> Size:
        """Return where entry (i, j) is; i and j may differ from position to position."""
        assert self.row_stride is not None
        return plus(plus(self.offset, times(i, self.row_stride)), times(j, self.column_stride))

    def at(self, i: Size, j: Size) -> SOp:
        """Return entry (i, j) at each position that asks for it: fetched by one head, or a constant."""
        if self.table is not None:
            last = len(self.table) - 1  # that entry is 0
            place = minimum(maximum(self.position(i, j), 0), last)
            return lookup(place, self.table)
        return aggregate(select(indices, self.position(i, j), "=="), self.sop)

    @property
    def inside(self) -> SOp:
        """Whether a position lies within the range of positions that the matrix takes up."""
        below_end = indices < self.end
        if type(self.offset) is int and self.offset == 0:
            return below_end
        return (indices >= self.offset) & below_end

    def inside_or(self, outside: float) -> SOp:
        """Return the s-op, with another value outside: functions such as exp and / must not see that.

        RASP is strict: an error at any position is an error, whether or not anyone reads it.
        """
        return where(self.inside, self.sop, outside)

    # Other views -------------------------------------------------------------------------------------

    def view_transposed(self) -> Matrix:
        """Return the transpose as a view: no head, no copy."""
        return replace(
            self,
            rows=self.columns,
            columns=self.rows,
            row_stride=self.column_stride,
            column_stride=self.row_stride if self.row_stride is not None else 1,
        )

    def block(self, row: int, column: int, rows: int, columns: int) -> Matrix:
        """Return a rectangular part, as a view."""
        for name, first, count, size in (
            ("rows", row, rows, self.rows),
            ("columns", column, columns, self.columns),
        ):
            last = first + count - 1
            if first < 0 or (type(size) is int and last >= size):
                raise GraphError(
                    f"expected a block within a {self.shape} matrix, got {name} {first} to {last}"
                )
        part = replace(self, rows=rows, columns=columns, offset=self.position(row, column))
        return part if self.is_result else replace(part, reads=None, needs=None)

    @property
    def is_result(self) -> bool:
        """Whether it was computed, rather than given among the tokens."""
        return self.sop.node.op != "tokens"

    def compact(self) -> Matrix:
        """Return it row-major from position 0: itself, or a copy made by one head."""
        if self.is_compact:
            return self
        i, j = coordinates(self.columns)
        return self.derive(where(indices < self.count, self.at(i, j), 0), self.rows, self.columns)

    def map(self, sop: SOp) -> Matrix:
        """Return another s-op seen through the same view: the result of an elementwise function."""
        return replace(self, sop=sop, table=None)

    def derive(
        self,
        sop: SOp,
        rows: Size,
        columns: Size,
        *others: Matrix,
        room: Size = 0,
        names: Mapping[SOp, str] | None = None,
    ) -> Matrix:
        """Return a compact result of this matrix and ``others``, using ``room`` positions meanwhile.

        ``names`` are the messages of errors for quotients in it that may have no value.
        """
        sources = (self, *others)
        reads = max(m.reads or 0 for m in sources)
        sizes = (largest(room), largest(times(rows, columns)), *(m.needs for m in sources))
        known = {node: name for m in sources for node, name in m.names.items()}
        known.update({value.node: name for value, name in (names or {}).items()})
        return Matrix(sop, rows, columns, reads=reads, needs=max(s or 0 for s in sizes), names=known)

    # Running ----------------------------------------------------------------------------------------

    def run(
        self,
        tokens: Sequence[Any] | NDArray[Any],
        *,
        executor: str = "dense",
        domain: str = "float",
        strict: bool = False,
    ) -> Any:
        """Run on these tokens (padded with 0 where room is needed); return the matrix as an array.

        The tokens come as numbers, or as arrays of any shape, one after another. Torch tensors give a
        torch tensor; everything else a NumPy array.
        """
        from locum.execution import run_parts

        parts = token_arrays(tokens)
        length = self._length(sum(math.prod(part.shape) for part in parts))
        options: dict[str, Any] = {"executor": executor, "domain": domain, "strict": strict}
        view = self._numbers(parts, length, options)
        positions = view.positions
        if positions.stop > length:
            raise InputError(
                f"a {view.rows}×{view.columns} matrix ends at position {positions.stop - 1}, but there "
                f"are only {length} tokens"
            )
        with explained(self.names):
            values = run_parts(
                self.sop.node, parts, length, positions=positions, names=self.names, **options
            )
        return entries_as_numbers(view.take(values), domain)

    def plan(
        self, *, like: Any = None, segments: Sequence[int | tuple[int, ...]] | None = None
    ) -> Plan:
        """Plan how the fast executor computes its entries, from tokens in parts of these shapes."""
        from locum.execution import fast

        offset, end = largest(self.offset), largest(self.end)
        if offset is None or end is None:
            raise GraphError("the sizes of this matrix depend on the input: plan its s-op for a length")
        length = max(self.reads or 0, self.needs or 0)
        return fast.plan(
            self.sop.node,
            length,
            positions=range(offset, end),
            segments=[self.reads or length] if segments is None else segments,
            like=like,
            names=self.names,
        )

    @property
    def places(self) -> Places:
        """Where the entries are, if its sizes are numbers."""
        sizes = ((getattr(self, name), name.replace("_", " ")) for name in Places._fields)
        return Places(*(number_of(size, what) for size, what in sizes))

    def _length(self, tokens: int) -> int:
        """Return how many positions it takes on so many tokens."""
        if tokens < (self.reads or 0):
            raise InputError(
                f"the sequence has {tokens} tokens, but the inputs of this {self.shape} matrix "
                f"take up {self.reads}"
            )
        needs = self.needs or 0
        if tokens < needs and any(node.op == "length" for node in postorder(self.sop.node)):
            raise InputError(
                f"the {self.shape} result needs {needs} positions, but the sequence has "
                f"{tokens} tokens, and it cannot be padded: sizes are found from its length"
            )
        return max(tokens, needs)

    def _numbers(self, parts: list[Any], length: int, options: Mapping[str, Any]) -> Places:
        """Return the sizes and places as numbers, on this input."""
        from locum.execution import run_parts

        def number(name: str) -> int:
            size: Size = getattr(self, name)
            if not isinstance(size, SOp):
                return size
            value = run_parts(size.node, parts, length, positions=range(1), **options)[0]
            if value != int(value) or value < _least(name):
                raise InputError(
                    f"{length} tokens do not make such a matrix: {abbreviate(size.node)} is {value}"
                )
            return int(value)

        return Places(*map(number, Places._fields))


@contextmanager
def explained(names: Mapping[Node, str]) -> Iterator[None]:
    """Give an error the message that a construction has for the quotient that has no value."""
    try:
        yield
    except ExecutionError as error:
        if error.kind == "ZeroDivisionError" and error.where.startswith(tuple(names.values())):
            raise ExecutionError(error.where, "", kind="undefined") from None
        raise


def _least(name: str) -> int:
    """Return the least value of a size or a place."""
    return 1 if name in ("rows", "columns") else 0


def as_matrix(value: Any, operation: str) -> Matrix:
    """Return ``value`` if it is a matrix, else raise an error that says what to do."""
    if isinstance(value, Matrix):
        return value
    kind = "an s-op" if isinstance(value, SOp) else type(value).__name__
    raise GraphError(
        f"{operation}: expected matrices, got {kind}; try Matrix(sop, rows, columns) for an s-op, "
        "constant_matrix(array) of numbers"
    )


def greatest(selector: Selector, score: SOp) -> Selector:
    """Return of the selected keys the one of greatest score; of several, the leftmost.

    One key, not the mean of several: a mean of equal numbers need not be that number.
    """
    return best(best(selector, score), -indices)


def coordinates(columns: Size) -> tuple[SOp, SOp]:
    """Return the row and column of each position of a compact matrix (and beyond its end)."""
    return indices // columns, indices % columns


def same_row(matrix: Matrix) -> Selector:
    """Select at each position of a compact matrix the entries of its own row."""
    row = indices // matrix.columns
    return select(row, row, "==")


def constant_matrix(array: np.ndarray[Any, Any] | Sequence[Sequence[float]]) -> Matrix:
    """Return a matrix of numbers that belong to the program, not to the input."""
    import numpy as np

    table = np.atleast_2d(np.asarray(array, dtype=float))
    entries = {position: float(value) for position, value in enumerate(table.ravel())}
    entries[table.size] = 0.0  # everywhere behind the matrix
    sop = lookup(minimum(indices, table.size), entries)
    rows, columns = table.shape
    return Matrix(sop, rows, columns, reads=0, table=entries)
