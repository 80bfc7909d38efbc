"""Define named claims about constructions and U, each with its textbook formula.

>>> claim("transpose", 2, 3).reference
Xᵀ
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from locum.constructions import Matrix
from locum.constructions.inverse import TOLERANCE
from locum.errors import InputError
from locum.proofs.claims import textbook
from locum.proofs.claims.claim import Claim, Condition, Input, Reference, state
from locum.proofs.claims.statement import Token
from locum.rasp.handles import SOp

#: Names of claims of the paper, which ``locum.paper`` builds.
_OF_THE_PAPER = re.compile(r"E[0-9]+|listing-[0-9]+")


@dataclass(frozen=True)
class Family:
    """A family of claims with the same name and different shapes."""

    name: str
    parameters: tuple[str, ...]
    build: Callable[..., Claim]
    #: The available recipes; the first is the default.
    recipes: tuple[str, ...] = ()
    #: Default relative size up to which pivots and determinants count as 0; None without such a
    #: tolerance.
    tolerance: float | None = None


def problem_with(
    name: str,
    parameters: Sequence[str],
    recipes: Sequence[str],
    shape: Sequence[int],
    recipe: str | None,
) -> tuple[str, str] | None:
    """Find a problem with the shape or the recipe of a named claim.

    Return the wrong setting (``"shape"`` or ``"recipe"``) and a message, or None if both are valid.
    """
    if len(shape) != len(parameters) or any(type(n) is not int or n < 1 for n in shape):
        takes = f"{name} takes {' '.join(parameters) or 'no numbers'}"
        return "shape", f"{takes}: expected {len(parameters)} positive integers, got {list(shape)}"
    if recipe is not None and recipe not in recipes:
        choices = ", ".join(recipes) or "none: it has one form only"
        return "recipe", f"expected a recipe of {name}, got {recipe!r}; try {choices}"
    return None


def claim(name: str, *shape: int, recipe: str | None = None, tolerance: float | None = None) -> Claim:
    """Build the claim with this name and shape, such as ``claim("matmul", 3, 3, 4)``.

    ``recipe`` and ``tolerance`` select the construction. A family without these settings rejects them.
    """
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
        raise InputError(
            f"expected no tolerance for {name}, got {tolerance!r}; try without a tolerance"
        )
    return replace(family.build(*shape, **options), name=name, shape=shape, **options)


def about(
    name: str,
    shape: Sequence[int],
    program: Matrix | SOp,
    inputs: Sequence[Input],
    reference: Reference,
    *,
    layout: Sequence[Token] | None = None,
    length: int = 0,
    conditions: Callable[..., Sequence[Condition]] | None = None,
    integer: bool = False,
    **options: Any,
) -> Claim:
    """Return a claim about a program that returns a matrix, or about all positions of an s-op.

    ``reference`` maps the inputs, as formulas, to the formula that the program is claimed to compute,
    or to rows of 1×1 formulas and numbers. ``conditions`` maps the inputs to the assumptions: a list of
    pairs of a 1×1 formula and ``"!="`` or ``">"``, which compares the formula with 0. With
    ``integer=True``, the entries are integers. The tokens are the entries of the inputs in order,
    unless a ``layout`` is given. Zeros are appended up to ``length``. For a matrix whose program does
    not use the length of the sequence, zeros are also appended up to the length that the program needs.
    The ``name`` and the ``shape`` form the title. Names of named claims, errata and listings are
    rejected.

    >>> from locum import tokens
    >>> stated = about(
    ...     "reciprocal", (1,), 1 / tokens, [("s", 1, 1)], lambda s: 1 / s,
    ...     conditions=lambda s: [(s, "!=")],
    ... )
    >>> print(stated.statement)
    for all s ∈ ℝ^{1×1} with s ≠ 0: P⟨s⟩ = 1/s, where P is the program 6a9239a425964adf…
    """
    if not isinstance(name, str) or name in FAMILIES or _OF_THE_PAPER.fullmatch(name):
        raise InputError(
            f"name: expected a string other than the names of existing claims, got {name!r:.60}; "
            f"try 'own_{name!s:.40}'"
        )
    return state(
        name, shape, program, inputs, reference, layout=layout, length=length, conditions=conditions,
        integer=integer, **options,
    )  # fmt: skip


_ORDER = ("n", "d", "d_v")
FAMILIES = {
    family.name: family
    for family in (
        Family("transpose", ("r", "c"), textbook.transpose, ("paper", "view")),
        Family(
            "matmul",
            ("r", "k", "c"),
            textbook.matmul,
            ("paper", "fetch", "tiled", "scatter"),
        ),
        Family("softmax", ("r", "c"), textbook.softmax, ("stable", "plain")),
        Family("relu", ("n",), textbook.relu, ("feed-forward", "maxmin")),
        Family("maxmin", ("n",), textbook.maxmin, ("partner", "paper")),
        Family("groupsort", ("n", "group"), textbook.groupsort),
        Family("cofactor", ("r",), textbook.cofactor),
        Family("determinant", ("r",), textbook.determinant, ("frugal", "paper")),
        Family(
            "inverse",
            ("r",),
            textbook.inverse,
            ("cofactor", "paper", "gauss-jordan"),
            TOLERANCE,
        ),
        Family("identify", ("n", "i", "k"), textbook.identify),
        Family("shift", ("n", "t"), textbook.shift),
        Family("multihead_transpose", ("H", "r", "c"), textbook.multihead_transpose),
        Family("multihead_matmul", ("H", "r", "k", "c"), textbook.multihead_matmul),
        Family("summed", ("n",), textbook.summed),
        Family("positions", ("r", "c"), textbook.positions),
        Family("layer_norm", ("r", "c"), textbook.layer_norm),
        Family("match2", ("n", "p"), textbook.match2),
        Family(
            "attention",
            _ORDER,
            textbook.of_attention,
            ("fetch", "paper", "tiled", "width-1", "inverse"),
        ),
        Family("encoder", (*_ORDER, "d1", "d2"), textbook.of_encoder),
        Family("multihead_attention", ("H", *_ORDER), textbook.of_heads),
        Family("multihead_encoder", ("H", *_ORDER, "d1", "d2"), textbook.of_heads_encoder),
        Family("hard_attention", _ORDER, textbook.of_hard_attention),
        Family("causal_attention", _ORDER, textbook.of_causal),
        Family("cross_attention", ("n", "m", "d", "d_v"), textbook.of_cross),
        Family("normed_encoder", ("n", "d", "d1"), textbook.of_normed_encoder, ("post", "pre")),
        Family("decoder", ("n", "m", "d", "d1"), textbook.of_decoder, ("post", "pre", "none")),
        Family("linformer", _ORDER, textbook.of_linformer),
        Family("linear", _ORDER, textbook.of_linear),
        Family("performer", _ORDER, textbook.of_performer),
        Family("sumformer", _ORDER, textbook.of_sumformer),
        Family("hierarchy", ("m", "e", "e_v", *_ORDER), textbook.of_hierarchy),
    )
}
