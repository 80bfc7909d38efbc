"""The claims that can be proven by name: constructions and U, each against its textbook formula.

``claim("matmul", 3, 3, 4)`` is the claim that the paper's matrix product is the product, for all 3×3
and 3×4 matrices. The references use nothing of the constructions (``algebra.py``).

>>> claim("transpose", 2, 3).statement
'for all X ∈ ℝ^{2×3}: T(X) = Xᵀ'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from locum import constructions as c
from locum.constructions import Matrix
from locum.errors import InputError
from locum.language.python import tokens
from locum.simulators import Order, UniversalSimulator
from locum.simulators.layer_simulator import LayerSimulator
from locum.verification.claims.algebra import Algebra, Rows
from locum.verification.claims.claim import Claim, Input, about


@dataclass(frozen=True)
class Family:
    """Claims of one name, one for every shape."""

    name: str
    parameters: tuple[str, ...]
    build: Callable[..., Claim]
    #: In a few words.
    words: str
    #: What may be said of the recipe, the first being the default.
    recipes: tuple[str, ...] = ()


def claim(name: str, *shape: int, recipe: str | None = None) -> Claim:
    """The claim of that name and shape."""
    if name not in FAMILIES:
        raise InputError(f"there is no claim {name!r}: choose one of {', '.join(FAMILIES)}")
    family = FAMILIES[name]
    if len(shape) != len(family.parameters) or any(type(n) is not int or n < 1 for n in shape):
        wanted = " ".join(family.parameters) or "no numbers"
        raise InputError(f"{name} takes {wanted}, positive whole numbers, but got {shape or 'none'}")
    if recipe is not None and recipe not in family.recipes:
        choices = ", ".join(family.recipes) or "none: it has one form only"
        raise InputError(f"{name} has no recipe {recipe!r}: choose {choices}")
    if not family.recipes:
        return family.build(*shape)
    recipe = recipe or family.recipes[0]
    return replace(family.build(*shape, recipe=recipe), recipe=recipe)


def reals(*inputs: Input) -> str:
    """``X ∈ ℝ^{2×2}, A ∈ ℝ^{2×3}``"""
    return ", ".join(f"{name} ∈ ℝ^{{{rows}×{columns}}}" for name, rows, columns in inputs)


def _on_matrix(
    name: str,
    shape: Sequence[int],
    formula: str,
    program: Matrix,
    inputs: Sequence[Input],
    reference: Callable[..., Rows],
    where: str = "",
    **options: Any,
) -> Claim:
    statement = f"for all {reals(*inputs)}{where}: {formula}"
    return about(name, shape, statement, program, inputs, reference, **options)


def _transpose(r: int, k: int, recipe: str) -> Claim:
    return _on_matrix(
        "transpose", (r, k), "T(X) = Xᵀ", c.transpose(Matrix(tokens, r, k), recipe), [("X", r, k)],
        lambda g, x: g.transpose(x),
    )  # fmt: skip


def _matmul(r: int, k: int, columns: int, recipe: str) -> Claim:
    a, b = c.concatenate(tokens, (r, k), (k, columns))
    return _on_matrix(
        "matmul", (r, k, columns), "T(A, B) = AB", c.matmul(a, b, recipe),
        [("A", r, k), ("B", k, columns)], lambda g, x, y: g.matmul(x, y),
    )  # fmt: skip


def _softmax(r: int, k: int, recipe: str) -> Claim:
    program = c.softmax(Matrix(tokens, r, k), stable=recipe == "stable")
    return _on_matrix(
        "softmax", (r, k), "T(X) = σ(X), row by row", program, [("X", r, k)],
        lambda g, x: g.softmax(x),
    )  # fmt: skip


def _relu(n: int, recipe: str) -> Claim:
    return _on_matrix(
        "relu", (n,), "T(X) = max(X, 0)", c.relu(Matrix(tokens, 1, n), recipe), [("X", 1, n)],
        lambda g, x: g.relu(x),
    )  # fmt: skip


def _maxmin(n: int, recipe: str) -> Claim:
    program = c.maxmin(Matrix(tokens, 1, n), recipe)
    return _on_matrix(
        "maxmin", (n,), "T(X) = each pair of X, the greater first", program, [("X", 1, n)],
        lambda g, x: _groups(g, x, 2),
    )  # fmt: skip


def _groupsort(n: int, size: int) -> Claim:
    return _on_matrix(
        "groupsort", (n, size), f"T(X) = each {size} entries of X, sorted downwards",
        c.groupsort(Matrix(tokens, 1, n), size), [("X", 1, n)], lambda g, x: _groups(g, x, size),
    )  # fmt: skip


def _groups(g: Algebra, x: Rows, size: int) -> Rows:
    parts = [g.sorted(x[0][i : i + size]) for i in range(0, len(x[0]), size)]
    return [[value for part in parts for value in part]]


def _cofactor(r: int) -> Claim:
    return _on_matrix(
        "cofactor", (r,), "T(A)[i, j] = (−1)^(i+j) det(A without row i and column j)",
        c.cofactor(Matrix(tokens, r, r)), [("A", r, r)], lambda g, a: g.cofactors(a),
    )  # fmt: skip


def _determinant(r: int, recipe: str) -> Claim:
    return _on_matrix(
        "determinant", (r,), "T(A) = det A", c.determinant(Matrix(tokens, r, r), recipe=recipe),
        [("A", r, r)], lambda g, a: [[g.determinant(a)]],
    )  # fmt: skip


def _inverse(r: int, recipe: str) -> Claim:
    """T(A) = A⁻¹, said as A·T(A) = I: the product with A is part of the program."""
    a = Matrix(tokens, r, r)
    program = c.matmul(a, c.inverse(a, recipe), "fetch")
    return _on_matrix(
        "inverse", (r,), "A·T(A) = I", program, [("A", r, r)],
        lambda g, a: [[int(i == j) for j in range(r)] for i in range(r)],
        " with det A ≠ 0", conditions=lambda g, a: [("det A", g.determinant(a))],
    )  # fmt: skip


def _identify(n: int, start: int, count: int) -> Claim:
    """Positions are counted from 1, as in the paper."""
    statement = f"for all s ∈ ℝ^{n}: T(s) keeps s[{start}] … s[{start + count - 1}] and is 0 elsewhere"
    kept = range(start - 1, start - 1 + count)
    return about(
        "identify", (n, start, count), statement, c.identify(tokens, start - 1, count), [("s", 1, n)],
        lambda g, s: [[x if i in kept else 0 for i, x in enumerate(s[0])]],
    )  # fmt: skip


def _shift(n: int, by: int) -> Claim:
    statement = f"for all s ∈ ℝ^{n}: T(s)[i] = s[(i + {by}) mod {n}]"
    return about(
        "shift", (n, by), statement, c.shift(tokens, by), [("s", 1, n)],
        lambda g, s: [[s[0][(i + by) % n] for i in range(n)]],
    )  # fmt: skip


def _multihead_transpose(heads: int, r: int, k: int) -> Claim:
    return _on_matrix(
        "multihead_transpose", (heads, r, k), "T(X⁰, …) = X⁰ᵀ, …, one below the other",
        c.multihead(lambda x: c.transpose(x, "paper"), heads, Matrix(tokens, r, k)),
        [(f"X{h}", r, k) for h in range(heads)],
        lambda g, *x: [row for block in x for row in g.transpose(block)],
    )  # fmt: skip


def _multihead_matmul(heads: int, r: int, k: int, columns: int) -> Claim:
    shapes = [(r, k)] * heads + [(k, columns)] * heads
    views = c.concatenate(tokens, *shapes)
    inputs = [(f"A{h}", r, k) for h in range(heads)] + [(f"B{h}", k, columns) for h in range(heads)]
    return _on_matrix(
        "multihead_matmul", (heads, r, k, columns), "T = A⁰B⁰, …, one below the other",
        c.multihead(c.matmul, heads, views[0], views[heads]), inputs,
        lambda g, *m: [row for h in range(heads) for row in g.matmul(m[h], m[heads + h])],
    )  # fmt: skip


def _match2(n: int, p: int) -> Claim:
    statement = f"for all s ∈ ℤ^{n}: T(s)[i] = 1 if s[i] + s[j] ≡ 0 (mod {p}) for some j, else 0"
    program = c.match2(tokens, p)
    return about("match2", (n, p), statement, program, [("s", 1, n)], match2(p), whole=True)


def match2(p: int) -> Callable[..., Rows]:
    """The definition of Match₂."""

    def reference(g: Algebra, s: Rows) -> Rows:
        result = []
        for a in s[0]:
            found: Any = False
            for b in s[0]:
                rest = g.apply("modulo", g.apply("add", a, b), p)
                found = g.apply("or", found, g.apply("equal", rest, 0))
            result.append(g.apply("indicator", found))
        return [result]

    return reference


# U ------------------------------------------------------------------------------------------------


def _inputs_of(simulator: LayerSimulator) -> list[Input]:
    found: list[Input] = []
    for block in simulator.layout.blocks.values():
        copies = [""] if block.copies == 1 else [str(h) for h in range(block.copies)]
        found += [(block.name + copy, block.rows, block.columns) for copy in copies]
    return found


def _about_u(
    name: str,
    shape: Sequence[int],
    formula: str,
    simulator: LayerSimulator,
    reference: Callable[..., Rows],
    where: str = "",
    **options: Any,
) -> Claim:
    inputs = _inputs_of(simulator)
    return _on_matrix(
        name, shape, f"U⟨T, X⟩ = {formula}", simulator.output, inputs, reference, where,
        length=simulator.length, **options,
    )  # fmt: skip


def _attention(n: int, d: int, d_v: int, recipe: str) -> Claim:
    if recipe == "inverse":
        return _inverse_attention(n, d, d_v)
    simulator = UniversalSimulator(n, d, d_v, recipe=recipe)
    return _about_u("attention", (n, d, d_v), "σ(XAXᵀ)XV", simulator, Algebra.attention)


def _inverse_attention(n: int, d: int, d_v: int) -> Claim:
    return _about_u(
        "attention", (n, d, d_v), "σ(XAXᵀ)XV", UniversalSimulator(n, d, d_v, recipe="inverse"),
        Algebra.attention, " with det A ≠ 0 and det V ≠ 0",
        conditions=lambda g, x, a, v: [("det A", g.determinant(a)), ("det V", g.determinant(v))],
    )  # fmt: skip


def _encoder(n: int, d: int, d_v: int, d1: int, d2: int) -> Claim:
    def reference(g: Algebra, x: Rows, a: Rows, v: Rows, w1: Rows, w2: Rows) -> Rows:
        residual = g.each("add", x, g.attention(x, a, v))
        return g.matmul(g.relu(g.matmul(residual, w1)), w2)

    simulator = UniversalSimulator(Order.of(n, d, d_v, feed_forward=(d1, d2)))
    formula = "max((X + σ(XAXᵀ)XV)W1, 0)W2"
    return _about_u("encoder", (n, d, d_v, d1, d2), formula, simulator, reference)


def _heads(heads: int, n: int, d: int, d_v: int) -> Claim:
    def reference(g: Algebra, x: Rows, *m: Rows) -> Rows:
        parts = [g.attention(x, m[h], m[heads + h]) for h in range(heads)]
        return [[x for row in rows for x in row] for rows in zip(*parts, strict=True)]

    simulator = UniversalSimulator(Order.of(n, d, d_v, heads=heads))
    return _about_u(
        "multihead_attention",
        (heads, n, d, d_v),
        "[σ(XA⁰Xᵀ)XV⁰, …], side by side",
        simulator,
        reference,
    )


def _linformer(n: int, d: int, d_v: int) -> Claim:
    def reference(g: Algebra, x: Rows, q: Rows, k: Rows, v: Rows, e: Rows, f: Rows) -> Rows:
        scores = g.matmul(g.matmul(x, q), g.transpose(g.matmul(e, x, k)))
        return g.matmul(g.softmax(scores), g.matmul(f, x, v))

    simulator = UniversalSimulator(Order.of(n, d, d_v, kind="linformer", rank=max(2, n // 2)))
    formula = "σ(XW_Q(EXW_K)ᵀ)FXV"
    return _about_u("linformer", (n, d, d_v), formula, simulator, reference)


def _linear(n: int, d: int, d_v: int) -> Claim:
    def reference(g: Algebra, x: Rows, q: Rows, k: Rows, v: Rows) -> Rows:
        return g.matmul(g.matmul(g.matmul(x, q), g.transpose(g.matmul(x, k))), g.matmul(x, v))

    simulator = UniversalSimulator(Order.of(n, d, d_v, kind="linear"))
    return _about_u("linear", (n, d, d_v), "XW_Q(XW_K)ᵀXV", simulator, reference)


def _hierarchy(m: int, e: int, e_v: int, n: int, d: int, d_v: int) -> Claim:
    simulator = UniversalSimulator(n, d, d_v).masked
    return embedded("hierarchy", (m, e, e_v, n, d, d_v), simulator, fixed={"rows": m})


def embedded(
    name: str, shape: Sequence[int], simulator: LayerSimulator, fixed: dict[str, int]
) -> Claim:
    """A T of order (m, e, e_v) in zeros on a larger U: the first m rows and e_v columns are T(X)."""
    m, e, e_v = shape[:3]
    inputs = [("X", m, e), ("A", e, e), ("V", e, e_v)]
    layout: list[tuple[int, int, int] | int] = [0] * simulator.layout.size
    for number, (block, rows, columns) in enumerate(inputs):
        for i in range(rows):
            for j in range(columns):
                layout[simulator.layout.position(block, i, j)] = (number, i, j)
    for block, value in fixed.items():
        layout[simulator.layout.position(block, 0, 0)] = value
    part = simulator.output.block(0, 0, m, e_v)
    statement = (
        f"for all {reals(*inputs)}: U⟨T, X⟩ of order {simulator.order}, X, A and V set into zeros, "
        "begins with σ(XAXᵀ)XV"
    )
    return about(
        name, shape, statement, part, inputs, Algebra.attention, layout=layout, length=simulator.length
    )


_ORDER = ("n", "d", "d_v")
FAMILIES = {
    family.name: family
    for family in (
        Family("transpose", ("r", "c"), _transpose, "Lemma transposition", ("paper", "view")),
        Family(
            "matmul", ("r", "k", "c"), _matmul, "Lemma matmul", ("paper", "fetch", "tiled", "scatter")
        ),
        Family("softmax", ("r", "c"), _softmax, "Lemma softmax", ("stable", "plain")),
        Family("relu", ("n",), _relu, "Listing 4", ("feed-forward", "maxmin")),
        Family("maxmin", ("n",), _maxmin, "Lemma MaxMin", ("partner", "paper")),
        Family("groupsort", ("n", "group"), _groupsort, "GroupSort"),
        Family("cofactor", ("r",), _cofactor, "Lemma inversion: cofactors"),
        Family(
            "determinant", ("r",), _determinant, "Lemma inversion: determinant", ("frugal", "paper")
        ),
        Family("inverse", ("r",), _inverse, "Lemma inversion", ("cofactor", "paper", "gauss-jordan")),
        Family("identify", ("n", "i", "k"), _identify, "identify"),
        Family("shift", ("n", "t"), _shift, "shift"),
        Family("multihead_transpose", ("H", "r", "c"), _multihead_transpose, "Lemma multi-head"),
        Family("multihead_matmul", ("H", "r", "k", "c"), _multihead_matmul, "Lemma multi-head"),
        Family("match2", ("n", "p"), _match2, "Match₂ over ℤ"),
        Family(
            "attention",
            _ORDER,
            _attention,
            "Theorem 1",
            ("fetch", "paper", "tiled", "width-1", "inverse"),
        ),
        Family("encoder", (*_ORDER, "d1", "d2"), _encoder, "Corollary encoder"),
        Family("multihead_attention", ("H", *_ORDER), _heads, "Theorem H heads"),
        Family("linformer", _ORDER, _linformer, "Remark Linformer"),
        Family("linear", _ORDER, _linear, "Remark linear attention"),
        Family("hierarchy", ("m", "e", "e_v", *_ORDER), _hierarchy, "Corollary hierarchy, corrected"),
    )
}
