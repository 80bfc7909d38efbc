"""Represent formulas of matrices, which are the references of claims.

A :class:`Formula` is an expression over the input matrices. All operations are defined in
``formula_operations.py``.

>>> x = Formula.input("X", 2, 3)
>>> (x @ x.T).softmax() @ x
2×3 formula (matmul)
>>> x + x.T
Traceback (most recent call last):
...
locum.errors.InputError: add: expected operands of shapes that fit, got 2×3 and 3×2
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from operator import attrgetter
from typing import Any, TypeAlias

from locum.errors import InputError
from locum.graph.traversal import walk
from locum.proofs.claims.formula_operations import Apply, Formulas, Inputs, Matrix, are_sizes

Number: TypeAlias = "int | Fraction"
Shape: TypeAlias = tuple[int, int]


def _unary(op: str, meaning: str) -> Callable[[Formula], Formula]:
    def method(self: Formula) -> Formula:
        return Formula(op, (self,))

    method.__doc__ = meaning
    return method


def _binary(op: str, meaning: str = "", reflected: bool = False) -> Callable[[Formula, Any], Formula]:
    def method(self: Formula, other: Any) -> Formula:
        operands = (self, Formula.of(other, self.shape))
        return Formula(op, operands[::-1] if reflected else operands)

    method.__doc__ = meaning
    return method


class Formula:
    """A matrix-valued expression.

    The operators ``+``, ``-``, ``*`` and ``/`` are elementwise, and ``@`` is the matrix product.
    """

    __slots__ = ("attribute", "columns", "op", "operands", "rows")

    def __init__(self, op: str, operands: Sequence[Formula] = (), attribute: Any = None) -> None:
        self.op = op
        self.operands = tuple(operands)
        self.attribute = attribute
        self.rows, self.columns = self._find_shape()

    def _find_shape(self) -> Shape:
        """Find the shape of the result by evaluating the operation on matrices of zeros."""
        inputs = {}
        try:
            if self.op == "input":
                name, rows, columns = self.attribute
                if not are_sizes(rows, columns):
                    raise ValueError
                inputs[name] = _zeros((rows, columns))
            zeros = [_zeros(operand.shape) for operand in self.operands]
            value = Formulas(inputs, lambda *_: 0).evaluate(self.op, zeros, self.attribute)
            return len(value), len(value[0])
        except (InputError, LookupError, TypeError, ValueError):
            shapes = " and ".join(f"{x.rows}×{x.columns}" for x in self.operands)
            got = shapes if self.attribute is None else f"{shapes} {self.attribute}"[:60].strip()
            fits = "a name and two sizes" if self.op == "input" else "operands of shapes that fit"
            raise InputError(f"{str(self.op)[:40]}: expected {fits}, got {got}") from None

    @property
    def shape(self) -> Shape:
        """The number of rows and the number of columns of the matrix."""
        return self.rows, self.columns

    @staticmethod
    def input(name: str, rows: int, columns: int) -> Formula:
        """Return the formula of an input matrix with this name and shape."""
        return Formula("input", (), [name, rows, columns])

    @staticmethod
    def constant(value: Number, rows: int = 1, columns: int = 1) -> Formula:
        """Return a matrix in which every entry is the same rational number."""
        return Formula("constant", (), [Fraction(value), rows, columns])

    @staticmethod
    def identity(size: int) -> Formula:
        """Return the identity matrix with ``size`` rows."""
        return Formula("identity", (), size)

    @staticmethod
    def of(value: Formula | Number | Sequence[Sequence[Any]], shape: Shape = (1, 1)) -> Formula:
        """Convert a number, or rows of 1×1 formulas and numbers, to a formula.

        A number becomes a constant matrix of the given shape.
        """
        if isinstance(value, Formula):
            return value
        if isinstance(value, (int, Fraction)):
            return Formula.constant(value, *shape)
        has_rows = isinstance(value, Sequence) and not isinstance(value, str)
        if not has_rows or not all(isinstance(row, Sequence) for row in value):
            raise InputError(
                f"expected a formula, an integer, a Fraction, or rows of them, got {value!r}; "
                "try Fraction(3, 10) for a number that is not an integer"
            )
        rows = [[Formula.of(entry) for entry in row] for row in value]
        if not rows or len({len(row) for row in rows}) != 1:
            raise InputError("expected rows of equal, positive length")
        flat = [entry for row in rows for entry in row]
        return Formula("entries", flat, [len(rows), len(rows[0])])

    @property
    def T(self) -> Formula:  # noqa: N802  # the usual symbol
        """The formula of the transposed matrix."""
        return Formula("transpose", (self,))

    def __matmul__(self, other: Formula) -> Formula:
        return Formula("matmul", (self, other))

    __add__ = _binary("add")
    __sub__ = _binary("subtract")
    __mul__ = _binary("multiply")
    __truediv__ = _binary("divide")
    __radd__ = _binary("add", reflected=True)
    __rsub__ = _binary("subtract", reflected=True)
    __rmul__ = _binary("multiply", reflected=True)
    __rtruediv__ = _binary("divide", reflected=True)
    __neg__ = _unary("negate", "Return the matrix multiplied by −1.")
    __abs__ = _unary("absolute", "Return the absolute value of every entry.")
    maximum = _binary("maximum", "Return the elementwise maximum of two matrices.")
    minimum = _binary("minimum", "Return the elementwise minimum of two matrices.")
    exp = _unary("exp", "Return the exponential of every entry.")
    hardmax = _unary("hardmax", "Return 1/k at the k maxima of each row, and 0 elsewhere.")
    determinant = _unary("determinant", "Return the determinant, as a 1×1 matrix.")
    permanent = _unary("permanent", "Return the permanent, as a 1×1 matrix.")
    cofactors = _unary(
        "cofactors", "Return the matrix with (−1)^(i+j) times the minor without row i and column j."
    )
    inverse = _unary("inverse", "Return the transposed cofactors divided by the determinant.")

    def __getitem__(self, place: tuple[int, int]) -> Formula:
        return Formula("entry", (self,), list(place))

    def relu(self) -> Formula:
        """Return the matrix with the entries max(x, 0)."""
        return self.maximum(0)

    def softmax(self, mask: str | None = None) -> Formula:
        """Return the softmax of each row.

        With ``mask="causal"``, row i contains the softmax of its columns j ≤ i, and 0 elsewhere.
        """
        return Formula("softmax", (self,), mask)

    def layer_norm(self, epsilon: Formula) -> Formula:
        """Return (x − mean) / √(variance + ε) for each entry x of a row.

        ``epsilon`` is a 1×1 matrix with the entry ε.
        """
        return Formula("layer_norm", (self, epsilon))

    def sort(self, group: int) -> Formula:
        """Sort each group of ``group`` consecutive entries of a row in descending order."""
        return Formula("sort", (self,), group)

    def match2(self, modulus: int) -> Formula:
        """Return 1 for each entry s[i] for which s[i] + s[j] is a multiple of ``modulus`` for some j.

        For other entries, return 0. The index j may be equal to i. The matrix must have one row.
        """
        return Formula("match2", (self,), modulus)

    @staticmethod
    def beside(*blocks: Formula) -> Formula:
        """Concatenate matrices horizontally."""
        return Formula("beside", blocks)

    @staticmethod
    def below(*blocks: Formula) -> Formula:
        """Concatenate matrices vertically."""
        return Formula("below", blocks)

    def __repr__(self) -> str:
        return f"{self.rows}×{self.columns} formula ({self.op})"


def _zeros(shape: Shape) -> list[list[int]]:
    return [[0] * shape[1] for _ in range(shape[0])]


def evaluate_formulas(
    roots: Sequence[Formula],
    inputs: Inputs,
    apply: Apply,
    known: Mapping[Formula, Matrix] | None = None,
) -> dict[Formula, Matrix]:
    """Evaluate the formulas ``roots`` and all formulas of which they consist.

    ``known`` contains the values of formulas that were evaluated before. Return the value of each
    formula.
    """
    values, formulas = dict(known or {}), Formulas(inputs, apply)
    for part in walk(roots, attrgetter("operands"), lambda one: one not in values):
        operands = [values[operand] for operand in part.operands]
        values[part] = formulas.evaluate(part.op, operands, part.attribute)
    return values
