"""The claims that can be proven by name: constructions and U, each against its textbook formula.

``claim("matmul", 3, 3, 4)`` is the claim that the paper's matrix product is the product, for all 3×3
and 3×4 matrices. The references use nothing of the constructions (``checker/formulas.py``).

>>> claim("transpose", 2, 3).reference
Xᵀ
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from locum import constructions as c
from locum.constructions import Matrix
from locum.constructions.inverse import TOLERANCE
from locum.errors import InputError
from locum.language.python import full, tokens
from locum.simulators import UniversalSimulator
from locum.simulators.layer_simulator import LayerSimulator
from locum.simulators.order import Order
from locum.verification.checker.formulas import Formula
from locum.verification.checker.statement import Token
from locum.verification.claims.claim import Claim, Condition, Input, about


@dataclass(frozen=True)
class Family:
    """Claims of one name, one for every shape."""

    name: str
    parameters: tuple[str, ...]
    build: Callable[..., Claim]
    #: The item of the paper, or what it is.
    words: str
    #: Which recipes there are, the first being the default.
    recipes: tuple[str, ...] = ()
    #: Below which relative size a determinant counts as 0, by default; None: there is no tolerance.
    tolerance: float | None = None


def claim(name: str, *shape: int, recipe: str | None = None, tolerance: float | None = None) -> Claim:
    """Build the claim of that name and shape."""
    if name not in FAMILIES:
        raise InputError(f"there is no claim {name!r}; try one of {', '.join(FAMILIES)}")
    family = FAMILIES[name]
    if len(shape) != len(family.parameters) or any(type(n) is not int or n < 1 for n in shape):
        parameters = " ".join(family.parameters) or "no numbers"
        raise InputError(
            f"{name} takes {parameters}: expected {len(family.parameters)} positive integers, "
            f"got {' '.join(map(str, shape)) or 'none'}"
        )
    if recipe is not None and recipe not in family.recipes:
        choices = ", ".join(family.recipes) or "none: it has one form only"
        raise InputError(f"{name} has no recipe {recipe!r}; try {choices}")
    options: dict[str, Any] = {}
    if family.recipes:
        options["recipe"] = recipe or family.recipes[0]
    if family.tolerance is not None:
        options["tolerance"] = family.tolerance if tolerance is None else tolerance
        if not 0 <= options["tolerance"] < 1:
            raise InputError(f"expected a tolerance from 0 up to 1, got {tolerance!r}")
    elif tolerance is not None:
        raise InputError(f"{name} has no tolerance: leave it out")
    return replace(family.build(*shape, **options), **options)


def _transpose(r: int, k: int, recipe: str) -> Claim:
    program = c.transpose(Matrix(tokens, r, k), recipe)
    return about("transpose", (r, k), program, [("X", r, k)], lambda x: x.T)


def _matmul(r: int, k: int, columns: int, recipe: str) -> Claim:
    a, b = c.concatenate(tokens, (r, k), (k, columns))
    inputs = [("A", r, k), ("B", k, columns)]
    return about("matmul", (r, k, columns), c.matmul(a, b, recipe), inputs, lambda a, b: a @ b)


def _softmax(r: int, k: int, recipe: str) -> Claim:
    program = c.softmax(Matrix(tokens, r, k), stable=recipe == "stable")
    return about("softmax", (r, k), program, [("X", r, k)], Formula.softmax)


def _relu(n: int, recipe: str) -> Claim:
    program = c.relu(Matrix(tokens, 1, n), recipe)
    return about("relu", (n,), program, [("X", 1, n)], Formula.relu)


def _maxmin(n: int, recipe: str) -> Claim:
    program = c.maxmin(Matrix(tokens, 1, n), recipe)
    return about("maxmin", (n,), program, [("X", 1, n)], lambda x: x.sort(2))


def _groupsort(n: int, size: int) -> Claim:
    program = c.groupsort(Matrix(tokens, 1, n), size)
    return about("groupsort", (n, size), program, [("X", 1, n)], lambda x: x.sort(size))


#: The greatest order of a claim whose program writes out all minors.
_LARGEST_ORDER = 7


def _require_small(order: int) -> None:
    """Refuse orders whose minors are too many to be written out."""
    if order > _LARGEST_ORDER:
        raise InputError(
            f"expected an order up to {_LARGEST_ORDER}, got {order}: the program writes out all minors"
        )


def _cofactor(r: int) -> Claim:
    _require_small(r)
    return about("cofactor", (r,), c.cofactor(Matrix(tokens, r, r)), [("A", r, r)], Formula.cofactors)


def _determinant(r: int, recipe: str) -> Claim:
    _require_small(r)
    program = c.determinant(Matrix(tokens, r, r), recipe=recipe)
    return about("determinant", (r,), program, [("A", r, r)], Formula.determinant)


def _inverse(r: int, recipe: str, tolerance: float) -> Claim:
    _require_small(r)
    program = c.inverse(Matrix(tokens, r, r), recipe, tolerance=tolerance)
    return about(
        "inverse", (r,), program, [("A", r, r)], Formula.inverse, conditions=_invertible(tolerance)
    )  # fmt: skip


def _invertible(tolerance: float) -> Callable[..., list[Condition]]:
    """Assume what ``inverse`` needs: det A ≠ 0, and |det A| > tolerance · per |A|."""

    def conditions(*matrices: Formula) -> list[Condition]:
        assumed: list[Condition] = [(a.determinant(), "!=") for a in matrices]
        if tolerance > 0:
            size = Fraction(tolerance)
            assumed += [(abs(a.determinant()) - abs(a).permanent() * size, ">") for a in matrices]
        return assumed

    return conditions


def _identify(n: int, start: int, count: int) -> Claim:
    """Positions are counted from 1, as in the paper."""
    kept = range(start - 1, start - 1 + count)
    return about(
        "identify", (n, start, count), c.identify(tokens, start - 1, count), [("s", 1, n)],
        lambda s: [[s[0, i] if i in kept else 0 for i in range(n)]],
    )  # fmt: skip


def _shift(n: int, by: int) -> Claim:
    return about(
        "shift", (n, by), c.shift(tokens, by), [("s", 1, n)],
        lambda s: [[s[0, (i + by) % n] for i in range(n)]],
    )  # fmt: skip


def _multihead_transpose(heads: int, r: int, k: int) -> Claim:
    return about(
        "multihead_transpose", (heads, r, k),
        c.multihead(lambda x: c.transpose(x, "paper"), heads, Matrix(tokens, r, k)),
        [(f"X{h}", r, k) for h in range(heads)],
        lambda *x: Formula.below(*(block.T for block in x)),
    )  # fmt: skip


def _multihead_matmul(heads: int, r: int, k: int, columns: int) -> Claim:
    shapes = [(r, k)] * heads + [(k, columns)] * heads
    views = c.concatenate(tokens, *shapes)
    inputs = [(f"A{h}", r, k) for h in range(heads)] + [(f"B{h}", k, columns) for h in range(heads)]
    return about(
        "multihead_matmul", (heads, r, k, columns),
        c.multihead(c.matmul, heads, views[0], views[heads]), inputs,
        lambda *m: Formula.below(*(m[h] @ m[heads + h] for h in range(heads))),
    )  # fmt: skip


def _match2(n: int, p: int) -> Claim:
    program = c.match2(tokens, p)
    return about("match2", (n, p), program, [("s", 1, n)], lambda s: s.match2(p), integer=True)


def _summed(n: int) -> Claim:
    program = c.summed(full, tokens, n)

    def reference(s: Formula) -> list[list[Formula]]:
        total = s[0, 0]
        for i in range(1, n):
            total = total + s[0, i]
        return [[total] * n]

    return about("summed", (n,), program, [("s", 1, n)], reference)


def _positions(r: int, k: int) -> Claim:
    """Both of two matrices that lie one behind the other, read where ``prop`` puts them."""
    _, behind = c.concatenate(tokens, (1, 2), (r, k))
    inputs = [("X", 1, 2), ("Y", r, k)]
    return about("positions", (r, k), behind.compact(), inputs, lambda x, y: y)


# U ------------------------------------------------------------------------------------------------


def attention(x: Formula, a: Formula, v: Formula) -> Formula:
    """Write σ(XAXᵀ)XV."""
    return (x @ a @ x.T).softmax() @ (x @ v)


def _inputs_of(simulator: UniversalSimulator) -> list[Input]:
    inputs: list[Input] = []
    for block in simulator.layout.blocks.values():
        copies = [""] if block.copies == 1 else [str(h) for h in range(block.copies)]
        inputs += [(block.name + copy, block.rows, block.columns) for copy in copies]
    return inputs


def _about_u(
    name: str,
    shape: Sequence[int],
    simulator: UniversalSimulator,
    reference: Callable[..., Formula],
    **options: Any,
) -> Claim:
    return about(
        name, shape, simulator.output, _inputs_of(simulator), reference, length=simulator.length,
        **options,
    )  # fmt: skip


def _attention(n: int, d: int, d_v: int, recipe: str) -> Claim:
    simulator = UniversalSimulator(n, d, d_v, recipe=recipe)
    options = {"conditions": _invertible_products} if recipe == "inverse" else {}
    return _about_u("attention", (n, d, d_v), simulator, attention, **options)


def _invertible_products(_: Formula, a: Formula, v: Formula) -> list[Condition]:
    """Assume that AV and (AV)ᵀV have inverses, beyond the tolerance of U's construction."""
    exact = _invertible(0)(a, v)
    beyond = _invertible(TOLERANCE)(a @ v, (a @ v).T @ v)
    return exact + [condition for condition in beyond if condition[1] == ">"]


def _encoder(n: int, d: int, d_v: int, d1: int, d2: int) -> Claim:
    def reference(x: Formula, a: Formula, v: Formula, w1: Formula, w2: Formula) -> Formula:
        return ((x + attention(x, a, v)) @ w1).relu() @ w2

    simulator = UniversalSimulator(Order.of(n, d, d_v, feed_forward=(d1, d2)))
    return _about_u("encoder", (n, d, d_v, d1, d2), simulator, reference)


def _heads(heads: int, n: int, d: int, d_v: int) -> Claim:
    def reference(x: Formula, *m: Formula) -> Formula:
        return Formula.beside(*(attention(x, m[h], m[heads + h]) for h in range(heads)))

    simulator = UniversalSimulator(Order.of(n, d, d_v, heads=heads))
    return _about_u("multihead_attention", (heads, n, d, d_v), simulator, reference)


def _causal(n: int, d: int, d_v: int) -> Claim:
    def reference(x: Formula, a: Formula, v: Formula) -> Formula:
        return (x @ a @ x.T).softmax("causal") @ (x @ v)

    simulator = UniversalSimulator(Order.of(n, d, d_v, mask="causal"))
    return _about_u("causal_attention", (n, d, d_v), simulator, reference)


def _cross(n: int, m: int, d: int, d_v: int) -> Claim:
    def reference(x: Formula, memory: Formula, a: Formula, v: Formula) -> Formula:
        return (x @ a @ memory.T).softmax() @ (memory @ v)

    simulator = UniversalSimulator(Order.of(n, d, d_v, memory=m))
    return _about_u("cross_attention", (n, m, d, d_v), simulator, reference)


def _heads_encoder(heads: int, n: int, d: int, d_v: int, d1: int, d2: int) -> Claim:
    """X + heads side by side through W_O, then a feed-forward."""

    def reference(x: Formula, *m: Formula) -> Formula:
        a, v, w_o = m[:heads], m[heads : 2 * heads], m[2 * heads : 3 * heads]
        w1, w2 = m[3 * heads :]
        residual = x
        for h in range(heads):
            residual = residual + attention(x, a[h], v[h]) @ w_o[h]
        return (residual @ w1).relu() @ w2

    simulator = UniversalSimulator(Order.of(n, d, d_v, heads=heads, feed_forward=(d1, d2)))
    return _about_u("multihead_encoder", (heads, n, d, d_v, d1, d2), simulator, reference)


def _linformer(n: int, d: int, d_v: int) -> Claim:
    def reference(x: Formula, q: Formula, k: Formula, v: Formula, e: Formula, f: Formula) -> Formula:
        return (x @ q @ (e @ x @ k).T).softmax() @ (f @ x @ v)

    simulator = UniversalSimulator(Order.of(n, d, d_v, kind="linformer", rank=max(2, n // 2)))
    return _about_u("linformer", (n, d, d_v), simulator, reference)


def _linear(n: int, d: int, d_v: int) -> Claim:
    def reference(x: Formula, q: Formula, k: Formula, v: Formula) -> Formula:
        return x @ q @ (x @ k).T @ (x @ v)

    simulator = UniversalSimulator(Order.of(n, d, d_v, kind="linear"))
    return _about_u("linear", (n, d, d_v), simulator, reference)


def _hierarchy(m: int, e: int, e_v: int, n: int, d: int, d_v: int) -> Claim:
    simulator = UniversalSimulator(n, d, d_v).masked
    return embedded("hierarchy", (m, e, e_v, n, d, d_v), simulator, fixed={"rows": m})


def embedded(
    name: str, shape: Sequence[int], simulator: LayerSimulator, fixed: dict[str, int]
) -> Claim:
    """Claim that a T of order (m, e, e_v), set into zeros on a larger U, gives T(X) in a corner."""
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
        Family(
            "inverse",
            ("r",),
            _inverse,
            "Lemma inversion",
            ("cofactor", "paper", "gauss-jordan"),
            TOLERANCE,
        ),
        Family("identify", ("n", "i", "k"), _identify, "identify"),
        Family("shift", ("n", "t"), _shift, "shift"),
        Family("multihead_transpose", ("H", "r", "c"), _multihead_transpose, "Lemma multi-head"),
        Family("multihead_matmul", ("H", "r", "k", "c"), _multihead_matmul, "Lemma multi-head"),
        Family("summed", ("n",), _summed, "Proposition AHAT"),
        Family("positions", ("r", "c"), _positions, "Proposition 1D"),
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
        Family("multihead_encoder", ("H", *_ORDER, "d1", "d2"), _heads_encoder, "Corollary H heads"),
        Family("causal_attention", _ORDER, _causal, "Conclusion: decoders"),
        Family("cross_attention", ("n", "m", "d", "d_v"), _cross, "Conclusion: decoders"),
        Family("linformer", _ORDER, _linformer, "Remark Linformer"),
        Family("linear", _ORDER, _linear, "Remark linear attention"),
        Family("hierarchy", ("m", "e", "e_v", *_ORDER), _hierarchy, "Corollary hierarchy, corrected"),
    )
}
