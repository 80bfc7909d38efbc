"""Claims about constructions, each with its textbook formula.

>>> transpose(2, 3, "view").reference
Xᵀ
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

from locum import constructions as c
from locum.constructions import Matrix
from locum.errors import InputError
from locum.language.python import full, tokens
from locum.verification.claims.claim import Claim, Condition, about
from locum.verification.claims.formula import Formula

#: State a claim whose name and shape ``named.py`` gives.
_stated = partial(about, "", ())


def transpose(r: int, k: int, recipe: str) -> Claim:
    """State that an r×k matrix is transposed."""
    program = c.transpose(Matrix(tokens, r, k), recipe)
    return _stated(program, [("X", r, k)], lambda x: x.T)


def matmul(r: int, k: int, columns: int, recipe: str) -> Claim:
    """State that two matrices are multiplied."""
    a, b = c.concatenate(tokens, (r, k), (k, columns))
    inputs = [("A", r, k), ("B", k, columns)]
    return _stated(c.matmul(a, b, recipe), inputs, lambda a, b: a @ b)


def softmax(r: int, k: int, recipe: str) -> Claim:
    """State that each row goes through a softmax, stable or plain."""
    program = c.softmax(Matrix(tokens, r, k), stable=recipe == "stable")
    return _stated(program, [("X", r, k)], Formula.softmax)


def relu(n: int, recipe: str) -> Claim:
    """State that n entries go through ReLU."""
    program = c.relu(Matrix(tokens, 1, n), recipe)
    return _stated(program, [("X", 1, n)], Formula.relu)


def maxmin(n: int, recipe: str) -> Claim:
    """State that each pair is put in descending order."""
    program = c.maxmin(Matrix(tokens, 1, n), recipe)
    return _stated(program, [("X", 1, n)], lambda x: x.sort(2))


def groupsort(n: int, size: int) -> Claim:
    """State that each group of ``size`` entries is put in descending order."""
    program = c.groupsort(Matrix(tokens, 1, n), size)
    return _stated(program, [("X", 1, n)], lambda x: x.sort(size))


#: The greatest order of a claim whose program writes out all minors.
LARGEST_ORDER = 7


def _require_small(order: int) -> None:
    """Refuse orders whose minors are too many to be written out."""
    if order > LARGEST_ORDER:
        raise InputError(
            f"expected an order up to {LARGEST_ORDER}, got {order}: the program writes out all minors"
        )


def cofactor(r: int) -> Claim:
    """State that the cofactors of a square matrix are computed."""
    _require_small(r)
    return _stated(c.cofactor(Matrix(tokens, r, r)), [("A", r, r)], Formula.cofactors)


def determinant(r: int, recipe: str) -> Claim:
    """State that the determinant is computed."""
    _require_small(r)
    program = c.determinant(Matrix(tokens, r, r), recipe=recipe)
    return _stated(program, [("A", r, r)], Formula.determinant)


def inverse(r: int, recipe: str, tolerance: float) -> Claim:
    """State that the inverse is computed, where there is one beyond the tolerance."""
    _require_small(r)
    program = c.inverse(Matrix(tokens, r, r), recipe, tolerance=tolerance)
    return _stated(program, [("A", r, r)], Formula.inverse, conditions=invertible(tolerance))


def invertible(tolerance: float) -> Callable[..., list[Condition]]:
    """Assume what ``inverse`` needs: det A ≠ 0, and |det A| > tolerance · per |A|."""

    def conditions(*matrices: Formula) -> list[Condition]:
        assumed: list[Condition] = [(a.determinant(), "!=") for a in matrices]
        if tolerance > 0:
            size = Fraction(tolerance)
            assumed += [(abs(a.determinant()) - abs(a).permanent() * size, ">") for a in matrices]
        return assumed

    return conditions


def identify(n: int, start: int, count: int) -> Claim:
    """State that some positions are kept, the rest being 0; they count from 1, as in the paper."""
    kept = range(start - 1, start - 1 + count)
    return _stated(
        c.identify(tokens, start - 1, count),
        [("s", 1, n)],
        lambda s: [[s[0, i] if i in kept else 0 for i in range(n)]],
    )


def shift(n: int, by: int) -> Claim:
    """State that a sequence is shifted by so many positions, around its end."""
    return _stated(
        c.shift(tokens, by),
        [("s", 1, n)],
        lambda s: [[s[0, (i + by) % n] for i in range(n)]],
    )


def multihead_transpose(heads: int, r: int, k: int) -> Claim:
    """State that blocks one below the other are transposed, each by itself."""
    return _stated(
        c.multihead(lambda x: c.transpose(x, "paper"), heads, Matrix(tokens, r, k)),
        [(f"X{h}", r, k) for h in range(heads)],
        lambda *x: Formula.below(*(block.T for block in x)),
    )


def multihead_matmul(heads: int, r: int, k: int, columns: int) -> Claim:
    """State that pairs of blocks are multiplied, each by itself."""
    shapes = [(r, k)] * heads + [(k, columns)] * heads
    views = c.concatenate(tokens, *shapes)
    inputs = [(f"A{h}", r, k) for h in range(heads)] + [(f"B{h}", k, columns) for h in range(heads)]
    return _stated(
        c.multihead(c.matmul, heads, views[0], views[heads]),
        inputs,
        lambda *m: Formula.below(*(m[h] @ m[heads + h] for h in range(heads))),
    )


def match2(n: int, p: int) -> Claim:
    """State that Match₂ modulo p is computed on integers."""
    program = c.match2(tokens, p)
    return _stated(program, [("s", 1, n)], lambda s: s.match2(p), integer=True)


def summed(n: int) -> Claim:
    """State that a mean becomes a sum."""
    program = c.summed(full, tokens, n)
    return _stated(program, [("s", 1, n)], lambda s: s @ Formula.constant(1, n, n))


def positions(r: int, k: int) -> Claim:
    """State that the second of two matrices is read where ``prop`` puts it."""
    _, behind = c.concatenate(tokens, (1, 2), (r, k))
    inputs = [("X", 1, 2), ("Y", r, k)]
    return _stated(behind.compact(), inputs, lambda x, y: y)


def layer_norm(r: int, k: int) -> Claim:
    """State that each row is normed, for every ε > 0."""
    x, epsilon = c.concatenate(tokens, (r, k), (1, 1))
    inputs = [("X", r, k), ("epsilon", 1, 1)]
    return _stated(
        c.layer_norm(x, epsilon=epsilon),
        inputs,
        Formula.layer_norm,
        conditions=lambda _, epsilon: [(epsilon, ">")],
    )
