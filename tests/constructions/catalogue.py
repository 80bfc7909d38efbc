"""The programs of the paper's lemmas in their recipes, by the operation and the recipe."""

from __future__ import annotations

import math

from locum import SOp, full, length, tokens
from locum import constructions as c
from locum.constructions import Matrix


def _square() -> Matrix:
    """Return the whole sequence as a square matrix, whose order the program computes."""
    return Matrix(tokens, length**0.5, length**0.5)


def _product(recipe: str) -> SOp:
    a, b = c.concatenate(tokens, (3, 3), (3, 4))
    return c.matmul(a, b, recipe).sop


def _attend(x: Matrix) -> Matrix:
    return c.matmul(c.softmax(c.matmul(x, c.transpose(x))), x)


def programs() -> dict[tuple[str, str], SOp]:
    """Build the programs."""
    matrix, third, seventh = Matrix(tokens, 3, 4), length // 3, length // 7
    rows = Matrix(tokens, 3, third)
    factors = Matrix(tokens, 3, seventh), Matrix(tokens, seventh, 4, offset=3 * seventh)
    order_3, order_4 = Matrix(tokens, 3, 3), Matrix(tokens, 4, 4)
    return {
        ("sum", "known count"): c.summed(full, tokens, 3),
        ("sum", "count unknown (selector_width)"): c.summed(full, tokens),
        ("transpose", "paper"): c.transpose(rows, "paper").sop,
        ("transpose", "view"): c.transpose(rows).sop,
        ("softmax", "paper"): c.softmax(rows, stable=False).sop,
        ("softmax", "frugal"): c.softmax(matrix, stable=False, recipe="frugal").sop,
        ("softmax", "stable"): c.softmax(matrix, recipe="frugal").sop,
        ("matmul", "paper"): c.matmul(*factors).sop,
        ("matmul", "fetch"): _product("fetch"),
        ("matmul", "at own tokens"): c.own_token_product(*c.concatenate(tokens, (3, 3), (3, 4))).sop,
        ("matmul", "tiled"): _product("tiled"),
        ("matmul", "scatter"): _product("scatter"),
        ("activations", "feed-forward"): c.relu(matrix).sop,
        ("activations", "through MaxMin"): c.relu(matrix, "maxmin").sop,
        ("maxmin", "paper"): c.maxmin(matrix, "paper").sop,
        ("maxmin", "partner"): c.maxmin(matrix).sop,
        ("maxmin", "groups of 3"): c.groupsort(matrix, 3).sop,
        ("identify-shift", "identify"): c.identify(tokens, 1, 2),
        ("identify-shift", "shift"): c.shift(tokens, 2, 5),
        ("multihead", "softmax(XXᵀ)X, H = 3"): c.multihead(_attend, 3, Matrix(tokens, 2, 2)).sop,
        ("cofactor", "paper"): c.cofactor(_square(), order=3).sop,
        ("cofactor", "order 4"): c.cofactor(order_4).sop,
        ("determinant", "paper"): c.determinant(_square(), order=3, recipe="paper").sop,
        ("determinant", "frugal"): c.determinant(order_3).sop,
        ("inverse", "paper"): c.inverse(_square(), "paper", order=3).sop,
        ("inverse", "cofactor"): c.inverse(order_3, "cofactor").sop,
        ("inverse", "gauss-jordan"): c.inverse(order_3, "gauss-jordan").sop,
        ("match", "Match₂"): c.match2(tokens, 5),
        **{
            ("match", f"Match₃, {form}"): c.match3(Matrix(tokens, 1, 4), 5, form).sop
            for form in ("padded", "heads", "tensor")
        },
        ("k-parity", "k heads"): c.k_parity(tokens, (1, 4, 6), "each"),
        ("k-parity", "one head"): c.k_parity(tokens, (1, 4, 6)),
        ("encoder-parts", "residual sum"): c.add(matrix, matrix).sop,
        ("encoder-parts", "row sums"): c.row_sums(matrix).sop,
        ("encoder-parts", "layer norm"): c.layer_norm(matrix).sop,
        ("lipschitz", "5 knots"): c.lipschitz_network(math.sin, [-2, -1, 0, 1, 2]).program(2).sop,
    }
