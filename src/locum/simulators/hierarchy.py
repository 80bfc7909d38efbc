"""Run a smaller T on a larger U (Corollary hierarchy, corrected).

The paper pads X with rows of zeros. This padding is not exact (erratum E15). The n − m padded keys have
score 0, and each adds e⁰ to the denominator Z of a row. The result is T(X)·Z/(Z + n − m).
:func:`paper_padding` computes this result, and :func:`padding_formula` predicts it.

:func:`embed` is correct. If U has at least two more columns than T, U itself suffices: the rows of X
are repeated up to n rows, and each row has the additional entries 1 and −log c, where c is the number
of its copies. One more entry of A adds −log c to the scores of a key, so the c copies together have
the weight of one key. Otherwise, the softmax of another simulator includes only the first m keys. The
number m is an additional token, so one program works for every m. A causal U needs neither: the
padding comes last, and no row of X attends to it.

>>> from locum.simulators import Attention, UniversalSimulator
>>> T, U = Attention(A=[[0.0]], V=[[1.0]]), UniversalSimulator(2, 1, 1)
>>> paper_padding(U, T, [[1.0]]).tolist(), U.embed(T, [[1.0]]).tolist()
([[0.5]], [[1.0]])
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from locum.errors import InputError
from locum.execution.arrays import Array, numpy_of
from locum.simulators.attention_order import AttentionOrder
from locum.simulators.layer_simulator import LayerSimulator
from locum.simulators.matrices import as_given, computable, matrix
from locum.simulators.modules.attention import Attention
from locum.simulators.modules.module import Module, Numbers
from locum.simulators.order import Order

#: The fields that may be smaller in T than in U. All other fields must be equal, except ``combine`` if
#: T has one head and no W_O.
_SIZES = {"n", "d", "d_v", "heads", "projection", "width", "feed_forward"}


def embed(U: LayerSimulator, T: Module, X: Array, *, executor: str | None = None) -> Array:
    """Return T(X), computed by a U of the same kind whose order is larger than or equal to the order of
    T.

    Only softmax and linear attention without a mask or with a causal mask are supported.
    """
    order, original = U.order, X
    X = computable(matrix(X, "X"), "X")
    small = T.order(len(X))
    matrix(X, "X", (None, small.attention.d))
    require_smaller(small, order)
    if U.style.recipe == "inverse" and small != order:
        raise InputError(
            "the inverse construction does not support a smaller T, since A and V padded with zeros "
            'are singular; try another recipe, such as "fetch"'
        )
    simulator = U
    matrices = T.matrices() | {"X": [X]}
    padded = small.n < order.n and _sees_padded_rows(order)
    repeated = padded and U.style.base is None and _has_columns_for_copies(small, order)
    if padded and not repeated:
        simulator = U.masked
        matrices["rows"] = [np.full((1, 1), float(small.n))]
    simulator.require_length(executor)  # checked before anything of that size is allocated
    if "b_O" in matrices:
        wide = np.zeros((1, order.attention.columns))
        wide[:, _attention_columns(small.attention, order.attention)] = numpy_of(matrices["b_O"][0])
        matrices["b_O"] = [wide]
    large = simulator.layout.enlarged(matrices)
    if repeated:
        _repeat_rows(large, small)
    result = simulator.run_parts(simulator.output, simulator.parts(large, X), executor)
    return as_given(result[: small.n, _columns(small, order)], original)


def _sees_padded_rows(order: Order) -> bool:
    """Return whether padded rows of X would count as keys, so that the number of rows must be a token.

    A causal attention does not attend to the padding, which comes last. Rows of zeros add nothing to
    linear attention, but they may not be zero after a norm with a bias.
    """
    if order.attention.mask == "causal":
        return False
    return order.attention.kind == "softmax" or (order.norm == "pre" and order.affine)


def _has_columns_for_copies(small: Order, large: Order) -> bool:
    """Return whether U has two columns more than T, and the scores of a softmax without biases."""
    outer = large.attention
    plain = outer.kind == "softmax" and outer.pooling == "softmax" and not outer.bias
    return plain and outer.d >= small.attention.d + 2


def _repeat_rows(large: dict[str, list[Array]], small: Order) -> None:
    """Fill X with copies of its first rows; the copies of a row share its weight."""
    X, e = large["X"][0], small.attention.d
    original = np.arange(len(X)) % small.n
    X[:] = X[original]
    X[:, e] = 1.0
    X[:, e + 1] = -np.log(np.bincount(original))[original]
    for A in large["A"]:
        A[e, e + 1] = 1.0


def paper_padding(U: LayerSimulator, T: Attention, X: Array, *, executor: str | None = None) -> Array:
    """Run T on a larger U with the paper's padding.

    If rows are padded, the result can differ from T(X). The padding consists of zeros and an identity
    block in A, as in the paper's proof.
    """
    X = matrix(X, "X")
    small = T.order(len(X))
    require_smaller(small, U.order)
    large = U.layout.enlarged(T.matrices() | {"X": [X]})
    e, d = small.attention.d, U.order.attention.d
    large["A"][0][range(e, d), range(e, d)] = 1.0
    result = U.run_parts(U.output, U.parts(large, X), executor)
    return result[: small.n, : small.columns]


def padding_formula(T: Attention, X: Array, n: int) -> Numbers:
    """Return T(X)·Z/(Z + n − m), the result of the paper's padding of m rows to n rows.

    Z are the denominators of T's softmax. T must have no mask, no biases and no hard attention.
    """
    steps = T.steps(X)
    weights = np.exp(steps["scores"]).sum(axis=1, keepdims=True)
    return np.asarray(steps["output"] * weights / (weights + (n - len(steps["scores"]))))


def require_smaller(small: Order, large: Order) -> None:
    """Raise an error with the reason if T, of order ``small``, cannot run on a U of order ``large``."""
    for name in ("n", "d", "d_v", "heads", "projection", "width"):
        owner = small if name == "n" else small.attention
        size, room = getattr(owner, name), getattr(large if name == "n" else large.attention, name)
        if size > room:
            raise InputError(f"T is larger than U: its {name} is {size}, but {name} of U is {room}")
    for d1, d2 in zip(small.feed_forward or (), large.feed_forward or (), strict=False):
        if d1 > d2:
            raise InputError(f"T is larger than U: its feed-forward is {small.feed_forward}")
    # For a single head, concatenation and summation are equivalent.
    one_alone = small.attention.heads == 1 and not small.attention.projection
    for a, b in ((small, large), (small.attention, large.attention)):
        for field in fields(a):
            if field.name in _SIZES | {"attention"}:
                continue
            mine, its = getattr(a, field.name), getattr(b, field.name)
            if field.name == "combine" and one_alone:
                continue
            if mine != its:
                raise InputError(f"T and U differ in kind: {field.name} is {mine} in T, {its} in U")
    if (small.feed_forward is None) != (large.feed_forward is None):
        raise InputError("T and U differ in kind: only one of them has a feed-forward")
    if bool(small.attention.projection) != bool(large.attention.projection):
        raise InputError("T and U differ in kind: only one of them has a W_O")
    _require_padding_is_harmless(small, large)


def _require_padding_is_harmless(small: Order, large: Order) -> None:
    inner, outer = small.attention, large.attention
    if large.norm != "none" and inner.d != outer.d:
        raise InputError(f"a layer norm takes its mean over all columns: d must also be {outer.d} in T")
    if outer.kind not in ("softmax", "linear") or (outer.kind == "linear" and not _plain(outer)):
        raise InputError(f"embedding is for softmax and plain linear attention, not {outer.kind}")
    side_by_side = inner.combine == "concatenate" and not inner.projection and inner.heads > 1
    if side_by_side and large.residual and inner.d_v != outer.d_v:
        raise InputError("concatenated heads with a residual sum require the same d_v in T and U")
    if large.memory or outer.mask not in (None, "causal"):
        raise InputError("embedding is for self-attention without a mask, or with a causal one")


def _plain(attention: AttentionOrder) -> bool:
    """Return whether padded rows of zeros add nothing to this linear attention."""
    return attention.feature_map == "identity" and not attention.bias


def _columns(small: Order, large: Order) -> list[int]:
    """Return the indices of the columns of U's result that contain T(X)."""
    if small.feed_forward is not None:
        return list(range(small.columns))
    return _attention_columns(small.attention, large.attention)


def _attention_columns(inner: AttentionOrder, outer: AttentionOrder) -> list[int]:
    """Return the indices of the columns of U's attention that contain T's attention.

    If heads are concatenated without W_O, these are the first columns of each head.
    """
    if inner.projection or inner.combine == "sum":
        return list(range(inner.columns))
    return [h * outer.d_v + j for h in range(inner.heads) for j in range(inner.d_v)]
