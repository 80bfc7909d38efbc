"""Certainty: proofs for all inputs, counterexamples, certificates, and certified error.

- :func:`prove`: a claim (by name and shape, or your own by :func:`about`) → a :class:`Proof` for all
  inputs, a :class:`Refutation` with numbers, or an honest :class:`Unproven`;
- :func:`check`: a proof's certificate, verified without the prover's code;
- :func:`certify`: an enclosure of the true result of U on given numbers, and a bound on what floating
  point loses.
"""

from locum.verification.certified.certify import Certified, certify
from locum.verification.checker.check import Checked, check
from locum.verification.checker.quotients import RejectedError
from locum.verification.claims.algebra import Algebra
from locum.verification.claims.claim import Claim, about
from locum.verification.claims.named import FAMILIES, claim
from locum.verification.prover.prove import Proof, Refutation, Unproven, prove

__all__ = [
    "FAMILIES",
    "Algebra",
    "Certified",
    "Checked",
    "Claim",
    "Proof",
    "Refutation",
    "RejectedError",
    "Unproven",
    "about",
    "certify",
    "check",
    "claim",
    "prove",
]
