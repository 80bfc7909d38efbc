"""The catalogue: each item of the paper, the function that is it, its claim, and what we find.

(The theorems about U are in ``simulators/catalogue.py``.)
Nothing here is written down that can be computed: heads are counted by ``analysis.architecture`` on
programs of the shapes the paper names, and every row has a check on an instance, against NumPy or the
plain definition (the tests check many more).
``locum catalogue`` prints the table.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from locum import constructions as c
from locum.constructions.matrix import Matrix
from locum.execution.activations import ACTIVATIONS
from locum.language.handles import SOp
from locum.language.python import full, length, tokens

X = np.array([[0.5, -1.0, 2.0, 0.25], [1.5, 0.0, -0.75, 1.0], [-2.0, 0.125, 0.5, -0.5]])
SQUARE = np.array([[7.0, 8.0, 12.0], [10.0, 11.0, 9.0], [2.0, 4.0, 21.0]])


@dataclass(frozen=True)
class Item:
    """One row: what the paper says, which function it is, and how both are checked."""

    paper: str
    operation: str
    function: str
    #: What the paper claims, in its words; layers and heads as [heads per layer].
    claim: str
    #: Programs to be counted, by recipe: the paper's first.
    programs: Callable[[], dict[str, SOp]]
    #: Heads per layer that the paper claims for its recipe, if it does.
    claimed: list[int] | None
    #: Whether our construction is right on an instance (against NumPy).
    check: Callable[[], bool]
    #: Number of the erratum (docs/errata.md), if the paper is wrong here.
    erratum: str = ""


@dataclass(frozen=True)
class Finding:
    """What came of an item."""

    item: Item
    #: Heads per layer, by recipe.
    counted: dict[str, list[int]]
    holds: bool
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "paper": self.item.paper,
            "operation": self.item.operation,
            "function": self.item.function,
            "claim": self.item.claim,
            "claimed_heads": self.item.claimed,
            "counted_heads": self.counted,
            "holds": self.holds,
            "verdict": self.verdict,
            "erratum": self.item.erratum or None,
        }


def findings(items: Sequence[Item] | None = None) -> list[Finding]:
    """Every item counted and checked; those below, if no others are given."""
    return [_find(item) for item in (ITEMS if items is None else items)]


def _find(item: Item) -> Finding:
    counted = {name: program.architecture.heads for name, program in item.programs().items()}
    agrees = item.claimed is None or item.claimed == next(iter(counted.values()))
    holds = agrees and item.check()
    if not holds:
        verdict = "does not hold"
    elif item.erratum:
        verdict = "right as corrected"
    else:
        verdict = "right"
    return Finding(item, counted, holds, verdict)


def _close(found: Any, wanted: Any) -> bool:
    return bool(np.allclose(np.asarray(found, float), np.asarray(wanted, float), rtol=0, atol=1e-12))


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _rectangle() -> Matrix:
    """A 3×· matrix that fills the sequence, as in the paper's listings."""
    return Matrix(tokens, 3, length // 3)


def _pair() -> tuple[Matrix, Matrix]:
    """A 3×· and a ·×4 matrix that fill the sequence."""
    k = length // 7
    return Matrix(tokens, 3, k), Matrix(tokens, k, 4, offset=3 * k)


def _small_product(recipe: str) -> SOp:
    a, b = c.concatenate(tokens, (3, 3), (3, 4))
    return c.matmul(a, b, recipe).sop


def _whole_square() -> Matrix:
    n = length**0.5
    return Matrix(tokens, n, n)


def _product_check() -> bool:
    a, b_view = c.concatenate(tokens, (3, 4), (4, 2))
    b = X.T[:, :2]
    given = [*X.ravel(), *b.ravel()]
    recipes = ("paper", "fetch", "tiled", "scatter")
    return _close(c.own_token_product(a, b_view).run(given), X @ b) and all(
        _close(c.matmul(a, b_view, recipe).run(given), X @ b) for recipe in recipes
    )


def _matching_check() -> bool:
    chance = np.random.default_rng(0)
    for _ in range(10):
        given = chance.integers(0, 9, size=5).tolist()
        two = [int(any((a + b) % 5 == 0 for b in given)) for a in given]
        pairs = list(itertools.product(given, repeat=2))
        three = [int(any((a + b + d) % 7 == 0 for b, d in pairs)) for a in given]
        forms = [c.match3(Matrix(tokens, 1, 5), 7, form) for form in ("padded", "heads", "tensor")]
        if c.match2(tokens, 5)(given) != two or any(f.run(given).tolist() != [three] for f in forms):
            return False
    return True


def _attend(x: Matrix) -> Matrix:
    return c.matmul(c.softmax(c.matmul(x, c.transpose(x))), x)


def _multihead_check() -> bool:
    blocks = np.random.default_rng(1).normal(size=(3, 2, 2))
    found = c.multihead(_attend, 3, Matrix(tokens, 2, 2)).run(blocks.ravel())
    return _close(found, np.concatenate([_softmax(x @ x.T) @ x for x in blocks]))


def _inverse_check() -> bool:
    view, wanted = Matrix(tokens, 3, 3), np.linalg.inv(SQUARE)
    recipes = ("paper", "cofactor", "gauss-jordan", "faddeev-leverrier")
    mild = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.0, 0.5, 2.0]])
    newton = c.inverse(view, "newton-schulz", steps=10).run(mild.ravel())
    return _close(newton, np.linalg.inv(mild)) and all(
        _close(c.inverse(view, recipe).run(SQUARE.ravel()), wanted) for recipe in recipes
    )


def _lipschitz_check() -> bool:
    points, errors = np.linspace(-3, 3, 301), []
    for knots in (7, 13, 25):
        network = c.lipschitz_network(np.sin, np.linspace(-3, 3, knots).tolist())
        if max(network.norms) > 1 + 1e-12:
            return False
        errors.append(np.abs(np.array(network(points.tolist())) - np.sin(points)).max())
    return bool(errors[0] > errors[1] > errors[2]) and bool(errors[2] <= 0.25)


def _parity_check() -> bool:
    programs = [c.k_parity(tokens, (1, 4, 6), heads) for heads in ("one", "each")]
    inputs = itertools.product(programs, itertools.product((0, 1), repeat=7))
    return all(p(list(bits))[0] == (bits[1] + bits[4] + bits[6]) % 2 for p, bits in inputs)


def _activations_check() -> bool:
    directly: dict[str, Callable[..., Any]] = {**ACTIVATIONS, "absolute": np.abs}
    wanted: dict[Callable[..., Matrix], Any] = {
        getattr(c, name): function(X) for name, function in directly.items()
    }
    plain = all(_close(function(_view()).run(X.ravel()), value) for function, value in wanted.items())
    through = all(
        _close(function(_view(), through="maxmin").run(X.ravel()), wanted[function])
        for function in (c.relu, c.leaky_relu, c.absolute)
    )
    return plain and through and _close(c.maxout(_view(), 2).run(X.ravel()), X.reshape(3, 2, 2).max(2))


def _encoder_check() -> bool:
    deviation = X - X.mean(1, keepdims=True)
    wanted = {
        c.add(_view(), _view()): 2 * X,
        c.row_sums(_view()): np.broadcast_to(X.sum(1, keepdims=True), X.shape),
        c.row_means(_view()): np.broadcast_to(X.mean(1, keepdims=True), X.shape),
        c.layer_norm(_view(), epsilon=0.0): deviation / X.std(1, keepdims=True),
        c.broadcast_row(_view().block(0, 0, 1, 4), 2): X[[0, 0]],
        c.broadcast_column(_view().block(0, 0, 3, 1), 2): X[:, [0, 0]],
    }
    return all(_close(program.run(X.ravel()), value) for program, value in wanted.items())


def _view() -> Matrix:
    return Matrix(tokens, 3, 4)


ITEMS = [
    Item(
        "Proposition 1D", "prop, concatenation", "prop, unprop, concatenate",
        "a bijection between n-dimensional arrays and sequences, m₀i₀ + i₁", dict, None,
        lambda: sorted(c.prop((2, 3, 4), i) for i in itertools.product(*map(range, (2, 3, 4)))) == list(range(24)),
        "E9",
    ),
    Item(
        "Proposition AHAT", "mean scaled to a sum", "summed",
        "the feed-forward multiplies by the number of keys; no head more",
        lambda: {"known count": c.summed(full, tokens, 3), "count unknown (selector_width)": c.summed(full, tokens)}, [1],
        lambda: c.summed(full, tokens, 3)([1, 2, 4]) == [7.0] * 3,
    ),
    Item(
        "Lemma transposition, Algorithm 1, Listing 1", "transpose", "transpose",
        "2 layers, 1 head each, O(1); exact",
        lambda: {"paper": c.transpose(_rectangle(), "paper").sop, "view": c.transpose(_rectangle()).sop}, [1, 1],
        lambda: _close(c.transpose(_view(), "paper").run(X.ravel()), X.T),
    ),
    Item(
        "Lemma softmax, Algorithm 2, Listing 2", "softmax", "softmax",
        "2 layers, r heads in the second, O(r)",
        lambda: {
            "paper": c.softmax(_rectangle(), stable=False).sop,
            "frugal": c.softmax(_view(), stable=False, recipe="frugal").sop,
            "stable": c.softmax(_view(), recipe="frugal").sop,
        }, [1, 3],
        lambda: _close(c.softmax(_view()).run(X.ravel()), _softmax(X)),
        "E1, E7",
    ),
    Item(
        "Lemma matmul, Algorithm 3, Listing 3", "matmul", "matmul, own_token_product",
        "3 layers; r + c heads, then rc; O(rc); for k ≥ rc/(r + c)",
        lambda: {
            "paper": c.matmul(*_pair()).sop,
            "fetch": _small_product("fetch"),
            "at own tokens": c.own_token_product(*c.concatenate(tokens, (3, 3), (3, 4))).sop,
            "tiled": _small_product("tiled"),
            "scatter": _small_product("scatter"),
        }, [1, 7, 12],
        _product_check, "E6, E17",
    ),
    Item(
        "Listing 4; remark on activations", "relu, leaky_relu, absolute, maxout, gelu, silu, tanh",
        "relu, leaky_relu, absolute, maxout, gelu, silu, sigmoid, tanh",
        "a feed-forward, no attention; ReLU and its like through MaxMin",
        lambda: {"feed-forward": c.relu(_view()).sop, "through MaxMin": c.relu(_view(), "maxmin").sop}, [],
        _activations_check,
    ),
    Item(
        "Lemma MaxMin, Algorithm 4, Listing 5", "maxmin, groupsort", "maxmin, groupsort",
        "O(1) heads, whatever the length",
        lambda: {
            "paper": c.maxmin(_view(), "paper").sop, "partner": c.maxmin(_view()).sop,
            "groups of 3": c.groupsort(_view(), 3).sop,
        }, None,
        lambda: _close(c.groupsort(_view(), 2).run(X.ravel()), c.maxmin(_view(), "paper").run(X.ravel()))
        and c.maxmin(Matrix(tokens, 1, 2)).run([1, -2]).tolist() == [[1.0, -2.0]],
        "E2",
    ),
    Item(
        "Lemma multi-head, snippets", "identify, shift", "identify, shift",
        "one head each",
        lambda: {"identify": c.identify(tokens, 1, 2), "shift": c.shift(tokens, 2, 5)}, [1],
        lambda: c.shift(tokens, 2)([10, 20, 30, 40, 50]) == [30, 40, 50, 10, 20]
        and c.identify(tokens, 1, 3)([10, 20, 30, 40, 50]) == [0, 20, 30, 40, 0],
        "E11, E12",
    ),
    Item(
        "Lemma multi-head", "multihead", "multihead",
        "any operation on H blocks at once, without interference",
        lambda: {"softmax(XXᵀ)X, H = 3": c.multihead(_attend, 3, Matrix(tokens, 2, 2)).sop}, None,
        _multihead_check, "E13",
    ),
    Item(
        "Lemma inversion, Listing 7", "cofactor", "cofactor",
        "order 3; 2 layers, 4 heads in the second",
        lambda: {"paper": c.cofactor(_whole_square(), order=3).sop, "order 4": c.cofactor(Matrix(tokens, 4, 4)).sop},
        [1, 4],
        lambda: _close(c.cofactor(Matrix(tokens, 3, 3)).run(SQUARE.ravel()), np.linalg.inv(SQUARE).T * 45),
        "E5",
    ),
    Item(
        "Lemma inversion, Algorithm 5, Listing 8", "determinant", "determinant",
        "order 3; 4 layers",
        lambda: {
            "paper": c.determinant(_whole_square(), order=3, recipe="paper").sop,
            "frugal": c.determinant(Matrix(tokens, 3, 3)).sop,
        }, [1, 4, 1, 1],
        lambda: _close(c.determinant(Matrix(tokens, 3, 3)).run(SQUARE.ravel()), [[45.0]]),
        "E5",
    ),
    Item(
        "Lemma inversion", "inverse", "inverse",
        "order 3; 5 layers, at most 4 heads",
        lambda: {
            "paper": c.inverse(_whole_square(), "paper", order=3).sop,
            "cofactor": c.inverse(Matrix(tokens, 3, 3), "cofactor").sop,
            "gauss-jordan": c.inverse(Matrix(tokens, 3, 3), "gauss-jordan").sop,
        }, [1, 4, 1, 1, 1],
        _inverse_check, "E4, E8",
    ),
    Item(
        "Introduction, Listing 6", "match2, match3", "match2, match3",
        "Match₂ by one attention layer with one head",
        lambda: {
            "Match₂": c.match2(tokens, 5),
            **{f"Match₃, {form}": c.match3(Matrix(tokens, 1, 4), 5, form).sop for form in ("padded", "heads", "tensor")},
        }, [1],
        _matching_check, "E3",
    ),
    Item(
        "Related work: k-PARITY", "k_parity", "k_parity",
        "one layer with k heads",
        lambda: {"k heads": c.k_parity(tokens, (1, 4, 6), "each"), "one head": c.k_parity(tokens, (1, 4, 6))}, [3],
        _parity_check,
    ),
    Item(
        "Corollary encoder: its parts", "row sums and means, broadcast, residual sum, layer_norm",
        "row_sums, row_means, broadcast_row, broadcast_column, add, layer_norm",
        "the residual sum is elementwise",
        lambda: {
            "residual sum": c.add(_view(), _view()).sop, "row sums": c.row_sums(_view()).sop,
            "layer norm": c.layer_norm(_view()).sop,
        }, [],
        _encoder_check,
        "E19",
    ),
    Item(
        "Remark on Lipschitz functions", "lipschitz_network", "lipschitz_network",
        "MaxMin networks with ‖W‖ ≤ 1 are dense in the 1-Lipschitz functions",
        lambda: {"5 knots": c.lipschitz_network(np.sin, [-2.0, -1.0, 0.0, 1.0, 2.0]).program(2).sop}, None,
        _lipschitz_check, "E21",
    ),
]  # fmt: skip
