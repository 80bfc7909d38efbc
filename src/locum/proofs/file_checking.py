"""Check a certificate or a refutation, and identify its claim.

The modules in ``checker/`` read a claim as data. This module writes the claim as a sentence. The claim
in the file is compared with a claim that the caller states. If the caller states none and the file
contains the name of a known claim, this module builds the named claim again and compares it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from locum.proofs.checker.check import (
    CLAIM_FIELDS,
    REFUTATION,
    Refuted,
    RejectedError,
    check_refutation,
    reject_errors,
)
from locum.proofs.checker.check import check as check_certificate
from locum.proofs.claims.claim import Claim
from locum.proofs.claims.named import FAMILIES, claim

#: Functions that build a claim from its shape, by the name of the claim.
Builders: TypeAlias = Mapping[str, Callable[..., Claim]]


@dataclass(frozen=True)
class Verified:
    """The result of checking a certificate or a refutation."""

    #: The claim as a sentence, which is false if ``refuted`` is not None. The title of the stated or
    #: named claim (otherwise None), and the program's hash.
    statement: str
    title: str | None
    program: str
    #: The number of cases of a proof, without impossible cases; 0 for a refutation.
    cases: int
    refuted: Refuted | None = None


def check(
    content: Any, stated: Claim | None = None, *, more: Builders = MappingProxyType({})
) -> Verified:
    """Check the content of a certificate or of a refutation, and return the verified claim.

    Raise :class:`RejectedError` if the content is not valid. The content must be about the claim
    ``stated``. If ``stated`` is None and the content includes the name of a known claim, it must be
    about the claim with this name. ``more`` contains named claims that :func:`claim` does not build.
    """
    is_refutation = isinstance(content, dict) and content.get("format") == REFUTATION
    refuted = check_refutation(content) if is_refutation else None
    cases = 0 if is_refutation else check_certificate(content)
    claimed = stated if stated is not None else _find_claim(content["claim"], more)
    named = None if claimed is None else reject_errors(lambda one: one.content)(claimed)
    if claimed is not None and named != {field: content[field] for field in CLAIM_FIELDS}:
        raise RejectedError(
            f"expected a file about the claim {claimed.title}, got a file about another claim"
        )
    title = None if claimed is None else claimed.title
    shown = reject_errors(Claim.from_content)(content) if claimed is None else claimed
    statement = reject_errors(lambda one: one.statement)(shown)
    return Verified(statement, title, content["program"]["hash"], cases, refuted)


def _find_claim(label: Any, more: Builders) -> Claim | None:
    """Return the claim that ``label`` describes, or None if no claim has the name in ``label``.

    Raise :class:`RejectedError` if ``label`` is malformed, or if the named claim cannot be built from
    it.
    """
    match label:
        case {"name": str(name), "shape": list(shape), "recipe": str(recipe), "tolerance": tolerance}:
            if len(label) > 4:
                raise RejectedError("expected the claim's name, shape, recipe and tolerance alone")
        case _:
            raise RejectedError("expected the claim's name, shape, recipe and tolerance")
    if name not in FAMILIES and name not in more:
        return None
    if not all(type(n) is int and 1 <= n <= 100 for n in shape):
        raise RejectedError("expected the shape of a named claim as integers from 1 to 100")
    try:
        if name in FAMILIES:
            return claim(name, *shape, recipe=recipe or None, tolerance=tolerance)
        built = more[name](*shape)
    except Exception as problem:  # A label can contain any shape.
        raise RejectedError(f"the named claim cannot be built: {problem}") from None
    if built.label != label:
        raise RejectedError(f"claim: expected {built.label} for this name, got {label!s:.200}")
    return built
