"""Represent matrices as views of a sequence: tensors of two dimensions (Proposition 1D).

Entry (i, j) of a :class:`Matrix` is the value of its s-op at position

    offset + i · row_stride + j · column_stride.

The default is row-major order from position 0. Positions, transposes and slices are defined by
:class:`~locum.constructions.tensor.Tensor`. Several matrices in one sequence have different offsets.
The offset of a family of matrices contains a family parameter. Sizes may be s-ops such as
``length // 7``. One program then works for several shapes, as in the paper's listings.

Most constructions accept views of one sequence and return a view. Most results are new s-ops whose
entries begin at position 0. ``reads`` is the number of tokens that the inputs of a matrix occupy.
``needs`` is the number of positions that the matrix and its intermediate results occupy. ``run`` raises
an error if the sequence is shorter than ``reads``, and pads the sequence with blanks to the length
``needs``. If the program contains ``length``, ``run`` raises an error instead of padding.

>>> from locum import tokens
>>> a = Matrix(tokens, 2, 3)
>>> a.run([1, 2, 3, 4, 5, 6])
array([[1., 2., 3.],
       [4., 5., 6.]])
>>> a.transpose(0, 1).run([1, 2, 3, 4, 5, 6]).shape
(3, 2)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from locum.constructions.places import Places, entries_as_numbers, token_arrays
from locum.constructions.sizes import (
    Size,
    largest,
    number_of,
    same_size,
    times,
    whole,
)
from locum.constructions.tensor import Tensor, contiguous_strides
from locum.errors import ExecutionError, GraphError, InputError
from locum.graph import Node, abbreviate, postorder
from locum.rasp.handles import Selector, SOp
from locum.rasp.python import (
    aggregate,
    best,
    indices,
    lookup,
    maximum,
    minimum,
    select,
    where,
)
from locum.text import text_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from locum.execution.fast import Plan


@dataclass(frozen=True, eq=False, init=False)
class Matrix(Tensor[Size]):
    """A tensor of two dimensions that can be run; its sizes may be s-ops."""

    #: Number of tokens of the inputs; a negative number means up to the end of the view.
    reads: int = -1
    #: Error messages for quotients that may be undefined.
    names: Mapping[Node, str] = field(default_factory=dict)
    #: The entries of a constant matrix by position, or None. Reading a constant needs no head.
    table: Mapping[int, float] | None = None

    def __init__(
        self,
        sop: SOp,
        rows: Size,
        columns: Size,
        offset: Size = 0,
        row_stride: Size | None = None,
        column_stride: Size = 1,
        reads: int | None = None,
        needs: int | None = None,
        names: Mapping[Node, str] | None = None,
        table: Mapping[int, float] | None = None,
    ) -> None:
        own = {"reads": -1 if reads is None else reads, "names": names or {}, "table": table}
        vars(self).update(own)
        super().__init__(
            sop,
            (rows, columns),
            (columns if row_stride is None else row_stride, column_stride),
            offset,
            storage=-1 if needs is None else needs,
        )

    def __post_init__(self) -> None:
        if len(self.shape) != 2 or len(self.strides) != 2:
            raise GraphError(
                f"a matrix: expected two sizes and two strides, got {self.shape} and {self.strides}"
            )
        rows, columns, offset, *strides = (
            whole(getattr(self, name), name.replace("_", " "), _least(name)) for name in Places._fields
        )
        vars(self).update(shape=(rows, columns), strides=tuple(strides), offset=offset)
        if self.reads < 0 or self.storage < 0:
            end = largest(self.end) or 0
            vars(self).update({name: end for name in ("reads", "storage") if getattr(self, name) < 0})
        super().__post_init__()

    def _repr_html_(self) -> str:
        """Return an HTML description with the shape of the matrix and the size of its program."""
        rows = [("shape", self.shape_label), ("program", str(self.sop.architecture))]
        return text_rows("a matrix that a program computes", rows)

    # Sizes and positions ----------------------------------------------------------------------------

    @property
    def rows(self) -> Size:
        """Number of rows."""
        return self.shape[0]

    @property
    def columns(self) -> Size:
        """Number of columns."""
        return self.shape[1]

    @property
    def row_stride(self) -> Size:
        """Number of positions from one row to the next."""
        return self.strides[0]

    @property
    def column_stride(self) -> Size:
        """Number of positions from one column to the next."""
        return self.strides[1]

    @property
    def needs(self) -> int:
        """Number of positions that the matrix and its intermediate results need."""
        return self.storage

    @property
    def shape_label(self) -> str:
        """The shape for messages, such as ``2×3``; sizes that are s-ops are written ``·``."""
        return "×".join("·" if isinstance(size, SOp) else str(size) for size in self.shape)

    def at(self, *index: Size) -> SOp:
        """Return an s-op with the entry at ``index`` (row, column); the index may depend on the
        position.

        The entry is read by one head or, for a constant matrix, from its table. Unlike in a tensor, the
        index of a dimension of size 1 is also used, as in the paper's listings.
        """
        position = self.position(*index)
        if self.table is not None:
            last = len(self.table) - 1  # the last value of the table is 0
            return lookup(minimum(maximum(position, 0), last), self.table)
        return aggregate(select(indices, position, "=="), self.sop)

    @property
    def inside(self) -> SOp:
        """A boolean s-op: whether a position is between the first and the last position of the
        matrix.
        """
        below_end = indices < self.end
        if same_size(self.offset, 0):
            return below_end
        return (indices >= self.offset) & below_end

    def inside_or(self, outside: float) -> SOp:
        """Return the s-op of the matrix with the value ``outside`` before the first and after the last
        position of the matrix.

        This is needed before functions such as exp and division. RASP is strict: an error at any
        position is an error, even if the position is not read.
        """
        return where(self.inside, self.sop, outside)

    # Other views -------------------------------------------------------------------------------------

    def block(self, row: int, column: int, rows: int, columns: int) -> Matrix:
        """Return a view of the block of ``rows`` × ``columns`` entries whose first entry is (row,
        column).
        """
        part = self.slice(0, row, row + rows).slice(1, column, column + columns)
        return part if self.is_result else part.replace(reads=-1, storage=-1)

    @property
    def is_result(self) -> bool:
        """Whether the matrix is computed rather than read from the tokens."""
        return self.sop.node.op != "tokens"

    def compact(self) -> Matrix:
        """Return the matrix in row-major order from position 0.

        If necessary, one head copies the entries, or no head for a constant matrix.
        """
        if self.has_layout(self.shape, contiguous_strides(self.shape)):
            return self
        i, j = coordinates(self.columns)
        return self.derive(where(indices < self.size, self.at(i, j), 0), self.rows, self.columns)

    def map(self, sop: SOp) -> Matrix:
        """Return the same view of another s-op, for example the result of an elementwise function."""
        return self.replace(sop=sop, table=None)

    def derive(
        self,
        sop: SOp,
        rows: Size,
        columns: Size,
        *others: Matrix,
        room: Size = 0,
        names: Mapping[SOp, str] | None = None,
    ) -> Matrix:
        """Return a row-major matrix of ``sop`` that is computed from this matrix and ``others``.

        ``room`` is the number of positions that the computation needs. ``names`` are the error messages
        for quotients that may be undefined.
        """
        sources = (self, *others)
        reads = max(m.reads for m in sources)
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
        """Run the program on these tokens (padded with 0 if necessary) and return the matrix as an
        array.

        The tokens are numbers, or arrays of any shape, in the order of the sequence. If the tokens
        contain PyTorch tensors, the result is a PyTorch tensor, otherwise a NumPy array.
        """
        from locum.execution import run_parts

        parts = token_arrays(tokens)
        length = self._length(sum(math.prod(part.shape) for part in parts))
        options: dict[str, Any] = {"executor": executor, "domain": domain, "strict": strict}
        view = self._numbers(parts, length, options)
        positions = view.positions
        if positions.stop > length:
            raise InputError(
                f"expected at least {positions.stop} tokens for a {view.rows}×{view.columns} matrix "
                "that ends "
                f"at position {positions.stop - 1}, got {length}"
            )
        with explained(self.names):
            values = run_parts(
                self.sop.node, parts, length, positions=positions, names=self.names, **options
            )
        return entries_as_numbers(view.take(values), domain)

    def plan(
        self, *, like: Any = None, segments: Sequence[int | tuple[int, ...]] | None = None
    ) -> Plan:
        """Return the plan with which the fast executor computes the entries.

        ``segments`` are the sizes or shapes of the arrays in which the tokens are given. If the sizes
        of the matrix depend on the input, an error is raised.
        """
        from locum.execution import fast

        offset, end = largest(self.offset), largest(self.end)
        if offset is None or end is None:
            raise GraphError(
                "expected constant sizes, got sizes that depend on the input; try "
                "fast.plan(matrix.sop.node, length)"
            )
        length = max(self.reads, self.needs)
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
        """The positions of the entries as numbers; a size that is an s-op raises an error."""
        sizes = ((getattr(self, name), name.replace("_", " ")) for name in Places._fields)
        return Places(*(number_of(size, what) for size, what in sizes))

    def _length(self, tokens: int) -> int:
        """Return the number of positions on which the program must run for this number of tokens."""
        if tokens < self.reads:
            raise InputError(
                f"expected at least {self.reads} tokens for the inputs of this {self.shape_label} "
                "matrix, got "
                f"{tokens}"
            )
        if tokens < self.needs and any(node.op == "length" for node in postorder(self.sop.node)):
            raise InputError(
                f"the {self.shape_label} result needs {self.needs} positions, but the sequence has "
                f"{tokens} tokens and cannot be padded, since sizes depend on its length"
            )
        return max(tokens, self.needs)

    def _numbers(self, parts: list[Any], length: int, options: Mapping[str, Any]) -> Places:
        """Return the sizes, strides and offset as numbers, evaluated on this input."""
        from locum.execution import run_parts

        def number(name: str) -> int:
            size: Size = getattr(self, name)
            if not isinstance(size, SOp):
                return size
            value = run_parts(size.node, parts, length, positions=range(1), **options)[0]
            if value != int(value) or value < _least(name):
                raise InputError(
                    f"{name}: expected an integer ≥ {_least(name)}, got {value} from "
                    f"{abbreviate(size.node)} on "
                    f"{length} tokens"
                )
            return int(value)

        return Places(*map(number, Places._fields))


@contextmanager
def explained(names: Mapping[Node, str]) -> Iterator[None]:
    """Raise an error with the message of the construction if the divisor of a named quotient is 0 in
    the ``with`` block.

    ``names`` maps quotients to these messages.
    """
    try:
        yield
    except ExecutionError as error:
        if error.kind == "ZeroDivisionError" and error.where.startswith(tuple(names.values())):
            raise ExecutionError(error.where, "", kind="undefined") from None
        raise


def _least(name: str) -> int:
    """Return the minimum of the field ``name``: 1 for numbers of rows and columns, 0 for offset and
    strides.
    """
    return 1 if name in ("rows", "columns") else 0


def as_matrix(value: Any, operation: str) -> Matrix:
    """Return ``value`` if it is a matrix; otherwise raise an error that suggests a conversion."""
    if isinstance(value, Matrix):
        return value
    kind = "an s-op" if isinstance(value, SOp) else type(value).__name__
    raise GraphError(
        f"{operation}: expected matrices, got {kind}; try Matrix(sop, rows, columns) for an s-op, "
        "constant_matrix(array) of numbers"
    )


def greatest(selector: Selector, score: SOp) -> Selector:
    """Return a selector that selects the leftmost key with the highest score among the selected keys.

    A single key is selected even if several keys have this score, since the mean of equal numbers may
    be rounded.
    """
    return best(best(selector, score), -indices)


def coordinates(columns: Size) -> tuple[SOp, SOp]:
    """Return the row and the column of each position of a row-major matrix that begins at position 0.

    Positions after the end of the matrix also have a row and a column.
    """
    return indices // columns, indices % columns


def same_row(matrix: Matrix) -> Selector:
    """Return the selector that selects the row of the query, for a row-major matrix at position 0."""
    row = indices // matrix.columns
    return select(row, row, "==")


def constant_matrix(array: np.ndarray[Any, Any] | Sequence[Sequence[float]]) -> Matrix:
    """Return a matrix of given numbers, which are constants of the program."""
    import numpy as np

    table = np.atleast_2d(np.asarray(array, dtype=float))
    entries = {position: float(value) for position, value in enumerate(table.ravel())}
    entries[table.size] = 0.0  # everywhere after the matrix
    sop = lookup(minimum(indices, table.size), entries)
    rows, columns = table.shape
    return Matrix(sop, rows, columns, reads=0, table=entries)
