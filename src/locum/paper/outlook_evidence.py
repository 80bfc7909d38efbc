"""Evidence on the paper's related work and on the future work of its conclusion.

The looped transformers of Giannou et al. are those of ``locum.looped``. Their layouts are
reconstructions, so that what they show is context, not a check of the published networks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from locum.looped import Transposition
from locum.looped.block import bits_for, code
from locum.paper import figure2
from locum.paper.algorithm_evidence import draw, softmax
from locum.paper.evidence import CONTEXT, OURS, Evidence, measure_error
from locum.simulators import UniversalSimulator


def misread(n: int, temperature: float) -> float:
    """Return the largest total weight of the wrong positions among n keys of ±1 codes."""
    codes = np.array([code(position, bits_for(n)) for position in range(n)])
    return float((1 - np.diag(softmax(temperature * codes @ codes.T))).max())


def check_temperature() -> Iterator[Evidence]:
    """Read positions by softmax attention with λ = log(n³/ε), and with a fixed λ."""
    sizes, errors = (2, 3, 4, 8, 16, 64, 256), (1e-1, 1e-3, 1e-6)
    worst = {
        (n, error): misread(n, float(np.log(n**3 / error))) / error
        for n, error in itertools.product(sizes, errors)
    }
    yield Evidence(
        "weight of wrong positions at λ = log(n³/ε), n = 2 … 256, ε = 1e-1, 1e-3, 1e-6",
        f"at most {max(worst.values()):.1g}·ε",
        max(worst.values()) <= 1,
    )
    fixed = [misread(n, 2.0) for n in sizes]
    yield Evidence(
        f"λ has to depend on n: the same at λ = 2, n = {', '.join(map(str, sizes))}",
        ", ".join(f"{error:.2g}" for error in fixed),
        fixed[-1] > fixed[0],
    )


def check_input_of_transposition() -> Iterator[Evidence]:
    """Measure the state that our reconstruction of the looped transposition takes."""
    blocks = [Transposition(order) for order in (4, 8, 16)]
    sizes = [f"{block.slots.size} × {block.positions}" for block in blocks]
    yield Evidence("the state of our reconstruction, d = 4, 8, 16", ", ".join(sizes), True, CONTEXT)


def check_value_matrix() -> Iterator[Evidence]:
    """Read the largest value weight of the last layer of our reconstruction."""
    largest = []
    for order in (2, 3, 4):
        attention = Transposition(order).weights.layers[-1].attention
        assert attention is not None
        largest.append(float(np.abs(attention.W_V @ attention.W_O).max()))
    yield Evidence(
        "largest entry of W_V W_O in the last layer of our reconstruction, d = 2, 3, 4",
        ", ".join(f"{value:g}" for value in largest),
        True,
        CONTEXT,
    )


def check_duplicates() -> Iterator[Evidence]:
    """Count how often each column of Aᵀ is in the result of our reconstruction."""
    counts = []
    for order in (2, 3, 4):
        block, A = Transposition(order), draw(order, order)
        columns = block.run(block.state(A))[:, list(block.slots["result"])]
        counts.append(sum(measure_error(column, A.T[:, 0]) < 1e-9 for column in columns))
    yield Evidence(
        "positions that hold the first column of Aᵀ in our reconstruction, d = 2, 3, 4",
        ", ".join(map(str, counts)),
        True,
        CONTEXT,
    )


def check_weights() -> Iterator[Evidence]:
    """Compile U to weights, and run the network on the T and X of Figure 2."""
    U = UniversalSimulator(3, 3, 3)
    expected = figure2.T(figure2.X)
    units = {"attention": "softmax", "feed_forward": "glu", "ranges": (-5.0, 5.0)}
    for what, recipe, options in (
        ("softmax heads, gated units", "native", units),
        ("average hard attention; feed-forwards are instructions, not weights", "fetch",
         {"feed_forward": "exact"}),
    ):  # fmt: skip
        model = U.compile(recipe, **options)
        size = model.architecture
        error = measure_error(U.decode(model(U.encode(figure2.T, figure2.X))), expected)
        yield Evidence(
            f"U of order (3, 3, 3) compiled to weights ({what}), on Figure 2's T and X",
            f"{size.layers} layers, heads {list(size.heads)}, d_model {size.d_model}, "
            f"{size.parameters:,} parameters; error {error:.0e}",
            error <= 1e-9,
            OURS,
        )


def check_learning() -> Iterator[Evidence]:
    """Train U from its weights with noise, its zeros held, at two scales of noise."""
    try:
        from locum.learning.training import train  # torch, only where it is used
    except ImportError:
        yield Evidence("training U from noise", "not run: needs locum[torch]", True, CONTEXT)
        return
    scales = {0.003: True, 0.1: False}
    rows = train(
        {"task": "U", "order": [2, 1, 1], "sigmas": list(scales), "trainable": "nonzeros",
         "seeds": 2, "steps": 30, "batch": 16}
    )["rows"]  # fmt: skip
    for sigma, recovers in scales.items():
        trained = [row for row in rows if row["sigma"] == sigma]
        recovered = sum(row["recovered"] for row in trained)
        yield Evidence(
            f"U(2, 1, 1) trained by Adam from relative noise {sigma:g} on its weights, zeros held",
            f"{recovered} of {len(trained)} networks recover",
            recovered == (len(trained) if recovers else 0),
            OURS,
        )
