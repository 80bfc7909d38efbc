"""Check whether the claim, recipe, shape or erratum in the specification of a sweep is valid.

Each function returns the name of a wrong setting and a message, or None if it finds no wrong setting.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from locum.paper.as_printed import LISTINGS
from locum.paper.errata import refutable_errata
from locum.proofs.claims.named import FAMILIES, problem_with


def problem_of_proof(settings: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the wrong setting of a proof and a message, or None if no wrong setting is found.

    The claim is not built, so a shape that the construction does not support may not be found.

    >>> problem_of_proof({"claim": "transpose", "shape": [2], "recipe": None})
    ('shape', 'transpose takes r c: expected 2 positive integers, got [2]')
    """
    name, shape, recipe = settings["claim"], settings["shape"], settings["recipe"]
    if name in LISTINGS:
        parameters: tuple[str, ...] = tuple(inspect.signature(LISTINGS[name]).parameters)
        recipes: tuple[str, ...] = ()
    elif name in FAMILIES:
        parameters, recipes = FAMILIES[name].parameters, FAMILIES[name].recipes
    else:
        known = ", ".join([*FAMILIES, *LISTINGS])
        return "claim", f"expected the name of a claim, got {name!r}; try one of {known}"
    return problem_with(name, parameters, recipes, shape, recipe)


def problem_of_refutation(settings: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the wrong setting and a message, or None if the settings name a refutable erratum.

    >>> problem_of_refutation({"erratum": "E2"}) is None
    True
    """
    known = refutable_errata()
    if settings["erratum"] in known:
        return None
    expected = f"expected an erratum that can be refuted ({', '.join(known)})"
    return "erratum", f"{expected}, got {settings['erratum']!r}"
