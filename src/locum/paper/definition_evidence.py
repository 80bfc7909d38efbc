"""Collect evidence on the paper's definitions, such as pooling, scaling, GroupSort and MaxMin."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np

from locum import constructions as c
from locum.constructions import Matrix
from locum.execution.array_activations import ACTIVATIONS
from locum.paper.algorithm_evidence import draw, softmax, sort_pairs
from locum.paper.algorithms import Array, prop
from locum.paper.evidence import (
    CONTEXT,
    CORRECTED,
    OURS,
    PRINTED,
    TOLERANCE,
    Evidence,
    compare,
    count_equal,
    measure_error,
)
from locum.paper.listing_evidence import run_listing
from locum.rasp.handles import SOp
from locum.rasp.python import aggregate, exp, indices, length, select, tokens
from locum.simulators.modules.attention import Attention


def check_projections() -> Iterator[Evidence]:
    """Compare the attention of A = W_Q W_Kᵀ and V = W_V with the attention of W_Q, W_K and W_V."""

    def pairs() -> Iterator[tuple[Any, Any]]:
        for n, d, width, d_v in ((3, 4, 2, 3), (5, 3, 3, 1), (2, 2, 5, 4)):
            X, W_Q, W_K, W_V = draw(n, d), draw(d, width), draw(width, d).T, draw(d, d_v)
            attention = Attention(W_Q @ W_K.T, W_V)
            yield attention(X), softmax((X @ W_Q) @ (X @ W_K).T) @ (X @ W_V)

    yield compare("T of A = W_Q W_Kᵀ and V = W_V against W_Q, W_K, W_V", pairs())


def check_pooling() -> Iterator[Evidence]:
    """Check unique and average hard attention, and compare `aggregate` with average hard attention."""

    def pairs(pooling: str) -> Iterator[tuple[Any, Any]]:
        for seed in range(10):
            scores = np.random.default_rng(seed).integers(0, 3, size=(4, 4)).astype(float)
            values = draw(4, 2)
            # X = I makes A the scores and V the values.
            result = Attention(scores, values, pooling=pooling)(np.eye(4))
            chosen = [np.flatnonzero(row == row.max()) for row in scores]
            kept = [places[:1] if pooling == "unique" else places for places in chosen]
            yield result, np.array([values[places].mean(axis=0) for places in kept])

    yield compare("unique hard attention pools the first of the maxima", pairs("unique"))
    yield compare("average hard attention pools the mean of the maxima", pairs("average"))

    def averaged(selects: Callable[[int, int], bool], sop: SOp) -> tuple[Any, Any]:
        values = [3.0, 1.0, 4.0, 1.0, 5.0]
        scores = np.array([[float(selects(q, k)) for k in range(5)] for q in range(5)])
        means = [
            np.mean([v for v, s in zip(values, row, strict=True) if s == row.max()]) for row in scores
        ]
        return sop(values), means

    full_rows = averaged(lambda q, k: k <= q, aggregate(select(indices, indices, "<="), tokens))
    yield compare("`aggregate` is average hard attention, each row selecting something", [full_rows])
    actual, expected = averaged(lambda q, k: k < q, aggregate(select(indices, indices, "<"), tokens))
    same = measure_error(actual, expected) == 0
    yield Evidence(
        "`aggregate` is average hard attention, a row selecting nothing",
        f"`aggregate` gives {actual[0]:g} there, average hard attention {expected[0]:g}",
        same,
        erratum="E23",
    )


def check_scaling() -> Iterator[Evidence]:
    """Check that multiplying the first matrix of a feed-forward f by v yields f′(x) = f(vx)."""

    def pairs() -> Iterator[tuple[Any, Any]]:
        for v in (-3.0, 0.0, 0.5, 7.0):
            x, first, bias, second = draw(6, 3), draw(3, 5), draw(5), draw(5, 2)

            def feed_forward(x: Array, weights: Array) -> Array:
                return np.maximum(x @ weights + bias, 0) @ second  # noqa: B023

            yield feed_forward(x, v * first), feed_forward(v * x, first)

    found = compare("f′ by the same feed-forward with W₁ times v, v = −3, 0, ½, 7", pairs())
    yield found
    yield Evidence(
        "the proof needs universal approximation",
        "not needed: multiplying W₁ by v is exact" if found.holds else "W₁ times v is not exact",
        not found.holds,
        erratum="E30",
    )


def check_square_transposition() -> Iterator[Evidence]:
    """Transpose square matrices of several orders by one program.

    The program computes the order from ``length``.
    """
    order = length**0.5
    program = c.transpose(Matrix(tokens, order, order), "paper").sop
    pairs = ((program(prop(A).tolist()), prop(A.T)) for A in (draw(n, n) for n in range(1, 8)))
    yield compare("one program, r from r² = `length`, r = 1 … 7", pairs)


def check_contraction() -> Iterator[Evidence]:
    """Check whether any listing returns fewer tokens than it reads."""
    lengths = {}
    for name in (
        "transpose",
        "softmax",
        "matmul",
        "relu",
        "maxmin",
        "match2",
        "cofactor",
        "determinant",
    ):
        size = {"matmul": 14, "maxmin": 6}.get(name, 9)
        lengths[name] = size, len(run_listing(name, np.arange(1, size + 1)))
    shorter = [name for name, (before, after) in lengths.items() if after < before]
    yield Evidence(
        "a program of the paper returns fewer tokens than it reads, Listings 1 to 8",
        f"{', '.join(shorter)}"
        if shorter
        else "none does: a feed-forward acts on each position by itself",
        bool(shorter),
        erratum="E14",
    )


def check_k_parity() -> Iterator[Evidence]:
    """Run k-PARITY with k heads and with one head, on all words of five bits and for k ≤ 3."""
    chosen = [places for k in (1, 2, 3) for places in itertools.combinations(range(5), k)]
    words = list(itertools.product((0, 1), repeat=5))
    for heads, what in (("each", "one layer of k heads"), ("one", "one layer of one head")):
        programs = {places: c.k_parity(tokens, places, heads) for places in chosen}
        found = count_equal(
            "",
            (
                ((places, word), program(list(word))[0], sum(word[place] for place in places) % 2)
                for places, program in programs.items()
                for word in words
            ),
        )
        sizes = {
            (program.architecture.layers, program.architecture.width) for program in programs.values()
        }
        wanted = {(1, k) for k in (1, 2, 3)} if heads == "each" else {(1, 1)}
        yield Evidence(
            f"k-PARITY by {what}, n = 5, all S of 1, 2, 3 places, all words",
            f"{found.result}; (layers, heads): {', '.join(map(str, sorted(sizes)))}",
            found.holds and sizes == wanted,
            PRINTED if heads == "each" else OURS,
        )
    words = list(itertools.product((0, 1), repeat=3))
    languages = {place: {word for word in words if word[place] % 2 == 0} for place in range(3)}
    some = set().union(*languages.values())
    yield Evidence(
        "the set as printed, S chosen inside of it, is a parity language (n = 3, k = 1)",
        f"it has {len(some)} of {len(words)} words; for a fixed S there are {len(languages[0])}",
        some in languages.values(),
        erratum="E29",
    )


def check_groupsort() -> Iterator[Evidence]:
    """Count the orders of (1, 2, 3, 4) that satisfy the printed inequalities, and run GroupSort."""
    sorted_ones = [
        word
        for word in itertools.permutations((1, 2, 3, 4))
        if all(word[i] >= word[i + 1] for i in (0, 2))
    ]
    yield Evidence(
        "the inequalities determine ρ_2(S) for S = (1, 2, 3, 4)",
        f"{len(sorted_ones)} sequences satisfy them, such as {sorted_ones[0]} and {sorted_ones[-1]}",
        len(sorted_ones) == 1,
        erratum="E38",
    )

    def pairs() -> Iterator[tuple[Any, Any]]:
        for group in (1, 2, 3, 4):
            s = draw(12)
            expected = np.sort(s.reshape(-1, group), axis=1)[:, ::-1].ravel()
            yield c.groupsort(Matrix(tokens, 1, 12), group).run(s.tolist()).ravel(), expected

    yield compare("sorted within groups of 1, 2, 3, 4, twelve numbers", pairs(), CORRECTED)


def check_norms() -> Iterator[Evidence]:
    """Compare the p-norms of sequences before and after MaxMin."""

    def pairs() -> Iterator[tuple[Any, Any]]:
        for size, p in itertools.product((2, 4, 8, 20), (1, 1.5, 2, 3, np.inf)):
            s = draw(size)
            result = c.maxmin(Matrix(tokens, 1, size)).run(s.tolist())
            yield np.linalg.norm(result.ravel(), p), np.linalg.norm(s, p)

    yield compare("MaxMin preserves the p-norm, p = 1, 1.5, 2, 3, ∞", pairs())


def check_networks() -> Iterator[Evidence]:
    """Approximate sin by MaxMin networks, and run the printed formula of the first layer."""
    points, errors, norms = np.linspace(-3, 3, 301), [], []
    for knots in (7, 13, 25, 49):
        network = c.lipschitz_network(np.sin, np.linspace(-3, 3, knots).tolist())
        norms += network.norms
        errors.append(float(np.abs(np.array(network(points.tolist())) - np.sin(points)).max()))
    yield Evidence(
        "MaxMin networks with ‖W‖ ≤ 1 approximate sin on [−3, 3], 7, 13, 25, 49 knots",
        f"errors {', '.join(f'{error:.2g}' for error in errors)}; the largest norm is {max(norms):g}",
        max(norms) <= 1 + TOLERANCE and all(a > b for a, b in itertools.pairwise(errors)),
    )
    layers = [
        [(draw(4, 2, n)[..., 0], draw(4)), (draw(1, 4, n)[..., 0], draw(1))] for n in range(2, 22)
    ]
    equal = sum(
        np.array_equal(
            _run_network(np.array([0.0, 1.0]), each, True),
            _run_network(np.array([1.0, 0.0]), each, True),
        )
        for each in layers
    )
    yield Evidence(
        "the formula for ℓ = 1, MaxMin of the input itself, tells (0, 1) from (1, 0)",
        f"{equal} of {len(layers)} random networks have equal values there, so that they miss f(x, y) = x by ½",
        equal == 0,
        erratum="E34",
    )
    equal = sum(
        np.array_equal(
            _run_network(np.array([0.0, 1.0]), each, False),
            _run_network(np.array([1.0, 0.0]), each, False),
        )
        for each in layers
    )
    yield Evidence(
        "with z⁽¹⁾ = W⁽¹⁾z⁽⁰⁾ + b⁽¹⁾",
        f"{equal} of {len(layers)} random networks have equal values there",
        equal == 0,
        CORRECTED,
    )


def _run_network(z: Array, layers: list[tuple[Array, Array]], sort_input: bool) -> Array:
    """Compute z ← W·MaxMin(z) + b for each layer.

    The first layer applies MaxMin to its input only if ``sort_input`` is true.
    """
    for number, (weights, bias) in enumerate(layers):
        z = weights @ (sort_pairs(z) if number or sort_input else z) + bias
    return z


def check_activations() -> Iterator[Evidence]:
    """Compare ReLU, Leaky ReLU and Maxout through MaxMin with their definitions."""
    x, view = draw(6, 4), Matrix(tokens, 6, 4)
    through = {
        "ReLU": (c.relu(view, "maxmin"), ACTIVATIONS["relu"](x)),
        "Leaky ReLU": (c.leaky_relu(view, through="maxmin"), ACTIVATIONS["leaky_relu"](x)),
        "Maxout": (c.maxout(view, 2, "maxmin"), x.reshape(6, 2, 2).max(2)),
    }
    for name, (program, expected) in through.items():
        yield compare(f"{name} through MaxMin, 24 random numbers", [(program.run(prop(x)), expected)])


def check_heads_of_maxmin() -> Iterator[Evidence]:
    """Compare MaxMin of H blocks at once with MaxMin of each block, and `reverse` on two blocks."""

    def pairs() -> Iterator[tuple[Any, Any]]:
        for heads, size in itertools.product((1, 2, 3), (2, 4, 6)):
            blocks = draw(heads, size)
            together = c.maxmin(Matrix(tokens, 1, heads * size)).run(blocks.ravel().tolist())
            single = [c.maxmin(Matrix(tokens, 1, size)).run(block.tolist()).ravel() for block in blocks]
            yield together.ravel(), np.concatenate(single)

    yield compare("MaxMin of H blocks of even length is MaxMin of each, H = 1, 2, 3", pairs())
    reverse = aggregate(select(indices, length - 1 - indices, "=="), tokens)
    together = reverse([1, 2, 3, 4])
    single = [*reverse([1, 2]), *reverse([3, 4])]
    yield Evidence(
        "`reverse`, one program for every input, maps two blocks as it maps each",
        f"(1, 2, 3, 4) gives {tuple(together)}, block by block {tuple(single)}",
        together == single,
        erratum="E42",
    )


def check_exponential() -> Iterator[Evidence]:
    """Compare the exponentials of Listing 2 and of RASP with high-precision decimals."""
    numbers = draw(24).tolist()
    exact = [Decimal(number).exp() for number in numbers]
    printed = [Decimal("2.73") ** Decimal(number) for number in numbers]
    off = max(abs(a / b - 1) for a, b in zip(printed, exact, strict=True))
    ours = [Decimal(float(value)) for value in exp(tokens)(numbers)]
    rounded = max(abs(a / b - 1) for a, b in zip(ours, exact, strict=True))
    yield Evidence(
        "the exponential of Listing 2, 24 random numbers, against 28 digits",
        f"approximate: relative error up to {off:.0e}",
        off > 0,
    )
    yield Evidence(
        "`exp` of Locum's RASP, the same numbers",
        f"approximate: relative error up to {rounded:.0e}, the rounding of floats",
        0 < rounded < Decimal("1e-15"),
        OURS,
    )


def check_gelu() -> Iterator[Evidence]:
    """Measure the largest slopes of GELU and SiLU, and approximate GELU by ReLU pieces."""
    grid = np.linspace(-6, 6, 120_001)
    for name, activation, about in (("GELU", "gelu", PRINTED), ("SiLU", "silu", CONTEXT)):
        slopes = np.abs(np.diff(np.asarray(ACTIVATIONS[activation](grid))) / np.diff(grid))
        yield Evidence(
            f"the Lipschitz constant of {name} is 1.0998",
            f"the largest slope is {slopes.max():.4f}, at {grid[int(slopes.argmax())]:.2f}",
            f"{slopes.max():.4f}" == "1.0998",
            about,
            "E22",
        )
    gelu, errors = ACTIVATIONS["gelu"], []
    for pieces in (16, 32, 64, 128):
        knots = np.linspace(-6, 6, pieces + 1)
        errors.append(float(np.abs(np.interp(grid, knots, gelu(knots)) - gelu(grid)).max()))
    yield Evidence(
        "GELU by 16, 32, 64, 128 ReLU pieces on [−6, 6]",
        f"errors {', '.join(f'{error:.0e}' for error in errors)}",
        all(after < before / 2 for before, after in itertools.pairwise(errors)),
    )
