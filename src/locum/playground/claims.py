"""Proofs and classifications that the page asks for."""

from __future__ import annotations

import json
from typing import Any

from locum.dialects import regular
from locum.dialects.classify import classify as classify_automaton
from locum.display.automaton import MAX_DRAWN, automaton_svg
from locum.errors import InputError
from locum.verification import Unproven
from locum.verification import prove as prove_claim
from locum.verification.claims.named import FAMILIES

#: Seconds for the search of a proof, terms of a polynomial, entries of a shape together.
SECONDS, TERMS, MAX_SHAPE = 3.0, 20_000, 12


def prove(name: str, shape: list[int], recipe: str | None, certificate: bool) -> dict[str, Any]:
    """Prove a claim for all inputs of a shape, or refute it, or say that neither was possible.

    With ``certificate``, what ``locum prove check`` goes through again is in the answer, as text.
    """
    require_small(shape)
    verdict = prove_claim(name, *shape, recipe=recipe, seconds=SECONDS, terms=TERMS, megabytes=400)
    reply = {"text": str(verdict), **verdict.to_dict()}
    if certificate:
        if isinstance(verdict, Unproven):
            raise InputError(f"there is no certificate: {verdict}")
        reply["certificate"] = json.dumps(verdict.certificate)
    return reply


def require_small(shape: list[int]) -> None:
    """Refuse a shape whose proof would take long."""
    if sum(shape) > MAX_SHAPE:
        raise InputError(
            f"shape: expected integers that sum to at most {MAX_SHAPE}, got {sum(shape)}; "
            "`locum prove claim` has no such limit"
        )


def classify(regex: str) -> dict[str, Any]:
    """Classify a regular language: each verdict with its reason and its consequence."""
    automaton = regular.language(regex.strip(), None, plus="union")
    verdicts = classify_automaton(automaton)
    lines = [
        {"key": line.key, "holds": line.holds, "reason": line.reason, "consequence": line.consequence}
        for line in verdicts.lines()
    ]
    program = verdicts.program("end") or verdicts.program("last")
    drawn = automaton_svg(automaton, regex) if len(automaton) <= MAX_DRAWN else None
    return {
        "states": len(automaton),
        "monoid": len(verdicts.monoid),
        "lines": lines,
        "program": None if program is None else program.text,
        "svg": drawn,
    }


def claims() -> list[dict[str, Any]]:
    """List the claims that can be proven, with their parameters and recipes."""
    return [
        {"name": f.name, "parameters": list(f.parameters), "recipes": list(f.recipes)}
        for f in FAMILIES.values()
    ]
