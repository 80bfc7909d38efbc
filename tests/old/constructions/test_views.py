"""Views of tensors and matrices, against NumPy's views of the same numbers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import locum
from locum.constructions import Matrix, concatenate, constant_matrix, matmul
from locum.constructions.tensor import Tensor
from tests.old.constructions.matrices import once

NUMBERS = np.arange(24.0)

#: A view of a tensor, and the same view of an array.
VIEWS: dict[str, tuple[Any, Any]] = {
    "transpose": (lambda t: t.transpose(0, 1), lambda a: a.swapaxes(0, 1)),
    "slice": (lambda t: t.slice(1, 1, 3), lambda a: a[:, 1:3]),
    "slice with a step": (lambda t: t.slice(1, 0, 3, 2), lambda a: a[:, 0:3:2]),
    "slices": (lambda t: t.slice(0, 1, 2).slice(1, 1, 2), lambda a: a[1:2, 1:2]),
    "slice of a transpose": (
        lambda t: t.transpose(0, 1).slice(0, 1, 3),
        lambda a: a.swapaxes(0, 1)[1:3],
    ),
    "select": (lambda t: t.select(0, 1), lambda a: a[1]),
    "select in a slice": (lambda t: t.slice(1, 1, 3).select(1, 1), lambda a: a[:, 1:3][:, 1]),
    "unsqueeze": (lambda t: t.unsqueeze(1), lambda a: a[:, None]),
    "unflatten": (
        lambda t: t.unflatten(1, 3),
        lambda a: a.reshape(a.shape[0], 3, 1, *a.shape[2:]),
    ),
    "expand": (lambda t: t.expand(5, *t.shape), lambda a: np.broadcast_to(a, (5, *a.shape))),
}
#: The views that change the number of dimensions: of a matrix, they are tensors.
OF_OTHER_RANK = ("select", "select in a slice", "unsqueeze", "unflatten", "expand")


def read(tensor: Tensor[Any], tokens: list[float]) -> np.ndarray[Any, Any]:
    """Read each entry of a tensor by a head."""
    index = itertools.product(*map(range, tensor.shape))
    return np.array([tensor.at(*i)(tokens)[0] for i in index]).reshape(tensor.shape)


@once
@pytest.mark.parametrize("name", VIEWS)
def test_views_have_the_entries_of_numpys_views(name: str) -> None:
    view, expected = VIEWS[name]
    tensor = Tensor(locum.tokens, (2, 3, 4), (12, 4, 1))
    assert np.array_equal(read(view(tensor), NUMBERS.tolist()), expected(NUMBERS.reshape(2, 3, 4)))
    for matrix, array in (
        (Matrix(locum.tokens, 2, 3), NUMBERS[:6].reshape(2, 3)),
        (Matrix(locum.tokens, 2, 3, 2, 8, 2), NUMBERS[2:18].reshape(2, 8)[:, :6:2]),
        (constant_matrix([[7.0, 8.0, 9.0], [4.0, 5.0, 6.0]]), np.array([[7, 8, 9], [4, 5, 6]])),
    ):
        part = view(matrix)
        assert np.array_equal(read(part, NUMBERS.tolist()), expected(array))
        assert isinstance(part, Matrix) == (name not in OF_OTHER_RANK)
        if isinstance(part, Matrix):
            assert part.table is matrix.table
            assert np.array_equal(part.run(NUMBERS), expected(array))


@once
def test_views_of_matrices_may_have_s_ops_as_sizes() -> None:
    matrix = Matrix(locum.tokens, 3, locum.length // 3)
    turned = matrix.transpose(0, 1)
    for columns in (2, 4):
        array = NUMBERS[: 3 * columns].reshape(3, columns)
        assert np.array_equal(turned.run(array.ravel()), array.T)
        assert np.array_equal(turned.slice(1, 1, 3).run(array.ravel()), array.T[:, 1:3])
        assert np.array_equal(matrix.slice(0, 1, 3).compact().run(array.ravel()), array[1:3])


@once
def test_views_outside_of_a_tensor_are_rejected() -> None:
    matrix, tensor = Matrix(locum.tokens, 2, 3), Tensor(locum.tokens, (2, 3), (3, 1))
    for start, stop in ((-1, 2), (2, 1), (1, 4)):
        for view in (matrix, tensor):
            with pytest.raises(locum.GraphError, match="slice: expected a range within the 3 entries"):
                view.slice(1, start, stop)
    for view in (matrix, tensor):
        with pytest.raises(locum.GraphError, match="expected a range within the 2 entries"):
            view.select(0, 2)
        with pytest.raises(locum.GraphError, match="permute: expected each of 2 dimensions once"):
            view.permute(0)
    with pytest.raises(locum.GraphError, match="a matrix: expected two sizes and two strides"):
        matrix.replace(shape=(2, 3, 1), strides=(3, 1, 1))
    with pytest.raises(locum.GraphError, match="rows: expected an integer ≥ 1, got 0"):
        matrix.slice(0, 1, 1)
    with pytest.raises(locum.GraphError, match="row stride: expected an integer ≥ 0, got -3"):
        matrix.flip(0)
    with pytest.raises(TypeError, match=r"replace: expected fields among .*shape.*, got rows"):
        matrix.replace(rows=1)


@once
def test_results_of_a_matrix_keep_what_their_inputs_need() -> None:
    column, row = concatenate(locum.tokens, (4, 1), (1, 4))
    product = matmul(column, row)
    assert (product.reads, product.needs) == (8, 16)
    for view in (product.transpose(0, 1), product.slice(0, 1, 3), product.block(1, 1, 2, 2)):
        assert (view.reads, view.needs) == (8, 16)
    tokens = Matrix(locum.tokens, 4, 4)
    assert (tokens.block(0, 0, 2, 2).reads, tokens.block(0, 0, 2, 2).needs) == (6, 6)
