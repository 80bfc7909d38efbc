"""Collect evidence on sizes and costs that the paper states, and on its related and future work.

The looped transformers of Giannou et al. are the networks of ``locum.networks.looped``. The layouts of
these networks are reconstructions, so their results do not check the published networks and are only
context.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from locum import constructions as c
from locum.constructions import Matrix
from locum.graph import stable_hash
from locum.graph.node import node_of
from locum.networks.compiler import compile as compile_program
from locum.networks.looped import Product, Transposition
from locum.networks.looped.block import bits_for, code
from locum.paper import figure2, listings
from locum.paper.algorithm_evidence import draw, fits, softmax, sort_pairs
from locum.paper.algorithms import prop
from locum.paper.evidence import (
    CONTEXT,
    CORRECTED,
    OURS,
    Evidence,
    Shape,
    compare,
    measure_error,
)
from locum.paper.listing_evidence import count_heads
from locum.rasp.python import tokens
from locum.simulators import UniversalSimulator

_ORDERS = list(itertools.product(range(1, 9), repeat=3))


def _fitting() -> set[Shape]:
    """Return the orders (n, d, d_v) at which XA, (XA)Xᵀ, XV and the last product all fit."""
    return {
        (n, d, d_v)
        for n, d, d_v in _ORDERS
        if fits(n, d, d) and fits(n, d, n) and fits(n, d, d_v) and fits(n, n, d_v)
    }


def check_requirement() -> Iterator[Evidence]:
    """Check whether n ≤ min(d, d_v) is sufficient and necessary for all products of U to fit."""
    named, fitting = {order for order in _ORDERS if order[0] <= min(order[1:])}, _fitting()
    extra = sorted(fitting - named)
    yield Evidence(
        "the products of U fit where n ≤ min(d, d_v), orders up to 8",
        f"at all {len(named)} such orders" if named <= fitting else "not at all such orders",
        named <= fitting,
    )
    yield Evidence(
        "they fit only there: U “requires” n ≤ min(d, d_v)",
        f"they fit at {len(extra)} more orders, the first is {extra[0]}" if extra else "only there",
        not extra,
        erratum="E17",
    )


def check_sizes() -> Iterator[Evidence]:
    """Check the text after Theorem 1: which orders fit, and how to compute d from the length."""
    criterion = all(fits(r, k, columns) for r, k, columns in _ORDERS if k >= min(r, columns))
    yield Evidence(
        "k ≥ min(r, c) satisfies the lemma, r, k, c = 1 … 8",
        "at every shape" if criterion else "not at every shape",
        criterion,
    )
    yield from check_requirement()
    exact = _fitting() == {order for order in _ORDERS if order[0] <= 2 * order[1] and fits(*order)}
    yield Evidence(
        "they fit exactly where d ≥ n/2 and d(n + d_v) ≥ n·d_v",
        "at these orders and no others" if exact else "not exactly there",
        exact,
        CORRECTED,
    )
    found = [
        n
        for n in range(1, 41)
        if all((np.sqrt(n**2 + 4 * (n * d + d**2)) - n) / 2 == d for d in range(1, 41))
    ]
    yield Evidence(
        "d from nd + d² = `length`, n, d = 1 … 40", f"found at {len(found)} of 40 n", len(found) == 40
    )
    needed = all(n % 4 == 0 for n in found)
    yield Evidence(
        "“given that n mod 4 = 0” is needed for this",
        "needed" if needed else f"not needed: n = {found[0]} works",
        needed,
        erratum="E18",
    )


def _product(r: int, k: int, columns: int) -> Matrix:
    first, second = c.concatenate(tokens, (r, k), (k, columns))
    return c.matmul(first, second, "paper")


def check_dependence() -> Iterator[Evidence]:
    """Count the heads of T_⊠^(n, d) for n = 2 and several values of d."""
    heads = [sum(_product(2, 6, d).sop.architecture.heads) for d in range(1, 5)]
    yield Evidence(
        "U depends on n alone: heads of T_⊠^(2, d), d = 1 … 4",
        ", ".join(map(str, heads)),
        len(set(heads)) == 1,
        erratum="E37",
    )


def check_cost() -> Iterator[Evidence]:
    """Count the heads and layers of products at orders up to 5."""
    shapes = list(itertools.product(range(1, 6), repeat=2))
    sizes = {(r, columns): _product(r, 5, columns).sop.architecture for r, columns in shapes}
    counted = all(sum(size.heads) == r + k + r * k for (r, k), size in sizes.items())
    yield Evidence(
        "a product has r + c + rc attention matrices, r, c = 1 … 5",
        "counted at every shape" if counted else "another number at some shape",
        counted,
    )
    bounded = all(sum(size.heads) <= 2 * r * k for (r, k), size in sizes.items() if min(r, k) >= 2)
    yield Evidence(
        "of the order O(2rc), r, c = 2 … 5",
        "r + c + rc ≤ 2rc at every shape" if bounded else "more than 2rc at some shape",
        bounded,
    )
    depths = {size.layers for size in sizes.values()}
    widths = sorted({size.width for size in sizes.values()})
    yield Evidence(
        "layers and width of a product: the width depends on the order, the depth does not",
        f"{', '.join(map(str, sorted(depths)))} layers, width {widths[0]} to {widths[-1]}",
        len(depths) == 1 and len(widths) > 1,
    )


#: The rows of Table 2: a name, the printed cost, and a function that builds the construction at order r
#: in the paper's recipe.
COSTS: tuple[tuple[str, str, Callable[[int], Matrix]], ...] = (
    ("transposition", "O(1)", lambda r: c.transpose(Matrix(tokens, r, r), "paper")),
    ("softmax", "O(r)", lambda r: c.softmax(Matrix(tokens, r, r), stable=False)),
    ("multiplication", "O(rc)", lambda r: _product(r, r, r)),
    ("MaxMin of 2r numbers", "O(1)", lambda r: c.maxmin(Matrix(tokens, 1, 2 * r), "paper")),
)


def check_table_2() -> Iterator[Evidence]:
    """Count the heads for each row of Table 2, and check which programs depend on the order."""
    orders = range(2, 7)
    powers = {"O(1)": 0, "O(r)": 1, "O(rc)": 2}
    for name, cost, build in COSTS:
        heads = [sum(build(r).sop.architecture.heads) for r in orders]
        ratios = [count / r ** powers[cost] for r, count in zip(orders, heads, strict=True)]
        yield Evidence(
            f"{name}: {cost}, heads at r = c = 2 … 6",
            ", ".join(map(str, heads)),
            max(ratios) <= ratios[0],
        )
    for name, _, build in COSTS[:3]:
        depends = len({stable_hash(node_of(build(r).sop)) for r in (2, 3)}) == 2
        yield Evidence(
            f"{name}: input dependency ✓",
            "other programs at r = 2 and 3" if depends else "one program at r = 2 and 3",
            depends,
        )
    program = listings.program("maxmin_corrected", [1.0, 2.0])
    pairs = ((program(s.tolist()), sort_pairs(s)) for s in (draw(size) for size in range(2, 13, 2)))
    found = compare("", pairs)
    yield Evidence(
        "MaxMin: input dependency ✗",
        f"one program at lengths 2, 4, …, 12: {found.result}",
        found.holds,
    )


def check_table_1() -> Iterator[Evidence]:
    """Count the layers and heads in Table 1, for Locum and for reconstructed looped transformers."""
    for operation, printed, name, example, size in (
        ("transposition, 3×2", "2L, 1H, O(r·)", "transpose", 3 * 2, (2, 1)),
        ("multiplication, 3×2 by 2×4", "3L, O(rc)H, O(k(r+c))", "matmul", 2 * (3 + 4), (3, 3 * 4)),
        ("inversion, 3×3", "5L, 4H, O(r²)", "inverse_corrected", 3**2, (5, 4)),
    ):
        heads = count_heads(name, example)
        result = f"{len(heads)} layers, width {max(heads)}, {example} tokens"
        yield Evidence(f"row “Ours”, {operation}: {printed}", result, (len(heads), max(heads)) == size)
    program = c.transpose(Matrix(tokens, 3, 3), "paper")
    model = compile_program(program.sop, length=9, numeric=True, fixed=True, feed_forward="exact")
    found = compare(
        "", ((model(prop(A)), prop(A.T)) for A in (draw(3, 3) + shift for shift in range(5)))
    )
    one = f"one network, compiled before any input, transposes 5 matrices ({found.result})"
    yield Evidence(
        "row “Ours”, Dep ✓: weights depend on input values",
        one if found.holds else "one network does not serve 5 matrices",
        not found.holds,
        erratum="E20",
    )
    for operation, printed, block in (
        ("transposition", "4L, 1H", Transposition(3)),
        ("multiplication", "2L, 1H", Product(3, 3, 3)),
    ):
        result = f"our reconstruction: {block.architecture.layers} layers, width {max(block.architecture.heads)}"
        yield Evidence(f"looped transformers, {operation}: {printed}", result, True, CONTEXT)


def misread(n: int, temperature: float) -> float:
    """Return the largest total softmax weight of wrong positions if a position is read by its code.

    The n keys are codes with entries ±1, and ``temperature`` multiplies their inner products.
    """
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
    """Measure the size of the state that the reconstructed looped transposition needs."""
    blocks = [Transposition(order) for order in (4, 8, 16)]
    sizes = [f"{block.slots.size} × {block.positions}" for block in blocks]
    yield Evidence("the state of our reconstruction, d = 4, 8, 16", ", ".join(sizes), True, CONTEXT)


def check_value_matrix() -> Iterator[Evidence]:
    """Measure the largest entry of W_V W_O in the last layer of the reconstructed transposition."""
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
    """Count the positions that contain the first column of Aᵀ after the reconstructed transposition."""
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
