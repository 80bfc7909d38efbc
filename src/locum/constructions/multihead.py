"""Apply an operation to H blocks at once, as in the multi-head lemma.

The operation is applied to views whose offset contains a family parameter h, so its heads become
families of heads. One head then stacks the H results if they are at the same positions, otherwise one
head for each result. Blocks cannot interfere, since head h reads only at its offsets. In the paper's
form, every ``length`` in a listing must also become ``length/H`` (erratum E13). In Locum, sizes refer
to one block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from locum.constructions.matrix import Matrix, as_matrix
from locum.constructions.sizes import Size, number_of, plus, same_size, times
from locum.errors import GraphError
from locum.graph.traversal import replace_families
from locum.rasp.handles import SOp
from locum.rasp.python import family, indices, sum_over, where
from locum.settings import require_integer


def multihead(
    operation: Callable[..., Matrix],
    heads: int,
    *firsts: Matrix,
    steps: Sequence[int] | None = None,
) -> Matrix:
    """Apply ``operation`` to H sets of matrices and stack the r×c results as an (H·r)×c matrix.

    ``firsts`` is the first set, with one matrix per operand. The other matrices of each operand follow
    the first one, A⁰ ∥ A¹ ∥ … ∥ B⁰ ∥ B¹ ∥ …, as in the paper. Alternatively, ``steps`` contains the
    distance of consecutive matrices for each operand, for example if they are blocks of columns.

    >>> from locum import tokens
    >>> from locum.constructions.transpose import transpose
    >>> multihead(transpose, 2, Matrix(tokens, 1, 2)).run([1, 2, 3, 4]).tolist()
    [[1.0], [2.0], [3.0], [4.0]]
    """
    if steps is not None and len(steps) != len(firsts):
        raise GraphError(f"multihead: expected steps for {len(firsts)} operands, got {len(steps)}")
    h = family(require_integer(heads, "heads", error=GraphError))
    views = [
        block(as_matrix(first, "multihead"), h, None if steps is None else steps[place])
        for place, first in enumerate(firsts)
    ]
    return stacked(as_matrix(operation(*views), "what multihead brings together"), [(h, heads)])


def stacked(result: Matrix, families: Sequence[tuple[SOp, int]]) -> Matrix:
    """Stack the results for all values of families into one matrix.

    ``families`` contains each family with its size, in the order of nested loops.
    """
    number: Size = 0
    for member, size in families:
        number = plus(times(number, size), member)
    r, c = number_of(result.rows, "rows"), number_of(result.columns, "columns")
    local = indices % (r * c)
    entry = result.at(local // c, local % c)
    total = sum_over(*(member for member, _ in families), where(indices // (r * c) == number, entry, 0))
    # The sum renames its families, so the nodes with error messages must be renamed in the same way.
    renaming = dict(zip((member.node for member, _ in families), total.node.inputs[1:], strict=True))
    names = {replace_families(node, renaming): name for node, name in result.names.items()}
    count = math.prod(size for _, size in families)
    return result.derive(total, count * r, c).replace(names=names)


def block(first: Matrix, h: SOp, step: int | None = None) -> Matrix:
    """Return the view of block ``h`` of an operand, given its first block and the distance between
    blocks.
    """
    if step is None:
        lies_together = same_size(first.row_stride, first.columns) and same_size(first.column_stride, 1)
        if not lies_together and not (same_size(first.rows, 1) and same_size(first.column_stride, 1)):
            raise GraphError(
                f"expected the distances between the blocks of a {first.shape_label} view with "
                "strides, got "
                "none; try steps=(…)"
            )
        step = number_of(first.rows, "rows") * number_of(first.columns, "columns")
    moving = first.replace(offset=plus(first.offset, times(h, step)), reads=-1, storage=-1)
    reads = first.reads if first.is_result else max(first.reads, moving.reads)
    return moving.replace(reads=reads, storage=max(first.storage, moving.storage))
