"""Check a file, and say which claim by name it is about.

The checker (``checker/``) knows programs by their hashes only. Here the claim that the file names is
built again, and must be the one that the file is about: then its name can be said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from locum.errors import GraphError, InputError
from locum.verification.checker.check import Checked
from locum.verification.checker.check import check as check_certificate
from locum.verification.checker.content import REFUTATION, RejectedError
from locum.verification.checker.refutation import Refuted, check_refutation
from locum.verification.checker.work import STEPS
from locum.verification.claims.claim import Claim
from locum.verification.claims.named import FAMILIES, claim


@dataclass(frozen=True)
class Verified:
    """What a file shows, and the title of the claim if it is one of those by name."""

    shows: Checked | Refuted
    title: str | None

    @property
    def statement(self) -> str:
        """What is proven, or refuted."""
        return self.shows.statement

    @property
    def cases(self) -> int:
        """How many cases were gone through; 0 for a refutation."""
        return self.shows.cases if isinstance(self.shows, Checked) else 0


def check(content: Any, stated: Claim | None = None, *, steps: int = STEPS) -> Verified:
    """Check a certificate or a refutation; :class:`RejectedError` if it does not show what it says.

    ``stated`` is the claim that it must be about, if you have one; else the one that the file names.
    ``steps`` is how much work it may take: what takes more is rejected, whatever it shows.
    """
    is_refutation = isinstance(content, dict) and content.get("format") == REFUTATION
    shows = check_refutation(content, steps) if is_refutation else check_certificate(content, steps)
    claimed = stated if stated is not None else _named(content.get("claim"))
    if claimed is None:
        return Verified(shows, None)
    if claimed.statement != shows.statement or claimed.hash != shows.program:
        raise RejectedError(f"the file is not about {claimed.title}")
    return Verified(shows, claimed.title)


def _named(label: Any) -> Claim | None:
    """Return the claim by that name; None for claims of one's own."""
    match label:
        case {"name": str(name), "shape": list(shape), "recipe": str(recipe), "tolerance": tolerance}:
            if len(label) > 4:
                raise RejectedError("expected the claim's name, shape, recipe and tolerance alone")
        case _:
            raise RejectedError("expected the claim's name, shape, recipe and tolerance")
    if name not in FAMILIES:
        return None
    if not all(type(n) is int and 1 <= n <= 100 for n in shape):
        raise RejectedError("expected the shape of a named claim as integers from 1 to 100")
    try:
        return claim(name, *shape, recipe=recipe or None, tolerance=tolerance)
    except (InputError, GraphError, TypeError) as problem:
        raise RejectedError(f"the claim's name does not make sense: {problem}") from None
