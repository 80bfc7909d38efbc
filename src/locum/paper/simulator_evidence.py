"""Collect evidence on the paper's theorems, corollaries and remarks about U.

Many checks compare U(⟨T, X⟩) with the printed formula. NumPy computes the formula from the matrices of
T, independently of Locum's implementation of T.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from locum import constructions as c
from locum.constructions import Matrix
from locum.languages.first_and_parity import First, KParity, Match2, Parity
from locum.paper import listings
from locum.paper.algorithm_evidence import draw, fits, softmax
from locum.paper.algorithms import Array, algorithm_3_corrected, prop
from locum.paper.evidence import (
    CONTEXT,
    CORRECTED,
    OURS,
    TOLERANCE,
    Evidence,
    Shape,
    compare,
    count_equal,
    measure_error,
    summarise,
    try_shapes,
)
from locum.paper.listing_evidence import find_matches
from locum.rasp.python import tokens
from locum.simulators import Attention, Order, UniversalSimulator
from locum.simulators.hierarchy import padding_formula, paper_padding
from locum.simulators.modules.attention import MultiHeadAttention
from locum.simulators.modules.attention_kinds import LinearAttention, Linformer
from locum.simulators.modules.encoder_layers import Encoder
from locum.simulators.modules.module import Module

#: All orders (n, d, d_v) up to 4.
_ORDERS = list(itertools.product(range(1, 5), repeat=3))


def attend(X: Array, A: Array, V: Array) -> Array:
    """Compute σ(XAXᵀ)XV with NumPy."""
    return softmax(X @ A @ X.T) @ X @ V


def simulate(T: Module, X: Array, executor: str | None = None) -> Array:
    """Return U(⟨T, X⟩) for U of the order of T."""
    return np.asarray(UniversalSimulator.of(T, len(X))(T, X, executor=executor))


# Attention ------------------------------------------------------------------------------------


def check_attention() -> Iterator[Evidence]:
    """Compare U with σ(XAXᵀ)XV at all orders up to 4, and at three orders with every head executed."""

    def pairs(orders: list[Shape], executor: str | None) -> Iterator[tuple[Any, Any]]:
        for n, d, d_v in orders:
            X, A, V = draw(n, d), draw(d, d), draw(d, d_v)
            yield simulate(Attention(A, V), X, executor), attend(X, A, V)

    yield compare("U(⟨T, X⟩) against σ(XAXᵀ)XV, all orders n, d, d_v = 1 … 4", pairs(_ORDERS, None))
    few: list[Shape] = [(2, 2, 2), (3, 2, 1), (3, 3, 3)]
    what = "the same with every head executed, orders (2, 2, 2), (3, 2, 1), (3, 3, 3)"
    yield compare(what, pairs(few, "heads"))


def check_softmax_attention() -> Iterator[Evidence]:
    """Compare U with the attention of W_Q, W_K and W_V."""

    def pairs() -> Iterator[tuple[Any, Any]]:
        for n, d, width, d_v in ((3, 4, 2, 3), (5, 3, 3, 1), (2, 2, 5, 4)):
            X, W_Q, W_K, W_V = draw(n, d), draw(d, width), draw(width, d).T, draw(d, d_v)
            T = Attention(W_Q @ W_K.T, W_V)
            yield simulate(T, X), softmax(X @ W_Q @ W_K.T @ X.T) @ X @ W_V

    yield compare("U(⟨T, X⟩) against σ(XW_QW_KᵀXᵀ)XW_V", pairs())


def check_linformer() -> Iterator[Evidence]:
    """Compare U with the formula of a Linformer."""

    def pairs() -> Iterator[tuple[Any, Any]]:
        for n, d, k in ((4, 3, 2), (5, 2, 3), (3, 3, 1)):
            X, W_Q, W_K, V, E, F = (
                draw(n, d),
                draw(d, 2),
                draw(2, d).T,
                draw(d, 2),
                draw(k, n),
                draw(n, k).T,
            )
            T = Linformer(W_Q, W_K, V, E, F)
            yield simulate(T, X), softmax((X @ W_Q) @ (E @ X @ W_K).T) @ F @ X @ V

    yield compare("U(⟨T, X⟩) against σ((XW_Q)(EXW_K)ᵀ)FXV", pairs())


def check_linear() -> Iterator[Evidence]:
    """Compare U with the formula of linear attention."""

    def pairs() -> Iterator[tuple[Any, Any]]:
        for n, d, d_v in ((4, 3, 2), (5, 2, 3), (3, 3, 1)):
            X, W_Q, W_K, V = draw(n, d), draw(d, 2), draw(2, d).T, draw(d, d_v)
            yield simulate(LinearAttention(W_Q, W_K, V), X), (X @ W_Q) @ (X @ W_K).T @ X @ V

    yield compare("U(⟨T, X⟩) against (XW_Q)(XW_K)ᵀXV", pairs())


def check_cited_linear_attention() -> Iterator[Evidence]:
    """Compare the equation with the linear attention of Katharopoulos et al., and run U on the latter."""

    def elu_plus_one(z: Array) -> Array:
        return np.where(z > 0, z + 1, np.exp(np.minimum(z, 0)))

    X, W_Q, W_K, V = draw(4, 3), draw(3, 2), draw(2, 3).T, draw(3, 3)
    queries, keys = elu_plus_one(X @ W_Q), elu_plus_one(X @ W_K)
    cited = queries @ keys.T @ X @ V / (queries @ keys.sum(axis=0))[:, None]
    error = measure_error((X @ W_Q) @ (X @ W_K).T @ X @ V, cited)
    yield Evidence(
        "the equation is the linear attention that it cites, n = 4, d = d_v = 3",
        f"no feature map and no normaliser: largest error {error:.1g}",
        error <= TOLERANCE,
        erratum="E45",
    )
    T = LinearAttention(W_Q, W_K, V, feature_map="elu+1")
    what = "U(⟨T, X⟩) against φ(XW_Q)φ(XW_K)ᵀXV, divided by the row sums of φ(XW_Q)φ(XW_K)ᵀ"
    yield compare(what, [(simulate(T, X), cited)], CORRECTED)


def check_encoder() -> Iterator[Evidence]:
    """Compare U with encoders without layer norm, and check where the printed formula is defined."""

    def formula(X: Array, A: Array, V: Array, first: Array, second: Array) -> Array:
        return np.asarray(np.maximum((X + attend(X, A, V)) @ first, 0) @ second)

    def pairs() -> Iterator[tuple[Any, Any]]:
        for n, d, d1, d2 in ((3, 3, 4, 2), (2, 4, 3, 5), (5, 2, 2, 2)):
            X, A, V = draw(n, d), draw(d, d), draw(d, d).T
            first, second = draw(d, d1), draw(d1, d2)
            yield simulate(Encoder(Attention(A, V), first, second), X), formula(X, A, V, first, second)

    yield compare("U(⟨T, X⟩) against FFN(X + σ(XAXᵀ)XV), d = d_v", pairs())

    def run(shape: Shape) -> tuple[Any, Any]:
        n, d, d_v = shape
        X, A, V = draw(n, d), draw(d, d), draw(d, d_v)
        result = formula(X, A, V, draw(d_v, 2), draw(2, 2))
        return result.shape, (n, 2)

    shapes = [(3, d, d_v) for d in range(2, 5) for d_v in range(2, 5)]
    equal = ("d = d_v", lambda n, d, d_v: d == d_v)
    what = "X + σ(XAXᵀ)XV is defined for orders (n, d, d_v), n = 3, d, d_v = 2 … 4"
    yield summarise(what, try_shapes(shapes, run), "n, d, d_v", equal, erratum="E19")

    yield _multiply_by_second_matrix()


def _multiply_by_second_matrix() -> Evidence:
    """Compute the product with W₂ of a feed-forward sublayer by Algorithm 3."""

    def run(shape: Shape) -> tuple[Any, Any]:
        n, d1, d2 = shape
        hidden, second = draw(n, d1), draw(d1, d2)
        joined = np.concatenate([prop(hidden), prop(second)])
        return algorithm_3_corrected(joined, n, d1, d2)[: n * d2], prop(hidden @ second)

    condition = ("d₁ ≥ n·d₂/(n + d₂)", fits)
    what = "the product with W₂ by Algorithm 3, corrected (E6), n, d₁, d₂ = 1 … 4"
    return summarise(what, try_shapes(_ORDERS, run), "n, d₁, d₂", condition, erratum="E40")


def check_products_of_linear_attention() -> Iterator[Evidence]:
    """Compute the scores of linear attention by Algorithm 3."""

    def run(shape: Shape) -> tuple[Any, Any]:
        n, width = shape
        Q, K = draw(n, width), draw(width, n)
        joined = np.concatenate([prop(Q), prop(K)])
        return algorithm_3_corrected(joined, n, width, n)[: n * n], prop(Q @ K)

    shapes = list(itertools.product(range(1, 5), repeat=2))
    condition = ("d′ ≥ n/2", lambda n, width: 2 * width >= n)
    what = "(XW_Q)(XW_K)ᵀ by Algorithm 3, corrected (E6), W_Q and W_K with d′ columns, n, d′ = 1 … 4"
    yield summarise(what, try_shapes(shapes, run), "n, d′", condition, erratum="E40")


@functools.cache
def _compile_with_relu_units() -> dict[float, tuple[int, float]]:
    """Compile U of order (2, 2, 2) to ReLU units for entries of up to 1 and 2.

    Return the number of hidden units, and the largest error for 20 random T and X, by the bound.
    """
    sizes, U = {}, UniversalSimulator(2, 2, 2)
    for bound in (1.0, 2.0):
        model = U.compile("native", attention="softmax", feed_forward="relu", ranges=(-bound, bound))
        generator, errors = np.random.default_rng(2), []
        for X, A, V in generator.uniform(-bound, bound, (20, 3, 2, 2)):
            result = U.decode(model(U.encode(Attention(A, V), X)))
            errors.append(measure_error(result, attend(X, A, V)))
        sizes[bound] = model.architecture.d_mlp, max(errors)
    return sizes


def _describe_relu_units() -> str:
    return "; ".join(
        f"entries up to {bound:g}: {units:,} hidden units, error {error:.0e}"
        for bound, (units, error) in _compile_with_relu_units().items()
    )


def check_relu_units() -> Iterator[Evidence]:
    """Check whether one network with ReLU feed-forwards computes U on inputs of every size."""
    sizes = _compile_with_relu_units()
    yield Evidence(
        "the same network with ReLU feed-forwards serves entries up to 1 and up to 2, order (2, 2, 2)",
        _describe_relu_units(),
        sizes[1.0][0] == sizes[2.0][0],
        erratum="E44",
    )


def check_universal_approximation() -> Iterator[Evidence]:
    """Approximate U by ReLU units on bounded inputs, and let a ReLU network grow with its input."""
    yield Evidence(
        "U of order (2, 2, 2) with ReLU feed-forwards approximates T(X) on bounded inputs",
        _describe_relu_units(),
        all(error <= 1e-3 for _, error in _compile_with_relu_units().values()),
    )
    first, second = draw(2, 64), draw(64, 1)
    small, large = (float((np.maximum(t * np.ones(2) @ first, 0) @ second)[0]) for t in (1e6, 1e7))
    yield Evidence(
        "on every input: a ReLU network grows like xv, the T(X) of order (1, 1, 1), along x = v",
        f"for 10 times the input, its output grows by {large / small:.0f}, and xv by 100",
        measure_error(large / small, 100.0) <= TOLERANCE,
        erratum="E43",
    )


# Several heads --------------------------------------------------------------------------------


def _draw_heads(n: int, d: int, d_v: int, count: int) -> tuple[Array, list[tuple[Array, Array]]]:
    """Draw a random X, and random matrices A and V for each head."""
    generator = np.random.default_rng((n, d, d_v, count))
    heads = [(generator.normal(size=(d, d)), generator.normal(size=(d, d_v))) for _ in range(count)]
    return generator.normal(size=(n, d)), heads


def check_heads() -> Iterator[Evidence]:
    """Compare U with H concatenated heads, and check the concatenation that the lemma states."""

    def pairs() -> Iterator[tuple[Any, Any]]:
        for order in ((3, 3, 2, 2), (4, 2, 2, 3), (2, 3, 1, 4)):
            X, heads = _draw_heads(*order)
            T = MultiHeadAttention([Attention(A, V) for A, V in heads])
            yield simulate(T, X), np.hstack([attend(X, A, V) for A, V in heads])

    yield compare("U(⟨T, X⟩) against the heads side by side, H = 2, 3, 4", pairs())
    order = Order.of(3, 3, 3, heads=2)
    length = UniversalSimulator(order).length
    yield Evidence(
        "tokens of U, H = 2, order (3, 3, 3); the paper stacks X⁽¹⁾ and X⁽²⁾, Locum encodes X once",
        f"{length}; with two copies of X: {length + 3 * 3}",
        True,
        CONTEXT,
    )

    def stacked(shape: Shape) -> tuple[Any, Any]:
        n, d, d_v = shape
        X, heads = _draw_heads(n, d, d_v, 2)
        results = [attend(X, A, V) for A, V in heads]
        return np.concatenate([prop(result) for result in results]), prop(np.hstack(results))

    shapes = [(n, 3, d_v) for n in range(1, 4) for d_v in range(1, 4)]
    one_row = ("n = 1", lambda n, d, d_v: n == 1)
    what = "⊙ over h of prop(T_h(X)), as the lemma gives it, is prop of multi-head attention, H = 2"
    yield summarise(what, try_shapes(shapes, stacked), "n, d, d_v", one_row, erratum="E26")


def check_encoder_of_heads() -> Iterator[Evidence]:
    """Compare U with encoders of two heads with d = H·d_v."""

    def pairs() -> Iterator[tuple[Any, Any]]:
        for n, d_v, d1, d2 in ((3, 2, 4, 3), (2, 1, 3, 2)):
            X, heads = _draw_heads(n, 2 * d_v, d_v, 2)
            first, second = draw(2 * d_v, d1), draw(d1, d2)
            T = Encoder(MultiHeadAttention([Attention(A, V) for A, V in heads]), first, second)
            attended = np.hstack([attend(X, A, V) for A, V in heads])
            yield simulate(T, X), np.maximum((X + attended) @ first, 0) @ second

    yield compare("U(⟨T, X⟩) against FFN(X + heads side by side), d = 2·d_v", pairs())

    def run(shape: Shape) -> tuple[Any, Any]:
        n, d, d_v = shape
        X, heads = _draw_heads(n, d, d_v, 2)
        return (X + np.hstack([attend(X, A, V) for A, V in heads])).shape, (n, d)

    shapes = [(3, d, d_v) for d in range(2, 7) for d_v in range(2, 4)]
    equal = ("d = 2·d_v", lambda n, d, d_v: d == 2 * d_v)
    what = "X + heads side by side is defined, H = 2, n = 3, d = 2 … 6, d_v = 2, 3"
    yield summarise(what, try_shapes(shapes, run), "n, d, d_v", equal, erratum="E19")
    yield _multiply_by_second_matrix()


# Hierarchy ------------------------------------------------------------------------------------


def check_hierarchy() -> Iterator[Evidence]:
    """Simulate a T of a smaller order on U, with the printed padding, repeated rows and a mask."""

    def run(shape: Shape) -> tuple[Any, Any]:
        m, n = shape
        X, A, V = draw(m, 2), draw(2, 2), draw(2, 1)
        T, U = Attention(A, V), UniversalSimulator(n, 3, 2)
        return paper_padding(U, T, X), attend(X, A, V)

    shapes = [(m, n) for m in range(1, 4) for n in range(m, 5)]
    same = ("n = m", lambda m, n: n == m)
    what = "the proof: X padded with zeros, e = 2, d = 3, m ≤ n ≤ 4"
    yield summarise(what, try_shapes(shapes, run), "m, n", same, erratum="E15")

    def embedded() -> Iterator[tuple[Any, Any]]:
        for m, n in shapes:
            X, A, V = draw(m, 2), draw(2, 2), draw(2, 1)
            yield UniversalSimulator(n, 3, 2).embed(Attention(A, V), X), attend(X, A, V)

    yield compare("the softmax masked to m keys, the same orders", embedded(), CORRECTED)

    def repeated() -> Iterator[tuple[Any, Any]]:
        for m, n in shapes:
            if n % m == 0:
                X, A, V = draw(m, 2), draw(2, 2), draw(2, 1)
                T = Attention(np.pad(A, (0, 1)), np.pad(V, ((0, 1), (0, 1))))
                rows = np.pad(np.tile(X, (n // m, 1)), ((0, 0), (0, 1)))
                yield simulate(T, rows)[:m, :1], attend(X, A, V)

    yield compare("the statement for plain U: X repeated n/m times, m divides n", repeated())

    def weighted() -> Iterator[tuple[Any, Any]]:
        for m, n in shapes:
            X, A, V = draw(m, 2), draw(2, 2), draw(2, 1)
            U = UniversalSimulator(n, 4, 2)
            result = U.embed(Attention(A, V), X)
            yield result if "masked" not in vars(U) else np.nan, attend(X, A, V)

    what = "the statement for plain U: rows repeated, columns 1 and −log c for c copies, d = e + 2"
    yield compare(what, weighted())


def check_proof_of_hierarchy() -> Iterator[Evidence]:
    """Carry out the three steps of the hierarchy's proof in NumPy, with and without the factor 1/√d."""

    def run(shape: Shape, divide: bool) -> tuple[Any, Any]:
        m, e, n, d = shape
        X, A, V = draw(m, e), draw(e, e), draw(e, 1)
        padded = np.zeros((n, d))
        padded[:m, :e] = X
        large_A = np.eye(d)
        large_A[:e, :e] = A
        large_V = np.zeros((d, 1))
        large_V[:e] = V
        scores = padded @ large_A @ padded.T / (np.sqrt(d) if divide else 1.0)
        return (softmax(scores) @ padded @ large_V)[:m], attend(X, A, V)

    shapes = [(m, e, n, d) for m in (1, 2) for e in (1, 2) for n in range(m, 4) for d in range(e, 4)]
    what = "steps 1 to 3 as printed, with 1/√d, m, e ≤ 2, n, d ≤ 3"
    for rows, condition, erratum in (
        ("n = m", ("d = 1 or m = 1", lambda m, e, n, d: d == 1 or m == 1), "E16"),
        ("n > m", None, "E15"),
    ):
        chosen = [shape for shape in shapes if (shape[2] == shape[0]) is (rows == "n = m")]
        outcomes = try_shapes(chosen, lambda shape: run(shape, True))
        yield summarise(f"{what}, {rows}", outcomes, "m, e, n, d", condition, erratum=erratum)
    without = [shape for shape in shapes if shape[2] == shape[0]]
    what = "steps 1 to 3 without 1/√d, n = m"
    yield summarise(
        what, try_shapes(without, lambda shape: run(shape, False)), "m, e, n, d", about=CORRECTED
    )

    def predicted() -> Iterator[tuple[Any, Any]]:
        for m, n in ((1, 2), (2, 4), (3, 4)):
            T, X = Attention(draw(2, 2), draw(2, 1)), draw(m, 2)
            yield paper_padding(UniversalSimulator(n, 3, 2), T, X), padding_formula(T, X, n)

    yield compare("for n > m the padding gives T(X)·Z/(Z + n − m)", predicted(), CONTEXT)


# Remarks --------------------------------------------------------------------------------------


def check_match() -> Iterator[Evidence]:
    """Run Match₂ as one softmax head on U, on all sequences over {1, …, 5} of length up to 3."""
    task = Match2(5)
    words = [word for size in (1, 2, 3) for word in itertools.product(range(1, 6), repeat=size)]
    cases = ((word, [int(m) for m in task.matches(word)], find_matches(word, 5)) for word in words)
    what = "Match₂ as a softmax attention of one head, simulated by U, p = 5"
    found = count_equal(f"{what}, all sequences over {{1, …, 5}} of length 1, 2, 3", cases)
    yield found
    layers = listings.program("match2_corrected", [1, 2]).architecture.layers
    yield Evidence(
        "Match₂ is known only as learnable",
        f"the head above has explicit weights, and Listing 6 (corrected) is {layers} layer without learning",
        not found.holds,
        erratum="E31",
    )
    for kind in ("average", "unique"):
        yield compare(f"U simulates {kind} hard attention", _pooled(kind), OURS)


def _pooled(kind: str) -> Iterator[tuple[Any, Any]]:
    for n, d in ((3, 2), (4, 3)):
        T, X = Attention(draw(d, d), draw(d, 2), pooling=kind), draw(n, d)
        scores = X @ draw(d, d) @ X.T
        yield simulate(T, X), np.array([(X @ draw(d, 2))[row.argmax()] for row in scores])


def check_parity() -> Iterator[Evidence]:
    """Run PARITY and FIRST on U, on all words of up to 7 bits, and k-PARITY on all words of 5 bits.

    FIRST is not run on the empty word.
    """

    def even(word: str) -> bool:
        return word.count("1") % 2 == 0

    words = ["".join(bits) for size in range(8) for bits in itertools.product("01", repeat=size)]
    parity = Parity()
    what = "PARITY on two U's in series"
    yield count_equal(
        f"{what}, all words of length 0 … 7",
        ((word, parity.accepts(word), even(word)) for word in words),
    )
    yield count_equal(
        f"{what}, every head executed, all words of length 0 … 2",
        ((word, parity.accepts(word, executor="heads"), even(word)) for word in words[:7]),
    )
    normed = Parity(layer_norm=True)
    yield count_equal(
        "the form with layer norm, all words of length 0 … 7",
        ((word, normed.accepts(word), even(word)) for word in words),
    )
    chosen = [places for k in (1, 2, 3) for places in itertools.combinations(range(5), k)]

    def k_parity() -> Iterator[tuple[Any, Any, Any]]:
        for places in chosen:
            task = KParity(5, places)
            for word in words[31:63]:
                ones = sum(word[place] == "1" for place in places)
                yield (places, word), task.accepts(word), ones % 2 == 0

    yield count_equal(
        "k-PARITY on one U of k heads, n = 5, all S of 1, 2, 3 places, all words", k_parity()
    )
    first = First()
    yield count_equal(
        "FIRST on two U's in series, all words of length 1 … 7",
        ((word, first.accepts(word), word[0] == "1") for word in words[1:]),
        OURS,
    )


def check_introduction() -> Iterator[Evidence]:
    """Count the layers and heads of Match₂ and Match₃, and compare both with their definitions."""
    program = c.match2(tokens, 5)
    words = [word for size in (1, 2, 3) for word in itertools.product(range(1, 6), repeat=size)]
    cases = ((word, [int(n) for n in program(list(word))], find_matches(word, 5)) for word in words)
    size = program.architecture
    found = count_equal("", cases)
    yield Evidence(
        "Match₂ by average hard attention, p = 5, all sequences over {1, …, 5} of length 1, 2, 3",
        f"{size.layers} layer, {size.width} head; {found.result}",
        found.holds,
    )

    def third(word: tuple[int, ...]) -> list[int]:
        sums = [a + b for a, b in itertools.product(word, repeat=2)]
        return [int(any((s + pair) % 5 == 0 for pair in sums)) for s in word]

    results, right = [], True
    for n in range(1, 5):
        task = c.match3(Matrix(tokens, 1, n), 5, "heads")
        every = itertools.product(range(1, 6), repeat=n)
        sample = list(every)[:: 1 if n < 4 else 7]
        right &= all(task.run(list(word)).tolist() == [third(word)] for word in sample)
        size = task.sop.architecture
        results.append(f"n = {n}: {size.layers} layers, heads {size.heads}")
    yield Evidence(
        "no network of several layers and heads computes Match₃ (p = 5, n = 1 … 4)",
        f"{'these do' if right else 'these do not'}: {'; '.join(results)}",
        not right,
        erratum="E28",
    )


def check_input_size() -> Iterator[Evidence]:
    """Count the tokens that U reads, and the heads of U in the paper's recipe."""
    orders = range(1, 7)
    lengths = [UniversalSimulator(n, n, n).length for n in orders]
    grows = all(size == 3 * n * n for n, size in zip(orders, lengths, strict=True))
    yield Evidence(
        "U reads the nd + d² + d·d_v numbers of ⟨T, X⟩ and no more, n = d = d_v = 1 … 6",
        ", ".join(map(str, lengths)),
        grows,
    )
    heads = [sum(UniversalSimulator(n, n, n, recipe="paper").architecture.heads) for n in orders]
    ratio = [count / n**2 for n, count in zip(orders, heads, strict=True)]
    yield Evidence(
        "poly(n): heads of U in the paper's recipe, all layers, n = d = d_v = 1 … 6",
        f"{', '.join(map(str, heads))}: at most {max(ratio):.0f}·n²",
        max(ratio) == ratio[0],
    )


def check_cost_of_linformer() -> Iterator[Evidence]:
    """Count the multiplications of Linformer, and compare the number with nkd."""
    yield _count_multiplications("Linformer", "O(n)", _multiplications_of_linformer)


def check_cost_of_performer() -> Iterator[Evidence]:
    """Count the multiplications of Performer, and compare the number with nkd."""
    yield _count_multiplications("Performer", "O(nkd)", _multiplications_of_performer)


def _count_multiplications(name: str, printed: str, count: Callable[[int, int, int], int]) -> Evidence:
    """Compare numbers of multiplications with nkd at several sizes.

    ``count`` maps n, k and d to the number of multiplications of the module ``name``.
    """
    counts = {size: count(*size) for size in itertools.product((16, 32), (4, 8), (8, 16))}
    ratios = {number / np.prod(size) for size, number in counts.items()}
    return Evidence(
        f"{name}: {printed} multiplications after the projections, n = 16, 32, k = 4, 8, d = 8, 16",
        f"{', '.join(f'{number:,}' for number in counts.values())}: {max(ratios):g}·nkd",
        len(ratios) == 1,
    )


class _Counter:
    """A function that multiplies matrices, and counts the multiplications of numbers."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, first: Array, second: Array) -> Array:
        self.count += first.shape[0] * first.shape[1] * second.shape[1]
        return np.asarray(first @ second)


def _multiplications_of_linformer(n: int, k: int, d: int) -> int:
    times, (Q, K, V), E, F = _Counter(), (draw(n, d) for _ in range(3)), draw(k, n), draw(n, k).T
    times(softmax(times(Q, times(E, K).T)), times(F, V))
    return times.count


def _multiplications_of_performer(n: int, k: int, d: int) -> int:
    times, (Q, K, V), omega = _Counter(), (draw(n, d) / d for _ in range(3)), draw(k, d)
    queries, keys = (np.exp(times(z, omega.T) - (z * z).sum(axis=1, keepdims=True) / 2) for z in (Q, K))
    weighted = times(queries, times(keys.T, V))
    np.divide(weighted, (queries * keys.sum(axis=0)).sum(axis=1, keepdims=True))
    return times.count


def check_inverse_form() -> Iterator[Evidence]:
    """Compare equation (inv) with σ(XAXᵀ)XV, in NumPy and on U."""

    def matrices() -> Iterator[tuple[Array, Array, Array]]:
        for seed in range(10):
            generator = np.random.default_rng(seed)
            A, V = (np.eye(3) + 0.3 * generator.normal(size=(3, 3)) for _ in range(2))
            yield generator.normal(size=(3, 3)), A, V

    def formula(X: Array, A: Array, V: Array) -> Array:
        Y, AV = X @ A @ V, A @ V
        return softmax(Y @ np.linalg.inv(AV.T @ V) @ Y.T) @ Y @ np.linalg.inv(AV) @ V

    pairs = ((formula(X, A, V), attend(X, A, V)) for X, A, V in matrices())
    yield compare("the formula against σ(XAXᵀ)XV, non-singular A and V of order 3", pairs)
    U = UniversalSimulator(3, 3, 3, recipe="inverse")
    pairs = ((U(Attention(A, V), X), attend(X, A, V)) for X, A, V in matrices())
    yield compare("U built by this formula against σ(XAXᵀ)XV", pairs)
