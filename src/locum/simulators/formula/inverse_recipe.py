"""Define the alternative construction of U with matrix inverses (appendix, equation inv).

The last attention layer receives Y = XAV, and the matrices of this layer depend on T:

    σ(Y ((AV)ᵀV)⁻¹ Yᵀ) Y (AV)⁻¹V  =  σ(X A Xᵀ) X V,

for square, non-singular A and V. The paper inverts matrices of order 3; Locum supports any order.
Singular matrices are not supported (the matrix A of Figure 2 is singular).
"""

from __future__ import annotations

import numpy as np

from locum.constructions import Matrix, inverse
from locum.errors import GraphError, InputError
from locum.execution.arrays import numpy_of
from locum.simulators.attention_order import AttentionOrder
from locum.simulators.formula.head import Of, Steps, Style
from locum.simulators.modules.attention import Attention
from locum.simulators.modules.module import Numbers

#: The error message for a singular matrix.
SINGULAR = 'recipe "inverse": expected non-singular A and V, got a singular matrix; try recipe="fetch"'


def inverse_head(order: AttentionOrder, X: Matrix, Y: Matrix, of: Of, style: Style) -> Steps:
    """Return the steps of one attention head, computed by equation (inv)."""
    if order.d != order.d_v or order.bias or Y is not X or order.heads > 1:
        raise GraphError(
            "the inverse construction is for one head of self-attention without biases, with d = d_v: "
            f"A and V must have inverses, but d = {order.d} and d_v = {order.d_v}"
            + ("" if order.heads == 1 else f", and there are {order.heads} heads")
        )
    if order.mask is not None or order.pooling != "softmax" or order.kind != "softmax":
        raise GraphError("the inverse construction is for softmax attention without a mask")
    mm, A, V = style.matmul, of("A"), of("V")
    AV = mm(A, V)
    XAV = mm(X, AV)
    attention = _inverse(mm(style.transpose(AV), V))
    value = mm(_inverse(AV), V)
    scores = mm(mm(XAV, attention), style.transpose(XAV))
    weights = style.softmax(scores, None)
    return {
        "AV": AV,
        "XAV": XAV,
        "((AV)ᵀV)⁻¹": attention,
        "(AV)⁻¹V": value,
        "scores": scores,
        "softmax": weights,
        "output": mm(weights, mm(XAV, value)),
    }


def _inverse(m: Matrix) -> Matrix:
    """Return the inverse of a matrix, with an error message that refers to A and V."""
    inverted = inverse(m)
    return inverted.replace(names=dict.fromkeys(inverted.names, SINGULAR))


def inverse_steps(T: Attention, X: Numbers) -> dict[str, Numbers]:
    """Return the additional steps of :func:`inverse_head`, computed directly with NumPy's inverse."""
    A, V = numpy_of(T.A), numpy_of(T.V)
    AV = A @ V
    try:
        attention, value = np.linalg.inv(AV.T @ V), np.linalg.inv(AV) @ V
    except np.linalg.LinAlgError:
        raise InputError(SINGULAR) from None
    return {"AV": AV, "XAV": X @ AV, "((AV)ᵀV)⁻¹": numpy_of(attention), "(AV)⁻¹V": numpy_of(value)}
