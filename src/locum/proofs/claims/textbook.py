"""State that constructions, and the universal simulator U, compute their textbook formulas.

>>> attention(*(Formula.input(name, 2, 2) for name in "XAV"))
2×2 formula (matmul)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

from locum import constructions as c
from locum.constructions import Matrix
from locum.constructions.inverse import TOLERANCE
from locum.errors import InputError
from locum.proofs.claims.claim import Claim, Condition, Input, Token, about
from locum.proofs.claims.formula import Formula
from locum.rasp.python import full, tokens
from locum.simulators import UniversalSimulator
from locum.simulators.attention_order import AttentionOrder
from locum.simulators.layer_simulator import LayerSimulator
from locum.simulators.order import Order

#: State a claim without a name and a shape, which ``named.py`` adds.
_stated = partial(about, "", ())


def transpose(r: int, k: int, recipe: str) -> Claim:
    """State that ``transpose`` computes the transpose of an r×k matrix."""
    program = c.transpose(Matrix(tokens, r, k), recipe)
    return _stated(program, [("X", r, k)], lambda x: x.T)


def matmul(r: int, k: int, columns: int, recipe: str) -> Claim:
    """State that ``matmul`` computes the product of an r×k matrix and a k×``columns`` matrix."""
    a, b = c.concatenate(tokens, (r, k), (k, columns))
    inputs = [("A", r, k), ("B", k, columns)]
    return _stated(c.matmul(a, b, recipe), inputs, lambda a, b: a @ b)


def softmax(r: int, k: int, recipe: str) -> Claim:
    """State that ``softmax``, stable or plain, computes the softmax of each row of an r×k matrix."""
    program = c.softmax(Matrix(tokens, r, k), stable=recipe == "stable")
    return _stated(program, [("X", r, k)], Formula.softmax)


def relu(n: int, recipe: str) -> Claim:
    """State that ``relu`` computes max(x, 0) for each of n entries."""
    program = c.relu(Matrix(tokens, 1, n), recipe)
    return _stated(program, [("X", 1, n)], Formula.relu)


def maxmin(n: int, recipe: str) -> Claim:
    """State that ``maxmin`` sorts each group of two consecutive entries in descending order."""
    program = c.maxmin(Matrix(tokens, 1, n), recipe)
    return _stated(program, [("X", 1, n)], lambda x: x.sort(2))


def groupsort(n: int, size: int) -> Claim:
    """State that ``groupsort`` sorts each group of ``size`` entries in descending order."""
    program = c.groupsort(Matrix(tokens, 1, n), size)
    return _stated(program, [("X", 1, n)], lambda x: x.sort(size))


#: Maximum order of a matrix in claims about cofactors, determinants and inverses.
LARGEST_ORDER = 7


def _require_small(order: int) -> None:
    """Raise an error if a square matrix of this order has too many minors."""
    if order > LARGEST_ORDER:
        raise InputError(
            f"expected an order up to {LARGEST_ORDER}, got {order}: the claim contains many minors"
        )


def cofactor(r: int) -> Claim:
    """State that ``cofactor`` computes the matrix of cofactors of an r×r matrix."""
    _require_small(r)
    return _stated(c.cofactor(Matrix(tokens, r, r)), [("A", r, r)], Formula.cofactors)


def determinant(r: int, recipe: str) -> Claim:
    """State that ``determinant`` computes the determinant of an r×r matrix."""
    _require_small(r)
    program = c.determinant(Matrix(tokens, r, r), recipe=recipe)
    return _stated(program, [("A", r, r)], Formula.determinant)


def inverse(r: int, recipe: str, tolerance: float) -> Claim:
    """State that ``inverse`` computes A⁻¹ if det A ≠ 0 and, for a tolerance > 0, |det A| > tolerance ·
    per |A|.
    """
    _require_small(r)
    program = c.inverse(Matrix(tokens, r, r), recipe, tolerance=tolerance)
    return _stated(program, [("A", r, r)], Formula.inverse, conditions=invertible(tolerance))


def invertible(tolerance: float) -> Callable[..., list[Condition]]:
    """Return a function that returns conditions on each of several matrices A.

    The conditions are det A ≠ 0 and, for a tolerance > 0, |det A| > tolerance · per |A|.
    """

    def conditions(*matrices: Formula) -> list[Condition]:
        assumed: list[Condition] = [(a.determinant(), "!=") for a in matrices]
        if tolerance > 0:
            size = Fraction(tolerance)
            assumed += [(abs(a.determinant()) - abs(a).permanent() * size, ">") for a in matrices]
        return assumed

    return conditions


def identify(n: int, start: int, count: int) -> Claim:
    """State that ``identify`` keeps ``count`` positions from ``start``, and sets all others to 0.

    As in the paper, ``start`` counts positions from 1.
    """
    kept = range(start - 1, start - 1 + count)
    return _stated(
        c.identify(tokens, start - 1, count),
        [("s", 1, n)],
        lambda s: [[s[0, i] if i in kept else 0 for i in range(n)]],
    )


def shift(n: int, by: int) -> Claim:
    """State that ``shift`` rotates a sequence to the left by ``by`` positions."""
    return _stated(
        c.shift(tokens, by),
        [("s", 1, n)],
        lambda s: [[s[0, (i + by) % n] for i in range(n)]],
    )


def multihead_transpose(heads: int, r: int, k: int) -> Claim:
    """State that ``multihead`` transposes each of several stacked blocks."""
    return _stated(
        c.multihead(lambda x: c.transpose(x, "paper"), heads, Matrix(tokens, r, k)),
        [(f"X{h}", r, k) for h in range(heads)],
        lambda *x: Formula.below(*(block.T for block in x)),
    )


def multihead_matmul(heads: int, r: int, k: int, columns: int) -> Claim:
    """State that ``multihead`` multiplies each of several pairs of blocks."""
    shapes = [(r, k)] * heads + [(k, columns)] * heads
    views = c.concatenate(tokens, *shapes)
    inputs = [(f"A{h}", r, k) for h in range(heads)] + [(f"B{h}", k, columns) for h in range(heads)]
    return _stated(
        c.multihead(c.matmul, heads, views[0], views[heads]),
        inputs,
        lambda *m: Formula.below(*(m[h] @ m[heads + h] for h in range(heads))),
    )


def match2(n: int, p: int) -> Claim:
    """State that ``match2`` computes Match₂ modulo p for all integer sequences."""
    program = c.match2(tokens, p)
    return _stated(program, [("s", 1, n)], lambda s: s.match2(p), integer=True)


def summed(n: int) -> Claim:
    """State that ``summed`` computes the sum of the values at all positions from their mean."""
    program = c.summed(full, tokens, n)
    return _stated(program, [("s", 1, n)], lambda s: s @ Formula.constant(1, n, n))


def positions(r: int, k: int) -> Claim:
    """State that the second of two concatenated matrices is read at the positions given by ``prop``."""
    _, behind = c.concatenate(tokens, (1, 2), (r, k))
    inputs = [("X", 1, 2), ("Y", r, k)]
    return _stated(behind.compact(), inputs, lambda x, y: y)


def layer_norm(r: int, k: int) -> Claim:
    """State that ``layer_norm`` normalises each row, for every ε > 0."""
    x, epsilon = c.concatenate(tokens, (r, k), (1, 1))
    inputs = [("X", r, k), ("epsilon", 1, 1)]
    return _stated(
        c.layer_norm(x, epsilon=epsilon),
        inputs,
        Formula.layer_norm,
        conditions=lambda _, epsilon: [(epsilon, ">")],
    )


def attention(x: Formula, a: Formula, v: Formula) -> Formula:
    """Return the formula σ(XAXᵀ)XV of an attention layer with one head."""
    return (x @ a @ x.T).softmax() @ (x @ v)


def _inputs_of(simulator: UniversalSimulator) -> list[Input]:
    inputs: list[Input] = []
    for block in simulator.layout.blocks.values():
        copies = [""] if block.copies == 1 else [str(h) for h in range(block.copies)]
        name = block.name.replace(" ", "_")
        inputs += [(name + copy, block.rows, block.columns) for copy in copies]
    return inputs


def _about_u(
    order: Order,
    reference: Callable[..., Formula],
    conditions: Callable[..., list[Condition]] | None = None,
    recipe: str = "fetch",
) -> Claim:
    """State that U of an order computes a formula of its blocks.

    The module ``named.py`` adds the name and the shape of the claim.
    """
    U = UniversalSimulator(order, recipe=recipe)
    return about("", (), U.output, _inputs_of(U), reference, length=U.length, conditions=conditions)


def of_attention(n: int, d: int, d_v: int, recipe: str) -> Claim:
    """State Theorem 1: U computes σ(XAXᵀ)XV for all X, A and V.

    The recipe ``"inverse"`` requires that A and V are invertible and two determinants are not small.
    """
    conditions = _invertible_products if recipe == "inverse" else None
    return _about_u(Order.of(n, d, d_v), attention, conditions, recipe)


def _invertible_products(_: Formula, a: Formula, v: Formula) -> list[Condition]:
    """Return the conditions of the recipe ``"inverse"`` on A and V.

    A and V are invertible. For M = AV and M = (AV)ᵀV, |det M| exceeds per |M| times the tolerance.
    """
    exact = invertible(0)(a, v)
    beyond = invertible(TOLERANCE)(a @ v, (a @ v).T @ v)
    return exact + [condition for condition in beyond if condition[1] == ">"]


def of_encoder(n: int, d: int, d_v: int, d1: int, d2: int) -> Claim:
    """State the corollary on encoders: U computes attention, a residual sum and a feed-forward."""

    def reference(x: Formula, a: Formula, v: Formula, w1: Formula, w2: Formula) -> Formula:
        return ((x + attention(x, a, v)) @ w1).relu() @ w2

    return _about_u(Order.of(n, d, d_v, feed_forward=(d1, d2)), reference)


def of_heads(heads: int, n: int, d: int, d_v: int) -> Claim:
    """State the theorem on several heads: U computes H heads and concatenates their outputs."""

    def reference(x: Formula, *m: Formula) -> Formula:
        return Formula.beside(*(attention(x, m[h], m[heads + h]) for h in range(heads)))

    return _about_u(Order.of(n, d, d_v, heads=heads), reference)


def of_hard_attention(n: int, d: int, d_v: int) -> Claim:
    """State that U computes average hard attention: the mean over the keys with the highest score."""
    order = Order.of(n, d, d_v, pooling="average")
    return _about_u(order, lambda x, a, v: (x @ a @ x.T).hardmax() @ (x @ v))


def of_causal(n: int, d: int, d_v: int) -> Claim:
    """State that U computes causal attention, in which row i attends to rows j ≤ i."""
    order = Order.of(n, d, d_v, mask="causal")
    return _about_u(order, lambda x, a, v: (x @ a @ x.T).softmax("causal") @ (x @ v))


def of_cross(n: int, m: int, d: int, d_v: int) -> Claim:
    """State that U computes cross-attention to a memory of m rows."""
    order = Order.of(n, d, d_v, memory=m)
    return _about_u(order, lambda x, memory, a, v: (x @ a @ memory.T).softmax() @ (memory @ v))


def of_heads_encoder(heads: int, n: int, d: int, d_v: int, d1: int, d2: int) -> Claim:
    """State the corollary on encoders of H heads.

    U computes X plus the concatenated heads times W_O, followed by a feed-forward.
    """

    def reference(x: Formula, *m: Formula) -> Formula:
        a, v, w_o = m[:heads], m[heads : 2 * heads], m[2 * heads : 3 * heads]
        w1, w2 = m[3 * heads :]
        residual = x
        for h in range(heads):
            residual = residual + attention(x, a[h], v[h]) @ w_o[h]
        return (residual @ w1).relu() @ w2

    # By default, a simulator of one head has no W_O.
    order = Order.of(n, d, d_v, heads=heads, feed_forward=(d1, d2), projection=d)
    return _about_u(order, reference)


def _positive_epsilon(*matrices: Formula) -> list[Condition]:
    """Return the condition that ε, the last input of U, is positive."""
    return [(matrices[-1], ">")]


def of_normed_encoder(n: int, d: int, d1: int, recipe: str) -> Claim:
    """State that U computes an encoder layer with layer norms, post-norm or pre-norm."""

    def post(x: Formula, a: Formula, v: Formula, w1: Formula, w2: Formula, e: Formula) -> Formula:
        y = (x + attention(x, a, v)).layer_norm(e)
        return (y + (y @ w1).relu() @ w2).layer_norm(e)

    def pre(x: Formula, a: Formula, v: Formula, w1: Formula, w2: Formula, e: Formula) -> Formula:
        y = x + attention(x.layer_norm(e), a, v)
        return y + (y.layer_norm(e) @ w1).relu() @ w2

    order = Order.of(n, d, feed_forward=(d1, d), norm=recipe)
    return _about_u(order, post if recipe == "post" else pre, _positive_epsilon)


def of_decoder(n: int, m: int, d: int, d1: int, recipe: str) -> Claim:
    """State that U computes a decoder layer.

    The layer consists of causal attention, cross-attention and a feed-forward, with or without norms.
    """

    def reference(x: Formula, memory: Formula, *matrices: Formula) -> Formula:
        a, v, cross_a, cross_v, w1, w2, *epsilon = matrices

        def before(y: Formula) -> Formula:
            return y.layer_norm(epsilon[0]) if recipe == "pre" else y

        def behind(y: Formula) -> Formula:
            return y.layer_norm(epsilon[0]) if recipe == "post" else y

        z = before(x)
        y = behind(x + (z @ a @ z.T).softmax("causal") @ (z @ v))
        y = behind(y + (before(y) @ cross_a @ memory.T).softmax() @ (memory @ cross_v))
        return behind(y + (before(y) @ w1).relu() @ w2)

    order = Order(
        n, AttentionOrder("softmax", d, d, mask="causal"), m, cross=AttentionOrder("softmax", d, d),
        residual=True, feed_forward=(d1, d), feed_forward_residual=True, norm=recipe,
    )  # fmt: skip
    return _about_u(order, reference, None if recipe == "none" else _positive_epsilon)


def of_performer(n: int, d: int, d_v: int) -> Claim:
    """State that U computes a Performer with m = 4 features, for which 1/√m is rational."""

    def features(z: Formula, omega: Formula) -> Formula:
        squares = z * z / 2 @ Formula.constant(1, d, 4)
        return (z @ omega.T - squares).exp() / 2

    def reference(x: Formula, q: Formula, k: Formula, v: Formula, omega: Formula) -> Formula:
        weights = features(x @ q, omega) @ features(x @ k, omega).T
        sums = weights @ Formula.constant(1, n, n)
        return weights / sums @ (x @ v)

    return _about_u(Order.of(n, d, d_v, kind="performer", rank=4), reference)


def of_sumformer(n: int, d: int, d_v: int) -> Claim:
    """State that U computes a Sumformer with two features φ and two hidden units ψ."""

    def reference(x: Formula, phi: Formula, w: Formula, w_sum: Formula, v: Formula) -> Formula:
        total = Formula.constant(1, n, n) @ (x @ phi).relu()
        return (x @ w + total @ w_sum).relu() @ v

    return _about_u(Order.of(n, d, d_v, kind="sumformer", rank=2, hidden=2), reference)


def of_linformer(n: int, d: int, d_v: int) -> Claim:
    """State that U computes a Linformer of rank max(2, ⌊n/2⌋)."""

    def reference(x: Formula, q: Formula, k: Formula, v: Formula, e: Formula, f: Formula) -> Formula:
        return (x @ q @ (e @ x @ k).T).softmax() @ (f @ x @ v)

    return _about_u(Order.of(n, d, d_v, kind="linformer", rank=max(2, n // 2)), reference)


def of_linear(n: int, d: int, d_v: int) -> Claim:
    """State that U computes linear attention, that is, attention without a softmax."""
    order = Order.of(n, d, d_v, kind="linear")
    return _about_u(order, lambda x, q, k, v: x @ q @ (x @ k).T @ (x @ v))


def of_hierarchy(m: int, e: int, e_v: int, n: int, d: int, d_v: int) -> Claim:
    """State that U of order (n, d, d_v) simulates each T of the order (m, e, e_v).

    The number of rows of X is one of the tokens.
    """
    simulator = UniversalSimulator(n, d, d_v).masked
    return embedded("hierarchy", (m, e, e_v, n, d, d_v), simulator, fixed={"rows": m})


def embedded(
    name: str, shape: Sequence[int], simulator: LayerSimulator, fixed: dict[str, int]
) -> Claim:
    """State that U computes T(X) for each T of one smaller or equal order, padded with zeros.

    The first three sizes of ``shape`` are the order (m, e, e_v) of T. The result is the first m rows
    and e_v columns of the output. ``fixed`` sets 1×1 blocks to integers.
    """
    m, e, e_v = shape[:3]
    inputs = [("X", m, e), ("A", e, e), ("V", e, e_v)]
    layout: list[Token] = [0] * simulator.layout.size
    for number, (block, rows, columns) in enumerate(inputs):
        for i in range(rows):
            for j in range(columns):
                layout[simulator.layout.position(block, i, j)] = (number, i, j)
    for block, value in fixed.items():
        layout[simulator.layout.position(block, 0, 0)] = value
    part = simulator.output.block(0, 0, m, e_v)
    return about(name, shape, part, inputs, attention, layout=layout, length=simulator.length)
