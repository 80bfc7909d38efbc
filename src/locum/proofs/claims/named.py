"""Claims with names: constructions and U, each with its textbook formula.

>>> claim("transpose", 2, 3).reference
Xᵀ
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from locum.constructions.inverse import TOLERANCE
from locum.errors import InputError
from locum.verification.claims import universal
from locum.verification.claims.claim import Claim


@dataclass(frozen=True)
class Family:
    """Claims of one name, one for every shape."""

    name: str
    parameters: tuple[str, ...]
    build: Callable[..., Claim]
    #: Which recipes there are, the first being the default.
    recipes: tuple[str, ...] = ()
    #: Below which relative size a determinant counts as 0, by default; None: there is no tolerance.
    tolerance: float | None = None


def problem_with(
    name: str,
    parameters: Sequence[str],
    recipes: Sequence[str],
    shape: Sequence[int],
    recipe: str | None,
) -> tuple[str, str] | None:
    """Say what is wrong with the shape or the recipe of a claim: which of them, and in words."""
    if len(shape) != len(parameters) or any(type(n) is not int or n < 1 for n in shape):
        takes = f"{name} takes {' '.join(parameters) or 'no numbers'}"
        return "shape", f"{takes}: expected {len(parameters)} positive integers, got {list(shape)}"
    if recipe is not None and recipe not in recipes:
        choices = ", ".join(recipes) or "none: it has one form only"
        return "recipe", f"expected a recipe of {name}, got {recipe!r}; try {choices}"
    return None


def claim(name: str, *shape: int, recipe: str | None = None, tolerance: float | None = None) -> Claim:
    """Build the claim of that name and shape."""
    if name not in FAMILIES:
        raise InputError(
            f"expected the name of a claim, got {name!r}; try one of {', '.join(FAMILIES)}"
        )
    family = FAMILIES[name]
    problem = problem_with(name, family.parameters, family.recipes, shape, recipe)
    if problem is not None:
        raise InputError(problem[1])
    options: dict[str, Any] = {}
    if family.recipes:
        options["recipe"] = recipe or family.recipes[0]
    if family.tolerance is not None:
        options["tolerance"] = family.tolerance if tolerance is None else tolerance
        if not 0 <= options["tolerance"] < 1:
            raise InputError(f"expected a tolerance from 0 up to 1, got {tolerance!r}")
    elif tolerance is not None:
        raise InputError(f"expected no tolerance for {name}, got {tolerance!r}; try without")
    return replace(family.build(*shape, **options), name=name, shape=shape, **options)


_ORDER = ("n", "d", "d_v")
FAMILIES = {
    family.name: family
    for family in (
        Family("transpose", ("r", "c"), universal.transpose, ("paper", "view")),
        Family("matmul", ("r", "k", "c"), universal.matmul, ("paper", "fetch", "tiled", "scatter")),
        Family("softmax", ("r", "c"), universal.softmax, ("stable", "plain")),
        Family("relu", ("n",), universal.relu, ("feed-forward", "maxmin")),
        Family("maxmin", ("n",), universal.maxmin, ("partner", "paper")),
        Family("groupsort", ("n", "group"), universal.groupsort),
        Family("cofactor", ("r",), universal.cofactor),
        Family("determinant", ("r",), universal.determinant, ("frugal", "paper")),
        Family("inverse", ("r",), universal.inverse, ("cofactor", "paper", "gauss-jordan"), TOLERANCE),
        Family("identify", ("n", "i", "k"), universal.identify),
        Family("shift", ("n", "t"), universal.shift),
        Family("multihead_transpose", ("H", "r", "c"), universal.multihead_transpose),
        Family("multihead_matmul", ("H", "r", "k", "c"), universal.multihead_matmul),
        Family("summed", ("n",), universal.summed),
        Family("positions", ("r", "c"), universal.positions),
        Family("layer_norm", ("r", "c"), universal.layer_norm),
        Family("match2", ("n", "p"), universal.match2),
        Family(
            "attention",
            _ORDER,
            universal.of_attention,
            ("fetch", "paper", "tiled", "width-1", "inverse"),
        ),
        Family("encoder", (*_ORDER, "d1", "d2"), universal.of_encoder),
        Family("multihead_attention", ("H", *_ORDER), universal.of_heads),
        Family("multihead_encoder", ("H", *_ORDER, "d1", "d2"), universal.of_heads_encoder),
        Family("hard_attention", _ORDER, universal.of_hard_attention),
        Family("causal_attention", _ORDER, universal.of_causal),
        Family("cross_attention", ("n", "m", "d", "d_v"), universal.of_cross),
        Family("normed_encoder", ("n", "d", "d1"), universal.of_normed_encoder, ("post", "pre")),
        Family("decoder", ("n", "m", "d", "d1"), universal.of_decoder, ("post", "pre", "none")),
        Family("linformer", _ORDER, universal.of_linformer),
        Family("linear", _ORDER, universal.of_linear),
        Family("performer", _ORDER, universal.of_performer),
        Family("sumformer", _ORDER, universal.of_sumformer),
        Family("hierarchy", ("m", "e", "e_v", *_ORDER), universal.of_hierarchy),
    )
}
