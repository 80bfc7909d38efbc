"""Evidence on GroupSort, MaxMin and the remark on Lipschitz functions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from locum import constructions as c
from locum.constructions import Matrix
from locum.execution.activations import ACTIVATIONS
from locum.language.python import tokens
from locum.paper.algorithm_evidence import draw, sort_pairs
from locum.paper.algorithms import Array, prop
from locum.paper.evidence import (
    CONTEXT,
    CORRECTED,
    PRINTED,
    TOLERANCE,
    Evidence,
    compare,
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
    """Approximate a Lipschitz function, and run the printed formula of the first layer."""
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
    """Compute z ← W·MaxMin(z) + b for each layer; the first one sorts its input if ``sort_input``."""
    for number, (weights, bias) in enumerate(layers):
        z = weights @ (sort_pairs(z) if number or sort_input else z) + bias
    return z


def check_activations() -> Iterator[Evidence]:
    """Run ReLU, Leaky ReLU and Maxout through MaxMin, and measure GELU."""
    x, view = draw(6, 4), Matrix(tokens, 6, 4)
    through = {
        "ReLU": (c.relu(view, "maxmin"), ACTIVATIONS["relu"](x)),
        "Leaky ReLU": (c.leaky_relu(view, through="maxmin"), ACTIVATIONS["leaky_relu"](x)),
        "Maxout": (c.maxout(view, 2), x.reshape(6, 2, 2).max(2)),
    }
    for name, (program, expected) in through.items():
        yield compare(f"{name} through MaxMin, 24 normal numbers", [(program.run(prop(x)), expected)])
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


def check_biases() -> Iterator[Evidence]:
    """Add a bias that satisfies the printed bound."""
    bias = np.array([np.inf])
    sums = draw(1) + bias
    bounded = not np.abs(bias).max() <= np.inf or bool(np.isfinite(sums).all())
    yield Evidence(
        "max ‖b‖_∞ ≤ ∞ bounds the biases",
        "it does" if bounded else f"b = ∞ satisfies it, and z + b is {sums[0]}",
        bounded,
        erratum="E21",
    )
