"""Verification: proofs for all inputs, counterexamples, certificates, and certified error.

- :func:`prove` a claim (by name and shape, or by :func:`about`): :class:`Proof`, :class:`Refutation` or
  :class:`Unproven`;
- :func:`check` a certificate or a refutation without the prover's code;
- :func:`certify` the result of U on given numbers: an enclosure, and a bound on the rounding error.

Names are imported when they are first used: the checker does not load the prover.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from locum.proofs.certified.certify import Certified as Certified
    from locum.proofs.certified.certify import certify as certify
    from locum.proofs.checker.check import Refuted as Refuted
    from locum.proofs.checker.check import RejectedError as RejectedError
    from locum.proofs.claims.claim import Claim as Claim
    from locum.proofs.claims.claim import about as about
    from locum.proofs.claims.formula import Formula as Formula
    from locum.proofs.claims.named import FAMILIES as FAMILIES
    from locum.proofs.claims.named import claim as claim
    from locum.proofs.file_checking import Verified as Verified
    from locum.proofs.file_checking import check as check
    from locum.proofs.prover.prove import Proof as Proof
    from locum.proofs.prover.prove import Refutation as Refutation
    from locum.proofs.prover.prove import Unproven as Unproven
    from locum.proofs.prover.prove import prove as prove

_MODULES = {
    "certified.certify": ("Certified", "certify"),
    "checker.check": ("Refuted", "RejectedError"),
    "claims.formula": ("Formula",),
    "checking": ("Verified", "check"),
    "claims.claim": ("Claim", "about"),
    "claims.named": ("FAMILIES", "claim"),
    "prover.prove": ("Proof", "Refutation", "Unproven", "prove"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'locum.proofs' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"locum.proofs.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
