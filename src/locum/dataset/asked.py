"""What a sweep of circuits asks for, and whether the items of an earlier one are still there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from locum.dataset.families import SOURCES
from locum.dataset.making import LAYERS, RANDOM
from locum.dataset.tiers import TIERS

#: The file that is written with every item.
_CERTIFICATE = "certificate.json"


def problem_of_circuit(settings: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the setting that is wrong and what is wrong with it, if one is.

    >>> problem_of_circuit({"source": "random", "tiers": ["plain"], "layers": 9})
    ('layers', 'expected 1 to 8 for a random program, got 9')
    """
    source = settings["source"]
    if source != RANDOM and source not in SOURCES:
        return "source", f"there is no program {source!r}: expected random, or such as {min(SOURCES)}"
    unknown = [tier for tier in settings["tiers"] if tier not in TIERS]
    if unknown or not settings["tiers"]:
        return "tiers", f"expected one or more of {', '.join(TIERS)}, got {settings['tiers']}"
    if source == RANDOM:
        if settings["layers"] not in LAYERS:
            most = LAYERS[-1]
            return "layers", f"expected 1 to {most} for a random program, got {settings['layers']}"
        return None
    known = len(SOURCES[source].vocabulary)
    if settings["length"] is None or settings["length"] < 1:
        return "length", f"expected 1 or more for a named program, got {settings['length']}"
    if settings["tokens"] is None or not 1 <= settings["tokens"] <= known:
        return "tokens", f"expected 1 to {known} for {source}, got {settings['tokens']}"
    return None


def is_there(settings: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    """Tell whether all items that a case wrote are in its folder.

    >>> is_there({"folder": "nowhere"}, {"rows": [{"folder": "items/plain/a"}]})
    False
    """
    place = Path(settings["folder"])
    return all((place / row["folder"] / _CERTIFICATE).is_file() for row in result["rows"])
