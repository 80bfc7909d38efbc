"""Build the constructions of the paper as functions of matrices and s-ops.

A :class:`Matrix` is a view of an s-op inside one sequence, so operations can be composed within one
program. ``locum.paper`` maps the items of the paper to these functions.

>>> from locum import tokens
>>> X = Matrix(tokens, 2, 2)
>>> matmul(softmax(matmul(X, transpose(X))), X).run([1, 0, 0, 1]).round(3).tolist()
[[0.731, 0.269], [0.269, 0.731]]
"""

from locum.constructions.activations import (
    absolute,
    elu_plus_one,
    gelu,
    gelu_tanh,
    leaky_relu,
    quick_gelu,
    relu,
    sigmoid,
    silu,
    tanh,
)
from locum.constructions.groupsort import groupsort, maxmin, maxout
from locum.constructions.hardmax import hardmax
from locum.constructions.inverse import cofactor, determinant, inverse
from locum.constructions.layout import concatenate, matrix, prop, unprop
from locum.constructions.lipschitz import MaxMinNetwork, lipschitz_network
from locum.constructions.matching import match2, match3
from locum.constructions.matmul import matmul, weighted_mean
from locum.constructions.matrix import Matrix, constant_matrix
from locum.constructions.multihead import multihead
from locum.constructions.normalisation import layer_norm, rms_norm
from locum.constructions.own_token import Placed, own_token_product
from locum.constructions.parity import k_parity
from locum.constructions.sequences import identify, shift
from locum.constructions.softmax import softmax
from locum.constructions.sums import (
    add,
    append_ones,
    broadcast_column,
    broadcast_row,
    multiply,
    row_means,
    row_sums,
    scale,
    summed,
    total,
)
from locum.constructions.transpose import transpose

__all__ = [
    "Matrix",
    "MaxMinNetwork",
    "Placed",
    "absolute",
    "add",
    "append_ones",
    "broadcast_column",
    "broadcast_row",
    "cofactor",
    "concatenate",
    "constant_matrix",
    "determinant",
    "elu_plus_one",
    "gelu",
    "gelu_tanh",
    "groupsort",
    "hardmax",
    "identify",
    "inverse",
    "k_parity",
    "layer_norm",
    "leaky_relu",
    "lipschitz_network",
    "match2",
    "match3",
    "matmul",
    "matrix",
    "maxmin",
    "maxout",
    "multihead",
    "multiply",
    "own_token_product",
    "prop",
    "quick_gelu",
    "relu",
    "rms_norm",
    "row_means",
    "row_sums",
    "scale",
    "shift",
    "sigmoid",
    "silu",
    "softmax",
    "summed",
    "tanh",
    "total",
    "transpose",
    "unprop",
    "weighted_mean",
]
