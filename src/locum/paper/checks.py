"""Define programs and checks of the paper's constructions and of U for ``items.py``.

Most checks compare a construction with NumPy or with the definition, or U(⟨T, X⟩) with T(X). The tests
check many more shapes and numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from locum import constructions as c
from locum.constructions.matrix import Matrix
from locum.execution.array_activations import ACTIVATIONS
from locum.languages.first_and_parity import First, KParity, Match2, Parity
from locum.paper.evidence import TOLERANCE, measure_error
from locum.paper.figure2 import PRINTED, figure2
from locum.rasp.handles import SOp
from locum.rasp.python import full, indices, length, select, tokens
from locum.simulators import Attention, Order, UniversalSimulator
from locum.simulators.hierarchy import padding_formula, paper_padding
from locum.simulators.modules.encoder_layers import DecoderLayer
from locum.simulators.modules.sampling import random_module

X = np.array([[0.5, -1.0, 2.0, 0.25], [1.5, 0.0, -0.75, 1.0], [-2.0, 0.125, 0.5, -0.5]])
SQUARE = np.array([[7.0, 8.0, 12.0], [10.0, 11.0, 9.0], [2.0, 4.0, 21.0]])


def is_close(actual: Any, expected: Any) -> bool:
    """Return whether two arrays are equal up to rounding errors."""
    return measure_error(actual, expected) <= TOLERANCE


def matrix() -> Matrix:
    """Return the first twelve tokens as a 3×4 matrix."""
    return Matrix(tokens, 3, 4)


def three_rows() -> Matrix:
    """Return the whole sequence as a matrix of three rows, as in the paper's listings."""
    return Matrix(tokens, 3, length // 3)


def factors() -> tuple[Matrix, Matrix]:
    """Return the whole sequence as a 3×k and a k×4 matrix, as in the paper's listing of the product."""
    k = length // 7
    return Matrix(tokens, 3, k), Matrix(tokens, k, 4, offset=3 * k)


def square() -> Matrix:
    """Return the whole sequence as a square matrix."""
    n = length**0.5
    return Matrix(tokens, n, n)


def attend(x: Matrix) -> Matrix:
    """Build a program for softmax(XXᵀ)X."""
    return c.matmul(c.softmax(c.matmul(x, c.transpose(x))), x)


def product(recipe: str) -> SOp:
    """Build a program for the product of a 3×3 and a 3×4 matrix."""
    a, b = c.concatenate(tokens, (3, 3), (3, 4))
    return c.matmul(a, b, recipe).sop


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def prop_is_a_bijection() -> bool:
    """Check that prop maps the entries of a 2×3×4 array to the distinct positions 0 to 23."""
    places = itertools.product(*map(range, (2, 3, 4)))
    return sorted(c.prop((2, 3, 4), place) for place in places) == list(range(24))


def circ_is_a_product() -> bool:
    """Check R ∘ S = RS for the 0/1 matrix of a selector, by sums of the selected values."""
    values = [3.0, 1.0, 4.0, 1.0, 5.0]
    earlier = select(indices, indices, "<=")
    return is_close(c.summed(earlier, tokens)(values), np.tri(5) @ values)


def a_product_has_r_plus_c_plus_rc_heads() -> bool:
    """Check that the product of a 3×6 and a 6×4 matrix has r + c + rc heads in the paper's recipe."""
    a, b = c.concatenate(tokens, (3, 6), (6, 4))
    return sum(c.matmul(a, b, "paper").sop.architecture.heads) == 3 + 4 + 3 * 4


def sums() -> bool:
    """Check a sum that is computed from a mean of three numbers."""
    return is_close(c.summed(full, tokens, 3)([1, 2, 4]), [7.0] * 3)


def transposes() -> bool:
    """Check the transposition of a 3×4 matrix with the recipe ``paper``."""
    return is_close(c.transpose(matrix(), "paper").run(X.ravel()), X.T)


def softmaxes() -> bool:
    """Check the softmax of each row of a 3×4 matrix."""
    return is_close(c.softmax(matrix()).run(X.ravel()), _softmax(X))


def products() -> bool:
    """Check the product of a 3×4 and a 4×2 matrix in every recipe."""
    a, b = c.concatenate(tokens, (3, 4), (4, 2))
    B = X.T[:, :2]
    entries = [*X.ravel(), *B.ravel()]
    recipes = ("paper", "fetch", "tiled", "scatter")
    return is_close(c.own_token_product(a, b).run(entries), X @ B) and all(
        is_close(c.matmul(a, b, recipe).run(entries), X @ B) for recipe in recipes
    )


def activations() -> bool:
    """Check activations and maxout; ReLU, leaky ReLU and the absolute value also through MaxMin."""
    directly: dict[str, Callable[..., Any]] = {**ACTIVATIONS, "absolute": np.abs}
    expected: dict[Callable[..., Matrix], Any] = {
        getattr(c, name): function(X) for name, function in directly.items()
    }
    entries = X.ravel()
    return (
        all(is_close(function(matrix()).run(entries), value) for function, value in expected.items())
        and all(
            is_close(function(matrix(), through="maxmin").run(entries), expected[function])
            for function in (c.relu, c.leaky_relu, c.absolute)
        )
        and is_close(c.maxout(matrix(), 2).run(entries), X.reshape(3, 2, 2).max(2))
    )


def maxmins() -> bool:
    """Check that MaxMin sorts pairs, and that GroupSort with groups of two equals MaxMin."""
    pairs = c.groupsort(matrix(), 2).run(X.ravel())
    return (
        is_close(pairs, c.maxmin(matrix(), "paper").run(X.ravel()))
        and is_close(pairs, np.sort(X.reshape(-1, 2))[:, ::-1].reshape(X.shape))
        and c.maxmin(Matrix(tokens, 1, 2)).run([1, -2]).tolist() == [[1.0, -2.0]]
    )


def identifies_and_shifts() -> bool:
    """Check both snippets, identify and shift, on five tokens."""
    values = [10, 20, 30, 40, 50]
    shifted, kept = c.shift(tokens, 2)(values), c.identify(tokens, 1, 3)(values)
    return is_close(shifted, [30, 40, 50, 10, 20]) and is_close(kept, [0, 20, 30, 40, 0])


def multiheads() -> bool:
    """Check softmax(XXᵀ)X on three blocks at once."""
    blocks = np.random.default_rng(1).normal(size=(3, 2, 2))
    stacked = c.multihead(attend, 3, Matrix(tokens, 2, 2)).run(blocks.ravel())
    return is_close(stacked, np.concatenate([_softmax(x @ x.T) @ x for x in blocks]))


def cofactors() -> bool:
    """Check the cofactors of the paper's matrix, whose determinant is 45."""
    return is_close(c.cofactor(Matrix(tokens, 3, 3)).run(SQUARE.ravel()), np.linalg.inv(SQUARE).T * 45)


def determinants() -> bool:
    """Check the determinant of the paper's matrix."""
    return is_close(c.determinant(Matrix(tokens, 3, 3)).run(SQUARE.ravel()), [[45.0]])


def inverses() -> bool:
    """Check the inverse of a matrix of order 3 in several recipes.

    The recipe newton-schulz is checked on a matrix with a smaller condition number.
    """
    view, expected = Matrix(tokens, 3, 3), np.linalg.inv(SQUARE)
    recipes = ("paper", "cofactor", "gauss-jordan", "faddeev-leverrier")
    mild = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.0, 0.5, 2.0]])
    newton = c.inverse(view, "newton-schulz", steps=10).run(mild.ravel())
    return is_close(newton, np.linalg.inv(mild)) and all(
        is_close(c.inverse(view, recipe).run(SQUARE.ravel()), expected) for recipe in recipes
    )


def matches() -> bool:
    """Check Match₂ and the three forms of Match₃ on random tokens."""
    generator = np.random.default_rng(0)
    for _ in range(10):
        word = generator.integers(0, 9, size=5).tolist()
        two = [int(any((a + b) % 5 == 0 for b in word)) for a in word]
        pairs = list(itertools.product(word, repeat=2))
        three = [int(any((a + b + d) % 7 == 0 for b, d in pairs)) for a in word]
        forms = [c.match3(Matrix(tokens, 1, 5), 7, form) for form in ("padded", "heads", "tensor")]
        if c.match2(tokens, 5)(word) != two or any(f.run(word).tolist() != [three] for f in forms):
            return False
    return True


def parities() -> bool:
    """Check k-PARITY with one head and with k heads on all words of seven bits."""
    programs = [c.k_parity(tokens, (1, 4, 6), heads) for heads in ("one", "each")]
    inputs = itertools.product(programs, itertools.product((0, 1), repeat=7))
    return all(p(list(bits))[0] == (bits[1] + bits[4] + bits[6]) % 2 for p, bits in inputs)


def encoder_parts() -> bool:
    """Check sums, means, broadcasts and the layer norm of rows."""
    deviation = X - X.mean(1, keepdims=True)
    expected = {
        c.add(matrix(), matrix()): 2 * X,
        c.row_sums(matrix()): np.broadcast_to(X.sum(1, keepdims=True), X.shape),
        c.row_means(matrix()): np.broadcast_to(X.mean(1, keepdims=True), X.shape),
        c.layer_norm(matrix(), epsilon=0.0): deviation / X.std(1, keepdims=True),
        c.broadcast_row(matrix().block(0, 0, 1, 4), 2): X[[0, 0]],
        c.broadcast_column(matrix().block(0, 0, 3, 1), 2): X[:, [0, 0]],
    }
    return all(is_close(program.run(X.ravel()), value) for program, value in expected.items())


def lipschitz_networks() -> bool:
    """Check that MaxMin networks of norm at most 1 approximate sin and a norm.

    For sin, the error must decrease as the number of knots increases.
    """
    points, errors = np.linspace(-3, 3, 301), []
    for knots in (7, 13, 25):
        network = c.lipschitz_network(np.sin, np.linspace(-3, 3, knots).tolist())
        if max(network.norms) > 1 + TOLERANCE:
            return False
        errors.append(np.abs(np.array(network(points.tolist())) - np.sin(points)).max())
    if not errors[0] > errors[1] > errors[2] or errors[2] > 0.25:
        return False
    square = np.random.default_rng(0).uniform(-1, 1, size=(200, 2))
    for side in (
        2,
        3,
        5,
    ):  # In the plane, the distance of a point to the grid of knots is at most √2/(side − 1).
        grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, side)] * 2), axis=-1).reshape(-1, 2)
        network = c.lipschitz_network(lambda z: float(np.linalg.norm(z)), grid)
        error = np.abs(network(square) - np.linalg.norm(square, axis=1)).max()
        if max(network.norms) > 1 or error > 2 * 2**0.5 / (side - 1):
            return False
    return True


def programs(*recipes: str, **options: Any) -> Callable[[], dict[str, SOp]]:
    """Return a function that builds U of order (3, 3, 3) in each of ``recipes``."""
    return lambda: {
        recipe: UniversalSimulator(Order.of(3, 3, 3, **options), recipe=recipe).program
        for recipe in recipes
    }


def kinds(*names: str) -> Callable[[], dict[str, SOp]]:
    """Return a function that builds U of order (3, 3, 3) for each kind of attention in ``names``."""
    return lambda: {kind: UniversalSimulator(Order.of(3, 3, 3, kind=kind)).program for kind in names}


def masked() -> dict[str, SOp]:
    """Build U of order (3, 3, 3) with a mask, so that it also simulates smaller T's."""
    return {"masked": UniversalSimulator(3, 3, 3).masked.program}


def agrees(*orders: tuple[int, int, int], recipe: str = "fetch", **options: Any) -> bool:
    """Return whether U(⟨T, X⟩) = T(X) for a random T of each order."""
    generator = np.random.default_rng(0)
    for order in orders:
        U = UniversalSimulator(Order.of(*order, **options), recipe=recipe)
        T = random_module(U.order, generator)
        X = generator.normal(size=(order[0], order[1]))
        if not is_close(U(T, X), T(X)):
            return False
    return True


def attentions() -> bool:
    """Check Theorem 1 in two recipes, also for an order whose products have too few positions."""
    return agrees((3, 3, 3), (5, 2, 2), (2, 4, 3)) and agrees((3, 3, 3), (5, 2, 2), recipe="width-1")


def figure() -> bool:
    """Check every printed digit and both printed errors of Figure 2."""
    printed_base, exact = figure2(base=2.718), figure2()
    errors = {name: printed.error for name, printed in PRINTED.items() if printed.error}
    return (
        printed_base.reproduced
        and exact.reproduced
        and all(f"{printed_base[name].error:.6e}" == f"{error:.6e}" for name, error in errors.items())
    )


def encoders() -> bool:
    """Check U on encoders without and with layer norm."""
    return agrees((3, 3, 3), feed_forward=(4, 2)) and agrees(
        (3, 3, 3), feed_forward=(4, 3), norm="post"
    )


def hard_attentions() -> bool:
    """Check Match₂ as a softmax attention, and U on average and unique hard attention."""
    return (
        Match2(5).matches([5, 1, 4, 2]) == [True, True, True, False]
        and agrees((3, 2, 2), pooling="average")
        and agrees((3, 2, 2), pooling="unique")
    )


def linear_attentions() -> bool:
    """Check U on Linformer and on linear attention with two feature maps."""
    return (
        agrees((4, 3, 2), kind="linformer")
        and agrees((4, 3, 2), kind="linear")
        and agrees((4, 3, 2), kind="linear", feature_map="elu+1")
    )


def sparse_attentions() -> bool:
    """Check U on Performer and Sumformer."""
    return agrees((4, 3, 2), kind="performer") and agrees((4, 3, 2), kind="sumformer")


def hierarchy() -> bool:
    """Check that U with a mask simulates a smaller T, and that the paper's padding is wrong (E15)."""
    generator = np.random.default_rng(1)
    T = Attention(generator.normal(size=(2, 2)), generator.normal(size=(2, 1)))
    X, U = generator.normal(size=(2, 2)), UniversalSimulator(4, 3, 2)
    padded = paper_padding(U, T, X)
    return (
        is_close(U.embed(T, X), T(X))
        and is_close(padded, padding_formula(T, X, 4))
        and not is_close(padded, T(X))
    )


def multihead_attentions() -> bool:
    """Check U on several heads, concatenated and with a residual sum."""
    return agrees((3, 3, 2), heads=3) and agrees((3, 3, 3), heads=2, residual=True)


def multihead_encoders() -> bool:
    """Check U on a pre-norm encoder layer of two heads."""
    return agrees((3, 3, 3), heads=2, feed_forward=(4, 3), norm="pre")


def languages() -> bool:
    """Check PARITY, FIRST and k-PARITY on U, on a few words."""
    parity, first, chosen = Parity(), First(), KParity(3, (0, 2))
    words = ["", "0", "1", "01", "11", "101"]
    return (
        all(parity.accepts(word) == (word.count("1") % 2 == 0) for word in words)
        and all(first.accepts(word) == (word[0] == "1") for word in words[1:])
        and all(chosen.accepts(word) == (word[0] == word[2]) for word in ("000", "100", "101", "011"))
    )


def inverse_form() -> bool:
    """Check the construction of U through inverses."""
    generator = np.random.default_rng(2)
    A, V = (np.eye(3) + 0.3 * generator.normal(size=(3, 3)) for _ in range(2))
    T, X = Attention(A, V), generator.normal(size=(3, 3))
    return is_close(UniversalSimulator(3, 3, 3, recipe="inverse")(T, X), T(X))


def decoders() -> bool:
    """Check U on a post-norm decoder layer."""
    generator = np.random.default_rng(3)

    def draw(*shape: int) -> Any:
        return generator.normal(size=shape)

    causal = Attention(draw(2, 2), draw(2, 2), mask="causal")
    T = DecoderLayer(causal, Attention(draw(2, 2), draw(2, 2)), norm="post")
    X, M = draw(3, 2), draw(2, 2)
    return is_close(UniversalSimulator.of(T, 3, 2)(T, X, M), T(X, M))
