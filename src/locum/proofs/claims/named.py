"""Define named claims about constructions and U, each with its textbook formula.

>>> claim("matmul", 2, 3, 2).text
'AB'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from locum.constructions.inverse import TOLERANCE
from locum.errors import InputError
from locum.proofs.claims import textbook
from locum.proofs.claims.claim import Claim


@dataclass(frozen=True)
class Family:
    """A family of claims with the same name and different shapes."""

    name: str
    parameters: tuple[str, ...]
    #: The reference as a short text, without the conditions on the inputs.
    text: str
    build: Callable[..., Claim]
    #: The available recipes; the first is the default.
    recipes: tuple[str, ...] = ()
    #: Default relative size up to which pivots and determinants count as 0; None without such a
    #: tolerance.
    tolerance: float | None = None


def claim(name: str, *shape: int, recipe: str | None = None, tolerance: float | None = None) -> Claim:
    """Build the claim with this name and shape, such as ``claim("matmul", 3, 3, 4)``.

    ``recipe`` and ``tolerance`` select the construction. A family without these settings rejects them.
    """
    if name not in FAMILIES:
        raise InputError(
            f"expected the name of a claim, got {name!r}; try one of {', '.join(FAMILIES)}"
        )
    family = FAMILIES[name]
    count = len(family.parameters)
    if len(shape) != count or any(type(n) is not int or n < 1 for n in shape):
        raise InputError(
            f"{name} takes {' '.join(family.parameters)}: expected {count} positive integers, "
            f"got {list(shape)}"
        )
    if recipe is not None and recipe not in family.recipes:
        choices = ", ".join(family.recipes) or "none: it has one form only"
        raise InputError(f"expected a recipe of {name}, got {recipe!r}; try {choices}")
    options: dict[str, Any] = {}
    if family.recipes:
        options["recipe"] = recipe or family.recipes[0]
    if family.tolerance is not None:
        options["tolerance"] = family.tolerance if tolerance is None else tolerance
        if not 0 <= options["tolerance"] < 1:
            raise InputError(f"expected a tolerance from 0 up to 1, got {tolerance!r}")
    elif tolerance is not None:
        raise InputError(
            f"expected no tolerance for {name}, got {tolerance!r}; try without a tolerance"
        )
    built = family.build(*shape, **options)
    return replace(built, name=name, shape=shape, text=family.text, **options)


_ORDER = ("n", "d", "d_v")
FAMILIES = {
    family.name: family
    for family in (
        Family("transpose", ("r", "c"), "Xᵀ", textbook.transpose, ("paper", "view")),
        Family(
            "matmul",
            ("r", "k", "c"),
            "AB",
            textbook.matmul,
            ("paper", "fetch", "tiled", "scatter"),
        ),
        Family("softmax", ("r", "c"), "σ(X)", textbook.softmax, ("stable", "plain")),
        Family("relu", ("n",), "max(X, 0)", textbook.relu, ("feed-forward", "maxmin")),
        Family(
            "maxmin", ("n",), "pairs of X in descending order", textbook.maxmin, ("partner", "paper")
        ),
        Family("groupsort", ("n", "group"), "groups of X in descending order", textbook.groupsort),
        Family("cofactor", ("r",), "cofactors of A", textbook.cofactor),
        Family("determinant", ("r",), "det A", textbook.determinant, ("frugal", "paper")),
        Family(
            "inverse",
            ("r",),
            "A⁻¹",
            textbook.inverse,
            ("cofactor", "paper", "gauss-jordan"),
            TOLERANCE,
        ),
        Family(
            "identify", ("n", "i", "k"), "k entries of s from position i, else 0", textbook.identify
        ),
        Family("shift", ("n", "t"), "s rotated to the left by t", textbook.shift),
        Family("multihead_transpose", ("H", "r", "c"), "[X₁ᵀ; …; X_Hᵀ]", textbook.multihead_transpose),
        Family(
            "multihead_matmul", ("H", "r", "k", "c"), "[A₁B₁; …; A_HB_H]", textbook.multihead_matmul
        ),
        Family("summed", ("n",), "Σⱼ s[j]", textbook.summed),
        Family("positions", ("r", "c"), "Y", textbook.positions),
        Family("layer_norm", ("r", "c"), "(X − mean)/√(variance + ε)", textbook.layer_norm),
        Family("match2", ("n", "p"), "Match₂(s) modulo p", textbook.match2),
        Family(
            "attention",
            _ORDER,
            "σ(XAXᵀ)XV",
            textbook.of_attention,
            ("fetch", "paper", "tiled", "width-1", "inverse"),
        ),
        Family("encoder", (*_ORDER, "d1", "d2"), "ReLU((X + σ(XAXᵀ)XV)W₁)W₂", textbook.of_encoder),
        Family(
            "multihead_attention",
            ("H", *_ORDER),
            "[σ(XA₁Xᵀ)XV₁, …, σ(XA_HXᵀ)XV_H]",
            textbook.of_heads,
        ),
        Family(
            "multihead_encoder",
            ("H", *_ORDER, "d1", "d2"),
            "ReLU((X + Σₕ σ(XAₕXᵀ)XVₕOₕ)W₁)W₂",
            textbook.of_heads_encoder,
        ),
        Family("hard_attention", _ORDER, "hardmax(XAXᵀ)XV", textbook.of_hard_attention),
        Family("causal_attention", _ORDER, "σ_causal(XAXᵀ)XV", textbook.of_causal),
        Family("cross_attention", ("n", "m", "d", "d_v"), "σ(XAMᵀ)MV", textbook.of_cross),
        Family(
            "normed_encoder",
            ("n", "d", "d1"),
            "an encoder layer with layer norms",
            textbook.of_normed_encoder,
            ("post", "pre"),
        ),
        Family(
            "decoder",
            ("n", "m", "d", "d1"),
            "a decoder layer",
            textbook.of_decoder,
            ("post", "pre", "none"),
        ),
        Family("linformer", _ORDER, "σ(XQ(EXK)ᵀ)FXV", textbook.of_linformer),
        Family("linear", _ORDER, "XQ(XK)ᵀXV", textbook.of_linear),
        Family("performer", _ORDER, "a Performer with four features", textbook.of_performer),
        Family("sumformer", _ORDER, "a Sumformer with two features", textbook.of_sumformer),
        Family("hierarchy", ("m", "e", "e_v", *_ORDER), "σ(XAXᵀ)XV", textbook.of_hierarchy),
    )
}
