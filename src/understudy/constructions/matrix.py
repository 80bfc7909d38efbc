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

>>> from understudy import tokens
>>> a = Matrix(tokens, 2, 3)
>>> a.run([1, 2, 3, 4, 5, 6])
array([[1., 2., 3.],
       [4., 5., 6.]])
>>> a.view_transposed().run([1, 2, 3, 4, 5, 6]).shape
(3, 2)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from understudy.errors import GraphError, InputError
from understudy.graph import Node, build, members, postorder
from understudy.graph.traversal import replace_families
from understudy.language.handles import Selector, SOp
from understudy.language.python import aggregate, indices, select, where

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: A size or a position: a number, or an s-op that has the same value everywhere.
Size: TypeAlias = "int | SOp"


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
    #: What errors call the nodes of the program.
    names: Mapping[Node, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("rows", "columns"):
            size = getattr(self, name)
            if not isinstance(size, SOp) and (type(size) is not int or size < 1):
                raise GraphError(f"a matrix has one or more {name}, a whole number, but got {size!r}")
        fill = object.__setattr__
        if self.row_stride is None:
            fill(self, "row_stride", self.columns)
        extent = largest(self.end)
        if self.reads is None:
            fill(self, "reads", extent or 0)
        if self.needs is None:
            fill(self, "needs", extent or 0)

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
            and (self.row_stride is self.columns or same_size(self.row_stride, self.columns))
            and same_size(self.column_stride, 1)
        )

    def position(self, i: Size, j: Size) -> Size:
        """Where entry (i, j) is; i and j may differ from position to position."""
        assert self.row_stride is not None
        return plus(plus(self.offset, times(i, self.row_stride)), times(j, self.column_stride))

    def at(self, i: Size, j: Size) -> SOp:
        """Entry (i, j), fetched by one head to each position that asks for it."""
        return aggregate(select(indices, self.position(i, j), "=="), self.sop)

    @property
    def inside(self) -> SOp:
        """Whether a position lies within the stretch that the matrix takes up."""
        below_end = indices < self.end
        if type(self.offset) is int and self.offset == 0:
            return below_end
        return (indices >= self.offset) & below_end

    def inside_or(self, outside: float) -> SOp:
        """The s-op, with another value outside: functions such as exp and / must not see that.

        RASP is strict: an error at any position is an error, whether or not anyone reads it.
        """
        return where(self.inside, self.sop, outside)

    # Other views -------------------------------------------------------------------------------------

    def view_transposed(self) -> Matrix:
        """The transpose as a view: no head, no copy."""
        return replace(
            self,
            rows=self.columns,
            columns=self.rows,
            row_stride=self.column_stride,
            column_stride=self.row_stride if self.row_stride is not None else 1,
        )

    def block(self, row: int, column: int, rows: int, columns: int) -> Matrix:
        """A rectangular part, as a view."""
        return replace(self, rows=rows, columns=columns, offset=self.position(row, column))

    def compact(self) -> Matrix:
        """Row-major from position 0: itself, or a copy made by one head."""
        if self.is_compact:
            return self
        i, j = coordinates(self.columns)
        return self.derive(where(indices < self.count, self.at(i, j), 0), self.rows, self.columns)

    def map(self, sop: SOp) -> Matrix:
        """Another s-op seen through the same view: the result of an elementwise function."""
        return replace(self, sop=sop)

    def derive(
        self,
        sop: SOp,
        rows: Size,
        columns: Size,
        *others: Matrix,
        room: Size = 0,
        names: Mapping[SOp, str] | None = None,
    ) -> Matrix:
        """A result: compact, made of this matrix and ``others``, using ``room`` positions meanwhile.

        ``names`` are what errors call the s-ops in it.
        """
        sources = (self, *others)
        reads = max(m.reads or 0 for m in sources)
        sizes = (largest(room), largest(times(rows, columns)), *(m.needs for m in sources))
        known = {node: name for m in sources for node, name in m.names.items()}
        known.update({value.node: name for value, name in (names or {}).items()})
        return Matrix(sop, rows, columns, reads=reads, needs=max(s or 0 for s in sizes), names=known)

    # Running ----------------------------------------------------------------------------------------

    def run(
        self, tokens: Sequence[Any] | NDArray[Any], *, executor: str = "dense", domain: str = "float"
    ) -> NDArray[Any]:
        """The matrix as a NumPy array, on these tokens (padded with 0 where room is needed)."""
        import numpy as np

        from understudy.execution import run

        given = list(np.asarray(tokens, dtype=object).ravel())
        if len(given) < (self.reads or 0):
            raise InputError(
                f"the sequence has {len(given)} tokens, but the inputs of this {self.shape} matrix "
                f"take up {self.reads}"
            )
        given += [0] * ((self.needs or 0) - len(given))
        values = run(self.sop.node, given, executor=executor, domain=domain, names=self.names)

        def number(size: Size | None) -> int:
            if not isinstance(size, SOp):
                return size or 0
            return int(run(size.node, given, executor=executor, domain=domain)[0])

        rows, columns, offset = number(self.rows), number(self.columns), number(self.offset)
        step, across = number(self.row_stride), number(self.column_stride)
        kind: Any = object if domain == "exact" else np.float64
        table = [[values[offset + i * step + j * across] for j in range(columns)] for i in range(rows)]
        return np.array(table, dtype=kind)


def coordinates(columns: Size) -> tuple[SOp, SOp]:
    """Row and column of each position of a compact matrix (and beyond its end)."""
    return indices // columns, indices % columns


def same_row(matrix: Matrix) -> Selector:
    """Each position of a compact matrix selects the entries of its own row."""
    row = indices // matrix.columns
    return select(row, row, "==")


def same_size(a: Size | None, b: Size | None) -> bool:
    """Whether two sizes are known to be equal."""
    return a is b or (type(a) is int and type(b) is int and a == b)


def require_same(a: Size, b: Size, problem: str) -> None:
    """Refuse two sizes that are known to differ."""
    if type(a) is int and type(b) is int and a != b:
        raise GraphError(problem)


def number_of(size: Size, what: str) -> int:
    """A size that must be a number, since heads are counted by it."""
    if isinstance(size, SOp):
        raise GraphError(
            f"{what} must be a number here, not an s-op: it decides how many heads there are"
        )
    return size


def plus(a: Size, b: Size) -> Size:
    """a + b, without a node where nothing is added."""
    if type(a) is int and a == 0:
        return b
    if type(b) is int and b == 0:
        return a
    return a + b


def times(a: Size, b: Size) -> Size:
    """a · b, without a node where it is a itself."""
    if type(a) is int and a == 1:
        return b
    if type(b) is int and b == 1:
        return a
    if (type(a) is int and a == 0) or (type(b) is int and b == 0):
        return 0
    return a * b


def largest(size: Size) -> int | None:
    """The greatest value of a size over its families; None if it depends on the input."""
    if not isinstance(size, SOp):
        return size
    if any(node.op in ("tokens", "indices", "length") for node in postorder(size.node)):
        return None
    from understudy.execution import run

    families = sorted(size.node.free, key=lambda f: str(f.attributes["name"]))
    values = []
    for member in members(families):
        fixed = {family: build("constant", value=value) for family, value in member.items()}
        values.append(int(run(replace_families(size.node, fixed), "x")[0]))
    return max(values)


def constant_matrix(array: np.ndarray[Any, Any] | Sequence[Sequence[float]]) -> Matrix:
    """A matrix of numbers that belong to the program, not to the input."""
    import numpy as np

    from understudy.language.python import lookup, minimum

    table = np.atleast_2d(np.asarray(array, dtype=float))
    entries = {position: float(value) for position, value in enumerate(table.ravel())}
    entries[table.size] = 0.0  # everywhere behind the matrix
    sop = lookup(minimum(indices, table.size), entries)
    rows, columns = table.shape
    return Matrix(sop, rows, columns, reads=0)
