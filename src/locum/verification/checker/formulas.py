"""Formulas of matrices: what a claim says a program computes.

A :class:`Formula` is an expression over the input matrices, made of the closed table
in ``formula_table.py``. It is data: it can be written to a certificate, read back, printed
(``writing.py``) and evaluated, by the checker (``reference.py``) and by the prover
(``claims/meaning.py``), each with code of its own.

>>> x = Formula.input("X", 2, 3)
>>> str(x.T), str((x @ x.T).softmax() @ x), (x @ x.T).shape
('Xᵀ', 'σ(XXᵀ)X', (2, 2))
>>> x + x.T
Traceback (most recent call last):
...
locum.errors.InputError: expected matrices of one shape, got 2×3 and 3×2
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from locum.errors import InputError
from locum.verification.checker.formula_table import LARGEST, OPERATIONS, Attribute, Shape
from locum.verification.checker.writing import nodes, written

Number: TypeAlias = "int | Fraction"


class Formula:
    """A matrix-valued expression; ``+``, ``-``, ``*`` and ``/`` work entry by entry, ``@`` does not."""

    __slots__ = ("attribute", "columns", "op", "operands", "rows")

    def __init__(self, op: str, operands: Sequence[Formula] = (), attribute: Attribute = None) -> None:
        row = OPERATIONS.get(op) if isinstance(op, str) else None
        if row is None:
            raise InputError(f"expected one of the operations {', '.join(OPERATIONS)}, got {op!r}")
        if len(operands) > LARGEST or (
            len(operands) < 1 if row.operands is None else len(operands) != row.operands
        ):
            count = "one or more" if row.operands is None else row.operands
            raise InputError(f"{op}: expected {count} operand(s), got {len(operands)}")
        self.op = op
        self.operands = tuple(operands)
        self.attribute = attribute
        if not row.carries and attribute is not None:
            raise InputError(f"{op}: expected no attribute, got {str(attribute)[:40]}")
        self.rows, self.columns = row.shape(self.operands, attribute)
        if self.rows * self.columns > LARGEST:
            raise InputError(f"{op}: expected a matrix of at most {LARGEST:,} entries")

    @property
    def shape(self) -> Shape:
        """Rows and columns."""
        return self.rows, self.columns

    # Leaves ---------------------------------------------------------------------------------------

    @staticmethod
    def input(name: str, rows: int, columns: int) -> Formula:
        """Name an input matrix."""
        return Formula("input", (), [name, rows, columns])

    @staticmethod
    def constant(value: Number, rows: int = 1, columns: int = 1) -> Formula:
        """Fill a matrix with one rational number."""
        return Formula("constant", (), [str(Fraction(value)), rows, columns])

    @staticmethod
    def identity(size: int) -> Formula:
        """Build the identity matrix."""
        return Formula("identity", (), size)

    @staticmethod
    def of(value: Formula | Number | Sequence[Sequence[Any]], shape: Shape = (1, 1)) -> Formula:
        """Turn a number, or rows of 1×1 formulas and numbers, into a formula."""
        if isinstance(value, Formula):
            return value
        if isinstance(value, (int, Fraction)):
            return Formula.constant(value, *shape)
        if not isinstance(value, Sequence) or not all(isinstance(row, Sequence) for row in value):
            raise InputError(
                f"expected a formula, an integer, a Fraction, or rows of them, got {value!r}; "
                "try Fraction(3, 10) for a number that is not an integer"
            )
        rows = [[Formula.of(entry) for entry in row] for row in value]
        if not rows or len({len(row) for row in rows}) != 1:
            raise InputError("expected rows of equal, positive length")
        flat = [entry for row in rows for entry in row]
        return Formula("entries", flat, [len(rows), len(rows[0])])

    # Operations -----------------------------------------------------------------------------------

    @property
    def T(self) -> Formula:  # noqa: N802  # the field's own sign
        """The transpose."""
        return Formula("transpose", (self,))

    def __matmul__(self, other: Formula) -> Formula:
        return Formula("matmul", (self, other))

    def _with(self, op: str, other: Any) -> Formula:
        return Formula(op, (self, Formula.of(other, self.shape)))

    def __add__(self, other: Any) -> Formula:
        return self._with("add", other)

    def __sub__(self, other: Any) -> Formula:
        return self._with("subtract", other)

    def __mul__(self, other: Any) -> Formula:
        return self._with("multiply", other)

    def __truediv__(self, other: Any) -> Formula:
        return self._with("divide", other)

    def __radd__(self, other: Any) -> Formula:
        return Formula.of(other, self.shape) + self

    def __rsub__(self, other: Any) -> Formula:
        return Formula.of(other, self.shape) - self

    def __rmul__(self, other: Any) -> Formula:
        return Formula.of(other, self.shape) * self

    def __rtruediv__(self, other: Any) -> Formula:
        return Formula.of(other, self.shape) / self

    def __neg__(self) -> Formula:
        return Formula("negate", (self,))

    def __abs__(self) -> Formula:
        return Formula("absolute", (self,))

    def __getitem__(self, place: tuple[int, int]) -> Formula:
        return Formula("entry", (self,), list(place))

    def exp(self) -> Formula:
        """Return e to the power of every entry."""
        return Formula("exp", (self,))

    def maximum(self, other: Any) -> Formula:
        """Return the greater of two, entry by entry."""
        return self._with("maximum", other)

    def minimum(self, other: Any) -> Formula:
        """Return the smaller of two, entry by entry."""
        return self._with("minimum", other)

    def relu(self) -> Formula:
        """Return max(x, 0), entry by entry."""
        return self.maximum(0)

    def softmax(self, mask: str | None = None) -> Formula:
        """Return the softmax of each row; ``mask="causal"`` keeps column j ≤ row i, the rest is 0."""
        return Formula("softmax", (self,), mask)

    def layer_norm(self, epsilon: Formula) -> Formula:
        """Return (x − mean) / √(variance + ε) in each row, ε being a 1×1 matrix."""
        return Formula("layer_norm", (self, epsilon))

    def hardmax(self) -> Formula:
        """Return 1/k at the k greatest entries of each row, 0 elsewhere (average-hard attention)."""
        return Formula("hardmax", (self,))

    def determinant(self) -> Formula:
        """Return the determinant, as a 1×1 matrix."""
        return Formula("determinant", (self,))

    def permanent(self) -> Formula:
        """Return the permanent, as a 1×1 matrix."""
        return Formula("permanent", (self,))

    def cofactors(self) -> Formula:
        """Return the matrix of cofactors."""
        return Formula("cofactors", (self,))

    def inverse(self) -> Formula:
        """Return the inverse: transposed cofactors over the determinant."""
        return Formula("inverse", (self,))

    def sort(self, group: int) -> Formula:
        """Sort every ``group`` consecutive entries of each row, greatest first."""
        return Formula("sort", (self,), group)

    def match2(self, modulus: int) -> Formula:
        """Return 1 where the entry plus some entry (maybe itself) is a multiple of ``modulus``."""
        return Formula("match2", (self,), modulus)

    @staticmethod
    def beside(*blocks: Formula) -> Formula:
        """Put matrices side by side."""
        return Formula("beside", blocks)

    @staticmethod
    def below(*blocks: Formula) -> Formula:
        """Put matrices one below the other."""
        return Formula("below", blocks)

    def __str__(self) -> str:
        return written(self)

    __repr__ = __str__


def to_json(*roots: Formula) -> dict[str, Any]:
    """Write formulas as a flat table: ``[operation, [numbers of the operands], attribute]`` each."""
    numbers: dict[int, int] = {}
    table: list[Any] = []
    for formula in nodes(*roots):
        numbers[id(formula)] = len(table)
        table.append([formula.op, [numbers[id(part)] for part in formula.operands], formula.attribute])
    return {"table": table, "roots": [numbers[id(root)] for root in roots]}


def from_json(content: Any) -> list[Formula]:
    """Read what :func:`to_json` wrote; anything else is an :class:`InputError`."""
    match content:
        case {"table": list(table), "roots": list(roots)} if len(table) <= LARGEST:
            pass
        case _:
            raise InputError("expected formulas as a table and its roots")
    formulas: list[Formula] = []
    for row in table:
        match row:
            case [str(op), list(operands), attribute] if all(
                type(number) is int and 0 <= number < len(formulas) for number in operands
            ):
                formulas.append(Formula(op, [formulas[number] for number in operands], attribute))
            case _:
                raise InputError(
                    "expected [operation, [earlier rows], attribute] in a table of formulas"
                )
    if not all(type(root) is int and 0 <= root < len(formulas) for root in roots):
        raise InputError("expected the roots of formulas to be rows of their table")
    return [formulas[root] for root in roots]
