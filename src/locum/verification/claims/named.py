"""The claims that can be proven by name: constructions and U, each against its textbook formula.

``claim("matmul", 3, 3, 4)`` is the claim that the paper's matrix product is the product, for all 3×3
and 3×4 matrices. The references use nothing of the constructions (``checker/formulas.py``).

>>> claim("transpose", 2, 3).reference
Xᵀ
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from locum.constructions.inverse import TOLERANCE
from locum.errors import InputError
from locum.verification.claims import constructions, universal
from locum.verification.claims.claim import Claim


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


_ORDER = ("n", "d", "d_v")
FAMILIES = {
    family.name: family
    for family in (
        Family(
            "transpose", ("r", "c"), constructions.transpose, "Lemma transposition", ("paper", "view")
        ),
        Family(
            "matmul",
            ("r", "k", "c"),
            constructions.matmul,
            "Lemma matmul",
            ("paper", "fetch", "tiled", "scatter"),
        ),
        Family("softmax", ("r", "c"), constructions.softmax, "Lemma softmax", ("stable", "plain")),
        Family("relu", ("n",), constructions.relu, "Listing 4", ("feed-forward", "maxmin")),
        Family("maxmin", ("n",), constructions.maxmin, "Lemma MaxMin", ("partner", "paper")),
        Family("groupsort", ("n", "group"), constructions.groupsort, "GroupSort"),
        Family("cofactor", ("r",), constructions.cofactor, "Lemma inversion: cofactors"),
        Family(
            "determinant",
            ("r",),
            constructions.determinant,
            "Lemma inversion: determinant",
            ("frugal", "paper"),
        ),
        Family(
            "inverse",
            ("r",),
            constructions.inverse,
            "Lemma inversion",
            ("cofactor", "paper", "gauss-jordan"),
            TOLERANCE,
        ),
        Family("identify", ("n", "i", "k"), constructions.identify, "identify"),
        Family("shift", ("n", "t"), constructions.shift, "shift"),
        Family(
            "multihead_transpose",
            ("H", "r", "c"),
            constructions.multihead_transpose,
            "Lemma multi-head",
        ),
        Family(
            "multihead_matmul", ("H", "r", "k", "c"), constructions.multihead_matmul, "Lemma multi-head"
        ),
        Family("summed", ("n",), constructions.summed, "Proposition AHAT"),
        Family("positions", ("r", "c"), constructions.positions, "Proposition 1D"),
        Family("layer_norm", ("r", "c"), constructions.layer_norm, "Corollary encoder: its norm"),
        Family("match2", ("n", "p"), constructions.match2, "Match₂ over ℤ"),
        Family(
            "attention",
            _ORDER,
            universal.of_attention,
            "Theorem 1",
            ("fetch", "paper", "tiled", "width-1", "inverse"),
        ),
        Family("encoder", (*_ORDER, "d1", "d2"), universal.of_encoder, "Corollary encoder"),
        Family("multihead_attention", ("H", *_ORDER), universal.of_heads, "Theorem H heads"),
        Family(
            "multihead_encoder",
            ("H", *_ORDER, "d1", "d2"),
            universal.of_heads_encoder,
            "Corollary H heads",
        ),
        Family("hard_attention", _ORDER, universal.of_hard_attention, "Remark SMAT by AHAT"),
        Family("causal_attention", _ORDER, universal.of_causal, "Conclusion: decoders"),
        Family("cross_attention", ("n", "m", "d", "d_v"), universal.of_cross, "Conclusion: decoders"),
        Family(
            "normed_encoder",
            ("n", "d", "d1"),
            universal.of_normed_encoder,
            "Corollary encoder, with layer norms",
            ("post", "pre"),
        ),
        Family(
            "decoder",
            ("n", "m", "d", "d1"),
            universal.of_decoder,
            "Conclusion: decoder layers",
            ("post", "pre", "none"),
        ),
        Family("linformer", _ORDER, universal.of_linformer, "Remark Linformer"),
        Family("linear", _ORDER, universal.of_linear, "Remark linear attention"),
        Family("performer", _ORDER, universal.of_performer, "Remark sparsification"),
        Family("sumformer", _ORDER, universal.of_sumformer, "Remark sparsification"),
        Family(
            "hierarchy",
            ("m", "e", "e_v", *_ORDER),
            universal.of_hierarchy,
            "Corollary hierarchy, corrected",
        ),
    )
}
