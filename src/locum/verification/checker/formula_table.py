"""The closed table of operations that formulas of matrices are made of, with their shapes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

from locum.errors import InputError

Shape: TypeAlias = tuple[int, int]
#: What an operation carries beside its operands.
Attribute: TypeAlias = Any

#: Entries of one matrix, and operands of one operation, at most.
LARGEST = 100_000
_RATIONAL = re.compile(r"-?[0-9]+(/[1-9][0-9]*)?")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,11}")
#: Names that statements use themselves: the program and identity matrices.
_RESERVED = re.compile(r"P|I(_.*)?")


class Operand(Protocol):
    """What has a shape."""

    rows: int
    columns: int

    @property
    def shape(self) -> Shape: ...


Operands: TypeAlias = Sequence[Operand]


@dataclass(frozen=True)
class Operation:
    """A row of the table: the number of operands (None: one or more), and the rule for the shape."""

    operands: int | None
    shape: Callable[[Operands, Attribute], Shape]
    meaning: str
    #: Whether it carries an attribute.
    carries: bool = False


def rational(text: Any, digits: int = 1000) -> Fraction:
    """Read ``"-3/7"``; refuse what is not a rational number of at most so many digits."""
    if not isinstance(text, str) or len(text) > digits or not _RATIONAL.fullmatch(text):
        raise InputError(f"expected a rational number such as -3/7, got {str(text)[:40]!r}")
    return Fraction(text)


def _is_size(*values: Any) -> bool:
    return all(type(value) is int and 1 <= value <= LARGEST for value in values)


def _input(_: Operands, attribute: Attribute) -> Shape:
    match attribute:
        case [str(name), rows, columns] if (
            _NAME.fullmatch(name) and not _RESERVED.fullmatch(name) and _is_size(rows, columns)
        ):
            return rows, columns
    raise InputError(
        "expected an input as [name, rows, columns], the name being a letter and at most eleven "
        f"letters, digits or underscores, got {str(attribute)[:60]}"
    )


def _constant(_: Operands, attribute: Attribute) -> Shape:
    match attribute:
        case [value, rows, columns] if _is_size(rows, columns):
            rational(value)
            return rows, columns
    raise InputError(f"expected a constant as [number, rows, columns], got {str(attribute)[:60]}")


def _identity(_: Operands, size: Attribute) -> Shape:
    if not _is_size(size):
        raise InputError(f"expected the order of an identity matrix, got {str(size)[:40]}")
    return size, size


def _entries(operands: Operands, attribute: Attribute) -> Shape:
    match attribute:
        case [rows, columns] if _is_size(rows, columns) and rows * columns == len(operands):
            if all(part.shape == (1, 1) for part in operands):
                return rows, columns
    raise InputError("expected entries as 1×1 formulas, and [rows, columns] that fit their number")


def _entry(operands: Operands, attribute: Attribute) -> Shape:
    match attribute:
        case [int(i), int(j)] if 0 <= i < operands[0].rows and 0 <= j < operands[0].columns:
            return 1, 1
    raise InputError(f"expected the row and column of an entry, got {str(attribute)[:40]}")


def _same(operands: Operands, _: Attribute) -> Shape:
    if any(part.shape != operands[0].shape for part in operands):
        shapes = " and ".join(f"{r}×{c}" for r, c in (part.shape for part in operands))
        raise InputError(f"expected matrices of one shape, got {shapes}")
    return operands[0].shape


def _transposed(operands: Operands, _: Attribute) -> Shape:
    return operands[0].columns, operands[0].rows


def _product(operands: Operands, _: Attribute) -> Shape:
    a, b = operands
    if a.columns != b.rows:
        raise InputError(
            "matmul: expected as many columns on the left as rows on the right, "
            f"got {a.rows}×{a.columns} and {b.rows}×{b.columns}"
        )
    return a.rows, b.columns


def _softmax(operands: Operands, mask: Attribute) -> Shape:
    if mask is not None and mask != "causal":
        raise InputError(f"expected no mask, or causal, got {str(mask)[:40]!r}")
    return operands[0].shape


def _square(largest: int) -> Callable[[Operands, Attribute], Shape]:
    def shape(operands: Operands, _: Attribute) -> Shape:
        rows, columns = operands[0].shape
        if rows != columns or rows > largest:
            raise InputError(
                f"expected a square matrix of order at most {largest}, got {rows}×{columns}"
            )
        return rows, columns

    return shape


def _scalar_of_square(operands: Operands, attribute: Attribute) -> Shape:
    _square(8)(operands, attribute)
    return 1, 1


def _layer_norm(operands: Operands, _: Attribute) -> Shape:
    if operands[1].shape != (1, 1):
        raise InputError("layer_norm: expected a matrix and a 1×1 matrix ε")
    return operands[0].shape


def _sort(operands: Operands, group: Attribute) -> Shape:
    if not _is_size(group) or operands[0].columns % group:
        raise InputError("expected groups that divide the number of columns")
    return operands[0].shape


def _match2(operands: Operands, modulus: Attribute) -> Shape:
    if not _is_size(modulus) or operands[0].rows != 1:
        raise InputError("expected a sequence (a 1×n matrix) and a positive modulus")
    return operands[0].shape


def _beside(operands: Operands, _: Attribute) -> Shape:
    if len({part.rows for part in operands}) != 1:
        raise InputError("expected matrices of equally many rows side by side")
    return operands[0].rows, sum(part.columns for part in operands)


def _below(operands: Operands, _: Attribute) -> Shape:
    if len({part.columns for part in operands}) != 1:
        raise InputError("expected matrices of equally many columns one below the other")
    return sum(part.rows for part in operands), operands[0].columns


#: The closed table of operations.
OPERATIONS: dict[str, Operation] = {
    "input": Operation(0, _input, "an input matrix: [name, rows, columns]", True),
    "constant": Operation(0, _constant, "one number everywhere: [number, rows, columns]", True),
    "identity": Operation(0, _identity, "the identity matrix of an order", True),
    "entries": Operation(None, _entries, "a matrix from its entries, row by row", True),
    "entry": Operation(1, _entry, "one entry: [row, column]", True),
    "transpose": Operation(1, _transposed, "aᵀ"),
    "matmul": Operation(2, _product, "the matrix product"),
    "add": Operation(2, _same, "a + b"),
    "subtract": Operation(2, _same, "a − b"),
    "multiply": Operation(2, _same, "a · b, entry by entry"),
    "divide": Operation(2, _same, "a / b, entry by entry"),
    "negate": Operation(1, _same, "−a"),
    "absolute": Operation(1, _same, "|a|, entry by entry"),
    "exp": Operation(1, _same, "e to the power of a, entry by entry"),
    "maximum": Operation(2, _same, "the greater, entry by entry"),
    "minimum": Operation(2, _same, "the smaller, entry by entry"),
    "softmax": Operation(1, _softmax, "exp(a) over the sum of exp(a) in the row", True),
    "layer_norm": Operation(2, _layer_norm, "(a − mean) / √(variance + ε) in each row"),
    "hardmax": Operation(1, _same, "1/k at the k greatest entries of the row, else 0"),
    "determinant": Operation(1, _scalar_of_square, "det a"),
    "permanent": Operation(1, _scalar_of_square, "per a"),
    "cofactors": Operation(1, _square(8), "(−1)^(i+j) times the minor without row i and column j"),
    "inverse": Operation(1, _square(8), "the transposed cofactors over the determinant"),
    "sort": Operation(1, _sort, "each group of consecutive entries of a row, greatest first", True),
    "match2": Operation(
        1, _match2, "1 if a[i] + a[j] is a multiple of the modulus for some j, else 0", True
    ),
    "beside": Operation(None, _beside, "matrices side by side"),
    "below": Operation(None, _below, "matrices one below the other"),
}
